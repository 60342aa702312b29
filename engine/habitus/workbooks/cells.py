"""What stands in a cell: its text, number, truth value, day or time, or why it cannot be read.

A number is read in full and not as its format shows it; only days and times are told by their
format. Errors (``#N/A``) and formulas whose value is not in the file are faults: they are no text,
and no empty cell either. Where cells lie, and in which file, is not known here.
"""

from __future__ import annotations

import datetime as dt
import math
import re
from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum

from habitus.cells import plain_cell
from habitus.workbooks.limits import CELL_LENGTH, TEXT, cell_length

Value = str | int | float | bool | None

_EXACT = 10**15  # spreadsheets keep 15 digits of a number
_ESCAPE = re.compile(r"_x([0-9A-Fa-f]{4})_")
_SURROGATES = range(0xD800, 0xE000)
_DAYS = 2_958_466  # serial numbers end with the year 9999
_NO_DAY = 60  # 29 February 1900, which spreadsheets count and no calendar has
_MILLISECONDS = 86_400_000
_LITERAL = re.compile(r'"[^"]*"|\\.|_.|\*.|\[(?![hms]+\])[^\]]*\]', re.IGNORECASE)
_ELAPSED = re.compile(r"\[[hms]+\]", re.IGNORECASE)
#: Formats of days and times that are known by their number alone.
_DATES = frozenset({14, 15, 16, 17, *range(27, 32), 36, *range(50, 55), 57, 58})
_TIMES = frozenset({18, 19, 20, 21, 32, 33, 34, 35, 45, 47, 55, 56})
_BOTH = 22
_LONG_TIME = 46


class Shown(StrEnum):
    """What the format of a cell makes of its number."""

    NUMBER = "number"
    DATE = "date"
    DURATION = "duration"


class CellError(Exception):
    """A cell that cannot be read: the reason, and what to do."""


@dataclass(slots=True)
class RawCell:
    """A cell as the file has it. ``text`` is None where there is no value."""

    column: int
    kind: str
    style: str
    text: str | None = None
    formula: bool = False


@dataclass(frozen=True, slots=True)
class CellReader:
    """Reads cells of one workbook: its shared texts, what its styles show, and its first day."""

    texts: Sequence[str]
    styles: Sequence[Shown]
    from_1904: bool = False

    def value(self, cell: RawCell) -> Value:
        """The value of a cell; None where it is empty.

        Raises:
            CellError: it cannot be read.
        """
        match cell.kind:
            case "s":
                return _text(self._shared(cell.text))
            case "inlineStr":
                return _text(decoded(cell.text or ""))
            case "str":
                return _result(cell)
            case "e":
                raise CellError(f"holds the error {(cell.text or '')[:20]}: mend it or empty it")
        if not cell.text:
            _check_empty(cell)
            return None
        return self._plain(cell, cell.text.strip())

    def _plain(self, cell: RawCell, text: str) -> Value:
        if cell.kind == "b":
            if text not in {"0", "1"}:
                raise CellError(f"holds {text[:20]!r}, which is no truth value")
            return text == "1"
        if cell.kind == "d":
            return text
        if cell.kind in {"n", ""}:
            return self._number(cell.style, text)
        raise CellError(f"is of no kind that cells have ({cell.kind[:20]!r})")

    def _shared(self, text: str | None) -> str:
        if text is None:
            return ""
        number = whole(text)
        if number is None or number >= len(self.texts):
            raise CellError("names a text that is not in the file, which is damaged")
        return self.texts[number]

    def _number(self, style: str, text: str) -> Value:
        try:
            number = float(text)
        except ValueError:
            raise CellError(f"holds {text[:20]!r}, which is no number") from None
        if not math.isfinite(number) or "_" in text:
            raise CellError(f"holds {text[:20]!r}, which is no number")
        shown = self._shown(style)
        if shown is not Shown.NUMBER:
            return _moment(number, shown, self.from_1904)
        if abs(number) >= _EXACT:
            raise CellError(
                f"holds the number {text[:30]}, of which a spreadsheet keeps 15 digits: what was "
                "entered may have been another; write it as text"
            )
        return int(number) if number.is_integer() else number

    def _shown(self, style: str) -> Shown:
        number = whole(style or "0")
        if number is None or number >= max(1, len(self.styles)):
            raise CellError("has a style that is not in the file, which is damaged")
        return self.styles[number] if self.styles else Shown.NUMBER


def decoded(text: str) -> str:
    """A text with its escapes read: ``_x000D_`` stands for what XML cannot hold."""
    return _ESCAPE.sub(_character, text) if "_x" in text else text


def shown_by(number: int, code: str | None) -> Shown:
    """What a format makes of a number, by the format's number, or its code where it has one."""
    if code is None:
        if number == _LONG_TIME:
            return Shown.DURATION
        known = number in _DATES or number in _TIMES or number == _BOTH
        return Shown.DATE if known else Shown.NUMBER
    bare = _LITERAL.sub("", code.partition(";")[0])
    if _ELAPSED.search(bare):
        return Shown.DURATION
    if bare.strip().lower() == "general":
        return Shown.NUMBER
    return Shown.DATE if re.search("[ymdhs]", bare, re.IGNORECASE) else Shown.NUMBER


def whole(text: str) -> int | None:
    """A number of digits alone; None where it is not, or is absurd."""
    return int(text) if text.isascii() and text.isdigit() and len(text) < 10 else None


def _result(cell: RawCell) -> Value:
    """The text that a formula gave. An empty one is a text, a missing one is not known."""
    if cell.text is None:
        _check_empty(cell)
    return _text(decoded(cell.text or ""))


def _check_empty(cell: RawCell) -> None:
    """A cell without a value is empty, if it is no formula."""
    if cell.formula:
        raise CellError(
            "is a formula whose value is not in the file: open it in a spreadsheet program and save "
            "it, or put the value in its place"
        )


def _text(text: str) -> str | None:
    if CELL_LENGTH in {len(text), cell_length(text)}:
        raise CellError(
            f"holds {CELL_LENGTH:,} characters, the most that a spreadsheet keeps: the text was most "
            "likely cut; give such rows as JSON lines or CSV"
        )
    if len(text) > TEXT:
        raise CellError(f"holds more than {TEXT:,} characters; give such rows as JSON lines")
    return plain_cell(text) or None


def _character(found: re.Match[str]) -> str:
    number = int(found[1], 16)
    return found[0] if number in _SURROGATES else chr(number)


def _moment(number: float, shown: Shown, from_1904: bool) -> str:
    """A day, a time, both or a duration, as ISO writes them but for the blank between."""
    if not 0 <= number < _DAYS:
        raise CellError(f"holds the date {number:g}, which is outside of the calendar")
    milliseconds = round(number * _MILLISECONDS)
    if shown is Shown.DURATION:
        return str(dt.timedelta(milliseconds=milliseconds))
    days, rest = divmod(milliseconds, _MILLISECONDS)
    time = (dt.datetime.min + dt.timedelta(milliseconds=rest)).time()
    if not days and not from_1904:
        return str(time)
    if days == _NO_DAY and not from_1904:
        raise CellError("holds 29 February 1900, a day that never was")
    first = dt.date(1904, 1, 1) if from_1904 else dt.date(1899, 12, 31 if days < _NO_DAY else 30)
    try:
        day = first + dt.timedelta(days=days)
    except OverflowError:
        raise CellError(f"holds the date {number:g}, which is outside of the calendar") from None
    return f"{day} {time}" if rest else str(day)
