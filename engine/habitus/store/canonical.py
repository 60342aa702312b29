"""JSON with one spelling: the same value gives the same bytes, and no text is ever lost.

``canonical`` is for what is hashed and compared (configurations): keys sorted, no spaces, whole
floats written as integers so that ``1`` and ``1.0`` are one value, NaN and infinity refused.
``dumps`` and ``loads`` are for what is only kept (calls): fast, key order as given. Both write a
lone surrogate, which UTF-8 cannot hold, as its JSON escape, and read it back as it was.

>>> canonical({"b": 1.0, "a": None})
b'{"a":null,"b":1}'

This module knows nothing of runs or files.
"""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import Any

import orjson

from habitus.errors import UsageError

_EXACT = 2**53  # floats up to here are exact integers
_SHOWN = 100  # characters of a value in a message

Path = tuple[str, ...]


def dumps(value: Any) -> bytes:
    """One line of JSON; mappings and foreign objects inside become objects and texts."""
    try:
        return orjson.dumps(value, default=_foreign)
    except TypeError:  # a lone surrogate, or an integer over 64 bits
        text = json.dumps(value, ensure_ascii=False, separators=(",", ":"), default=_foreign)
        return text.encode("utf-8", "backslashreplace")


def loads(line: bytes) -> Any:
    """What ``dumps`` wrote.

    Raises:
        ValueError: if the line is no JSON.
    """
    try:
        return orjson.loads(line)
    except orjson.JSONDecodeError:
        pass
    try:
        return json.loads(line)
    except RecursionError:
        raise ValueError("nested too deeply") from None


def exactly(text: bytes) -> Any:
    """What ``canonical`` wrote; an integer of any length is that integer, where ``loads`` rounds it.

    Raises:
        ValueError: if the text is no JSON.
    """
    try:
        return json.loads(text, parse_constant=_no_number)
    except RecursionError:
        raise ValueError("nested too deeply") from None


def plain(text: str) -> str:
    r"""The text with lone surrogates spelled out (``\ud800``), for columns and file names."""
    return text.encode("utf-8", "backslashreplace").decode()


def canonical(value: Any, *, indent: int | None = None) -> bytes:
    """The one spelling of a JSON value; with ``indent``, the same for people to read.

    Raises:
        UsageError: if the value holds something that JSON cannot.
    """
    separators = (",", ":") if indent is None else (",", ": ")
    text = json.dumps(
        _normal(value, ()),
        ensure_ascii=False,
        sort_keys=True,
        separators=separators,
        indent=indent,
    )
    return text.encode("utf-8", "backslashreplace")


def digest(value: Any) -> str:
    """32 hexadecimal digits that name a JSON value."""
    return hashlib.blake2b(canonical(value), digest_size=16).hexdigest()


@dataclass(frozen=True, slots=True)
class Change:
    """One field that differs between two configurations; None where it is not set."""

    path: Path
    old: Any
    new: Any

    @property
    def field(self) -> str:
        """The dotted path; a name that has a dot itself stands in quotes."""
        return ".".join(f'"{part}"' if "." in part else part for part in self.path)

    def __str__(self) -> str:
        return f"{self.field}: {_shown(self.old)} -> {_shown(self.new)}"


def changes(old: Any, new: Any) -> list[Change]:
    """Every field that differs, sorted by path. Unset and null are the same."""
    before, after = dict(_leaves(_normal(old, ()), ())), dict(_leaves(_normal(new, ()), ()))
    paths = sorted(before.keys() | after.keys())
    pairs = ((path, before.get(path), after.get(path)) for path in paths)
    # 1 == True in Python, so the spelling is compared and not the value
    return [Change(p, a, b) for p, a, b in pairs if canonical(a) != canonical(b)]


def allowed(change: Change, may_change: Iterable[str]) -> bool:
    """Whether a pattern like ``models.*.base_url`` covers the field or something above it.

    One like ``+content.*`` covers what was not set before.
    """
    return any(
        _covers(pattern.lstrip("+").split("."), change.path)
        and not (pattern.startswith("+") and change.old is not None)
        for pattern in may_change
    )


def _covers(pattern: Sequence[str], path: Path) -> bool:
    return len(pattern) <= len(path) and all(map(fnmatchcase, path, pattern))


def _leaves(value: Any, path: Path) -> Iterator[tuple[Path, Any]]:
    if isinstance(value, dict) and value:
        for key, inner in value.items():
            yield from _leaves(inner, (*path, key))
    elif isinstance(value, list) and value:
        for number, inner in enumerate(value):
            yield from _leaves(inner, (*path, str(number)))
    else:
        yield path, value


def _normal(value: Any, path: Path) -> Any:
    if isinstance(value, Mapping):
        return {str(key): _normal(inner, (*path, str(key))) for key, inner in value.items()}
    if isinstance(value, Sequence) and not isinstance(value, str | bytes):
        return [_normal(inner, (*path, str(number))) for number, inner in enumerate(value)]
    if isinstance(value, float):
        return _number(value, path)
    if value is None or isinstance(value, str | bool | int):
        return value
    raise UsageError(f"{'.'.join(path) or 'value'}: {type(value).__name__} cannot be kept as JSON")


def _number(value: float, path: Path) -> float | int:
    if not math.isfinite(value):
        raise UsageError(f"{'.'.join(path) or 'value'}: {value} is no JSON number")
    return int(value) if value.is_integer() and abs(value) < _EXACT else value


def _no_number(name: str) -> Any:
    raise ValueError(f"{name} is no JSON number")


def _shown(value: Any) -> str:
    if value is None:
        return "(not set)"
    text = plain(json.dumps(value, ensure_ascii=False))
    return text if len(text) <= _SHOWN else text[: _SHOWN - 3] + "..."


def _foreign(value: Any) -> Any:
    if isinstance(value, Mapping):
        return dict(value)
    if isinstance(value, bytes):
        return value.hex()
    return list(value) if isinstance(value, set | frozenset | tuple) else str(value)
