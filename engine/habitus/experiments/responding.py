"""Asking a target: one response for (target, setting, persona, query, repeat)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from habitus.checklists import Query
from habitus.experiments.settings import Setting, split_answer
from habitus.models import ChatModel
from habitus.records import (
    Outcome,
    Prefix,
    Reply,
    Request,
    Response,
    Sampling,
    derive_seed,
)

SHARED = "-"  # the persona of a response that belongs to none


@dataclass(frozen=True, slots=True)
class Target:
    """A model under test."""

    id: str
    model: ChatModel
    sampling: Sampling


@dataclass(frozen=True, slots=True)
class Question:
    """What one response answers; ``prefix`` is what the setting shows before the query.

    ``recommendations`` are the ids of the items it may be scored by. They are not sent: a
    planted target draws from them.
    """

    target: Target
    setting: Setting
    persona: str
    query: Query
    repeat: int
    prefix: Prefix | None
    history: str = ""
    recommendations: Sequence[str] = field(default=(), repr=False)

    @property
    def id(self) -> str:
        """``<target>/<setting>/<persona>/<query>/rN``."""
        return f"{self.target.id}/{self.setting.id}/{self.persona}/{self.query.id}/r{self.repeat}"


@dataclass(frozen=True, slots=True)
class Responder:
    """Makes responses.

    Args:
        seed: the seed of the experiment.
        score: ``answer`` scores what stands below the answer line, ``everything`` the whole.
    """

    seed: int
    score: str = "answer"

    async def respond(self, question: Question) -> Response:
        """One response. A reply without its answer line is asked for once more."""
        request = self._request(question)
        reply = await question.target.model.complete(request)
        calls = [reply.key.hex()]
        if reply.ok and question.setting.file.answer_after and not self._split(question, reply):
            seed = derive_seed(self.seed, "respond", question.id, question.repeat, 1)
            again = replace(request, attempt=1, seed=seed)
            reply = await question.target.model.complete(again)
            calls.append(reply.key.hex())
        return self._response(question, reply, tuple(calls))

    def _request(self, question: Question) -> Request:
        return Request(
            messages=(question.setting.last_message(question.query.text),),
            prefix=question.prefix,
            sampling=question.target.sampling,
            seed=derive_seed(self.seed, "respond", question.id, question.repeat),
            repeat=question.repeat,
            stage="responses",
            record=question.id,
            context=_context(question),
        )

    def _split(self, question: Question, reply: Reply) -> tuple[str, str] | None:
        """(working, what is scored) of a reply, or None when there is nothing to score."""
        marker = question.setting.file.answer_after
        parts = split_answer(reply.text, marker) if marker else ("", reply.text)
        if parts is None or not parts[1].strip():
            return None
        return parts if self.score == "answer" else ("", reply.text)

    def _response(self, question: Question, reply: Reply, calls: tuple[str, ...]) -> Response:
        outcome, reason = reply.outcome, reply.reason
        parts = self._split(question, reply) if reply.ok else ("", reply.text)
        if parts is None:
            marker = question.setting.file.answer_after
            outcome = Outcome.UNPARSED
            reason = f"no answer below a line {marker!r}" if marker else "empty"
        working, text = parts or ("", reply.text)
        return Response(
            id=question.id,
            outcome=outcome,
            reason=reason,
            target=question.target.id,
            setting=question.setting.id,
            persona=question.persona,
            query=question.query.id,
            repeat=question.repeat,
            text=text,
            working=working,
            reasoning=reply.reasoning,
            history=question.history,
            calls=calls,
        )


def failed_response(question: Question, reason: str) -> Response:
    """The response that was not asked for, since what it needs could not be made."""
    return Response(
        id=question.id,
        outcome=Outcome.ERROR,
        reason=reason,
        target=question.target.id,
        setting=question.setting.id,
        persona=question.persona,
        query=question.query.id,
        repeat=question.repeat,
        history=question.history,
    )


def _context(question: Question) -> Mapping[str, Any]:
    return {
        "role": "target",
        "setting": question.setting.id,
        "persona": question.persona,
        "query": question.query.id,
        "answer_after": question.setting.file.answer_after,
        "recommendations": question.recommendations,
    }
