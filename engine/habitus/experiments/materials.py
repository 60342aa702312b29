"""What a run keeps of its study, so that it can be read without the files it was made from.

``study.json`` holds personas with their states, norms, queries and topics, and what is expected
of each stage. Results, status and viewers read it; nothing of it is asked of a model again.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Self

from pydantic import BaseModel, ConfigDict, Field, model_validator

from habitus.analysis import Design
from habitus.experiments.config import Experiment
from habitus.experiments.counting import StageCounts, stage_counts
from habitus.experiments.study import Study
from habitus.records import NormState


class PersonaMaterial(BaseModel):
    """A persona as the run played it."""

    model_config = ConfigDict(frozen=True)

    name: str
    culture: str
    stances: dict[str, int]
    states: dict[str, NormState]


class NormMaterial(BaseModel):
    """A norm in play."""

    model_config = ConfigDict(frozen=True)

    culture: str
    kind: str
    values: tuple[str, ...]
    statement: str


class QueryMaterial(BaseModel):
    """A query that is asked."""

    model_config = ConfigDict(frozen=True)

    topic: str
    text: str


class Materials(BaseModel):
    """``study.json``."""

    model_config = ConfigDict(frozen=True)

    id: str
    title: str
    seed: int
    settings: tuple[str, ...]
    targets: tuple[str, ...]
    none_shared: bool
    personas: dict[str, PersonaMaterial]
    norms: dict[str, NormMaterial]
    queries: dict[str, QueryMaterial]
    topics: dict[str, str]
    openers: dict[str, str] = Field(default_factory=dict)
    counts: StageCounts

    @model_validator(mode="after")
    def _norms_of_states(self) -> Self:
        for name, persona in self.personas.items():
            if unknown := persona.states.keys() - self.norms.keys():
                raise ValueError(f"{name} has a state of {min(unknown)!r}, which is no norm here")
        return self

    def design(self) -> Design:
        """What an analysis must know."""
        return Design(
            cultures={name: p.culture for name, p in self.personas.items()},
            states={name: p.states for name, p in self.personas.items()},
            kinds={name: norm.kind for name, norm in self.norms.items()},
            topics={name: query.topic for name, query in self.queries.items()},
        )


class RunConfig(Experiment):
    """``experiment.json``: the experiment, and the hash of every file that it rests on."""

    content: dict[str, str] = Field(default_factory=dict)


#: Keys of an experiment that older runs lack, with the value that changes nothing for them.
_ADDED: Mapping[str, Any] = {"overflow": "refuse"}


def materials(study: Study) -> Materials:
    """What a run of this study keeps of it."""
    experiment = study.experiment
    states = {portrait.id: dict(portrait.states) for portrait in study.portraits}
    return Materials(
        id=experiment.id,
        title=experiment.title,
        seed=experiment.seed,
        settings=experiment.settings,
        targets=tuple(experiment.targets),
        none_shared=experiment.none == "shared",
        personas={
            p.id: PersonaMaterial(
                name=p.name, culture=p.culture, stances=dict(p.stances), states=states[p.id]
            )
            for p in study.personas
        },
        norms=_norms(study),
        queries={q.id: QueryMaterial(topic=q.topic, text=q.text) for q in study.queries},
        topics=dict(study.query_set.topics),
        openers={name: text for pool in study.pools for name, text in pool.openers},
        counts=stage_counts(study),
    )


def _norms(study: Study) -> dict[str, NormMaterial]:
    in_play = {norm for portrait in study.portraits for norm in portrait.states}
    return {
        norm.id: NormMaterial(
            culture=culture.culture,
            kind=norm.kind,
            values=tuple(norm.values),
            statement=norm.statement,
        )
        for culture in study.cultures.values()
        for norm in culture.norms
        if norm.id in in_play
    }


def run_config(study: Study) -> Mapping[str, Any]:
    """The configuration that a run is held to: the experiment, and the hash of every file.

    Keys that came after the first version are left out at their defaults, as runs of before then do
    not have them and are to go on.
    """
    whole = study.experiment.model_dump(mode="json")
    kept = {key: value for key, value in whole.items() if _ADDED.get(key, ...) != value}
    return {**kept, "content": dict(study.files)}
