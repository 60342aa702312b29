"""What a server means when it does not answer: its error body, read.

    rejection = read_rejection(400, body)
    rejection.kind                          # "overflow", "refused", "quota" or "other"
    quirks = learn(rejection, quirks, sent) # what to do differently from now on, or None

Servers say the same things in many wordings; they are listed here as data and tried on the
error's code, type and message together. The module sends nothing and keeps nothing.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Any, Literal

import orjson

from habitus.models.quirks import Omittable, Quirks

Kind = Literal["overflow", "refused", "quota", "other"]

LONGEST_TEXT = 4000


@dataclass(frozen=True, slots=True)
class Rejection:
    """An error answer: what kind, the provider's word for it, and the text it came with."""

    status: int
    kind: Kind
    reason: str
    text: str = ""


_OVERFLOW = re.compile(
    r"context_length_exceeded|exceed_context_size|context_window_exceeded|string_above_max_length"
    r"|maximum context length|maximum model length|max_model_len"
    r"|exceeds? the (?:available |maximum |model'?s )?context (?:size|length|window)"
    r"|(?:input|prompt) (?:length |is )?(?:exceeds|too long|longer than)"
    r"|model'?s context length is only|maximum allowed input length"
    r"|(?:token count|tokens)[^.]{0,60} exceeds? the (?:configured |maximum )"
    r"|inputs` tokens \+ `max_new_tokens` must be|reduce the length of the (?:messages|prompt|input)"
    r"|too large for model with \d+ maximum context",
    re.IGNORECASE,
)
_REFUSED = re.compile(
    r"content[_ -]?filter(?:ed|ing)?|content management policy|responsible ?ai ?policy"
    r"|content_policy|content policy|usage policy|usage policies|safety (?:system|policy|filter)"
    r"|flagged (?:as|for|by|input)|flagged_input|requires moderation|moderation_blocked"
    r"|data_inspection_failed|inappropriate content|content exists risk|sensitive content"
    r"|prohibited_content",
    re.IGNORECASE,
)
_QUOTA = re.compile(r"insufficient_quota|exceeded your current quota|billing", re.IGNORECASE)
_NOT_TAKEN = (
    r"(?:unsupported|not supported|unrecognized|not recognized|unknown|unexpected|extra inputs"
    r"|not permitted|does(?: not|n't) support|deprecated|not compatible|incompatible"
    r"|only the default|only 1 is allowed|may only be|not enabled)"
)
_NOT_BOTH = re.compile(r"cannot both|both .{0,40}(?:not|only one)|only one of", re.IGNORECASE)
_SYSTEM = re.compile(
    r"system[ _]?(?:role|message|prompt|instruction)s?\b.{0,60}(?:\bnot\b|n't|unsupported)"
    r"|developer instruction is not enabled|(?:not|n't) support (?:a |the )?system"
    r"|unknown role:? .?system|unexpected role .?system",
    re.IGNORECASE,
)
_ALTERNATION = re.compile(
    r"roles? must alternate|must alternate between|alternating (?:user|roles)"
    r"|(?:first|start(?:s|ed)?) (?:message|with)[^.]{0,40}\buser|start(?:s|ed)? with an? .?user"
    r"|consecutive (?:user|assistant|messages)|multiple .?user.? roles in a row"
    r"|roles must be different|same role",
    re.IGNORECASE,
)
_SCHEMA = re.compile(
    rf"(?:response_format|json_schema|structured.?outputs?|guided_json).{{0,200}}{_NOT_TAKEN}"
    rf"|(?:{_NOT_TAKEN}|invalid)"
    r".{0,200}(?:response_format|json_schema|structured.?outputs?|guided_json)",
    re.IGNORECASE | re.DOTALL,
)
_STRICT = re.compile(
    r"invalid_json_schema|invalid schema for response_format|.strict.", re.IGNORECASE
)


def read_rejection(status: int, body: bytes) -> Rejection:
    """What kind of error answer this is.

    ``reason`` is short and the same for the same cause, so that failures can be counted by it.
    """
    text = error_text(body)
    if status in {400, 413, 422, 500} and _OVERFLOW.search(text):
        return Rejection(status, "overflow", "context length", text)
    if status == 413:
        return Rejection(status, "overflow", "request too large", text)
    if status in {400, 403, 422, 451} and (found := _REFUSED.search(text)):
        return Rejection(status, "refused", _word(body) or found[0].lower(), text)
    if status in {402, 429} and _QUOTA.search(text):
        return Rejection(status, "quota", f"http {status} quota used up", text)
    reason = "401 unauthorised" if status == 401 else f"http {status}"
    return Rejection(status, "other", reason, text)


