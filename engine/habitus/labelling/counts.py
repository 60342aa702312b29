"""What labels a run has: by judge and variant, with what could not be read beside them."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import Any

from habitus.labelling.answering import CUT
from habitus.labelling.note import ITEMS, LABELS, Labelling, VerdictNote, read_labelling
from habitus.records import JudgedItem, Label, Outcome
from habitus.store import RunDir
from habitus.store.database import damaged


@dataclass(slots=True)
class LabelCount:
    """The labels of one verdict.

    Of ``items`` that are in the run, ``unanswered`` have no response; of the others each has a
    label, or a failure by its outcome, or is still to be asked for.
    """

    note: VerdictNote
    items: int
    unanswered: int
    labels: Counter[str] = field(default_factory=Counter)
    failed: Counter[Outcome] = field(default_factory=Counter)

    @property
    def judged(self) -> int:
        """Items with a label."""
        return self.labels.total()

    @property
    def present(self) -> int:
        """Items with a label that counts as present, or as adhering."""
        return sum(self.labels[label] for label in self.note.present)

    @property
    def share(self) -> float | None:
        """``present`` of ``judged``; None of nothing."""
        return self.present / self.judged if self.judged else None

    @property
    def left(self) -> int:
        """Items that are still to be judged."""
        return self.items - self.unanswered - self.judged - self.failed.total()

    def as_json(self) -> dict[str, Any]:
        """All counts, for a file or a pipe."""
        return {
            **self.note.model_dump(),
            "items": self.items,
            "unanswered": self.unanswered,
            "judged": self.judged,
            "counts": {label: self.labels[label] for label in self.note.labels},
            "present_n": self.present,
            "share": self.share,
            "failed": {str(outcome): n for outcome, n in sorted(self.failed.items())},
            "left": self.left,
        }


def count_labels(run: RunDir) -> tuple[Labelling, list[LabelCount]]:
    """What is known of the run, and the counts of each of its verdicts."""
    note = read_labelling(run)
    items = run.records.counts(ITEMS) if ITEMS in run.records.stages() else {}
    total = sum(items.values())
    unanswered = total - items.get(Outcome.OK, 0)
    counts = {(v.judge, v.variant): LabelCount(v, total, unanswered) for v in note.verdicts}
    for label in run.records.iterate(LABELS, Label):
        count = counts.get((label.judge, label.variant))
        if count is None:
            raise damaged(run.path, f"{label.id} is of a judge that the run does not have")
        if label.label is None:
            count.failed[label.outcome] += 1
        else:
            count.labels[label.label] += 1
    return note, list(counts.values())


@dataclass(slots=True)
class AnswerCount:
    """What a target answered of the posts it was asked about, and how much of it was cut."""

    target: str
    posts: int = 0
    answered: int = 0
    cut: int = 0

    @property
    def failed(self) -> int:
        """Posts without a usable answer."""
        return self.posts - self.answered


def count_answers(run: RunDir) -> list[AnswerCount]:
    """Answers by target, in the order of their names."""
    counts: dict[str, AnswerCount] = {}
    for item in run.records.iterate(ITEMS, JudgedItem):
        count = counts.setdefault(item.target, AnswerCount(item.target))
        count.posts += 1
        count.answered += item.outcome is Outcome.OK
        count.cut += item.fields.get(CUT) == "yes"
    return [counts[target] for target in sorted(counts)]
