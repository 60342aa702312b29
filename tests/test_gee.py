"""Fits, tests and corrections against statsmodels and closed forms; what has no answer says so."""

from __future__ import annotations

import importlib
import math
import sys
from typing import Any

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from habitus.errors import UsageError
from habitus.statistics import (
    BinaryRows,
    Correlation,
    Covariance,
    Fit,
    GeeOptions,
    NotEstimable,
    StatsmodelsGee,
    benjamini_hochberg,
    combination,
    log_odds_test,
    probability,
    student_two_sided,
)

multipletests: Any = importlib.import_module("statsmodels.stats.multitest").multipletests
sm: Any = importlib.import_module("statsmodels.api")

INDEPENDENT = GeeOptions("independence")


def drawn(posts: int = 120, models: int = 3, seed: int = 1) -> BinaryRows:
    """Labels that posts have in common, with a cause."""
    rng = np.random.default_rng(seed)
    shared = rng.normal(size=(posts, 1))
    level = np.tile(np.arange(models), posts)
    cause = (rng.normal(size=(posts, models)) > 0.3 * np.arange(models)).astype(np.int8)
    outcome = shared + rng.normal(size=(posts, models)) + 0.4 * cause > 0.2 * np.arange(models)
    group = np.repeat(np.arange(posts), models)
    return BinaryRows(outcome.astype(np.int8).ravel(), level, group, cause.ravel())


def without_cause(rows: BinaryRows) -> BinaryRows:
    return BinaryRows(rows.outcome, rows.level, rows.group)


def some(rows: BinaryRows, kept: np.ndarray[Any, Any]) -> BinaryRows:
    cause = None if rows.cause is None else rows.cause[kept]
    return BinaryRows(rows.outcome[kept], rows.level[kept], rows.group[kept], cause)


