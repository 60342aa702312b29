"""Messages, and the shared beginning of many requests.

A :class:`Prefix` is a run of messages that many requests begin with (a persona's history, a
judge's rubric). It is hashed once; the key of each request that uses it costs only its own
text. Where the prefix ends does not change the key: only the messages count.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Literal

Role = Literal["system", "user", "assistant"]


@dataclass(frozen=True, slots=True)
class Message:
    """One message of a chat."""

    role: Role
    text: str

    def feed(self, hasher: hashlib.blake2b) -> None:
        """Add the message to a running hash, unambiguously."""
        body = self.text.encode("utf-8", "surrogatepass")
        hasher.update(f"{self.role}\0{len(body)}\0".encode())
        hasher.update(body)


@dataclass(frozen=True, slots=True)
class Prefix:
    """Messages shared by many requests, with their running hash."""

    messages: tuple[Message, ...]
    _hasher: hashlib.blake2b = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        hasher = hashlib.blake2b(digest_size=16)
        for message in self.messages:
            message.feed(hasher)
        object.__setattr__(self, "_hasher", hasher)

    @property
    def digest(self) -> bytes:
        """16 bytes that name the messages."""
        return self._hasher.digest()

    def hasher(self) -> hashlib.blake2b:
        """A running hash that continues after the prefix."""
        return self._hasher.copy()


def messages(parts: Iterable[tuple[str, str]]) -> tuple[Message, ...]:
    """Messages from (role, text) pairs, as a filled prompt gives them."""
    return tuple(Message(role, text) for role, text in parts)  # type: ignore[arg-type]


def rubric_first(parts: Iterable[tuple[str, str]]) -> tuple[Prefix | None, tuple[Message, ...]]:
    """The system message of a filled prompt as a prefix, and the rest.

    Requests of one kind share their rubric. A prompt without a system message has no prefix:
    what it begins with may differ from request to request.
    """
    first, *rest = messages(parts)
    if first.role != "system":
        return None, (first, *rest)
    return Prefix((first,)), tuple(rest)
