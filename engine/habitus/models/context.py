"""How many tokens a prompt takes, estimated, and how many a model says it takes at most.

An estimate: four bytes of UTF-8 a token and ten percent more, as long as nothing better is known; once a
server has counted a prompt, its own share of tokens a byte and five percent more. A chat template
adds a few tokens to each message. The module asks nobody.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import orjson

from habitus.records import Message

BYTES_PER_TOKEN = 4.0
MARGIN = 1.10
MEASURED_MARGIN = 1.05
MESSAGE_TOKENS = 8
LEAST_ANSWER = 256  # tokens of room for an answer where no limit is set
_SHORTEST = 256  # a smaller number in an error text is no context length
_LISTED = ("max_model_len", "context_length", "max_context_length", "context_window")
_STATED = re.compile(
    r"(?:context|model) (?:length|size|window)(?: of this model)?(?: is)?(?: only)?[ (:]*(\d[\d,]*)"
    r"|> (\d[\d,]*) maximum"
    r"|with (\d[\d,]*) maximum context"
    r"|must be <= (\d[\d,]*)",
    re.IGNORECASE,
)


@dataclass(frozen=True, slots=True)
class TokenEstimate:
    """Tokens a byte, with the margin in it."""

    per_byte: float = MARGIN / BYTES_PER_TOKEN

    @classmethod
    def measured(cls, messages: Iterable[Message], tokens: int) -> TokenEstimate | None:
        """What a server's count of a prompt says; None where it says nothing."""
        size = sum(map(_size, messages))
        return cls(MEASURED_MARGIN * tokens / size) if size and tokens > 0 else None

    def tokens(self, messages: Iterable[Message]) -> int:
        """Tokens of messages, rounded up."""
        sizes = [_size(message) for message in messages]
        return int(sum(sizes) * self.per_byte) + 1 + MESSAGE_TOKENS * len(sizes)


def stated_length(text: str) -> int | None:
    """The context length that an error text of a server names, or None."""
    found = _STATED.search(text)
    if found is None:
        return None
    length = int(next(group for group in found.groups() if group).replace(",", ""))
    return length if length >= _SHORTEST else None


def listed_length(body: bytes, model: str) -> int | None:
    """The context length of a model in a server's list of models, or None.

    vLLM, gateways and others each have a name of their own for it; a length that the model was trained
    with, which some servers list, is not what the server has room for and not taken.
    """
    try:
        cards: Any = orjson.loads(body)["data"]
        card = next(card for card in cards if card.get("id") == model)
        found = [card[name] for name in _LISTED if isinstance(card.get(name), int)]
    except (ValueError, KeyError, TypeError, AttributeError, StopIteration):
        return None
    return next((length for length in found if length >= _SHORTEST), None)


def _size(message: Message) -> int:
    return len(message.text.encode("utf-8", "surrogatepass"))
