"""From evaluation records to a table of verdicts, one record at a time and in any order.

Some two bytes of each verdict are kept, so memory does not grow with the texts of a run. What
the design expects and a record does not hold is counted as missing, under the record's outcome.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterable
from itertools import accumulate
from typing import NamedTuple

import numpy as np

from habitus.analysis.design import Design, setting_rank
from habitus.analysis.verdicts import (
    ABSENT,
    MISSING,
    OUTCOMES,
    Cell,
    Items,
    SmallArray,
    VerdictTable,
)
from habitus.errors import StoreError
from habitus.records import Evaluation, Outcome, Verdict
from habitus.statistics import IntArray

_CODES = {outcome: code for code, outcome in enumerate(OUTCOMES)}


def read_verdicts(evaluations: Iterable[Evaluation], design: Design) -> VerdictTable:
    """Read evaluations, in any order, into a table.

    Raises:
        StoreError: When a record does not fit the design, or two evaluate the same response
            for the same persona.
    """
    reader = _Reader(design)
    for evaluation in evaluations:
        reader.add(evaluation)
    return reader.table()


class _Codes(dict[str, int]):
    """Names numbered in order of arrival, and sorted at the end."""

    def __missing__(self, name: str) -> int:
        self[name] = code = len(self)
        return code

    def sorted(self, codes: IntArray) -> tuple[tuple[str, ...], IntArray]:
        """The names in order, and codes of arrival as places in that order."""
        names = tuple(sorted(self))
        rank = np.zeros(len(self), dtype=np.int64)
        for place, name in enumerate(names):
            rank[self[name]] = place
        return names, rank[codes]


class _Names(NamedTuple):
    personas: tuple[str, ...]
    queries: tuple[str, ...]
    items: int


class _Reader:
    """Columns that grow by one number for each evaluation and two bytes for each verdict."""

    def __init__(self, design: Design) -> None:
        self.design = design
        self.shared: set[Cell] = set()
        self.cells: dict[Cell, int] = {}
        self.personas = _Codes()
        self.queries = _Codes()
        self.columns = tuple(array("i") for _ in range(4))
        self.answers = array("b")
        self.failures = array("b")

    def add(self, evaluation: Evaluation) -> None:
        self.design.culture(evaluation.persona)
        if evaluation.query not in self.design.topics:
            raise _misfit(evaluation, f"query {evaluation.query!r}")
        cell = Cell(evaluation.target, evaluation.setting)
        if _is_shared(evaluation.response):
            self.shared.add(cell)
        self._add_verdicts(evaluation)
        row = (
            self.cells.setdefault(cell, len(self.cells)),
            self.personas[evaluation.persona],
            self.queries[evaluation.query],
            evaluation.repeat,
        )
        for column, code in zip(self.columns, row, strict=True):
            column.append(code)

    def _add_verdicts(self, evaluation: Evaluation) -> None:
        states = self.design.states[evaluation.persona]
        given = {verdict.norm: verdict for verdict in evaluation.verdicts}
        if len(given) != len(evaluation.verdicts):
            raise StoreError(f"evaluation {evaluation.id!r} holds two verdicts on one norm")
        for norm in self.design.items[evaluation.persona]:
            verdict = given.pop(norm, None)
            if verdict is not None and verdict.state != states[norm]:
                raise _misfit(evaluation, f"state {verdict.state:+d} of norm {norm!r}")
            answer, outcome = _answer(verdict, evaluation.outcome)
            self.answers.append(answer)
            self.failures.append(_CODES[outcome])
        if given:
            raise _misfit(evaluation, f"a verdict on norm {next(iter(given))!r}")

    def table(self) -> VerdictTable:
        """Everything read, sorted."""
        cell, persona, query, repeat = (np.array(c, dtype=np.int64) for c in self.columns)
        cells = sorted(self.cells, key=lambda c: (c.target, setting_rank(c.setting)))
        rank = np.zeros(len(cells), dtype=np.int64)
        for i, name in enumerate(cells):
            rank[self.cells[name]] = i
        personas, persona = self.personas.sorted(persona)
        queries, query = self.queries.sorted(query)
        norms = tuple(sorted({norm for p in personas for norm in self.design.items[p]}))
        row, norm, state = _expand(self.design, personas, norms, persona)
        every = Items(persona[row], query[row], norm, repeat[row], state)
        items, place = _distinct(every, len(queries), len(norms))
        flat = rank[cell][row] * len(items) + place
        _refuse_doubles(flat, every, tuple(cells), _Names(personas, queries, len(items)))
        shape = (len(cells), len(items))
        return VerdictTable(
            design=self.design,
            cells=tuple(cells),
            shared=tuple(c in self.shared for c in cells),
            personas=personas,
            queries=queries,
            norms=norms,
            items=items,
            answers=_grid(self.answers, flat, shape, ABSENT),
            failures=_grid(self.failures, flat, shape, _CODES[Outcome.OK]),
        )


def _answer(verdict: Verdict | None, outcome: Outcome) -> tuple[int, Outcome]:
    """1, 0 or missing, and the outcome. Only a verdict that is ok is an answer."""
    if verdict is None:
        return MISSING, Outcome.UNPARSED if outcome is Outcome.OK else outcome
    if verdict.outcome is Outcome.OK and verdict.satisfied is not None:
        return int(verdict.satisfied), Outcome.OK
    for failed in (verdict.outcome, outcome):
        if failed is not Outcome.OK:
            return MISSING, failed
    return MISSING, Outcome.UNPARSED


def _expand(
    design: Design, personas: tuple[str, ...], norms: tuple[str, ...], persona: IntArray
) -> tuple[IntArray, IntArray, IntArray]:
    """For each verdict in order of arrival: its evaluation, norm and state."""
    place = {norm: i for i, norm in enumerate(norms)}
    lists = [design.items[p] for p in personas]
    sizes = np.array([len(norms) for norms in lists], dtype=np.int64)
    starts = np.array([0, *accumulate(sizes.tolist())], dtype=np.int64)
    codes = np.array([place[norm] for names in lists for norm in names], dtype=np.int64)
    states = np.array(
        [
            design.states[p][norm]
            for p, names in zip(personas, lists, strict=True)
            for norm in names
        ],
        dtype=np.int64,
    )
    lengths = sizes[persona]
    row = np.repeat(np.arange(len(persona)), lengths)
    ends = np.cumsum(lengths)
    within = np.arange(len(row)) - np.repeat(ends - lengths, lengths)
    index = np.repeat(starts[persona], lengths) + within
    return row, codes[index], states[index]


def _distinct(every: Items, queries: int, norms: int) -> tuple[Items, IntArray]:
    """The different items, sorted, and for each verdict the place of its item."""
    repeats = int(every.repeat.max(initial=0)) + 1
    key = ((every.persona * queries + every.query) * norms + every.norm) * repeats + every.repeat
    _, first, place = np.unique(key, return_index=True, return_inverse=True)
    items = Items(
        every.persona[first],
        every.query[first],
        every.norm[first],
        every.repeat[first],
        every.state[first],
    )
    return items, place


def _grid(values: array[int], flat: IntArray, shape: tuple[int, int], fill: int) -> SmallArray:
    grid = np.full(shape[0] * shape[1], fill, dtype=np.int8)
    grid[flat] = np.array(values, dtype=np.int8)
    return grid.reshape(shape)


def _refuse_doubles(flat: IntArray, every: Items, cells: tuple[Cell, ...], names: _Names) -> None:
    _, first, counts = np.unique(flat, return_index=True, return_counts=True)
    doubled = first[counts > 1]
    if not len(doubled):
        return
    at = int(doubled[0])
    cell = cells[int(flat[at]) // names.items]
    raise StoreError(
        f"two evaluations of target {cell.target!r}, setting {cell.setting!r}, persona "
        f"{names.personas[every.persona[at]]!r}, query {names.queries[every.query[at]]!r}, "
        f"repeat {every.repeat[at]}; a response is scored once for each persona"
    )


def _is_shared(response: str) -> bool:
    """Whether a response id ``<target>/<setting>/<persona>/<query>/rN`` names no persona."""
    parts = response.split("/")
    return len(parts) >= 5 and parts[-3] == "-"


def _misfit(evaluation: Evaluation, what: str) -> StoreError:
    return StoreError(
        f"evaluation {evaluation.id!r} has {what}, which the experiment does not have for "
        f"persona {evaluation.persona!r}; was the population or the query set changed after the run?"
    )
