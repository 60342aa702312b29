"""Probabilities of binary outcomes whose rows stand in clusters: generalized estimating equations.

    rows = BinaryRows(outcome, level, group)              # arrays of codes, a row for each answer
    fit = StatsmodelsGee().fit(rows, GeeOptions())        # a log-odds for each level
    fit = StatsmodelsGee().fit(BinaryRows(outcome, level, group, cause), GeeOptions())

The mean model is saturated: every level (or every level with and without the cause) has a log-odds
of its own, so that no choice of a reference level changes a number. Standard errors are those of
the sandwich (Liang and Zeger 1986, Biometrika 73), or with the correction of Mancl and DeRouen
(2001, Biometrics 57) for few clusters.

An engine is any object with the method of :class:`GeeEngine`. The one here hands over to
statsmodels; another may use that clusters have few distinct patterns. It is given codes and counts
only: what makes a fit sensible (cases in every cell, enough clusters) is checked by who asks.
"""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from typing import Any, Literal, Protocol

import numpy as np
import numpy.typing as npt

from habitus.errors import UsageError
from habitus.statistics.resampling import FloatArray, IntArray

Correlation = Literal["exchangeable", "independence"]
Covariance = Literal["robust", "bias_reduced"]
_CLOSE = 1e-9  # norm of the score at the solution
_FAR = 30.0  # a log-odds beyond which a probability is 0 or 1 but for rounding
_EDGE = 1e-8  # a correlation nearer to what it can be at most cannot be inverted


class NotEstimable(Exception):  # noqa: N818  (a finding about the data, and no fault)
    """A fit gives nothing that could be printed; the message says why, in plain words."""


@dataclass(frozen=True, slots=True)
class GeeOptions:
    """The two choices that a fit leaves open."""

    correlation: Correlation = "exchangeable"
    covariance: Covariance = "robust"


@dataclass(frozen=True, slots=True)
class BinaryRows:
    """Rows of a fit, all arrays of one length.

    ``outcome`` and ``cause`` are 0 or 1 (numbers or booleans, never words), ``level`` and ``group``
    codes from 0. Without ``cause`` there is one cell for each level.
    """

    outcome: npt.NDArray[Any]
    level: npt.NDArray[Any]
    group: npt.NDArray[Any]
    cause: npt.NDArray[Any] | None = None

    def __post_init__(self) -> None:
        given = [self.outcome, self.level, self.group]
        given += [] if self.cause is None else [self.cause]
        if len({len(column) for column in given}) > 1:
            raise ValueError("the columns of a fit have different lengths")
        for name, column in (("outcome", self.outcome), ("cause", self.cause)):
            if column is not None and not _is_binary(column):
                raise ValueError(f"the {name} of a fit is 0 or 1, coded as a number")

    @property
    def cells(self) -> IntArray:
        """The cell of each row: its level, or twice its level and one more with the cause."""
        level = self.level.astype(np.int64)
        return level if self.cause is None else 2 * level + self.cause.astype(np.int64)


@dataclass(frozen=True, slots=True)
class Fit:
    """Log-odds of the cells that have rows, and their covariance.

    ``coefficients[place[c]]`` belongs to cell ``c`` of :attr:`BinaryRows.cells`, and ``rows`` counts
    the rows of each cell in the same order: what a variance is zero beside. ``correlation`` is
    the estimated working correlation; None where rows were taken as independent, which
    ``fallback`` says was not what had been asked for.
    """

    place: dict[int, int]
    coefficients: FloatArray
    covariance: FloatArray
    rows: IntArray
    correlation: float | None = None
    fallback: bool = False


class GeeEngine(Protocol):
    """What fits."""

    def fit(self, rows: BinaryRows, options: GeeOptions) -> Fit:
        """Fit the saturated model.

        Raises:
            NotEstimable: with the reason.
        """


