"""The archive of a workbook as openpyxl may see it: from a stranger, and no more of it than fits.

    with open_parts(path) as parts:
        parts.read("xl/workbook.xml")                              # whole, and therefore small
        parts.open("xl/worksheets/sheet1.xml", dropped=ROW_TAG)    # row by row

openpyxl takes whatever a file holds, and a small file may hold gigabytes. So each part that it asks for
is counted by what really comes out, since the list of parts may lie; and a second parser, which keeps
nothing, goes ahead of openpyxl's and stops before that one would hold too much. Nothing is unpacked
to disk. What the parts say is not known here.
"""

from __future__ import annotations

import io
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO, NoReturn
from xml.parsers import expat

from habitus.errors import UsageError
from habitus.expansion import Expansion
from habitus.workbooks import limits

_OLD = b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1"  # OLE2: Excel 97, or a container of an encrypted file
_PACKINGS = {zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED}


class Parts(zipfile.ZipFile):
    """The open archive.

    Raises:
        UsageError: it is no workbook that can be read, with what to do. Damage is of any kind.
    """

    def __init__(self, path: Path, file: BinaryIO) -> None:
        super().__init__(file)
        self.path, self.file, self.expansion = path, file, Expansion(path)
        entries = self.infolist()
        if len(entries) > limits.ENTRIES:
            raise UsageError(
                f"{path} has more than {limits.ENTRIES:,} parts, which no workbook of rows has; give "
                "the rows as JSON lines or CSV"
            )
        if len(set(self.namelist())) < len(entries):
            raise ValueError("two parts have one name")
        if any(entry.flag_bits & 1 for entry in entries):
            raise _locked(path)
        if not {entry.compress_type for entry in entries} <= _PACKINGS:  # others have no bound
            raise ValueError("it is packed in a way that workbooks are not")

    def open(self, name: str, *_: object, dropped: str = "") -> Part:  # type: ignore[override]
        """A part as it is read; whoever reads it drops all that ended when a tag ``dropped`` ends."""
        return Part(self, name, dropped)


class Part(io.RawIOBase):
    """A part that is being read, as parsers read files."""

    def __init__(self, parts: Parts, name: str, dropped: str) -> None:
        self._path, self._name, self._expansion = parts.path, name, parts.expansion
        self._file = zipfile.ZipFile.open(parts, name)
        self._dropped = dropped.strip("{").replace("}", " ")
        self._limit = limits.HELD if dropped else limits.PART
        self._fed = self._let_go = self._depth = 0
        self._parser = expat.ParserCreate(namespace_separator=" ")
        self._parser.StartElementHandler = self._start
        self._parser.EndElementHandler = self._end
        self._parser.StartNamespaceDeclHandler = lambda *_: None  # so that its names are counted
        self._parser.StartDoctypeDeclHandler = _refuse

    def read(self, size: int = -1) -> bytes:
        """The next piece.

        Raises:
            UsageError: it expands to more than is read.
            ValueError: XML that no workbook holds. Other damage is of any kind.
        """
        if size < 0:
            return self.readall()
        piece = self._file.read(size)
        self._expansion.add(len(piece))
        self._fed += len(piece)
        self._parser.Parse(piece, not piece)
        if self._fed - self._let_go > self._limit:
            raise UsageError(
                f"{self._path}: {self._name} in it holds more than {self._limit:,} bytes at one place, "
                "which is more than is read; give the rows as JSON lines or CSV"
            )
        if len(self._parser.intern) > limits.NAMES:
            raise ValueError(f"{self._name} has more than {limits.NAMES:,} names")
        return piece

    def _start(self, *_: object) -> None:
        self._depth += 1
        if self._depth > limits.DEPTH:
            raise ValueError(f"more than {limits.DEPTH} elements stand in each other")

    def _end(self, name: str) -> None:
        self._depth -= 1
        if name == self._dropped:
            self._let_go = self._parser.CurrentByteIndex


@contextmanager
def open_parts(path: Path) -> Iterator[Parts]:
    """The parts of a file. Damage is one error, of whatever kind it is, as long as they are open.

    openpyxl, zipfile and expat raise nearly all there is for a damaged file: a list of kinds would
    always lack one, and someone would get a traceback for a file.

    Raises:
        UsageError: it is no workbook that can be read, with what to do.
    """
    _check_start(path)
    try:
        with path.open("rb") as file, Parts(path, file) as parts:
            yield parts
    except UsageError:
        raise
    except Exception as error:
        kind = "" if isinstance(error, ValueError) else f"{type(error).__name__}: "
        reason = (str(error).splitlines() or [""])[0][:200]
        what = f"{kind}{reason}; open it and save it again as .xlsx"
        raise UsageError(f"{path} is damaged: {what}") from None


def _refuse(*_: object) -> NoReturn:
    # It would bring entities that expand, files that are fetched, and attributes for each element.
    raise ValueError("it declares a document type, as no workbook does")


def _locked(path: Path) -> UsageError:
    return UsageError(
        f"{path} is protected by a password, or in the form of Excel 97: open it in a spreadsheet "
        "program and save it as .xlsx without a password"
    )


def _check_start(path: Path) -> None:
    try:
        with path.open("rb") as file:
            start = file.read(8)
    except OSError as error:
        raise UsageError(f"{path} cannot be read: {error.strerror}") from None
    if start == _OLD:
        raise _locked(path)
    if start[:2] != b"PK":
        raise UsageError(
            f"{path} is no workbook, whatever its name says: save it as .xlsx in a spreadsheet "
            "program, or name it by what it is (.csv, .jsonl)"
        )
