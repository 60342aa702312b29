"""The figures of CCBench: by setting, by culture, by kind of norm, by topic, against embeddedness.

    parts = run_parts(run)
    paths = write_pages([p for p in ccbench_pages(parts, "hist") if isinstance(p, Page)], folder)

The paper (arXiv 2607.05405) does not name the setting that its figures show; here it is chosen, and
stands in every heading.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, cast

from habitus.analysis import Dimension, Results, Row
from habitus.errors import UsageError
from habitus.experiments import View, read_materials, run_breakdowns
from habitus.reports.bars import Bar, Panel, Sheet, bar_figure, rows_that_fit
from habitus.reports.embeddedness import embeddedness_pages
from habitus.reports.pages import Numbers, Page, Skipped, even_chunks, numbered
from habitus.reports.style import (
    LINE,
    PALETTE,
    UNDEFINED,
    decimal,
    label,
    line_count,
    new_figure,
    title,
    title_height,
)
from habitus.reports.tilemap import Tile, draw_tiles, heads
from habitus.store import RunDir

if TYPE_CHECKING:
    from matplotlib.figure import Figure

MEASURES = {
    "follow_rate": "Follow rate",
    "avoid_rate": "Avoid rate",
    "norm_adaptation": "Norm adaptation",
    "ccs": "CCS",
}
_USUAL = "hist"
_ROWS, _COLUMNS = 36, 8
_ROW, _COLUMN, _LABELS = 0.2, 0.6, 2.5  # inches


@dataclass(frozen=True, slots=True)
class Parts:
    """The results of a run, whole and broken down. ``topics`` maps ids to names."""

    title: str
    whole: Results
    by_culture: Results
    by_kind: Results
    by_topic: Results
    topics: Mapping[str, str]

    @property
    def targets(self) -> list[str]:
        """The targets that have results."""
        return list(dict.fromkeys(row.cell.target for row in self.whole.rows))

    @property
    def settings(self) -> list[str]:
        """The settings that have results, in their order."""
        return list(dict.fromkeys(row.cell.setting for row in self.whole.rows))

    def setting(self, wanted: str | None) -> str:
        """The setting that figures show: the one wanted, else ``hist``, else the first.

        Raises:
            UsageError: the run has no results in the wanted setting.
        """
        there = self.settings
        if wanted is not None and wanted not in there:
            raise UsageError(f"no results in the setting {wanted!r}; there are {', '.join(there)}")
        return wanted or (_USUAL if _USUAL in there else there[0])


def run_parts(run: RunDir) -> Parts | None:
    """The results of a run, read once; None where it has no verdicts."""
    if "evaluations" not in run.records.stages():
        return None
    by: list[tuple[Dimension, ...]] = [(), ("culture",), ("kind",), ("topic", "culture")]
    whole, culture, kind, topic = run_breakdowns(run, [View(by=dimensions) for dimensions in by])
    if not whole.rows:
        return None
    kept = read_materials(run)
    return Parts(kept.title or kept.id, whole, culture, kind, topic, kept.topics)


def ccbench_pages(parts: Parts, setting: str) -> Iterator[Page | Skipped]:
    """Every figure of CCBench; the first shows all settings, the others one."""
    whole, targets = parts.whole, parts.targets
    settings = {name: name for name in parts.settings}
    by_setting = _Grouped("settings", "setting", MEASURES, settings)
    yield from _bar_pages(by_setting, whole.rows, lambda row: row.cell.setting, targets, parts)
    heading = _heading(parts, f"adaptation against embeddedness, setting {setting}")
    yield from embeddedness_pages(whole, setting, heading)
    for name, measures, found, dimension in (
        ("cultures", ("follow_rate", "avoid_rate"), parts.by_culture, "culture"),
        ("kinds", ("follow_rate", "avoid_rate", "norm_adaptation"), parts.by_kind, "kind"),
    ):
        rows = [row for row in found.rows if row.cell.setting == setting]
        key = partial(_value, dimension)
        values = {value: value for value in sorted({key(row) for row in rows})}
        grouped = _Grouped(
            name, f"{dimension}, setting {setting}", {m: MEASURES[m] for m in measures}, values
        )
        yield from _bar_pages(grouped, rows, key, targets, parts)
    yield from _topic_pages(parts, setting)


def _heading(parts: Parts, what: str) -> str:
    synthetic = " (synthetic)" if parts.whole.synthetic else ""
    return f"{parts.title}: {what}{synthetic}"


def _value(dimension: str, row: Row) -> str:
    return dict(row.labels)[cast("Dimension", dimension)]


@dataclass(frozen=True, slots=True)
class _Grouped:
    """A figure of bars: its name, what its rows are, its panels and its rows by id."""

    name: str
    by: str
    measures: Mapping[str, str]
    rows: Mapping[str, str]


def _bar_pages(
    what: _Grouped,
    rows: Sequence[Row],
    key: Callable[[Row], str],
    targets: Sequence[str],
    parts: Parts,
) -> Iterator[Page]:
    heading = _heading(parts, f"results by {what.by}")
    named = ", ".join(what.measures.values())
    text = f"Bars with intervals: {named} by {what.by}, for {', '.join(targets)}."
    most = rows_that_fit(what.rows, targets)
    for name, some in numbered(what.name, even_chunks(list(what.rows), most)):
        there = [row for row in rows if key(row) in some]
        panels = [
            Panel(label(title), {(key(row), row.cell.target): _bar(row, measure) for row in there})
            for measure, title in what.measures.items()
        ]
        sheet = Sheet(heading, panels, {i: what.rows[i] for i in some}, targets, len(panels))
        yield Page(name, heading, text, partial(bar_figure, sheet), partial(_row_numbers, there))


def _bar(row: Row, measure: str) -> Bar:
    found = row.intervals[measure]
    ends = (found.low, found.high) if found else (None, None)
    return Bar(row.values[measure], *ends)


def _row_numbers(rows: Sequence[Row]) -> Numbers:
    """Every measure with its interval and its denominator, whatever of it is drawn."""
    labels = [dimension for dimension, _ in rows[0].labels] if rows else []
    ends = [f"{name}{end}" for name in MEASURES for end in ("", "_low", "_high")]
    counts = ["follow_judged", "avoid_judged", "not_judged"]
    found = tuple(
        (
            *(row.cell.target, row.cell.setting, *(value for _, value in row.labels)),
            *(value for name in MEASURES for value in _ends(row, name)),
            *(row.follow.judged, row.avoid.judged, row.not_judged),
        )
        for row in rows
    )
    return Numbers(("target", "setting", *labels, *ends, *counts), found)


def _ends(row: Row, name: str) -> tuple[float | None, float | None, float | None]:
    found = row.intervals[name]
    low, high = (found.low, found.high) if found else (None, None)
    return row.values[name], low, high


def _topic_pages(parts: Parts, setting: str) -> Iterator[Page]:
    """A page for each target: norm adaptation by topic and culture."""
    rows = [row for row in parts.by_topic.rows if row.cell.setting == setting]
    most = max((row.values["norm_adaptation"] or 0 for row in rows), default=0) or 1
    targets = parts.targets
    for target in targets:
        own = [row for row in rows if row.cell.target == target]
        what = f"norm adaptation by topic and culture, {target}, setting {setting}"
        heading = _heading(parts, what)
        topics = sorted({_value("topic", row) for row in own})
        cultures = sorted({_value("culture", row) for row in own})
        pages = [
            (some, there)
            for some in even_chunks(topics, _ROWS)
            for there in even_chunks(cultures, _COLUMNS)
        ]
        stem = "topics" if len(targets) == 1 else f"topics-{target}"
        for name, (some, there) in numbered(stem, pages):
            shown = [r for r in own if _value("topic", r) in some and _value("culture", r) in there]
            text = f"A table of {len(some)} topics by {len(there)} cultures: norm adaptation."
            sheet = _Tiles(heading, most, some, there, parts.topics)
            yield Page(
                name, heading, text, partial(_draw, sheet, shown), partial(_row_numbers, shown)
            )


@dataclass(frozen=True, slots=True)
class _Tiles:
    """A page of tiles; ``most`` is the value of the darkest colour."""

    heading: str
    most: float
    topics: Sequence[str]
    cultures: Sequence[str]
    names: Mapping[str, str]


def _draw(sheet: _Tiles, shown: Sequence[Row]) -> Figure:
    from matplotlib.colors import LinearSegmentedColormap  # noqa: PLC0415

    tiles = {}
    for row in shown:
        value = row.values["norm_adaptation"]
        tile = Tile(None, UNDEFINED) if value is None else Tile(value / sheet.most, decimal(value))
        tiles[_value("topic", row), _value("culture", row)] = tile
    rows = {name: label(sheet.names.get(name, name), 40) for name in sheet.topics}
    names, wide = heads(sheet.cultures, tiles.values(), _COLUMN)
    width = max(_LABELS + wide * len(names), 4.0)
    tall = max(_ROW, LINE * line_count(*rows.values()))
    head = LINE * line_count(*names) + title_height(sheet.heading, width)
    figure = new_figure(width, head + tall * len(rows) + 0.1)
    colours = LinearSegmentedColormap.from_list("adaptation", ["white", PALETTE[0]])
    columns = dict(zip(sheet.cultures, names, strict=True))
    draw_tiles(figure.subplots(), tiles, rows, columns, colours)
    title(figure, sheet.heading)
    return figure
