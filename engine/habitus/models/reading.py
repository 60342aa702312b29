"""Bodies of chat completions, read: exactly one outcome for each, and never a guess.

    read = read_completion(body, quirks)
    read.outcome, read.text, read.reasoning

A refusal, a cut answer and an empty one are outcomes of their own, so that none of them is ever
taken for an answer. The module knows nothing of connections, retries or what was asked.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import orjson

from habitus.content.visible import has_words
from habitus.models.quirks import Quirks
from habitus.models.thinking import split_thinking
from habitus.models.wire import clean_text
from habitus.records import Outcome, Reply, Usage

_REFUSED = {"content_filter", "safety", "recitation", "prohibited_content", "blocklist", "refusal"}
_CUT = {"length", "max_tokens", "max_output_tokens", "model_length"}
_BROKEN = {"error", "abort", "aborted", "cancelled", "malformed_response"}
_LONGEST_REASON = 200


@dataclass(frozen=True, slots=True)
class Read:
    """What one body says, as the fields of ``Reply``; a ``broken`` one may be asked again."""

    outcome: Outcome
    reason: str = ""
    text: str = ""
    reasoning: str = ""
    finish: str | None = None
    usage: Usage = field(default_factory=Usage)
    raw: str = ""
    broken: bool = False

    def reply(self, sent: Mapping[str, Any], latency: float) -> Reply:
        """The reply of one try that took ``latency`` seconds."""
        return Reply(
            outcome=self.outcome,
            text=self.text,
            reason=self.reason,
            reasoning=self.reasoning,
            finish=self.finish,
            usage=self.usage,
            sent=sent,
            latency=latency,
            raw=self.raw,
        )


def read_completion(body: bytes, quirks: Quirks, cut: Sequence[str] = ()) -> Read:
    """Read a body that came with status 200.

    Args:
        body: The body.
        quirks: Names of reasoning fields and think tags.
        cut: Stop strings to apply here, because the server did not get them.
    """
    data = _loads(body)
    choice = _first_choice(data)
    if choice is None or not isinstance(message := choice.get("message"), dict):
        return Read(Outcome.ERROR, "malformed body", raw=_beginning(body), broken=True)
    written, thought = _texts(message, quirks)
    split = split_thinking(_until(written, cut), quirks.think_tags)
    finish = choice.get("finish_reason")
    finish = clean_text(finish) if isinstance(finish, str) else None
    reasoning = "\n\n".join(filter(None, (thought, split.reasoning)))
    refusal = message.get("refusal")
    outcome, reason = _outcome(finish, refusal, split.text, reasoning, split.finished)
    return Read(
        outcome=outcome,
        reason=reason,
        text=split.text,
        reasoning=reasoning,
        finish=finish,
        usage=read_usage(data.get("usage")),
        raw=written if written != split.text else "",
        broken=outcome is Outcome.ERROR,
    )


def read_usage(usage: Any) -> Usage:
    """Token counts; what is no count (missing, negative, not whole) is None and not zero."""
    if not isinstance(usage, Mapping):
        return Usage()
    prompt = _count(usage.get("prompt_tokens"))
    details = usage.get("prompt_tokens_details")
    cached = _count(details.get("cached_tokens")) if isinstance(details, Mapping) else None
    if cached is None:
        cached = _count(usage.get("prompt_cache_hit_tokens"))
    if cached is not None and (prompt is None or cached > prompt):
        cached = None
    return Usage(prompt, _count(usage.get("completion_tokens")), cached)


def error_inside(body: bytes) -> int | None:
    """The status of an error that came in a body with status 200, as some gateways send it."""
    if b'"error"' not in body:
        return None
    data = _loads(body)
    error = data.get("error") if data and not data.get("choices") else None
    if not error:
        return None
    code = error.get("code") if isinstance(error, dict) else None
    return code if isinstance(code, int) and 400 <= code < 600 else 500


def _outcome(
    finish: str | None, refusal: Any, text: str, reasoning: str, finished: bool
) -> tuple[Outcome, str]:
    end = (finish or "").lower()
    if end in _REFUSED:
        return Outcome.REFUSED, end
    if isinstance(refusal, str) and refusal.strip():
        return Outcome.REFUSED, clean_text(f"refusal: {refusal.strip()}"[:_LONGEST_REASON])
    if end in _BROKEN:
        return Outcome.ERROR, f"finish {end}"
    empty = not has_words(text)
    if end in _CUT or not finished or (empty and reasoning):
        return Outcome.TRUNCATED, _cut_reason(
            end, finished, only_reasoning=empty and bool(reasoning)
        )
    return (Outcome.UNPARSED, "empty") if empty else (Outcome.OK, "")


def _cut_reason(end: str, finished: bool, *, only_reasoning: bool) -> str:
    if end in _CUT:
        return f"{end}, only reasoning" if only_reasoning else end
    return "only reasoning" if finished else "unfinished reasoning"


def _texts(message: Mapping[str, Any], quirks: Quirks) -> tuple[str, str]:
    """The text as written, and the reasoning that came in a field of its own."""
    content = message.get("content")
    thought = next((t for f in quirks.reasoning_fields if (t := _text(message.get(f)))), "")
    if isinstance(content, list):
        parts = [p for p in content if isinstance(p, dict)]
        thoughts = [_text(p.get("thinking")) for p in parts if p.get("type") == "thinking"]
        content = "".join(_text(p.get("text")) for p in parts if p.get("type") == "text")
        thought = "\n\n".join(filter(None, (thought, *thoughts)))
    return clean_text(_text(content)), clean_text(thought)


def _text(value: Any) -> str:
    if isinstance(value, list):
        return "".join(_text(p.get("text")) for p in value if isinstance(p, dict))
    return value if isinstance(value, str) else ""


def _until(text: str, cut: Sequence[str]) -> str:
    ends = [at for stop in cut if stop and (at := text.find(stop)) >= 0]
    return text[: min(ends)] if ends else text


def _first_choice(data: Mapping[str, Any]) -> Mapping[str, Any] | None:
    choices = data.get("choices")
    if not isinstance(choices, list) or not choices or not isinstance(choices[0], dict):
        return None
    return choices[0]


def _count(value: Any) -> int | None:
    whole = isinstance(value, int) and not isinstance(value, bool)
    return value if whole and 0 <= value < 2**53 else None


def _loads(body: bytes) -> dict[str, Any]:
    """The object in a body; empty where there is none. Takes lone surrogates, which JSON may escape."""
    try:
        data = orjson.loads(body)
    except orjson.JSONDecodeError:
        try:
            data = json.loads(body.decode("utf-8", "replace"))
        except (ValueError, RecursionError):
            return {}
    return data if isinstance(data, dict) else {}


def _beginning(body: bytes) -> str:
    return clean_text(body[:2000].decode("utf-8", "replace"))
