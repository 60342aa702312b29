"""A model whose calls are looked up before they are made, and written down before they count.

    model = Recorded(open_model(name, entry), entry.identity(name), log)
    reply = await model.complete(request)       # reply.key names the call, reply.stored a hit

A reply is returned when the log says that it is durable. Identical requests in flight are made
once. Calls that ended in ``error`` are written but asked again: a lost connection is no answer.
The wrapper knows nothing of backends or of how the log keeps things.
"""

from __future__ import annotations

import asyncio
import re
from collections import Counter
from collections.abc import Collection
from dataclasses import dataclass, field, replace

from habitus.models.model import CallLog, ChatModel
from habitus.models.quirks import Quirks
from habitus.models.spending import Budget, Purse
from habitus.records import Outcome, Reply, Request, call_key

ALIKE = 20
_WORDS = 200  # characters of a server's own words
#: What differs between failures that are alike: ids of requests, seconds, tries.
_VARIABLE = re.compile(r"[0-9a-fA-F-]{8,}|(?!\b[45][0-9]{2}\b)[0-9]+")


@dataclass(slots=True)
class Alike:
    """What calls of one kind came to so far: whether all of them failed, and for one reason.

    A kind is a stage and a role in it. Reasons are alike when they differ in numbers and ids only
    (not in the code of HTTP); ``reason`` is the first, as it came, with the server's words. An answer
    that was cut is one that failed: what cuts the first twenty cuts the next. A refusal or a
    prompt that did not fit is about what was asked, and no reason to stop.
    """

    what: str
    calls: int = 0
    reason: str = ""
    _plain: str = ""
    _mixed: bool = False

    def returned(self, reply: Reply) -> None:
        """Count a reply, made or found."""
        if reply.outcome not in {Outcome.ERROR, Outcome.TRUNCATED}:
            self._mixed = True
            return
        plain = _VARIABLE.sub("#", f"{reply.outcome}: {reply.reason}")
        if not self.reason:
            self._plain, self.reason = plain, _in_full(reply)
        self._mixed = self._mixed or plain != self._plain

    def failing(self, after: int) -> bool:
        """Whether at least ``after`` calls were made and every one failed for one reason."""
        return self.calls >= after and not self._mixed and bool(self.reason)


@dataclass(slots=True)
class Counters:
    """What has happened so far, for progress lines and caps; read it at any time.

    ``calls`` were made, ``hits`` came from the log or from an identical call in flight; tokens
    are those of calls that were made. ``outcomes`` counts every reply that was returned.
    """

    calls: int = 0
    hits: int = 0
    in_flight: int = 0
    attempts: int = 0
    waited: float = 0.0
    prompt: int = 0
    cached: int = 0
    completion: int = 0
    outcomes: Counter[Outcome] = field(default_factory=Counter)
    reasons: Counter[str] = field(default_factory=Counter)
    kinds: dict[str, Alike] = field(default_factory=dict)

    def made(self, reply: Reply, what: str = "") -> None:
        """Count a call that was made."""
        self.calls += 1
        self.kinds.setdefault(what, Alike(what)).calls += 1
        self.attempts += reply.attempts
        self.waited += reply.waited
        self.prompt += reply.usage.prompt or 0
        self.cached += reply.usage.cached or 0
        self.completion += reply.usage.completion or 0

    def returned(self, reply: Reply, what: str = "") -> None:
        """Count a reply, made or found."""
        self.kinds.setdefault(what, Alike(what)).returned(reply)
        self.hits += reply.stored
        self.outcomes[reply.outcome] += 1
        if reply.reason:
            self.reasons[f"{reply.outcome}: {reply.reason}"] += 1

    def failing_alike(self, after: int = ALIKE) -> Alike | None:
        """The kind of which at least the first ``after`` calls all failed, alike.

        A run can stop early on it: the next call will fail as well. Stages and roles are held
        apart, as a model that plays several may fail in one of them only.
        """
        return next((found for found in self.kinds.values() if found.failing(after)), None)


class Recorded:
    """A model with a log; itself a ``ChatModel``."""

    def __init__(
        self,
        model: ChatModel,
        identity: str,
        log: CallLog,
        fresh: Collection[str] = (),
        purse: Purse | None = None,
    ) -> None:
        """``fresh`` names stages whose stored answers are ignored and asked for once more."""
        self.counters = Counters()
        self._purse = purse
        self._fresh = frozenset(fresh)
        self._renewed: set[bytes] = set()
        self._model = model
        self._identity = identity
        self._log = log
        self._running: dict[bytes, asyncio.Future[Reply | None]] = {}

    @property
    def name(self) -> str:
        """The name of the model's entry."""
        return self._model.name

    @property
    def budget(self) -> Budget | None:
        """What the models of the run may spend together, where it is capped."""
        return self._purse.budget if self._purse else None

    @property
    def quirks(self) -> Quirks | None:
        """The quirks in force, where the backend learns any."""
        found = getattr(self._model, "quirks", None)
        return found if isinstance(found, Quirks) else None

    async def aclose(self) -> None:
        """Close the model; the log belongs to whoever opened it."""
        await self._model.aclose()

    async def complete(self, request: Request) -> Reply:
        """The stored reply of a request, or a new one once it is durable.

        Raises:
            NotAskedError: it is not stored, and the budget is used up.
        """
        key = call_key(self._identity, request)
        reply = None
        while reply is None:
            running = self._running.get(key)
            if running is not None:
                reply = await asyncio.shield(running)  # None: that call was cancelled
                reply = reply and replace(reply, stored=True)
            else:
                reply = self._stored(key, request) or await self._ask(key, request)
        self.counters.returned(reply, _kind(request))
        return reply

    def _stored(self, key: bytes, request: Request) -> Reply | None:
        if request.stage in self._fresh and key not in self._renewed:
            self._renewed.add(key)
            return None
        found = self._log.find(key)
        if found is None or found.outcome is Outcome.ERROR:
            return None
        return replace(found, key=key, stored=True)

    async def _ask(self, key: bytes, request: Request) -> Reply:
        running = self._running[key] = asyncio.get_running_loop().create_future()
        reply = None
        try:
            answer = replace(await self._paid(request), key=key, stored=False)
            self.counters.made(answer, _kind(request))
            await self._log.add(key, request, answer, self.name)
            reply = answer
        finally:
            del self._running[key]
            running.set_result(reply)
        return reply

    async def _paid(self, request: Request) -> Reply:
        """The answer to a request that the budget has room for."""
        held = await self._purse.reserve(request) if self._purse else None
        self.counters.in_flight += 1
        answer = None
        try:
            answer = await self._model.complete(request)
        finally:
            self.counters.in_flight -= 1
            if self._purse and held:
                self._purse.settle(held, answer)
        return answer


def _in_full(reply: Reply) -> str:
    """Why a call failed, with what the server said of it."""
    said = " ".join(reply.raw.split()) if reply.outcome is Outcome.ERROR else ""
    words = f" ({said[:_WORDS]}{' …' if len(said) > _WORDS else ''})" if said else ""
    return f"{reply.outcome}: {reply.reason}{words}"


def _kind(request: Request) -> str:
    """The stage and the role that a call is for."""
    return ", ".join(filter(None, (request.stage, str(request.context.get("role", "")))))
