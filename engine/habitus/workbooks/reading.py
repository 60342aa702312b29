"""The rows of a sheet, one after the other.

    for row in read_rows(Path("answers.xlsx"), sheet="Round 2"):
        row["id"], row.cell("id")       # 12345, "A2"

The first row with anything in it names the columns; empty rows are passed over. Rows and columns that
are hidden, and links, notes and colours beside the texts, change nothing. What cannot be read
is one error that names the cell.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from habitus.errors import UsageError
from habitus.workbooks.limits import Value, missing
from habitus.workbooks.parts import Parts, open_parts

if TYPE_CHECKING:
    from habitus.workbooks.book import Book


class SheetRow(dict[str, Value]):
    """The values of a row by the names of their columns; all columns are there.

    Args:
        values: the values.
        number: of the row in its sheet, from 1.
        letters: of each column.
    """

    __slots__ = ("_letters", "number")

    def __init__(self, values: Mapping[str, Value], number: int, letters: Mapping[str, str]):
        super().__init__(values)
        self.number = number
        self._letters = letters

    def cell(self, name: str) -> str:
        """The cell of a column in this row: ``B7``."""
        return f"{self._letters[name]}{self.number}"


def sheet_names(path: Path) -> tuple[str, ...]:
    """The sheets of a workbook, hidden ones as well.

    Raises:
        UsageError: it cannot be read, or openpyxl is missing.
    """
    with open_parts(path) as parts:
        return tuple(_book(parts).sheets)


def read_rows(path: Path, sheet: str = "") -> Iterator[SheetRow]:
    """The rows of a sheet, by default the first that is shown.

    Raises:
        UsageError: no workbook, one with a password, damaged, or larger than is read; no such
            sheet; a cell that cannot be read; cells that are merged, or under no heading; openpyxl
            is missing.
    """
    with open_parts(path) as parts:
        book = _book(parts)
        letters: dict[str, str] = {}
        for number, values in book.rows(sheet):
            if not letters:
                letters = _headings(path, number, values)
            elif values:
                yield SheetRow(_named(path, number, letters, values), number, letters)


def _book(parts: Parts) -> Book:
    try:
        from habitus.workbooks.book import Book  # noqa: PLC0415  (an extra, and heavy)
    except ImportError:
        raise missing("openpyxl") from None
    return Book(parts)


def _headings(path: Path, number: int, values: Mapping[str, Value]) -> dict[str, str]:
    """The columns of the headings, by name."""
    letters: dict[str, str] = {}
    for column, value in values.items():
        first = letters.setdefault(str(value), column)
        if first != column:
            places = f"{first}{number} and {column}{number}"
            raise UsageError(f"{path} has two columns {str(value)!r} ({places})")
    return letters


def _named(
    path: Path, number: int, letters: Mapping[str, str], values: dict[str, Value]
) -> dict[str, Value]:
    row = {name: values.pop(column, None) for name, column in letters.items()}
    for column in values:
        raise UsageError(
            f"{path}: cell {column}{number} stands under no heading; name the column in the first row, "
            "or empty the cell"
        )
    return row
