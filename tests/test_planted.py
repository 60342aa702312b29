"""Planted truth: rates that a simulated target was given come back through the real stages."""

from __future__ import annotations

import asyncio
import math
from collections import Counter
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from habitus.analysis import ResultOptions, Results, read_verdicts, results
from habitus.analysis.rows import Row
from habitus.content import shipped_root
from habitus.experiments import RunRequest, Study, resolve, run_experiment, run_results
from habitus.experiments.materials import materials
from habitus.models import open_model
from habitus.store import RunDir
from study_fixture import EVERYDAY, harbour, pipe

EXPERIMENT = shipped_root() / "experiments" / "ccbench-health-planted.yaml"
SMALL: dict[str, Any] = {
    "cultures": ["afghan", "chinese", "maori"],
    "personas": 4,
    "history": {"domain_sessions": 1, "everyday_sessions": 0, "exchanges": [2, 2]},
}
QUERIES = 6
PLANTED = {"none": (0.04, 0.45), "hist": (0.10, 0.50), "ccot": (0.15, 0.52), "norms": (0.30, 0.55)}
SEEDS = range(1, 201)


@pytest.fixture
def study(tmp_path: Path) -> Study:
    """The full planted plan, cut to 12 personas with one short session each."""
    openers = tmp_path / "personas" / "openers"
    openers.mkdir(parents=True)
    (openers / "everyday.yaml").write_text(EVERYDAY, encoding="utf-8")
    return resolve(EXPERIMENT, SMALL, workspace=tmp_path)


def truth(row: Row) -> Mapping[str, float]:
    """What a row should say, from the planted rates and its own numbers of items."""
    follow, avoid = PLANTED[row.cell.setting]
    weight = row.follow.total / (row.follow.total + row.avoid.total)
    return {
        "follow_rate": follow,
        "avoid_rate": avoid,
        "norm_adaptation": weight * follow + (1 - weight) * avoid,
        "ccs": 2 * follow * avoid / (follow + avoid),
    }


def test_the_shipped_plan_is_the_full_one_with_these_rates() -> None:
    study = resolve(EXPERIMENT)
    rates = study.experiment.models["planted"].options["rates"]
    assert {name: (pair["follow"], pair["avoid"]) for name, pair in rates.items()} == PLANTED
    assert (len(study.portraits), len(study.queries)) == (60, 52)
    assert study.experiment.none == "per_persona"


def test_planted_rates_come_back(study: Study, tmp_path: Path) -> None:
    """Within four standard errors of a share of that many independent items."""
    summary = run_experiment(study, RunRequest(out=tmp_path / "run", limit=QUERIES))
    assert max(summary.failed_shares.values()) == 0
    with RunDir.open(tmp_path / "run", write=False) as run:
        found = run_results(run)
    assert found.synthetic
    assert {row.cell.setting for row in found.rows} == set(PLANTED)
    for row in found.rows:
        assert row.not_judged == 0
        for rate, planted in zip((row.follow, row.avoid), PLANTED[row.cell.setting], strict=True):
            error = math.sqrt(planted * (1 - planted) / rate.total)
            assert rate.total > 100
            assert abs(rate.satisfied / rate.judged - planted) < 4 * error


def test_a_planted_target_meets_nothing_and_everything(tmp_path: Path) -> None:
    path = harbour(tmp_path)
    sure = {"follow": 1.0, "avoid": 0.0}
    changes = {
        "models.sure": {"backend": "planted", "options": {"rates": {"none": sure}}},
        "targets": {"sure": {"model": "sure"}},
        "settings": ["none"],
    }
    run_experiment(resolve(path, changes), RunRequest(out=tmp_path / "run"))
    with RunDir.open(tmp_path / "run", write=False) as run:
        (row,) = run_results(run).rows
    assert (row.values["follow_rate"], row.values["avoid_rate"]) == (1.0, 0.0)
    assert row.values["ccs"] == 0.0


def measured(study: Study, seed: int) -> Results:
    """The results of a study with another seed, through the real stages, kept in memory."""
    seeded = replace(study, experiment=study.experiment.model_copy(update={"seed": seed}))
    entries = study.experiment.models
    models = {name: open_model(name, entry) for name, entry in entries.items()}
    records = asyncio.run(pipe(seeded, models=models, limit=QUERIES))
    table = read_verdicts(records.all("evaluations"), materials(seeded).design())
    return results(table, ResultOptions(seed=seed))


@pytest.mark.slow
def test_intervals_hold_the_planted_rates_at_the_nominal_rate(
    study: Study, capsys: pytest.CaptureFixture[str]
) -> None:
    held: Counter[tuple[str, str]] = Counter()
    for seed in SEEDS:
        for row in measured(study, seed).rows:
            for name, value in truth(row).items():
                interval = row.intervals[name]
                assert interval is not None
                held[row.cell.setting, name] += interval.low <= value <= interval.high
    share = {key: n / len(SEEDS) for key, n in held.items()}
    names = list(truth_names())
    with capsys.disabled():
        print(f"\nshare of {len(SEEDS)} 95% intervals that hold the planted number")
        print("setting", *names, sep="\t")
        for setting in PLANTED:
            print(setting, *(f"{share[setting, name]:.3f}" for name in names), sep="\t")
    error = math.sqrt(0.95 * 0.05 / len(SEEDS))
    assert min(share.values()) > 0.95 - 4 * error
    rates = [share[setting, name] for setting in PLANTED for name in ("follow_rate", "avoid_rate")]
    assert abs(sum(rates) / len(rates) - 0.95) < 4 * error / math.sqrt(len(rates))


def truth_names() -> tuple[str, ...]:
    """The numbers whose truth is known."""
    return ("follow_rate", "avoid_rate", "norm_adaptation", "ccs")
