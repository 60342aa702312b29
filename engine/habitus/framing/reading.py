"""From the records of a run of labels to columns, one record at a time.

    with RunDir.open(path, write=False) as run:
        labels = read_labels(run, analysis)

A few bytes of each item and one of each label are kept; texts pass by. An item without an answer,
and a label that could not be read, are rows whose label is missing: they are counted and never 0.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field

import numpy as np
from pydantic import BaseModel, ValidationError

from habitus.errors import StoreError, UsageError
from habitus.framing.analysisfile import (
    NORM_FIELDS,
    AnalysisFile,
    CharacteristicFile,
    RowsOf,
)
from habitus.framing.coding import Coding
from habitus.framing.frame import MISSING, NOT_ASKED, Codes, Frame, SmallArray
from habitus.records import JudgedItem, Label, Outcome
from habitus.statistics import IntArray
from habitus.store import RunDir

ITEMS, LABELS = "items", "labels"
_NEUTRAL = "neutral"  # a norm without a stance has no verdict


class Verdict(BaseModel):
    """One verdict that a run asks for: a judge's closed list and what of it counts as present.

    ``model``, ``form`` and the rest say how it was asked for; labels that were asked for in another
    way come from another instrument.
    """

    judge: str
    variant: str = ""
    labels: tuple[str, ...]
    present: tuple[str, ...]
    model: str = ""
    form: str = ""
    question: bool = False
    batched: bool = False

    @property
    def way(self) -> str:
        """How it was asked for, in words; empty where the run does not say."""
        said = (
            f"by the model {self.model}" * bool(self.model),
            f"asked for as {self.form}" * bool(self.form),
            "all variants in one call" * self.batched,
            "with the question" * self.question,
        )
        return ", ".join(filter(None, said))


class Labelling(BaseModel):
    """What ``labelling.json`` of a run says, as far as an analysis asks."""

    kind: str = ""
    made_up: tuple[str, ...] = ()
    verdicts: tuple[Verdict, ...]

    @classmethod
    def read(cls, run: RunDir) -> Labelling:
        """The description of a run of labels.

        Raises:
            UsageError: the run has no labels.
            StoreError: the file is damaged.
        """
        path = run.path / "labelling.json"
        try:
            return cls.model_validate_json(path.read_bytes())
        except FileNotFoundError:
            raise UsageError(
                f"{run.path} holds no labels; `habitus judge` makes a run that does"
            ) from None
        except (OSError, ValidationError) as error:
            reason = str(error).splitlines()[0]
            raise StoreError(f"{path} is damaged ({reason}); restore it from a copy") from None


@dataclass(frozen=True, slots=True)
class Labels:
    """Everything an analysis computes with.

    ``codings`` says for each characteristic what is 1; ``lacking`` names those that the run has no
    labels of. ``made_up``: models whose answers no model gave. ``asked``: the verdict behind a
    characteristic. ``left``: labels that are still to be asked for.
    """

    frames: Mapping[RowsOf, Frame]
    codings: Mapping[str, Coding]
    lacking: tuple[str, ...] = ()
    made_up: tuple[str, ...] = ()
    asked: Mapping[str, Verdict] = field(default_factory=dict)
    left: int = 0


def default_analysis(run: RunDir) -> str:
    """The analysis for a run, by what its items are.

    ``ccbench`` where they have a setting, ``franz`` for posts (or rows with country and category),
    ``answers`` for any others.
    """
    first = next(run.records.iterate(ITEMS, JudgedItem), None)
    fields = first.fields.keys() if first is not None else set()
    if "setting" in fields:
        return "ccbench"
    posts = Labelling.read(run).kind == "posts" or {"country", "category"} <= fields
    return "franz" if posts else "answers"


def read_labels(run: RunDir, analysis: AnalysisFile) -> Labels:
    """Read what an analysis needs of a run.

    Raises:
        UsageError: the run has no items, or none of the labels that the analysis is about.
        StoreError: a label without its item or of one without an answer, or a label that its judge
            cannot have given.
    """
    labelling = Labelling.read(run)
    if not labelling.verdicts:
        raise UsageError(f"{run.path} holds answers and no labels: `habitus judge` labels them")
    codings = dict(_codings(analysis, labelling.verdicts))
    items = _Items(analysis)
    for item in run.records.iterate(ITEMS, JudgedItem):
        items.add(item)
    if not items.rows:
        raise UsageError(f"{run.path} has no items to analyse")
    columns = _Columns(analysis, codings, items)
    for label in run.records.iterate(LABELS, Label):
        columns.add(label)
    lacking = [c.id for c in analysis.characteristics if c.judge and c.id not in codings]
    if codings.keys() <= {c.id for c in analysis.characteristics if c.field}:
        raise UsageError(
            f"{run.path} has labels of none of the characteristics of the analysis "
            f"{analysis.id!r} ({', '.join(lacking)}). It has {_names(labelling.verdicts)}: name them "
            "under 'characteristics' of an analysis file, and give that with --analysis"
        )
    asked = dict(_asked(analysis, labelling.verdicts))
    frames = items.frames(columns.labels)
    return Labels(frames, codings, tuple(lacking), labelling.made_up, asked, columns.left)


def _names(verdicts: Iterable[Verdict]) -> str:
    return ", ".join(f"{verdict.judge}.{verdict.variant}".rstrip(".") for verdict in verdicts)


def _asked(analysis: AnalysisFile, verdicts: Iterable[Verdict]) -> Iterator[tuple[str, Verdict]]:
    there = {(verdict.judge, verdict.variant): verdict for verdict in verdicts}
    for rule in analysis.characteristics:
        if (found := there.get((rule.judge or "", rule.variant or ""))) is not None:
            yield rule.id, found


def _codings(analysis: AnalysisFile, verdicts: Iterable[Verdict]) -> Iterator[tuple[str, Coding]]:
    asked = dict(_asked(analysis, verdicts))
    for rule in analysis.characteristics:
        if rule.judge is None:
            yield rule.id, Coding(rule.labels, ("every other value",))
        elif rule.id in asked:
            found = asked[rule.id]
            yield rule.id, Coding.of(rule, found.labels, found.present)


@dataclass(slots=True)
class _Words:
    """A growing column of words."""

    known: dict[str, int] = field(default_factory=dict)
    codes: array[int] = field(default_factory=lambda: array("i"))

    def add(self, word: str | None) -> None:
        new = len(self.known)
        self.codes.append(-1 if word is None else self.known.setdefault(word, new))

    def column(self) -> Codes:
        """The column, its words in order."""
        values = tuple(sorted(self.known))
        rank = np.full(len(values) + 1, -1, dtype=np.int64)  # the last place is that of -1
        for place, value in enumerate(values):
            rank[self.known[value]] = place
        return Codes(values, rank[np.array(self.codes, dtype=np.int64)])


class _Items:
    """Fields of items that grow by one number each, and by three for each norm."""

    def __init__(self, analysis: AnalysisFile) -> None:
        compares = [analysis.compare_of(question) for question in analysis.questions]
        wanted = {name for c in compares for name in (*c.fields(), c.cluster)}
        wanted |= {c.field for c in analysis.characteristics if c.field is not None}
        self.by_norm = any(compare.rows == "norm" for compare in compares)
        self.read = [c for c in analysis.characteristics if c.field is not None]
        self.rows: dict[str, int] = {}
        self.columns = {name: _Words() for name in sorted(wanted - {"norm", *NORM_FIELDS})}
        self.unanswered: list[int] = []
        self.of_norms = {name: _Words() for name in ("norm", *NORM_FIELDS)}
        self.owner = array("i")

    def add(self, item: JudgedItem) -> None:
        row = self.rows[item.id] = len(self.rows)
        known = item.fields | {"group": item.group, "target": item.target}
        for name, column in self.columns.items():
            column.add(known.get(name))
        if item.outcome is not Outcome.OK:
            self.unanswered.append(row)
        if self.by_norm:
            self._add_norms(row, item.fields)

    def _add_norms(self, row: int, fields: Mapping[str, str]) -> None:
        for name, state in fields.items():
            kind, _, norm = name.partition(".")
            if kind == "state" and norm:
                self.owner.append(row)
                self.of_norms["norm"].add(norm)
                self.of_norms["state"].add(state)
                self.of_norms["met"].add(fields.get(f"met.{norm}"))

    def frames(self, labels: Mapping[str, SmallArray]) -> dict[RowsOf, Frame]:
        fields = {name: column.column() for name, column in self.columns.items()}
        by_field = {c.id: _from_field(c, fields[c.field]) for c in self.read if c.field in fields}
        frame = Frame(fields, {**labels, **by_field}, len(self.unanswered))
        found: dict[RowsOf, Frame] = {"item": frame}
        if self.by_norm:
            found["norm"] = self._norm_frame(frame)
        return found

    def _norm_frame(self, frame: Frame) -> Frame:
        owner: IntArray = np.array(self.owner, dtype=np.int64)
        fields = {name: column.take(owner) for name, column in frame.fields.items()}
        fields |= {name: column.column() for name, column in self.of_norms.items()}
        labels = {name: column[owner] for name, column in frame.labels.items()}
        for rule in self.read:
            if rule.field in self.of_norms:
                labels[rule.id] = _from_field(rule, fields[rule.field])
        if "met" in fields:
            neutral = fields["state"].rows_with(_NEUTRAL) & (fields["met"].codes < 0)
            for rule in self.read:
                if rule.field == "met":
                    labels[rule.id][neutral] = NOT_ASKED
        without = np.isin(owner, np.array(self.unanswered, dtype=np.int64))
        return Frame(fields, labels, int(without.sum()))


class _Columns:
    """A byte for each item and characteristic; a label that was never asked for is not missing."""

    def __init__(
        self, analysis: AnalysisFile, codings: Mapping[str, Coding], items: _Items
    ) -> None:
        self.rows = items.rows
        self.unanswered = frozenset(items.unanswered)
        self.codings = codings
        self.wanted: dict[tuple[str, str], list[str]] = {}
        for rule in analysis.characteristics:
            if rule.judge is not None and rule.id in codings:
                key = (rule.judge, rule.variant or "")
                self.wanted.setdefault(key, []).append(rule.id)
        names = [name for names in self.wanted.values() for name in names]
        fresh = np.full(len(self.rows), NOT_ASKED, dtype=np.int8)
        fresh[items.unanswered] = MISSING
        self.labels: dict[str, SmallArray] = {name: fresh.copy() for name in names}

    def add(self, label: Label) -> None:
        names = self.wanted.get((label.judge, label.variant))
        if names is None:
            return
        row = self.rows.get(label.item)
        if row is None:
            raise StoreError(f"label {label.id!r} is of an item {label.item!r} that is not there")
        if label.id != _label_id(label):
            # Ids are unique in a run, so that no item can have two labels of one judge.
            raise StoreError(f"label {label.id!r} is not called {_label_id(label)!r}")
        if row in self.unanswered:
            raise StoreError(f"label {label.id!r} is of an item that has no answer")
        if (label.outcome is Outcome.OK) != (label.label is not None):
            raise StoreError(f"label {label.id!r} is {label.outcome} and says {label.label!r}")
        for name in names:
            coded = MISSING if label.label is None else self.codings[name].checked(label)
            self.labels[name][row] = coded

    @property
    def left(self) -> int:
        """How many labels are still to be asked for, those of one verdict once."""
        return sum(
            int((self.labels[names[0]] == NOT_ASKED).sum()) for names in self.wanted.values()
        )


def _label_id(label: Label) -> str:
    variant = f".{label.variant}" if label.variant else ""
    return f"{label.item}/{label.judge}{variant}"


def _from_field(rule: CharacteristicFile, column: Codes) -> SmallArray:
    """1 where a field has one of the values, 0 where it has another, missing where it has none."""
    ones = np.array([(value in rule.labels) != rule.violates for value in column.values] + [False])
    found = ones[column.codes].astype(np.int8)
    found[column.codes < 0] = MISSING
    return found
