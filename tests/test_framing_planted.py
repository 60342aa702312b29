"""Planted truth: a corpus with known prevalences and couplings, over many seeds.

Three models answer the same posts. A post leans towards a characteristic, in all models alike, so
that labels of one post are not independent. Two models are equally often insiders, and all three show
one characteristic equally often: a ``>`` between equals is wrong, and so is one that points the wrong
way. The numbers that these tests print are in ``docs/planted-truth.md``.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from statistics import NormalDist
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

from framing_fixture import MODELS, frame_of, labels_of, rules
from habitus.framing import Asked, Codes, Frame, Framing, analyse
from habitus.statistics import StatsmodelsGee

SEEDS = range(1, 201)
POSTS = 300
LEANING = 0.4  # share of the variance, behind a label, that a post has in common
ERROR = 0.0154  # of a share of 200 at .95

CAUSE = (0.30, 0.45, 0.45)  # of llama, gemma, ministral
EFFECT = ((0.25, 0.45), (0.35, 0.35), (0.50, 0.40))  # without and with the cause
FLOOR = (0.25, 0.25, 0.25)  # a characteristic that no model shows more often
_NORMAL = NormalDist()


def chance(share: float) -> float:
    return _NORMAL.inv_cdf(share)


def leaning(rng: np.random.Generator, shared: npt.NDArray[Any]) -> npt.NDArray[np.float64]:
    """Standard normal numbers, one a post and model, with the post's own in all of them."""
    noise = rng.normal(size=(len(shared), len(MODELS)))
    found: npt.NDArray[np.float64] = np.sqrt(LEANING) * shared + np.sqrt(1 - LEANING) * noise
    return found


def corpus(seed: int, together: float = 0.0, posts: int = POSTS) -> dict[str, npt.NDArray[Any]]:
    """Labels of ``posts`` by models.

    ``together`` is the correlation of what a post leans to in the cause and in the effect: with 0
    the planted couplings are all there is.
    """
    rng = np.random.default_rng(seed)
    first, second, third = rng.normal(size=(3, posts, 1))
    second = together * first + np.sqrt(1 - together**2) * second
    cause = leaning(rng, first) < np.array([chance(p) for p in CAUSE])
    without, with_it = (np.array([chance(pair[i]) for pair in EFFECT]) for i in (0, 1))
    effect = leaning(rng, second) < np.where(cause, with_it, without)
    floor = leaning(rng, third) < np.array([chance(p) for p in FLOOR])
    return {"ins": cause, "emo": effect, "flat": floor}


ANALYSIS = rules(
    characteristics=[
        {"id": "ins", "name": "Insider", "judge": "positioning"},
        {"id": "emo", "name": "Emotions", "judge": "anthropomorphism", "variant": "emotions"},
        {"id": "flat", "name": "Flat", "judge": "anthropomorphism", "variant": "empathy"},
    ],
    questions=[
        {"id": "rq1", "title": "RQ1", "prevalence": ["ins", "emo", "flat"]},
        {"id": "rq2", "title": "RQ2", "pairs": [{"causes": ["ins"], "effects": ["emo"]}]},
    ],
)
TRUE_SHARES = {
    "ins": CAUSE,
    "emo": tuple(c * both + (1 - c) * rest for c, (rest, both) in zip(CAUSE, EFFECT, strict=True)),
    "flat": FLOOR,
}
TRUE_DELTAS = tuple(with_it - without for without, with_it in EFFECT)


@dataclass
class Coverage:
    """How often intervals hold the planted number, and how often a claim is wrong."""

    held: dict[str, float] = field(default_factory=dict)
    made: Counter[str] = field(default_factory=Counter)

    def see(self, what: str, right: bool) -> None:
        self.add(what, float(right))

    def add(self, what: str, share: float) -> None:
        self.made[what] += 1
        self.held[what] = self.held.get(what, 0.0) + share

    def share(self, what: str) -> float:
        return self.held[what] / self.made[what]

    def __str__(self) -> str:
        return "\n".join(f"{w:34} {self.share(w):.4f} of {self.made[w]:,}" for w in self.made)


