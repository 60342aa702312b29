"""A source of items to judge: what it is, and how it is read.

A source is read twice: once to be checked and named by its content before any call, and once to be
kept. So a fault in its last row costs nothing. What sources there are is said in ``labelling.sources``.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from habitus.records import JudgedItem, Outcome


@dataclass(frozen=True, slots=True)
class Source:
    """Items, and what they are.

    Args:
        name: what people call it.
        kind: ``posts``, ``responses`` or ``rows``.
        digest: names the content: equal items, equal digest.
        size: how many items.
        answered: how many of them have a response.
        read: reads the items, each time anew.
        made_up: models whose answers no model gave.
    """

    name: str
    kind: str
    digest: str
    size: int
    answered: int
    read: Callable[[], Iterator[JudgedItem]]
    made_up: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class Columns:
    """Names of columns, where they are not the usual ones; "" looks for those."""

    response: str = ""
    question: str = ""
    target: str = ""
    id: str = ""
    group: str = ""


def looked_through(items: Iterator[JudgedItem]) -> tuple[str, int, int]:
    """Digest, size and number of answered items of a source, in its order."""
    hasher = hashlib.sha256()
    size = answered = 0
    for item in items:
        hasher.update(item.line() + b"\n")
        size += 1
        answered += item.outcome is Outcome.OK
    return hasher.hexdigest(), size, answered
