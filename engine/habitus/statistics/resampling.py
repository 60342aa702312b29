"""The cluster bootstrap as matrices of counts.

Items of one persona are not independent, so whole personas are resampled, with replacement and
within their stratum (Davison and Hinkley 1997, section 3.8; Field and Welsh 2007). A draw is a
row of counts: how often each cluster was taken. A statistic that is made of sums over items
then needs only the sums by cluster, and 2,000 draws are one matrix product.

Where the same answer stands for many personas (one axis persona, the other query), both axes
are resampled and an item weighs the product of its two counts. That is the pigeonhole bootstrap
(Owen 2007, Annals of Applied Statistics 1(2)), whose variance is never too small on average.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from habitus.records import generator

FloatArray = npt.NDArray[np.float64]
IntArray = npt.NDArray[np.int64]


def resample_counts(strata: Sequence[str], draws: int, seed: int, purpose: str) -> FloatArray:
    """How often each cluster is taken in each draw.

    Args:
        strata: The stratum of each of n clusters, in any order.
        draws: Number of draws.
        seed: Seed of the experiment.
        purpose: What the draws are for; another purpose gives independent draws.

    Returns:
        Counts of shape (draws, n) as floats, so that products with sums stay exact. In each
        draw the counts of a stratum add up to its size. A stratum has a generator of its own:
        adding a stratum changes nothing in the others.
    """
    counts = np.zeros((draws, len(strata)))
    names = np.asarray(strata, dtype=object)
    for stratum in sorted(set(strata)):
        members = np.flatnonzero(names == stratum)
        size = len(members)
        rng = generator(seed, purpose, stratum)
        counts[:, members] = rng.multinomial(size, np.full(size, 1 / size), size=draws)
    return counts
