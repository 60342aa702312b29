"""Rates with denominators and intervals that know which rows belong together.

Numbers in, numbers out: nothing here knows a persona, a setting or a metric by name. A rate
whose denominator is zero is undefined (None for one value, NaN inside arrays of draws) and is
never turned into a zero.

    counts = resample_counts(cultures, draws=2000, seed=7, purpose="personas")
    draws = ratio(counts @ satisfied, counts @ judged)        # 2,000 rates, no loop
    interval = resampled_interval(rate, draws, Units.of(codes, judged > 0))

    fit = StatsmodelsGee().fit(BinaryRows(outcome, level, group), GeeOptions())
    combination(fit, {0: 1, 1: -1})                           # a difference of probabilities
"""

from habitus.statistics.correlations import pearson, spearman
from habitus.statistics.fdr import benjamini_hochberg
from habitus.statistics.gee import (
    BinaryRows,
    Correlation,
    Covariance,
    Fit,
    GeeEngine,
    GeeOptions,
    NotEstimable,
    StatsmodelsGee,
)
from habitus.statistics.intervals import (
    SHARE,
    SIGNED,
    Interval,
    IntervalRule,
    Method,
    Units,
    boundary_interval,
    resampled_interval,
)
from habitus.statistics.rates import Rate, harmonic_mean, harmonic_means, ratio
from habitus.statistics.resampling import FloatArray, IntArray, resample_counts
from habitus.statistics.student import student_quantile, student_two_sided
from habitus.statistics.wald import Estimate, combination, log_odds_test, probability

__all__ = [
    "SHARE",
    "SIGNED",
    "BinaryRows",
    "Correlation",
    "Covariance",
    "Estimate",
    "Fit",
    "FloatArray",
    "GeeEngine",
    "GeeOptions",
    "IntArray",
    "Interval",
    "IntervalRule",
    "Method",
    "NotEstimable",
    "Rate",
    "StatsmodelsGee",
    "Units",
    "benjamini_hochberg",
    "boundary_interval",
    "combination",
    "harmonic_mean",
    "harmonic_means",
    "log_odds_test",
    "pearson",
    "probability",
    "ratio",
    "resample_counts",
    "resampled_interval",
    "spearman",
    "student_quantile",
    "student_two_sided",
]
