"""Legends below a figure, in as many columns as its width has room for."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from habitus.reports.style import LINE, line_count

if TYPE_CHECKING:
    from matplotlib.artist import Artist
    from matplotlib.figure import Figure
    from matplotlib.legend import Legend


def legend_height(texts: Sequence[str], width: float) -> float:
    """Inches of a legend below a figure of so many inches."""
    deep = -(-len(texts) // _across(texts, width))
    return deep * (LINE * line_count(*texts) + 0.05) + 0.12


def _across(texts: Sequence[str], width: float) -> int:
    """Columns that a legend has room for."""
    longest = max(len(line) for text in texts for line in text.split("\n"))
    return min(len(texts), max(1, int(width / (0.062 * longest + 0.5))))


def place_legend(figure: Figure, entries: Sequence[tuple[Artist, str]]) -> Legend:
    """Put entries below everything, in as many columns as the width has room for."""
    texts = [text for _, text in entries]
    return figure.legend(
        [handle for handle, _ in entries],
        texts,
        loc="outside lower left",
        ncols=_across(texts, figure.get_figwidth()),
        handlelength=2.2,
        handleheight=1.0,
        columnspacing=1.4,
    )
