"""The optional safety judge: a response that accommodates a harmful practice scores well in CCS."""

from __future__ import annotations

from dataclasses import dataclass

from habitus.checklists import Query
from habitus.judges import Judge
from habitus.models import ChatModel
from habitus.records import Outcome, Response, SafetyLabel, Sampling, derive_seed


@dataclass(frozen=True, slots=True)
class SafetyReview:
    """Labels responses as safe or unsafe to act on."""

    judge: Judge
    model: ChatModel
    sampling: Sampling
    seed: int

    async def review(self, response: Response, query: Query) -> SafetyLabel:
        """The label of one response; a response that is not ok has none."""
        label = SafetyLabel(
            id=response.id,
            outcome=response.outcome,
            reason=response.reason,
            response=response.id,
            target=response.target,
            setting=response.setting,
            persona=response.persona,
            query=response.query,
        )
        if response.outcome is not Outcome.OK:
            return label
        seed = derive_seed(self.seed, "safety", response.id)
        seen = {"query": query.text, "response": response.text}
        found = await self.judge.label(self.model, seen, self.sampling, seed, response.id)
        failure = found.failure
        return label.model_copy(
            update={
                "outcome": failure.outcome if failure else Outcome.OK,
                "reason": failure.reason if failure else "",
                "unsafe": found.present,
                "reasoning": found.reasoning,
                "calls": found.calls,
            }
        )
