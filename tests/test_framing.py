"""Statements about framing: closed forms, planted truth, and nothing where nothing can be said."""

from __future__ import annotations

import importlib
import warnings
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from framing_fixture import LEAST, MODELS, analysed, frame_of, labels_of, rules
from habitus.errors import NotFoundError, UsageError
from habitus.framing import (
    MISSING,
    NOT_ASKED,
    Asked,
    Codes,
    Delta,
    Frame,
    Framing,
    Subset,
    analyse,
    direction,
    movements,
    notation,
)
from habitus.statistics import BinaryRows, Fit, GeeOptions, NotEstimable, StatsmodelsGee

multipletests: Any = importlib.import_module("statsmodels.stats.multitest").multipletests

Labels = npt.NDArray[np.int8]
PREVALENCE = {"questions": [{"id": "how-often", "title": "How often", "prevalence": ["ins"]}]}
PAIR = {
    "questions": [
        {"id": "pair", "title": "Pair", "pairs": [{"causes": ["ins"], "effects": ["emo"]}]}
    ]
}


def drawn(chances: tuple[float, ...], posts: int = 200, seed: int = 1) -> Labels:
    """Labels of posts by models with a post's own leaning in them."""
    rng = np.random.default_rng(seed)
    shared = rng.random((posts, 1))
    own = rng.random((posts, len(chances)))
    return (np.where(rng.random(own.shape) < 0.3, shared, own) < chances).astype(np.int8)


def values(records: tuple[Any, ...], name: str) -> list[Any]:
    return [getattr(record, name) for record in records]


# Notation


@pytest.mark.parametrize(
    ("order", "differ", "text"),
    [
        pytest.param("MLG", (True, True), "M>L>G", id="India, social relations: insider"),
        pytest.param("MGL", (True, True), "M>G>L", id="India, social relations: generalizing"),
        pytest.param("MGL", (True, False), "M>G~L", id="India, social relations: empathy"),
        pytest.param("LMG", (False, True), "L~M>G", id="Korea, food and drink: generalizing"),
        pytest.param("LGM", (None, True), "L?G>M", id="two of which nothing can be said"),
    ],
)
def test_rankings_are_written_as_published(
    order: str, differ: tuple[bool | None, bool | None], text: str
) -> None:
    estimates = {name: 0.9 - 0.3 * i for i, name in enumerate(order)}
    pairs = {(order[1], order[0]): differ[0], (order[1], order[2]): differ[1]}
    given_in_another_order = {name: estimates[name] for name in sorted(order)}
    assert notation(given_in_another_order, pairs) == (tuple(order), text)


def test_levels_without_an_estimate_stand_last_behind_a_question_mark() -> None:
    estimates = {"llama": None, "gemma": 0.2, "ministral": 0.4}
    names = {"llama": "L", "gemma": "G", "ministral": "M"}
    differ = {("gemma", "llama"): None, ("ministral", "gemma"): True}
    assert notation(estimates, differ, names) == (("ministral", "gemma", "llama"), "M>G?L")
    assert notation(dict.fromkeys("LG"), {})[1] == "L?G"
    assert notation({"L": 0.5}, {})[1] == "L"


def test_levels_that_differ_by_rounding_keep_the_order_given() -> None:
    """Three tenths by two ways; a solver's last digits order nothing."""
    estimates = {"L": 0.1 + 0.2 - 1e-12, "G": 0.3, "M": 0.1 + 0.2, "A": 0.3 + 1e-6}
    assert notation(estimates, {})[0] == ("A", "L", "G", "M")


# Estimates


def test_prevalences_of_complete_clusters_are_raw_shares() -> None:
    labels = drawn((0.2, 0.5, 0.6))
    found = analysed({"ins": labels, "emo": labels}, rules(**PREVALENCE))
    assert values(found.prevalences, "estimate") == pytest.approx(list(labels.mean(axis=0)))
    assert values(found.prevalences, "cases") == list(labels.sum(axis=0))
    assert [c.difference for c in found.comparisons] == pytest.approx(
        [labels[:, a].mean() - labels[:, b].mean() for a, b in ((1, 0), (2, 0), (2, 1))]
    )
    assert found.levels == MODELS
    (ranking,) = found.rankings
    assert (ranking.levels, ranking.text) == (("ministral", "gemma", "llama"), "M~G>L")


