"""A table as a workbook: one sheet, row after row, the first one bold and always in sight.

    with WorkbookWriter(path) as book:
        book.write(["id", "title", "score"])
        book.write(["a1", "'=1+1", 0.5])

Every text is a text to whatever opens the file: it stands in the cell itself as a string and never as a
formula. Texts are written as they are given; what would run once the sheet is saved as CSV is made
safe by the caller (``habitus.cells``). Equal rows give equal bytes: nothing of when or where is in it.
"""

from __future__ import annotations

import math
import re
import zipfile
from collections.abc import Sequence
from pathlib import Path
from types import TracebackType
from typing import IO
from xml.sax.saxutils import escape

from habitus.errors import UsageError
from habitus.workbooks.limits import CELL_LENGTH, COLUMNS, ROWS, cell_length, letters_of

_INSTEAD = "use another format than xlsx"
_LARGEST = (
    2**31 - 2**16
)  # bytes of a sheet; beyond, archives take a form that not all programs read
_BUFFER = 2**18
_EPOCH = (1980, 1, 1, 0, 0, 0)
#: What XML cannot hold, or would change, and what reads like the escape of it.
_ESCAPED = re.compile("[\x00-\x08\x0b-\x1f\ufffe\uffff]|_(?=x[0-9A-Fa-f]{4}_)")
_HEAD = '<?xml version="1.0" encoding="UTF-8" standalone="yes"?>\n'
_MAIN = "http://schemas.openxmlformats.org/spreadsheetml/2006/main"
_OFFICE = "http://schemas.openxmlformats.org/officeDocument/2006/relationships"
_PACKAGE = "http://schemas.openxmlformats.org/package/2006"
_TYPE = "application/vnd.openxmlformats-officedocument.spreadsheetml"
_FILES = {
    "[Content_Types].xml": f'<Types xmlns="{_PACKAGE}/content-types"><Default Extension="rels" '
    'ContentType="application/vnd.openxmlformats-package.relationships+xml"/><Default Extension="xml" '
    'ContentType="application/xml"/><Override PartName="/xl/workbook.xml" '
    f'ContentType="{_TYPE}.sheet.main+xml"/><Override PartName="/xl/worksheets/sheet1.xml" '
    f'ContentType="{_TYPE}.worksheet+xml"/><Override PartName="/xl/styles.xml" '
    f'ContentType="{_TYPE}.styles+xml"/></Types>',
    "_rels/.rels": f'<Relationships xmlns="{_PACKAGE}/relationships"><Relationship Id="rId1" '
    f'Type="{_OFFICE}/officeDocument" Target="xl/workbook.xml"/></Relationships>',
    "xl/_rels/workbook.xml.rels": f'<Relationships xmlns="{_PACKAGE}/relationships"><Relationship '
    f'Id="rId1" Type="{_OFFICE}/worksheet" Target="worksheets/sheet1.xml"/><Relationship Id="rId2" '
    f'Type="{_OFFICE}/styles" Target="styles.xml"/></Relationships>',
    "xl/workbook.xml": f'<workbook xmlns="{_MAIN}" xmlns:r="{_OFFICE}"><sheets><sheet name="Sheet1" '
    'sheetId="1" r:id="rId1"/></sheets></workbook>',
    "xl/styles.xml": f'<styleSheet xmlns="{_MAIN}"><fonts count="2"><font><sz val="11"/><name '
    'val="Calibri"/></font><font><b/><sz val="11"/><name val="Calibri"/></font></fonts><fills '
    'count="2"><fill><patternFill patternType="none"/></fill><fill><patternFill '
    'patternType="gray125"/></fill></fills><borders count="1"><border/></borders><cellStyleXfs '
    'count="1"><xf/></cellStyleXfs><cellXfs count="2"><xf xfId="0"/><xf fontId="1" applyFont="1" '
    'xfId="0"/></cellXfs><cellStyles count="1"><cellStyle name="Normal" xfId="0" '
    'builtinId="0"/></cellStyles></styleSheet>',
}  # fmt: skip
_BEGIN = (
    f'<worksheet xmlns="{_MAIN}"><sheetViews><sheetView workbookViewId="0"><pane ySplit="1" '
    'topLeftCell="A2" activePane="bottomLeft" state="frozen"/></sheetView></sheetViews><sheetData>'
)
_END = "</sheetData></worksheet>"


