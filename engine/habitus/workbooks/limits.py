"""Limits: of the format, which spreadsheets keep to, and of what is read from strangers."""

from __future__ import annotations

from habitus.errors import UsageError

#: What a cell may hold.
Value = str | int | float | bool | None

#: Rows and columns of a sheet.
ROWS = 2**20
COLUMNS = 2**14
#: Characters of a cell, as UTF-16 counts them. Longer texts are cut by spreadsheets, so that a text of
#: just this length was most likely cut; none is written.
CELL_LENGTH = 32_767
#: Characters of a cell that are read: other programs than spreadsheets write more.
TEXT = 2**20

#: Parts of a file.
ENTRIES = 10_000
#: Bytes of memory for all texts that cells share.
SHARED = 2**28
#: Bytes of XML that are held at once: of a part that is read whole, and of the others from the end of
#: one row or shared text to that of the next. In memory they are up to a hundred times that.
PART = 2**22
HELD = 2**22
#: Tags within each other, and names, which a parser of XML never forgets.
DEPTH = 100
NAMES = 2**14


def cell_length(text: str) -> int:
    """The length of a text as a spreadsheet counts it."""
    if text.isascii():
        return len(text)
    return len(text.encode("utf-16-le", "surrogatepass")) // 2


def missing(package: str) -> UsageError:
    """The error where a library is not installed that reads or writes workbooks."""
    return UsageError(f'workbooks need {package}: pip install "habitus[sheets]"')