def test_errors_of_a_difference_allow_for_what_a_post_has_in_common() -> None:
    """Of complete pairs it is the error of the mean difference, by cluster."""
    labels = drawn((0.3, 0.5), posts=300)
    found = analysed({"ins": labels, "emo": labels}, rules(**PREVALENCE), models=MODELS[:2])
    gap = labels[:, 1].astype(float) - labels[:, 0]
    (comparison,) = found.comparisons
    assert comparison.low is not None
    assert comparison.high is not None
    reach = (comparison.high - comparison.low) / 2
    assert reach == pytest.approx(1.967930 * gap.std() / 299 * np.sqrt(300), rel=1e-6)
    published = rules(**PREVALENCE, gee={"covariance": "robust", "distribution": "normal"})
    other = analysed({"ins": labels, "emo": labels}, published, models=MODELS[:2]).comparisons[0]
    assert other.low is not None
    assert other.high is not None
    reach = (other.high - other.low) / 2
    assert reach == pytest.approx(1.959964 * gap.std() / np.sqrt(300), rel=1e-6)


def test_a_delta_under_independence_is_a_difference_of_raw_shares() -> None:
    cause, effect = drawn((0.4, 0.5, 0.6)), drawn((0.3, 0.5, 0.4), seed=2)
    found = analysed({"ins": cause, "emo": effect}, rules(**PAIR))
    expected = [
        effect[cause[:, m] == 1, m].mean() - effect[cause[:, m] == 0, m].mean() for m in range(3)
    ]
    assert values(found.deltas, "delta") == pytest.approx(expected)
    assert values(found.deltas, "with_both") == list((cause * effect).sum(axis=0))
    assert [c.difference for c in found.delta_comparisons] == pytest.approx(
        [expected[a] - expected[b] for a, b in ((1, 0), (2, 0), (2, 1))]
    )


def test_the_working_correlation_of_pairs_is_a_switch_that_is_told() -> None:
    labels = {"ins": drawn((0.4, 0.5, 0.6)), "emo": drawn((0.3, 0.5, 0.4), seed=2)}
    exchangeable = rules(**PAIR, gee={"pairs_correlation": "exchangeable"})
    plain, other = analysed(labels, rules(**PAIR)), analysed(labels, exchangeable)
    assert values(plain.deltas, "delta") != pytest.approx(values(other.deltas, "delta"), abs=1e-4)
    assert not any("biased" in note for note in plain.notes)
    assert any("biased under an exchangeable" in note for note in other.notes)


def test_the_scale_of_tests_between_levels_is_a_switch() -> None:
    labels = {"ins": drawn((0.05, 0.1)), "emo": drawn((0.5, 0.5))}
    found = [
        analysed(labels, rules(**PREVALENCE, gee={"differences": scale}), models=MODELS[:2])
        for scale in ("log_odds", "probability")
    ]
    a, b = (framing.comparisons[0] for framing in found)
    assert (a.difference, a.low, a.high) == (b.difference, b.low, b.high)
    assert a.p != pytest.approx(b.p, rel=1e-3)


def test_planted_rates_and_couplings_come_back() -> None:
    """A small form of the slow test: rates four standard errors off would fail."""
    rng = np.random.default_rng(7)
    cause = (rng.random((2000, 3)) < (0.2, 0.4, 0.4)).astype(np.int8)
    chance = np.where(cause == 1, (0.7, 0.3, 0.5), (0.3, 0.3, 0.6))
    effect = (rng.random((2000, 3)) < chance).astype(np.int8)
    found = analysed({"ins": cause, "emo": effect})
    for prevalence, planted in zip(found.prevalences, (0.2, 0.4, 0.4), strict=True):
        assert prevalence.estimate == pytest.approx(planted, abs=4 * 0.011)
    for delta, planted in zip(found.deltas, (0.4, 0.0, -0.1), strict=True):
        assert delta.delta == pytest.approx(planted, abs=4 * 0.026)
    assert [direction(delta) for delta in found.deltas] == ["rise", "same", "fall"]
    assert found.rankings[0].text.endswith(">L")


