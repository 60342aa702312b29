"""Labels as columns: one place for each row in every column, a byte for each label.

    fields = {"group": Codes.of(posts), "target": Codes.of(models), "country": Codes.of(countries)}
    frame = Frame(fields, {"insider": np.array([1, 0, MISSING], dtype=np.int8)})

A row is an answer, or an answer and a norm. Nothing here knows judges or runs.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from habitus.statistics import IntArray

SmallArray = npt.NDArray[np.int8]

MISSING = -1  # should have a label, and has none
NOT_ASKED = -2  # there is nothing to label, or the label is still to be asked for


@dataclass(frozen=True, slots=True)
class Codes:
    """A column of words: the different words, sorted, and for each row its place; -1 for none."""

    values: tuple[str, ...]
    codes: IntArray

    @classmethod
    def of(cls, words: Iterable[str | None]) -> Codes:
        """A column from its words."""
        given = list(words)
        values = tuple(sorted({word for word in given if word is not None}))
        place: dict[str | None, int] = {value: i for i, value in enumerate(values)}
        return cls(values, np.array([place.get(word, -1) for word in given], dtype=np.int64))

    def take(self, rows: IntArray) -> Codes:
        """The column at some rows."""
        return Codes(self.values, self.codes[rows])

    def rows_with(self, value: str) -> npt.NDArray[np.bool_]:
        """Which rows hold a word."""
        place = self.values.index(value) if value in self.values else -2
        found: npt.NDArray[np.bool_] = self.codes == place
        return found


@dataclass(frozen=True, slots=True)
class Frame:
    """Rows with the fields that they are divided by and the labels that they have.

    ``labels`` has for each characteristic 1, 0, ``MISSING`` or ``NOT_ASKED``. ``unanswered`` counts
    rows without an answer; they are rows like others, whose labels are missing.
    """

    fields: Mapping[str, Codes]
    labels: Mapping[str, SmallArray]
    unanswered: int = 0

    def __post_init__(self) -> None:
        lengths = {len(column.codes) for column in self.fields.values()}
        if len(lengths | {len(column) for column in self.labels.values()}) > 1:
            raise ValueError("the columns of a frame have different lengths")
        for name, column in self.labels.items():
            if column.dtype.kind != "i" or not np.isin(column, (1, 0, MISSING, NOT_ASKED)).all():
                raise ValueError(f"labels of {name!r} are 1, 0, MISSING or NOT_ASKED")

    def __len__(self) -> int:
        columns = [column.codes for column in self.fields.values()]
        return len(columns[0]) if columns else 0

    def field(self, name: str) -> Codes:
        """A field; all rows are without a value where there is no such field."""
        there = self.fields.get(name)
        return Codes((), np.full(len(self), -1, dtype=np.int64)) if there is None else there
