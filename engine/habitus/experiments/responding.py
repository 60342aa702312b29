"""Asking a target: one response for (target, setting, persona, query, repeat)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from habitus.checklists import Query
from habitus.experiments.settings import Setting, split_answer
from habitus.models import ChatModel
from habitus.records import (
    Failure,
    Message,
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
        """One response.

        A reply without its answer line is asked for once more: by the setting's ``follow_up``,
        which takes that reply as the working and asks for the answer alone, or by the same
        request again.
        """
        request = self._request(question)
        first = await question.target.model.complete(request)
        answer = self._read(question, first)
        if answer.failure is None or not first.ok or not first.text.strip():
            return _response(question, answer, first.reasoning, (first.key.hex(),))
        second = await question.target.model.complete(self._again(question, request, first))
        followed = question.setting.file.follow_up is not None
        answer = self._read(question, second, working=first.text if followed else "")
        calls = (first.key.hex(), second.key.hex())
        return _response(question, answer, second.reasoning, calls)

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

    def _again(self, question: Question, request: Request, first: Reply) -> Request:
        seed = derive_seed(self.seed, "respond", question.id, question.repeat, 1)
        more: tuple[Message, ...] = ()
        if question.setting.file.follow_up:
            said = Message("assistant", first.text)
            more = (said, Message("user", question.setting.file.follow_up))
        return replace(request, messages=(*request.messages, *more), attempt=1, seed=seed)

    def _read(self, question: Question, reply: Reply, working: str = "") -> _Answer:
        """The answer in a reply; ``working`` is the reply before, if this one follows it up."""
        marker = question.setting.file.answer_after
        if not reply.ok:
            return _Answer(reply.text, working, reply.failure)
        if marker is None:
            return _Answer(reply.text)
        parts = split_answer(reply.text, marker)
        if parts is None and working:
            parts = ("", reply.text)
        if parts is None or not parts[1].strip():
            missing = f"no answer below a line {marker!r}"
            return _Answer(reply.text, working, Failure(Outcome.UNPARSED, missing))
        before = "\n\n".join(part for part in (working, parts[0]) if part)
        if self.score == "everything":
            return _Answer("\n\n".join(part for part in (before, parts[1]) if part))
        return _Answer(parts[1], before)


@dataclass(frozen=True, slots=True)
class _Answer:
    """What of one or two replies is the answer, and what is the working before it."""

    text: str
    working: str = ""
    failure: Failure | None = None


def _response(
    question: Question, answer: _Answer, reasoning: str, calls: tuple[str, ...]
) -> Response:
    failure = answer.failure
    return Response(
        id=question.id,
        outcome=failure.outcome if failure else Outcome.OK,
        reason=failure.reason if failure else "",
        target=question.target.id,
        setting=question.setting.id,
        persona=question.persona,
        query=question.query.id,
        repeat=question.repeat,
        text=answer.text,
        working=answer.working,
        reasoning=reasoning,
        history=question.history,
        calls=calls,
    )


def failed_response(question: Question, reason: str) -> Response:
    """The response that was not asked for, since what it needs could not be made."""
    return _response(question, _Answer("", failure=Failure(Outcome.ERROR, reason)), "", ())


def _context(question: Question) -> Mapping[str, Any]:
    return {
        "role": "target",
        "setting": question.setting.id,
        "persona": question.persona,
        "query": question.query.id,
        "answer_after": question.setting.file.answer_after,
        "recommendations": question.recommendations,
    }