class TestAFit:
    @pytest.mark.parametrize("correlation", ["exchangeable", "independence"])
    @pytest.mark.parametrize("covariance", ["robust", "bias_reduced"])
    @pytest.mark.parametrize("paired", [False, True], ids=["prevalence", "pair"])
    def test_equals_statsmodels_with_a_reference_level(
        self, correlation: Correlation, covariance: Covariance, paired: bool
    ) -> None:
        """Cells of their own, or an intercept and contrasts: the same model."""
        rows = drawn()
        rows = rows if paired else without_cause(rows)
        found = StatsmodelsGee().fit(rows, GeeOptions(correlation, covariance))
        cells = 6 if paired else 3
        design = np.eye(cells)[rows.cells]
        design[:, 0] = 1  # cell 0 is the reference
        structure = {
            "exchangeable": sm.cov_struct.Exchangeable,
            "independence": sm.cov_struct.Independence,
        }[correlation]()
        family = sm.families.Binomial()
        model = sm.GEE(rows.outcome, design, rows.group, family=family, cov_struct=structure)
        expected = model.fit(cov_type=covariance, ctol=1e-10)
        turn = np.eye(cells)
        turn[:, 0] = 1
        assert found.coefficients == pytest.approx(turn @ expected.params, abs=1e-7)
        matrix = turn @ expected.cov_params() @ turn.T
        assert found.covariance == pytest.approx(matrix, rel=1e-5, abs=1e-9)
        if correlation == "exchangeable":
            assert found.correlation == pytest.approx(structure.dep_params, abs=1e-7)

    def test_of_complete_clusters_gives_raw_proportions(self) -> None:
        """The model is saturated, so the working correlation changes neither them nor errors."""
        rows = without_cause(drawn())
        fits = [StatsmodelsGee().fit(rows, options) for options in (GeeOptions(), INDEPENDENT)]
        for level in range(3):
            share = rows.outcome[rows.level == level].mean()
            for fit in fits:
                estimate = probability(fit, level)
                assert estimate is not None
                assert estimate.value == pytest.approx(share, abs=1e-9)
        assert fits[0].covariance == pytest.approx(fits[1].covariance, rel=1e-6)
        assert fits[0].correlation != fits[1].correlation

    def test_of_lone_rows_has_the_error_of_a_proportion(self) -> None:
        outcome = np.array([1] * 12 + [0] * 28)
        fit = StatsmodelsGee().fit(BinaryRows(outcome, outcome * 0, np.arange(40)), GeeOptions())
        share, error = 0.3, math.sqrt(0.3 * 0.7 / 40)
        assert fit.correlation is None
        assert fit.fallback  # no two rows share a cluster
        assert fit.covariance[0, 0] == pytest.approx((error / (share * (1 - share))) ** 2, rel=1e-6)

    def test_does_not_depend_on_the_order_of_rows(self) -> None:
        rows = drawn()
        mixed = some(rows, np.random.default_rng(5).permutation(len(rows.outcome)))
        a, b = (StatsmodelsGee().fit(r, GeeOptions()) for r in (rows, mixed))
        assert a.coefficients == pytest.approx(b.coefficients, abs=1e-9)
        assert a.covariance == pytest.approx(b.covariance, rel=1e-6)

    def test_takes_missing_rows_and_levels_without_any(self) -> None:
        rows = drawn()
        kept = (rows.level != 1) & (np.random.default_rng(2).random(len(rows.level)) < 0.8)
        fit = StatsmodelsGee().fit(some(rows, kept), GeeOptions())
        assert sorted(fit.place) == [0, 1, 4, 5]

    def test_of_labels_that_agree_everywhere_falls_back(self) -> None:
        """A correlation of one cannot be inverted; the sandwich needs none."""
        outcome = np.repeat(np.arange(60) % 3 == 0, 3).astype(int)
        rows = BinaryRows(outcome, np.tile(np.arange(3), 60), np.repeat(np.arange(60), 3))
        fit = StatsmodelsGee().fit(rows, GeeOptions())
        assert (fit.correlation, fit.fallback) == (None, True)
        assert combination(fit, {0: 1, 1: -1}) is None
        assert log_odds_test(fit, {0: 1, 1: -1}) is None
        one = probability(fit, 0)
        assert one is not None
        assert one.value == pytest.approx(1 / 3)

    def test_of_a_cell_without_cases_is_refused(self) -> None:
        rows = BinaryRows(np.array([0, 1, 0, 0]), np.array([0, 0, 1, 1]), np.arange(4))
        with pytest.raises(NotEstimable, match="the same"):
            StatsmodelsGee().fit(rows, GeeOptions())

    def test_of_a_correlation_that_never_settles_falls_back(self) -> None:
        """In place of whatever the last round held."""
        few = StatsmodelsGee(rounds=2).fit(drawn(), GeeOptions())
        plain = StatsmodelsGee().fit(drawn(), INDEPENDENT)
        assert (few.correlation, few.fallback, plain.fallback) == (None, True, False)
        assert few.coefficients == pytest.approx(plain.coefficients, abs=1e-12)
        assert few.covariance == pytest.approx(plain.covariance, rel=1e-12)

    def test_of_a_solver_that_runs_away_falls_back(self) -> None:
        """Rounds that end, as converged, at a log-odds of -1e11 for a level with 3 of 9 cases."""
        group = np.repeat(np.arange(10), [2, 5, 2, 1, 2, 2, 3, 3, 1, 3])
        level = np.array([int(x) for x in "110111000110101010111101"])
        outcome = np.array([int(x) for x in "010100110010001000000010"])
        fit = StatsmodelsGee().fit(BinaryRows(outcome, level, group), GeeOptions())
        assert (fit.correlation, fit.fallback) == (None, True)
        shares = [probability(fit, 0), probability(fit, 1)]
        assert [round(s.value, 6) for s in shares if s] == [0.333333, 0.266667]
        p = log_odds_test(fit, {0: 1, 1: -1})
        assert p is not None
        assert p > 0.6

    def test_without_the_package_says_what_to_install(
        self, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setitem(sys.modules, "statsmodels.genmod.api", None)
        with pytest.raises(UsageError, match=r'pip install "habitus\[analysis\]"'):
            StatsmodelsGee()


@pytest.mark.parametrize(
    "outcome",
    [
        pytest.param(np.array(["Yes", "No"] * 20), id="words"),
        pytest.param(np.array([0, 2] * 20), id="counts"),
        pytest.param(np.array([0.0, 0.5] * 20), id="shares"),
        pytest.param(np.array([0.0, np.nan] * 20), id="NaN"),
        pytest.param(np.array([0, -1] * 20), id="missing is no zero"),
        pytest.param(np.array([True, None] * 20), id="objects"),
    ],
)
def test_an_outcome_other_than_0_and_1_is_refused(outcome: np.ndarray[Any, Any]) -> None:
    zeros = np.zeros(40, dtype=int)
    with pytest.raises(ValueError, match="0 or 1"):
        BinaryRows(outcome, zeros, np.arange(40))
    with pytest.raises(ValueError, match="0 or 1"):
        BinaryRows(zeros, zeros, np.arange(40), outcome)


def test_a_true_outcome_is_the_case_and_not_its_opposite() -> None:
    """A formula with a column of booleans would model the probability of False."""
    outcome = np.array([True] * 4 + [False] * 36)
    fit = StatsmodelsGee().fit(BinaryRows(outcome, np.zeros(40, int), np.arange(40)), GeeOptions())
    found = probability(fit, 0)
    assert found is not None
    assert found.value == pytest.approx(0.1)


def test_columns_of_different_lengths_are_refused() -> None:
    with pytest.raises(ValueError, match="lengths"):
        BinaryRows(np.array([0, 1]), np.array([0]), np.array([0, 1]))


MANY = np.array([500, 500])


class TestWald:
    FIT = Fit({0: 0, 3: 1}, np.array([0.0, 1.0]), np.array([[0.04, 0.01], [0.01, 0.09]]), MANY)

    def test_a_probability_has_its_interval_on_the_log_odds_scale(self) -> None:
        found = probability(self.FIT, 3, 0.95)
        assert found is not None
        ends = [1 / (1 + math.exp(-(1 + s * 1.959964 * 0.3))) for s in (-1, 1)]
        assert (found.low, found.high) == pytest.approx(ends, abs=1e-6)
        assert found.value == pytest.approx(1 / (1 + math.exp(-1)))
        assert found.p == pytest.approx(math.erfc(1 / 0.3 / math.sqrt(2)))

    def test_a_difference_has_its_error_by_the_delta_method(self) -> None:
        found = combination(self.FIT, {3: 1, 0: -1}, 0.9)
        assert found is not None
        p = 1 / (1 + math.exp(-1))
        slopes = np.array([-0.25, p * (1 - p)])
        error = math.sqrt(slopes @ self.FIT.covariance @ slopes)
        assert found.value == pytest.approx(p - 0.5)
        assert found.high - found.value == pytest.approx(1.644854 * error, rel=1e-6)
        assert found.p == pytest.approx(math.erfc((p - 0.5) / error / math.sqrt(2)))

    def test_a_contrast_of_log_odds(self) -> None:
        z = 1 / math.sqrt(0.04 + 0.09 - 0.02)
        assert log_odds_test(self.FIT, {3: 1, 0: -1}) == pytest.approx(math.erfc(z / math.sqrt(2)))

    @pytest.mark.parametrize(
        "covariance",
        [
            pytest.param([[0.0, 0.0], [0.0, 0.0]], id="zero"),
            pytest.param([[-0.1, 0.0], [0.0, -0.1]], id="negative"),
            pytest.param([[math.nan, 0.0], [0.0, math.nan]], id="NaN"),
            pytest.param([[math.inf, 0.0], [0.0, math.inf]], id="infinite"),
        ],
    )
    def test_an_error_that_is_none_gives_no_estimate(self, covariance: list[list[float]]) -> None:
        fit = Fit({0: 0, 1: 1}, np.array([-26.6, 1.0]), np.array(covariance), MANY)
        assert probability(fit, 0) is None
        assert combination(fit, {0: 1, 1: -1}) is None
        assert log_odds_test(fit, {0: 1, 1: -1}) is None

    def test_an_error_beside_which_rows_are_nothing_gives_no_estimate(self) -> None:
        """Alone it is no smaller than itself; rows that were independent would have 1e-2."""
        fit = Fit({0: 0, 1: 1}, np.array([-0.7, 0.7]), np.eye(2) * 1e-20, MANY)
        assert probability(fit, 0) is None
        assert combination(fit, {0: 1, 1: -1}) is None
        assert log_odds_test(fit, {0: 1, 1: -1}) is None

    def test_few_clusters_take_the_place_of_the_normal_by_students_t(self) -> None:
        one, other = probability(self.FIT, 3), probability(self.FIT, 3, df=9)
        assert one is not None
        assert other is not None
        assert other.high == pytest.approx(1 / (1 + math.exp(-(1 + 2.262157 * 0.3))), abs=1e-6)
        assert other.p == pytest.approx(student_two_sided(1 / 0.3, 9))
        gap = combination(self.FIT, {3: 1, 0: -1}, df=9)
        plain = combination(self.FIT, {3: 1, 0: -1})
        assert gap is not None
        assert plain is not None
        stretch = (gap.high - gap.value) / (plain.high - plain.value)
        assert stretch == pytest.approx(2.262157 / 1.959964, rel=1e-6)
        tested = log_odds_test(self.FIT, {3: 1, 0: -1}, 9)
        assert tested == pytest.approx(student_two_sided(1 / math.sqrt(0.11), 9))

    def test_an_interval_stays_where_the_sum_can_be(self) -> None:
        fit = Fit({0: 0, 1: 1}, np.array([0.1, -0.1]), np.eye(2) * 40, MANY)
        found = combination(fit, {0: 1, 1: -1})
        assert found is not None
        assert (found.low, found.high) == (-1, 1)


P_VALUES = st.lists(st.none() | st.floats(0, 1), max_size=12)


class TestBenjaminiHochberg:
    @given(P_VALUES)
    @settings(max_examples=200, deadline=None)
    def test_equals_statsmodels_on_what_is_defined(self, values: list[float | None]) -> None:
        defined = [p for p in values if p is not None]
        expected = multipletests(defined, method="fdr_bh")[1] if defined else []
        found = benjamini_hochberg(values)
        assert [q for q in found if q is not None] == pytest.approx(list(expected))
        assert [q is None for q in found] == [p is None for p in values]

    def test_one_nan_leaves_the_others_alone(self) -> None:
        assert benjamini_hochberg([0.01, math.nan, 0.04]) == [0.02, None, 0.04]

    def test_undefined_tests_count_by_choice(self) -> None:
        found = benjamini_hochberg([0.01, None, 0.04], count_undefined=True)
        assert found == pytest.approx([0.03, None, 0.06])

    @given(P_VALUES)
    @example([0.05] * 43)  # .05 * 43 / 43 is less than .05
    @settings(max_examples=200, deadline=None)
    def test_a_corrected_value_is_never_below_its_own(self, values: list[float | None]) -> None:
        for p, q in zip(values, benjamini_hochberg(values), strict=True):
            assert p is None or q is None or p <= q <= 1

    def test_an_empty_family_is_empty(self) -> None:
        assert benjamini_hochberg([]) == []
        assert benjamini_hochberg([None]) == [None]

    @pytest.mark.parametrize("wrong", [-0.1, 1.1, math.inf])
    def test_what_is_no_p_value_is_refused(self, wrong: float) -> None:
        with pytest.raises(ValueError, match="between 0 and 1"):
            benjamini_hochberg([0.1, wrong])
