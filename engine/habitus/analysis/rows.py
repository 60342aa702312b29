"""One row of results: a target in a setting, or a part of it, with every number's denominator."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from habitus.analysis.counting import Answered, Labels, groups
from habitus.analysis.measures import (
    Bounds,
    Intervals,
    Resampler,
    Sums,
    Values,
    as_values,
    outer_intervals,
    points,
    ranges,
)
from habitus.analysis.options import ResultOptions
from habitus.analysis.verdicts import Cell, VerdictTable, outcome_counts
from habitus.statistics import Rate


@dataclass(frozen=True, slots=True)
class Row:
    """The numbers of a cell, over all its items or over one group of them.

        ``personas`` counts those with an item in the denominators, ``left_out`` those of them
        without a CCS of their own. ``bounds`` are the values if none and if all of the missing were
    satisfied, None where few are missing. Under the rule ``bounds`` they are there wherever anything
        is missing, and a value is None unless both are the same. ``crossed``: queries were resampled too.
    """

    cell: Cell
    labels: Labels
    values: Values
    intervals: Intervals
    follow: Rate
    avoid: Rate
    personas: int
    left_out: int
    outcomes: Mapping[str, int]
    bounds: Bounds | None
    crossed: bool
    synthetic: bool

    @property
    def judged(self) -> int:
        """Items with a verdict."""
        return self.follow.judged + self.avoid.judged

    @property
    def not_judged(self) -> int:
        """Items asked without a verdict."""
        return self.follow.missing + self.avoid.missing

    def as_json(self) -> dict[str, Any]:
        """The row as plain data; undefined is None."""
        return {
            "target": self.cell.target,
            "setting": self.cell.setting,
            **dict(self.labels),
            **self.values,
            "judged": self.judged,
            "not_judged": self.not_judged,
            "total": self.judged + self.not_judged,
            **_rate_json("follow", self.follow),
            **_rate_json("avoid", self.avoid),
            "personas": self.personas,
            "personas_left_out": self.left_out,
            "outcomes": dict(self.outcomes),
            "bounds": bounds_json(self.bounds),
            "interval": intervals_json(self.intervals),
            "undefined_draws": undefined_json(self.intervals),
            "resampled": resampled_name(self.crossed),
            "synthetic": self.synthetic,
        }


def intervals_json(intervals: Intervals) -> dict[str, list[float] | None]:
    """Intervals by name, None where there is none."""
    return {name: [found.low, found.high] if found else None for name, found in intervals.items()}


def bounds_json(bounds: Bounds | None) -> dict[str, list[float] | None] | None:
    """Bounds by name, None where few items are missing."""
    return None if bounds is None else {k: list(v) if v else None for k, v in bounds.items()}


def undefined_json(intervals: Intervals) -> dict[str, int]:
    """How many draws were held out, for the intervals where some were."""
    return {k: found.undefined for k, found in intervals.items() if found and found.undefined}


def resampled_name(crossed: bool) -> str:
    """What was resampled, in words."""
    return "personas and queries" if crossed else "personas"


def is_crossed(table: VerdictTable, cells: tuple[int, ...], options: ResultOptions) -> bool:
    """Whether queries are resampled too: by choice, or because answers are shared."""
    return options.queries == "resampled" or any(table.shared[c] for c in cells)


def make_rows(table: VerdictTable, resampler: Resampler, options: ResultOptions) -> list[Row]:
    """Rows by cell and group, in the order of both; a group that a cell was not asked has none."""
    parts = groups(table, options.by)
    rows = []
    for c, cell in enumerate(table.cells):
        crossed = is_crossed(table, (c,), options)
        for group in parts:
            answered = Answered.of(group, table.answers[c])
            if not options.by or answered.asked.any():
                outcomes = outcome_counts(table.failures[c][group.index][answered.missing])
                rows.append(make_row(cell, answered, outcomes, crossed, resampler, options))
    return rows


def make_row(
    cell: Cell,
    answered: Answered,
    outcomes: Mapping[str, int],
    crossed: bool,
    resampler: Resampler,
    options: ResultOptions,
) -> Row:
    """The numbers of one cell's answers to some items, by the rule for what is missing."""
    counted = answered.counted(options.missing)
    sums = answered.group.sums(answered.satisfied, counted, crossed=crossed)
    personas, left_out = _personas(sums)
    values, intervals = as_values(sums.point()), resampler.intervals(sums)
    bounds = _bounds(answered, options)
    if options.missing == "bounds" and bounds is not None:
        most = answered.group.sums(answered.possible, counted, crossed=crossed)
        values = points(bounds)
        intervals = outer_intervals(intervals, resampler.intervals(most))
    return Row(
        cell=cell,
        labels=answered.group.labels,
        values=values,
        intervals=intervals,
        follow=answered.rate(follow=True),
        avoid=answered.rate(follow=False),
        personas=personas,
        left_out=left_out,
        outcomes=outcomes,
        bounds=bounds,
        crossed=crossed,
        synthetic=cell.target in options.synthetic,
    )


def _personas(sums: Sums) -> tuple[int, int]:
    follow, avoid = sums.by_persona[1] > 0, sums.by_persona[3] > 0
    return int((follow | avoid).sum()), int((follow ^ avoid).sum())


def _bounds(answered: Answered, options: ResultOptions) -> Bounds | None:
    """The ends where more than a little is missing; wherever anything is, if that is the rule."""
    asked, missing = answered.asked, np.count_nonzero(answered.missing)
    above = 0.0 if options.missing == "bounds" else options.bounds_above
    if missing <= above * np.count_nonzero(asked):
        return None
    low, high = (
        as_values(answered.group.sums(satisfied, asked, crossed=False).point())
        for satisfied in (answered.satisfied, answered.possible)
    )
    return ranges(low, high)


def _rate_json(name: str, rate: Rate) -> dict[str, int]:
    return {
        f"{name}_satisfied": rate.satisfied,
        f"{name}_judged": rate.judged,
        f"{name}_not_judged": rate.missing,
        f"{name}_total": rate.total,
    }
