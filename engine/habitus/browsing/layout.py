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
_UNLIMITED = 0
_WORDS = re.compile(r"\s*\S+|\s+")
_INDENT = re.compile(r"[ \u3000]*(?:[-*\u2022] |\d{1,3}[.)] )?")
_TAB = "    "


def lay_out(
    document: Document, width: int = _UNLIMITED, unfolded: Collection[str] | None = None
) -> list[Row]:
    """The rows of a document.

    Args:
        document: what to show.
        width: cells in a row; 0 wraps nothing, and puts cells below each other.
        unfolded: keys of what is not folded away; None unfolds all.
    """
    return list(_blocks(document.blocks, width, unfolded))


def row_text(row: Row) -> str:
    """The text of a row."""
    return "".join(span.text for span in row).rstrip()


def _blocks(
    blocks: Iterable[Block], width: int, unfolded: Collection[str] | None
) -> Iterator[Row]:
    for block in blocks:
        yield from _block(block, width, unfolded)


def _block(block: Block, width: int, unfolded: Collection[str] | None) -> Iterator[Row]:
    match block:
        case Heading():
            for line in wrapped(block.text, width):
                yield (Span(line, block.style),)
        case Paragraph():
            yield from _paragraph(block, width)
        case Folded():
            yield from _folded(block, width, unfolded)
        case Beside():
            yield from _beside(block, width, unfolded)
        case Gap():
            yield ()


def _paragraph(block: Paragraph, width: int) -> Iterator[Row]:
    bar, lead = safe_text(block.bar, lines=False), safe_text(block.lead, lines=False)
    bars = (Span(bar, "dim"),) if bar else ()
    used = cell_len(bar)
    beside = cell_len(lead)
    if width and beside > (width - used) // 2:  # a long lead gets rows of its own
        for line in wrapped(lead, width - used):
            yield (*bars, Span(line, block.lead_style))
        lead, beside = "", 0
    room = max(4, width - used - beside) if width else _UNLIMITED
    first = True
    for line in wrapped(block.text, room):
        before = (Span(lead, block.lead_style) if first else Span(" " * beside),) if beside else ()
        yield (*bars, *before, Span(line, block.style))
        first = False


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


def wrapped(text: str, width: int) -> Iterator[str]:
    """The rows of a text, made safe; an empty text is one empty row."""
    for line in safe_text(text).replace("\t", _TAB).split("\n"):
        if not width or len(line) * 2 <= width or cell_len(line) <= width:
            yield line
        else:
            yield from _wrapped_line(line, width)


def _wrapped_line(line: str, width: int) -> Iterator[str]:
    indent = _INDENT.match(line)
    set_in = " " * min(cell_len(indent[0]) if indent else 0, width // 2)
    row, used = "", 0
    for word in _WORDS.findall(line):
        length = cell_len(word)
        if row and used + length > width:
            yield row
            word = word.lstrip()  # noqa: PLW2901  (the blanks are where the row ends)
            row, used = set_in, len(set_in)
            length = cell_len(word)
        if used + length > width:
            *full, word = _cut(row + word, width, set_in)  # noqa: PLW2901
            yield from full
            row, used = word, cell_len(word)
        else:
            row, used = row + word, used + length
    yield row


def _cut(text: str, width: int, set_in: str) -> Iterator[str]:
    """A text that has a word longer than a row, cut between letters."""
    first, *_ = chop_cells(text, width)
    yield first
    rest = text[len(first) :]
    if rest:
        yield from (set_in + part for part in chop_cells(rest, max(2, width - len(set_in))))


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
