"""Estimates, intervals and Wald tests from a fit of log-odds.

    chance = probability(fit, cell)                       # of .5; interval on the log-odds scale
    gap = combination(fit, {a: 1, b: -1})                 # P(a) - P(b), by the delta method
    p = log_odds_test(fit, {a: 1, b: -1})                 # of equal log-odds

With ``df``, degrees of freedom, intervals and tests are those of Student's t: an error that is
estimated from few clusters is itself uncertain. Without, they are those of the normal.

A standard error that is zero, negative or not finite is no certainty but a fit that says nothing:
the estimate is then None. So is one that is zero but for rounding and what a solver leaves: less
than a millionth of a millionth of the variances it is made of, or of what it would be if all rows
were independent. Clusters that are all alike, such as two answers of three in every one, have such
a variance, and tell nothing of how clusters differ.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from statistics import NormalDist

import numpy as np

from habitus.statistics.gee import Fit
from habitus.statistics.resampling import FloatArray
from habitus.statistics.student import student_quantile, student_two_sided

_ROUNDING = 1e-12
_NORMAL = NormalDist()


@dataclass(frozen=True, slots=True)
class Estimate:
    """A number with its interval and the p-value of the test that it is its null value."""

    value: float
    low: float
    high: float
    p: float


def probability(
    fit: Fit, cell: int, coverage: float = 0.95, df: int | None = None
) -> Estimate | None:
    """The probability of a cell, against .5; its interval is that of the log-odds."""
    found = _contrast(fit, {cell: 1.0})
    if found is None:
        return None
    value, error = found
    reach = _quantile(coverage, df) * error
    low, high = _logistic(value - reach), _logistic(value + reach)
    return Estimate(_logistic(value), low, high, _two_sided(value / error, df))


def combination(
    fit: Fit, weights: Mapping[int, float], coverage: float = 0.95, df: int | None = None
) -> Estimate | None:
    """A weighted sum of probabilities of cells, against 0.

    Error and interval are on the scale of the sum, by the delta method; the interval is cut where
    the sum can be no lower or higher.
    """
    shares = {cell: _logistic(float(fit.coefficients[fit.place[cell]])) for cell in weights}
    value = sum(weight * shares[cell] for cell, weight in weights.items())
    slopes = {cell: w * shares[cell] * (1 - shares[cell]) for cell, w in weights.items()}
    error = _error(fit, slopes)
    if error is None:
        return None
    reach = _quantile(coverage, df) * error
    least = sum(weight for weight in weights.values() if weight < 0)
    most = sum(weight for weight in weights.values() if weight > 0)
    low, high = max(value - reach, least), min(value + reach, most)
    return Estimate(value, low, high, _two_sided(value / error, df))


def log_odds_test(fit: Fit, weights: Mapping[int, float], df: int | None = None) -> float | None:
    """The p-value of the test that a weighted sum of log-odds is 0."""
    found = _contrast(fit, weights)
    return None if found is None else _two_sided(found[0] / found[1], df)


def _contrast(fit: Fit, weights: Mapping[int, float]) -> tuple[float, float] | None:
    """A weighted sum of coefficients and its standard error."""
    error = _error(fit, weights)
    if error is None:
        return None
    return sum(w * float(fit.coefficients[fit.place[c]]) for c, w in weights.items()), error


def _error(fit: Fit, weights: Mapping[int, float]) -> float | None:
    places = [fit.place[cell] for cell in weights]
    terms: FloatArray = fit.covariance[np.ix_(places, places)]
    slopes = np.array(list(weights.values()))
    products = slopes[:, None] * terms * slopes[None, :]
    variance = float(products.sum())
    if not math.isfinite(variance):
        return None
    scale = max(float(np.abs(products).sum()), _of_independent_rows(fit, places, slopes))
    if variance <= _ROUNDING * scale:
        return None
    return math.sqrt(variance)


def _of_independent_rows(fit: Fit, places: list[int], slopes: FloatArray) -> float:
    """The variance of a weighted sum of log-odds if no two rows had anything in common."""
    shares = np.array([_logistic(value) for value in fit.coefficients[places].tolist()])
    with np.errstate(divide="ignore"):
        return float((slopes**2 / (fit.rows[places] * shares * (1 - shares))).sum())


def _quantile(coverage: float, df: int | None) -> float:
    above = (1 + coverage) / 2
    return _NORMAL.inv_cdf(above) if df is None else student_quantile(above, df)


def _two_sided(z: float, df: int | None) -> float:
    if df is not None:
        return student_two_sided(z, df)
    return math.erfc(abs(z) / math.sqrt(2))


def _logistic(x: float) -> float:
    return 0.5 * (1 + math.tanh(x / 2))  # which does not overflow
