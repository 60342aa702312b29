"""The share of responses that the safety judge calls unsafe, beside CCS.

A response that accommodates a harmful practice scores well on CCS; this share is what says so.
Counted by response, not by item. In a shared ``none`` a response has no persona, and queries are
the clusters instead.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from habitus.analysis.design import Design, setting_rank
from habitus.analysis.options import ResultOptions
from habitus.analysis.verdicts import Cell
from habitus.records import Outcome, SafetyLabel
from habitus.statistics import (
    Interval,
    Rate,
    Units,
    boundary_interval,
    ratio,
    resample_counts,
    resampled_interval,
)


@dataclass(frozen=True, slots=True)
class SafetyRow:
    """How many responses of a cell were labelled unsafe, of how many labelled."""

    cell: Cell
    unsafe: Rate
    interval: Interval | None
    outcomes: Mapping[str, int]
    synthetic: bool

    def as_json(self) -> dict[str, Any]:
        """As plain data; undefined is None."""
        return {
            "target": self.cell.target,
            "setting": self.cell.setting,
            "unsafe_rate": self.unsafe.value,
            "unsafe": self.unsafe.satisfied,
            "judged": self.unsafe.judged,
            "not_judged": self.unsafe.missing,
            "total": self.unsafe.total,
            "bounds": (self.unsafe.missing and list(self.unsafe.bounds or ())) or None,
            "outcomes": dict(self.outcomes),
            "interval": {"unsafe_rate": self.interval and [self.interval.low, self.interval.high]},
            "synthetic": self.synthetic,
        }


@dataclass
class _Tally:
    """Unsafe and judged by cluster; a cluster is (stratum, persona or query)."""

    unsafe: Counter[tuple[str, str]] = field(default_factory=Counter)
    judged: Counter[tuple[str, str]] = field(default_factory=Counter)
    outcomes: Counter[str] = field(default_factory=Counter)


def safety_rows(
    labels: Iterable[SafetyLabel], design: Design, options: ResultOptions | None = None
) -> tuple[SafetyRow, ...]:
    """Rows by target and setting from labels in any order; none when there are no labels."""
    options = options or ResultOptions()
    tallies: dict[Cell, _Tally] = {}
    for label in labels:
        tally = tallies.setdefault(Cell(label.target, label.setting), _Tally())
        if label.outcome is not Outcome.OK or label.unsafe is None:
            failed = Outcome.UNPARSED if label.outcome is Outcome.OK else label.outcome
            tally.outcomes[str(failed)] += 1
            continue
        shared = label.persona == "-"
        cluster = ("-", label.query) if shared else (design.culture(label.persona), label.persona)
        tally.judged[cluster] += 1
        tally.unsafe[cluster] += label.unsafe
    order = sorted(tallies, key=lambda cell: (cell.target, setting_rank(cell.setting)))
    return tuple(_row(cell, tallies[cell], options) for cell in order)


def _row(cell: Cell, tally: _Tally, options: ResultOptions) -> SafetyRow:
    clusters = sorted(tally.judged)
    unsafe, judged = (
        np.array([counter[c] for c in clusters], dtype=np.float64)
        for counter in (tally.unsafe, tally.judged)
    )
    rate = Rate(int(unsafe.sum()), int(judged.sum()), tally.outcomes.total())
    strata = [stratum for stratum, _ in clusters]
    return SafetyRow(
        cell=cell,
        unsafe=rate,
        interval=clustered_interval(rate, (unsafe, judged), strata, options),
        outcomes=dict(sorted(tally.outcomes.items())),
        synthetic=cell.target in options.synthetic,
    )


def clustered_interval(
    rate: Rate,
    sums: tuple[np.ndarray[Any, Any], np.ndarray[Any, Any]],
    strata: list[str],
    options: ResultOptions,
) -> Interval | None:
    """The interval of one rate from satisfied and judged sums by cluster."""
    if rate.value is None:
        return None
    names = sorted(set(strata))
    codes = np.array([names.index(s) for s in strata], dtype=np.int64)
    units = Units.of(codes, sums[1] > 0)
    if rate.value in (0.0, 1.0):
        return boundary_interval(rate.value, units, options.rule)
    counts = resample_counts(strata, options.draws, options.seed, "results/clusters")
    draws = ratio(counts @ sums[0], counts @ sums[1])
    return resampled_interval(rate.value, draws, units, options.rule)
