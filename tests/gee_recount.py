"""Estimating equations for binary rows in clusters, solved over patterns; knows nothing of the engine.

Clusters that look alike are one pattern with a count. One coefficient a cell, a log-odds.
"""

from __future__ import annotations

import importlib
import math
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

stats: Any = importlib.import_module("scipy.stats")
Floats = npt.NDArray[np.float64]


class Solved:
    """Log-odds of cells, their covariance, and the correlation within a cluster."""

    def __init__(
        self, rows: Sequence[tuple[str, int, int]], *, exchangeable: bool, bias: bool
    ) -> None:
        clusters: dict[str, list[tuple[int, int]]] = defaultdict(list)
        for cluster, cell, outcome in rows:
            clusters[cluster].append((cell, outcome))
        self.cells = sorted({cell for _, cell, _ in rows})
        place = {cell: i for i, cell in enumerate(self.cells)}
        counts = Counter(tuple(sorted(members)) for members in clusters.values())
        self.patterns = [
            (np.array([place[c] for c, _ in p]), np.array([float(y) for _, y in p]), float(n))
            for p, n in counts.items()
        ]
        self.size = len(rows)
        self.alpha = 0.0
        sums = np.zeros((2, len(self.cells)))
        for _, cell, outcome in rows:
            sums[:, place[cell]] += 1, outcome
        share = sums[1] / sums[0]
        self.beta: Floats = np.log(share / (1 - share))
        self.naive = dict(zip(self.cells, 1 / (sums[0] * share * (1 - share)), strict=True))
        self.clusters = Counter(cell for own in clusters.values() for cell in {c for c, _ in own})
        self.fallback = exchangeable and not (self._pairs() and self._iterate())
        if self.fallback or not exchangeable:
            self.alpha, self.beta = 0.0, np.log(share / (1 - share))
        self.covariance = self._sandwich(bias=bias)

    def _pairs(self) -> float:
        return sum(n * len(c) * (len(c) - 1) / 2 for c, _, n in self.patterns)

    def _iterate(self) -> bool:
        """To a fixed point of both; false where the correlation is none that can be."""
        longest = max(len(cell) for cell, _, _ in self.patterns)
        for _ in range(500):
            self.alpha = self._moment()
            if not math.isfinite(self.alpha) or abs(self.alpha - 1) < 1e-9:
                return False
            score, bread, _ = self._parts(bias=False)
            step = np.linalg.solve(bread, score)
            self.beta = self.beta + step
            if np.abs(step).max() < 1e-13:
                return -1 / (longest - 1) + 1e-8 < self.alpha < 1 - 1e-8
        return False

    def _moment(self) -> float:
        p = len(self.cells)
        squares = products = 0.0
        for cell, y, n in self.patterns:
            mean = chance(self.beta[cell])
            residual = (y - mean) / np.sqrt(mean * (1 - mean))
            own = float(residual @ residual)
            squares += n * own
            products += n * (float(residual.sum()) ** 2 - own) / 2
        with np.errstate(divide="ignore"):
            freedom = np.float64(self._pairs() - p)
            return float(products / (squares / (self.size - p)) / freedom)

    def _parts(self, *, bias: bool) -> tuple[Floats, Floats, Floats]:
        """Score, bread and meat."""
        p = len(self.cells)
        score, bread, meat = np.zeros(p), np.zeros((p, p)), np.zeros((p, p))
        made = []
        for cell, y, n in self.patterns:
            mean = chance(self.beta[cell])
            root = np.sqrt(mean * (1 - mean))
            correlation = np.full((len(cell),) * 2, self.alpha)
            np.fill_diagonal(correlation, 1.0)
            inverse = np.linalg.inv(correlation) / np.outer(root, root)
            slope = np.eye(p)[cell] * (mean * (1 - mean))[:, None]
            bread += n * slope.T @ inverse @ slope
            made.append((slope, inverse, y - mean, n))
        for slope, inverse, residual, n in made:
            own = residual
            if bias:
                leverage = slope @ np.linalg.inv(bread) @ slope.T @ inverse
                own = np.linalg.inv(np.eye(len(residual)) - leverage) @ residual
            one = slope.T @ inverse @ own
            score += n * one
            meat += n * np.outer(one, one)
        return score, bread, meat

    def _sandwich(self, *, bias: bool) -> Floats:
        _, bread, meat = self._parts(bias=bias)
        inverse = np.linalg.inv(bread)
        found: Floats = inverse @ meat @ inverse
        return found

    def variance(self, slopes: Mapping[int, float]) -> float | None:
        """Of a weighted sum of log-odds; None where it is nothing but rounding."""
        weight = np.zeros(len(self.cells))
        for cell, slope in slopes.items():
            weight[self.cells.index(cell)] = slope
        value = float(weight @ self.covariance @ weight)
        apart = sum(slope**2 * self.naive[cell] for cell, slope in slopes.items())
        parts = float(np.abs(np.outer(weight, weight) * self.covariance).sum())
        return value if value > 1e-11 * max(parts, apart) else None

    def chance(self, cell: int) -> float:
        """The probability of a cell."""
        return float(chance(self.log_odds(cell)))

    def log_odds(self, cell: int) -> float:
        """The coefficient of a cell."""
        return float(self.beta[self.cells.index(cell)])


def combined(solved: Solved, weights: Mapping[int, float]) -> tuple[float, float | None]:
    """A weighted sum of probabilities and its error by the delta method."""
    own = {cell: solved.chance(cell) for cell in weights}
    variance = solved.variance({c: w * own[c] * (1 - own[c]) for c, w in weights.items()})
    value = sum(w * own[c] for c, w in weights.items())
    return value, None if variance is None else math.sqrt(variance)


def chance(log_odds: Any) -> Any:
    """The probability of a log-odds."""
    return 1 / (1 + np.exp(-log_odds))


def two_sided(z: float, df: float) -> float:
    """The p-value of a statistic; of the normal where ``df`` is infinite."""
    return float(2 * stats.t.sf(abs(z), df))


def quantile(level: float, df: float) -> float:
    """How many errors an interval reaches."""
    return float(stats.t.ppf((1 + level) / 2, df))
