"""Experiments: from a file to a run, and from a run to its numbers.

    study = resolve(Path("experiments/demo.yaml"))
    summary = run_experiment(study, RunRequest(out=Path("runs/demo")))
    with RunDir.open(Path("runs/demo"), write=False) as run:
        found = run_results(run)

The stages (histories with their filter, checklists, responses, verdicts) are maps over records
with stable ids. The package does not know how anything is shown.
"""

from habitus.experiments.config import Experiment, load_experiment
from habitus.experiments.counting import stage_counts
from habitus.experiments.planning import plan_caps, plan_costs
from habitus.experiments.resolving import resolve
from habitus.experiments.running import RunRequest, run_experiment
from habitus.experiments.stages import TABLES, Stage, call_stage, stage_named
from habitus.experiments.study import Study
from habitus.experiments.tabulating import (
    View,
    read_materials,
    run_breakdowns,
    run_filter,
    run_outcomes,
    run_results,
    session_ends,
    strange_sessions,
)

__all__ = [
    "TABLES",
    "Experiment",
    "RunRequest",
    "Stage",
    "Study",
    "View",
    "call_stage",
    "load_experiment",
    "plan_caps",
    "plan_costs",
    "read_materials",
    "resolve",
    "run_breakdowns",
    "run_experiment",
    "run_filter",
    "run_outcomes",
    "run_results",
    "session_ends",
    "stage_counts",
    "stage_named",
    "strange_sessions",
]
