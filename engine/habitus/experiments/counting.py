"""How many records each stage makes, counted from the study alone."""

from __future__ import annotations

from pydantic import BaseModel, ConfigDict

from habitus.experiments.settings import Setting
from habitus.experiments.study import Study


class StageCounts(BaseModel):
    """Records by stage when everything is done; ``attempts`` is the least (one a session).

    ``items`` counts verdicts inside ``evaluations``.
    """

    model_config = ConfigDict(frozen=True)

    attempts: int
    histories: int
    recommendations: int
    responses: int
    evaluations: int
    safety: int
    items: int


def stage_counts(study: Study, limit: int | None = None) -> StageCounts:
    """The counts of a study, with the first ``limit`` queries only."""
    experiment = study.experiment
    queries = len(study.queries) if limit is None else min(limit, len(study.queries))
    people = len(study.portraits)
    with_history = any(setting.uses_history for setting in study.settings)
    sessions = sum(pool.sessions for pool in study.pools)
    each = len(experiment.targets) * queries * experiment.repeats
    responses = sum(each * (1 if is_shared(study, s) else people) for s in study.settings)
    active = sum(len(portrait.active) for portrait in study.portraits)
    evaluated = each * len(study.settings)
    return StageCounts(
        attempts=people * sessions if with_history else 0,
        histories=people if with_history else 0,
        recommendations=_items(study) * queries,
        responses=responses,
        evaluations=evaluated * people,
        safety=responses if experiment.roles.safety else 0,
        items=evaluated * active,
    )


def is_shared(study: Study, setting: Setting) -> bool:
    """Whether one response of a setting serves all personas."""
    return study.experiment.none == "shared" and not setting.uses_persona


def _items(study: Study) -> int:
    """Recommendations for one query."""
    if study.experiment.checklist.recommendations == "per_persona":
        return sum(len(portrait.active) for portrait in study.portraits)
    return len({(n, p.states[n]) for p in study.portraits for n in p.active})
