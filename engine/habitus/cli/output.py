"""What commands print: data on stdout, talk on stderr, nothing in it that a terminal acts on.

A table is drawn for a terminal and tab-separated in a pipe. Text from files, models and corpora
is shown letter for letter: no markup, no emoji codes, no escape sequences.
"""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Sequence
from typing import Any, Literal, TextIO

from habitus.content.visible import safe_text

_INTERVAL = re.compile(r"\[[^\[\] ]+, [^\[\] ]+\]")

Cell = str | int | float | bool | None


def print_text(text: str) -> None:
    """Print text as data."""
    print(safe_text(text))


def talk(text: str) -> None:
    """Tell the person at the terminal something that is not data."""
    print(safe_text(text), file=sys.stderr)


def print_json(data: Any) -> None:
    """Print data as indented JSON; undefined numbers are null, so NaN is a fault."""
    # What safe_text replaces stands inside strings only, and its escapes are JSON's own.
    print(safe_text(json.dumps(data, indent=2, ensure_ascii=False, allow_nan=False)))


def print_table(
    columns: Sequence[str], rows: Sequence[Sequence[Cell]], *, to: TextIO | None = None
) -> None:
    """Print a table: drawn on a terminal, tab-separated with a header line elsewhere.

    Args:
        columns: their headings.
        rows: cells; numbers are set right, None is shown as ``-``.
        to: the stream; stdout by default.
    """
    stream = to or sys.stdout
    if stream.isatty():
        _draw(columns, rows, stream)
        return
    for row in (columns, *rows):
        print("\t".join(cell_text(cell) for cell in row), file=stream)


def cell_text(cell: Cell) -> str:
    """One cell as safe text on one line."""
    if cell is None:
        return "-"
    if isinstance(cell, bool):
        return "yes" if cell else "no"
    if isinstance(cell, float):
        return f"{cell:.4g}"
    return safe_text(str(cell), lines=False)


def _draw(columns: Sequence[str], rows: Sequence[Sequence[Cell]], stream: TextIO) -> None:
    from rich import box
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    for i, column in enumerate(columns):
        numbers = any(_is_number(row[i]) for row in rows)
        side: Literal["left", "right"] = "right" if numbers else "left"
        table.add_column(Text(column), justify=side, overflow="fold")
    for row in rows:
        table.add_row(*(Text(_kept_together(cell_text(cell))) for cell in row))
    Console(file=stream, markup=False, emoji=False, highlight=False).print(table)


def _kept_together(text: str) -> str:
    """The text with intervals such as ``[.09, .14]`` kept on one line of a narrow cell."""
    return _INTERVAL.sub(lambda match: match[0].replace(" ", "\u00a0"), text)


def _is_number(cell: Cell) -> bool:
    return isinstance(cell, (int, float)) and not isinstance(cell, bool)
