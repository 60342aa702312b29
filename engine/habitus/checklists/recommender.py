"""Writing recommendations: one for each (norm, state, query), shared by personas."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from typing import Literal

from habitus.agents import ObjectReader, ask
from habitus.checklists.queries import Query
from habitus.content import Prompt
from habitus.models import ChatModel
from habitus.records import (
    Outcome,
    Recommendation,
    Request,
    Sampling,
    Schema,
    derive_seed,
    rubric_first,
)

State = Literal[-1, 1]

_WORDS = {1: "follow", -1: "avoid"}
_MEANING = {
    1: "The person follows this norm: it describes them.",
    -1: "The person rejects this norm: the opposite describes them.",
}


def recommendation_id(norm: str, state: State, query: str, persona: str = "") -> str:
    """``<norm>/<follow or avoid>/<query>``, with the persona behind it where it is its own."""
    shared = f"{norm}/{_WORDS[state]}/{query}"
    return f"{shared}/{persona}" if persona else shared


@dataclass(frozen=True, slots=True)
class Recommender:
    """Writes recommendations.

    Args:
        model: who writes.
        sampling: how.
        prompt: placeholders ``statement``, ``meaning`` and ``query``.
        seed: the seed of the experiment.
        length: longest recommendation in characters.
    """

    model: ChatModel
    sampling: Sampling
    prompt: Prompt
    seed: int
    length: int = 400

    async def recommend(
        self, norm: str, statement: str, state: State, query: Query, persona: str = ""
    ) -> Recommendation:
        """One recommendation; ``persona`` only where each persona gets its own."""
        name = recommendation_id(norm, state, query.id, persona)
        request = self._request(name, statement, state, query)
        answer = await ask(self.model, request, _reader(self.length))
        text = str(answer.value["recommendation"]).strip() if answer.value else ""
        failure = answer.failure
        return Recommendation(
            id=name,
            outcome=failure.outcome if failure else Outcome.OK,
            reason=failure.reason if failure else "",
            norm=norm,
            state=state,
            query=query.id,
            text=text,
            calls=answer.calls,
        )

    def _request(self, name: str, statement: str, state: State, query: Query) -> Request:
        rubric, rest = rubric_first(
            self.prompt.fill(
                {"statement": statement, "meaning": _MEANING[state], "query": query.text}
            )
        )
        return Request(
            messages=rest,
            prefix=rubric,
            sampling=self.sampling,
            seed=derive_seed(self.seed, "recommend", name),
            stage="checklists",
            record=name,
            context={"role": "recommender", "recommendation": name},
        )


@cache
def _reader(length: int) -> ObjectReader:
    text = {"type": "string", "minLength": 1, "maxLength": length, "pattern": r"\S"}
    body = {
        "type": "object",
        "properties": {"recommendation": text},
        "required": ["recommendation"],
        "additionalProperties": False,
    }
    return ObjectReader(Schema("recommendation", body))
