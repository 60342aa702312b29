"""Quantiles of Student's t for whole degrees of freedom, without a statistics package.

The distribution has a closed form in the angle whose tangent is t / sqrt(df) (Abramowitz and
Stegun 1964, 26.7.3 and 26.7.4); the quantile is found by halving.
"""

from __future__ import annotations

import math
from functools import lru_cache


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
    central = 2 * probability - 1
    low, high = 0.0, math.pi / 2
    for _ in range(60):
        middle = (low + high) / 2
        if _central_probability(middle, df) < central:
            low = middle
        else:
            high = middle
    return math.tan((low + high) / 2) * math.sqrt(df)


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
