"""Which tests are corrected together, and what is significant after it."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from habitus.framing.analysisfile import AnalysisFile
from habitus.framing.results import Fitted
from habitus.statistics import benjamini_hochberg

Key = tuple[Hashable, ...]
Place = tuple[int, str, int]  # of a record: its fit, the side, its number there


def corrected(fits: Sequence[Fitted[Any, Any]], rules: AnalysisFile) -> list[Fitted[Any, Any]]:
    """The fits of one question with ``q`` and ``significant`` in every record that has a p-value.

    What is undefined stays undefined and takes nothing from the others.
    """
    families: dict[Key, list[Place]] = {}
    for i, fit in enumerate(fits):
        for side in ("within", "between"):
            for j in range(len(getattr(fit, side))):
                families.setdefault(_key(fit, side, rules), []).append((i, side, j))
    found: dict[Place, float | None] = {}
    for places in families.values():
        values = [getattr(fits[i], side)[j].p for i, side, j in places]
        counted = rules.fdr.undefined == "counted"
        adjusted = benjamini_hochberg(values, count_undefined=counted)
        found |= dict(zip(places, adjusted, strict=True))
    return [_with(fit, i, found, rules.significance) for i, fit in enumerate(fits)]


def _key(fit: Fitted[Any, Any], side: str, rules: AnalysisFile) -> Key:
    """What tests of one family have in common."""
    subset = (fit.subset,) if rules.fdr.family in {"fit", "subset"} else ()
    name = (fit.name,) if rules.fdr.family == "fit" else ()
    return (*subset, *name, *((side,) if rules.fdr.sides == "apart" else ()))


def _with(
    fit: Fitted[Any, Any], place: int, found: Mapping[Place, float | None], significance: float
) -> Fitted[Any, Any]:
    """A fit whose records have what was found for them."""

    def told(side: str) -> tuple[Any, ...]:
        values = (found[place, side, j] for j in range(len(getattr(fit, side))))
        return tuple(
            record if q is None else replace(record, q=q, significant=q < significance)
            for record, q in zip(getattr(fit, side), values, strict=True)
        )

    return replace(fit, within=told("within"), between=told("between"))
