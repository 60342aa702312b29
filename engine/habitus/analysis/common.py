"""All targets of a setting, on the items that all of them answered.

A target that refuses what is hard is otherwise compared on what is easy. Two targets at a time are
compared in ``differences``; here all of a setting stand side by side, with how many items each lost
because another did not answer them. Under a rule that counts what is missing the items are those that
all were asked.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from habitus.analysis.counting import Answered, groups
from habitus.analysis.measures import Resampler
from habitus.analysis.options import ResultOptions
from habitus.analysis.rows import Row, is_crossed, make_row
from habitus.analysis.verdicts import VerdictTable, outcome_counts


@dataclass(frozen=True, slots=True)
class CommonRow:
    """A target on the common items of its setting; ``row`` counts no others.

    ``items`` are the common ones, ``lost`` those that count for this target and not for another.
    """

    row: Row
    items: int
    lost: int

    def as_json(self) -> dict[str, Any]:
        """As plain data; undefined is None."""
        return {**self.row.as_json(), "common": self.items, "lost": self.lost}


def common_rows(
    table: VerdictTable, resampler: Resampler, options: ResultOptions
) -> Iterator[CommonRow]:
    """A row for each target of every setting that has two or more, setting by setting."""
    group = groups(table, ())[0]
    for setting in dict.fromkeys(cell.setting for cell in table.cells):
        numbers = [c for c, cell in enumerate(table.cells) if cell.setting == setting]
        if len(numbers) < 2:
            continue
        answers = [Answered.of(group, table.answers[c]) for c in numbers]
        counted = [found.counted(options.missing) for found in answers]
        common = np.logical_and.reduce(counted)
        crossed = is_crossed(table, tuple(numbers), options)
        for c, found, own in zip(numbers, answers, counted, strict=True):
            kept = found.only(common)
            outcomes = outcome_counts(table.failures[c][group.index][kept.missing])
            row = make_row(table.cells[c], kept, outcomes, crossed, resampler, options)
            yield CommonRow(row, int(common.sum()), int((own & ~common).sum()))
