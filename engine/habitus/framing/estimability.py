"""What can be estimated at all: looked at before a fit, in counts.

A solver gives a number for an empty cell, and often a small p-value with it. So every cell is
counted first, and what has no cases, only cases or too few clusters is not handed over. Reasons are
plain words; an empty one means that nothing stands against it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from habitus.framing.analysisfile import ThresholdFile
from habitus.framing.frame import MISSING, NOT_ASKED, SmallArray
from habitus.framing.subsets import Part
from habitus.statistics import IntArray

IDENTICAL = "identical labels in every cluster"
NO_VARIATION = "the labels do not vary between clusters"


@dataclass(frozen=True, slots=True)
class Used:
    """The rows of a part that have all the labels of a fit, and how many have not, by level.

    ``labels`` has a column for each characteristic: the outcome, or the cause and the effect.
    """

    level: IntArray
    group: IntArray
    labels: tuple[SmallArray, ...]
    missing: IntArray

    @classmethod
    def of(
        cls,
        part: Part,
        columns: tuple[SmallArray, ...],
        levels: int,
        *,
        common: bool = False,
        fill: Mapping[int, int] | None = None,
    ) -> Used:
        """Rows with labels.

        Args:
            part: the rows of a subset.
            columns: a label of each row of the frame, for each characteristic.
            levels: how many levels there are.
            common: only clusters in which every level has a label.
            fill: what a missing label is taken for (1 or 0), by level; such rows are used, and
                counted as missing all the same.
        """
        found = np.stack([column[part.rows] for column in columns])
        asked = (found != NOT_ASKED).all(axis=0)
        judged = (found >= 0).all(axis=0)
        if common:
            there = np.zeros((part.subset.groups, levels), dtype=bool)
            there[part.group[judged], part.level[judged]] = True
            wanted = np.unique(part.level[asked])
            judged &= np.asarray(there[:, wanted].all(axis=1))[part.group]
        counts = np.bincount(part.level[asked], minlength=levels)
        counts -= np.bincount(part.level[judged], minlength=levels)
        if fill:
            values = np.full(levels, MISSING, dtype=np.int8)
            values[list(fill)] = list(fill.values())
            found = np.where(found == MISSING, values[part.level], found)
            judged = (found >= 0).all(axis=0)
        labels = tuple(column[judged] for column in found)
        return cls(part.level[judged], part.group[judged], labels, counts)

    def clusters(self, member: IntArray) -> int:
        """How many clusters some of the rows stand in."""
        return len(np.unique(self.group[member]))

    def cell_clusters(self) -> dict[int, int]:
        """How many clusters each cell of a fit stands in, by its number in the fit."""
        cell = self.level if len(self.labels) == 1 else 2 * self.level + self.labels[0]
        pairs = np.unique(np.stack([cell, self.group], axis=1), axis=0)
        cells, counts = np.unique(pairs[:, 0], return_counts=True)
        return dict(zip(cells.tolist(), counts.tolist(), strict=True))

    def only(self, levels: list[int]) -> Used:
        """The rows of some levels."""
        kept = np.isin(self.level, levels)
        labels = tuple(column[kept] for column in self.labels)
        return Used(self.level[kept], self.group[kept], labels, self.missing)

    def identical(self, first: int, second: int) -> bool:
        """Whether two levels have the same labels, as often, in every cluster.

        Nothing then says how far their difference would stray from zero.
        """
        signature = [1 << i for i in range(len(self.labels))]
        kind = sum(
            (w * column.astype(np.int64) for w, column in zip(signature, self.labels, strict=True)),
            start=np.zeros(len(self.level), dtype=np.int64),
        )
        keys = self.group * (1 << len(self.labels)) + kind
        size = int(keys.max(initial=0)) + 1
        one, other = (
            np.bincount(keys[self.level == level], minlength=size) for level in (first, second)
        )
        return bool((one == other).all())


def outcome_reason(rows: int, cases: int, clusters: int, least: ThresholdFile) -> str:
    """Why the prevalence of a level has no estimate."""
    if not rows:
        return "no rows with a label"
    if clusters < least.clusters:
        return f"{_clusters(clusters)}; at least {least.clusters} are needed"
    if not cases:
        return f"none of {rows:,} rows is a case"
    return f"all {rows:,} rows are cases" if cases == rows else ""


@dataclass(frozen=True, slots=True)
class Crossed:
    """Counts of a cause and an effect: rows without and with the cause, and their effects.

    ``clusters`` counts those of all rows, ``cells`` those without and with the cause.
    """

    rows: tuple[int, int]
    effects: tuple[int, int]
    clusters: int
    cells: tuple[int, int]

    @classmethod
    def of(cls, used: Used, member: IntArray) -> Crossed:
        """The counts of some of the rows, whose labels are the cause and the effect."""
        cause, effect = (column[member] for column in used.labels)
        apart = [member[cause == value] for value in (0, 1)]
        return cls(
            rows=(len(apart[0]), len(apart[1])),
            effects=(int(effect[cause == 0].sum()), int(effect[cause == 1].sum())),
            clusters=used.clusters(member),
            cells=(used.clusters(apart[0]), used.clusters(apart[1])),
        )

    @property
    def total(self) -> int:
        """All rows."""
        return sum(self.rows)

    def few(self, cases: int) -> str:
        """Why the counts are below the threshold."""
        counted = (
            ("the cause", self.rows[1]),
            ("the effect", sum(self.effects)),
            ("both together", self.effects[1]),
        )
        short = [f"{n:,} of {what}" for what, n in counted if n < cases]
        return f"fewer than {cases:,} cases: {', '.join(short)}" if short else ""

    def reason(self, least: ThresholdFile) -> str:
        """Why the delta of a level has no estimate."""
        if not self.total:
            return "no rows with both labels"
        if self.clusters < least.clusters:
            return f"{_clusters(self.clusters)}; at least {least.clusters} are needed"
        if not all(self.rows):
            return f"the cause is in {_share(self.rows[1], self.total)} rows"
        if least.rows == "level" and (few := self.few(least.cases)):
            return few
        return self._cell_reason(least.cell_clusters)

    def _cell_reason(self, least: int) -> str:
        for name, rows, effects, clusters in zip(
            ("without", "with"), self.rows, self.effects, self.cells, strict=True
        ):
            if effects in {0, rows}:
                return f"the effect is in {_share(effects, rows)} rows {name} the cause"
            if clusters < least:
                return f"{_clusters(clusters)} {name} the cause; at least {least} are needed"
        return ""


def _share(part: int, whole: int) -> str:
    return f"all {whole:,}" if part else f"none of {whole:,}"


def _clusters(count: int) -> str:
    return f"{count} cluster" if count == 1 else f"{count} clusters"
