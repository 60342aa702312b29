"""Limits: of the format, which spreadsheets keep to, and of what is read from strangers; columns by name."""

from __future__ import annotations

from functools import lru_cache

#: Rows and columns of a sheet.
ROWS = 2**20
COLUMNS = 2**14
#: Characters of a cell, as UTF-16 counts them. Longer texts are cut by spreadsheets, so that a text of
#: just this length was most likely cut; none is written.
CELL_LENGTH = 32_767

#: Parts of a file, and bytes of their list.
ENTRIES = 10_000
DIRECTORY = 2**22
#: Bytes, expanded, of all texts that cells share, and of any other part but the sheet.
SHARED = 2**28
#: Texts that cells share; each takes some memory, however short.
SHARED_TEXTS = 2**22
PART = 2**24
#: Bytes of one tag, which the parser holds whole; tags within each other; names that it remembers.
TAG = 2**20
DEPTH = 100
NAMES = 2**14
#: Characters of a cell and of a row that are read: other programs than spreadsheets write more.
TEXT = 2**20
#: Characters of an escape: a text is counted before its escapes are read.
ESCAPED = 7
ROW = 2**25


def cell_length(text: str) -> int:
    """The length of a text as a spreadsheet counts it."""
    if text.isascii():
        return len(text)
    return len(text.encode("utf-16-le", "surrogatepass")) // 2


@lru_cache(COLUMNS)
def letters_of(column: int) -> str:
    """The letters of a column, counted from 1: ``A``, ``Z``, ``AA``."""
    letters = ""
    while column:
        column, rest = divmod(column - 1, 26)
        letters = chr(65 + rest) + letters
    return letters
