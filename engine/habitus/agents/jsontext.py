"""Finding the JSON in a model's answer.

Models wrap JSON in a fence, put a sentence before it, or repeat a key. This module finds the
value that was meant and counts doubled keys; whether the value has the right shape is the
caller's question. The last value that decodes wins over values in the text before it only when
it is the larger; a fenced value wins over both.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

_FENCED = re.compile(r"```[ \t]*[A-Za-z0-9_-]*[ \t]*\r?\n(.*?)\r?\n[ \t]*```", re.DOTALL)
_OPENING = re.compile(r"[{\[]")
_MAX_STARTS = 200


@dataclass(frozen=True, slots=True)
class Decoded:
    """A JSON value and the keys that stood twice in one of its objects."""

    value: Any
    doubled: tuple[str, ...] = ()


def decode_json(text: str) -> Decoded | None:
    """The JSON value of an answer, or None when there is none."""
    whole = _decode(text.strip())
    if whole is not None:
        return whole
    fenced = [d for d in map(_decode, _FENCED.findall(text)) if d is not None]
    if fenced:
        return fenced[-1]
    return max(_embedded(text), key=lambda found: found[0], default=(0, None))[1]


def _embedded(text: str) -> Iterator[tuple[int, Decoded]]:
    """(length, value) of each object or list that stands in the text and is not in another."""
    end = 0
    for count, match in enumerate(_OPENING.finditer(text)):
        if count > _MAX_STARTS:
            return
        if match.start() < end:
            continue
        doubled: list[str] = []
        try:
            value, end = _decoder(doubled).raw_decode(text, match.start())
        except (ValueError, RecursionError):
            continue
        yield end - match.start(), Decoded(value, tuple(doubled))


def _decode(text: str) -> Decoded | None:
    doubled: list[str] = []
    try:
        return Decoded(_decoder(doubled).decode(text), tuple(doubled))
    except (ValueError, RecursionError):
        return None


def _decoder(doubled: list[str]) -> json.JSONDecoder:
    def pairs(items: list[tuple[str, Any]]) -> dict[str, Any]:
        result: dict[str, Any] = {}
        for key, value in items:
            if key in result:
                doubled.append(key)
            result[key] = value
        return result

    return json.JSONDecoder(object_pairs_hook=pairs)
