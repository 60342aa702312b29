"""Finding the JSON in a model's answer.

Models put JSON in a fence, write a sentence before or behind it, break lines inside its strings,
or give a key twice. This module finds the value that was meant; whether it has the right shape
is the caller's question. Three rules keep text that an answer quotes from being read as the answer:

- where several different objects stand side by side, none is read;
- where a beginning of JSON does not decode, what stands inside or behind it is not read;
- where a key stands behind an object, none is read: a quotation in it may have closed it early.

A key that one object gives twice holds :data:`TWICE`, which no schema accepts.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Final

_BEGINNING = re.compile(r'\{\s*["}]|\[\s*\{')  # an object, or a list of objects
_KEY = re.compile(r'"\s*:')


class _Twice:
    """Stands where an object gave a key twice: which value was meant is not known."""

    def __repr__(self) -> str:
        return "given twice"


TWICE: Final = _Twice()


@dataclass(frozen=True, slots=True)
class Decoded:
    """A JSON value, or the problem that there is none."""

    value: Any = None
    problem: str = ""


def decode_json(text: str) -> Decoded:
    """The JSON value of an answer; it never raises, whatever the text."""
    try:
        return Decoded(_DECODER.decode(text.strip()))
    except (ValueError, RecursionError):
        return _embedded(text)


def _embedded(text: str) -> Decoded:
    """The one object, or list of objects, that stands in a text."""
    found: list[Any] = []
    try:
        for value in _values(text):
            if value and value not in found:
                found.append(value)
    except (ValueError, RecursionError):
        return Decoded(problem="its JSON is damaged")
    if len(found) == 1:
        return Decoded(found[0])
    return Decoded(problem="it has several JSON answers" if found else "there is no JSON in it")


def _values(text: str) -> Iterator[Any]:
    """Each value that begins outside all others.

    Raises:
        ValueError: a beginning that does not decode, or a key outside.
    """
    end = 0
    while match := _BEGINNING.search(text, end):
        _check_between(text, end, match.start())
        value, end = _DECODER.raw_decode(text, match.start())
        yield value
    _check_between(text, end, len(text))


def _check_between(text: str, start: int, end: int) -> None:
    """Refuse a key behind an object: what closed the object may have been part of a quotation."""
    if start and _KEY.search(text, start, end):
        raise ValueError("a key that belongs to no object")


def _pairs(items: list[tuple[str, Any]]) -> dict[str, Any]:
    result: dict[str, Any] = {}
    for key, value in items:
        result[key] = TWICE if key in result else value
    return result


def _constant(name: str) -> Any:
    raise ValueError(f"{name} is not JSON")


_DECODER = json.JSONDecoder(object_pairs_hook=_pairs, parse_constant=_constant, strict=False)
