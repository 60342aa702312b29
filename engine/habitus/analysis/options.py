"""The choices behind a table of results. Each of them is printed with the table."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

from habitus.analysis.design import DIMENSIONS, Dimension
from habitus.errors import UsageError
from habitus.statistics import IntervalRule

MissingRule = Literal["exclude", "not_satisfied", "bounds"]


@dataclass(frozen=True, slots=True)
class ResultOptions:
    """How results are computed.

    ``by``: one row for each combination of these as well. ``missing``: what a missing verdict
    is; ``exclude`` leaves it out of the rates, ``not_satisfied`` counts it against the target,
    ``bounds`` gives the range from none of them satisfied to all of them (Horowitz and Manski 2000).
    ``queries``: ``fixed`` speaks of these queries; ``resampled`` also allows for another choice
    of queries. ``shown``: persona to the norms that its history shows; None keeps all items.
    ``unseen``: personas of whom that is not known, or not wholly, and why.
    ``synthetic``: targets whose answers were planted. ``bounds_above``: the missing share above
    which bounds are given.
    """

    seed: int = 0
    draws: int = 2000
    rule: IntervalRule = field(default_factory=IntervalRule)
    by: tuple[Dimension, ...] = ()
    missing: MissingRule = "exclude"
    queries: Literal["fixed", "resampled"] = "fixed"
    shown: Mapping[str, frozenset[str]] | None = None
    unseen: Mapping[str, str] = field(default_factory=dict)
    synthetic: frozenset[str] = field(default_factory=frozenset)
    bounds_above: float = 0.01

    def __post_init__(self) -> None:
        unknown = [name for name in self.by if name not in DIMENSIONS]
        if unknown or len(set(self.by)) < len(self.by):
            raise UsageError(
                f"--by takes {', '.join(DIMENSIONS)}, each once; not {', '.join(self.by)}"
            )
        if self.draws < 100:
            raise UsageError(f"{self.draws} draws are too few for an interval; take 100 or more")
