"""A workbook through openpyxl: its sheets, their rows, and what stands in a cell or why it cannot be read.

A number is read in full and not as its format shows it; only days and times are told by their format.
Errors (``#N/A``) and formulas whose value is not in the file are faults: they are no text, and no empty
cell either. Of openpyxl, the parsers are used: its worksheets would not say which cell it is that cannot be
read, give the same for a formula without a value as for an empty cell, and leave out rows that are
out of order. ``parts`` stands between them and the file.
"""

from __future__ import annotations

import datetime as dt
import math
import re
import warnings
from collections.abc import Iterator
from sys import getsizeof
from typing import Any

from openpyxl.cell.text import Text
from openpyxl.reader.excel import ExcelReader
from openpyxl.styles.stylesheet import apply_stylesheet
from openpyxl.utils import get_column_letter
from openpyxl.utils.datetime import from_excel
from openpyxl.worksheet import _reader as sheets
from openpyxl.xml.constants import ARC_CONTENT_TYPES, SHARED_STRINGS, SHEET_MAIN_NS
from openpyxl.xml.functions import iterparse

from habitus import expansion
from habitus.cells import plain_cell
from habitus.errors import UsageError
from habitus.workbooks import limits
from habitus.workbooks.limits import Value
from habitus.workbooks.parts import Parts

_EXACT = 10**15  # spreadsheets keep 15 digits of a number
_TEXT_TAG = f"{{{SHEET_MAIN_NS}}}si"
#: Escapes of what XML cannot hold, but for halves of characters, which openpyxl's ``unescape`` makes.
_ESCAPE = re.compile("_x((?!D[89A-F])[0-9A-F]{4})_", re.IGNORECASE)


class CellError(Exception):
    """A cell that cannot be read: the reason, and what to do."""


class Book:
    """The sheets of a workbook, and what their cells need to be read.

    Raises:
        UsageError: no workbook, or larger than is read. Damage is of any kind, here and below.
    """

    def __init__(self, parts: Parts) -> None:
        if ARC_CONTENT_TYPES not in parts.namelist():
            raise UsageError(
                f"{parts.path} holds no workbook; save it as .xlsx in a spreadsheet program"
            )
        reader: Any = ExcelReader(parts.file, read_only=True, data_only=True, keep_links=False)
        reader.archive = self.parts = parts
        with warnings.catch_warnings(action="ignore"):  # what cannot be read of rows is told here
            reader.read_manifest()
            reader.read_workbook()
            apply_stylesheet(parts, reader.wb)
            listed = [*reader.parser.find_sheets()]
        self.inner, self._shared = reader.wb, reader.package.find(SHARED_STRINGS)
        self.sheets = {
            sheet.name: (link.target, sheet.state == "visible")
            for sheet, link in listed
            if link.Type.endswith("/worksheet")
        }
        if not self.sheets:
            raise ValueError("it lists no sheet of cells in the usual form")

    def rows(self, name: str) -> Iterator[tuple[int, dict[str, Value]]]:
        """The rows of a sheet: their numbers, and what is there, by the letters of its column.

        Raises:
            UsageError: no such sheet, merged cells, or a cell that cannot be read.
        """
        shown = [sheet for sheet, (_, is_shown) in self.sheets.items() if is_shown]
        name = name or [*shown, *self.sheets][0]
        if name not in self.sheets:
            names = ", ".join(map(repr, [*self.sheets][:20]))
            raise UsageError(f"{self.parts.path} has no sheet {name!r}; it has {names}")
        return _SheetParser(self, self.sheets[name][0]).rows()

    def texts(self) -> Iterator[str]:
        """The texts that cells share. openpyxl's own reading of them loses escapes of escapes."""
        if self._shared is None:
            return
        size = 0
        part = self.parts.open(self._shared.PartName[1:], dropped=_TEXT_TAG)
        for element in _each(part, _TEXT_TAG):
            shared: Any = Text.from_tree(element)
            text: str = shared.content
            size += getsizeof(text)
            if size > limits.SHARED:
                raise UsageError(
                    f"{self.parts.path} has texts that take more than {limits.SHARED:,} bytes; give the "
                    "rows as JSON lines or CSV"
                )
            yield text