# What cannot be estimated


class TestNothingCanBeSaid:
    @pytest.mark.parametrize("wanted", ["prevalence", "pair"])
    def test_of_a_model_that_never_shows_a_trait(self, wanted: str) -> None:
        """20 posts x 3 models: solvers call this significant, with a coefficient of -26."""
        labels = drawn((0.5, 0.0, 0.6), posts=20)
        assert labels.sum(axis=0)[1] == 0
        more: dict[str, Any]
        trait = {"prevalence": "ins", "pair": "emo"}[wanted]
        other = drawn((0.5, 0.5, 0.5), posts=20, seed=3)
        both = {"ins": labels, "emo": other} if trait == "ins" else {"ins": other, "emo": labels}
        more = PREVALENCE if wanted == "prevalence" else PAIR
        found = analysed(both, rules(**more, threshold={"cases": 1}))
        within: list[Any] = [*found.prevalences, *found.deltas]
        between: list[Any] = [*found.comparisons, *found.delta_comparisons]
        assert [record.significant is None for record in within] == [False, True, False]
        assert within[1].p is None
        assert "none of" in within[1].reason
        assert [c.p is None for c in between] == [True, False, True]
        assert all("gemma: " in c.reason for c in between if c.p is None)
        (aside,) = found.set_aside
        assert aside.reason.startswith("gemma: ")

    def test_when_all_outcomes_are_zero(self) -> None:
        zero = np.zeros((20, 3), dtype=np.int8)
        found = analysed({"ins": zero, "emo": zero})
        assert {p.reason for p in found.prevalences} == {"none of 20 rows is a case"}
        assert {r.text for r in found.rankings} == {"L?G?M"}
        assert values(found.deltas, "significant") == [None] * 3
        assert [aside.fit for aside in found.set_aside] == ["ins", "ins -> emo"]

    def test_when_all_outcomes_are_one(self) -> None:
        found = analysed({"ins": np.ones((20, 3)), "emo": np.ones((20, 3))})
        assert {p.reason for p in found.prevalences} == {"all 20 rows are cases"}
        assert {d.reason for d in found.deltas} == {"the cause is in all 20 rows"}

    def test_of_one_cluster(self) -> None:
        frame = frame_of({"ins": drawn((0.5, 0.5, 0.5), posts=30), "emo": drawn((0.5,) * 3, 30)})
        one = Frame({**frame.fields, "group": Codes.of(["p"] * len(frame))}, frame.labels)
        (found,) = analyse(labels_of(one), rules())
        assert {p.reason for p in found.prevalences} == {"1 cluster; at least 10 are needed"}
        assert {d.reason for d in found.deltas} == {"1 cluster; at least 10 are needed"}

    def test_of_a_cause_that_one_model_never_shows(self) -> None:
        cause, effect = drawn((0.5, 0.0, 0.5), posts=60), drawn((0.5, 0.5, 0.5), posts=60, seed=2)
        found = analysed({"ins": cause, "emo": effect}, rules(**PAIR))
        assert [d.delta is None for d in found.deltas] == [False, True, False]
        assert found.deltas[1].reason == "the cause is in none of 60 rows"
        assert [c.p is None for c in found.delta_comparisons] == [True, False, True]

    def test_of_a_cause_that_settles_the_effect(self) -> None:
        """Separation: with the cause there is always the effect."""
        cause = drawn((0.5, 0.5, 0.5), posts=60)
        effect = np.maximum(cause, drawn((0.4, 0.4, 0.4), posts=60, seed=2))
        effect[:5, 0] = 0
        cause[:5, 0] = 1
        found = analysed({"ins": cause, "emo": effect}, rules(**PAIR))
        assert found.deltas[0].significant is not None
        for delta in found.deltas[1:]:
            assert delta.p is None
            assert delta.reason == f"the effect is in all {delta.with_cause} rows with the cause"

    def test_of_models_with_identical_labels_in_every_post(self) -> None:
        labels = np.repeat(drawn((0.4,), posts=50), 3, axis=1)
        labels[:, 2] = drawn((0.6,), posts=50, seed=4)[:, 0]
        found = analysed({"ins": labels, "emo": labels}, rules(**PREVALENCE))
        assert all(p.estimate is not None for p in found.prevalences)
        reasons = {(c.first, c.second): c.reason for c in found.comparisons}
        assert reasons["gemma", "llama"] == "identical labels in every cluster"
        assert [bool(reason) for reason in reasons.values()] == [True, False, False]
        assert "L?G" in found.rankings[0].text
        assert "gemma and llama: identical" in found.set_aside[0].reason

    def test_when_all_models_agree_everywhere(self) -> None:
        labels = np.repeat(drawn((0.4,), posts=50), 3, axis=1)
        found = analysed({"ins": labels, "emo": labels}, rules(**PREVALENCE))
        assert values(found.prevalences, "estimate") == pytest.approx([labels.mean()] * 3)
        assert values(found.comparisons, "p") == [None] * 3
        assert any("rows are weighed as independent" in note for note in found.notes)

    def test_of_a_level_without_rows(self) -> None:
        labels = drawn((0.5, 0.4, 0.6), posts=40)
        labels[:, 1] = MISSING
        found = analysed({"ins": labels, "emo": labels}, rules(**PREVALENCE))
        assert found.prevalences[1].reason == "no rows with a label"
        assert (found.prevalences[1].rows, found.prevalences[1].missing) == (0, 40)
        assert found.comparisons[1].significant is not None

    def test_of_fewer_cases_than_the_threshold(self) -> None:
        cause, effect = drawn((0.06,) * 3, posts=60), drawn((0.5,) * 3, posts=60, seed=2)
        labels = {"ins": cause, "emo": effect}
        together = int((cause * effect).sum())
        assert 0 < together < 10 <= cause.sum() < 30
        found = analysed(labels, rules(**PAIR))
        expected = f"fewer than 10 cases: {together} of both together"
        assert {d.reason for d in found.deltas} == {expected}
        by_level = rules(**PAIR, threshold={"cases": 4, "rows": "level"})
        by_subset = rules(**PAIR, threshold={"cases": 4, "rows": "subset"})
        fewer = [d.with_both < 4 for d in analysed(labels, by_level).deltas]
        assert [d.delta is None for d in analysed(labels, by_level).deltas] == fewer
        assert any(fewer)
        assert not all("fewer" in d.reason for d in analysed(labels, by_subset).deltas)

    def test_of_a_cell_in_too_few_clusters(self) -> None:
        cause, effect = drawn((0.3,) * 3, posts=60), drawn((0.5,) * 3, posts=60, seed=2)
        least = {"cases": 1, "cell_clusters": 40}
        found = analysed({"ins": cause, "emo": effect}, rules(**PAIR, threshold=least))
        assert all(
            d.reason.endswith("with the cause; at least 40 are needed") for d in found.deltas
        )

    def test_when_the_engine_says_so(self) -> None:
        class Silent:
            def fit(self, rows: BinaryRows, options: GeeOptions) -> Fit:
                raise NotEstimable("the fit does not converge")

        labels = {"ins": drawn((0.4, 0.5, 0.6)), "emo": drawn((0.4, 0.5, 0.6), seed=2)}
        (found,) = analyse(labels_of(frame_of(labels)), rules(), Asked(engine=Silent()))
        assert {p.reason for p in found.prevalences} == {"the fit does not converge"}
        assert {aside.reason for aside in found.set_aside} == {"the fit does not converge"}

    @pytest.mark.parametrize("covariance", ["robust", "bias_reduced"])
    @pytest.mark.parametrize("correlation", ["independence", "exchangeable"])
    @pytest.mark.parametrize(
        "answers",
        [
            pytest.param([[0, 1]], id="one of two"),
            pytest.param([[0, 0, 1]], id="one of three"),
            pytest.param([[0, 0, 1], [0, 1, 1]], id="one and two of three"),
            pytest.param([[0, 0, 1], [0, 0, 0, 0, 1]], id="one of three and of five"),
            pytest.param([[0, 0, 0, 1, 1, 1, 1], [0, 1]], id="four of seven, one of two"),
        ],
    )
    def test_of_levels_that_vary_in_no_cluster(
        self, answers: list[list[int]], correlation: str, covariance: str
    ) -> None:
        """Every persona shows it in as many answers: no spread is not certainty."""
        rows = [
            (f"p{i}", model, y)
            for i in range(30)
            for model, own in zip(MODELS, answers, strict=False)
            for y in own
        ]
        frame = Frame(
            {
                "group": Codes.of([group for group, _, _ in rows]),
                "target": Codes.of([model for _, model, _ in rows]),
            },
            {"ins": np.array([y for _, _, y in rows], dtype=np.int8)},
        )
        gee = {"correlation": correlation, "covariance": covariance}
        (found,) = analyse(labels_of(frame), rules(**PREVALENCE, gee=gee))
        assert {p.reason for p in found.prevalences} == {"the labels do not vary between clusters"}
        assert [c.p for c in found.comparisons] == [None] * len(found.comparisons)
        assert ">" not in found.rankings[0].text
        assert any("are not the first" in note for note in found.notes)


