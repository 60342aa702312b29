"""Student's t for whole degrees of freedom, without a statistics package.

    student_quantile(0.975, 9)      # 2.262
    student_two_sided(2.262, 9)     # .05

The distribution has a closed form in the angle whose tangent is t / sqrt(df) (Abramowitz and
Stegun 1964, 26.7.3 and 26.7.4); the quantile is found by halving. That form has a term for every
second degree of freedom, so from 200 on the quantile is that of the normal with the corrections of
26.7.5. Tails are an incomplete beta function by its continued fraction, which loses nothing where
they are small.
"""

from __future__ import annotations

import math
from functools import lru_cache
from statistics import NormalDist

_MANY = 200
_TERMS = 10_000
_CLOSE = 1e-15


@lru_cache(maxsize=1024)
def student_quantile(probability: float, df: int) -> float:
    """The t that a Student variable with ``df`` degrees of freedom stays below.

    Args:
        probability: From .5 up to, not including, 1.
        df: Degrees of freedom, at least 1.

    Raises:
        ValueError: For values outside these ranges.
    """
    if not 0.5 <= probability < 1 or df < 1:
        raise ValueError(f"no t quantile for probability {probability} and {df} degrees of freedom")
    if df >= _MANY:
        return _near_normal(NormalDist().inv_cdf(probability), df)
    central = 2 * probability - 1
    low, high = 0.0, math.pi / 2
    for _ in range(60):
        middle = (low + high) / 2
        if _central_probability(middle, df) < central:
            low = middle
        else:
            high = middle
    return math.tan((low + high) / 2) * math.sqrt(df)


def student_two_sided(t: float, df: int) -> float:
    """The chance that a Student variable with ``df`` degrees of freedom is as far from 0 as ``t``.

    Raises:
        ValueError: for fewer than one degree of freedom.
    """
    if df < 1:
        raise ValueError(f"no Student variable has {df} degrees of freedom")
    beyond = t * t / df
    if not math.isfinite(beyond):
        return 0.0
    log_x = -math.log1p(beyond)
    log_rest = math.log(beyond) + log_x if beyond else -math.inf
    if beyond > 3 / (df + 2):  # where the fraction of this tail is the one that converges soon
        return _beta(log_x, log_rest, df / 2, 0.5)
    return 1.0 - _beta(log_rest, log_x, 0.5, df / 2)


def _near_normal(z: float, df: int) -> float:
    """A quantile from that of the normal, in powers of 1 / df."""
    w = z * z
    terms = (
        (w + 1) / 4,
        ((5 * w + 16) * w + 3) / 96,
        (((3 * w + 19) * w + 17) * w - 15) / 384,
        ((((79 * w + 776) * w + 1482) * w - 1920) * w - 945) / 92160,
    )
    return z * (1 + sum(term / float(df) ** power for power, term in enumerate(terms, start=1)))


def _beta(log_x: float, log_rest: float, a: float, b: float) -> float:
    """The incomplete beta function at x, from the logarithms of x and 1 - x (DLMF 8.17.22)."""
    if log_x == -math.inf:
        return 0.0
    x, fraction, upper, lower = math.exp(log_x), 1.0, 1.0, 0.0
    for step in range(1, _TERMS):
        term = _term(step, x, a, b)
        lower = 1.0 / (1.0 + term * lower)
        upper = 1.0 + term / upper
        fraction *= upper * lower
        if abs(upper * lower - 1.0) < _CLOSE:
            break
    whole = math.lgamma(a) + math.lgamma(b) - math.lgamma(a + b)
    return math.exp(a * log_x + b * log_rest - whole) / (a * fraction)


def _term(step: int, x: float, a: float, b: float) -> float:
    """One of the numerators of the continued fraction."""
    m = step // 2
    if step % 2:
        return -(a + m) * (a + b + m) * x / ((a + 2 * m) * (a + 2 * m + 1))
    return m * (b - m) * x / ((a + 2 * m - 1) * (a + 2 * m))


def _central_probability(theta: float, df: int) -> float:
    """The chance that the absolute value of t is below tan(theta) * sqrt(df)."""
    odd = df % 2
    cosine = math.cos(theta)
    term = cosine if odd else 1.0
    total = term if df > 1 else 0.0
    for k in range(3 if odd else 2, df - 1, 2):
        term *= (k - 1) / k * cosine * cosine
        total += term
    total *= math.sin(theta)
    return 2 / math.pi * (theta + total) if odd else total
