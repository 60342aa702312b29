r"""Text in the cells of a spreadsheet: never run as a formula, and never lost.

    safe_cell("=1+1")     # "'=1+1"
    safe_cell("-5 °C?")   # "'-5 °C?"
    safe_cell("rice")     # "rice"
    plain_cell("'=1+1")   # "=1+1"

Spreadsheets run a cell that begins with ``= + - @``, also behind blanks, characters that show
nothing, tabs and line breaks. An apostrophe in front makes it text. A text that has such an
apostrophe already gets another one, so that ``plain_cell(safe_cell(text)) == text`` for every text.

For text only: numbers are written as numbers and never come here. This module knows no file format.
"""

from __future__ import annotations

import re

#: Begins of formulas: ASCII, the forms that are as wide as ideographs, the small ones, and minus.
_BEGINS = "=+\\-@\uff1d\uff0b\uff0d\uff20\ufe66\ufe62\ufe63\ufe6b\u2212"
#: Controls and separators that a spreadsheet may act on wherever they stand first.
_ACTS = "\t\n\v\f\r\x1c-\x1e\x85\u2028\u2029"
#: What shows nothing: controls, spaces, format characters, fillers and selectors.
_HIDDEN = (
    "\x00-\x20\x7f-\xa0\xad\u034f\u0600-\u0605\u061c\u06dd\u070f\u0890\u0891\u08e2\u115f\u1160"
    "\u1680\u17b4\u17b5\u180b-\u180f\u2000-\u200f\u2028-\u202f\u205f-\u206f\u2800\u3000\u3164"
    "\ufe00-\ufe0f\ufeff\uffa0\ufff0-\ufffb\U000110bd\U000110cd\U00013430-\U0001343f"
    "\U0001bca0-\U0001bca3\U0001d173-\U0001d17a\U000e0000-\U000e0fff"
)
_RUNS = re.compile(f"'*[{_HIDDEN}]*[{_ACTS}{_BEGINS}]")


def safe_cell(text: str) -> str:
    """The text as a cell that no spreadsheet runs."""
    return f"'{text}" if _RUNS.match(text) else text


def plain_cell(cell: str) -> str:
    """The text that ``safe_cell`` made this cell of."""
    return cell[1:] if cell.startswith("'") and _RUNS.match(cell, 1) else cell