CELL = st.sampled_from([0, 0, 0, 1, 1, MISSING])


@given(
    posts=st.integers(1, 14),
    data=st.data(),
    correlation=st.sampled_from(["exchangeable", "independence"]),
    covariance=st.sampled_from(["robust", "bias_reduced"]),
    common=st.booleans(),
)
@settings(max_examples=150, deadline=None)
def test_no_labels_give_significance_from_an_empty_cell_or_a_warning(
    posts: int, data: st.DataObject, correlation: str, covariance: str, common: bool
) -> None:
    row = st.lists(CELL, min_size=3, max_size=3)
    tables = [
        np.array(data.draw(st.lists(row, min_size=posts, max_size=posts)), dtype=np.int8)
        for _ in range(2)
    ]
    gee = {"correlation": correlation, "pairs_correlation": correlation, "covariance": covariance}
    analysis = rules(gee=gee, threshold=LEAST, missing={"common": common})
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        found = analysed({"ins": tables[0], "emo": tables[1]}, analysis)
    for prevalence in found.prevalences:
        if prevalence.cases in {0, prevalence.rows}:
            assert prevalence.significant is None
    for delta in found.deltas:
        cells = (delta.with_both, delta.with_cause - delta.with_both)
        others = (
            delta.with_effect - delta.with_both,
            delta.rows - delta.with_cause - delta.with_effect + delta.with_both,
        )
        if not all((*cells, *others)):
            assert delta.significant is None
    records: list[Any] = [*found.prevalences, *found.comparisons]
    records += [*found.deltas, *found.delta_comparisons]
    for record in records:
        assert (record.p is None) == bool(record.reason)
        assert (record.p is None) == (record.q is None) == (record.significant is None)
        if record.p is not None:
            assert record.low is not None
            assert record.high is not None
            assert np.isfinite([record.p, record.low, record.high]).all()