def see_prevalences(found: Framing, seen: Coverage) -> None:
    shares = {
        (name, m): true[i] for name, true in TRUE_SHARES.items() for i, m in enumerate(MODELS)
    }
    for p in found.prevalences:
        assert p.low is not None
        assert p.high is not None
        seen.see("probability", p.low <= shares[p.characteristic, p.level] <= p.high)
    claims: dict[str, list[bool]] = {name: [] for name in TRUE_SHARES}
    for c in found.comparisons:
        true = shares[c.characteristic, c.first] - shares[c.characteristic, c.second]
        assert c.low is not None
        assert c.high is not None
        assert c.difference is not None
        seen.see("difference", c.low <= true <= c.high)
        if c.significant:
            claims[c.characteristic].append(true * c.difference <= 0)
            seen.see("claims that are right", true * c.difference > 0)
        if not true:
            seen.see("equal levels not told apart", not c.significant)
    for wrong in claims.values():  # of which a false discovery rate is the mean
        seen.add("right share of claims, by family", 1 - float(np.mean(wrong)) if wrong else 1.0)


def see_rankings(found: Framing, seen: Coverage) -> None:
    """Whether a ``>`` in the line stands between levels that do not differ that way."""
    for ranking in found.rankings:
        true = dict(zip(MODELS, TRUE_SHARES[ranking.characteristic], strict=True))
        words = ranking.text.replace("~", " ~ ").replace(">", " > ").split()
        names = {"L": "llama", "G": "gemma", "M": "ministral"}
        wrong = [
            words[i] == ">" and true[names[words[i - 1]]] <= true[names[words[i + 1]]]
            for i in range(1, len(words), 2)
        ]
        seen.see(f"rankings of {ranking.characteristic} with no wrong >", not any(wrong))


def see_deltas(found: Framing, seen: Coverage, true: tuple[float, ...] = TRUE_DELTAS) -> None:
    deltas = dict(zip(MODELS, true, strict=True))
    for d in found.deltas:
        assert d.low is not None
        assert d.high is not None
        seen.see("delta", d.low <= deltas[d.level] <= d.high)
    for c in found.delta_comparisons:
        assert c.low is not None
        assert c.high is not None
        seen.see("difference of deltas", c.low <= deltas[c.first] - deltas[c.second] <= c.high)


def analysed_corpora(together: float = 0.0, **gee: str) -> Iterator[Framing]:
    asked = Asked(engine=StatsmodelsGee())
    analysis = ANALYSIS.model_copy(update={"gee": ANALYSIS.gee.model_copy(update=gee)})
    for seed in SEEDS:
        yield from analyse(labels_of(frame_of(corpus(seed, together))), analysis, asked)


@pytest.mark.slow
def test_intervals_hold_and_wrong_claims_are_rare(capsys: pytest.CaptureFixture[str]) -> None:
    seen = Coverage()
    for found in analysed_corpora():
        see_prevalences(found, seen)
        see_rankings(found, seen)
        see_deltas(found, seen)
    with capsys.disabled():
        print(f"\n{seen}")
    for what in ("probability", "difference", "delta", "difference of deltas"):
        assert seen.share(what) == pytest.approx(0.95, abs=2 * ERROR), what
    assert seen.share("claims that are right") >= 0.95
    assert seen.share("right share of claims, by family") >= 0.95
    assert seen.share("equal levels not told apart") >= 0.95
    for name in TRUE_SHARES:
        assert seen.share(f"rankings of {name} with no wrong >") >= 0.95 - 2 * ERROR


def marginal_deltas(together: float) -> tuple[float, ...]:
    """The deltas of a corpus without end, where posts add to the planted couplings."""
    labels = corpus(0, together, posts=2_000_000)
    cause, effect = labels["ins"], labels["emo"]
    return tuple(
        float(effect[cause[:, m], m].mean() - effect[~cause[:, m], m].mean()) for m in range(3)
    )


