"""How styles that are names look. The terminal's own colours, and words that do without them."""

from __future__ import annotations

from collections.abc import Mapping

from rich.segment import Segment
from rich.style import Style as Look
from textual.strip import Strip

from habitus.browsing import Row, Style

LOOKS: Mapping[Style, Look] = {
    "plain": Look(),
    "strong": Look(bold=True),
    "dim": Look(dim=True),
    "heading": Look(bold=True, underline=True),
    "person": Look(bold=True, color="cyan"),
    "assistant": Look(bold=True, color="magenta"),
    "good": Look(bold=True, color="green"),
    "bad": Look(bold=True, color="red"),
    "unknown": Look(italic=True, color="yellow"),
    "hit": Look(reverse=True, bold=True),
}


def strip(row: Row, width: int, base: Look) -> Strip:
    """A row as a line of a widget."""
    segments = [Segment(span.text, base + LOOKS[span.style]) for span in row]
    return Strip(segments).adjust_cell_length(width, base)
