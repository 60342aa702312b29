"""A table as a workbook: one sheet, row after row, the first one bold and always in sight.

    with WorkbookWriter(path) as book:
        book.write(["id", "title", "score"])
        book.write(["a1", "'=1+1", 0.5])

XlsxWriter writes it. Every text is a text to whatever opens the file: it stands in the cell itself as a string and never as a
formula. Texts are written as they are given; what would run once the sheet is saved as CSV is made
safe by the caller (``habitus.cells``). Equal rows give equal bytes: nothing of when or where is in it.
"""

from __future__ import annotations

import datetime as dt
import math
import re
import traceback
import zipfile
from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path
from tempfile import TemporaryDirectory
from types import TracebackType
from typing import Any

from habitus.errors import UsageError
from habitus.workbooks.limits import CELL_LENGTH, COLUMNS, ROWS, cell_length, missing

_INSTEAD = "use another format than xlsx"
_EPOCH = dt.datetime(1980, 1, 1)
#: What XML cannot hold, or would change, and what reads like the escape of it.
_ESCAPED = re.compile("[\x00-\x08\x0b-\x1f\ufffe\uffff]|_(?=x[0-9A-Fa-f]{4}_)|\\A<(?=r>)")


class WorkbookWriter:
    """Writes one sheet; the file is whole when the block ends.

    Raises:
        OSError: on entering, writing or leaving, if the file cannot be written.
        UsageError: on entering, if XlsxWriter is missing; on leaving, if it would be too large.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self.rows = 0

    def __enter__(self) -> WorkbookWriter:
        try:
            from xlsxwriter import Workbook  # noqa: PLC0415  (an extra, and heavy)
        except ImportError:
            raise missing("XlsxWriter") from None
        with ExitStack() as stack:
            folder = stack.enter_context(TemporaryDirectory(prefix="habitus-"))
            file = stack.enter_context(self.path.open("wb"))
            self._book = Workbook(file, {"constant_memory": True, "tmpdir": folder})
            self._held = stack.pop_all()
        self._book.set_properties({"created": _EPOCH})
        self._sheet: Any = self._book.add_worksheet(worksheet_class=_sheet_class())
        self._sheet.freeze_panes(1, 0)
        self._bold = self._book.add_format({"bold": True})
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
        for cell in cells:
            _check(cell)
        style = None if self.rows else self._bold
        for column, cell in enumerate(cells):
            if isinstance(cell, str):
                self._sheet.write_string(self.rows, column, _utf8(cell), style)
            elif cell is not None:
                self._sheet.write_number(self.rows, column, _Exact(cell), style)
        self.rows += 1

    def close(self) -> None:
        """Write what is left, and close the file; nothing the second time."""
        from xlsxwriter.exceptions import FileCreateError, FileSizeError  # noqa: PLC0415

        with self._held.pop_all() as held:
            if not held:
                return
            try:
                self._book.close()
            except (FileCreateError, FileSizeError) as error:
                _let_go(error.__context__)
                if isinstance(error, FileCreateError):
                    raise error.args[0] from None
                what = f"{self.path.name} would hold more than 2 GiB of cells: {_INSTEAD}"
                raise UsageError(what) from None


def check_size(rows: int, columns: int) -> None:
    """Refuse a table that is larger than a sheet; ``rows`` count the heading.

    Raises:
        UsageError: more rows or columns than a sheet has.
    """
    if rows > ROWS:
        raise UsageError(f"a sheet holds {ROWS:,} rows with its heading: {_INSTEAD}")
    if columns > COLUMNS:
        raise UsageError(f"a sheet holds {COLUMNS:,} columns: {_INSTEAD}")


def _sheet_class() -> Any:
    from xlsxwriter.worksheet import Worksheet  # noqa: PLC0415

    class Sheet(Worksheet):  # type: ignore[misc]
        """XlsxWriter's, but that every text comes back: the one place that all texts pass.

        Its own escapes miss one that overlaps another, and it takes a text between ``<r>`` and
        ``</r>`` for XML that is made already.
        """

        _escape_control_characters = staticmethod(_escaped)

    return Sheet


class _Exact(float):
    """A number that is written with all of its digits, where XlsxWriter asks for 16."""

    def __format__(self, _: str) -> str:
        return repr(float(self)).removesuffix(".0")


def _let_go(error: BaseException | None) -> None:
    """End an archive that failed: it would go on to write, and to complain, when it is dropped."""
    for frame, _ in traceback.walk_tb(error.__traceback__ if error else None):
        for value in frame.f_locals.values():
            if isinstance(value, zipfile.ZipFile):
                value.fp = None


def _escaped(text: str) -> str:
    return _ESCAPED.sub(lambda found: f"_x{ord(found[0]):04X}_", text)


def _utf8(text: str) -> str:
    """A text with escapes for lone surrogates, which UTF-8 cannot hold."""
    return text.encode("utf-8", "backslashreplace").decode()


def _check(cell: str | float | None) -> None:
    if isinstance(cell, str):
        length = cell_length(cell)
        if length >= CELL_LENGTH:
            raise UsageError(
                f"a cell of a workbook holds fewer than {CELL_LENGTH:,} characters, and {cell[:40]!r}... "
                f"has {length:,}; nothing is cut: {_INSTEAD}"
            )
    elif cell is not None and not math.isfinite(cell):
        raise ValueError(f"{cell} is no number that a cell can hold")
