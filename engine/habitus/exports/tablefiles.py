"""Tables of text as files, row by row: CSV or a workbook that no spreadsheet runs, or Parquet.

    with open_table(folder / "outsider.csv", ("id", "title"), Format.CSV) as table:
        table.write(("a1", "-5 degrees?"))

A file appears when the block ends well, or not at all. In CSV and in a workbook an undefined cell is
empty and text is made safe (``habitus.cells``), but for columns that are said to hold numbers; Parquet
holds texts as they are, and null. Lone surrogates, which UTF-8 cannot hold, become escapes.
"""

from __future__ import annotations

import contextlib
import csv
import os
from abc import ABC, abstractmethod
from array import array
from collections.abc import Collection, Sequence
from enum import StrEnum
from itertools import accumulate
from pathlib import Path
from types import TracebackType
from typing import Any

from habitus.cells import safe_cell
from habitus.errors import UsageError
from habitus.workbooks import WorkbookWriter, check_size

_ROWS = 1024
_CHARACTERS = 2**20
_EXACT = 10**15  # beyond, a spreadsheet does not keep every digit


class Format(StrEnum):
    """What a table is written as."""

    CSV = "csv"
    XLSX = "xlsx"
    PARQUET = "parquet"


class Table(ABC):
    """A table that is being written, beside the file it will be."""

    def __init__(self, path: Path, columns: Sequence[str]) -> None:
        self.path = path
        self.columns = tuple(columns)
        self.rows = 0
        self._aside = path.with_name(f".{path.name}.{os.getpid()}.part")

    def write(self, row: Sequence[str | None]) -> None:
        """Add a row: a text or None for each column.

        Raises:
            ValueError: not as many cells as columns.
        """
        if len(row) != len(self.columns):
            raise ValueError(f"{len(row)} cells for {len(self.columns)} columns")
        self._add(row)
        self.rows += 1

    def __enter__(self) -> Table:
        try:
            self._open()
        except OSError as error:
            self._remove()
            raise _unwritable(self.path, error) from None
        except UsageError:
            self._remove()
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, _: TracebackType | None
    ) -> None:
        try:
            try:
                if kind is None:
                    self._finish()
            finally:
                self._close()
            if kind is None:
                self._aside.replace(self.path)
        except OSError as fault:
            raise _unwritable(self.path, fault) from None
        finally:
            self._remove()

    def _remove(self) -> None:
        with contextlib.suppress(OSError):
            self._aside.unlink(missing_ok=True)

    @abstractmethod
    def _open(self) -> None: ...

    @abstractmethod
    def _add(self, row: Sequence[str | None]) -> None: ...

    @abstractmethod
    def _finish(self) -> None: ...

    @abstractmethod
    def _close(self) -> None: ...


class CsvTable(Table):
    """UTF-8, commas, a header; ``numeric`` columns are written as they are."""

    def __init__(self, path: Path, columns: Sequence[str], numeric: Collection[str] = ()) -> None:
        super().__init__(path, columns)
        self._numeric = [column in numeric for column in columns]

    def _open(self) -> None:
        self._file = self._aside.open("w", encoding="utf-8", errors="backslashreplace", newline="")
        self._writer = csv.writer(self._file)  # its \r\n also quotes cells with a lone \r
        self._writer.writerow(map(safe_cell, self.columns))

    def _add(self, row: Sequence[str | None]) -> None:
        cells = zip(row, self._numeric, strict=True)
        self._writer.writerow(
            cell if numeric or cell is None else safe_cell(cell) for cell, numeric in cells
        )

    def _finish(self) -> None:
        self._file.flush()

    def _close(self) -> None:
        self._file.close()


