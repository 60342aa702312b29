"""What a model or its server cannot take, as data, and messages rewritten to fit.

    quirks = Quirks(system_role=False, alternate=True)
    fitting = rewrite(messages, quirks)

Rewriting is pure and keeps every text: system text moves into the first user turn, neighbours
of one role are joined, empty turns go. The module does not know who asks or how a call is sent;
whoever sends records the rewritten messages in ``Reply.sent``.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import groupby
from typing import Annotated, Literal

from pydantic import Field

from habitus.content import ContentModel
from habitus.records import Message

Omittable = Literal["top_p", "seed", "stop"]
Structured = Literal["json_schema", "json_object", "structured_outputs", "guided", "none"]
Word = Annotated[str, Field(min_length=1)]


class Quirks(ContentModel):
    """How one model differs from a plain chat-completions model; the defaults are plain.

    ``structured``: how a JSON schema is handed over: ``json_schema`` (OpenAI, vLLM, llama.cpp,
    Ollama), ``json_object`` (only JSON, not the schema), ``structured_outputs`` and ``guided``
    (body parameters of new and old vLLM), ``none`` (the prompt has to do it).
    ``think_tags``: names of the tags around reasoning in the text; one with brackets of its own,
    such as ``[THINK]``, is taken as it stands.
    ``opening``: the user turn put first where turns must alternate and an assistant turn comes
    first.
    ``control_tokens``: what becomes of words in texts that are, or look like, control tokens of a
    model (see ``habitus.models.controls``): by default they are ``broken`` up, so that they are
    text for servers that read them anywhere; ``sent``: they are sent as they are, for a server
    that is known to take texts as texts.
    """

    system_role: bool = True
    alternate: bool = False
    opening: Word = "(The conversation starts here.)"
    max_tokens_field: Literal["max_tokens", "max_completion_tokens"] = "max_tokens"
    temperature: Literal["free", "fixed"] = "free"
    omit: tuple[Omittable, ...] = ()
    reasoning_fields: tuple[Word, ...] = ("reasoning", "reasoning_content")
    think_tags: tuple[Word, ...] = ("think",)
    structured: Structured = "json_schema"
    strict: bool = True
    # None and not "broken", so that runs made before it was there go on.
    control_tokens: Literal["broken", "sent"] | None = None


def fits(messages: Iterable[Message], quirks: Quirks, after: str | None = None) -> bool:
    """Whether messages can be sent as they are.

    ``after`` is the role of the message before them, None at the start of a conversation.
    """
    role = after
    for message in messages:
        if not message.text or message.text.isspace():
            return False
        if message.role == "system" and not (quirks.system_role and _may_stand(role, quirks)):
            return False
        if quirks.alternate and not _may_follow(role, message.role):
            return False
        role = message.role
    return True


def rewrite(messages: Sequence[Message], quirks: Quirks) -> tuple[Message, ...]:
    """The messages in a form the model takes; the same object where nothing had to change."""
    if fits(messages, quirks):
        return tuple(messages)
    turns = [m for m in messages if m.text and not m.text.isspace()]
    if not quirks.system_role:
        turns = _without_system(turns)
    if quirks.alternate:
        turns = _alternating(turns, quirks.opening)
    return tuple(turns)


def _may_stand(before: str | None, quirks: Quirks) -> bool:
    return before is None or not quirks.alternate


def _may_follow(before: str | None, role: str) -> bool:
    if before in {None, "system"}:
        return role == "user" or (role == "system" and before is None)
    return role != before


def _split(turns: Sequence[Message]) -> tuple[list[Message], list[Message]]:
    """The system messages at the start, and the rest with later system text as user text."""
    first = next((i for i, m in enumerate(turns) if m.role != "system"), len(turns))
    rest = [Message("user", m.text) if m.role == "system" else m for m in turns[first:]]
    return list(turns[:first]), rest


def _without_system(turns: Sequence[Message]) -> list[Message]:
    leading, rest = _split(turns)
    if not leading:
        return rest
    if rest and rest[0].role == "user":
        return [_joined([*leading, rest[0]], "user"), *rest[1:]]
    return [_joined(leading, "user"), *rest]


def _alternating(turns: Sequence[Message], opening: str) -> list[Message]:
    leading, rest = _split(turns)
    if rest and rest[0].role == "assistant":
        rest.insert(0, Message("user", opening))
    system = [_joined(leading, "system")] if leading else []
    return system + [_joined(list(same), role) for role, same in groupby(rest, lambda m: m.role)]


def _joined(parts: Sequence[Message], role: Literal["system", "user", "assistant"]) -> Message:
    if len(parts) == 1 and parts[0].role == role:
        return parts[0]
    return Message(role, "\n\n".join(m.text for m in parts))
