"""A rate never travels without its denominator, and a missing answer is never a zero."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from habitus.statistics.resampling import FloatArray


@dataclass(frozen=True, slots=True)
class Rate:
    """So many satisfied of so many judged; ``missing`` more were asked and not answered.

    Counts are numbers of items. ``value`` is None when nothing was judged.
    """

    satisfied: int
    judged: int
    missing: int = 0

    def __post_init__(self) -> None:
        if not 0 <= self.satisfied <= self.judged or self.missing < 0:
            raise ValueError(
                f"no such rate: {self.satisfied} of {self.judged}, {self.missing} missing"
            )

    @property
    def total(self) -> int:
        """Items asked, judged or not."""
        return self.judged + self.missing

    @property
    def value(self) -> float | None:
        """The satisfied share of the judged items."""
        return self.satisfied / self.judged if self.judged else None

    @property
    def bounds(self) -> tuple[float, float] | None:
        """The share of all items if none of the missing were satisfied, and if all were."""
        if not self.total:
            return None
        return self.satisfied / self.total, (self.satisfied + self.missing) / self.total

    @property
    def missing_share(self) -> float | None:
        """The share of items that were not judged."""
        return self.missing / self.total if self.total else None

    def counting_missing_as_unsatisfied(self) -> Rate:
        """The same items under the rule that a missing answer counts as not satisfied."""
        return Rate(self.satisfied, self.total)


def harmonic_mean(a: float | None, b: float | None) -> float | None:
    """Harmonic mean of two rates: 0 when both are 0, None when either is undefined."""
    if a is None or b is None:
        return None
    return 2 * a * b / (a + b) if a + b > 0 else 0.0


def harmonic_means(a: FloatArray, b: FloatArray) -> FloatArray:
    """:func:`harmonic_mean` element by element, with NaN for undefined."""
    total = a + b
    return np.where(total == 0, 0.0, 2 * a * b / np.where(total == 0, 1.0, total))


def ratio(numerator: FloatArray, denominator: FloatArray) -> FloatArray:
    """Element-wise division; NaN where the denominator is zero."""
    numerator, denominator = np.broadcast_arrays(numerator, denominator)
    out = np.full(denominator.shape, np.nan)
    np.divide(numerator, denominator, out=out, where=denominator != 0)
    return out
