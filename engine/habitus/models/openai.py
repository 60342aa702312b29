"""Chat completions at any address that speaks OpenAI's format: the backend ``openai``.

    model = open_model("target", ModelEntry(backend="openai", model="m", base_url="http://.../v1"))
    reply = await model.complete(request)

OpenAI, vLLM's server, llama.cpp's server, Ollama and gateways all take it. A call is encoded,
sent through the gate of its endpoint, tried again where that helps, and read into exactly one
outcome. What a server rejects (a parameter, the system role, turns that do not alternate) is
learned once from its words, left out from then on, said in the log and visible in
``Reply.sent``.
"""

from __future__ import annotations

import logging
import random
from collections.abc import Callable
from dataclasses import dataclass, replace

from habitus.errors import ModelError
from habitus.models.context import listed_length
from habitus.models.endpoints import Answer, Endpoint, endpoint_for
from habitus.models.entry import ModelEntry, Opening
from habitus.models.keyfiles import read_key
from habitus.models.quirks import Quirks
from habitus.models.reading import Read, error_inside, read_completion
from habitus.models.rejections import Rejection, learn, read_rejection
from habitus.models.retries import CONGESTION, RetryPolicy, retryable
from habitus.models.wire import Encoder, Outgoing, clean_text
from habitus.records import Outcome, Reply, Request

MOST_LEARNED = 8  # changes one call may go through before its rejection stands
_LEAST_TIME = 0.001
_LIST_SECONDS = 30.0
_PASSING = frozenset({"timeout", "connection"})
_REFUSING = frozenset({400, 403, 422, 451})
_OUTCOMES = {
    "overflow": Outcome.OVERFLOW,
    "refused": Outcome.REFUSED,
    "quota": Outcome.ERROR,
    "other": Outcome.ERROR,
}

_log = logging.getLogger("habitus.models")


class OpenAIModel:
    """One model at one endpoint. Safe to ask many times at once and to cancel at any time."""

    def __init__(
        self,
        name: str,
        entry: ModelEntry,
        endpoint: Endpoint,
        draw: Callable[[], float] = random.random,
    ) -> None:
        self._name = name
        self._entry = entry
        self._endpoint = endpoint
        self._policy = RetryPolicy(retries=entry.retries)
        self._draw = draw
        self._encoder = Encoder(entry.model, entry.extra, entry.quirks)

    @property
    def name(self) -> str:
        """The name of the entry."""
        return self._name

    @property
    def quirks(self) -> Quirks:
        """The quirks in force: those of the entry and those learned since."""
        return self._encoder.quirks

    async def listed_context(self) -> int | None:
        """The context length that the server's list of models gives, where it gives one."""
        answer = await self._endpoint.models(_LIST_SECONDS)
        return listed_length(answer.body, self._entry.model) if answer.status == 200 else None

    async def aclose(self) -> None:
        """Leave the endpoint; the last model there closes its connections."""
        await self._endpoint.leave()

    async def complete(self, request: Request) -> Reply:
        """Ask, again where that helps, and say how it ended."""
        call = _Call(left=self._entry.timeout)
        while True:
            sent = await self._once(request, call)
            encoder, outgoing, answer = sent.encoder, sent.outgoing, sent.answer
            judged = _judge(answer, encoder.quirks, outgoing)
            if judged.rejection and self._learned(judged.rejection, request, outgoing, encoder):
                call.learned += 1
                if call.learned <= MOST_LEARNED:
                    continue
            if not judged.again or not await self._patient(answer, call):
                return self._reply(judged, outgoing, call)

    async def _once(self, request: Request, call: _Call) -> _Sent:
        """One request on the wire, written when its turn has come: by what is known then."""
        clock = self._endpoint.clock
        async with self._endpoint.gate.slot() as slot:
            encoder = self._encoder
            outgoing = encoder.encode(request)
            began = clock.now()
            answer = await self._endpoint.post(outgoing.body, max(call.left, _LEAST_TIME))
            call.latency = clock.now() - began
            call.left -= call.latency
            call.tries += 1
            if answer.status in CONGESTION or answer.fault == "timeout":
                slot.congested()
            elif answer.status == 200:
                slot.succeeded()
        return _Sent(encoder, outgoing, answer)

    async def _patient(self, answer: Answer, call: _Call) -> bool:
        """Wait before another try; False when tries or time are used up."""
        clock, policy = self._endpoint.clock, self._policy
        call.failed += 1
        told = policy.told(answer.headers, clock.wall())
        wait = (told or 0.0) + policy.backoff(call.failed, self._draw())
        if call.failed > policy.retries or wait >= call.left:
            return False
        if told:
            self._endpoint.gate.pause(told)
        await clock.sleep(wait)
        call.left -= wait
        call.waited += wait
        return True

    def _learned(
        self, rejection: Rejection, request: Request, outgoing: Outgoing, encoder: Encoder
    ) -> bool:
        """Whether the request should be sent anew, in another form, by what the server said."""
        quirks = learn(rejection, encoder.quirks, outgoing.rejectable(request))
        if quirks is None:
            return False
        if encoder is self._encoder:  # otherwise another call has learned in the meantime
            changes = quirks.model_dump(exclude_defaults=True).items()
            news = ", ".join(f"{k}: {v}" for k, v in changes if getattr(encoder.quirks, k) != v)
            _log.warning("model %s rejects what it was sent; from now on %s", self._name, news)
            self._encoder = Encoder(self._entry.model, self._entry.extra, quirks)
        return True

    def _reply(self, judged: _Judged, outgoing: Outgoing, call: _Call) -> Reply:
        read, hide = judged.read, self._endpoint.hide  # JSON may spell the key with escapes
        return replace(
            read.reply(outgoing.sent, call.latency),
            text=hide(read.text),
            reason=hide(read.reason),
            reasoning=hide(read.reasoning),
            finish=read.finish and hide(read.finish),
            attempts=call.tries,
            waited=call.waited,
            raw=hide(read.raw),
        )


