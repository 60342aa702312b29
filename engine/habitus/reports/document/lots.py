"""Who is shown is drawn: an order of names that a seed makes, the same wherever it is made."""

from __future__ import annotations

from collections.abc import Iterable

from habitus.records import derive_seed


def drawn(seed: int, purpose: str, names: Iterable[str]) -> list[str]:
    """The names in an order of chance; a name more or less leaves that of the others as it is."""
    return sorted(names, key=lambda name: (derive_seed(seed, purpose, name), name))
