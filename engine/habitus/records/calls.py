"""One call of a model: what is asked, what comes back, and the key that names it."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from functools import cached_property
from typing import Any

from habitus.records.messages import Message, Prefix


class Outcome(StrEnum):
    """How a call ended. Only ``OK`` is ever scored."""

    OK = "ok"
    REFUSED = "refused"
    TRUNCATED = "truncated"
    OVERFLOW = "overflow"
    UNPARSED = "unparsed"
    ERROR = "error"


@dataclass(frozen=True, slots=True)
class Failure:
    """Why something has no answer: an outcome other than ``OK`` and its reason."""

    outcome: Outcome
    reason: str


@dataclass(frozen=True, slots=True)
class Sampling:
    """Sampling parameters as asked for; None leaves a parameter to the model's own default."""

    temperature: float | None = None
    top_p: float | None = None
    max_tokens: int | None = None
    stop: tuple[str, ...] = ()


@dataclass(frozen=True)
class Schema:
    """A JSON Schema that an answer must meet. Build it once and share it between requests."""

    name: str
    body: Mapping[str, Any]

    @cached_property
    def canonical(self) -> bytes:
        """The schema in one fixed spelling; the order of properties is kept, as it matters."""
        text = json.dumps(self.body, ensure_ascii=False, separators=(",", ":"))
        return text.encode("utf-8", "surrogatepass")


@dataclass(frozen=True, slots=True)
class Usage:
    """Tokens of one call as the server counted them; None where it did not say."""

    prompt: int | None = None
    completion: int | None = None
    cached: int | None = None


@dataclass(frozen=True, slots=True)
class Request:
    """What a model is asked.

    ``stage``, ``record`` and ``context`` are not sent and not part of the key: they say what
    the call is for. ``repeat`` and ``attempt`` are part of the key.
    """

    messages: tuple[Message, ...]
    prefix: Prefix | None = None
    sampling: Sampling = Sampling()
    schema: Schema | None = None
    seed: int | None = None
    repeat: int = 0
    attempt: int = 0
    stage: str = ""
    record: str = ""
    context: Mapping[str, Any] = field(default_factory=dict, compare=False, repr=False)

    @property
    def all_messages(self) -> tuple[Message, ...]:
        """Prefix and own messages together, as the model sees them."""
        return (*self.prefix.messages, *self.messages) if self.prefix else self.messages


@dataclass(frozen=True, slots=True)
class Reply:
    """What came back: exactly one outcome, with the reason when it is not ``OK``.

    ``text`` is the visible answer (what there is of it when the outcome is not ``OK``);
    ``reasoning`` is kept apart and never part of it. ``sent`` holds the parameters that were
    really sent, and under ``messages`` the message list when it was changed. ``latency`` is in
    seconds (of the last try), ``attempts`` counts requests on the wire, ``waited`` is in seconds
    between them. ``raw`` is the text before think blocks were taken out, where it differs, or the
    server's error text. ``stored`` marks a reply that came from the store.
    """

    outcome: Outcome
    text: str = ""
    reason: str = ""
    reasoning: str = ""
    finish: str | None = None
    usage: Usage = Usage()
    sent: Mapping[str, Any] = field(default_factory=dict)
    latency: float = 0.0
    attempts: int = 1
    waited: float = 0.0
    raw: str = ""
    key: bytes = b""
    stored: bool = False

    @property
    def ok(self) -> bool:
        """Whether the reply can be used."""
        return self.outcome is Outcome.OK

    @property
    def failure(self) -> Failure | None:
        """Why the reply cannot be used, or None."""
        return None if self.ok else Failure(self.outcome, self.reason)


def call_key(identity: str, request: Request) -> bytes:
    """16 bytes that name a request to one model: everything that can change the answer.

    ``identity`` names the model entry (see ``models.entry``). Message texts, sampling, schema,
    seed, repeat and attempt are in; nothing random and nothing about when or why.
    """
    hasher = (request.prefix or _NOTHING).hasher()
    for message in request.messages:
        message.feed(hasher)
    s = request.sampling
    rest = [identity, s.temperature, s.top_p, s.max_tokens, s.stop]
    rest += [request.seed, request.repeat, request.attempt]
    params = json.dumps(rest, ensure_ascii=False)
    hasher.update(b"\0params\0" + params.encode("utf-8", "surrogatepass"))
    if request.schema is not None:
        name = json.dumps(request.schema.name).encode()  # it is sent, so a model can see it
        hasher.update(b"\0schema\0" + name + request.schema.canonical)
    return hasher.digest()


_NOTHING = Prefix(())
