"""Estimates, intervals and Wald tests from a fit of log-odds.

    chance = probability(fit, cell)                       # of .5; interval on the log-odds scale
    gap = combination(fit, {a: 1, b: -1})                 # P(a) - P(b), by the delta method
    p = log_odds_test(fit, {a: 1, b: -1})                 # of equal log-odds

A standard error that is zero, negative or not finite is no certainty but a fit that says nothing:
the estimate is then None. So is one that is zero but for rounding: less than a millionth of a
millionth of the variances it is made of.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from statistics import NormalDist

import numpy as np

from habitus.statistics.gee import Fit
from habitus.statistics.resampling import FloatArray

_ROUNDING = 1e-12
_NORMAL = NormalDist()


@dataclass(frozen=True, slots=True)
class Estimate:
    """A number with its interval and the p-value of the test that it is its null value."""

    value: float
    low: float
    high: float
    p: float


def probability(fit: Fit, cell: int, coverage: float = 0.95) -> Estimate | None:
    """The probability of a cell, against .5; its interval is that of the log-odds."""
    found = _contrast(fit, {cell: 1.0})
    if found is None:
        return None
    value, error = found
    reach = _quantile(coverage) * error
    low, high = _logistic(value - reach), _logistic(value + reach)
    return Estimate(_logistic(value), low, high, _two_sided(value / error))


def combination(fit: Fit, weights: Mapping[int, float], coverage: float = 0.95) -> Estimate | None:
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
    reach = _quantile(coverage) * error
    least = sum(weight for weight in weights.values() if weight < 0)
    most = sum(weight for weight in weights.values() if weight > 0)
    low, high = max(value - reach, least), min(value + reach, most)
    return Estimate(value, low, high, _two_sided(value / error))


def log_odds_test(fit: Fit, weights: Mapping[int, float]) -> float | None:
    """The p-value of the test that a weighted sum of log-odds is 0."""
    found = _contrast(fit, weights)
    return None if found is None else _two_sided(found[0] / found[1])


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
    variance, scale = float(products.sum()), float(np.abs(products).sum())
    if not math.isfinite(variance) or variance <= _ROUNDING * scale:
        return None
    return math.sqrt(variance)


def _quantile(coverage: float) -> float:
    return _NORMAL.inv_cdf((1 + coverage) / 2)


def _two_sided(z: float) -> float:
    return math.erfc(abs(z) / math.sqrt(2))


def _logistic(x: float) -> float:
    return 0.5 * (1 + math.tanh(x / 2))  # which does not overflow
