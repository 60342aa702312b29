"""Asking a target: one response for (target, setting, persona, query, repeat).

A question that does not fit into what the target can read is not asked, or asked with fewer
sessions: ``fitting`` decides, and the response says which sessions were left out.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from habitus.checklists import Query
from habitus.experiments.fitting import Fitting, Window
from habitus.experiments.settings import Setting, split_answer
from habitus.models import ChatModel
from habitus.records import (
    Failure,
    Message,
    Outcome,
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
    window: Window = field(default_factory=Window)


@dataclass(frozen=True, slots=True)
class Question:
    """What one response answers; ``fitting`` says what the setting shows before the query.

    ``recommendations`` are the ids of the items it may be scored by. They are not sent: a
    planted target draws from them.
    """

    target: Target
    setting: Setting
    persona: str
    query: Query
    repeat: int
    fitting: Fitting
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
        if question.fitting.refused:
            failure = Failure(Outcome.OVERFLOW, question.fitting.foreseen)
            return _response(question, _Answer("", failure=failure), "", _Asked())
        asked = _Asked(question.fitting.dropped)
        request, first = await self._fitting(question, asked)
        answer = self._read(question, first)
        if answer.failure is None or not first.ok or not first.text.strip():
            return _response(question, answer, first.reasoning, asked)
        second = await question.target.model.complete(self._again(question, request, first))
        asked.calls.append(second.key.hex())
        followed = question.setting.file.follow_up is not None
        answer = self._read(question, second, working=first.text if followed else "")
        return _response(question, answer, second.reasoning, asked)

    async def _fitting(self, question: Question, asked: _Asked) -> tuple[Request, Reply]:
        """The request that the target takes, and its answer; one that it did not take is changed."""
        while True:
            request = self._request(question, asked.dropped)
            reply = await question.target.model.complete(request)
            asked.calls.append(reply.key.hex())
            fewer = question.fitting.after(asked.dropped, request, reply)
            if fewer is None:
                return request, reply
            asked.dropped = fewer

    def _request(self, question: Question, dropped: int) -> Request:
        return Request(
            messages=(question.setting.last_message(question.query.text),),
            prefix=question.fitting.prefix(question.setting, dropped),
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


@dataclass(slots=True)
class _Asked:
    """How a question was asked: the sessions left out, and the keys of the calls."""

    dropped: int = 0
    calls: list[str] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class _Answer:
    """What of one or two replies is the answer, and what is the working before it."""

    text: str
    working: str = ""
    failure: Failure | None = None


def _response(question: Question, answer: _Answer, reasoning: str, asked: _Asked) -> Response:
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
        dropped=question.fitting.numbers(question.setting, asked.dropped),
        calls=tuple(asked.calls),
    )


def failed_response(question: Question, reason: str) -> Response:
    """The response that was not asked for, since what it needs could not be made."""
    return _response(question, _Answer("", failure=Failure(Outcome.ERROR, reason)), "", _Asked())


def _context(question: Question) -> Mapping[str, Any]:
    return {
        "role": "target",
        "setting": question.setting.id,
        "persona": question.persona,
        "query": question.query.id,
        "answer_after": question.setting.file.answer_after,
        "recommendations": question.recommendations,
    }
