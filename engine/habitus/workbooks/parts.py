"""The parts of a workbook: a zip archive of XML files, read from strangers.

    with Parts(path) as parts:
        parts.parse("xl/workbook.xml", starts, limit=PART)

Nothing is ever unpacked to disk, so names that lead out of a folder lead nowhere, and entries that
lie over each other gain nothing: a few parts are read, and each counts with all that it expands to.
The list of entries may lie: how much really comes out is counted while it does. A part with a
document type is refused before anything in it is expanded or fetched, since workbooks have none.

What the parts say is not known here.
"""

from __future__ import annotations

import struct
import zipfile
import zlib
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from types import TracebackType
from typing import BinaryIO
from xml.parsers import expat

from habitus.errors import UsageError
from habitus.expansion import Expansion
from habitus.workbooks import limits

_CHUNK = 2**16
_OLD = b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1"  # OLE2: Excel 97, or a container of an encrypted file
_DAMAGE = (
    zipfile.BadZipFile, zlib.error, expat.ExpatError, struct.error, OSError, EOFError, ValueError,
    LookupError, NotImplementedError, RuntimeError,
)  # fmt: skip
_PACKINGS = {zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED}

Attributes = Mapping[str, str]
Start = Callable[[str, Attributes], None]


class Parts:
    """The open archive.

    Raises:
        UsageError: on entering, if it is no workbook that can be read, with what to do.
    """

    def __init__(self, path: Path) -> None:
        self.path = path

    def __enter__(self) -> Parts:
        try:
            self._file = self.path.open("rb")
        except OSError as error:
            raise UsageError(f"{self.path} cannot be read: {error.strerror}") from None
        try:
            self._open()
        except BaseException:
            self._file.close()
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, _: TracebackType | None
    ) -> None:
        self._zip.close()
        self._file.close()

    def __contains__(self, name: str) -> bool:
        return name.lower() in self._entries

    def fault(self, what: object) -> UsageError:
        """The error for a file that does not say what a workbook says."""
        return UsageError(f"{self.path} is damaged: {what}; open it and save it again as .xlsx")

    def chunks(self, name: str, limit: int | None = None) -> Iterator[bytes]:
        """The bytes of a part, piece by piece; at most ``limit``, and none of a part that is missing.

        Raises:
            UsageError: damaged, or more than may be.
        """
        entry = self._entries.get(name.lower())
        if entry is None:
            return
        size = 0
        try:
            with self._zip.open(entry) as file:
                while chunk := file.read(_CHUNK):
                    size += len(chunk)
                    self.expansion.add(len(chunk))
                    if limit is not None and size > limit:
                        raise UsageError(
                            f"{self.path}: {name} in it holds more than {limit:,} bytes, which is more "
                            "than is read; give the rows as JSON lines or CSV"
                        )
                    yield chunk
        except _DAMAGE as error:
            raise self.fault(f"{name} cannot be unpacked ({_reason(error)})") from None

    def parse(self, name: str, parser: XmlParser, limit: int | None = None) -> Iterator[None]:
        """Parse a part; yields after each piece, for what the parser has gathered to be taken.

        Raises:
            UsageError: damaged, more than may be, or with a document type.
        """
        fed = 0
        for chunk in self.chunks(name, limit):
            fed += len(chunk)
            self._feed(name, parser, chunk, fed)
            yield
        if fed:
            self._feed(name, parser, b"", fed)
            yield

    def _feed(self, name: str, parser: XmlParser, chunk: bytes, fed: int) -> None:
        try:
            parser.feed(chunk)
        except _DAMAGE as error:
            raise self.fault(f"{name} is no XML ({_reason(error)})") from None
        if fed - parser.position > limits.TAG and chunk:
            raise self.fault(f"{name} has a tag of more than {limits.TAG:,} bytes")
        if parser.names > limits.NAMES:
            raise self.fault(f"{name} has more than {limits.NAMES:,} names of elements")

    def _open(self) -> None:
        _check_start(self.path, self._file.read(8))
        try:
            listed = _directory_size(self._file)
            if listed > limits.DIRECTORY:
                raise self._crowded()
            self._zip = zipfile.ZipFile(self._file)
        except _DAMAGE as error:
            raise self.fault(f"its list of parts cannot be read ({_reason(error)})") from None
        self.expansion = Expansion(self.path)
        entries = self._zip.infolist()
        if len(entries) > limits.ENTRIES:
            raise self._crowded()
        self._entries = {entry.filename.lower(): entry for entry in entries}
        if len(self._entries) < len(entries):
            raise self.fault("two parts have one name")
        for entry in entries:
            if entry.flag_bits & 1:
                raise _locked(self.path)
            if entry.compress_type not in _PACKINGS:  # others unpack without a bound on memory
                raise self.fault("it is packed in a way that workbooks are not")

    def _crowded(self) -> UsageError:
        return UsageError(
            f"{self.path} has more than {limits.ENTRIES:,} parts, which no workbook of rows has; "
            "give the rows as JSON lines or CSV"
        )