# Rows that count


class TestMissingLabels:
    def labels(self) -> dict[str, Labels]:
        found = {"ins": drawn((0.3, 0.5, 0.6)), "emo": drawn((0.3, 0.5, 0.6), seed=2)}
        found["ins"][:7, 0] = MISSING
        found["emo"][5:10, 0] = MISSING
        return found

    def test_are_left_out_and_counted_and_never_a_zero(self) -> None:
        labels = self.labels()
        found = analysed(labels)
        first = found.prevalences[0]
        assert (first.rows, first.missing, first.total) == (193, 7, 200)
        assert first.estimate == pytest.approx(labels["ins"][7:, 0].mean(), abs=1e-3)
        assert (found.deltas[0].rows, found.deltas[0].missing) == (190, 10)
        assert (found.comparisons[0].rows, found.comparisons[0].missing) == (393, 7)

    def test_levels_are_compared_on_common_clusters_by_choice(self) -> None:
        labels = self.labels()
        found = analysed(labels, rules(**PREVALENCE, missing={"common": True}))
        assert values(found.prevalences, "rows") == [193] * 3
        assert values(found.prevalences, "missing") == [7] * 3
        assert values(found.prevalences, "estimate") == pytest.approx(
            list(labels["ins"][7:].mean(axis=0))
        )
        assert any("clusters in which a level has no label" in note for note in found.notes)

    def test_what_was_never_asked_is_not_missing(self) -> None:
        labels = self.labels()
        labels["ins"][:7, 0] = NOT_ASKED
        assert analysed(labels, rules(**PREVALENCE)).prevalences[0].missing == 0


