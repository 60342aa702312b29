"""What became of everything that was asked for: counted by outcome, never scored.

    counter = OutcomeCounter(("target", "setting", "culture", "judge", "model"))
    counter.add("responses", ("a", "hist", "maori", "", "gpt"), "a/hist/maori-01/...", None)
    counter.add("responses", place, name, Failure(Outcome.REFUSED, "policy"))
    counter.skip("verdicts", place, name, "response refused")
    table = counter.table()

A row is a stage and a place: the target, the setting, the culture, who judged. Its parts add up:
``total = ok + failed + not_asked``. *Not asked* is what could not be asked for, as that which it is
about is not there: a verdict on a response that was refused is the target's failure, which stands in
the row of its responses, and not the judge's.

Nothing here knows where records are stored, or which stages there are. What is kept grows with the
number of rows and not with that of records.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from habitus.analysis.design import setting_rank
from habitus.records import Failure, Outcome

FAILED = tuple(outcome for outcome in Outcome if outcome is not Outcome.OK)
NOT_ASKED = "not asked"
_REASONS = 50  # different reasons that a row keeps
_LENGTH = 300  # characters of one
_TOLD = 5  # reasons of a row in a file


@dataclass(frozen=True, slots=True)
class Reason:
    """Why something has no usable answer: so often, and the id of the first.

    ``outcome`` is that of an answer, or ``not asked``.
    """

    outcome: str
    text: str
    count: int
    example: str

    def as_json(self) -> dict[str, Any]:
        """As plain data."""
        return {
            "outcome": self.outcome,
            "reason": self.text,
            "count": self.count,
            "example": self.example,
        }


@dataclass(frozen=True, slots=True)
class OutcomeRow:
    """Everything of one stage in one place.

    ``place`` has a word for each key of the table, empty where a key does not apply. ``reasons`` are
    the commonest first; ``other`` more failures have reasons that are not kept.
    """

    stage: str
    place: tuple[str, ...]
    ok: int
    failed: Mapping[Outcome, int]
    not_asked: int
    reasons: tuple[Reason, ...]
    other: int = 0

    @property
    def failures(self) -> int:
        """What was asked for and has no usable answer."""
        return sum(self.failed.values())

    @property
    def total(self) -> int:
        """All that should be there."""
        return self.ok + self.failures + self.not_asked

    @property
    def asked(self) -> int:
        """What was asked for, answered or not."""
        return self.ok + self.failures


@dataclass(frozen=True, slots=True)
class OutcomeTable:
    """Rows by stage and place; ``keys`` name the words of a place.

    ``left``: how many of a stage are still to be asked for, where it is some. They are in no row.
    """

    keys: tuple[str, ...]
    rows: tuple[OutcomeRow, ...]
    left: Mapping[str, int] = field(default_factory=dict)

    @property
    def failures(self) -> int:
        """What failed in all stages together."""
        return sum(row.failures for row in self.rows)

    @property
    def unfinished(self) -> str:
        """What is still to be asked for, in words; empty where nothing is."""
        told = ", ".join(f"{stage} {n:,}" for stage, n in self.left.items())
        return (
            f"the run is not complete: still to be asked for {told}; what is not there stands in no number"
            * bool(told)
        )

    @property
    def stages(self) -> tuple[str, ...]:
        """The stages in their order."""
        return tuple(dict.fromkeys(row.stage for row in self.rows))

    def word(self, row: OutcomeRow, key: str) -> str:
        """A word of a row's place; empty where the table has no such key."""
        return row.place[self.keys.index(key)] if key in self.keys else ""

    def of(self, stage: str) -> tuple[OutcomeRow, ...]:
        """The rows of a stage."""
        return tuple(row for row in self.rows if row.stage == stage)

    def records(self) -> list[dict[str, Any]]:
        """A row of plain values each, all with the same names: for a file of a table."""
        return [
            {
                "stage": row.stage,
                **dict(zip(self.keys, row.place, strict=True)),
                "total": row.total,
                "ok": row.ok,
                **{str(outcome): row.failed.get(outcome, 0) for outcome in FAILED},
                "not_asked": row.not_asked,
                "reasons": in_words(row, _TOLD),
            }
            for row in self.rows
        ]

    def as_json(self) -> list[dict[str, Any]]:
        """The rows as plain data, with the commonest reasons of each as records."""
        return [
            {**flat, "reasons": [r.as_json() for r in row.reasons[:_TOLD]], "other_reasons": left}
            for flat, row in zip(self.records(), self.rows, strict=True)
            for left in [row.failures + row.not_asked - sum(r.count for r in row.reasons[:_TOLD])]
        ]


@dataclass
class _Tally:
    """What is counted in one place."""

    ok: int = 0
    failed: Counter[Outcome] = field(default_factory=Counter)
    not_asked: int = 0
    reasons: Counter[tuple[str, str]] = field(default_factory=Counter)
    examples: dict[tuple[str, str], str] = field(default_factory=dict)
    other: int = 0

    def why(self, outcome: str, text: str, name: str) -> None:
        key = (outcome, _cut(text))
        if key not in self.reasons and len(self.reasons) >= _REASONS:
            self.other += 1
            return
        self.reasons[key] += 1
        self.examples.setdefault(key, name)


