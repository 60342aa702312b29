"""Intervals from resampled draws, and when there is none.

``percentile`` reads two quantiles of the draws. With few clusters that is too short, for two
reasons: resampling n clusters understates their variance by (n - 1) / n, and a normal quantile
stands where Student's t is due. In simulations of this benchmark a 95% interval covers about
93% of the time with 6 x 10 clusters, 88% with 10 and 50% with 2.

``logit_t``, the default, takes only the spread of the draws and repairs both: on the log-odds
scale it is the estimate plus or minus t * SE * sqrt(N / (N - H)), for N clusters in H strata and
t with N - H degrees of freedom (Korn and Graubard 1998, Survey Methodology 24(2), for
proportions from clustered samples; the square root is the correction in Hesterberg 2015, The
American Statistician 69(4), section 5). It covers at about the nominal rate from 2 clusters on,
is the same width as the other one where clusters are many, and stays inside the range.

There is no interval (None) when a stratum has one cluster only (nothing says how clusters
differ there), when too many draws are undefined, and when all draws agree on a value inside the
range: no spread was seen, which is not the same as certainty. When every cluster sits on one end
of the range (0 of 500), resampling can only repeat it; :func:`boundary_interval` then gives an
exact one from the number of clusters.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal

import numpy as np
import numpy.typing as npt

from habitus.statistics.resampling import FloatArray, IntArray
from habitus.statistics.student import student_quantile

Method = Literal["logit_t", "percentile"]
Scale = tuple[float, float]

SHARE: Scale = (0.0, 1.0)
SIGNED: Scale = (-1.0, 1.0)

_NO_SPREAD = 1e-12


@dataclass(frozen=True, slots=True)
class IntervalRule:
    """How draws become an interval.

    ``level`` is the nominal coverage; ``undefined_limit`` the share of undefined draws above
    which there is no interval.
    """

    method: Method = "logit_t"
    level: float = 0.95
    undefined_limit: float = 0.1


@dataclass(frozen=True, slots=True)
class Units:
    """What was resampled: clusters in strata, and perhaps a second, crossed axis.

    ``smallest`` is the number of clusters in the smallest stratum; ``crossed`` the number of
    units on the second axis, None where only clusters were resampled.
    """

    clusters: int
    strata: int
    smallest: int
    crossed: int | None = None

    @classmethod
    def of(
        cls, strata: IntArray, active: npt.NDArray[np.bool_], crossed: int | None = None
    ) -> Units:
        """Count the clusters that take part; ``strata`` holds a code for each cluster."""
        sizes = np.bincount(strata[active])
        sizes = sizes[sizes > 0]
        if not len(sizes):
            return cls(0, 0, 0, crossed)
        return cls(int(sizes.sum()), len(sizes), int(sizes.min()), crossed)

    @property
    def enough(self) -> bool:
        """Whether spread can be seen at all: two units in every stratum and on each axis."""
        return self.smallest >= 2 and (self.crossed is None or self.crossed >= 2)

    @property
    def independent(self) -> int:
        """Number of independent units: the shorter axis where two were resampled."""
        return self.clusters if self.crossed is None else min(self.clusters, self.crossed)

    @property
    def df(self) -> int:
        """Degrees of freedom of the variance between units."""
        df = self.clusters - self.strata
        return df if self.crossed is None else min(df, self.crossed - 1)

    @property
    def stretch(self) -> float:
        """What the standard error of the draws lacks: sqrt(N / (N - H)), on the worse axis."""
        stretch = self.clusters / (self.clusters - self.strata)
        if self.crossed is not None:
            stretch = max(stretch, self.crossed / (self.crossed - 1))
        return math.sqrt(stretch)


@dataclass(frozen=True, slots=True)
class Interval:
    """An interval, and how many of its draws were undefined and held out."""

    low: float
    high: float
    undefined: int = 0


def resampled_interval(
    estimate: float | None,
    draws: FloatArray,
    units: Units,
    rule: IntervalRule | None = None,
    scale: Scale = SHARE,
) -> Interval | None:
    """The interval of one statistic from its draws.

    Args:
        estimate: The statistic itself; None where it is undefined.
        draws: Shape (draws,), NaN where a draw leaves the statistic undefined.
        units: What was resampled.
        rule: Method and level; the 95% ``logit_t`` interval when left out.
        scale: The statistic's range: ``SHARE`` for rates, ``SIGNED`` for differences of rates
            and correlations (there the log-odds scale is Fisher's).

    Returns:
        None where no interval can be given (see the module's text).
    """
    rule = rule or IntervalRule()
    if estimate is None or not units.enough:
        return None
    defined = draws[~np.isnan(draws)]
    undefined = len(draws) - len(defined)
    if not len(defined) or undefined > rule.undefined_limit * len(draws):
        return None
    if np.ptp(defined) <= _NO_SPREAD or estimate in scale:
        return None
    low, high = _ends(estimate, defined, units, rule, scale)
    return Interval(low, high, undefined)


def boundary_interval(
    value: float, units: Units, rule: IntervalRule | None = None
) -> Interval | None:
    """An interval for a share that is exactly 0, or exactly 1, in every cluster.

    Were the chance that a cluster departs from the value ``q``, no departure among n clusters
    has chance (1 - q)^n; the end is the q that makes it alpha / 2 (Clopper and Pearson 1934,
    with clusters as trials). A share is at most the chance that its cluster departs at all, so
    the interval is wide rather than narrow: for 60 clusters it is [0, .060].
    """
    rule = rule or IntervalRule()
    if not units.enough or value not in SHARE:
        return None
    reach = 1 - ((1 - rule.level) / 2) ** (1 / units.independent)
    return Interval(0.0, reach) if value == 0 else Interval(1 - reach, 1.0)


def _ends(
    estimate: float, draws: FloatArray, units: Units, rule: IntervalRule, scale: Scale
) -> tuple[float, float]:
    tail = (1 - rule.level) / 2
    if rule.method == "percentile":
        low, high = np.quantile(draws, [tail, 1 - tail])
        return float(low), float(high)
    reach = student_quantile(1 - tail, units.df) * units.stretch * float(draws.std())
    width = scale[1] - scale[0]
    share = (estimate - scale[0]) / width
    centre = math.log(share / (1 - share))
    step = reach / width / (share * (1 - share))
    return (
        scale[0] + width * _logistic(centre - step),
        scale[0] + width * _logistic(centre + step),
    )


def _logistic(x: float) -> float:
    # tanh does not overflow, whatever the step.
    return 0.5 * (1 + math.tanh(x / 2))
