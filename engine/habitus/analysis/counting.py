"""From a cell of the table and a group of items to sums by persona."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from habitus.analysis.design import Dimension
from habitus.analysis.measures import Sums
from habitus.analysis.options import MissingRule
from habitus.analysis.verdicts import ABSENT, MISSING, Mask, SmallArray, VerdictTable
from habitus.statistics import IntArray, Rate

Labels = tuple[tuple[Dimension, str], ...]


@dataclass(frozen=True, slots=True)
class Group:
    """Some items of a table: their labels, and their codes."""

    labels: Labels
    index: IntArray
    persona: IntArray
    query: IntArray
    follow: Mask
    size: tuple[int, int]

    def sums(self, satisfied: Mask, counted: Mask, *, crossed: bool) -> Sums:
        """Sums over the group's items; the masks have one entry for each of them."""
        personas, queries = self.size
        code = self.persona * queries + self.query if crossed else self.persona
        shape = (4, personas, queries) if crossed else (4, personas)
        cells = personas * queries if crossed else personas
        masks = [
            part & state for state in (self.follow, ~self.follow) for part in (satisfied, counted)
        ]
        counts = [np.bincount(code[mask], minlength=cells) for mask in masks]
        return Sums(np.stack(counts).astype(np.float64).reshape(shape))


@dataclass(frozen=True, slots=True)
class Answered:
    """The answers of one cell to the items of one group, as masks."""

    group: Group
    satisfied: Mask
    judged: Mask
    missing: Mask

    @classmethod
    def of(cls, group: Group, answers: SmallArray) -> Answered:
        """Read one row of a table's answers."""
        row = answers[group.index]
        return cls(group, row == 1, row >= 0, row == MISSING)

    @property
    def asked(self) -> Mask:
        """Items that were put to the target, answered or not."""
        return self.judged | self.missing

    @property
    def possible(self) -> Mask:
        """What would be satisfied if all that is missing were."""
        return self.satisfied | self.missing

    def only(self, kept: Mask) -> Answered:
        """The answers to some of the items."""
        return Answered(self.group, self.satisfied & kept, self.judged & kept, self.missing & kept)

    def counted(self, rule: MissingRule) -> Mask:
        """Items in the denominators under a rule for missing answers."""
        return self.judged if rule == "exclude" else self.asked

    def rate(self, *, follow: bool) -> Rate:
        """Satisfied, judged and missing items of one state."""
        state = self.group.follow if follow else ~self.group.follow
        return Rate(
            *(int((part & state).sum()) for part in (self.satisfied, self.judged, self.missing))
        )


def groups(table: VerdictTable, by: tuple[Dimension, ...]) -> list[Group]:
    """The items of a table by the labels of some dimensions; one group of all when there are none."""
    everything = np.arange(len(table.items))
    if not by:
        return [_group(table, (), everything)]
    axes = [table.axis(dimension) for dimension in by]
    code = np.zeros(len(table.items), dtype=np.int64)
    for labels, codes in axes:
        code = code * len(labels) + codes
    found = []
    for value in np.unique(code).tolist():
        index = np.flatnonzero(code == value)
        first = index[0]
        names = tuple(
            (dimension, labels[codes[first]])
            for dimension, (labels, codes) in zip(by, axes, strict=True)
        )
        found.append(_group(table, names, index))
    return found


def _group(table: VerdictTable, labels: Labels, index: IntArray) -> Group:
    items = table.items
    return Group(
        labels=labels,
        index=index,
        persona=items.persona[index],
        query=items.query[index],
        follow=items.state[index] > 0,
        size=(len(table.personas), len(table.queries)),
    )


def asked_items(answers: SmallArray) -> int:
    """How many items a cell was asked."""
    return int((answers != ABSENT).sum())
