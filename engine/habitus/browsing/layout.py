r"""A document as rows of a width: every text made safe, wrapped by cells, nothing interpreted.

    rows = lay_out(document, width=80, unfolded=frozenset())
    "\n".join(row_text(row) for row in rows)

Rows are what a terminal shows and what ``--plain`` prints, so both show the same. A line that is too
long goes on below, set in as far as it began; a word that is too long is cut between letters, never
within one. Text stays in the order in which it is stored: terminals that know right-to-left scripts
turn it round themselves.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator
from itertools import zip_longest

from rich.cells import cell_len, chop_cells

from habitus.browsing.document import (
    Beside,
    Block,
    Document,
    Folded,
    Gap,
    Heading,
    Paragraph,
    Span,
    Style,
)
from habitus.content.visible import safe_text

Row = tuple[Span, ...]
BETWEEN = " \u2502 "
MEASURE = 96  # cells of running text: longer rows are hard to read
_UNLIMITED = 0
_LEAST = 4  # cells that a row has however narrow the terminal is: two of the widest letters
_HANGS = 12  # leads up to here have the text beside them; it goes on under longer ones
_WORDS = re.compile(r"\s*\S+|\s+")
_INDENT = re.compile(r"[ \u3000]*(?:[-*\u2022] |\d{1,3}[.)] )?")
_TAB = "    "


def lay_out(
    document: Document, width: int = _UNLIMITED, unfolded: Collection[str] | None = None
) -> list[Row]:
    """The rows of a document.

    Args:
        document: what to show.
        width: cells in a row, of which running text takes ``MEASURE`` at most; 0 wraps nothing, and
            puts cells below each other.
        unfolded: keys of what is not folded away; None unfolds all.
    """
    return list(_blocks(document.blocks, width, unfolded))


def row_text(row: Row) -> str:
    """The text of a row."""
    return "".join(span.text for span in row).rstrip()


def _blocks(blocks: Iterable[Block], width: int, unfolded: Collection[str] | None) -> Iterator[Row]:
    for block in blocks:
        yield from _block(block, width, unfolded)


def _block(block: Block, width: int, unfolded: Collection[str] | None) -> Iterator[Row]:
    measure = min(width, MEASURE)
    match block:
        case Heading():
            for line in wrapped(block.text, measure):
                yield (Span(line, block.style),)
        case Paragraph():
            yield from _paragraph(block, measure)
        case Folded():
            yield from _folded(block, width, unfolded)
        case Beside():
            yield from _beside(block, width, unfolded)
        case Gap():
            yield ()


def _paragraph(block: Paragraph, width: int) -> Iterator[Row]:
    bar, lead = safe_text(block.bar, lines=False), safe_text(block.lead, lines=False)
    bars = (Span(bar, "dim"),) if bar else ()
    room = max(_LEAST, width - cell_len(bar)) if width else _UNLIMITED
    hangs = cell_len(lead) if cell_len(lead) <= _HANGS else 2
    left = len(lead)  # characters of the lead that are still to be shown
    for line in wrapped(lead + block.text, room, hangs if lead else None):
        set_in = 0 if left == len(lead) else len(line) - len(line.lstrip(" "))
        cut = min(len(line), set_in + left) if left else 0
        if cut:
            yield (*bars, Span(line[:cut], block.lead_style), Span(line[cut:], block.style))
        else:
            yield (*bars, Span(line, block.style))
        left -= min(left, cut - set_in) if cut else left


def _folded(block: Folded, width: int, unfolded: Collection[str] | None) -> Iterator[Row]:
    is_open = unfolded is None or block.key in unfolded
    sign = "[-] " if is_open else "[+] "
    for line in wrapped(sign + block.title, width):
        yield (Span(line, "dim"),)
    if is_open:
        yield from _blocks(block.blocks, width, unfolded)


def _beside(block: Beside, width: int, unfolded: Collection[str] | None) -> Iterator[Row]:
    count = len(block.cells)
    if not width:
        for cell in block.cells:
            yield from _blocks(cell, width, unfolded)
        return
    each = cell_width(width, count)
    columns = [list(_blocks(cell, each, unfolded)) for cell in block.cells]
    for rows in zip_longest(*columns, fillvalue=()):
        out: list[Span] = []
        for number, row in enumerate(rows):
            out += [Span(BETWEEN, "dim")] if number else []
            out += [*row, Span(" " * max(0, each - sum(cell_len(span.text) for span in row)))]
        yield tuple(out)


def cell_width(width: int, count: int) -> int:
    """How wide each of so many cells is, side by side."""
    return max(4, (width - len(BETWEEN) * (count - 1)) // max(1, count))


def wrapped(text: str, width: int, hangs: int | None = None) -> Iterator[str]:
    """The rows of a text, made safe; an empty text is one empty row.

    ``hangs`` is how far all rows but the first are set in; by default as far as their line began.
    """
    for number, line in enumerate(safe_text(text).replace("\t", _TAB).split("\n")):
        before = " " * hangs if hangs is not None and number else ""
        most = len(before) + 2 * len(line)  # cells: no letter takes more than two
        if not width or most <= width or len(before) + cell_len(line) <= width:
            yield before + line
        else:
            yield from _wrapped_line(before + line, max(_LEAST, width), hangs)


def _wrapped_line(line: str, width: int, hangs: int | None) -> Iterator[str]:
    indent = _INDENT.match(line)
    begins = cell_len(indent[0]) if indent else 0
    set_in = " " * min(begins if hangs is None else hangs, width // 2)
    row, used = "", 0
    for word in _WORDS.findall(line):
        length = cell_len(word)
        if row.strip() and used + length > width:
            yield row
            row, used = set_in, len(set_in)
            word = word.lstrip()  # noqa: PLW2901  (the blanks are where the row ends)
            length = cell_len(word)
        row, used = row + word, used + length
        if used > width:
            *full, row = _cut(row, width, set_in)
            yield from full
            used = cell_len(row)
    yield row


def _cut(text: str, width: int, set_in: str) -> Iterator[str]:
    """A row that a word makes too long, cut between letters."""
    first = chop_cells(text, width)[0]
    yield first
    rest = text[len(first) :]
    if rest:
        yield from (set_in + part for part in chop_cells(rest, width - len(set_in)))


def highlighted(row: Row, needle: str) -> Row:
    """The row with every place where a text stands, whatever its case, in the style ``hit``."""
    if not needle:
        return row
    found = re.compile(re.escape(safe_text(needle, lines=False)), re.IGNORECASE)
    out: list[Span] = []
    for span in row:
        out += _hits(span, found)
    return tuple(out)


def _hits(span: Span, found: re.Pattern[str]) -> Iterator[Span]:
    at = 0
    for match in found.finditer(span.text):
        if match.start() > at:
            yield Span(span.text[at : match.start()], span.style)
        yield Span(match[0], "hit")
        at = match.end()
    if at < len(span.text) or not span.text:
        yield Span(span.text[at:], span.style)


def style_of(given: bool | None) -> Style:
    """How a yes, a no and an unknown are styled."""
    if given is None:
        return "unknown"
    return "good" if given else "bad"
