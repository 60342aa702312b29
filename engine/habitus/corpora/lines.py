r"""Lines of a dump, plain or compressed, with nothing lost unseen.

    reader = LineReader(path)
    for line in reader:        # bytes without the "\n"; None for a line over the limit
        ...
    reader.damage              # why the file could not be read to its end, or None
    reader.unterminated        # whether its last line lacks the "\n"

How a file is compressed is seen from its first bytes: zstd (windows up to 2^31 bytes, any number
of frames), gzip, xz, bzip2 (several streams, too), or plain. Lines end at ``\n`` and nowhere else:
U+2028 and U+0085 stand inside values. A file that was cut off is damaged, whatever it still gave.

Memory holds a piece of what comes out (a megabyte; of zstd, whose blocks are whole, 32 at worst), a line up
to its limit, and the window of the decoder. How much may come out of a file together is bounded by
``habitus.expansion``: beyond, iterating raises ``UsageError``. What a line holds is not known here.
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

from habitus.expansion import ROW, Expansion

MAX_LINE = 8 * 2**20  # bytes; the longest posts take some hundred thousand
MAX_WINDOW = 2**31
_CHUNK = 2**20
_PIECE = 2**13  # compressed bytes at a time
#: Bytes of zstd at a time: four can be a block of 128 KiB, and what they expand to comes at once.
_BLOCKS = 2**10
_XZ_MEMORY = MAX_WINDOW + 2**26
_SUFFIXES = {".zst": "zstd", ".gz": "gzip", ".xz": "xz", ".bz2": "bzip2"}
_STARTS = {
    "zstd": re.compile(rb"\x28\xb5\x2f\xfd|[\x50-\x5f]\x2a\x4d\x18"),
    "gzip": re.compile(rb"\x1f\x8b"),
    "xz": re.compile(rb"\xfd7zXZ\x00"),
    "bzip2": re.compile(rb"BZh"),
}


class _Decoder(Protocol):
    """What the decoders of bzip2 and xz are: at most ``max_length`` bytes come out at a time."""

    @property
    def eof(self) -> bool: ...

    @property
    def needs_input(self) -> bool: ...

    @property
    def unused_data(self) -> bytes: ...

    def decompress(self, data: bytes, max_length: int) -> bytes: ...


class _Gzip:
    """A decoder of one member."""

    def __init__(self) -> None:
        self._inner = zlib.decompressobj(wbits=31)
        self._waiting = b""

    @property
    def eof(self) -> bool:
        return self._inner.eof

    @property
    def needs_input(self) -> bool:
        return not self._waiting

    @property
    def unused_data(self) -> bytes:
        return self._inner.unused_data

    def decompress(self, data: bytes, max_length: int) -> bytes:
        out = self._inner.decompress(self._waiting + data, max_length)
        self._waiting = self._inner.unconsumed_tail
        return out


class _Zstd:
    """A decoder of one frame; a few blocks at a time, since it knows no limit of its own."""

    def __init__(self) -> None:
        self._inner = zstandard.ZstdDecompressor(max_window_size=MAX_WINDOW).decompressobj()
        self._waiting = b""

    @property
    def eof(self) -> bool:
        return self._inner.eof

    @property
    def needs_input(self) -> bool:
        return not self._waiting

    @property
    def unused_data(self) -> bytes:
        return self._inner.unused_data + self._waiting

    def decompress(self, data: bytes, max_length: int) -> bytes:  # noqa: ARG002  (a protocol)
        data = self._waiting + data
        self._waiting = data[_BLOCKS:]
        return self._inner.decompress(data[:_BLOCKS])


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
        if form is None:
            yield from _pieces(file, _CHUNK)
            return
        expansion = Expansion(path)
        for data in _decoded(file, _decoders(form)):
            expansion.add(len(data) + ROW * data.count(b"\n"))
            for i in range(0, len(data), _CHUNK):
                yield data[i : i + _CHUNK]


def _pieces(file: BinaryIO, size: int) -> Iterator[bytes]:
    while piece := file.read(size):
        yield piece


def _decoders(form: str) -> Callable[[], _Decoder]:
    makers: dict[str, Callable[[], _Decoder]] = {
        "zstd": _Zstd,
        "gzip": _Gzip,
        "xz": lambda: lzma.LZMADecompressor(memlimit=_XZ_MEMORY),
        "bzip2": bz2.BZ2Decompressor,
    }
    return makers[form]


def _decoded(file: BinaryIO, new: Callable[[], _Decoder]) -> Iterable[bytes]:
    """What a file expands to, frame by frame; EOFError when the last one has no end."""
    decoder: _Decoder | None = None
    for piece in _pieces(file, _PIECE):
        data = piece
        while data or (decoder and not decoder.needs_input):
            if decoder is None:
                data = data.lstrip(b"\0")  # padding between frames
                if not data:
                    break
                decoder = new()
            yield decoder.decompress(data, _CHUNK)
            data = b""
            if decoder.eof:
                data = decoder.unused_data
                decoder = None
    if decoder is not None:
        raise EOFError
