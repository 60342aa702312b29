"""Every place where a server may say again the key that it was sent, and every spelling of it.

step = repeating("error 401")      # a step of ``loopback``: repeats the key of its request there
spellings(key)                     # what must not be found in anything that is kept or shown
"""

from __future__ import annotations

import base64
import json
from collections.abc import Callable, Mapping
from typing import Any

from aiohttp import web

from loopback import Step, answer, completion, raw

Keyed = Callable[[str], Step]


def _percent(key: str) -> str:
    return "".join(f"%{ord(c):02X}" for c in key)


def _escapes(key: str) -> str:
    return "".join(f"\\u{ord(c):04x}" for c in key)


def _base64(key: str) -> str:
    return base64.b64encode(f"Bearer {key}".encode()).decode()


def spellings(key: str) -> Mapping[str, str]:
    """The forms in which a key is to be looked for: each of them gives it away."""
    return {
        "as it is": key,
        "JSON": _escapes(key),
        "JSON in JSON": _escapes(key).replace("\\", "\\\\"),
        "an address": _percent(key),
        "HTML": "".join(f"&#{ord(c)};" for c in key),
        "hexadecimal HTML": "".join(f"&#x{ord(c):x};" for c in key),
        "base64": _base64(key),
    }


def _in_message(**message: Any) -> Keyed:
    """A completion with KEY in a field of its message."""
    return lambda key: raw(
        completion({"content": "Rice.", **message}).replace(b"KEY", key.encode())
    )


def _error(number: int, message: str = "no: KEY", **fields: Any) -> Keyed:
    """An error body with KEY in it, and in headers beside it."""
    text = json.dumps({"error": {"message": message, **fields}})
    return lambda key: raw(
        text.replace("KEY", key).encode(),
        number,
        {"Retry-After": key, "x-request-id": key, "WWW-Authenticate": f"Bearer {key}"},
    )


def _raw(text: str, number: int = 200) -> Keyed:
    return lambda key: raw(text.replace("KEY", key).encode(), number)


def _redirect(number: int) -> Keyed:
    return lambda key: raw(f"see {key}".encode(), number, {"Location": f"/elsewhere?key={key}"})


def _spelt(spelling: str) -> Keyed:
    return lambda key: _in_message(content="Your key is KEY.")(spellings(key)[spelling])


def answer_in_parts(*texts: str) -> Step:
    """An answer in pieces, none of which has the whole of it."""
    return raw(completion({"content": [{"type": "text", "text": text} for text in texts]}))


#: Every place where a server may repeat a key: it is given what stood behind ``Bearer``.
REPEATED: Mapping[str, Keyed] = {
    "text": _in_message(content="Your key is KEY."),
    "think block": _in_message(content="<think>KEY</think>Rice."),
    "unfinished thought": _in_message(content="<think>KEY"),
    "reasoning": _in_message(reasoning="With KEY I may."),
    "refusal": _in_message(content=None, refusal="KEY may not ask this."),
    "refusal that is cut": _in_message(content=None, refusal="x" * 185 + "KEY"),
    "tool call": _in_message(tool_calls=[{"id": "KEY", "function": {"arguments": '{"a": "KEY"}'}}]),
    "role": _in_message(role="KEY"),
    "in parts": _in_message(content=[{"type": "text", "text": "KEY"}]),
    "in two parts": lambda key: answer_in_parts(key[:7], key[7:]),
    "around a thought": lambda key: answer(f"{key[:7]}<think>hm</think>{key[7:]}"),
    "finish reason": lambda key: answer("Rice.", f"stop {key}"),
    "model, id and usage": lambda key: raw(
        completion(
            {"content": "Rice."}, model=key, id=key, usage={"prompt_tokens": key, key: 1}
        )
    ),
    "another field": lambda key: raw(completion({"content": "Rice."}, "stop", **{key: {"of": key}})),
    **{f"text as {name}": _spelt(name) for name in spellings("")},
    **{f"error {number}": _error(number) for number in (400, 401, 403, 404, 413, 422, 429, 451, 500, 503)},
    "error code": _error(403, "safety system", code="KEY"),
    "error type and parameter": _error(400, "max_tokens is not supported: KEY", type="KEY", param="KEY"),
    "overflow": _error(400, "maximum context length is 8192 tokens, KEY", code="KEY"),
    "filter": _error(400, "content management policy KEY", innererror={"KEY": "KEY"}),
    "quota": _error(429, "insufficient_quota of KEY", code="KEY"),
    "error that is cut": _error(404, "x" * 3985 + "KEY"),
    "error in 200": _raw('{"error": {"message": "KEY", "code": 502}}'),
    "error of another form": _raw('{"detail": {"headers": ["Bearer KEY"]}}', 400),
    "error as text": _raw('{"error": "KEY"}', 400),
    "error in escapes": lambda key: _raw('{"error": {"message": "KEY"}}', 400)(_escapes(key)),
    "page": _raw("<html><title>Bearer KEY</title>", 502),
    "page in entities": lambda key: _raw("<html>KEY", 502)("".join(f"&#{ord(c)};" for c in key)),
    "no JSON": _raw("<html>KEY"),
    "no JSON that is cut": _raw("x" * 1990 + "KEY"),
    "cut JSON": _raw('{"choices": [{"message": {"content": "KEY'),
    "cut JSON in escapes": lambda key: _raw('{"choices": [{"message": {"content": "KEY')(_escapes(key)),
    "no choices": _raw('{"choices": [], "KEY": "KEY"}'),
    "redirect": _redirect(302),
    "lasting redirect": _redirect(308),
}  # fmt: skip


def repeating(place: str) -> Step:
    """Repeats the key of its request in a place of ``REPEATED``."""

    async def step(request: web.Request, body: dict[str, Any]) -> web.StreamResponse:
        key = request.headers.get("Authorization", "").removeprefix("Bearer ")
        return await REPEATED[place](key)(request, body)

    return step
