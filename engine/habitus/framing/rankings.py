"""Levels by estimated probability, in one line.

    M>G~L       M shows it more often than G (significant), G and L do not differ
    M>G?L       nothing can be said of L, or of how G and L differ

Only neighbours are compared in the line: ``M~G~L`` does not say that M and L do not differ. The table
of all pairs does.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import pairwise

from habitus.framing.results import Comparison, Fitted, Prevalence, Ranking

_TIE = 1e-9  # of probabilities: two that are further apart do differ


def notation(
    estimates: Mapping[str, float | None],
    differ: Mapping[tuple[str, str], bool | None],
    names: Mapping[str, str] | None = None,
) -> tuple[tuple[str, ...], str]:
    """Levels in order, and the line.

    Args:
        estimates: Probability by level; None where there is none. Ties, which are those closer
            than a solver goes, keep the order given.
        differ: Whether two levels differ significantly, by pair in either order; None, or no such
            pair, where nothing can be said.
        names: Short names of levels.
    """
    known = _ordered({level: value for level, value in estimates.items() if value is not None})
    levels = (*known, *(level for level in estimates if level not in known))
    relations = [_relation(a, b, differ) for a, b in pairwise(levels)]
    words = [(names or {}).get(level, level) for level in levels]
    text = "".join(f"{word}{sign}" for word, sign in zip(words, [*relations, ""], strict=True))
    return levels, text


def ranking(fit: Fitted[Prevalence, Comparison], names: Mapping[str, str]) -> Ranking:
    """The ranking of a characteristic in a subset."""
    estimates = {found.level: found.estimate for found in fit.within}
    differ = {(found.first, found.second): found.significant for found in fit.between}
    levels, text = notation(estimates, differ, names)
    return Ranking(fit.subset, fit.name, levels, text, fit.reason if "?" in text else "")


def rankings(
    fits: Sequence[Fitted[Prevalence, Comparison]], names: Mapping[str, str]
) -> tuple[Ranking, ...]:
    """The rankings of all fits."""
    return tuple(ranking(fit, names) for fit in fits)


def _ordered(values: Mapping[str, float]) -> list[str]:
    """Levels by value, highest first; those that differ by rounding in the order given."""
    place = {level: i for i, level in enumerate(values)}
    falling = sorted(values, key=lambda level: -values[level])
    rank = dict.fromkeys(falling[:1], 0)
    for before, level in pairwise(falling):
        rank[level] = rank[before] + (values[before] - values[level] > _TIE)
    return sorted(falling, key=lambda level: (rank[level], place[level]))


def _relation(a: str, b: str, differ: Mapping[tuple[str, str], bool | None]) -> str:
    found = differ.get((a, b), differ.get((b, a)))
    return "?" if found is None else ">" if found else "~"
