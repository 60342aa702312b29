"""Many tests at once: the false discovery rate (Benjamini and Hochberg 1995, JRSS B 57).

    benjamini_hochberg([.01, None, .04])      # [.02, None, .04]

An undefined p-value stays undefined and takes nothing from the others.
"""

from __future__ import annotations

import math
from collections.abc import Sequence


def benjamini_hochberg(
    values: Sequence[float | None], *, count_undefined: bool = False
) -> list[float | None]:
    """Adjusted p-values, in the order of the values.

    Args:
        values: p-values; None or NaN where a test is undefined.
        count_undefined: whether undefined tests count in the number of tests. They do not by
            default: a test that was never made rejects nothing.

    Raises:
        ValueError: a value is no p-value.
    """
    tests = [(p, i) for i, p in enumerate(values) if p is not None and not math.isnan(p)]
    if any(not 0 <= p <= 1 for p, _ in tests):
        raise ValueError("a p-value lies between 0 and 1")
    made = len(values) if count_undefined else len(tests)
    adjusted: list[float | None] = [None] * len(values)
    least = 1.0
    for rank, (p, i) in reversed(list(enumerate(sorted(tests), start=1))):
        least = min(least, p * (made / rank))  # so rounded, q is never below p
        adjusted[i] = least
    return adjusted
