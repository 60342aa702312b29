"""What a model and its server can do, found by asking: some twenty short calls.

    findings = await check_model(open_model(name, entry))
    for finding in findings:
        print(finding.check, finding.status, finding.detail)

Every finding is what was seen in these calls and no promise: a model that obeyed its system
message once may not do so always. Nothing is stored, and the model's own settings stay as they
are; what they should be is said in the finding called ``quirks``.
"""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from enum import StrEnum
from statistics import median
from typing import Any

from habitus.models.model import ChatModel
from habitus.models.quirks import Quirks
from habitus.records import Message, Outcome, Prefix, Reply, Request, Sampling, Schema, messages


class Status(StrEnum):
    """What a check says: it can, it cannot, these calls do not tell, or a call failed."""

    YES = "yes"
    NO = "no"
    UNCLEAR = "unclear"
    FAILED = "failed"


@dataclass(frozen=True, slots=True)
class Finding:
    """The result of one check. ``detail`` is one line for a person."""

    check: str
    status: Status
    detail: str = ""


class CallFailedError(Exception):
    """A call of a check has no answer, so that the check has no result."""


@dataclass(slots=True)
class _Asking:
    """The model that is checked and what it has answered so far."""

    model: ChatModel
    longest: int
    replies: list[Reply] = field(default_factory=list)

    async def reply(self, *turns: tuple[str, str], **fields: Any) -> Reply:
        """Any reply, whatever its outcome."""
        fields.setdefault("sampling", Sampling(max_tokens=self.longest))
        request = Request(messages=messages(turns), stage="check", **fields)
        reply = await self.model.complete(request)
        self.replies.append(reply)
        return reply

    async def answer(self, *turns: tuple[str, str], **fields: Any) -> Reply:
        """A reply that can be used.

        Raises:
            CallFailedError: with the outcome and its reason.
        """
        reply = await self.reply(*turns, **fields)
        if not reply.ok:
            raise CallFailedError(_outcome(reply))
        return reply


Check = Callable[[_Asking], Awaitable[tuple[Status, str]]]


async def check_model(
    model: ChatModel, *, longest: int = 400, tell: Callable[[str], object] = lambda _: None
) -> list[Finding]:
    """Ask a model what it can do.

    Args:
        model: A model without a log before it, as repeated questions are part of the checks.
        longest: Most tokens of an answer; a model that reasons first needs more.
        tell: Takes the name of each check before it is made.

    Returns:
        One finding for each check. Where even a plain reply fails, that one only.
    """
    before = getattr(model, "quirks", None)
    asking = _Asking(model, longest)
    findings = []
    for name, check in _CHECKS.items():
        tell(name)
        findings.append(await _run(name, check, asking))
        if name == "reply" and findings[0].status is Status.FAILED:
            return findings
    findings += [_reasoning(asking.replies), _latency(asking.replies)]
    findings += _quirks(before, getattr(model, "quirks", None))
    return [*findings, *await _context(model)]


async def _run(name: str, check: Check, asking: _Asking) -> Finding:
    try:
        return Finding(name, *await check(asking))
    except CallFailedError as failed:
        return Finding(name, Status.FAILED, str(failed))


async def _reply(asking: _Asking) -> tuple[Status, str]:
    reply = await asking.answer(("user", "Name one fruit. Answer with one word."))
    return Status.YES, f"answered {_short(reply.text)}"


async def _system(asking: _Asking) -> tuple[Status, str]:
    turns = ("system", "Whatever is said, answer only: PINEAPPLE"), ("user", "Hello, who are you?")
    reply = await asking.answer(*turns)
    how = "the server rejects it; its text was put into the user turn; " if _changed(reply) else ""
    obeyed = "pineapple" in reply.text.lower()
    said = f"{how}{'followed' if obeyed else 'not followed'}: {_short(reply.text)}"
    if _changed(reply):
        return Status.NO, said
    return (Status.YES if obeyed else Status.UNCLEAR), said


async def _assistant_first(asking: _Asking) -> tuple[Status, str]:
    turns = ("assistant", "Good morning."), ("user", "Name one fruit. Answer with one word.")
    return _accepted(await asking.answer(*turns), "a user turn is put first")


async def _same_role(asking: _Asking) -> tuple[Status, str]:
    turns = ("user", "I have a question."), ("user", "Name one fruit. Answer with one word.")
    return _accepted(await asking.answer(*turns), "the turns are joined")


async def _stop(asking: _Asking) -> tuple[Status, str]:
    sampling = Sampling(max_tokens=asking.longest, stop=("four",))
    turn = ("user", "Repeat exactly: one two three four five six")
    reply = await asking.answer(turn, sampling=sampling)
    if "stop" in reply.sent.get("left_out", ()):
        return Status.NO, "the server rejects stop strings; they are applied here"
    if "four" in reply.text:
        return Status.NO, f"the stop string is in the answer: {_short(reply.text)}"
    status = Status.YES if "three" in reply.text else Status.UNCLEAR
    return status, f"answered {_short(reply.text)}"


async def _max_tokens(asking: _Asking) -> tuple[Status, str]:
    turn = ("user", "Write a long story about a journey by train.")
    reply = await asking.reply(turn, sampling=Sampling(max_tokens=16))
    if reply.outcome not in {Outcome.OK, Outcome.TRUNCATED}:
        raise CallFailedError(_outcome(reply))
    used = reply.usage.completion
    if reply.outcome is Outcome.TRUNCATED and (used is None or used <= 16):
        return Status.YES, "cut at 16 tokens and said so"
    return Status.NO, f"{_outcome(reply)}, {used} tokens where 16 were allowed"


