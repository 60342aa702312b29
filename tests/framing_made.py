"""Made-up results of an analysis of labels: what figures and tables are tried on."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import combinations

import numpy as np

from habitus.corpora import Share
from habitus.framing.results import (
    Comparison,
    Delta,
    DeltaComparison,
    Framing,
    Prevalence,
    Ranking,
    Subset,
)

CUES = {
    "personal_relationships": "Personal relationships",
    "personal_history": "Personal history",
    "explicit_relationship_status": "Explicit relationship status",
    "desires": "Desires",
    "agency": "Agency",
    "emotions": "Emotions",
    "validation": "Validation",
    "empathy": "Empathy",
    "relatability": "Relatability",
}
MAXIMS = {m: f"{m.capitalize()} violated" for m in ("quantity", "quality", "relation", "manner")}
CHARACTERISTICS = {"insider": "Insider", "generalizing": "Generalizing", **CUES, **MAXIMS}
COUNTRIES = ("india", "china", "philippines", "usa", "korea", "russia", "turkey")
CATEGORIES = ("social relations", "education and career", "food and drink")
MODELS = ("llama-3.1-8b-instruct", "gemma-3-12b-it", "ministral-3-14b-instruct-2512")
ASKED = ("emotions", "validation", "empathy")
PAIRS = (
    *(("insider", e) for e in ("generalizing", *ASKED)),
    *((c, "insider") for c in ("generalizing", *ASKED)),
    *(("generalizing", e) for e in ASKED),
    *((c, "generalizing") for c in ASKED),
    *((m, e) for m in MAXIMS for e in ("insider", "generalizing", *ASKED)),
)


def made_framing(
    levels: Sequence[str] = MODELS,
    places: Sequence[str] = COUNTRIES,
    categories: Sequence[str] = CATEGORIES,
    characteristics: Mapping[str, str] = CHARACTERISTICS,
    *,
    undefined: float = 0.06,
    **more: object,
) -> Framing:
    """Results with some undefined ones; the same for the same arguments."""
    rng = np.random.default_rng(3)
    subsets = tuple(
        Subset((("country", place), ("category", category)), 900, 300)
        for place in places
        for category in categories
    )
    pairs = [(c, e) for c, e in PAIRS if c in characteristics and e in characteristics]
    given = {
        "id": "franz",
        "title": "FRANZ",
        "notes": (),
        "synthetic": False,
        "characteristics": characteristics,
        "levels": tuple(levels),
        "subsets": subsets,
        "prevalences": tuple(
            _prevalence(rng, s, c, level, undefined)
            for s in subsets
            for c in characteristics
            for level in levels
        ),
        "deltas": tuple(
            _delta(rng, s, pair, level, undefined / 3)
            for s in subsets
            for pair in pairs
            for level in levels
        ),
        "delta_comparisons": tuple(
            DeltaComparison(s, c, e, a, b, 0.1, 0.0, 0.2, 0.1, 0.1, bool(rng.random() < 0.2))
            for s in subsets
            for c, e in pairs
            for a, b in combinations(levels, 2)
        ),
    }
    return Framing(**{**given, **more})  # type: ignore[arg-type]


def _prevalence(
    rng: np.random.Generator, subset: Subset, characteristic: str, level: str, undefined: float
) -> Prevalence:
    rows, missing = int(rng.integers(260, 300)), int(rng.integers(0, 9))
    rate = float(rng.beta(1.2, 3.0))
    cases = round(rate * rows)
    if rng.random() < undefined:
        return Prevalence(subset, characteristic, level, rows, 0, missing, reason="no case")
    half = 1.96 * (rate * (1 - rate) / rows) ** 0.5
    low, high = max(0.001, rate - half), min(0.999, rate + half)
    return Prevalence(
        subset, characteristic, level, rows, cases, missing, rate, low, high, 0.01, 0.02, True
    )


def _delta(
    rng: np.random.Generator, subset: Subset, pair: tuple[str, str], level: str, undefined: float
) -> Delta:
    counts = (280, 90, 80, 30)
    if rng.random() < undefined:
        return Delta(subset, *pair, level, *counts, reason="an empty cell")
    delta, half = float(rng.normal(0.08, 0.15)), float(rng.uniform(0.04, 0.14))
    delta = float(np.clip(delta, -0.8, 0.8))
    significant = abs(delta) > half
    return Delta(
        subset, *pair, level, *counts, delta, delta - half, delta + half, 0.01, 0.02, significant
    )


def made_shares(countries: Sequence[str] = COUNTRIES) -> list[Share]:
    """Posts by country and category, as ``habitus corpus stats`` counts them."""
    rng = np.random.default_rng(5)
    names = (
        "Food and Drink", "Clothing and Grooming", "Speech and Language", "The House",
        "Agriculture and Vegetation", "Animals", "Arts", "Social Relations", "Political Relations",
        "Religious Beliefs", "Emotions and Values", "Kinship", "Names",
        "Current and Historical Events", "Education and Career", "Technology",
        "Health and Wellness", "Tourism", "Other",
    )  # fmt: skip
    out = []
    for country in countries:
        counts = (rng.dirichlet(np.full(len(names), 0.35)) * 20_000).astype(int).tolist()
        of = sum(counts) + 40
        cells = [*zip(names, counts, strict=True), (None, 40)]
        out += [Share("country and category", country, name, n, of) for name, n in cells if n]
    return out


__all__ = ["Comparison", "Ranking", "made_framing", "made_shares"]