class _SheetParser(sheets.WorkSheetParser):
    """Reads the rows of a sheet, and nothing else of it."""

    def __init__(self, book: Book, part: str) -> None:
        source = book.parts.open(part, dropped=sheets.ROW_TAG)
        super().__init__(source, [*book.texts()], data_only=True)  # no formats: see _number
        self._path, self._expansion, self._book = book.parts.path, book.parts.expansion, book.inner

    def rows(self) -> Iterator[tuple[int, dict[str, Value]]]:
        for element in _each(self.source, sheets.ROW_TAG, sheets.MERGE_TAG):
            if element.tag == sheets.ROW_TAG:
                last = self.row_counter
                number, cells = self.parse_row(element)
                if not last < number <= limits.ROWS:
                    raise ValueError(f"row {number} follows on row {last}")
                self.row_dimensions.clear()
                self._expansion.add(expansion.ROW)
                yield number, {column: value for column, value in cells if value is not None}
            elif len(element):
                raise UsageError(
                    f"{self._path}: the cells {element[0].get('ref', '')[:40]} are merged, so that only "
                    "one of them has a value; unmerge them and fill each"
                )

    def parse_cell(self, element: Any) -> tuple[str, Value]:  # type: ignore[override]
        last, raw = self.col_counter, element.findtext(sheets.VALUE_TAG) or ""
        place = element.get("r") or f"{get_column_letter(last + 1)}{self.row_counter}"
        try:
            cell = super().parse_cell(element)
            value = self._value(cell, element, raw)
        except Exception as error:  # of any kind, as in ``parts.open_parts``
            why = f"holds {raw[:20]!r}, which cannot be read: mend it or empty it"
            why = str(error) if isinstance(error, CellError) else why
            raise UsageError(f"{self._path}: cell {place[:20]} {why}") from None
        if cell["row"] != self.row_counter or not last < cell["column"] <= limits.COLUMNS:
            why = f"is out of place in row {self.row_counter}"
            raise UsageError(f"{self._path}: cell {place[:20]} {why}")
        if isinstance(value, str):
            self._expansion.add(len(value))  # a text that cells share counts as often as it is read
        return get_column_letter(cell["column"]), value

    def _value(self, cell: dict[str, Any], element: Any, raw: str) -> Value:
        value, kind = cell["value"], cell["data_type"]
        if raw.startswith("-") and element.get("t") == "s":  # a list would count it from its end
            raise ValueError(raw)
        if kind == "e":
            raise CellError(f"holds the error {raw[:20]}: mend it or empty it")
        if value is None:
            _check_empty(element, raw)
            return None
        if kind == "s":
            return _text(value)
        if kind == "n":
            return self._number(value, raw, cell["style_id"])
        if kind == "d":
            return _moment(value)
        if kind == "b":
            return bool(value)
        raise CellError(f"is of no kind that cells have ({kind[:20]!r})")

    def _number(self, value: float, raw: str, style: int) -> Value:
        if "_" in raw or not math.isfinite(value) or style >= len(self._book._cell_styles):
            raise ValueError(raw)
        if style in self._book._date_formats:
            duration = style in self._book._timedelta_formats
            return _moment(from_excel(value, self._book.epoch, timedelta=duration))
        if abs(value) >= _EXACT:
            raise CellError(
                f"holds the number {raw[:30]}, of which a spreadsheet keeps 15 digits: what was "
                "entered may have been another; write it as text"
            )
        return int(value) if value == int(value) else value


def _each(part: Any, *tags: str) -> Iterator[Any]:
    """The elements of some tags. When the next one is asked for, all that ended before is dropped."""
    path: list[Any] = []
    for event, element in iterparse(part, ("start", "end")):
        if event == "start":
            path.append(element)
        elif path.pop().tag in tags:
            yield element
            for holder in (element, *path):
                holder.clear()


def _check_empty(element: Any, raw: str) -> None:
    """A cell without a value is empty if it is no formula, or one that gave a text of nothing."""
    if raw:
        raise ValueError(raw)
    formula, value = element.find(sheets.FORMULA_TAG), element.find(sheets.VALUE_TAG)
    if formula is not None and (value is None or element.get("t") != "str"):
        raise CellError(
            "is a formula whose value is not in the file: open it in a spreadsheet program and save "
            "it, or put the value in its place"
        )


def _text(text: str) -> str | None:
    text = _ESCAPE.sub(lambda found: chr(int(found[1], 16)), text) if "_x" in text else text
    if limits.CELL_LENGTH in {len(text), limits.cell_length(text)}:
        raise CellError(
            f"holds {limits.CELL_LENGTH:,} characters, the most that a spreadsheet keeps: the text was "
            "most likely cut; give such rows as JSON lines or CSV"
        )
    if len(text) > limits.TEXT:
        raise CellError(f"holds more than {limits.TEXT:,} characters; give such rows as JSON lines")
    return plain_cell(text) or None


def _moment(moment: object) -> str:
    """A day, a time, both or a duration, as ISO writes them but for the blank between."""
    if isinstance(moment, dt.datetime) and moment.time() == dt.time():
        moment = moment.date()
    return str(moment)