def error_text(body: bytes) -> str:
    """Code, type and message of an error body as one text; of another body its beginning."""
    error = _error(body)
    if not isinstance(error, dict):
        return (
            body[:LONGEST_TEXT]
            .decode("utf-8", "replace")
            .replace("\0", "\N{REPLACEMENT CHARACTER}")
        )
    parts = [error.get(key) for key in ("code", "type", "param", "message")]
    parts += [error.get(key) for key in ("innererror", "metadata", "detail")]
    return " | ".join(str(part) for part in parts if part)[:LONGEST_TEXT]


def learn(rejection: Rejection, quirks: Quirks, sent: Collection[str]) -> Quirks | None:
    """Quirks under which the request would pass, if the text tells and they are new.

    Args:
        rejection: A 400 or 422 of kind ``other``.
        quirks: What was known when the request was sent.
        sent: Names of the parameters that were sent, and ``system`` if there was such a role.

    Returns:
        Changed quirks, or None when the text names nothing that could be done differently.
    """
    if rejection.status not in {400, 422, 500} or rejection.kind != "other":
        return None
    change = _parameters(rejection.text, quirks, sent) or _roles(rejection.text, quirks, sent)
    return quirks.model_copy(update=change) if change else None


def _parameters(text: str, quirks: Quirks, sent: Collection[str]) -> Mapping[str, Any]:
    if "max_tokens" in sent and _rejects("max_tokens", text):  # there is one other name for it
        return {"max_tokens_field": "max_completion_tokens"}
    if "max_completion_tokens" in sent and _rejects("max_completion_tokens", text):
        return {"max_tokens_field": "max_tokens"}
    if {"temperature", "top_p"} <= set(sent) and "top_p" in text and _NOT_BOTH.search(text):
        return {"omit": (*quirks.omit, "top_p")}
    if "temperature" in sent and _rejects("temperature", text):
        return {"temperature": "fixed"}
    omittable: tuple[Omittable, ...] = ("top_p", "seed", "stop")
    for name in omittable:
        if name in sent and _rejects(name, text):
            return {"omit": (*quirks.omit, name)}
    return _schema(text, quirks) if "schema" in sent else {}


def _schema(text: str, quirks: Quirks) -> Mapping[str, Any]:
    if not _SCHEMA.search(text):
        return {}
    if quirks.structured == "json_schema" and quirks.strict and _STRICT.search(text):
        return {"strict": False}
    weaker = "none" if quirks.structured == "json_object" else "json_object"
    return {"structured": weaker}


def _roles(text: str, quirks: Quirks, sent: Collection[str]) -> Mapping[str, Any]:
    """Turns are made to alternate first; some templates count a system message as a turn."""
    alternation = _ALTERNATION.search(text) is not None
    if alternation and not quirks.alternate:
        return {"alternate": True}
    if "system" in sent and quirks.system_role and (alternation or _SYSTEM.search(text)):
        return {"system_role": False}
    return {}


def _rejects(name: str, text: str) -> bool:
    """Whether a text says, close to the name of a parameter, that it is not taken."""
    near = rf"\b{name}\b.{{0,120}}?{_NOT_TAKEN}|{_NOT_TAKEN}.{{0,60}}?\b{name}\b"
    return re.search(near, text, re.IGNORECASE | re.DOTALL) is not None


def _word(body: bytes) -> str:
    """The provider's code of an error, where it is a word."""
    error = _error(body)
    code = error.get("code") if isinstance(error, dict) else None
    return code if isinstance(code, str) and re.fullmatch(r"[A-Za-z_. -]{3,60}", code) else ""


def _error(body: bytes) -> Any:
    try:
        data = orjson.loads(body)
    except orjson.JSONDecodeError:
        return None
    if isinstance(data, list) and data:
        data = data[0]
    if not isinstance(data, dict):
        return None
    error = data.get("error", data)
    return {"message": error} if isinstance(error, str) else error
