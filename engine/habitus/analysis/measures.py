"""The five numbers of CCBench, their draws and their intervals, from sums by persona.

Follow rate: satisfied share of items with state +1. Avoid rate: of items with state -1. Norm
adaptation: of all items. CCS: harmonic mean of the pooled Follow and Avoid rates (arXiv
2607.05405, whose printed cells agree with pooled rates in three of four settings).
``ccs_persona_mean`` is the mean over personas of their own CCS; a persona without judged Follow
or without judged Avoid items has none and is left out. The two differ: a persona with no
satisfied Follow item scores 0, so with few items for each persona the mean lies below the
pooled number.

All five depend on the items only through four sums for each persona (satisfied and counted,
Follow and Avoid), so a draw needs no rows. Where one response stands for all personas, the sums
are by persona and query, and queries are resampled with the personas.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from habitus.statistics import (
    SIGNED,
    FloatArray,
    IntArray,
    Interval,
    IntervalRule,
    Units,
    boundary_interval,
    harmonic_mean,
    harmonic_means,
    ratio,
    resample_counts,
    resampled_interval,
)

MEASURES = ("follow_rate", "avoid_rate", "norm_adaptation", "ccs", "ccs_persona_mean")
FOLLOW, AVOID, ADAPTATION, CCS, PERSONA_MEAN = range(5)

Values = dict[str, float | None]
Intervals = dict[str, Interval | None]
Bounds = dict[str, tuple[float, float] | None]


@dataclass(frozen=True, slots=True)
class Sums:
    """Follow satisfied, Follow counted, Avoid satisfied, Avoid counted, for each persona.

    Shape (4, personas); (4, personas, queries) where queries are resampled too.
    """

    array: FloatArray

    @property
    def crossed(self) -> bool:
        """Whether the sums are kept apart by query."""
        return self.array.ndim == 3

    @property
    def by_persona(self) -> FloatArray:
        """Shape (4, personas)."""
        return self.array.sum(axis=2) if self.crossed else self.array

    def point(self) -> FloatArray:
        """The five measures, NaN where undefined; shape (5,)."""
        by_persona = self.by_persona
        return measures(np.ones((1, by_persona.shape[1])), by_persona)[:, 0]


class Resampler:
    """The draws of one analysis; every number of it uses the same ones.

    Personas are resampled within ``strata`` (their cultures), queries without strata.
    """

    def __init__(
        self, strata: Sequence[str], queries: int, draws: int, seed: int, rule: IntervalRule
    ) -> None:
        self.rule = rule
        names = sorted(set(strata))
        self.strata: IntArray = np.array([names.index(s) for s in strata], dtype=np.int64)
        self.personas = resample_counts(strata, draws, seed, "results/personas")
        self.queries = resample_counts(["queries"] * queries, draws, seed, "results/queries")

    def draws(self, sums: Sums) -> FloatArray:
        """The five measures in each draw; shape (5, draws)."""
        array = sums.array
        if sums.crossed:
            array = self.queries @ array.transpose(0, 2, 1)
        return measures(self.personas, array)

    def units(self, sums: Sums) -> tuple[Units, ...]:
        """For each measure, what takes part in its interval."""
        follow, avoid = sums.array[1] > 0, sums.array[3] > 0
        either = follow | avoid
        parts = (follow, avoid, either, either)
        if not sums.crossed:
            return tuple(Units.of(self.strata, p) for p in (*parts, follow & avoid))
        crossed = [int(p.any(axis=0).sum()) for p in (*parts, either)]
        active = [p.any(axis=1) for p in parts]
        active.append(active[0] & active[1])
        return tuple(Units.of(self.strata, a, q) for a, q in zip(active, crossed, strict=True))

    def intervals(self, sums: Sums) -> Intervals:
        """The interval of each measure; see ``statistics.intervals`` for when there is none."""
        point, units = as_values(sums.point()), self.units(sums)
        if not any(u.enough for u in units):
            return dict.fromkeys(MEASURES)
        draws = self.draws(sums)
        found: Intervals = {}
        for i, name in enumerate(MEASURES):
            value = point[name]
            if value in (0.0, 1.0):
                found[name] = self._at_the_end(i, value, units[i], found)
            else:
                found[name] = resampled_interval(value, draws[i], units[i], self.rule)
        return found

    def difference_intervals(self, a: Sums, b: Sums) -> Intervals:
        """The interval of each difference b - a of measures on the same items."""
        draws = self.draws(b) - self.draws(a)
        point = as_values(b.point() - a.point())
        return {
            name: resampled_interval(point[name], draws[i], units, self.rule, SIGNED)
            for i, (name, units) in enumerate(zip(MEASURES, self.units(a), strict=True))
        }

    def _at_the_end(
        self, measure: int, value: float, units: Units, found: Intervals
    ) -> Interval | None:
        if measure != CCS:
            return boundary_interval(value, units, self.rule)
        # CCS grows with both rates, so their ends bound it.
        follow, avoid = found[MEASURES[FOLLOW]], found[MEASURES[AVOID]]
        if follow is None or avoid is None:
            return None
        low, high = harmonic_mean(follow.low, avoid.low), harmonic_mean(follow.high, avoid.high)
        if low is None or high is None:
            return None
        return Interval(0.0, high) if value == 0 else Interval(low, 1.0)


def measures(weights: FloatArray, sums: FloatArray) -> FloatArray:
    """The five measures under weights.

    Args:
        weights: Shape (draws, personas).
        sums: Shape (4, personas), or (4, draws, personas) where they differ by draw.

    Returns:
        Shape (5, draws), NaN where undefined.
    """
    totals = sums @ weights.T if sums.ndim == 2 else np.einsum("dp,kdp->kd", weights, sums)
    follow, avoid = ratio(totals[0], totals[1]), ratio(totals[2], totals[3])
    every = ratio(totals[0] + totals[2], totals[1] + totals[3])
    own = persona_ccs(sums)
    has = ~np.isnan(own)
    mean = ratio((weights * np.where(has, own, 0.0)).sum(axis=1), (weights * has).sum(axis=1))
    return np.stack([follow, avoid, every, harmonic_means(follow, avoid), mean])


def persona_ccs(sums: FloatArray) -> FloatArray:
    """Each persona's own CCS, NaN where it has no Follow or no Avoid items."""
    return harmonic_means(ratio(sums[0], sums[1]), ratio(sums[2], sums[3]))


