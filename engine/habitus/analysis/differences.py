"""Paired differences: two settings of one target, or two targets in one setting.

Both sides are computed on the items that both have (same persona, query, norm and repeat), and
how many these are is part of the answer: two settings with different coverage are never
compared silently. The same draws serve both sides, so that what a persona brings to both
cancels. Intervals are for one difference at a time; with many of them, some miss zero by chance.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Any, Literal

from habitus.analysis.counting import Answered, Group, groups
from habitus.analysis.measures import (
    Bounds,
    Intervals,
    Resampler,
    Sums,
    Values,
    as_values,
    outer_intervals,
    points,
    ranges,
)
from habitus.analysis.options import ResultOptions
from habitus.analysis.rows import (
    bounds_json,
    intervals_json,
    is_crossed,
    resampled_name,
    undefined_json,
)
from habitus.analysis.verdicts import Cell, VerdictTable


@dataclass(frozen=True, slots=True)
class Coverage:
    """Items in both sides, and in one only; ``follow`` and ``avoid`` of the common ones."""

    common: int
    follow: int
    avoid: int
    only_a: int
    only_b: int


@dataclass(frozen=True, slots=True)
class Difference:
    """``b`` minus ``a`` on their common items, with the values of both there.

    ``bounds``: under the rule ``bounds``, the least and the most that the differences can be where
    anything is missing; a value is then None unless both are the same.
    """

    between: Literal["settings", "targets"]
    a: Cell
    b: Cell
    values: Values
    a_values: Values
    b_values: Values
    intervals: Intervals
    coverage: Coverage
    crossed: bool
    synthetic: bool
    bounds: Bounds | None = None

    def as_json(self) -> dict[str, Any]:
        """The difference as plain data; undefined is None."""
        own = (
            {"target": self.a.target} if self.between == "settings" else {"setting": self.a.setting}
        )
        side = 1 if self.between == "settings" else 0
        return {
            "between": self.between,
            **own,
            "a": self.a[side],
            "b": self.b[side],
            **self.values,
            "a_values": self.a_values,
            "b_values": self.b_values,
            "bounds": bounds_json(self.bounds),
            "common": self.coverage.common,
            "follow_common": self.coverage.follow,
            "avoid_common": self.coverage.avoid,
            "only_a": self.coverage.only_a,
            "only_b": self.coverage.only_b,
            "interval": intervals_json(self.intervals),
            "undefined_draws": undefined_json(self.intervals),
            "resampled": resampled_name(self.crossed),
            "synthetic": self.synthetic,
        }


@dataclass(frozen=True, slots=True)
class _Found:
    """The numbers of one difference, before it is known what of."""

    values: Values
    sides: tuple[Values, ...]
    intervals: Intervals
    bounds: Bounds | None = None


def make_differences(
    table: VerdictTable, resampler: Resampler, options: ResultOptions
) -> list[Difference]:
    """All pairs of settings within targets, then all pairs of targets within settings."""
    group = groups(table, ())[0]
    return [_difference(table, group, pair, resampler, options) for pair in _pairs(table.cells)]


def _pairs(cells: tuple[Cell, ...]) -> Iterator[tuple[int, int]]:
    numbered = range(len(cells))
    for side in (0, 1):
        pairs = [(i, j) for i, j in combinations(numbered, 2) if cells[i][side] == cells[j][side]]
        if side:
            order = {s: i for i, s in enumerate(dict.fromkeys(c.setting for c in cells))}
            pairs.sort(key=lambda pair: order[cells[pair[0]].setting])
        yield from pairs


def _difference(
    table: VerdictTable,
    group: Group,
    pair: tuple[int, int],
    resampler: Resampler,
    options: ResultOptions,
) -> Difference:
    sides = [Answered.of(group, table.answers[c]) for c in pair]
    counted = [side.counted(options.missing) for side in sides]
    both = counted[0] & counted[1]
    crossed = is_crossed(table, pair, options)
    least = [group.sums(side.satisfied & both, both, crossed=crossed) for side in sides]
    found = _Found(
        values=as_values(least[1].point() - least[0].point()),
        sides=tuple(as_values(sums.point()) for sums in least),
        intervals=resampler.difference_intervals(*least),
    )
    if options.missing == "bounds" and any((side.missing & both).any() for side in sides):
        most = [group.sums(side.possible & both, both, crossed=crossed) for side in sides]
        found = _between(least, most, resampler)
    cells = tuple(table.cells[c] for c in pair)
    return Difference(
        between="settings" if cells[0].target == cells[1].target else "targets",
        a=cells[0],
        b=cells[1],
        values=found.values,
        a_values=found.sides[0],
        b_values=found.sides[1],
        intervals=found.intervals,
        bounds=found.bounds,
        coverage=Coverage(
            common=int(both.sum()),
            follow=int((both & group.follow).sum()),
            avoid=int((both & ~group.follow).sum()),
            only_a=int((counted[0] & ~both).sum()),
            only_b=int((counted[1] & ~both).sum()),
        ),
        crossed=crossed,
        synthetic=any(cell.target in options.synthetic for cell in cells),
    )


def _between(least: Sequence[Sums], most: Sequence[Sums], resampler: Resampler) -> _Found:
    """From the least that b - a can be (none of b satisfied, all of a) to the most."""
    ends = [(most[0], least[1]), (least[0], most[1])]
    low, high = (as_values(b.point() - a.point()) for a, b in ends)
    bounds = ranges(low, high)
    own = [ranges(*(as_values(s.point()) for s in side)) for side in zip(least, most, strict=True)]
    return _Found(
        values=points(bounds),
        sides=tuple(map(points, own)),
        intervals=outer_intervals(*(resampler.difference_intervals(a, b) for a, b in ends)),
        bounds=bounds,
    )
