"""Tables of the report: cells that can be shown, and sorted by their numbers.

    table = sortable_table(text_table)

A cell holds the text that is shown; ``value`` is the number at its beginning, by which a column is
sorted. Nothing here knows HTML.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from habitus.tables import UNDEFINED, TextTable, Value, number

_FIRST = re.compile(r"([+-]?)((?:\d{1,3}(?:,\d{3})+|\d+)?(?:\.\d+)?)(?![\w.-])")
_INTERVAL = re.compile(r"(.*\S) (\[[^\[\]]+\])")


@dataclass(frozen=True, slots=True)
class Cell:
    """What is shown, what stands below it (an interval), and the number to sort by."""

    text: str
    below: str = ""
    value: float | None = None


@dataclass(frozen=True, slots=True)
class Column:
    """A heading; ``of`` says what an ``n`` counts, for those who hear the heading alone."""

    name: str
    of: str = ""
    numeric: bool = False


@dataclass(frozen=True, slots=True)
class Table:
    """A caption, columns, rows and notes; the first ``keys`` columns are headings of rows."""

    caption: str
    columns: tuple[Column, ...]
    rows: tuple[tuple[Cell, ...], ...]
    notes: tuple[str, ...] = ()
    keys: int = 1


def sortable_table(table: TextTable) -> Table:
    """A table of text as one whose columns can be sorted; columns without any text are left out."""
    kept = [
        i for i in range(len(table.columns)) if not table.rows or any(row[i] for row in table.rows)
    ]
    rows = tuple(tuple(_cell(row[i]) for i in kept) for row in table.rows)
    columns = _columns(table.columns, [tuple(map(_cell, row)) for row in table.rows], table.keys)
    return Table(
        table.title,
        tuple(columns[i] for i in kept),
        rows,
        table.notes,
        table.keys,
    )


def plain_table(
    caption: str,
    columns: Sequence[str],
    rows: Sequence[Sequence[Value]],
    notes: Sequence[str] = (),
    keys: int = 1,
) -> Table:
    """A table of values: rates with three decimals, counts in full, undefined as ``n/a``."""
    made = tuple(tuple(map(_value_cell, row)) for row in rows)
    return Table(caption, _columns(columns, made, keys), made, tuple(notes), keys)


def _value_cell(value: Value) -> Cell:
    if value is None:
        return Cell(UNDEFINED)
    if isinstance(value, bool):
        return Cell("yes" if value else "no")
    if isinstance(value, int):
        return Cell(f"{value:,}", value=float(value))
    return Cell(number(value), value=value) if isinstance(value, float) else Cell(value)


def _cell(text: str) -> Cell:
    parts = _INTERVAL.fullmatch(text)
    shown, below = parts.groups() if parts else (text, "")
    return Cell(shown, below, _leading(shown))


def _leading(text: str) -> float | None:
    """The number a text begins with."""
    found = _FIRST.match(text)
    if not found or not found[2]:
        return None
    return float(found[1] + found[2].replace(",", ""))


def _columns(names: Sequence[str], rows: Sequence[Sequence[Cell]], keys: int) -> tuple[Column, ...]:
    found = []
    for i, name in enumerate(names):
        cells = [row[i] for row in rows]
        said = [c for c in cells if c.text not in {"", UNDEFINED}]
        numeric = i >= keys and bool(said) and all(c.value is not None for c in said)
        of = names[i - 1] if name in {"n", "of checks", "sessions"} and i else ""
        found.append(Column(name, of, numeric))
    return tuple(found)
