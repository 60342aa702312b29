"""How often each level shows each characteristic, and which maxims are broken where.

``prevalence`` has a page for each place (a country) with a panel for each of its subsets: bars are
estimates, lines their intervals. ``maxims`` has a panel for each maxim with a row for each place:
bars are plain shares of all judged answers of the place, and the marks on them are the estimates in
its subsets.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial
from typing import TYPE_CHECKING

from habitus.framing.results import Framing, Prevalence, Subset
from habitus.reports.bars import Bar, Panel, Sheet, bar_figure, panels_that_fit, rows_that_fit
from habitus.reports.pages import (
    Numbers,
    Page,
    Skipped,
    chunks,
    even_chunks,
    field_names,
    groups,
    marked,
    numbered,
    places,
    rest,
)
from habitus.reports.style import DARK, label

if TYPE_CHECKING:
    from matplotlib.artist import Artist
    from matplotlib.figure import Figure

_ACROSS, _MAXIMS_ACROSS = 3, 4


def prevalence_pages(framing: Framing) -> Iterator[Page | Skipped]:
    """A page for each place, or one for all where subsets have no more than one field."""
    known = {found.characteristic for found in framing.prevalences}
    rows = [name for name in framing.characteristics if name in known]
    if not rows:
        yield Skipped("prevalence", "the analysis asks for no prevalence")
        return
    for place, subsets in groups(framing).items():
        parts = list(_parts(framing, subsets, rows))
        for name, (some, part) in numbered(f"prevalence-{place}".rstrip("-"), parts):
            yield Page(
                name,
                marked(framing, f"{framing.title}: {place}" if place else framing.title),
                f"Bars with intervals: how often each of {len(framing.levels)} levels shows each of "
                f"{len(part)} characteristics, in a panel for each of {len(some)} parts.",
                partial(_draw, framing, place, some, part),
                partial(_numbers, framing, some, part),
            )


def _parts(
    framing: Framing, subsets: Sequence[Subset], rows: Sequence[str]
) -> Iterator[tuple[list[Subset], list[str]]]:
    """Subsets and characteristics of each page."""
    most = rows_that_fit(_names(framing, rows), framing.levels)
    for part in even_chunks(rows, most):
        deep = panels_that_fit(_names(framing, part), framing.levels)
        for some in chunks(subsets, deep * _ACROSS):
            yield some, part


def _draw(framing: Framing, place: str, subsets: Sequence[Subset], rows: Sequence[str]) -> Figure:
    heading = marked(framing, f"{framing.title}: {place}" if place else framing.title)
    panels = [_panel(framing, subset, rest(subset) if place else subset.name) for subset in subsets]
    return bar_figure(Sheet(heading, panels, _names(framing, rows), framing.levels, _ACROSS))


def _numbers(framing: Framing, subsets: Sequence[Subset], rows: Sequence[str]) -> Numbers:
    columns = ("part", "characteristic", "level", "estimate", "low", "high", "cases", "judged")
    found = tuple(
        (
            *(p.subset.name, framing.characteristics[p.characteristic], p.level),
            *(p.estimate, p.low, p.high, p.cases, p.rows, p.missing),
        )
        for p in framing.prevalences
        if p.subset in subsets and p.characteristic in rows
    )
    return Numbers((*columns, "missing"), found)


def _panel(framing: Framing, subset: Subset, name: str) -> Panel:
    bars = {
        (found.characteristic, found.level): Bar(found.estimate, found.low, found.high)
        for found in framing.prevalences
        if found.subset == subset
    }
    return Panel(f"{label(name, 26)}\n{subset.rows:,} answers", bars)


def _names(framing: Framing, rows: Sequence[str]) -> dict[str, str]:
    return {name: framing.characteristics[name] for name in rows}


def maxim_pages(framing: Framing, maxims: Sequence[str]) -> Iterator[Page | Skipped]:
    """A panel for each maxim of which there are prevalences, a row for each place."""
    found = [m for m in maxims if any(p.characteristic == m for p in framing.prevalences)]
    there = {place: place for place in places(framing)}
    if not found:
        yield Skipped("maxims", "the analysis asks for no prevalence of a maxim")
    elif not there:
        yield Skipped("maxims", "the subsets are made by no field, so there is nothing to compare")
    else:
        most = rows_that_fit(there, framing.levels, -(-len(found) // _MAXIMS_ACROSS))
        for name, part in numbered("maxims", even_chunks(list(there), most)):
            yield Page(
                name,
                _maxims_heading(framing),
                f"Bars: the share of judged answers in which each of {len(found)} maxims is violated, "
                f"by {field_names(framing)[0]} and level; strokes are the estimates in one part.",
                partial(_draw_maxims, framing, found, part),
                partial(_maxim_numbers, framing, found, part),
            )


def _draw_maxims(framing: Framing, maxims: Sequence[str], rows: Sequence[str]) -> Figure:
    _, part = field_names(framing)
    panels = [
        Panel(label(framing.characteristics[maxim], 22), _pooled(framing, maxim))
        for maxim in maxims
    ]
    names = {place: place for place in rows}
    sheet = Sheet(_maxims_heading(framing), panels, names, framing.levels, _MAXIMS_ACROSS)
    return bar_figure(sheet, [(_tick_mark(), f"estimate in one {label(part, 40)}")])


def _maxims_heading(framing: Framing) -> str:
    return marked(framing, f"{framing.title}: maxims by {field_names(framing)[0]}")


def _maxim_numbers(framing: Framing, maxims: Sequence[str], rows: Sequence[str]) -> Numbers:
    found = tuple(
        (where, framing.characteristics[maxim], level, bar.value, *_ends(bar.ticks))
        for maxim in maxims
        for (where, level), bar in _pooled(framing, maxim).items()
        if where in rows
    )
    columns = (field_names(framing)[0], "maxim", "level", "share of judged answers")
    return Numbers((*columns, "lowest estimate of a part", "highest"), found)


def _ends(ticks: Sequence[float]) -> tuple[float | None, float | None]:
    return min(ticks, default=None), max(ticks, default=None)


def _pooled(framing: Framing, maxim: str) -> dict[tuple[str, str], Bar]:
    """The share of judged answers of each place and level, and the estimates of its subsets."""
    found: dict[tuple[str, str], list[Prevalence]] = {}
    for part in framing.prevalences:
        if part.characteristic == maxim and part.subset.fields:
            found.setdefault((part.subset.fields[0][1], part.level), []).append(part)
    return {key: _bar(parts) for key, parts in found.items()}


def _bar(parts: Sequence[Prevalence]) -> Bar:
    rows, cases = sum(part.rows for part in parts), sum(part.cases for part in parts)
    ticks = tuple(part.estimate for part in parts if part.estimate is not None)
    return Bar(cases / rows if rows else None, ticks=ticks)


def _tick_mark() -> Artist:
    from matplotlib.lines import Line2D  # noqa: PLC0415

    return Line2D([], [], color=DARK, marker="|", linestyle="none", markersize=7)
