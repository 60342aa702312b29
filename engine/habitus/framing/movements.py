"""Co-occurrence in brief: how many deltas rise, fall, do not move, and are undefined."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass

from habitus.framing.results import Delta, Framing

ALL = "all"


@dataclass(frozen=True, slots=True)
class Movement:
    """The deltas of a pair over subsets and levels, for one value of the first field of subsets.

    ``rise`` and ``fall`` are significant, ``same`` is not, ``undefined`` has no test.
    """

    where: str
    cause: str
    effect: str
    rise: int = 0
    fall: int = 0
    same: int = 0
    undefined: int = 0

    @property
    def total(self) -> int:
        """All deltas."""
        return self.rise + self.fall + self.same + self.undefined


def movements(framing: Framing) -> tuple[Movement, ...]:
    """Counts by pair and, where subsets are made by fields, by the first field (the country)."""
    counts: dict[tuple[str, str, str], Counter[str]] = {}
    for delta in framing.deltas:
        where = delta.subset.fields[0][1] if delta.subset.fields else ALL
        key = (where, delta.cause, delta.effect)
        counts.setdefault(key, Counter())[direction(delta)] += 1
    return tuple(
        Movement(*key, found["rise"], found["fall"], found["same"], found["undefined"])
        for key, found in sorted(counts.items())
    )


def direction(delta: Delta) -> str:
    """``rise``, ``fall``, ``same`` or ``undefined``."""
    if delta.significant is None or delta.delta is None:
        return "undefined"
    if not delta.significant:
        return "same"
    return "rise" if delta.delta > 0 else "fall"