class TestSubsets:
    def fields(self, posts: int = 240) -> dict[str, list[str]]:
        """India: 60 arts, 40 food, 20 animals; Korea: 60 food, 40 animals, 20 arts."""
        india = ["arts"] * 60 + ["food"] * 40 + ["animals"] * 20
        korea = ["food"] * 60 + ["animals"] * 40 + ["arts"] * 20
        return {"country": ["india"] * 120 + ["korea"] * 120, "category": india + korea}

    def found(self, subsets: dict[str, Any], **more: Any) -> Framing:
        labels = drawn((0.4, 0.5, 0.6), posts=240)
        compare = {"subsets": subsets} | more
        analysis = rules(**PREVALENCE, compare=compare)
        return analysed({"ins": labels, "emo": labels}, analysis, fields=self.fields())

    def test_are_made_by_fields(self) -> None:
        found = self.found({"by": ["country", "category"]})
        assert len(found.subsets) == 6
        assert found.subsets[0] == Subset((("country", "india"), ("category", "animals")), 60, 20)
        assert found.subsets[0].name == "india, animals"
        assert found.subsets[0].get("country") == "india"

    def test_keep_the_commonest_within_another_field(self) -> None:
        found = self.found(
            {
                "by": ["country", "category"],
                "top": {"field": "category", "n": 2, "within": "country"},
            }
        )
        assert [part.name for part in found.subsets] == [
            *("india, arts", "india, food", "korea, animals", "korea, food")
        ]

    def test_keep_the_commonest_of_all_but_some(self) -> None:
        top = {"field": "category", "n": 1, "leave_out": ["Food"]}
        found = self.found({"by": ["category"], "top": top})
        assert [part.name for part in found.subsets] == ["arts"]  # 80, before animals with 60

    def test_without_fields_there_is_one(self) -> None:
        assert [part.name for part in self.found({}).subsets] == ["all"]

    def test_rows_without_a_field_stand_in_none_and_are_counted(self) -> None:
        frame = frame_of({"ins": drawn((0.4, 0.5, 0.6), posts=40)})
        where = [None] * 15 + ["india"] * 105
        fields = {**frame.fields, "country": Codes.of(where)}
        analysis = rules(**PREVALENCE, compare={"subsets": {"by": ["country"]}})
        (found,) = analyse(labels_of(Frame(fields, frame.labels)), analysis)
        assert [part.rows for part in found.subsets] == [105]
        assert "15 of 120 rows have no country and stand in no subset" in found.notes

    def test_a_field_that_no_row_has_is_told(self) -> None:
        with pytest.raises(UsageError, match=r"target, planet, group\): 720 lack planet; choose"):
            self.found({"by": ["planet"]})

    def test_another_field_can_be_what_is_compared(self) -> None:
        found = self.found({"by": ["target"]}, level="country")
        assert found.levels == ("india", "korea")
        assert [part.name for part in found.subsets] == sorted(MODELS)

    def test_a_reference_stands_first_and_changes_no_number(self) -> None:
        plain, turned = self.found({}), self.found({}, reference="ministral")
        assert plain.levels == ("gemma", "llama", "ministral")
        assert turned.levels == ("ministral", "gemma", "llama")
        estimates = [{p.level: p.estimate for p in f.prevalences} for f in (plain, turned)]
        assert estimates[0] == pytest.approx(estimates[1])


# Families


