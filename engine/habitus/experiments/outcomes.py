"""The outcomes of a run of an experiment, stage by stage, counted while its records pass by.

    counted = RunOutcomes(run, read_materials(run))
    table = read_verdicts(counted.evaluations(), design)     # the verdicts are read once
    counted.table()

Stages have the names of their tables of records; ``checks`` are those of the verifier inside attempts,
``verdicts`` those inside evaluations.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import cached_property

from habitus.analysis import OutcomeCounter, OutcomeTable
from habitus.analysis.outcomes import outcome_of
from habitus.analysis.reading import answer_of
from habitus.errors import StoreError
from habitus.experiments.materials import Materials
from habitus.experiments.responding import SHARED
from habitus.records import (
    Attempt,
    Evaluation,
    Failure,
    Outcome,
    Response,
    SafetyLabel,
)
from habitus.store import RunDir

KEYS = ("target", "setting", "culture", "judge", "model")
STAGES = (
    "attempts",
    "checks",
    "histories",
    "recommendations",
    "responses",
    "verdicts",
    "safety",
)
_PARTS = 5  # of a response's id
SHARED_CULTURE = "all (shared)"  # of a response that serves all personas


class RunOutcomes:
    """Counts a run. Records that others want to see as well pass through, one at a time."""

    def __init__(self, run: RunDir, kept: Materials) -> None:
        self._run = run
        self._kept = kept
        self._design = kept.design()
        self._counter = OutcomeCounter(KEYS, STAGES)
        self._stages = frozenset(run.records.stages())
        roles: Mapping[str, Mapping[str, str] | None] = run.config.get("roles", {})
        self._models = {name: str(role["model"]) for name, role in roles.items() if role}
        targets: Mapping[str, Mapping[str, str]] = run.config.get("targets", {})
        self._targets = {name: str(role["model"]) for name, role in targets.items()}

    def evaluations(self) -> Iterator[Evaluation]:
        """All evaluations, each counted verdict by verdict."""
        for evaluation in self._run.records.iterate("evaluations", Evaluation):
            self._evaluation(evaluation)
            yield evaluation

    def safety(self) -> Iterator[SafetyLabel]:
        """All labels of the safety judge, counted."""
        for label in self._run.records.iterate("safety", SafetyLabel):
            self._safety(label)
            yield label

    def table(self) -> OutcomeTable:
        """Counts everything but evaluations and safety labels, and gives all of it."""
        if "attempts" in self._stages:
            for attempt in self._run.records.iterate("attempts", Attempt):
                self._attempt(attempt)
        for stage, count in (
            ("histories", self._history),
            ("recommendations", self._recommendation),
            ("responses", self._response),
        ):
            for name, outcome, reason in self._run.records.endings(stage):
                count(name, outcome_of(outcome, reason))
        counts = self._kept.counts
        return self._counter.table(
            {
                "histories": counts.histories,
                "recommendations": counts.recommendations,
                "responses": counts.responses,
                "verdicts": counts.items,
                "safety": counts.safety,
            }
        )

    def _attempt(self, attempt: Attempt) -> None:
        culture = self._culture(attempt.persona)
        sides = dict.fromkeys(self._models.get(r, "") for r in ("persona", "assistant"))
        place = ("", "", culture, "", ", ".join(sides))
        failure = outcome_of(attempt.outcome, attempt.reason)
        self._counter.add("attempts", place, attempt.id, failure)
        place = ("", "", culture, "verifier", self._models.get("verifier", ""))
        if attempt.check is not None:
            failure = outcome_of(attempt.check.outcome, attempt.check.reason)
            self._counter.add("checks", place, attempt.id, failure)
        else:
            self._counter.skip("checks", place, attempt.id, f"session {attempt.outcome}")

    def _history(self, name: str, failure: Failure | None) -> None:
        self._counter.add("histories", ("", "", self._culture(name), "", ""), name, failure)

    def _recommendation(self, name: str, failure: Failure | None) -> None:
        norm = self._kept.norms.get(name.partition("/")[0])
        place = ("", "", norm.culture if norm else "", "", self._models.get("recommender", ""))
        self._counter.add("recommendations", place, name, failure)

    def _response(self, name: str, failure: Failure | None) -> None:
        parts = name.split("/")
        if len(parts) != _PARTS:
            raise StoreError(f"{self._run.path}: response {name!r} is not called as responses are")
        target, setting, persona = parts[:3]
        shared = persona == SHARED
        culture = SHARED_CULTURE if shared else self._culture(persona)
        place = (target, setting, culture, "", self._targets.get(target, ""))
        if failure is not None and self._has_no_history(name, persona, failure):
            self._counter.skip("responses", place, name, f"history {self._histories[persona]}")
        else:
            self._counter.add("responses", place, name, failure)

    def _has_no_history(self, name: str, persona: str, failure: Failure) -> bool:
        """Whether a response was not asked for since its persona's history is not whole."""
        if failure.outcome is not Outcome.ERROR or persona not in self._histories:
            return False
        found = self._run.records.get("responses", name, Response)
        return found is not None and not found.calls

    def _evaluation(self, evaluation: Evaluation) -> None:
        persona, target = evaluation.persona, evaluation.target
        model = self._models.get("evaluator", "")
        place = (target, evaluation.setting, self._culture(persona), "evaluator", model)
        given = {verdict.norm: verdict for verdict in evaluation.verdicts}
        for norm in self._design.items[persona]:
            verdict = given.get(norm)
            answer, outcome = answer_of(verdict, evaluation.outcome)
            why = ""
            if answer < 0:
                asked = verdict.recommendation if verdict is not None else ""
                why = self._before(evaluation.response, asked)
            if why:
                self._counter.skip("verdicts", place, evaluation.id, why)
                continue
            reason = (verdict.reason if verdict is not None else "") or evaluation.reason
            failure = None if answer >= 0 else Failure(outcome, reason)
            self._counter.add("verdicts", place, evaluation.id, failure)

    def _before(self, response: str, recommendation: str) -> str:
        """Why a verdict could not be asked for; empty where it was."""
        found = self._run.records.outcome("responses", response)
        if found is not None and found is not Outcome.OK:
            return f"response {found}"
        written = self._recommendations.get(recommendation)
        return f"recommendation {written}" if written is not None else ""

    def _safety(self, label: SafetyLabel) -> None:
        shared = label.persona == SHARED
        culture = SHARED_CULTURE if shared else self._culture(label.persona)
        place = (label.target, label.setting, culture, "safety", self._models.get("safety", ""))
        if label.outcome is Outcome.OK and label.unsafe is not None:
            self._counter.add("safety", place, label.id, None)
            return
        why = self._before(label.response, "")
        if why:
            self._counter.skip("safety", place, label.id, why)
        else:
            failed = Outcome.UNPARSED if label.outcome is Outcome.OK else label.outcome
            self._counter.add("safety", place, label.id, Failure(failed, label.reason))

    def _culture(self, persona: str) -> str:
        return self._design.culture(persona)

    @cached_property
    def _histories(self) -> Mapping[str, Outcome]:
        """Histories that are not whole, by persona."""
        return self._run.records.failed("histories")

    @cached_property
    def _recommendations(self) -> Mapping[str, Outcome]:
        """Recommendations that could not be written; their number is that of norms and queries."""
        return self._run.records.failed("recommendations")