class OutcomeCounter:
    """Counts outcomes as records pass by; records in the order of their ids give the same table."""

    def __init__(self, keys: Sequence[str], stages: Sequence[str] = ()) -> None:
        """``stages`` are in their order; others follow as they come."""
        self.keys = tuple(keys)
        self._order = {stage: i for i, stage in enumerate(stages)}
        self._tallies: dict[tuple[str, tuple[str, ...]], _Tally] = {}

    def add(self, stage: str, place: tuple[str, ...], name: str, failure: Failure | None) -> None:
        """Count one answer, or why there is none."""
        tally = self._tally(stage, place)
        if failure is None:
            tally.ok += 1
            return
        tally.failed[failure.outcome] += 1
        tally.why(str(failure.outcome), failure.reason or "no reason given", name)

    def skip(self, stage: str, place: tuple[str, ...], name: str, why: str) -> None:
        """Count one that could not be asked for."""
        tally = self._tally(stage, place)
        tally.not_asked += 1
        tally.why(NOT_ASKED, why, name)

    def add_many(
        self, stage: str, place: tuple[str, ...], ok: int, not_asked: Counter[str]
    ) -> None:
        """Count many at once: good ones, and those not asked for by the reason."""
        tally = self._tally(stage, place)
        tally.ok += ok
        for why, count in not_asked.items():
            tally.not_asked += count
            tally.reasons[NOT_ASKED, why] += count

    def table(self, expected: Mapping[str, int] | None = None) -> OutcomeTable:
        """All that was counted, in order.

        Args:
            expected: how many of a stage there are when everything is done; stages that are not
                named are as they should be.
        """
        rows = tuple(_row(*key, t) for key, t in self._sorted())
        there = Counter[str]()
        for row in rows:
            there[row.stage] += row.total
        left = {s: n - there[s] for s, n in (expected or {}).items() if n > there[s]}
        return OutcomeTable(self.keys, rows, left)

    def _tally(self, stage: str, place: tuple[str, ...]) -> _Tally:
        found = self._tallies.get((stage, place))
        if found is None:
            if len(place) != len(self.keys):
                raise ValueError(f"{len(place)} words for the keys {self.keys}")
            self._order.setdefault(stage, len(self._order))
            found = self._tallies[stage, place] = _Tally()
        return found

    def _sorted(self) -> list[tuple[tuple[str, tuple[str, ...]], _Tally]]:
        def rank(entry: tuple[tuple[str, tuple[str, ...]], _Tally]) -> Any:
            (stage, place), _ = entry
            words = [
                setting_rank(word) if key == "setting" else (0, word)
                for key, word in zip(self.keys, place, strict=True)
            ]
            return self._order[stage], words

        return sorted(self._tallies.items(), key=rank)


def in_words(row: OutcomeRow, most: int, length: int = _LENGTH) -> str:
    """The commonest reasons of a row in one line, and how many failures have others."""
    told = [f"{r.outcome}: {_cut(r.text, length)} ({r.count:,})" for r in row.reasons[:most]]
    left = row.failures + row.not_asked - sum(r.count for r in row.reasons[:most])
    return "; ".join([*told, *([f"{left:,} for other reasons"] if left else [])])


@dataclass(frozen=True, slots=True)
class Cause:
    """Why how many of a stage failed: one reason of one target or judge, with the id of the first.

    ``total`` is all of the stage.
    """

    stage: str
    who: str
    model: str
    reason: Reason
    total: int


def causes(table: OutcomeTable) -> list[Cause]:
    """The causes of all failures, the most frequent first; reasons that rows do not keep are one.

    What was not asked is left out: its cause stands in another stage.
    """
    totals = Counter[str]()
    found: Counter[tuple[str, ...]] = Counter()
    examples: dict[tuple[str, ...], str] = {}
    for row in table.rows:
        totals[row.stage] += row.total
        for reason in _failures(row):
            who = ".".join(filter(None, (table.word(row, k) for k in ("judge", "variant"))))
            by = (who or table.word(row, "target"), table.word(row, "model"))
            key = (row.stage, *by, reason.outcome, reason.text)
            found[key] += reason.count
            examples.setdefault(key, reason.example)
    return [
        Cause(stage, who, model, Reason(outcome, text, count, examples[key]), totals[stage])
        for key, count in sorted(found.items(), key=lambda item: (-item[1], item[0]))
        for stage, who, model, outcome, text in [key]
    ]


def _failures(row: OutcomeRow) -> Iterator[Reason]:
    """The reasons of a row's failures by outcome; what is not kept is told as such."""
    kept = Counter[str]()
    for reason in row.reasons:
        if reason.outcome != NOT_ASKED:
            kept[reason.outcome] += reason.count
            yield reason
    for outcome, count in row.failed.items():
        if count > kept[str(outcome)]:
            yield Reason(str(outcome), "other reasons", count - kept[str(outcome)], "")


def _row(stage: str, place: tuple[str, ...], tally: _Tally) -> OutcomeRow:
    ranked = sorted(tally.reasons.items(), key=lambda item: (-item[1], item[0]))
    return OutcomeRow(
        stage=stage,
        place=place,
        ok=tally.ok,
        failed={o: tally.failed[o] for o in FAILED if tally.failed[o]},
        not_asked=tally.not_asked,
        reasons=tuple(
            Reason(outcome, text, count, tally.examples.get((outcome, text), ""))
            for (outcome, text), count in ranked
        ),
        other=tally.other,
    )


def _cut(text: str, length: int = _LENGTH) -> str:
    plain = " ".join(text.split())
    return f"{plain[:length]} …" if len(plain) > length else plain


def outcome_of(failed: Outcome, reason: str) -> Failure | None:
    """A failure, or None where an outcome is ok."""
    return None if failed is Outcome.OK else Failure(failed, reason)


def total_of(rows: Iterable[OutcomeRow]) -> int:
    """All of some rows."""
    return sum(row.total for row in rows)
