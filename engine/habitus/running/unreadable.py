"""Judges that answer and are never understood: each answer is paid for, and none is a verdict.

A call that fails is seen by the model's own counters. Here are the records made of answers that came: of
the verifier, the recommender, the evaluator and judges of all kinds. Responses are left out: that a
model under test does not keep to a form is a finding.
"""

from __future__ import annotations

from dataclasses import dataclass

from habitus.records import (
    Attempt,
    Evaluation,
    Label,
    Outcome,
    Recommendation,
    SafetyLabel,
    SessionCheck,
    StageRecord,
)

Judged = SessionCheck | Recommendation | Evaluation | SafetyLabel | Label


@dataclass(slots=True)
class Never:
    """A judge of which no answer could be read so far: how many there were, and the first reason."""

    who: str
    answers: int = 0
    reason: str = ""
    read: bool = False


class Unreadable:
    """Counts what came of the answers of each judge; ``after`` so many it speaks up."""

    def __init__(self, after: int) -> None:
        self._after = after
        self._judges: dict[str, Never] = {}

    def see(self, record: StageRecord) -> Never | None:
        """Count a record; the judge, if its first ``after`` answers were all unreadable."""
        who, made = _made(record)
        if made is None or not made.calls or made.outcome not in {Outcome.OK, Outcome.UNPARSED}:
            return None
        found = self._judges.setdefault(who, Never(who))
        found.answers += 1
        found.read = found.read or _read(made)
        found.reason = found.reason or made.reason
        return found if found.answers >= self._after and not found.read else None


def _made(record: StageRecord) -> tuple[str, Judged | None]:
    """Who was asked, and what came of it; None where nobody was."""
    match record:
        case Attempt():
            return "verifier", record.check
        case Label():
            return f"judge {record.judge}", record
        case Recommendation():
            return "recommender", record
        case Evaluation():
            return "evaluator", record
        case SafetyLabel():
            return "safety judge", record
    return "", None


def _read(made: Judged) -> bool:
    """Whether anything of an answer was understood."""
    if isinstance(made, Evaluation):
        return any(verdict.outcome is Outcome.OK for verdict in made.verdicts)
    return made.outcome is Outcome.OK
