"""Adaptation against embeddedness: a panel for each target, a mark for each persona.

The dashed line is what the pooled rates alone make of embeddedness: a model that treats all personas
alike lies on it. What adapts to a person lies off it, so the line stands in every panel.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial
from typing import TYPE_CHECKING

from habitus.analysis import Embeddedness, Results
from habitus.reports.legends import legend_height, place_legend
from habitus.reports.pages import Numbers, Page, Skipped, even_chunks, numbered
from habitus.reports.style import (
    DARK,
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

_ACROSS, _MOST = 3, 9
_TALL = 2.15  # inches of a panel
_LINE_KEY = "what the pooled rates alone would give"
_TEXT = (
    "Scatter plots, one for each target: embeddedness of a persona (the share of its non-neutral "
    "norms that it follows) against the norm adaptation of the answers it got. A dashed line shows "
    "what the pooled Follow and Avoid rates alone would give."
)


def embeddedness_pages(found: Results, setting: str, heading: str) -> Iterator[Page | Skipped]:
    """A page for every nine targets, for one setting."""
    parts = [part for part in found.embeddedness if part.cell.setting == setting and part.points]
    if not parts:
        yield Skipped("embeddedness", "no persona has a norm that it follows or avoids")
    for name, some in numbered("embeddedness", even_chunks(parts, _MOST)):
        yield Page(
            name,
            heading,
            f"{_TEXT} {_correlations(some)}",
            partial(_draw, found, some, heading),
            partial(_numbers, some),
        )


def _correlations(parts: Sequence[Embeddedness]) -> str:
    said = "; ".join(f"{part.cell.target} {_r(part)}" for part in parts)
    return f"Pearson correlation within cultures: {said}."


def _r(part: Embeddedness) -> str:
    r = part.norm_adaptation.values["pearson_within_cultures"]
    return "n/a" if r is None else decimal(r)


def _numbers(parts: Sequence[Embeddedness]) -> Numbers:
    columns = ("target", "setting", "persona", "culture", "embeddedness", "norm_adaptation")
    rows = tuple(
        (
            *(part.cell.target, part.cell.setting, point.persona, point.culture),
            *(point.embeddedness, point.norm_adaptation),
            *(point.follow_rate, point.avoid_rate, point.ccs, point.judged),
        )
        for part in parts
        for point in part.points
    )
    return Numbers((*columns, "follow_rate", "avoid_rate", "ccs", "judged"), rows)


def _draw(found: Results, parts: Sequence[Embeddedness], heading: str) -> Figure:
    marks = looks(sorted({point.culture for part in found.embeddedness for point in part.points}))
    keys = [label(name, 40) for name in marks] + [_LINE_KEY]
    across = min(_ACROSS, len(parts))
    deep = -(-len(parts) // across)
    around = title_height(heading, WIDE) + legend_height(keys, WIDE)
    figure = new_figure(WIDE, deep * _TALL + around)
    grid = figure.subplots(deep, across, squeeze=False, sharex=True, sharey=True)
    for axes in grid.flat[len(parts) :]:
        axes.set_visible(False)
    for axes, part in zip(grid.flat, parts, strict=False):
        _draw_panel(axes, found, part, marks)
    for axes in grid[:, 0]:
        axes.set_ylabel("norm adaptation")
    for axes in grid[-1]:
        axes.set_xlabel("embeddedness")
    title(figure, heading)
    _legend(figure, marks)
    return figure


def _draw_panel(axes: Axes, found: Results, part: Embeddedness, marks: dict[str, Look]) -> None:
    axes.set_title(f"{label(part.cell.target, 30)}\nr within cultures {_r(part)}", loc="left")
    axes.grid(visible=True)
    axes.set_xlim(-0.03, 1.03)
    axes.set_xticks((0, 0.25, 0.5, 0.75, 1), ["0", ".25", ".5", ".75", "1"])
    axes.yaxis.set_major_formatter(lambda value, _: decimal(value) if value else "0")
    for culture, look in marks.items():
        points = [
            (p.embeddedness, p.norm_adaptation)
            for p in part.points
            if p.culture == culture and p.norm_adaptation is not None
        ]
        axes.plot(
            [x for x, _ in points],
            [y for _, y in points],
            linestyle="none",
            marker=look.marker,
            markersize=4.2,
            color=look.colour,
            markeredgecolor=DARK,
            markeredgewidth=0.4,
            label=culture,
            clip_on=False,
        )
    row = next(row for row in found.rows if row.cell == part.cell)
    follow, avoid = row.values["follow_rate"], row.values["avoid_rate"]
    if follow is not None and avoid is not None:
        axes.plot([0, 1], [avoid, follow], color=DARK, linewidth=0.9, linestyle=(0, (4, 2)))


def _legend(figure: Figure, marks: dict[str, Look]) -> None:
    from matplotlib.lines import Line2D  # noqa: PLC0415

    entries: list[tuple[Artist, str]] = [
        (
            Line2D(
                [], [], linestyle="none", marker=look.marker, markersize=4.2, color=look.colour,
                markeredgecolor=DARK, markeredgewidth=0.4,
            ),
            label(name, 40),
        )
        for name, look in marks.items()
    ]  # fmt: skip
    line = Line2D([], [], color=DARK, linewidth=0.9, linestyle=(0, (4, 2)))
    place_legend(figure, [*entries, (line, _LINE_KEY)])
