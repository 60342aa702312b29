"""How often the printed 95% intervals hold the planted truth, by design and method.

    PYTHONPATH=engine:tests python bench/coverage.py [runs]

Personas differ (beta, intraclass correlation .05); in the shared setting queries differ too
(logit effect of .5) and one response stands for all personas. Rates are Follow .10, Avoid .50
in hist; Follow .02, Avoid .40 in none. Takes some minutes.
"""

from __future__ import annotations

import sys
from dataclasses import replace

import numpy as np

from habitus.analysis import MEASURES, ResultOptions, VerdictTable, read_verdicts, results
from habitus.statistics import Interval, IntervalRule, Method
from results_fixture import design, drawn, evaluations

RATES = {"hist": (0.10, 0.50), "none": (0.02, 0.40)}
DESIGNS = ((6, 10), (3, 10), (1, 20), (1, 10), (1, 5), (6, 2), (1, 3), (1, 2))
METHODS: tuple[Method, ...] = ("logit_t", "percentile")


def planted(table: VerdictTable, rng: np.random.Generator, sigma: float) -> VerdictTable:
    """New answers for every cell; ``sigma`` is the spread of queries on the logit scale."""
    items = table.items
    state = np.where(items.state > 0, 0, 1)
    rows = []
    # What a persona brings is the same in both settings: its place in the distribution.
    places = rng.random((2, len(table.personas)))
    for cell in table.cells:
        chance = np.empty(len(items))
        for s, mean in enumerate(RATES[cell.setting]):
            sample = np.sort(rng.beta(mean * 19, (1 - mean) * 19, 4000))
            own = sample[(places[s] * 4000).astype(int)]
            chance[state == s] = own[items.persona[state == s]]
        if sigma:
            effect = rng.normal(0, sigma, len(table.queries))[items.query]
            chance = 1 / (1 + (1 - chance) / chance * np.exp(-effect))
        rows.append(rng.random(len(items)) < chance)
    return replace(table, answers=np.stack(rows).astype(np.int8))


def truth(table: VerdictTable, sigma: float) -> np.ndarray:
    """Each measure of each row and difference, as the mean over many runs."""
    rng = np.random.default_rng(1)
    options = ResultOptions(draws=100)
    sums = []
    for _ in range(400):
        found = results(planted(table, rng, sigma), options)
        parts = (*found.rows, *found.differences)
        sums.append([[part.values[name] or 0.0 for name in MEASURES] for part in parts])
    return np.mean(sums, axis=0)


def share_covered(size: tuple[int, int], runs: int, shared: bool) -> dict[Method, np.ndarray]:
    plan = design(*size, queries=20, norms=10)
    names = ("none",) if shared else ()
    table = read_verdicts(evaluations(plan, drawn(1), shared=names), plan)
    sigma = 0.5 if shared else 0.0
    expected = truth(table, sigma)
    hits = {method: np.zeros_like(expected) for method in METHODS}
    rng = np.random.default_rng(2)
    for seed in range(runs):
        answers = planted(table, rng, sigma)
        for method in METHODS:
            options = ResultOptions(seed=seed, draws=500, rule=IntervalRule(method))
            found = results(answers, options)
            for i, part in enumerate((*found.rows, *found.differences)):
                for j, name in enumerate(MEASURES):
                    hits[method][i, j] += inside(part.intervals[name], expected[i, j])
    return {method: counts / runs for method, counts in hits.items()}


def inside(found: Interval | None, value: float) -> bool:
    return found is not None and found.low <= value <= found.high


def main() -> None:
    runs = int(sys.argv[1]) if len(sys.argv) > 1 else 200
    print("cultures x personas, method, part: " + ", ".join(MEASURES))
    for shared in (False, True):
        for size in DESIGNS[:4] if shared else DESIGNS:
            for method, found in share_covered(size, runs, shared).items():
                for part, row in zip(("none", "hist", "hist - none"), found, strict=True):
                    label = f"{size[0]} x {size[1]} {method} {part}{' shared' if shared else ''}"
                    print(label, " ".join(f"{x:.3f}" for x in row), flush=True)


if __name__ == "__main__":
    main()