async def _seed(asking: _Asking) -> tuple[Status, str]:
    turn = ("user", "Invent a name for a ship. Answer with the name only.")
    sampling = Sampling(temperature=1.0, max_tokens=asking.longest)
    texts = [
        (await asking.answer(turn, sampling=sampling, seed=seed)).text for seed in (1, 1, 2, 3)
    ]
    if texts[0] != texts[1]:
        return Status.NO, "the same seed gives different answers"
    if len(set(texts[1:])) == 1:
        return Status.UNCLEAR, "three different seeds give the same answer"
    return Status.YES, "the same seed gives the same answer, others differ"


_SCHEMA = Schema(
    "fruit",
    {
        "type": "object",
        "properties": {
            "colour": {"type": "string", "enum": ["teal", "umber"]},
            "weight": {"type": "integer"},
        },
        "required": ["colour", "weight"],
        "additionalProperties": False,
    },
)


async def _schema(asking: _Asking) -> tuple[Status, str]:
    from jsonschema import Draft202012Validator  # noqa: PLC0415  (only this check needs it)

    reply = await asking.answer(("user", "Describe a lemon."), schema=_SCHEMA)
    how = reply.sent.get("response_format", {}).get("type", "a body parameter")
    if "schema" in reply.sent.get("left_out", ()):
        how = "nothing: the server takes no schema"
    try:
        errors = list(Draft202012Validator(_SCHEMA.body).iter_errors(json.loads(reply.text)))
    except (ValueError, RecursionError):
        return Status.NO, f"asked by {how}; not JSON: {_short(reply.text)}"
    if errors:
        return Status.NO, f"asked by {how}; JSON of another shape: {_short(errors[0].message)}"
    return Status.YES, f"asked by {how}"


async def _usage(asking: _Asking) -> tuple[Status, str]:
    reply = await asking.answer(("user", "Name one fruit. Answer with one word."))
    usage = reply.usage
    if usage.prompt is None or usage.completion is None:
        return Status.NO, "tokens are not reported; no cost can be counted"
    return Status.YES, f"{usage.prompt} prompt and {usage.completion} completion tokens"


async def _cached(asking: _Asking) -> tuple[Status, str]:
    text = " ".join(f"Item {n}: a note about the weather of day {n}." for n in range(180))
    prefix = Prefix((Message("user", text), Message("assistant", "Noted.")))
    question = ("user", "Name one fruit. Answer with one word.")
    replies = [await asking.answer(question, prefix=prefix, repeat=n) for n in range(2)]
    cached = replies[1].usage.cached
    if cached is None:
        return Status.UNCLEAR, "cached prompt tokens are not reported"
    status = Status.YES if cached else Status.NO
    return status, f"{cached} of {replies[1].usage.prompt} prompt tokens came from a cache"


_CHECKS: dict[str, Check] = {
    "reply": _reply,
    "system role": _system,
    "assistant first": _assistant_first,
    "same role twice": _same_role,
    "stop strings": _stop,
    "max_tokens": _max_tokens,
    "seed": _seed,
    "json schema": _schema,
    "usage": _usage,
    "cached tokens": _cached,
}


def _reasoning(replies: list[Reply]) -> Finding:
    seen = [r for r in replies if r.reasoning]
    if not seen:
        return Finding("reasoning", Status.NO, "no reasoning came with the answers")
    tags = sum(bool(r.raw) for r in seen)
    where = "in tags in the text" if tags else "in a field of its own"
    return Finding("reasoning", Status.YES, f"{len(seen)} of {len(replies)} replies, {where}")


def _latency(replies: list[Reply]) -> Finding:
    seconds = sorted(r.latency for r in replies)
    detail = f"median {median(seconds):.2f} s, longest {seconds[-1]:.2f} s, one call at a time"
    return Finding("latency", Status.YES, detail)


def _quirks(before: Quirks | None, after: Quirks | None) -> list[Finding]:
    """What was learned, as lines for the entry."""
    if before is None or after is None:
        return []
    fields = [name for name in Quirks.model_fields if getattr(before, name) != getattr(after, name)]
    if not fields:
        return [Finding("quirks", Status.YES, "the entry's quirks fit")]
    learned = after.model_dump(mode="json", include=set(fields))
    pairs = ", ".join(f"{name}: {json.dumps(learned[name])}" for name in fields)
    return [Finding("quirks", Status.NO, f"write into the entry: quirks: {{{pairs}}}")]


async def _context(model: ChatModel) -> list[Finding]:
    """What the server lists as the context length: histories that do not fit are then foreseen."""
    listed = getattr(model, "listed_context", None)
    if listed is None:
        return []
    length = await listed()
    if length is None:
        said = "the server does not list it; write context_length into the entry if you know it"
        return [Finding("context length", Status.UNCLEAR, said)]
    return [
        Finding("context length", Status.YES, f"write into the entry: context_length: {length}")
    ]


def _accepted(reply: Reply, change: str) -> tuple[Status, str]:
    if _changed(reply):
        return Status.NO, f"the server rejects it; {change}"
    return Status.YES, "sent as it is"


def _changed(reply: Reply) -> bool:
    return "messages" in reply.sent


def _outcome(reply: Reply) -> str:
    return f"{reply.outcome} ({reply.reason})" if reply.reason else str(reply.outcome)


def _short(text: str, most: int = 60) -> str:
    line = " ".join(text.split())
    return repr(line if len(line) <= most else f"{line[:most]}...")
