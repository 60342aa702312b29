"""How many rows of a Parquet file may be read at once, told before any of it is unpacked.

    rows = rows_at_once(path, file, ["id", "body"], Expansion(path))

A text stands once in a dictionary and is named by any number of rows, so that a megabyte can become
gigabytes when rows are taken out. The size of a dictionary is in the header in front of it; from it
follows how many rows make a batch. What the file says of its rows and sizes is held against the
expansion that it may have, and a file that says too little is stopped while it is read.

Not bounded here: the page of a file that lies about its sizes is unpacked whole, up to 2 GiB.
"""

from __future__ import annotations

from collections.abc import Collection
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
    wanted = [i for i, name in enumerate(_columns(file)) if name in columns]
    claimed = longest = 0
    with path.open("rb") as source:
        for index in range(about.num_row_groups):
            group = about.row_group(index)
            claimed += ROW * max(0, group.num_rows) + max(0, group.total_byte_size)
            expansion.check(claimed)
            _read_one(file, index, columns)
            chunks = map(group.column, wanted)
            dictionaries = sum(_dictionary_size(source, chunk) for chunk in chunks)
            longest = max(longest, dictionaries)
    return max(1, min(MOST_ROWS, MOST_BYTES // max(1, longest)))


def _columns(file: Any) -> list[str]:
    """The name of each column of values; those inside of others have the name of the outermost."""
    paths = [file.schema.column(index).path for index in range(len(file.schema))]
    names = set(file.schema_arrow.names)
    return [path if path in names else path.partition(".")[0] for path in paths]


def _read_one(file: Any, group: int, columns: Collection[str]) -> None:
    """Read a row of a group. Where what a group says of a column is damaged, that is an error.

    To ask the group for it would end the process: Arrow lets that exception of C++ through.
    """
    for _ in file.iter_batches(batch_size=1, row_groups=[group], columns=list(columns)):
        return


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