class StatsmodelsGee:
    """The reference: ``statsmodels.genmod.GEE`` on indicators of cells.

    Where an exchangeable correlation has no estimate (no two rows share a cluster) or one that no
    correlation can have (labels that agree almost everywhere), or where the solver never settles or
    runs away to probabilities of 0 and 1, rows are weighed as independent ones; the sandwich holds
    all the same.

    Args:
        rounds: how often the solver may go round before a fit counts as not converging.

    Raises:
        UsageError: statsmodels is not installed.
    """

    def __init__(self, rounds: int = 200) -> None:
        self._gee = _statsmodels()
        self._rounds = rounds

    def fit(self, rows: BinaryRows, options: GeeOptions) -> Fit:
        """See :class:`GeeEngine`."""
        order = np.argsort(rows.group, kind="stable")
        cells, inverse = np.unique(rows.cells[order], return_inverse=True)
        outcome = rows.outcome[order].astype(np.float64)
        counts = np.bincount(inverse)
        shares = np.bincount(inverse, outcome) / counts
        if ((shares <= 0) | (shares >= 1)).any():
            raise NotEstimable("all outcomes of a cell are the same")
        problem = _Problem(outcome, inverse, rows.group[order], np.log(shares / (1 - shares)))
        place = {int(cell): i for i, cell in enumerate(cells)}
        wanted = options.correlation == "exchangeable"
        if wanted and problem.has_pairs:
            found = self._solve(problem, self._gee.cov_struct.Exchangeable(), options.covariance)
            if found is not None:
                return Fit(place, *found[:2], counts, found[2])
        found = self._solve(problem, self._gee.cov_struct.Independence(), options.covariance)
        if found is None:
            raise NotEstimable("the fit gives no finite numbers")
        return Fit(place, *found[:2], counts, None, fallback=wanted)

    def _solve(
        self, problem: _Problem, structure: Any, covariance: Covariance
    ) -> tuple[FloatArray, FloatArray, float] | None:
        """Coefficients, covariance and correlation; None where the structure has no estimate."""
        with warnings.catch_warnings(), np.errstate(all="ignore"):
            warnings.simplefilter("ignore")  # what they tell of is looked at below
            model = self._gee.GEE(
                problem.outcome,
                np.eye(len(problem.start))[problem.cells],
                groups=problem.groups,
                family=self._gee.families.Binomial(),
                cov_struct=structure,
            )
            try:
                found = model.fit(
                    start_params=problem.start,
                    maxiter=self._rounds,
                    ctol=_CLOSE,
                    cov_type=covariance,
                )
            except (ArithmeticError, ValueError, np.linalg.LinAlgError):
                return None
        correlation = float(structure.dep_params or 0.0)
        if found is None or not found.converged:
            return None
        if not problem.lowest + _EDGE < correlation < 1 - _EDGE:
            return None
        values = np.asarray(found.params, dtype=np.float64)
        matrix = np.asarray(found.cov_params(), dtype=np.float64)
        if not (np.isfinite(values).all() and np.isfinite(matrix).all()):
            return None
        # Every cell has rows of both kinds: a probability of 0 or 1 is one that ran away.
        return None if (np.abs(values) > _FAR).any() else (values, matrix, correlation)


@dataclass(frozen=True, slots=True)
class _Problem:
    """Rows by cluster, the place of each among the coefficients, and where to start."""

    outcome: FloatArray
    cells: npt.NDArray[Any]
    groups: npt.NDArray[Any]
    start: FloatArray

    @property
    def has_pairs(self) -> bool:
        """Whether enough rows share a cluster for a correlation to be estimated."""
        sizes = np.unique(self.groups, return_counts=True)[1].astype(np.float64)
        return float((sizes * (sizes - 1) / 2).sum()) > len(self.start)

    @property
    def lowest(self) -> float:
        """The least correlation that all rows of the largest cluster can have with each other."""
        largest = int(np.unique(self.groups, return_counts=True)[1].max())
        return -1 / (largest - 1) if largest > 1 else -1.0


def _is_binary(values: npt.NDArray[Any]) -> bool:
    return values.dtype.kind in "biuf" and bool(np.isin(values, (0, 1)).all())


def _statsmodels() -> Any:
    try:
        import statsmodels.genmod.api as genmod  # noqa: PLC0415  (an extra, and heavy)
    except ImportError:
        raise UsageError(
            'the analysis of labels needs statsmodels: pip install "habitus[analysis]"'
        ) from None
    return genmod