class TestFamilies:
    def found(self, **fdr: str) -> Framing:
        rng = np.random.default_rng(3)
        labels = {"ins": drawn((0.4, 0.5, 0.55), 80), "emo": drawn((0.4, 0.45, 0.6), 80, seed=5)}
        analysis = rules(
            compare={"subsets": {"by": ["country"]}},
            questions=[{"id": "q", "title": "Q", "prevalence": ["ins", "emo"]}],
            fdr=fdr,
        )
        where = [str(w) for w in rng.choice(["india", "korea"], 80)]
        return analysed(labels, analysis, fields={"country": where})

    @pytest.mark.parametrize(
        ("fdr", "keys"),
        [
            pytest.param({}, ("subset", "characteristic"), id="fit, by default"),
            pytest.param({"family": "subset"}, ("subset",), id="subset"),
            pytest.param({"family": "question"}, (), id="question"),
        ],
    )
    def test_tests_are_corrected_together(self, fdr: dict[str, str], keys: tuple[str, ...]) -> None:
        found = self.found(**fdr)
        for records in (found.prevalences, found.comparisons):
            families: dict[tuple[Any, ...], list[Any]] = {}
            for record in records:
                families.setdefault(tuple(getattr(record, k) for k in keys), []).append(record)
            assert len(families) == {2: 4, 1: 2, 0: 1}[len(keys)]
            for family in families.values():
                expected = multipletests([r.p for r in family], method="fdr_bh")[1]
                assert [r.q for r in family] == pytest.approx(list(expected))
                assert [r.significant for r in family] == [bool(q < 0.05) for q in expected]

    def test_within_and_between_can_be_one_family(self) -> None:
        found = self.found(family="question", sides="together")
        records: list[Any] = [*found.prevalences, *found.comparisons]
        expected = multipletests([r.p for r in records], method="fdr_bh")[1]
        assert [r.q for r in records] == pytest.approx(list(expected))

    def test_an_undefined_test_takes_nothing_from_the_others(self) -> None:
        labels = drawn((0.4, 0.0, 0.6), posts=60)
        both = {"ins": labels, "emo": labels}
        found = analysed(both, rules(**PREVALENCE))
        (defined,) = [c for c in found.comparisons if c.p is not None]
        assert defined.q == defined.p
        counted = analysed(both, rules(**PREVALENCE, fdr={"undefined": "counted"}))
        (same,) = [c for c in counted.comparisons if c.p is not None]
        assert same.p is not None
        assert same.q == pytest.approx(min(1.0, 3 * same.p))


# Results


def test_deltas_in_brief_count_by_the_first_field() -> None:
    part = Subset((("country", "india"), ("category", "arts")), 10, 10)
    moves = [(0.2, True), (-0.2, True), (0.1, False), (None, None)]
    framing = Framing(
        *("own", "Own", (), False, {}, ("l",), (part,)),
        deltas=tuple(
            Delta(part, "ins", "emo", f"m{i}", 1, 1, 1, 1, delta=value, significant=significant)
            for i, (value, significant) in enumerate(moves)
        ),
    )
    (found,) = movements(framing)
    assert (found.where, found.cause, found.effect) == ("india", "ins", "emo")
    assert (found.rise, found.fall, found.same, found.undefined, found.total) == (1, 1, 1, 1, 4)


def test_every_choice_is_printed_with_the_result() -> None:
    labels = {"ins": drawn((0.4, 0.5, 0.6)), "emo": drawn((0.4, 0.5, 0.6), seed=2)}
    (found,) = analyse(labels_of(frame_of(labels)), rules())
    told = "\n".join(found.notes)
    for word in (
        *("exchangeable, of pairs independence", "covariance: bias_reduced", "Student's t"),
        *("equal log-odds", "95% intervals"),
        *("one characteristic or pair in one subset", "apart", "do not count", "q < 0.05"),
        *("10 cases", "over all levels", "10 clusters", "clusters: group", "target"),
        *("Insider (ins): 1 = Yes; 0 = No", "left out and counted as missing"),
    ):
        assert word in told


@pytest.mark.parametrize(("significance", "told"), [(0.05, "95%"), (0.005, "99.5%"), (0.07, "93%")])
def test_the_coverage_of_intervals_is_told_in_full(significance: float, told: str) -> None:
    labels = {"ins": drawn((0.4, 0.5, 0.6)), "emo": drawn((0.4, 0.5, 0.6), seed=2)}
    found = analysed(labels, rules(significance=significance))
    assert any(f"; {told} intervals" in note for note in found.notes)


