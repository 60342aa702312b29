"""Tables of cells: as text to print, and as files for a spreadsheet.

A rate is printed with three decimals, its interval and its denominator beside it; ``n/a`` is an
undefined value, a lone rate has no interval. Drawing a table is done elsewhere. Nothing here knows
what the numbers mean.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Protocol

from habitus.cells import safe_cell

UNDEFINED = "n/a"

Value = str | int | float | bool | None


@dataclass(frozen=True, slots=True)
class TextTable:
    """A title, columns, rows of as many cells, and the notes to print below.

    The first ``keys`` columns say what a row is about.
    """

    title: str
    columns: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    notes: tuple[str, ...] = ()
    keys: int = 1


class Ends(Protocol):
    """What has two ends: an interval."""

    @property
    def low(self) -> float:
        """The lower end."""

    @property
    def high(self) -> float:
        """The upper end."""


def number(value: float | None, *, signed: bool = False) -> str:
    """``.115``, ``1.000``, ``-.012``, with ``signed`` ``+.012``; ``n/a`` when undefined."""
    if value is None:
        return UNDEFINED
    text = f"{abs(value):.3f}"
    text = text.removeprefix("0")
    if value < 0 and float(text):
        return f"-{text}"
    return f"+{text}" if signed and float(text) else text


def with_interval(value: float | None, found: Ends | None, *, signed: bool = False) -> str:
    """``.115 [.092, .140]``; the value alone where there is no interval."""
    text = number(value, signed=signed)
    if found is None:
        return text
    low, high = (number(end, signed=signed) for end in (found.low, found.high))
    return f"{text} [{low}, {high}]"


def with_range(low: float, high: float, found: Ends | None, *, signed: bool = False) -> str:
    """``.115 to .140 [.092, .165]``: a number that is known to lie between two."""
    text = " to ".join(number(end, signed=signed) for end in (low, high))
    interval = with_interval(None, found, signed=signed).removeprefix(UNDEFINED)
    return f"{text}{interval}"


def csv_text(columns: Sequence[str], rows: Iterable[Sequence[Value]]) -> str:
    """A table as CSV: numbers in full, undefined as an empty cell, no cell that runs as a formula.

    What a spreadsheet would take for a formula is written as ``safe_cell`` writes it.
    """
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow([safe_cell(column) for column in columns])
    writer.writerows([[_csv_cell(value) for value in row] for row in rows])
    return out.getvalue()


def _csv_cell(value: Value) -> str | int | float:
    if value is None:
        return ""
    if isinstance(value, bool):
        return "yes" if value else "no"
    return safe_cell(value) if isinstance(value, str) else value