class WorkbookTable(Table):
    """One sheet; a text is a string in its cell, safe as in CSV, since a sheet may be saved as one.

    Cells of ``numeric`` columns are numbers where a spreadsheet shows them letter for letter.
    """

    def __init__(self, path: Path, columns: Sequence[str], numeric: Collection[str] = ()) -> None:
        super().__init__(path, columns)
        self._numeric = [column in numeric for column in columns]

    def _open(self) -> None:
        self._book = WorkbookWriter(self._aside).__enter__()
        try:
            self._book.write([safe_cell(column) for column in self.columns])
        except UsageError as error:
            self._book.close()
            raise UsageError(f"{self.path.name}, heading: {error}") from None

    def _add(self, row: Sequence[str | None]) -> None:
        cells = zip(row, self._numeric, strict=True)
        values = [
            None if cell is None else _number(cell) if numeric else safe_cell(cell)
            for cell, numeric in cells
        ]
        try:
            self._book.write(values)
        except UsageError as error:
            where = f"{self.path.name}, row {self.rows + 2} ({row[0]})"
            raise UsageError(f"{where}: {error}") from None

    def _finish(self) -> None:
        pass

    def _close(self) -> None:
        self._book.close()


class ParquetTable(Table):
    """One column of strings for each column, in row groups of about a megabyte."""

    def _open(self) -> None:
        try:
            import pyarrow as pa  # noqa: PLC0415  (an extra, and heavy)
            import pyarrow.parquet as pq  # noqa: PLC0415
        except ImportError:
            raise UsageError('Parquet needs pyarrow: pip install "habitus[corpora]"') from None
        self._arrow = pa
        self._schema = pa.schema([pa.field(_utf8(name), pa.string()) for name in self.columns])
        self._file = pq.ParquetWriter(self._aside, self._schema, compression="zstd")
        self._waiting: list[Sequence[str | None]] = []
        self._characters = 0

    def _add(self, row: Sequence[str | None]) -> None:
        self._waiting.append(row)
        self._characters += sum(map(len, filter(None, row)))
        if len(self._waiting) >= _ROWS or self._characters >= _CHARACTERS:
            self._finish()

    def _close(self) -> None:
        self._file.close()

    def _finish(self) -> None:
        if self._waiting:
            columns = [_strings(self._arrow, column) for column in zip(*self._waiting, strict=True)]
            batch = self._arrow.RecordBatch.from_arrays(columns, schema=self._schema)
            self._file.write_batch(batch)
        self._waiting.clear()
        self._characters = 0


def check_table(form: Format, rows: int, columns: int) -> None:
    """Refuse a table that does not go into a file of a form, before anything of it is written.

    Raises:
        UsageError: more rows, without the heading, or more columns than a sheet has.
    """
    if form is Format.XLSX:
        check_size(rows + 1, columns)


def open_table(
    path: Path, columns: Sequence[str], form: Format, numeric: Collection[str] = ()
) -> Table:
    """A table to be written; ``numeric`` names columns of which every cell is a number.

    Raises:
        UsageError: on entering, if the file cannot be written, or pyarrow is missing.
    """
    if form is Format.CSV:
        return CsvTable(path, columns, numeric)
    if form is Format.XLSX:
        return WorkbookTable(path, columns, numeric)
    return ParquetTable(path, columns)


def _number(text: str) -> str | float:
    """A number as one, if it reads the same again: no leading zero and no digit is lost."""
    for kind in (int, float):
        with contextlib.suppress(ValueError):
            number = kind(text)
            whole = kind is float and float(number).is_integer()  # 1.0 is shown as 1
            if str(number) == text and abs(number) < _EXACT and not whole:
                return number
    return text


def _strings(arrow: Any, values: Sequence[str | None]) -> Any:
    """Texts as a column, put together from its buffers: ``pyarrow.array`` would import pandas."""
    encoded = [
        b"" if value is None else value.encode("utf-8", "backslashreplace") for value in values
    ]
    known = bytearray(-(-len(values) // 8))  # one bit a value, the first one lowest
    for i, value in enumerate(values):
        known[i // 8] |= (value is not None) << i % 8
    ends = array("i", accumulate(map(len, encoded), initial=0))
    buffers = [bytes(known), ends, b"".join(encoded)]
    return arrow.Array.from_buffers(arrow.string(), len(values), [*map(arrow.py_buffer, buffers)])


def _utf8(text: str) -> str:
    return text.encode("utf-8", "backslashreplace").decode()


def _unwritable(path: Path, error: OSError) -> UsageError:
    return UsageError(f"{path} cannot be written: {error.strerror or type(error).__name__}")
