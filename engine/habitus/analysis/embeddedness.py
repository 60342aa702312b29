"""Embeddedness against adaptation: does a model fit a persona better the more it follows?

Embeddedness is the share of a persona's non-neutral norms that it follows. Beware of norm
adaptation here: a persona's adaptation is e * Follow rate + (1 - e) * Avoid rate with e its
embeddedness, so it falls with e wherever Avoid rates are the higher ones, even for a model that
ignores the persona. CCS gives both rates the same weight and has no such slope built in, so it
is given beside it. Cultures differ in both numbers; the correlation within cultures leaves
those differences out.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from habitus.analysis.counting import Answered, groups
from habitus.analysis.measures import Intervals, Resampler, persona_ccs
from habitus.analysis.options import MissingRule, ResultOptions
from habitus.analysis.rows import intervals_json, is_crossed, undefined_json
from habitus.analysis.verdicts import Cell, VerdictTable
from habitus.statistics import (
    SIGNED,
    FloatArray,
    Units,
    pearson,
    ratio,
    resampled_interval,
    spearman,
)

CORRELATIONS = ("pearson", "spearman", "pearson_within_cultures")


@dataclass(frozen=True, slots=True)
class Point:
    """One persona in one cell; ``judged`` items stand behind its rates."""

    persona: str
    culture: str
    embeddedness: float
    norm_adaptation: float | None
    follow_rate: float | None
    avoid_rate: float | None
    ccs: float | None
    judged: int


@dataclass(frozen=True, slots=True)
class Correlation:
    """Correlations of embeddedness with one measure over ``personas`` that have both."""

    personas: int
    values: Mapping[str, float | None]
    intervals: Intervals

    def as_json(self) -> dict[str, Any]:
        """As plain data; undefined is None."""
        return {
            "personas": self.personas,
            **self.values,
            "interval": intervals_json(self.intervals),
            "undefined_draws": undefined_json(self.intervals),
        }


@dataclass(frozen=True, slots=True)
class Embeddedness:
    """The points of one cell and their correlations, for norm adaptation and for CCS."""

    cell: Cell
    norm_adaptation: Correlation
    ccs: Correlation
    points: tuple[Point, ...]
    synthetic: bool

    def as_json(self) -> dict[str, Any]:
        """As plain data; undefined is None."""
        return {
            "target": self.cell.target,
            "setting": self.cell.setting,
            "norm_adaptation": self.norm_adaptation.as_json(),
            "ccs": self.ccs.as_json(),
            "points": [
                {name: getattr(point, name) for name in Point.__slots__} for point in self.points
            ],
            "synthetic": self.synthetic,
        }


def make_embeddedness(
    table: VerdictTable, resampler: Resampler, options: ResultOptions
) -> list[Embeddedness]:
    """For each cell, its personas' points and the correlations over them.

    There is no interval where queries are resampled too.
    """
    group = groups(table, ())[0]
    x = np.array([table.design.embeddedness(p) for p in table.personas], dtype=np.float64)
    found = []
    for c, cell in enumerate(table.cells):
        answered = Answered.of(group, table.answers[c])
        # A correlation has no worst case that is simple: it leaves out what is missing.
        rule: MissingRule = "exclude" if options.missing == "bounds" else options.missing
        counted = answered.counted(rule)
        sums = group.sums(answered.satisfied, counted, crossed=False).array
        adaptation, ccs = ratio(sums[0] + sums[2], sums[1] + sums[3]), persona_ccs(sums)
        crossed = is_crossed(table, (c,), options)
        a, b = (_correlation(x, y, resampler, crossed) for y in (adaptation, ccs))
        points = _points(table, x, sums, ccs)
        found.append(Embeddedness(cell, a, b, points, cell.target in options.synthetic))
    return found


def _correlation(x: FloatArray, y: FloatArray, resampler: Resampler, crossed: bool) -> Correlation:
    has = ~np.isnan(x) & ~np.isnan(y)
    x, y, strata = x[has], y[has], resampler.strata[has]
    values: dict[str, float | None] = {}
    intervals: Intervals = dict.fromkeys(CORRELATIONS)
    units = Units.of(resampler.strata, has)
    for name in CORRELATIONS:
        values[name] = None
        # A correlation of two points is always 1 or -1: it says nothing.
        if len(x) < 3:
            continue
        r = float(_coefficients(name, np.ones((1, len(x))), x, y, strata)[0])
        values[name] = None if np.isnan(r) else r
        if not crossed:
            draws = _coefficients(name, resampler.personas[:, has], x, y, strata)
            intervals[name] = resampled_interval(values[name], draws, units, resampler.rule, SIGNED)
    return Correlation(len(x), values, intervals)


def _coefficients(
    name: str, counts: FloatArray, x: FloatArray, y: FloatArray, strata: np.ndarray[Any, Any]
) -> FloatArray:
    if name == "spearman":
        return spearman(counts, x, y)
    return pearson(counts, x, y, strata if name == "pearson_within_cultures" else None)


def _points(
    table: VerdictTable, x: FloatArray, sums: FloatArray, ccs: FloatArray
) -> tuple[Point, ...]:
    follow, avoid = ratio(sums[0], sums[1]), ratio(sums[2], sums[3])
    adaptation = ratio(sums[0] + sums[2], sums[1] + sums[3])
    return tuple(
        Point(
            persona=persona,
            culture=table.design.culture(persona),
            embeddedness=float(x[i]),
            norm_adaptation=_number(adaptation[i]),
            follow_rate=_number(follow[i]),
            avoid_rate=_number(avoid[i]),
            ccs=_number(ccs[i]),
            judged=int(sums[1, i] + sums[3, i]),
        )
        for i, persona in enumerate(table.personas)
        if not np.isnan(x[i])
    )


def _number(x: float) -> float | None:
    return None if np.isnan(x) else float(x)
