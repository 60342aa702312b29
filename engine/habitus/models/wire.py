"""Requests as the bytes of a chat-completions body, and what of them is put on record.

A body is put together from three pieces: the messages shared by many requests, the messages of
this one, and the parameters. The shared piece is encoded once (a persona's history of 50 kB
stands before each of its queries). The module knows the wire format and no network.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import orjson

from habitus.models.controls import LIKELY, NONE, ControlTokens
from habitus.models.quirks import Quirks, fits, rewrite
from habitus.records import Message, Prefix, Request, Schema

REMEMBERED = 128  # shared beginnings kept encoded; a run works on few at a time

_LONE = dict.fromkeys((0, *range(55296, 57344)), "�")


@dataclass(frozen=True, slots=True)
class Outgoing:
    """A request ready to be sent.

    ``sent`` goes on record: the parameters as sent, the schema by its name, under ``left_out``
    what was asked for and could not be sent, and the messages only where they were changed.
    ``cut`` are stop strings that the server does not get and that are applied here.
    """

    body: bytes
    sent: Mapping[str, Any]
    cut: tuple[str, ...] = ()

    def rejectable(self, request: Request) -> frozenset[str]:
        """Names of what a server might reject, as ``rejections.learn`` takes them."""
        names = set(self.sent)
        if request.schema is not None and "schema" not in self.sent.get("left_out", ()):
            names.add("schema")
        if any(m.role == "system" for m in request.all_messages):
            names.add("system")
        return frozenset(names)


@dataclass(frozen=True, slots=True)
class _Beginning:
    """A prefix as far as it can be encoded ahead: None where it has to be rewritten."""

    encoded: bytes | None
    last: str | None


class Encoder:
    """Writes the requests of one model under one set of quirks.

    ``tokens`` are the model's control tokens, which no text of a message may hold.
    """

    def __init__(
        self,
        model: str,
        extra: Mapping[str, Any],
        quirks: Quirks,
        tokens: ControlTokens = LIKELY,
    ) -> None:
        self.quirks = quirks
        self._tokens = NONE if quirks.control_tokens == "sent" else tokens
        self._fixed = {"model": model, **extra}
        self._never = {*quirks.omit, *(["temperature"] if quirks.temperature == "fixed" else [])}
        self._beginnings: dict[bytes, _Beginning] = {}

    def encode(self, request: Request) -> Outgoing:
        """The body of a request and its record."""
        messages, changed = self._messages(request)
        parameters, left_out = self._parameters(request)
        shown = _for_record(parameters, request.schema)
        if left_out:
            shown["left_out"] = left_out
        if changed is not None:
            shown["messages"] = [_wire(m) for m in changed]
        body = b'{"messages":[%b],%b' % (messages, orjson.dumps(parameters)[1:])
        cut = request.sampling.stop if "stop" in left_out else ()
        return Outgoing(body, shown, cut)

    def _messages(self, request: Request) -> tuple[bytes, Sequence[Message] | None]:
        """Encoded messages, and the list of them when it is not the request's own."""
        shared = self._beginning(request.prefix) if request.prefix else _NOTHING
        plain = shared.encoded is not None and self._plain(request.messages)
        if plain and fits(request.messages, self.quirks, shared.last):
            own = _encoded(request.messages)
            if own is not None:
                both = b",".join((shared.encoded, own)) if shared.encoded and own else b""
                return both or shared.encoded or own, None
        fitting = rewrite(request.all_messages, self.quirks)
        changed = tuple(self._tokens.message(_clean(m)) for m in fitting)
        return _encoded(changed) or b"", changed

    def _plain(self, messages: Iterable[Message]) -> bool:
        """Whether no text has to be broken up."""
        return all(self._tokens.message(m) is m for m in messages)

    def _beginning(self, prefix: Prefix) -> _Beginning:
        known = self._beginnings.get(prefix.digest)
        if known is None:
            fitting = fits(prefix.messages, self.quirks) and self._plain(prefix.messages)
            encoded = _encoded(prefix.messages) if fitting else None
            last = prefix.messages[-1].role if prefix.messages else None
            known = _Beginning(encoded, last)
            if len(self._beginnings) >= REMEMBERED:
                del self._beginnings[next(iter(self._beginnings))]
            self._beginnings[prefix.digest] = known
        return known

    def _parameters(self, request: Request) -> tuple[dict[str, Any], list[str]]:
        """What is sent beside the messages, and the names of what is asked for and is not."""
        sampling, quirks = request.sampling, self.quirks
        asked = {
            "temperature": sampling.temperature,
            "top_p": sampling.top_p,
            quirks.max_tokens_field: sampling.max_tokens,
            "stop": list(sampling.stop) or None,
            "seed": request.seed,
        }
        given = {name: value for name, value in asked.items() if value is not None}
        left_out = [name for name in given if name in self._never]
        out = self._fixed | {k: v for k, v in given.items() if k not in self._never}
        if request.schema is not None:
            out |= _structured(request.schema, quirks)
            left_out += ["schema"] if quirks.structured == "none" else []
        return out, left_out


def clean_text(text: str) -> str:
    """A text that can be encoded: NUL and lone surrogates become U+FFFD."""
    if "\0" not in text:
        try:
            text.encode()
        except UnicodeEncodeError:
            return text.translate(_LONE)
        return text
    return text.translate(_LONE)


def _structured(schema: Schema, quirks: Quirks) -> dict[str, Any]:
    body = orjson.Fragment(schema.canonical)
    match quirks.structured:
        case "json_schema":
            whole = {"name": schema.name, "schema": body, "strict": quirks.strict}
            return {"response_format": {"type": "json_schema", "json_schema": whole}}
        case "json_object":
            return {"response_format": {"type": "json_object"}}
        case "structured_outputs":
            return {"structured_outputs": {"json": body}}
        case "guided":
            return {"guided_json": body}
        case "none":
            return {}


def _for_record(parameters: dict[str, Any], schema: Schema | None) -> dict[str, Any]:
    """Parameters with the schema by name: the schema itself is kept with the request."""
    shown = dict(parameters)
    if schema is None:
        return shown
    for key in ("structured_outputs", "guided_json"):
        if key in shown:
            shown[key] = {"name": schema.name}
    form = shown.get("response_format")
    if form and "json_schema" in form:
        strict = form["json_schema"]["strict"]
        shown["response_format"] = {"type": form["type"], "name": schema.name, "strict": strict}
    return shown


def _encoded(messages: Iterable[Message]) -> bytes | None:
    """Messages as JSON without the list around them; None if a text cannot be encoded."""
    try:
        return orjson.dumps([_wire(m) for m in messages])[1:-1]
    except orjson.JSONEncodeError:
        return None


def _clean(message: Message) -> Message:
    text = clean_text(message.text)
    return message if text is message.text else Message(message.role, text)


def _wire(message: Message) -> dict[str, str]:
    return {"role": message.role, "content": message.text}


_NOTHING = _Beginning(b"", None)
