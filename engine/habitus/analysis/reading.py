"""From evaluation records to a table of verdicts, one record at a time and in any order.

Some two bytes of each verdict are kept, so memory does not grow with the texts of a run. What
the design expects and a record does not hold is counted as missing, under the record's outcome.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterable
from dataclasses import dataclass

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
            answer, outcome = answer_of(verdict, evaluation.outcome)
            self.answers.append(answer)
            self.failures.append(_CODES[outcome])
        if given:
            raise _misfit(evaluation, f"a verdict on norm {next(iter(given))!r}")

    def table(self) -> VerdictTable:
        """Everything read, sorted."""
        rows = self._sorted()
        sizes = np.array([len(self.design.items[p]) for p in rows.personas], dtype=np.int64)
        distinct, place = np.unique(rows.key, return_inverse=True)
        _refuse_doubles(rows, rows.cell * len(distinct) + place)
        norms = tuple(sorted({norm for p in rows.personas for norm in self.design.items[p]}))
        items = _items(self.design, rows, norms, distinct)
        starts = _starts(sizes[distinct // rows.places])
        flat = _positions(rows.cell * len(items) + starts[place], sizes[rows.persona])
        shape = (len(rows.cells), len(items))
        return VerdictTable(
            design=self.design,
            cells=rows.cells,
            shared=tuple(cell in self.shared for cell in rows.cells),
            personas=rows.personas,
            queries=rows.queries,
            norms=norms,
            items=items,
            answers=_grid(self.answers, flat, shape, ABSENT),
            failures=_grid(self.failures, flat, shape, _CODES[Outcome.OK]),
        )

    def _sorted(self) -> _Rows:
        cell, persona, query, repeat = (np.array(c, dtype=np.int64) for c in self.columns)
        cells = sorted(self.cells, key=lambda c: (c.target, setting_rank(c.setting)))
        rank = np.zeros(len(cells), dtype=np.int64)
        for place, name in enumerate(cells):
            rank[self.cells[name]] = place
        personas, persona = self.personas.sorted(persona)
        queries, query = self.queries.sorted(query)
        return _Rows(tuple(cells), personas, queries, rank[cell], persona, query, repeat)


@dataclass(frozen=True, slots=True)
class _Rows:
    """One row for each evaluation, in order of arrival: codes into sorted names."""

    cells: tuple[Cell, ...]
    personas: tuple[str, ...]
    queries: tuple[str, ...]
    cell: IntArray
    persona: IntArray
    query: IntArray
    repeat: IntArray

    @property
    def repeats(self) -> int:
        """Repeat numbers run from 0 up to, not including, this."""
        return int(self.repeat.max(initial=0)) + 1

    @property
    def places(self) -> int:
        """How many (query, repeat) there are for each persona."""
        return max(len(self.queries), 1) * self.repeats

    @property
    def key(self) -> IntArray:
        """A number for each (persona, query, repeat), in their order."""
        return self.persona * self.places + self.query * self.repeats + self.repeat


def answer_of(verdict: Verdict | None, outcome: Outcome) -> tuple[int, Outcome]:
    """1, 0 or missing, and the outcome. Only a verdict that is ok is an answer.

    Args:
        verdict: None where an evaluation lacks one that is expected.
        outcome: that of the evaluation.
    """
    if verdict is None:
        return MISSING, Outcome.UNPARSED if outcome is Outcome.OK else outcome
    if verdict.outcome is Outcome.OK and verdict.satisfied is not None:
        return int(verdict.satisfied), Outcome.OK
    for failed in (verdict.outcome, outcome):
        if failed is not Outcome.OK:
            return MISSING, failed
    return MISSING, Outcome.UNPARSED


def _items(design: Design, rows: _Rows, norms: tuple[str, ...], keys: IntArray) -> Items:
    """The items of the different (persona, query, repeat), by these and then by norm."""
    persona, rest = np.divmod(keys, rows.places)
    query, repeat = np.divmod(rest, rows.repeats)
    place = {norm: i for i, norm in enumerate(norms)}
    lists = [design.items[p] for p in rows.personas]
    sizes = np.array([len(names) for names in lists], dtype=np.int64)
    norm = np.array([place[name] for names in lists for name in names], dtype=np.int64)
    state = np.array(
        [design.states[p][n] for p, names in zip(rows.personas, lists, strict=True) for n in names],
        dtype=np.int64,
    )
    lengths = sizes[persona]
    row = np.repeat(np.arange(len(keys)), lengths)
    index = _positions(_starts(sizes)[persona], lengths)
    return Items(persona[row], query[row], norm[index], repeat[row], state[index])


def _starts(lengths: IntArray) -> IntArray:
    """Where each run begins when runs of these lengths follow one another."""
    return np.cumsum(lengths) - lengths


def _positions(starts: IntArray, lengths: IntArray) -> IntArray:
    """start, start + 1, ... for each run, one run after another."""
    steps = np.arange(int(lengths.sum()))
    steps += np.repeat(starts - _starts(lengths), lengths)
    return steps


def _grid(values: array[int], flat: IntArray, shape: tuple[int, int], fill: int) -> SmallArray:
    grid = np.full(shape[0] * shape[1], fill, dtype=np.int8)
    grid[flat] = np.frombuffer(values, dtype=np.int8) if values else 0
    return grid.reshape(shape)


def _refuse_doubles(rows: _Rows, key: IntArray) -> None:
    _, first = np.unique(key, return_index=True)
    if len(first) == len(key):
        return
    i = int(np.setdiff1d(np.arange(len(key)), first)[0])
    raise StoreError(
        f"two evaluations of {rows.cells[rows.cell[i]]}, persona "
        f"{rows.personas[rows.persona[i]]!r}, query {rows.queries[rows.query[i]]!r}, repeat "
        f"{rows.repeat[i]}; a response is scored once for each persona"
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
