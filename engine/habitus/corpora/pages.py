"""How many rows of a Parquet file may be read at once, told before any of it is unpacked.

    rows = rows_at_once(path, file, ["id", "body"], Expansion(path))

A text stands once in a dictionary and is named by any number of rows, so that a megabyte can become
gigabytes when rows are taken out. The size of a dictionary is in the header in front of it; from it
follows how many rows make a batch. What the file says of its rows and sizes is held against the
expansion that it may have, and a file that says too little is stopped while it is read.

Not bounded here: the page of a file that lies about its sizes is unpacked whole, up to 2 GiB.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from pathlib import Path
from typing import Any, BinaryIO

from habitus.expansion import ROW, Expansion

MOST_ROWS = 4096
#: Bytes of texts in a batch, if every row names the longest text of its dictionary.
MOST_BYTES = 2**27
_DICTIONARY = 2  # the kind of such a page
_HEADER = 32  # bytes: a kind and two sizes, each a mark and a number of at most five
_NUMBER = 0x15  # the next field is a number of 32 bits


def rows_at_once(path: Path, file: Any, columns: Collection[str], expansion: Expansion) -> int:
    """The rows of a batch of some columns.

    Args:
        path: the file.
        file: the same, opened by pyarrow.
        columns: names of what is to be read.
        expansion: of this file; nothing is counted yet.

    Raises:
        UsageError: what the file says it holds is more than it may expand to.
    """
    about = file.metadata
    claimed = longest = 0
    with path.open("rb") as source:
        for index in range(about.num_row_groups):
            group = about.row_group(index)
            claimed += ROW * max(0, group.num_rows)
            dictionaries = 0
            for chunk in _chunks(group, columns):
                claimed += max(0, chunk.total_uncompressed_size)
                dictionaries += _dictionary_size(source, chunk)
            longest = max(longest, dictionaries)
            expansion.check(claimed)
    return max(1, min(MOST_ROWS, MOST_BYTES // max(1, longest)))


def _chunks(group: Any, columns: Collection[str]) -> Iterator[Any]:
    for index in range(group.num_columns):
        chunk = group.column(index)
        if chunk.path_in_schema.partition(".")[0] in columns or chunk.path_in_schema in columns:
            yield chunk


def _dictionary_size(source: BinaryIO, chunk: Any) -> int:
    """Bytes of the dictionary that a column of a row group begins with; 0 where there is none."""
    start = chunk.data_page_offset
    if chunk.has_dictionary_page and chunk.dictionary_page_offset:
        start = min(start, chunk.dictionary_page_offset)
    if start < 0:
        return 0
    source.seek(start)
    header = _numbers(source.read(_HEADER))
    return header[1] if len(header) == 3 and header[0] == _DICTIONARY else 0


def _numbers(header: bytes) -> list[int]:
    """The first three fields of a page's header, as Thrift packs them: kind, size, size when packed."""
    found: list[int] = []
    at = 0
    while len(found) < 3 and at < len(header) and header[at] == _NUMBER:
        value = shift = 0
        for byte in header[at + 1 :]:
            at += 1
            value |= (byte & 0x7F) << shift
            shift += 7
            if byte < 0x80:
                break
        at += 1
        found.append((value >> 1) ^ -(value & 1))
    return found