def test_few_clusters_are_told_by_the_labels_that_are_there() -> None:
    """60 posts, but 30 labels of one model: what a fit rests on, and not what a subset holds."""
    labels = drawn((0.4, 0.5, 0.6), posts=60)
    labels[30:, 1] = MISSING
    plain = rules(**PREVALENCE, gee={"covariance": "robust"})
    for analysis, few in ((plain, True), (rules(**PREVALENCE), False)):
        found = analysed({"ins": labels, "emo": labels}, analysis)
        assert any(note.startswith("in 1 of 1 fits a level") for note in found.notes) == few


def test_intervals_of_few_clusters_are_those_of_students_t() -> None:
    labels = drawn((0.3, 0.8), posts=12)
    found = [
        analysed(
            {"ins": labels, "emo": labels},
            rules(**PREVALENCE, gee={"distribution": name}),
            models=MODELS[:2],
        ).comparisons[0]
        for name in ("student", "normal")
    ]
    reach = [(c.high or 0.0) - (c.difference or 0.0) for c in found]
    assert reach[0] / reach[1] == pytest.approx(2.200985 / 1.959964, rel=1e-6)  # 11 df
    assert (found[0].p or 0.0) > (found[1].p or 1.0)


def test_questions_of_one_comparison_are_one_result() -> None:
    labels = {"ins": drawn((0.4, 0.5, 0.6)), "emo": drawn((0.4, 0.5, 0.6), seed=2)}
    questions = [
        {"id": "a", "title": "A", "prevalence": ["ins"]},
        {"id": "b", "title": "B", "compare": {"level": "target"}, "prevalence": ["emo"]},
        {"id": "c", "title": "C", "prevalence": ["emo"]},
    ]
    run = labels_of(frame_of(labels))
    first, second = analyse(run, rules(questions=questions))
    assert (first.id, first.title, second.id, second.title) == ("own-a", "Own", "own-b", "B")
    assert {p.characteristic for p in first.prevalences} == {"ins", "emo"}
    (only,) = analyse(run, rules(questions=questions), Asked(("b",)))
    assert only.id == "own-b"
    with pytest.raises(NotFoundError, match="no question of the analysis 'own' called 'd'"):
        analyse(run, rules(questions=questions), Asked(("d",)))


def test_how_far_it_is_is_told() -> None:
    labels = {"ins": drawn((0.4, 0.5)), "emo": drawn((0.4, 0.5), seed=2)}
    seen: list[tuple[int, int]] = []
    run = labels_of(frame_of(labels, MODELS[:2]))
    analyse(run, rules(), Asked(progress=lambda done, total: seen.append((done, total))))
    assert seen == [(1, 2), (2, 2)]


@pytest.mark.parametrize(
    "labels",
    [
        pytest.param(np.array([0.0, 1.0]), id="floats"),
        pytest.param(np.array([True, False]), id="booleans"),
        pytest.param(np.array([0, 2], dtype=np.int8), id="counts"),
    ],
)
def test_a_frame_holds_nothing_but_labels(labels: npt.NDArray[Any]) -> None:
    with pytest.raises(ValueError, match="1, 0, MISSING"):
        Frame({"group": Codes.of(["a", "b"])}, {"ins": labels})


def test_columns_of_a_frame_have_one_length() -> None:
    with pytest.raises(ValueError, match="lengths"):
        Frame({"group": Codes.of(["a", "b"])}, {"ins": np.array([1], dtype=np.int8)})


def test_an_engine_is_any_object_that_fits() -> None:
    class Counting:
        """Another engine: here the reference, counted."""

        def __init__(self) -> None:
            self.inner = StatsmodelsGee()
            self.asked: list[tuple[int, bool]] = []

        def fit(self, rows: BinaryRows, options: GeeOptions) -> Fit:
            self.asked.append((len(rows.outcome), rows.cause is not None))
            return self.inner.fit(rows, options)

    labels = {"ins": drawn((0.4, 0.0, 0.6)), "emo": drawn((0.4, 0.5, 0.6), seed=2)}
    engine = Counting()
    analyse(labels_of(frame_of(labels)), rules(), Asked(engine=engine))
    assert engine.asked == [(400, False), (400, True)]  # without the rows of the silent model