def ranges(low: Values, high: Values) -> Bounds:
    """From the values at one extreme to those at the other; None where either is undefined.

    Every measure grows with each item that is satisfied, so that the values if none and if all of
    what is missing were satisfied bound all others (worst-case bounds: Horowitz and Manski 2000,
    Journal of the American Statistical Association 95(449)).
    """
    found: Bounds = {}
    for name in MEASURES:
        a, b = low[name], high[name]
        found[name] = None if a is None or b is None else (a, b)
    return found


def points(bounds: Bounds) -> Values:
    """The values that what is missing cannot change; None for all others."""
    return {
        name: ends[0] if ends is not None and ends[0] == ends[1] else None
        for name, ends in bounds.items()
    }


def outer_intervals(low: Intervals, high: Intervals) -> Intervals:
    """From the lower limit at one extreme to the upper limit at the other."""
    found: Intervals = {}
    for name in MEASURES:
        a, b = low[name], high[name]
        found[name] = None
        if a is not None and b is not None:
            found[name] = Interval(a.low, b.high, max(a.undefined, b.undefined))
    return found


def as_values(numbers: npt.NDArray[np.float64]) -> Values:
    """Five numbers by name, None where undefined."""
    return {
        name: None if np.isnan(x) else float(x) for name, x in zip(MEASURES, numbers, strict=True)
    }
