"""Running an experiment: the pipeline as a job that goes on where it stopped.

summary = run_experiment(study, RunRequest(out=Path("runs/demo")), observer)
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

from habitus.experiments.casting import make_cast, make_plan, model_names
from habitus.experiments.config import MAY_CHANGE
from habitus.experiments.materials import RunConfig, materials, run_config
from habitus.experiments.pipeline import Pipeline
from habitus.experiments.stages import Stage
from habitus.experiments.study import Study
from habitus.experiments.tabulating import STUDY, kept_checks, write_results
from habitus.models import Caps, ModelEntry
from habitus.running import JobRequest, Observer, RunSummary, Session, run_job
from habitus.store import RunDir


@dataclass(frozen=True, slots=True, kw_only=True)
class RunRequest(JobRequest):
    """What is asked of a run: how far it goes. ``limit`` takes the first queries of each persona."""

    until: Stage = Stage.VERDICTS
    limit: int | None = None


def run_experiment(
    study: Study, request: RunRequest, observer: Observer | None = None
) -> RunSummary:
    """Run a study, or go on with it. One that reaches a cap is a valid run, with ``reached`` set.

    Raises:
        ConfigChangedError: the directory holds a run of another configuration.
        ModelError: a model cannot be opened; a new run is then not made.
        RunStoppedError: the first calls of a model all failed alike.
        StoreError: the run cannot be read or written.
        UsageError: money is capped, and what a model costs is not known.
    """
    summary = run_job(_StudyJob(study, request.until, request.limit), request, observer)
    if study.experiment.filter.policy != "report_only":
        return summary  # no session is kept without a check
    with RunDir.open(request.out, write=False) as run:
        checks = kept_checks(run)
    return replace(
        summary, records={**summary.records, "checks": checks} if checks else summary.records
    )


@dataclass(frozen=True)
class _StudyJob:
    """A study, up to a stage."""

    study: Study
    until: Stage
    limit: int | None

    may_change = MAY_CHANGE

    @cached_property
    def config(self) -> Mapping[str, Any]:
        return run_config(self.study)

    @property
    def manifest(self) -> Mapping[str, Any]:
        return {"seed": self.study.experiment.seed, "content": dict(self.study.files)}

    @property
    def kept(self) -> type[RunConfig]:
        return RunConfig

    @property
    def models(self) -> Mapping[str, ModelEntry]:
        entries = self.study.experiment.models
        return {name: entries[name] for name in model_names(self.study)}

    @property
    def alike(self) -> int:
        return self.study.experiment.limits.alike

    @property
    def caps(self) -> Caps:
        return self.study.experiment.limits

    def begin(self, run: RunDir) -> None:
        run.write(STUDY, materials(self.study).model_dump_json(indent=1).encode())

    async def work(self, session: Session) -> None:
        plan = make_plan(self.study, self.limit)
        await Pipeline(plan, make_cast(self.study, session.models), session, self.until).run()

    def leave(self, run: RunDir) -> None:
        write_results(run)

    def asked(self) -> Mapping[str, Any]:
        return {"stage": int(self.until), "limit": self.limit}

    def covered_by(self, asked: Mapping[str, Any]) -> bool:
        most, stage = asked["limit"], asked["stage"]
        enough = most is None or (self.limit is not None and self.limit <= most)
        return enough and stage >= int(self.until)
