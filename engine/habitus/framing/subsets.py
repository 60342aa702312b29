"""Which rows are compared: levels in order, and the parts that rows are divided into.

A row without a value in one of the fields stands in no part; such rows are counted.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from habitus.errors import UsageError
from habitus.framing.analysisfile import CompareFile, TopFile
from habitus.framing.frame import Codes, Frame
from habitus.framing.results import Subset
from habitus.statistics import IntArray

Mask = npt.NDArray[np.bool_]


@dataclass(frozen=True, slots=True)
class Part:
    """The rows of one subset.

    ``rows`` are places in the frame; ``level`` and ``group`` hold, for each of them, the place of
    its level among all levels and the number of its cluster within the part.
    """

    subset: Subset
    rows: IntArray
    level: IntArray
    group: IntArray


@dataclass(frozen=True, slots=True)
class Division:
    """Rows as they are compared; ``left_out`` counts rows in no part, by the field they lack."""

    levels: tuple[str, ...]
    parts: tuple[Part, ...]
    left_out: dict[str, int]


def divide(frame: Frame, compare: CompareFile) -> Division:
    """The levels and parts of a comparison.

    Raises:
        UsageError: no row has all the fields.
    """
    kept = np.ones(len(frame), dtype=bool)
    left_out: dict[str, int] = {}
    names = tuple(dict.fromkeys((*compare.fields(), compare.cluster)))
    for name in names:
        without = kept & (frame.field(name).codes < 0)
        if without.any():
            left_out[name] = int(without.sum())
        kept &= ~without
    if not kept.any():
        raise UsageError(
            f"no row has all the fields that are compared ({', '.join(names)}): "
            f"{', '.join(f'{n:,} lack {name}' for name, n in left_out.items())}; choose an "
            "analysis of fields that the items have (--analysis)"
        )
    level, cluster = frame.field(compare.level), frame.field(compare.cluster)
    levels = _ordered(level, kept, compare)
    place = np.array([levels.index(v) if v in levels else -1 for v in level.values])
    parts = []
    for fields, member in _members(frame, compare, kept, cluster):
        rows = np.flatnonzero(member)
        groups, group = np.unique(cluster.codes[rows], return_inverse=True)
        subset = Subset(fields, len(rows), len(groups))
        parts.append(Part(subset, rows, place[level.codes[rows]], group.astype(np.int64)))
    return Division(levels, tuple(parts), left_out)


def _ordered(level: Codes, kept: Mask, compare: CompareFile) -> tuple[str, ...]:
    """The reference, then those with a short name in the order of the file, then by name."""
    there = {level.values[code] for code in np.unique(level.codes[kept])}
    named = [compare.reference, *compare.names]
    first = [name for name in dict.fromkeys(named) if name is not None and name in there]
    return (*first, *sorted(there - set(first)))


def _members(
    frame: Frame, compare: CompareFile, kept: Mask, cluster: Codes
) -> list[tuple[tuple[tuple[str, str], ...], Mask]]:
    """Values and rows of every subset, in the order of the values."""
    by = compare.subsets.by
    if compare.subsets.top is not None:
        kept = kept & _common(frame, compare.subsets.top, kept, cluster)
    columns = [frame.field(name) for name in by]
    if not columns:
        return [((), kept)]
    keys = np.stack([column.codes for column in columns], axis=1)
    found = []
    for key in np.unique(keys[kept], axis=0):
        member = kept & (keys == key).all(axis=1)
        values = [column.values[code] for column, code in zip(columns, key, strict=True)]
        found.append((tuple(zip(by, values, strict=True)), member))
    return found


def _common(frame: Frame, top: TopFile, kept: Mask, cluster: Codes) -> Mask:
    """Rows whose value is among the commonest, counted in clusters."""
    column = frame.field(top.field)
    within = None if top.within is None else frame.field(top.within).codes
    member = np.zeros(len(frame), dtype=bool)
    for part in [kept] if within is None else [kept & (within == w) for w in np.unique(within)]:
        chosen = _commonest(column, part, cluster, top)
        member |= part & np.isin(column.codes, chosen)
    return member


def _commonest(column: Codes, part: Mask, cluster: Codes, top: TopFile) -> Sequence[int]:
    pairs = np.unique(np.stack([column.codes[part], cluster.codes[part]], axis=1), axis=0)
    codes, counts = np.unique(pairs[:, 0], return_counts=True)
    out = {name.casefold() for name in top.leave_out}
    ranked = sorted(zip(-counts, codes, strict=True))  # words are sorted, so ties go by name
    return [int(c) for _, c in ranked if column.values[c].casefold() not in out][: top.n]
