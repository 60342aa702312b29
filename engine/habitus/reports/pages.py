"""A figure of a report as pages, each drawn when it is asked for; and how results are divided.

A figure that cannot be drawn from what there is says why instead. A *place* is the first field of
the subsets, such as the country; subsets that are made by one field only stand together.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import TYPE_CHECKING, TypeVar

from habitus.framing.results import Framing, Subset
from habitus.tables import Value

if TYPE_CHECKING:
    from matplotlib.figure import Figure

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Numbers:
    """What a figure shows, as a table: numbers in full, undefined is None."""

    columns: tuple[str, ...]
    rows: tuple[tuple[Value, ...], ...]


@dataclass(frozen=True, slots=True)
class Page:
    """One page of a figure.

    ``name`` becomes that of the files. ``heading`` says what it is, ``text`` what can be seen, for
    people who cannot see it; ``numbers`` gives what is drawn.
    """

    name: str
    heading: str
    text: str
    draw: Callable[[], Figure]
    numbers: Callable[[], Numbers]


@dataclass(frozen=True, slots=True)
class Skipped:
    """A figure that is not drawn, and why."""

    name: str
    reason: str


def places(framing: Framing) -> dict[str, list[Subset]]:
    """The subsets by the value of their first field; empty where nothing is divided."""
    found: dict[str, list[Subset]] = {}
    for subset in framing.subsets:
        if subset.fields:
            found.setdefault(subset.fields[0][1], []).append(subset)
    return found


def groups(framing: Framing) -> dict[str, list[Subset]]:
    """The subsets of each place; all together, without a name, where no place has several."""
    found = places(framing)
    if all(len(subsets) == 1 for subsets in found.values()):
        return {"": list(framing.subsets)}
    return found


def rest(subset: Subset) -> str:
    """What sets a subset apart within its place; its place, where nothing does."""
    return ", ".join(value for _, value in subset.fields[1:]) or subset.name


def field_names(framing: Framing) -> tuple[str, str]:
    """What a place is called, such as ``country``, and what sets its subsets apart."""
    names = [name for subset in framing.subsets for name, _ in subset.fields]
    rest_of = [name for name in dict.fromkeys(names) if name != names[0]]
    return (names[0] if names else ""), (", ".join(rest_of) or "subset")


def marked(framing: Framing, heading: str) -> str:
    """A heading that says when no model gave the answers or the labels."""
    return f"{heading} (synthetic)" if framing.synthetic else heading


def chunks(items: Iterable[T], size: int) -> Iterator[list[T]]:
    """Lists of at most so many, in order."""
    left = iter(items)
    while part := list(islice(left, size)):
        yield part


def even_chunks(items: Sequence[T], most: int) -> list[list[T]]:
    """As few lists of at most so many as there can be, of nearly the same length."""
    number = -(-len(items) // most)
    return list(chunks(items, -(-len(items) // max(1, number)))) if items else []


def numbered(name: str, parts: Sequence[T]) -> Iterator[tuple[str, T]]:
    """Each part with its name: the name alone where there is one, else with its number."""
    for number, part in enumerate(parts, 1):
        yield (name if len(parts) == 1 else f"{name}-{number}"), part
