"""Deltas with their intervals: a page for each place, a panel for each direction.

A row is a subset (a category) and the characteristic at the other end of the pair; each level has a
mark in it, filled where its test is significant. ``≠`` behind a row says that two levels differ
significantly. Only subsets in which every fit of the page converges are drawn; the others are
named.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING

from habitus.framing.results import Delta, Framing, Subset
from habitus.reports.directions import DeltaTable, Direction, Pair, directions_by_cause
from habitus.reports.legends import legend_height, place_legend
from habitus.reports.pages import (
    Numbers,
    Page,
    Skipped,
    chunks,
    even_chunks,
    groups,
    marked,
    numbered,
    rest,
)
from habitus.reports.style import (
    DARK,
    GREY,
    SIZE,
    TALLEST,
    WIDE,
    Look,
    decimal,
    label,
    looks,
    new_figure,
    title,
    title_height,
)

if TYPE_CHECKING:
    from matplotlib.artist import Artist
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

DIFFER = "≠"
_MARK = 0.115  # inches between the marks of two levels
_GAP = 0.8  # marks between two rows
_KEYS = ("significant within the level", "not significant", f"{DIFFER} levels differ")
_ROOM = 0.5  # inches for the axis and the titles of the panels
_LEGEND = 0.9  # inches of a page for heading and legend, about
_PANELS = 3
_BAND = "#f1f1f1"


@dataclass(frozen=True, slots=True)
class _Sheet:
    """What one page shows: the panels, the subsets in it, and those left out of its place."""

    place: str
    panels: Sequence[Direction]
    subsets: Sequence[Subset]
    left_out: Sequence[Subset]

    @property
    def ends(self) -> list[str]:
        """The characteristics that name rows, over all panels."""
        return list(dict.fromkeys(end for panel in self.panels for end in panel.pairs))


@dataclass(frozen=True, slots=True)
class _Row:
    """A row at a height, in marks from the top; ``end`` is empty for the name of a subset."""

    y: float
    subset: Subset
    end: str = ""
    left_out: bool = False


def effect_pages(framing: Framing, panels: Sequence[Direction]) -> Iterator[Page | Skipped]:
    """A page for each place, or several where it has many subsets; or why there is none.

    Without panels there is one for each cause.
    """
    panels = panels or directions_by_cause(framing)
    if not panels:
        yield Skipped("deltas", "the analysis asks for no pair of characteristics")
    table = DeltaTable(framing)
    for stem, some in numbered("deltas", list(chunks(panels, _PANELS))):
        for place, subsets in groups(framing).items():
            name = f"{stem}-{place}".rstrip("-")
            whole = [subset for subset in subsets if table.converges(subset, some)]
            left_out = [subset for subset in subsets if subset not in whole]
            if not whole:
                yield Skipped(
                    name, f"there is no subset in which every fit converges ({_names(left_out)})"
                )
            sheet = _Sheet(place, some, whole, left_out)
            for full, part in numbered(name, _parts(sheet, len(framing.levels))):
                some_of = replace(sheet, subsets=part)
                yield Page(
                    full,
                    _heading(framing, place),
                    f"Points with intervals: by how much one characteristic changes the probability "
                    f"of another, for {len(framing.levels)} levels in {len(part)} parts.",
                    partial(_draw, table, some_of),
                    partial(_numbers, table, some_of),
                )


def _parts(sheet: _Sheet, levels: int) -> list[list[Subset]]:
    tall = (len(sheet.ends) * (levels + _GAP) + _GAP + 1) * _MARK
    return even_chunks(sheet.subsets, max(1, int((TALLEST - _ROOM - _LEGEND) / tall)))


def _draw(table: DeltaTable, sheet: _Sheet) -> Figure:
    framing = table.framing
    rows = _rows(sheet, len(framing.levels))
    depth = rows[-1].y + (len(framing.levels) + _GAP) / 2
    heading = _heading(framing, sheet.place)
    keys = [*(label(level, 40) for level in framing.levels), *_KEYS]
    around = title_height(heading, WIDE) + legend_height(keys, WIDE) + _ROOM
    figure = new_figure(WIDE, depth * _MARK + around)
    grid = figure.subplots(1, len(sheet.panels), squeeze=False, sharex=True, sharey=True)
    for axes, panel in zip(grid.flat, sheet.panels, strict=True):
        axes.set_title(label(panel.title, 26), loc="left")
        _draw_panel(axes, table, panel, rows)
    _name_rows(grid[0, 0], framing, rows)
    grid[0, 0].set_ylim(depth, 0)
    title(figure, heading)
    _legend(figure, framing.levels)
    return figure


def _heading(framing: Framing, place: str) -> str:
    heading = f"{framing.title}: {place}" if place else framing.title
    return marked(framing, f"{heading}, differences in probability")


def _numbers(table: DeltaTable, sheet: _Sheet) -> Numbers:
    names = table.framing.characteristics
    pairs = [pair for panel in sheet.panels for pair in panel.pairs.values()]
    found = [
        table.delta(subset, pair, level)
        for subset in sheet.subsets
        for pair in pairs
        for level in table.framing.levels
    ]
    rows = tuple(
        (
            *(d.subset.name, names.get(d.cause, d.cause), names.get(d.effect, d.effect), d.level),
            *(d.delta, d.low, d.high, d.significant, d.rows, d.missing),
        )
        for d in found
        if d is not None
    )
    columns = ("part", "cause", "effect", "level", "delta", "low", "high", "significant")
    return Numbers((*columns, "judged", "missing"), rows)


def _rows(sheet: _Sheet, levels: int) -> list[_Row]:
    rows = []
    top = 0.0
    for subset in (*sheet.subsets, *sheet.left_out):
        left_out = subset in sheet.left_out
        rows.append(_Row(top + 0.9, subset, left_out=left_out))
        top += 1 + _GAP
        for end in sheet.ends if not left_out else ():
            rows.append(_Row(top + (levels + _GAP) / 2, subset, end))
            top += levels + _GAP
    return rows


def _name_rows(axes: Axes, framing: Framing, rows: Sequence[_Row]) -> None:
    names = [
        label(framing.characteristics.get(row.end, row.end) if row.end else rest(row.subset), 26)
        for row in rows
    ]
    axes.set_yticks([row.y for row in rows], names)
    for text, row in zip(axes.get_yticklabels(), rows, strict=True):
        text.set_fontweight("normal" if row.end else "bold")


def _draw_panel(axes: Axes, table: DeltaTable, panel: Direction, rows: Sequence[_Row]) -> None:
    axes.axvline(0, color=DARK, linewidth=0.8, zorder=1.5)
    axes.grid(axis="x")
    axes.xaxis.set_major_formatter(lambda value, _: decimal(value) if value else "0")
    axes.locator_params(axis="x", nbins=6)
    for row in rows:
        if row.left_out:
            _draw_text(axes, 0.02, row.y, "a fit does not converge")
    reach = (len(table.framing.levels) + _GAP) / 2
    for number, row in enumerate(row for row in rows if row.end):
        if number % 2 == 0:
            axes.axhspan(row.y - reach, row.y + reach, color=_BAND, linewidth=0, zorder=0)
        if row.end in panel.pairs:
            _draw_row(axes, table, panel.pairs[row.end], row)


def _draw_row(axes: Axes, table: DeltaTable, pair: Pair, row: _Row) -> None:
    levels = looks(table.framing.levels)
    for place, (level, look) in enumerate(levels.items()):
        found = table.delta(row.subset, pair, level)
        if found is not None:
            _draw_delta(axes, found, row.y + place - (len(levels) - 1) / 2, look)
    if table.differs(row.subset, pair):
        at = axes.get_yaxis_transform()
        axes.text(1.01, row.y, DIFFER, transform=at, va="center_baseline", fontsize=SIZE + 3)


def _draw_text(axes: Axes, x: float, y: float, text: str) -> None:
    """A remark in a row, on paper of its own so that no line runs through it."""
    axes.text(
        x,
        y,
        text,
        transform=axes.get_yaxis_transform(),
        color=GREY,
        va="center_baseline",
        fontsize=SIZE,
        bbox={"facecolor": "white", "edgecolor": "none", "pad": 0.8},
    )


def _draw_delta(axes: Axes, found: Delta, y: float, look: Look) -> None:
    if found.delta is None or found.low is None or found.high is None:
        return
    axes.plot([found.low, found.high], [y, y], color=look.colour, linewidth=1.2)
    axes.plot(
        [found.delta],
        [y],
        marker=look.marker,
        markersize=4.2,
        color=look.colour,
        markerfacecolor=look.colour if found.significant else "white",
        markeredgewidth=0.9,
        linestyle="none",
    )


def _legend(figure: Figure, levels: Sequence[str]) -> None:
    from matplotlib.lines import Line2D  # noqa: PLC0415

    def mark(look: Look, filled: bool) -> Artist:
        face = look.colour if filled else "white"
        return Line2D(
            [], [], color=look.colour, marker=look.marker, markersize=4.2, linewidth=1.2,
            markerfacecolor=face, markeredgewidth=0.9,
        )  # fmt: skip

    grey = Look("#555555", "", "o")
    entries = [(mark(look, True), label(level, 40)) for level, look in looks(levels).items()]
    entries += [
        (mark(grey, True), _KEYS[0]),
        (mark(grey, False), _KEYS[1]),
        (Line2D([], [], linestyle="none"), _KEYS[2]),
    ]
    place_legend(figure, entries)


def _names(subsets: Sequence[Subset]) -> str:
    return "; ".join(map(rest, subsets))
