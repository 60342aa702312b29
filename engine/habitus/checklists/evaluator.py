"""Scoring one response against one persona's items.

The evaluator sees the response and the recommendations, joined by the norm's label; neither query, nor
state, nor history. Reasoning stands before the verdict by default (``verdict_first`` is the
switch), and ``echo`` asks it to repeat norm and recommendation, as published (CCBench, arXiv
2607.05405).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, cast

from habitus.agents import Answer, ItemReader, Items, ask
from habitus.content import Prompt
from habitus.models import ChatModel
from habitus.personas.portrait import Portrait
from habitus.records import (
    Evaluation,
    Failure,
    Outcome,
    Recommendation,
    Request,
    Response,
    Sampling,
    Verdict,
    derive_seed,
    rubric_first,
)


@dataclass(frozen=True, slots=True)
class EvaluationForm:
    """The form of the evaluator's answer.

    Args:
        verdict_first: ask for the verdict before the reasoning.
        echo: let each answer repeat norm and recommendation before it judges.
        reasoning: longest reasoning in characters; 0 asks for none.
    """

    verdict_first: bool = False
    echo: bool = False
    reasoning: int = 300

    def item(self) -> dict[str, Any]:
        """JSON Schema of one item; the order of properties is the order of writing."""
        properties: dict[str, Any] = {}
        if self.echo:
            properties |= {key: {"type": "string"} for key in ("norm", "recommendation")}
        verdict = {"adherence": {"type": "boolean"}}
        reasoning = {"reasoning": {"type": "string", "maxLength": self.reasoning}}
        parts: list[dict[str, Any]] = [reasoning if self.reasoning else {}, verdict]
        for part in reversed(parts) if self.verdict_first else parts:
            properties |= part
        return {
            "type": "object",
            "properties": properties,
            "required": list(properties),
            "additionalProperties": False,
        }


@dataclass
class Evaluator:
    """Scores responses.

    Args:
        model: who judges.
        sampling: how.
        prompt: placeholders ``items`` and ``response``.
        seed: the seed of the experiment.
        form: what each item's answer holds.
    """

    model: ChatModel
    sampling: Sampling
    prompt: Prompt
    seed: int
    form: EvaluationForm = field(default_factory=EvaluationForm)
    _readers: dict[tuple[str, ...], ItemReader] = field(default_factory=dict)

    async def evaluate(
        self, response: Response, portrait: Portrait, recommendations: Sequence[Recommendation]
    ) -> Evaluation:
        """The verdicts of one response for one persona.

        A response that is not ok, or a recommendation that could not be written, has verdicts
        with that outcome and no call; nothing of it counts as unmet.
        """
        usable = [r for r in recommendations if r.outcome is Outcome.OK]
        answer = _none(response.outcome, f"response {response.outcome}: {response.reason}")
        if response.outcome is Outcome.OK and usable:
            request = self._request(response, portrait, usable)
            answer = await ask(self.model, request, self._reader(portrait, usable))
        return _evaluation(response, portrait, recommendations, answer)

    def _reader(self, portrait: Portrait, items: Sequence[Recommendation]) -> ItemReader:
        ids = tuple(portrait.labels[r.norm] for r in items)
        if ids not in self._readers:
            self._readers[ids] = ItemReader("checklist", ids, self.form.item())
        return self._readers[ids]

    def _request(
        self, response: Response, portrait: Portrait, items: Sequence[Recommendation]
    ) -> Request:
        rubric, rest = rubric_first(
            self.prompt.fill({"items": _items(portrait, items), "response": response.text})
        )
        name = f"{response.id}/{portrait.id}"
        return Request(
            messages=rest,
            prefix=rubric,
            sampling=self.sampling,
            seed=derive_seed(self.seed, "evaluate", name),
            repeat=response.repeat,
            stage="verdicts",
            record=name,
            context={"role": "evaluator", "response": response.id, "persona": portrait.id},
        )


def _items(portrait: Portrait, items: Sequence[Recommendation]) -> str:
    """The checklist; a recommendation stays on its line, so that none can pass for two."""
    return "\n".join(
        f"- norm_id: {portrait.labels[r.norm]}\n"
        f"  norm: {portrait.statements[r.norm]}\n"
        f"  recommendation: {' '.join(r.text.split())}"
        for r in items
    )


def _none(outcome: Outcome, reason: str) -> Answer[Items]:
    return Answer(None, Failure(outcome, reason), ())


def _evaluation(
    response: Response,
    portrait: Portrait,
    recommendations: Sequence[Recommendation],
    answer: Answer[Items],
) -> Evaluation:
    verdicts = tuple(_verdict(r, portrait.labels[r.norm], answer) for r in recommendations)
    worst = next((v for v in verdicts if v.outcome is not Outcome.OK), None)
    items = answer.value
    return Evaluation(
        id=f"{response.id}/{portrait.id}",
        outcome=worst.outcome if worst else Outcome.OK,
        reason=worst.reason if worst else "",
        response=response.id,
        target=response.target,
        setting=response.setting,
        persona=portrait.id,
        query=response.query,
        repeat=response.repeat,
        verdicts=verdicts,
        missing=len(items.missing) if items else 0,
        extra=items.extra if items else 0,
        doubled=items.doubled if items else 0,
        calls=answer.calls,
    )


def _verdict(recommendation: Recommendation, label: str, answer: Answer[Items]) -> Verdict:
    read: Mapping[str, Any] | None = None
    if recommendation.outcome is not Outcome.OK:
        failure = Failure(recommendation.outcome, f"recommendation: {recommendation.reason}")
    elif answer.value is None:
        failure = cast("Failure", answer.failure)
    else:
        read = answer.value.read.get(label)
        why = answer.value.invalid.get(label, "not answered")
        failure = Failure(Outcome.OK if read is not None else Outcome.UNPARSED, why)
    return Verdict(
        norm=recommendation.norm,
        state=recommendation.state,
        recommendation=recommendation.id,
        satisfied=read["adherence"] if read is not None else None,
        outcome=failure.outcome,
        reason="" if read is not None else failure.reason,
        reasoning=str(read.get("reasoning", "")) if read is not None else "",
    )