@dataclass(frozen=True, slots=True)
class _Sent:
    """What was sent, by which encoder, and the answer."""

    encoder: Encoder
    outgoing: Outgoing
    answer: Answer


@dataclass(slots=True)
class _Call:
    """What a call has used up: ``left`` of its time, tries on the wire, seconds waited."""

    left: float
    tries: int = 0
    failed: int = 0
    learned: int = 0
    latency: float = 0.0
    waited: float = 0.0


@dataclass(frozen=True, slots=True)
class _Judged:
    """An answer as it was understood, and whether asking again may help."""

    read: Read
    again: bool = False
    rejection: Rejection | None = None


def _judge(answer: Answer, quirks: Quirks, outgoing: Outgoing) -> _Judged:
    if answer.fault:
        return _Judged(Read(Outcome.ERROR, answer.fault), answer.fault in _PASSING)
    status = answer.status
    if status == 200:
        status = error_inside(answer.body) or 200
    if status == 200:
        read = read_completion(answer.body, quirks, outgoing.cut)
        return _Judged(read, read.broken)
    if status in _REFUSING and b'"choices"' in answer.body:
        # Some gateways report their filter as an error with a whole completion in it.
        read = read_completion(answer.body, quirks, outgoing.cut)
        if read.outcome is Outcome.REFUSED:
            return _Judged(read)
    rejection = read_rejection(status, answer.body)
    # The text of a 401 may repeat a part of the key.
    raw = "" if status == 401 else clean_text(rejection.text)
    read = Read(_OUTCOMES[rejection.kind], rejection.reason, raw=raw)
    again = rejection.kind == "other" and retryable(status, answer.headers)
    return _Judged(read, again, rejection)


def open_openai(name: str, entry: ModelEntry, opening: Opening) -> OpenAIModel:
    """The backend of an entry; its key is read here and nowhere else.

    Raises:
        ModelError: there is no key where the entry says, or it cannot be one.
    """
    key = read_key(name, entry, opening)
    if entry.base_url is None:
        raise ModelError(f"model {name!r}: backend openai needs base_url")
    endpoint = endpoint_for(opening, entry.base_url, key, entry.concurrency)
    return OpenAIModel(name, entry, endpoint)
