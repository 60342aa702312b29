"""Correlations of points under resampling, all draws at once.

A draw is a row of counts, so a resampled correlation is a weighted one. Ranks are taken anew
within each draw, ties sharing their mean rank, exactly as if the resampled points were written
out one by one.
"""

from __future__ import annotations

import numpy as np

from habitus.statistics.rates import ratio
from habitus.statistics.resampling import FloatArray, IntArray


def pearson(
    counts: FloatArray, x: FloatArray, y: FloatArray, groups: IntArray | None = None
) -> FloatArray:
    """Pearson's correlation in each draw.

    Args:
        counts: Shape (draws, n).
        x: Shape (n,), or (draws, n) where the values differ by draw.
        y: As ``x``.
        groups: A code for each of the n points: deviations are then taken from the means of
            the groups, which leaves what happens within them. One group when left out.

    Returns:
        Shape (draws,); NaN where a draw has no spread in x or in y.
    """
    dx, dy = (_deviations(counts, values, groups) for values in (x, y))
    sxx, syy = _sum(counts, dx * dx), _sum(counts, dy * dy)
    # Rounding leaves a little spread where all points of a draw are the same.
    spread = (sxx > 1e-12 * _sum(counts, x * x)) & (syy > 1e-12 * _sum(counts, y * y))
    r = ratio(_sum(counts, dx * dy), np.sqrt(sxx * syy) * spread)
    return np.clip(r, -1.0, 1.0)


def spearman(counts: FloatArray, x: FloatArray, y: FloatArray) -> FloatArray:
    """Spearman's rank correlation in each draw; x and y of shape (n,)."""
    return pearson(counts, _ranks(counts, x), _ranks(counts, y))


def _deviations(counts: FloatArray, values: FloatArray, groups: IntArray | None) -> FloatArray:
    codes = np.zeros(counts.shape[1], dtype=np.int64) if groups is None else groups
    member = np.eye(int(codes.max()) + 1)[codes]
    means = ratio((counts * values) @ member, counts @ member)[:, codes]
    # A group that a draw leaves out weighs nothing there.
    return np.where(counts > 0, values - means, 0.0)


def _ranks(counts: FloatArray, x: FloatArray) -> FloatArray:
    below = np.where(x[:, None] < x[None, :], 1.0, 0.0)
    below[x[:, None] == x[None, :]] = 0.5
    ranks: FloatArray = counts @ below + 0.5
    return ranks


def _sum(counts: FloatArray, values: FloatArray) -> FloatArray:
    total: FloatArray = (counts * values).sum(axis=1)
    return total
