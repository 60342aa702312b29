r"""Lines of a dump, plain or compressed, with nothing lost unseen.

    reader = LineReader(path)
    for line in reader:        # bytes without the "\n"; None for a line over the limit
        ...
    reader.damage              # why the file could not be read to its end, or None
    reader.unterminated        # whether its last line lacks the "\n"

How a file is compressed is seen from its first bytes: zstd (windows up to 2^31 bytes, any number
of frames), gzip, xz, bzip2 (several streams, too), or plain. Lines end at ``\n`` and nowhere else:
U+2028 and U+0085 stand inside values. A file that was cut off is damaged, whatever it still gave.
What a line holds is not known here.
"""

from __future__ import annotations

import bz2
import lzma
import re
import zlib
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import BinaryIO, Protocol

import zstandard

MAX_LINE = 8 * 2**20  # bytes; the longest posts take some hundred thousand
MAX_WINDOW = 2**31
_CHUNK = 2**20
_PIECE = 2**13  # compressed bytes at a time: what they expand to is held in memory
_SUFFIXES = {".zst": "zstd", ".gz": "gzip", ".xz": "xz", ".bz2": "bzip2"}
_STARTS = {
    "zstd": re.compile(rb"\x28\xb5\x2f\xfd|[\x50-\x5f]\x2a\x4d\x18"),
    "gzip": re.compile(rb"\x1f\x8b"),
    "xz": re.compile(rb"\xfd7zXZ\x00"),
    "bzip2": re.compile(rb"BZh"),
}


class _Decoder(Protocol):
    @property
    def eof(self) -> bool: ...

    @property
    def unused_data(self) -> bytes: ...

    def decompress(self, data: bytes, /) -> bytes: ...


class LineReader:
    """Iterates over the lines of one file, once; the attributes are final afterwards."""

    def __init__(self, path: Path, max_line: int = MAX_LINE) -> None:
        self.path = path
        self.damage: str | None = None
        self.unterminated = False
        self._limit = max_line
        self._parts: list[bytes] = []
        self._size = 0

    def __iter__(self) -> Iterator[bytes | None]:
        try:
            for chunk in _chunks(self.path):
                yield from self._lines(chunk)
        except EOFError:
            self.damage = "the file is cut off: its compressed data has no end"
        except (OSError, zlib.error, lzma.LZMAError, zstandard.ZstdError) as error:
            self.damage = f"cannot be read to its end: {_reason(error)}"
        if self._size:
            self.unterminated = True
            yield self._taken()

    def _lines(self, chunk: bytes) -> Iterator[bytes | None]:
        first, *others = chunk.split(b"\n")
        self._add(first)
        for part in others:
            yield self._taken()
            self._add(part)

    def _add(self, part: bytes) -> None:
        self._size += len(part)
        if self._size <= self._limit:
            self._parts.append(part)
        else:
            self._parts.clear()

    def _taken(self) -> bytes | None:
        line = b"".join(self._parts) if self._size <= self._limit else None
        self._parts.clear()
        self._size = 0
        return line


def _reason(error: Exception) -> str:
    if isinstance(error, OSError) and error.strerror:
        return error.strerror
    return str(error) or type(error).__name__


def _chunks(path: Path) -> Iterator[bytes]:
    with path.open("rb") as file:
        start = file.peek(8)
        form = next((form for form, seen in _STARTS.items() if seen.match(start)), None)
        if form is None and path.suffix in _SUFFIXES:
            raise OSError(f"it does not begin as {_SUFFIXES[path.suffix]} data does")
        source = _pieces(file, _CHUNK) if form is None else _decoded(file, _decoders(form))
        for data in source:
            for i in range(0, len(data), _CHUNK):
                yield data[i : i + _CHUNK]


def _pieces(file: BinaryIO, size: int) -> Iterator[bytes]:
    while piece := file.read(size):
        yield piece


def _decoders(form: str) -> Callable[[], _Decoder]:
    makers: dict[str, Callable[[], _Decoder]] = {
        "zstd": zstandard.ZstdDecompressor(max_window_size=MAX_WINDOW).decompressobj,
        "gzip": lambda: zlib.decompressobj(wbits=31),
        "xz": lzma.LZMADecompressor,
        "bzip2": bz2.BZ2Decompressor,
    }
    return makers[form]


def _decoded(file: BinaryIO, new: Callable[[], _Decoder]) -> Iterable[bytes]:
    """What a file expands to, frame by frame; EOFError when the last one has no end."""
    decoder: _Decoder | None = None
    for piece in _pieces(file, _PIECE):
        data = piece
        while data:
            if decoder is None:
                data = data.lstrip(b"\0")  # padding between frames
                if not data:
                    break
                decoder = new()
            yield decoder.decompress(data)
            data = decoder.unused_data if decoder.eof else b""
            if decoder.eof:
                decoder = None
    if decoder is not None:
        raise EOFError