class XmlParser:
    """XML as starts, ends and text; names without their namespaces, no document type."""

    def __init__(self) -> None:
        self._inner = expat.ParserCreate(namespace_separator=" ")
        self._inner.buffer_text = True
        self._inner.StartElementHandler = self._started
        self._inner.EndElementHandler = self._ended
        self._inner.CharacterDataHandler = self.text
        self._inner.StartDoctypeDeclHandler = _refuse
        self._depth = 0

    @property
    def position(self) -> int:
        """Bytes that were read up to the element at hand."""
        return self._inner.CurrentByteIndex

    @property
    def names(self) -> int:
        """How many names the parser remembers: of elements and attributes."""
        return len(self._inner.intern)

    def feed(self, chunk: bytes) -> None:
        """Parse some bytes; none is the end."""
        self._inner.Parse(chunk, not chunk)

    def start(self, name: str, attributes: Attributes) -> None:
        """An element begins."""

    def end(self, name: str) -> None:
        """An element ends."""

    def text(self, text: str) -> None:
        """Some text, not always all of it."""

    def _started(self, name: str, attributes: dict[str, str]) -> None:
        self._depth += 1
        if self._depth > limits.DEPTH:
            raise ValueError(f"more than {limits.DEPTH} elements stand in each other")
        self.start(name.rpartition(" ")[2], attributes)

    def _ended(self, name: str) -> None:
        self._depth -= 1
        self.end(name.rpartition(" ")[2])


def named(attributes: Attributes, name: str) -> str:
    """An attribute by its name without a namespace; "" where there is none."""
    if name in attributes:
        return attributes[name]
    return next((v for k, v in attributes.items() if k.rpartition(" ")[2] == name), "")


def _refuse(*_: object) -> None:
    raise ValueError("it declares a document type, as no workbook does")


def _check_start(path: Path, start: bytes) -> None:
    if start == _OLD:
        raise _locked(path)
    if start[:2] != b"PK":
        raise UsageError(
            f"{path} is no workbook, whatever its name says: save it as .xlsx in a spreadsheet "
            "program, or name it by what it is (.csv, .jsonl)"
        )


def _locked(path: Path) -> UsageError:
    return UsageError(
        f"{path} is protected by a password, or in the form of Excel 97: open it in a spreadsheet "
        "program and save it as .xlsx without a password"
    )


def _directory_size(file: BinaryIO) -> int:
    """Bytes of the list of entries, which would be read whole; the largest that the file states."""
    end = file.seek(0, 2)
    file.seek(max(0, end - 2**16 - 128))
    tail = file.read()
    file.seek(0)
    sizes = [0]
    for mark, at, form in ((b"PK\5\6", 12, "<I"), (b"PK\6\6", 40, "<Q")):
        found = tail.find(mark)
        while found >= 0:
            if found + at + struct.calcsize(form) <= len(tail):
                (size,) = struct.unpack_from(form, tail, found + at)
                sizes.append(size if size != 2**32 - 1 else 0)
            found = tail.find(mark, found + 1)
    return max(sizes)


def _reason(error: BaseException) -> str:
    return (str(error).splitlines() or [""])[0][:200] or type(error).__name__
