"""All verdicts of a run as a grid of small integers: one row for each target and setting.

:func:`read_verdicts` (in ``analysis.reading``) makes it from evaluations.

    table = read_verdicts(store.evaluations(), design)
    table.answers            # (cells, items): 1 satisfied, 0 not, -1 missing, -2 never asked

An item is a (persona, query, norm, repeat). A missing verdict is never a zero. Cells, items and
names are sorted, so that the same records make the same table whatever their order.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from habitus.analysis.design import Design, Dimension
from habitus.records import Outcome
from habitus.statistics import IntArray

MISSING = -1
ABSENT = -2

OUTCOMES = tuple(Outcome)

SmallArray = npt.NDArray[np.int8]
Mask = npt.NDArray[np.bool_]


class Cell(NamedTuple):
    """One target in one setting."""

    target: str
    setting: str

    def __str__(self) -> str:
        return f"target {self.target!r}, setting {self.setting!r}"


@dataclass(frozen=True, slots=True)
class Items:
    """What was asked: codes into the table's names, each of shape (items,)."""

    persona: IntArray
    query: IntArray
    norm: IntArray
    repeat: IntArray
    state: IntArray

    def __len__(self) -> int:
        return len(self.persona)

    def where(self, keep: Mask) -> Items:
        """The items that a mask keeps."""
        return Items(
            self.persona[keep],
            self.query[keep],
            self.norm[keep],
            self.repeat[keep],
            self.state[keep],
        )


@dataclass(frozen=True)
class VerdictTable:
    """Verdicts by cell and item.

    ``answers`` and ``failures`` have shape (cells, items); ``failures`` holds the place in
    ``OUTCOMES`` of why an answer is missing. ``shared`` says for each cell whether one response
    stood for all personas.
    """

    design: Design
    cells: tuple[Cell, ...]
    shared: tuple[bool, ...]
    personas: tuple[str, ...]
    queries: tuple[str, ...]
    norms: tuple[str, ...]
    items: Items
    answers: SmallArray
    failures: SmallArray

    @property
    def cultures(self) -> tuple[str, ...]:
        """The culture of each persona."""
        return tuple(map(self.design.culture, self.personas))

    @property
    def topics(self) -> tuple[str, ...]:
        """The topic of each query."""
        return tuple(self.design.topics[query] for query in self.queries)

    @property
    def kinds(self) -> tuple[str, ...]:
        """The kind of each norm."""
        return tuple(self.design.kinds[norm] for norm in self.norms)

    def axis(self, dimension: Dimension) -> tuple[tuple[str, ...], IntArray]:
        """The labels of a dimension, sorted, and for each item the code of its label."""
        names, codes = {
            "culture": (self.cultures, self.items.persona),
            "persona": (self.personas, self.items.persona),
            "topic": (self.topics, self.items.query),
            "query": (self.queries, self.items.query),
            "kind": (self.kinds, self.items.norm),
        }[dimension]
        labels = tuple(sorted(set(names)))
        places = np.array([labels.index(name) for name in names], dtype=np.int64)
        return labels, places[codes]

    def only_shown(self, shown: Mapping[str, frozenset[str]]) -> VerdictTable:
        """The items of (persona, norm) pairs that a history shows, the same in every cell."""
        pairs = np.array(
            [[norm in shown.get(p, ()) for norm in self.norms] for p in self.personas], dtype=bool
        ).reshape(len(self.personas), len(self.norms))
        keep = pairs[self.items.persona, self.items.norm]
        items = self.items.where(keep)
        used, codes = np.unique(items.persona, return_inverse=True)
        return replace(
            self,
            personas=tuple(self.personas[i] for i in used),
            items=replace(items, persona=codes.astype(np.int64)),
            answers=self.answers[:, keep],
            failures=self.failures[:, keep],
        )

    def pairs(self) -> int:
        """Number of (persona, norm) pairs among the items."""
        return len(np.unique(self.items.persona * len(self.norms) + self.items.norm))


def outcome_counts(failures: SmallArray) -> dict[str, int]:
    """How many answers are missing for each outcome, in the order of outcomes."""
    counts = np.bincount(failures, minlength=len(OUTCOMES))
    return {str(o): int(n) for o, n in zip(OUTCOMES, counts, strict=True) if n}
