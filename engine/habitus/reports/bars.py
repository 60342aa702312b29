"""Bars of several levels side by side, in rows that share one axis of labels.

A row is a characteristic or a country and has one bar for each level, with its interval. An
undefined bar is no bar of length zero: it is ``n/a``, in grey, where the bar would begin; a zero is ``0``.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from habitus.reports.legends import legend_height, place_legend
from habitus.reports.style import (
    DARK,
    GREY,
    LINE,
    SIZE,
    TALLEST,
    UNDEFINED,
    WIDE,
    Look,
    label,
    line_count,
    looks,
    new_figure,
    title,
    title_height,
)

if TYPE_CHECKING:
    from matplotlib.artist import Artist
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

BAR = 0.105  # inches; text of the smallest size fits beside it
_GAP = 0.6  # bars between two rows
_SHARE = (0.0, 0.25, 0.5, 0.75, 1.0)


@dataclass(frozen=True, slots=True)
class Bar:
    """A share between 0 and 1 with its interval; ``ticks`` are further values to be marked on it."""

    value: float | None
    low: float | None = None
    high: float | None = None
    ticks: tuple[float, ...] = ()


@dataclass(frozen=True, slots=True)
class Panel:
    """A title, ready to be drawn, and the bar of each (row, level) that there is."""

    title: str
    bars: Mapping[tuple[str, str], Bar]


@dataclass(frozen=True, slots=True)
class Sheet:
    """One page of panels: ``rows`` by id from the top, with their names; ``across`` at most."""

    heading: str
    panels: Sequence[Panel]
    rows: Mapping[str, str]
    levels: Sequence[str]
    across: int


def row_height(names: Iterable[str], levels: int) -> float:
    """Inches of a row: for a bar of each level, and for the longest of the names beside it."""
    return max((levels + _GAP) * BAR, line_count(*map(label, names)) * LINE + 0.05)


def panels_that_fit(rows: Mapping[str, str], levels: Sequence[str], lines: int = 2) -> int:
    """How many panels, of titles of so many lines, can stand one below the other on a page."""
    room = TALLEST - _around("", [*levels, ""])
    return max(1, int(room / _panel_height(rows, levels, lines)))


def rows_that_fit(rows: Mapping[str, str], levels: Sequence[str], deep: int = 1) -> int:
    """How many rows each of ``deep`` panels one below the other can have on a page."""
    room = (TALLEST - _around("", [*levels, ""])) / deep - _panel_height({}, levels, 2)
    return max(1, int(room / row_height(rows.values(), len(levels))))


def bar_figure(sheet: Sheet, more: Sequence[tuple[Artist, str]] = ()) -> Figure:
    """Panels beside and below each other, with a heading and a legend.

    Args:
        sheet: what is drawn.
        more: further entries of the legend.
    """
    across = min(sheet.across, len(sheet.panels))
    deep = -(-len(sheet.panels) // across)
    lines = line_count(*(panel.title for panel in sheet.panels))
    around = _around(sheet.heading, [*sheet.levels, *(text for _, text in more)])
    panel_height = _panel_height(sheet.rows, sheet.levels, lines)
    figure = new_figure(WIDE, deep * panel_height + around)
    grid = figure.subplots(deep, across, squeeze=False)
    for axes in grid.flat[len(sheet.panels) :]:
        axes.set_visible(False)
    for number, (axes, panel) in enumerate(zip(grid.flat, sheet.panels, strict=False)):
        draw_bars(axes, panel, sheet.rows, sheet.levels, labels=number % across == 0)
    title(figure, sheet.heading)
    _legend(figure, sheet.levels, more)
    return figure


def _panel_height(rows: Mapping[str, str], levels: Sequence[str], lines: int) -> float:
    bars = len(rows) * row_height(rows.values(), len(levels)) if rows else 0.0
    return bars + lines * LINE + 0.32


def _around(heading: str, keys: Sequence[str]) -> float:
    return title_height(heading, WIDE) + legend_height([label(key, 40) for key in keys], WIDE)


def draw_bars(
    axes: Axes, panel: Panel, rows: Mapping[str, str], levels: Sequence[str], *, labels: bool
) -> None:
    """Draw one panel.

    Args:
        axes: where to.
        panel: what.
        rows: ids of the rows from the top, with their names.
        levels: from the top, within each row.
        labels: write the names of the rows.
    """
    axes.set_title(panel.title, loc="left")
    axes.set_xlim(0, 1)
    axes.set_xticks(_SHARE, ["0", ".25", ".5", ".75", "1"])
    axes.grid(axis="x")
    step = row_height(rows.values(), len(levels)) / BAR
    for level, look in looks(levels).items():
        offset = levels.index(level) - (len(levels) - 1) / 2
        places = [-(i * step + offset) for i in range(len(rows))]
        found = [panel.bars.get((row, level), Bar(None)) for row in rows]
        _draw_level(axes, level, look, list(zip(places, found, strict=True)))
    middle = [-i * step for i in range(len(rows))]
    axes.set_yticks(middle, [label(name) for name in rows.values()] if labels else [""] * len(rows))
    axes.set_ylim(-(len(rows) - 0.5) * step, step / 2)


def _draw_level(axes: Axes, level: str, look: Look, bars: Sequence[tuple[float, Bar]]) -> None:
    there = [(y, bar, bar.value) for y, bar in bars if bar.value is not None]
    axes.barh(
        [y for y, _, _ in there],
        [value for _, _, value in there],
        height=0.86,
        color=look.colour,
        hatch=look.hatch,
        edgecolor=DARK,
        linewidth=0.5,
        label=level,
    )
    for y, bar, _ in there:
        if bar.low is not None and bar.high is not None:
            axes.plot([bar.low, bar.high], [y, y], color="white", linewidth=2.2, clip_on=False)
            axes.plot([bar.low, bar.high], [y, y], color=DARK, linewidth=0.9, clip_on=False)
        if bar.ticks:
            _draw_ticks(axes, bar.ticks, y)
    for y, bar in bars:
        if not bar.value:  # a zero would look as if nothing were there
            text, colour = (UNDEFINED, GREY) if bar.value is None else ("0", DARK)
            axes.text(0.012, y, text, color=colour, va="center_baseline", fontsize=SIZE)


def _draw_ticks(axes: Axes, values: Sequence[float], y: float) -> None:
    for width, colour in ((2.0, "white"), (0.9, DARK)):
        axes.vlines(values, y - 0.4, y + 0.4, color=colour, linewidth=width, clip_on=False)


def _legend(figure: Figure, levels: Sequence[str], more: Sequence[tuple[Artist, str]]) -> None:
    from matplotlib.patches import Patch  # noqa: PLC0415

    entries: list[tuple[Artist, str]] = [
        (Patch(facecolor=k.colour, hatch=k.hatch * 2, edgecolor=DARK, linewidth=0.5), label(n, 40))
        for n, k in looks(levels).items()
    ]
    place_legend(figure, [*entries, *more])
