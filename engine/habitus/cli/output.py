"""What commands print: data on stdout, talk on stderr, nothing in it that a terminal acts on.

A table is drawn for a terminal and tab-separated in a pipe. Text from files, models and corpora
is shown letter for letter: no markup, no emoji codes, no escape sequences.
"""

from __future__ import annotations

import json
import re
import shutil
import sys
import textwrap
from collections.abc import Iterator, Sequence
from itertools import groupby
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, TextIO

from habitus.content.visible import safe_text

if TYPE_CHECKING:
    from rich.table import Table

_INTERVAL = re.compile(r"\[[^\[\] ]+, [^\[\] ]+\]")
_NUMBER = re.compile(r"[\d,]+|-")

Cell = str | int | float | bool | None
Column = tuple[str, tuple[Cell, ...]]

#: Columns that say how many: they stay with the column before them.
_BESIDE = frozenset({"n", "of", "of checks", "sessions"})
_JOIN = "\u00a0"
_GAP = 2  # between two columns of a table
_SENTENCE = (40, 30)  # a longer cell is running text, and needs so many columns at least
_WIDEST = 100  # of running text: longer lines are hard to read


def print_text(text: str) -> None:
    """Print text as data."""
    print(safe_text(text))


def talk(text: str) -> None:
    """Tell the person at the terminal something that is not data."""
    print(safe_text(text), file=sys.stderr)


def print_note(text: str, mark: str = "- ") -> None:
    """Print a line of text: broken between words on a terminal and set in, one line elsewhere."""
    line = mark + safe_text(text, lines=False)
    if sys.stdout.isatty():
        line = textwrap.fill(
            line,
            text_width(),
            subsequent_indent=" " * len(mark),
            break_long_words=False,
            break_on_hyphens=False,
        )
    print(line)


def text_width() -> int:
    """Columns for running text on this terminal."""
    return max(40, min(_WIDEST, shutil.get_terminal_size().columns))


def program() -> str:
    """What to type for this program: its name, or its path where the name is another's or none."""
    called = Path(sys.argv[0])
    found = shutil.which("habitus")
    if called.name != "habitus" or (found and Path(found).resolve() == called.resolve()):
        return "habitus"
    here = Path.cwd()
    return str(called.relative_to(here) if called.is_relative_to(here) else called)


def print_json(data: Any) -> None:
    """Print data as indented JSON; undefined numbers are null, so NaN is a fault."""
    # What safe_text replaces stands inside strings only, and its escapes are JSON's own.
    print(safe_text(json.dumps(data, indent=2, ensure_ascii=False, allow_nan=False)))


def print_table(
    columns: Sequence[str],
    rows: Sequence[Sequence[Cell]],
    *,
    keys: int = 1,
    to: TextIO | None = None,
) -> None:
    """Print a table: drawn on a terminal, tab-separated with a header line elsewhere.

    A table that is too wide for the terminal is drawn in parts, one below the other.

    Args:
        columns: their headings.
        rows: cells; numbers are set right, None is shown as ``-``.
        keys: how many columns say what a row is about; every part begins with them.
        to: the stream; stdout by default.
    """
    stream = to or sys.stdout
    if stream.isatty():
        cells = zip(*rows, strict=True) if rows else ((),) * len(columns)
        _draw(list(zip(columns, cells, strict=True)), keys, stream)
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


def _draw(columns: Sequence[Column], keys: int, stream: TextIO) -> None:
    from rich.console import Console

    console = Console(file=stream, markup=False, emoji=False, highlight=False)
    for part in _parts(columns, keys, console.width):
        console.print(_table(part, console.width))


def _parts(columns: Sequence[Column], keys: int, width: int) -> Iterator[list[Column]]:
    """The columns in parts that fit into a width, each with the key columns first."""
    first, rest = list(columns[:keys]), columns[keys:]
    part = list(first)
    for group in _groups(rest):
        least = sum(_least(column) + _GAP for column in (*part, *group))
        if len(part) > len(first) and least > width:
            yield part
            part = list(first)
        part += group
    yield part


def _groups(columns: Sequence[Column]) -> Iterator[list[Column]]:
    """Columns that stand together: one, and those that say of how many."""
    number = 0
    numbered = []
    for column in columns:
        number += column[0] not in _BESIDE
        numbered.append((number, column))
    for _, group in groupby(numbered, key=lambda pair: pair[0]):
        yield [column for _, column in group]


def _table(columns: Sequence[Column], width: int) -> Table:
    from rich import box
    from rich.table import Table
    from rich.text import Text

    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, padding=(0, 1, 0, 0))
    widths = _widths(columns, width)
    for (heading, cells), wide in zip(columns, widths, strict=True):
        numbers = any(map(_is_number, cells)) or all(map(_NUMBER.fullmatch, map(cell_text, cells)))
        side: Literal["left", "right"] = "right" if numbers else "left"
        table.add_column(Text(_broken(heading, wide)), justify=side, overflow="fold", width=wide)
    for row in zip(*(_texts(column)[1:] for column in columns), strict=True):
        table.add_row(*map(Text, map(_broken, row, widths)))
    return table


def _broken(text: str, width: int) -> str:
    """The text in lines, broken at spaces; rich would break at those of an interval too."""
    lines = textwrap.wrap(text, width, break_on_hyphens=False, break_long_words=False)
    return "\n".join(lines).replace(_JOIN, " ")


def _widths(columns: Sequence[Column], width: int) -> list[int]:
    """How wide each column is: as its texts are, or less where they have spaces to break at.

    Only where even that is too wide are words broken.
    """
    widths = [max(1, *map(_cell_length, _texts(column))) for column in columns]
    least = [_least(column) for column in columns]
    for floor in (least, [1] * len(columns)):
        while sum(widths) + _GAP * len(widths) > width:
            room = [wide - low for wide, low in zip(widths, floor, strict=True)]
            if max(room) <= 0:
                break
            widths[room.index(max(room))] -= 1
    return widths


def _least(column: Column) -> int:
    """The longest word of a column; of one that holds sentences, what they can be read in."""
    texts = _texts(column)
    word = max(_cell_length(word) for text in texts for word in text.split(" "))
    return max(word, _SENTENCE[1]) if max(map(_cell_length, texts)) > _SENTENCE[0] else word


def _texts(column: Column) -> list[str]:
    heading, cells = column
    return [heading, *(_kept_together(cell_text(cell)) for cell in cells)]


def _cell_length(text: str) -> int:
    from rich.cells import cell_len

    return cell_len(text)


def _kept_together(text: str) -> str:
    """The text with intervals such as ``[.09, .14]`` kept on one line of a narrow cell."""
    return _INTERVAL.sub(lambda match: match[0].replace(" ", _JOIN), text)


def _is_number(cell: Cell) -> bool:
    return isinstance(cell, (int, float)) and not isinstance(cell, bool)
