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

from habitus.errors import UsageError
from habitus.expansion import ROW as ROW_COST
from habitus.workbooks.book import Sheet, chosen, read_book
from habitus.workbooks.cells import CellError, CellReader, RawCell, Value, whole
from habitus.workbooks.limits import COLUMNS, ESCAPED, ROW, ROWS, TEXT, letters_of
from habitus.workbooks.parts import Attributes, Parts, XmlParser


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
        UsageError: it cannot be read.
    """
    with Parts(path) as parts:
        return tuple(sheet.name for sheet in read_book(parts).sheets)


def read_rows(path: Path, sheet: str = "") -> Iterator[SheetRow]:
    """The rows of a sheet, by default the first that is shown.

    Raises:
        UsageError: no workbook, one with a password, damaged, or larger than is read; no such
            sheet; a cell that cannot be read; cells that are merged, or under no heading.
    """
    with Parts(path) as parts:
        book = read_book(parts)
        found = chosen(book, parts, sheet)
        names: dict[int, str] | None = None
        letters: dict[str, str] = {}
        for number, cells in _rows(parts, found):
            values = _values(parts, book.reader, number, cells)
            if not values:
                continue
            if names is None:
                names = _headings(path, number, values)
                letters = {name: letters_of(column) for column, name in names.items()}
                continue
            row = dict.fromkeys(letters, None) | _under(path, number, names, values)
            yield SheetRow(row, number, letters)


def _rows(parts: Parts, sheet: Sheet) -> Iterator[tuple[int, list[RawCell]]]:
    parser = _SheetParser(parts)
    if sheet.part not in parts:
        raise parts.fault(f"{sheet.part} is missing")
    for _ in parts.parse(sheet.part, parser):
        rows, parser.rows = parser.rows, []
        yield from rows
    if parser.merged:
        raise UsageError(
            f"{parts.path}: the cells {parser.merged} are merged, so that only one of them has a "
            "value; unmerge them and fill each"
        )


def _values(
    parts: Parts, reader: CellReader, number: int, cells: list[RawCell]
) -> dict[int, Value]:
    """The values of a row that are there, by column."""
    values: dict[int, Value] = {}
    size = 0
    for cell in cells:
        try:
            value = reader.value(cell)
        except CellError as error:
            where = f"{letters_of(cell.column)}{number}"
            raise UsageError(f"{parts.path}: cell {where} {error}") from None
        if isinstance(value, str):
            size += len(value)
        if value is not None:
            values[cell.column] = value
    parts.expansion.add(ROW_COST + size)  # a text that cells share counts as often as it is read
    if size > ROW:
        raise UsageError(f"{parts.path}: row {number} holds more than {ROW:,} characters")
    return values


def _headings(path: Path, number: int, values: Mapping[int, Value]) -> dict[int, str]:
    names: dict[int, str] = {}
    first: dict[str, int] = {}
    for column, value in values.items():
        name = str(value)
        if first.setdefault(name, column) != column:
            places = " and ".join(f"{letters_of(c)}{number}" for c in (first[name], column))
            raise UsageError(f"{path} has two columns {name!r} ({places})")
        names[column] = name
    return names


def _under(
    path: Path, number: int, names: Mapping[int, str], values: Mapping[int, Value]
) -> dict[str, Value]:
    for column in values:
        if column not in names:
            raise UsageError(
                f"{path}: cell {letters_of(column)}{number} stands under no heading; name the column "
                "in the first row, or empty the cell"
            )
    return {names[column]: value for column, value in values.items()}


class _SheetParser(XmlParser):
    """Gathers rows of cells until they are taken."""

    def __init__(self, parts: Parts) -> None:
        super().__init__()
        self.rows: list[tuple[int, list[RawCell]]] = []
        self.merged = ""
        self._parts = parts
        self._number = 0
        self._cells: list[RawCell] = []
        self._cell: RawCell | None = None
        self._column = 0
        self._texts: list[str] = []
        self._size = 0
        self._row_size = 0
        self._on = False
        self._readings = False

    def start(self, name: str, attributes: Attributes) -> None:
        match name:
            case "row":
                self._begin_row(attributes.get("r", ""))
            case "c" if self._number:
                self._begin_cell(attributes)
            case "v" | "t" if self._cell and not self._readings:
                self._on = True
            case "f" if self._cell:
                self._cell.formula = True
            case "rPh":
                self._readings = True
            case "mergeCell":
                self.merged = self.merged or attributes.get("ref", "")[:40]

    def end(self, name: str) -> None:
        match name:
            case "v" | "t" if self._cell and self._on:
                self._cell.text = "".join(self._texts)
                self._on = False
            case "rPh":
                self._readings = False
            case "c":
                self._cell = None
            case "row":
                self.rows.append((self._number, self._cells))
                self._cells = []

    def text(self, text: str) -> None:
        if not self._on:
            return
        self._texts.append(text)
        self._size += len(text)
        self._row_size += len(text)
        if self._size > ESCAPED * TEXT or self._row_size > ESCAPED * ROW:
            place = f"{letters_of(self._column)}{self._number}"
            raise UsageError(
                f"{self._parts.path}: cell {place} holds more than {TEXT:,} characters, or its row "
                f"more than {ROW:,}; give such rows as JSON lines"
            )

    def _begin_row(self, number: str) -> None:
        found = whole(number) if number else self._number + 1
        if found is None or not self._number < found <= ROWS:
            raise self._parts.fault(f"row {number[:20]!r} follows on row {self._number}")
        self._number = found
        self._column = self._row_size = 0

    def _begin_cell(self, attributes: Attributes) -> None:
        place = attributes.get("r", "")
        column = _column(place, self._number) if place else self._column + 1
        if not self._column < column <= COLUMNS:
            raise self._parts.fault(f"cell {place[:20]!r} is out of place in row {self._number}")
        self._column = column
        kind = attributes.get("t", "n")
        self._cell = RawCell(column, kind, attributes.get("s", ""))
        self._cells.append(self._cell)
        self._texts = []
        self._size = 0


def _column(place: str, row: int) -> int:
    """The column of a place in a row, counted from 1; 0 where it is not in that row."""
    letters = place.rstrip("0123456789")
    if not 0 < len(letters) <= 3 or not letters.isascii() or not letters.isalpha():
        return 0
    if place[len(letters) :] != str(row):
        return 0
    column = 0
    for letter in letters.upper():
        column = column * 26 + ord(letter) - 64
    return column
