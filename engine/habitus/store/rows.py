"""How a call is written as one JSON line, and read back.

What is at its default is left out. A prefix, a schema, and the beginning of a message list that a
backend had to change are not written into the line: the line has their digest, and their text is
kept once for the run. The key stands beside the line, not in it.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from habitus.records import Outcome, Prefix, Reply, Request, Sampling, Schema, Usage, messages
from habitus.store.canonical import dumps, loads, plain

Fetch = Callable[[bytes], bytes]
_REMEMBERED = 100_000  # digests known to be stored already; a forgotten one is only written again


@dataclass(frozen=True, slots=True)
class CallRow:
    """A call on its way into the log; ``shared`` are the texts it is the first to use."""

    key: bytes
    line: bytes
    kind: tuple[str, str, str]
    usage: Usage
    shared: tuple[tuple[bytes, bytes], ...]

    @property
    def size(self) -> int:
        """Bytes it holds in memory, about."""
        return len(self.line) + sum(len(body) for _, body in self.shared)


@dataclass(frozen=True, slots=True)
class StoredCall:
    """A call of the log, for people: what was asked, what came back.

    ``request`` holds ``messages`` (role, text) with the prefix in front, and, where they were
    given, ``sampling``, ``schema`` (name, body), ``seed``, ``repeat`` and ``attempt``.
    """

    key: bytes
    model: str
    stage: str
    record: str
    request: Mapping[str, Any]
    reply: Reply


class RowWriter:
    """Turns calls into rows, and knows which shared texts went before.

    Every row that it gives must be written, in order: later rows rely on its shared texts.
    """

    def __init__(self) -> None:
        self._known: set[bytes] = set()
        self._schemas: dict[bytes, bytes] = {}

    def row(self, key: bytes, request: Request, reply: Reply, model: str) -> CallRow:
        """The row of a call."""
        shared: list[tuple[bytes, bytes]] = []
        line = {
            "model": model,
            "stage": request.stage,
            "record": request.record,
            "request": self._request(request, shared),
            "reply": self._reply(reply, request.prefix, shared),
        }
        kind = (plain(request.stage), plain(model), str(reply.outcome))
        row = CallRow(key, dumps(line), kind, reply.usage, tuple(shared))
        self._remember(name for name, _ in shared)
        return row

    def _request(self, request: Request, shared: list[tuple[bytes, bytes]]) -> dict[str, Any]:
        out: dict[str, Any] = {"messages": [(m.role, m.text) for m in request.messages]}
        if request.prefix is not None:
            name = request.prefix.digest
            out["prefix"] = name.hex()
            if name not in self._known:
                shared.append((name, _prefix_body(request.prefix)))
        if sampling := _sampling(request.sampling):
            out["sampling"] = sampling
        if request.schema is not None:
            out["schema"] = [request.schema.name, self._schema(request.schema, shared)]
        if request.seed is not None:
            out["seed"] = request.seed
        if request.repeat:
            out["repeat"] = request.repeat
        if request.attempt:
            out["attempt"] = request.attempt
        return out

    def _schema(self, schema: Schema, shared: list[tuple[bytes, bytes]]) -> str:
        body = schema.canonical
        name = self._schemas.get(body)
        if name is None:
            name = self._schemas[body] = _name(body)
        if name not in self._known:
            shared.append((name, body))
        return name.hex()

    def _reply(
        self, reply: Reply, prefix: Prefix | None, shared: list[tuple[bytes, bytes]]
    ) -> dict[str, Any]:
        out: dict[str, Any] = {"outcome": str(reply.outcome), "text": reply.text}
        for field in ("reason", "reasoning", "raw", "latency", "waited"):
            if value := getattr(reply, field):
                out[field] = value
        if reply.finish is not None:
            out["finish"] = reply.finish
        if reply.attempts != 1:
            out["attempts"] = reply.attempts
        if reply.usage != _NO_USAGE:
            out["usage"] = (reply.usage.prompt, reply.usage.completion, reply.usage.cached)
        if reply.sent:
            out["sent"] = sent = dict(reply.sent)
            changed = sent.get("messages")
            if prefix is not None and isinstance(changed, list | tuple) and len(changed) > 1:
                out["sent_before"] = self._beginning(changed[:-1], shared)
                sent["messages"] = changed[-1:]
        return out

    def _beginning(self, messages: Any, shared: list[tuple[bytes, bytes]]) -> str:
        body = dumps(messages)
        name = _name(body)
        if name not in self._known:
            shared.append((name, body))
        return name.hex()

    def _remember(self, names: Iterable[bytes]) -> None:
        if len(self._known) >= _REMEMBERED:
            self._known.clear()
        self._known.update(names)


def read_reply(key: bytes, row: Mapping[str, Any], fetch: Fetch) -> Reply:
    """The reply of a row; ``fetch`` gives a shared text by its digest."""
    found = dict(row["reply"])
    before = found.pop("sent_before", None)
    if before is not None:
        found["sent"]["messages"] = loads(fetch(bytes.fromhex(before))) + found["sent"]["messages"]
    return Reply(
        **{
            **found,
            "outcome": Outcome(found["outcome"]),
            "usage": Usage(*found.get("usage", ())),
            "key": key,
            "stored": True,
        }
    )


def read_call(key: bytes, line: bytes, fetch: Fetch) -> StoredCall:
    """A whole call from its line."""
    row = loads(line)
    request = dict(row["request"])
    prefix = request.pop("prefix", None)
    if prefix is not None:
        request["messages"] = loads(fetch(bytes.fromhex(prefix))) + request["messages"]
    if "schema" in request:
        name, body = request["schema"]
        request["schema"] = {"name": name, "body": loads(fetch(bytes.fromhex(body)))}
    reply = read_reply(key, row, fetch)
    return StoredCall(key, row["model"], row["stage"], row["record"], request, reply)


def shared_names(line: bytes) -> list[bytes]:
    """The digests of the shared texts that a line needs."""
    row = loads(line)
    names = [row["request"].get("prefix"), row["reply"].get("sent_before")]
    names += row["request"].get("schema", [])[1:]
    return [bytes.fromhex(name) for name in names if name]


def shared_digests(body: bytes) -> frozenset[bytes]:
    """What a shared text may be known by: its own digest, or that of the messages it holds."""
    try:
        held = Prefix(messages([(role, text) for role, text in loads(body)]))
    except (ValueError, TypeError, AttributeError):
        return frozenset({_name(body)})
    return frozenset({_name(body), held.digest})


def _sampling(sampling: Sampling) -> dict[str, Any]:
    out: dict[str, Any] = {}
    for field in ("temperature", "top_p", "max_tokens"):
        if (value := getattr(sampling, field)) is not None:
            out[field] = value
    if sampling.stop:
        out["stop"] = sampling.stop
    return out


def _prefix_body(prefix: Prefix) -> bytes:
    return dumps([(message.role, message.text) for message in prefix.messages])


def _name(body: bytes) -> bytes:
    return hashlib.blake2b(body, digest_size=16).digest()


_NO_USAGE = Usage()
