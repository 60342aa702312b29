"""One characteristic, or one pair of them, in one subset: from rows to estimates and tests.

Levels that cannot be estimated are left out of the fit and say why; the others stay.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Any

import numpy as np

from habitus.framing.analysisfile import AnalysisFile, ThresholdFile
from habitus.framing.estimability import (
    IDENTICAL,
    NO_VARIATION,
    Crossed,
    Used,
    outcome_reason,
)
from habitus.framing.frame import SmallArray
from habitus.framing.results import (
    Between,
    Comparison,
    Delta,
    DeltaComparison,
    Fitted,
    Prevalence,
    Subset,
    Within,
)
from habitus.framing.subsets import Part
from habitus.framing.worstcase import at_worst
from habitus.statistics import (
    BinaryRows,
    Estimate,
    Fit,
    GeeEngine,
    GeeOptions,
    NotEstimable,
    combination,
    log_odds_test,
    probability,
)


@dataclass(frozen=True, slots=True)
class Fitter:
    """How fits are made: the engine, and the rules of the analysis."""

    engine: GeeEngine
    rules: AnalysisFile
    levels: tuple[str, ...]

    def prevalence(
        self, part: Part, name: str, column: SmallArray
    ) -> Fitted[Prevalence, Comparison]:
        """How often each level shows a characteristic."""
        used = self._used(part, (column,))
        model = self._prevalence_model(used)
        rows, cases = _by_level(used, len(self.levels))
        if self.rules.missing.rule == "absent":  # they are in the fit, and counted as missing
            rows = [n - int(missing) for n, missing in zip(rows, used.missing, strict=True)]
        within = tuple(
            Prevalence(
                *(part.subset, name, level, rows[i], cases[i], int(used.missing[i])),
                **_values("estimate", model.probability(i), model.reasons[i]),
            )
            for i, level in enumerate(self.levels)
        )
        between = tuple(
            Comparison(
                *(part.subset, name, self.levels[a], self.levels[b]),
                **_values("difference", *model.difference(a, b)) | _sizes(used, rows, a, b),
            )
            for a, b in self._pairs()
        )
        found = model.fitted(part.subset, name, within, between)
        if self.rules.missing.rule != "bounds" or not used.missing.any():
            return found

        def at(fill: Mapping[int, int]) -> Model:
            filled = Used.of(part, (column,), len(self.levels), fill=fill)
            return self._prevalence_model(filled)

        return at_worst(found, self._pairs(), at)

    def _prevalence_model(self, used: Used) -> Model:
        rows, cases = _by_level(used, len(self.levels))
        reasons = {}
        for i, _ in enumerate(self.levels):
            clusters = used.clusters(np.flatnonzero(used.level == i))
            reasons[i] = outcome_reason(rows[i], cases[i], clusters, self.rules.threshold)
        return self._model(used, reasons)

    def delta(
        self, part: Part, pair: tuple[str, str], columns: tuple[SmallArray, SmallArray]
    ) -> Fitted[Delta, DeltaComparison]:
        """What a cause changes in how often an effect is there."""
        used = self._used(part, columns)
        members = [np.flatnonzero(used.level == i) for i in range(len(self.levels))]
        counts = [Crossed.of(used, member) for member in members]
        reasons = self._delta_reasons(Crossed.of(used, np.arange(len(used.level))), counts)
        model = self._model(used, reasons)
        rows = [found.total for found in counts]
        if self.rules.missing.rule == "absent":
            rows = [n - int(missing) for n, missing in zip(rows, used.missing, strict=True)]
        within = tuple(
            Delta(
                *(part.subset, *pair, level, rows[i]),
                *(found.rows[1], sum(found.effects), found.effects[1]),
                **_values("delta", model.probability(i), model.reasons[i]),
                missing=int(used.missing[i]),
            )
            for i, (level, found) in enumerate(zip(self.levels, counts, strict=True))
        )
        between = tuple(
            DeltaComparison(
                *(part.subset, *pair, self.levels[a], self.levels[b]),
                **_values("difference", *model.difference(a, b)) | _sizes(used, rows, a, b),
            )
            for a, b in self._pairs()
        )
        return model.fitted(part.subset, pair_name(*pair), within, between)

    def _used(self, part: Part, columns: tuple[SmallArray, ...]) -> Used:
        levels, missing = len(self.levels), self.rules.missing
        fill = dict.fromkeys(range(levels), 0) if missing.rule == "absent" else {}
        return Used.of(part, columns, levels, common=missing.common, fill=fill)

    def _pairs(self) -> list[tuple[int, int]]:
        """The later level first, so that differences are from the reference."""
        return [(b, a) for a, b in combinations(range(len(self.levels)), 2)]

    def _delta_reasons(self, whole: Crossed, counts: Sequence[Crossed]) -> dict[int, str]:
        least: ThresholdFile = self.rules.threshold
        few = whole.few(least.cases) if least.rows == "subset" and whole.total else ""
        return {i: few or found.reason(least) for i, found in enumerate(counts)}

    def _model(self, used: Used, reasons: dict[int, str]) -> Model:
        good = [i for i, reason in reasons.items() if not reason]
        if not good:
            return Model(self, used, None, reasons)
        kept = used.only(good)
        cause = kept.labels[0] if len(kept.labels) > 1 else None
        rows = BinaryRows(kept.labels[-1], kept.level, kept.group, cause)
        gee = self.rules.gee
        correlation = gee.correlation if cause is None else gee.pairs_correlation
        options = GeeOptions(correlation, gee.covariance)
        try:
            return Model(self, used, self.engine.fit(rows, options), reasons)
        except NotEstimable as found:
            return Model(self, used, None, reasons | dict.fromkeys(good, str(found)))


class Model:
    """A fit, or why there is none, as a probability or a delta for each level."""

    def __init__(
        self, fitter: Fitter, used: Used, fit: Fit | None, reasons: Mapping[int, str]
    ) -> None:
        self.used = used
        self.fit = fit
        self.levels = fitter.levels
        self.paired = len(used.labels) > 1
        self.coverage = 1 - fitter.rules.significance
        self.clusters = used.cell_clusters()
        self.student = fitter.rules.gee.distribution == "student"
        self.on_log_odds = fitter.rules.gee.differences == "log_odds" and not self.paired
        self.reasons = dict(reasons)
        self.estimates = {i: self._estimate(i) for i in reasons}

    def fitted(
        self, subset: Subset, name: str, within: tuple[Within, ...], between: tuple[Between, ...]
    ) -> Fitted[Within, Between]:
        """The records, with what is to be told of the fit."""
        if self.fit is None:
            return Fitted(subset, name, within, between, self._told(between))
        least = min(self.clusters[cell] for cell in self.fit.place)
        return Fitted(subset, name, within, between, self._told(between), self.fit.fallback, least)

    def probability(self, level: int) -> Estimate | None:
        """The estimate of a level; None where ``reasons`` says why."""
        return self.estimates[level]

    def difference(self, first: int, second: int) -> tuple[Estimate | None, str]:
        """The first level less the second, or why there is none."""
        for level in (second, first):
            if self.reasons[level]:
                return None, f"{self.levels[level]}: {self.reasons[level]}"
        if self.used.identical(first, second):
            return None, IDENTICAL
        assert self.fit is not None  # noqa: S101  (every level would have its reason)
        weights = self._weights(first) | {c: -w for c, w in self._weights(second).items()}
        found = combination(self.fit, weights, self.coverage, self._df(weights))
        if found is None:
            return None, NO_VARIATION
        if not self.on_log_odds:
            return found, ""
        p = log_odds_test(self.fit, weights, self._df(weights))
        if p is None:
            return None, NO_VARIATION
        return Estimate(found.value, found.low, found.high, p), ""

    def _told(self, between: Sequence[Any]) -> str:
        """Everything that is not estimable, in one line."""
        levels: dict[str, list[str]] = {}
        for i, reason in self.reasons.items():
            if reason:
                levels.setdefault(reason, []).append(self.levels[i])
        if len(levels) == 1 and not [r for r in self.reasons.values() if not r]:
            return next(iter(levels))
        told = [f"{', '.join(names)}: {reason}" for reason, names in levels.items()]
        bad = {self.levels[i] for i, reason in self.reasons.items() if reason}
        told += [
            f"{found.first} and {found.second}: {found.reason}"
            for found in between
            if found.reason and not {found.first, found.second} & bad
        ]
        return "; ".join(told)

    def _estimate(self, level: int) -> Estimate | None:
        if self.reasons[level] or self.fit is None:
            return None
        weights = self._weights(level)
        if self.paired:
            found = combination(self.fit, weights, self.coverage, self._df(weights))
        else:
            found = probability(self.fit, level, self.coverage, self._df(weights))
        if found is None:
            self.reasons[level] = NO_VARIATION
        return found

    def _df(self, weights: Mapping[int, float]) -> int | None:
        """Nothing is more certain than its smallest cell; None asks for the normal."""
        return min(self.clusters[cell] for cell in weights) - 1 if self.student else None

    def _weights(self, level: int) -> dict[int, float]:
        return {2 * level + 1: 1.0, 2 * level: -1.0} if self.paired else {level: 1.0}


def pair_name(cause: str, effect: str) -> str:
    """A pair in words."""
    return f"{cause} -> {effect}"


def _by_level(used: Used, levels: int) -> tuple[list[int], list[int]]:
    """Rows and cases of each level."""
    rows = np.bincount(used.level, minlength=levels)
    cases = np.bincount(used.level, used.labels[0], minlength=levels)
    return [int(n) for n in rows], [int(n) for n in cases]


def _values(name: str, found: Estimate | None, reason: str) -> dict[str, Any]:
    if found is None:
        return {"reason": reason}
    return {name: found.value, "low": found.low, "high": found.high, "p": found.p}


def _sizes(used: Used, rows: Sequence[int], a: int, b: int) -> dict[str, Any]:
    return {"rows": rows[a] + rows[b], "missing": int(used.missing[a] + used.missing[b])}
