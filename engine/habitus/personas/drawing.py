"""Whole personas: ids, names and stances, each culture from a seed of its own.

A culture's stances depend on (seed, sampler, culture) only, so another culture in the call
changes nothing. Names are distinct within a call; a culture takes the first free ones of its own
order of the list, so a culture that is added last changes no earlier name.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

from habitus.content import find, read_text
from habitus.errors import ContentError, Place, Problem, UsageError
from habitus.norms import Culture, Priors, norms_hash
from habitus.personas.population import Drawn, Persona
from habitus.personas.samplers import SAMPLERS
from habitus.records import generator

LETTERS = "ABCDEFGHIJKLMNOPQRSTUVWXYZ"


def draw(
    cultures: Sequence[Culture], n: int, drawn: Drawn, names: Sequence[str] | None = None
) -> tuple[Persona, ...]:
    """``n`` personas of each culture.

    Args:
        cultures: in the order in which they take names and stand in the result.
        n: personas of each culture.
        drawn: sampler, seed and priors; a prior counts in every culture that has its value.
        names: names to give, in place of the shipped list.

    Raises:
        UsageError: more personas than there are, a prior that no culture has, a culture twice.
    """
    _check(cultures, drawn.priors)
    taken: set[str] = set()
    personas: list[Persona] = []
    for culture in cultures:
        signs = _stances(culture, n, drawn)
        order = _name_order(names or read_names(), drawn.seed, culture.culture)
        for i, (row, name) in enumerate(zip(signs, _free(order, taken), strict=False), start=1):
            taken.add(name)
            personas.append(_persona(culture, i, name, row))
    return tuple(personas)


def read_names(path: Path | None = None) -> tuple[str, ...]:
    """Names from a file with one a line; lines that begin with # are comments.

    Raises:
        ContentError: a name that stands twice, or none at all.
    """
    path = path or find("personas", "names.txt")
    first: dict[str, int] = {}
    for number, line in enumerate(read_text(path).splitlines(), start=1):
        name = line.strip()
        if name.startswith("#") or not name:
            continue
        if name in first:
            what = f"the name {name!r} stands twice; first on line {first[name]}"
            raise ContentError([Problem(what, Place(path, number, 1))])
        first[name] = number
    if not first:
        raise ContentError([Problem("the file has no names", Place(path, 1, 1))])
    return tuple(first)


def _check(cultures: Sequence[Culture], priors: Priors) -> None:
    ids = [culture.culture for culture in cultures]
    for id_ in ids:
        if ids.count(id_) > 1:
            raise UsageError(f"the culture {id_} is named twice")
    for value in priors:
        if not any(value in culture.values for culture in cultures):
            raise UsageError(f"none of {', '.join(ids)} has a value {value!r}, which has a prior")


def _stances(culture: Culture, n: int, drawn: Drawn) -> list[list[int]]:
    priors = {value: p for value, p in drawn.priors.items() if value in culture.values}
    rng = generator(drawn.seed, f"personas/{drawn.sampler}", culture.culture)
    rows: list[list[int]] = SAMPLERS[drawn.sampler](culture, n, rng, priors).tolist()
    return rows


def _persona(culture: Culture, number: int, name: str, row: Sequence[int]) -> Persona:
    return Persona.model_validate(
        {
            "id": f"{culture.culture}-{number:02d}",
            "name": name,
            "culture": culture.culture,
            "norms_hash": norms_hash(culture),
            "stances": dict(zip(culture.values, row, strict=True)),
        }
    )


def _name_order(names: Sequence[str], seed: int, culture: str) -> list[str]:
    # Sorting by uniform numbers, not Generator.permutation: the stream of the former is stable.
    keys = generator(seed, "personas/names", culture).random(len(names))
    return [name for _, name in sorted(zip(keys, names, strict=True))]


def _free(order: Sequence[str], taken: set[str]) -> Iterator[str]:
    """Names that are not taken; once the list is used up, again with letters: "Robin A."."""
    yield from (name for name in order if name not in taken)
    round_ = 0
    while True:
        tail = LETTERS[round_ % 26] * (1 + round_ // 26)
        yield from (full for full in (f"{name} {tail}." for name in order) if full not in taken)
        round_ += 1