@pytest.mark.slow
def test_pairs_that_posts_have_a_hand_in_need_independence(
    capsys: pytest.CaptureFixture[str],
) -> None:
    """Why ``pairs_correlation`` is independence: under exchangeable, intervals miss."""
    true, shares = marginal_deltas(0.6), {}
    for correlation in ("independence", "exchangeable"):
        seen = Coverage()
        for found in analysed_corpora(0.6, pairs_correlation=correlation):
            see_deltas(found, seen, true)
        shares[correlation] = seen.share("delta")
        with capsys.disabled():
            print(f"\nposts lean to both, {correlation}\n{seen}")
    assert shares["independence"] == pytest.approx(0.95, abs=2 * ERROR)
    assert shares["exchangeable"] < 0.9


# Few clusters

FEW = (10, 20, 40)
PUBLISHED = {"covariance": "robust", "distribution": "normal"}


def personas(seed: int, clusters: int) -> Frame:
    """Answers to personas, of whom some were asked often; all three models are alike.

    A persona leans in all models, and a little in each by itself. Cause at .35; effect at .30
    without and .45 with it.
    """
    rng = np.random.default_rng([seed, clusters])
    asked = 1 + rng.poisson(rng.gamma(1, 5, size=clusters))
    persona = np.repeat(np.arange(clusters), asked * len(MODELS))
    model = np.concatenate([np.tile(np.arange(len(MODELS)), n) for n in asked])

    def leaning() -> npt.NDArray[np.float64]:
        shared, own = rng.normal(size=clusters), rng.normal(size=(clusters, len(MODELS)))
        mixed = np.sqrt(0.7) * shared[persona] + np.sqrt(0.3) * own[persona, model]
        own_part = np.sqrt(1 - LEANING) * rng.normal(size=len(persona))
        return np.asarray(np.sqrt(LEANING) * mixed + own_part, dtype=np.float64)

    cause = leaning() < chance(0.35)
    effect = leaning() < np.where(cause, chance(0.45), chance(0.30))
    fields = {
        "group": Codes.of([f"p{i:02}" for i in persona]),
        "target": Codes.of([MODELS[i] for i in model]),
    }
    return Frame(fields, {"ins": cause.astype(np.int8), "emo": effect.astype(np.int8)})


def see_few(found: Framing, seen: Coverage) -> None:
    """Whether intervals hold, and whether models that are alike are told apart."""
    for p in found.prevalences:
        if p.low is not None and p.high is not None:
            seen.see("probability", p.low <= 0.35 <= p.high)
    for c in found.comparisons:
        if c.low is not None and c.high is not None:
            seen.see("difference", c.low <= 0 <= c.high)
    for g in found.delta_comparisons:
        if g.low is not None and g.high is not None:
            seen.see("difference of deltas", g.low <= 0 <= g.high)
    for d in found.deltas:
        if d.low is not None and d.high is not None:
            seen.see("delta", d.low <= 0.15 <= d.high)
    for ranking in found.rankings:
        seen.see("rankings with no wrong >", ">" not in ranking.text)


def few_clusters(clusters: int, seeds: range, **gee: str) -> Coverage:
    seen, asked = Coverage(), Asked(engine=StatsmodelsGee())
    analysis = rules().model_copy(update={"gee": rules().gee.model_copy(update=gee)})
    for seed in seeds:
        for found in analyse(labels_of(personas(seed, clusters)), analysis, asked):
            see_few(found, seen)
    return seen


@pytest.mark.slow
@pytest.mark.parametrize("clusters", FEW)
def test_intervals_hold_in_few_clusters(clusters: int, capsys: pytest.CaptureFixture[str]) -> None:
    """With the defaults; the plain sandwich and the normal are printed beside them."""
    seen = few_clusters(clusters, range(1, 401))
    plain = few_clusters(clusters, range(1, 401), **PUBLISHED)
    with capsys.disabled():
        for name, found in (("defaults", seen), ("robust, normal", plain)):
            print(f"\n{clusters} clusters, {name}\n{found}")
    for what in seen.made:
        assert seen.share(what) > 0.95 - 0.03, what
    assert plain.share("difference") < seen.share("difference")
