"""What missing labels can do to a prevalence at worst: the rule ``bounds``.

A share lies between the one if none of what is missing were a case and the one if all of it were
(Horowitz and Manski 2000, Journal of the American Statistical Association 95(449)); a difference of two
between the extremes that make it least and most. Beside each estimate, which leaves out what is missing,
stand these two, counted. Fits at both extremes give its interval, from the lower limit of the one to the
upper limit of the other, and its p: the larger of the two, and 1 where they lie on both sides of what is
tested. So nothing is significant that is not so at both. Where an extreme has no estimate, the record
has none, and says why.

The module does not know how a fit is made.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any, Protocol, TypeVar

from habitus.framing.results import Comparison, Fitted, Prevalence
from habitus.statistics import Estimate

_HALF = 0.5
R = TypeVar("R", Prevalence, Comparison)


class Extreme(Protocol):
    """A fit at one extreme."""

    @property
    def reasons(self) -> Mapping[int, str]:
        """Why a level has no estimate."""
        ...

    def probability(self, level: int) -> Estimate | None:
        """The estimate of a level."""
        ...

    def difference(self, first: int, second: int) -> tuple[Estimate | None, str]:
        """The first level less the second, or why there is none."""
        ...


At = Callable[[Mapping[int, int]], Extreme]


def at_worst(
    found: Fitted[Prevalence, Comparison], pairs: Sequence[tuple[int, int]], at: At
) -> Fitted[Prevalence, Comparison]:
    """A fit with what its missing labels allow.

    Args:
        found: the fit that leaves them out.
        pairs: numbers of the levels of each comparison.
        at: makes the fit in which the missing labels of some levels are taken for 1 or 0.
    """
    worst = _Worst(found.within, at)
    within = tuple(worst.prevalence(i) for i, _ in enumerate(found.within))
    between = tuple(
        worst.comparison(record, *pair) for record, pair in zip(found.between, pairs, strict=True)
    )
    told = [
        f"{new.level}: {new.reason}"
        for old, new in zip(found.within, within, strict=True)
        if new.reason != old.reason
    ]
    told += [
        f"{new.first} and {new.second}: {new.reason}"
        for old, new in zip(found.between, between, strict=True)
        if new.reason != old.reason
    ]
    reason = "; ".join([*filter(None, [found.reason]), *told])
    return replace(found, within=within, between=between, reason=reason)


class _Worst:
    """The extremes of one fit; each is fitted once."""

    def __init__(self, levels: Sequence[Prevalence], at: At) -> None:
        self._levels = levels
        self._at = at
        self._made: dict[tuple[tuple[int, int], ...], Extreme] = {}

    def prevalence(self, level: int) -> Prevalence:
        record = self._levels[level]
        if not record.missing or not record.total:
            return record
        low, high = self._model({level: 0}), self._model({level: 1})
        ends = [(m.probability(level), m.reasons[level]) for m in (low, high)]
        values = _between(record, "estimate", ends, _HALF)
        lowest, highest = self._shares(level)
        return replace(record, **values, lowest=lowest, highest=highest)

    def comparison(self, record: Comparison, first: int, second: int) -> Comparison:
        one, other = self._levels[first], self._levels[second]
        if not (one.missing or other.missing) or not (one.total and other.total):
            return record
        ends = [self._model({first: a, second: 1 - a}).difference(first, second) for a in (0, 1)]
        values = _between(record, "difference", ends, 0.0)
        (least, most), (low, high) = self._shares(first), self._shares(second)
        return replace(record, **values, lowest=least - high, highest=most - low)

    def _model(self, fill: Mapping[int, int]) -> Extreme:
        """The fit at an extreme; levels of which nothing is missing are no part of it."""
        given = tuple((i, v) for i, v in sorted(fill.items()) if self._levels[i].missing)
        if given not in self._made:
            self._made[given] = self._at(dict(given))
        return self._made[given]

    def _shares(self, level: int) -> tuple[float, float]:
        found = self._levels[level]
        return found.cases / found.total, (found.cases + found.missing) / found.total


def _between(
    record: R, name: str, ends: Sequence[tuple[Estimate | None, str]], null: float
) -> dict[str, Any]:
    """Interval and p from the fits at both ends, or no estimate where one has none."""
    (low, _), (high, _) = ends
    if record.reason:
        return {}
    if low is None or high is None:
        which = "not the case" if low is None else "the case"
        why = next(reason for found, reason in ends if found is None)
        reason = f"if all that is missing were {which} (of the first): {why}"
        if isinstance(record, Prevalence):
            reason = f"if all that is missing were {which}: {why}"
        gone: dict[str, Any] = dict.fromkeys((name, "low", "high", "p"))
        return {**gone, "reason": reason}
    apart = (low.value - null) * (high.value - null) <= 0
    return {"low": low.low, "high": high.high, "p": 1.0 if apart else max(low.p, high.p)}