class WorkbookWriter:
    """Writes one sheet; the file is whole when the block ends.

    Raises:
        OSError: on entering, writing or leaving, if the file cannot be written.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self.rows = 0
        self._size = 0
        self._waiting: list[str] = []
        self._length = 0

    def __enter__(self) -> WorkbookWriter:
        self._zip = zipfile.ZipFile(self.path, "w")
        for name, text in _FILES.items():
            self._zip.writestr(_entry(name), _HEAD + text)
        self._sheet: IO[bytes] = self._zip.open(_entry("xl/worksheets/sheet1.xml"), "w")
        self._put(_HEAD + _BEGIN)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, _: TracebackType | None
    ) -> None:
        self.close()

    def write(self, cells: Sequence[str | float | None]) -> None:
        """Add a row; the first one is the heading. None is an empty cell.

        Raises:
            UsageError: more than a sheet holds: rows, columns, or characters of a cell.
            ValueError: a number that is none.
        """
        check_size(self.rows + 1, len(cells))
        style = "" if self.rows else ' s="1"'
        self.rows += 1
        row = "".join(
            _cell(f'r="{letters_of(column)}{self.rows}"{style}', cell)
            for column, cell in enumerate(cells, start=1)
        )
        self._put(f'<row r="{self.rows}">{row}</row>')

    def close(self) -> None:
        """Write what is left, and close the file; nothing the second time."""
        if self._sheet.closed:
            return
        try:
            self._put(_END)
            self._flush()
        finally:
            try:
                self._sheet.close()
            finally:
                self._zip.close()

    def _put(self, text: str) -> None:
        self._waiting.append(text)
        self._length += len(text)
        if self._length >= _BUFFER:
            self._flush()

    def _flush(self) -> None:
        data = "".join(self._waiting).encode("utf-8", "backslashreplace")
        self._waiting.clear()
        self._length = 0
        self._size += len(data)
        if self._size > _LARGEST:
            raise UsageError(f"{self.path.name} would hold more than 2 GiB of cells: {_INSTEAD}")
        self._sheet.write(data)


def check_size(rows: int, columns: int) -> None:
    """Refuse a table that is larger than a sheet; ``rows`` count the heading.

    Raises:
        UsageError: more rows or columns than a sheet has.
    """
    if rows > ROWS:
        raise UsageError(f"a sheet holds {ROWS:,} rows with its heading: {_INSTEAD}")
    if columns > COLUMNS:
        raise UsageError(f"a sheet holds {COLUMNS:,} columns: {_INSTEAD}")


def _entry(name: str) -> zipfile.ZipInfo:
    entry = zipfile.ZipInfo(name, _EPOCH)
    entry.compress_type = zipfile.ZIP_DEFLATED
    entry.create_system = 0  # the same wherever it is written
    return entry


def _cell(about: str, value: str | float | None) -> str:
    if value is None:
        return ""
    if isinstance(value, str):
        text = _xml(value)
        return f'<c {about} t="inlineStr"><is><t xml:space="preserve">{text}</t></is></c>'
    if not math.isfinite(value):
        raise ValueError(f"{value} is no number that a cell can hold")
    return f"<c {about}><v>{value!r}</v></c>"


def _xml(text: str) -> str:
    """A text as XML holds it; lone surrogates become escapes where it is encoded."""
    length = cell_length(text)
    if length >= CELL_LENGTH:
        raise UsageError(
            f"a cell of a workbook holds fewer than {CELL_LENGTH:,} characters, and {text[:40]!r}... "
            f"has {length:,}; nothing is cut: {_INSTEAD}"
        )
    return escape(_ESCAPED.sub(lambda found: f"_x{ord(found[0]):04X}_", text))
