"""An experiment as its file says it.

The file names domain, cultures, population, models, roles, targets, history plan, filter,
checklist, settings, queries and seed. This module checks what one file can show by itself;
``resolving`` reads what the file refers to.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Literal

from pydantic import BeforeValidator, Field, StringConstraints

from habitus.analysis import MissingRule
from habitus.content import ContentModel, Found, load
from habitus.content.fields import Slug
from habitus.models.entry import ModelEntry
from habitus.models.spending import Caps
from habitus.records import Sampling
from habitus.running import ALIKE, MODELS_MAY_CHANGE


def _people(data: object) -> object:
    one_of_these = isinstance(data, (int, list, tuple, type(None)))
    if not one_of_these or isinstance(data, bool) or data in ([], ()):
        raise ValueError("write a number for each culture, or a list of persona ids")
    return data


People = Annotated[
    Annotated[int, Field(ge=1)] | Annotated[tuple[str, ...], Field(min_length=1)] | None,
    BeforeValidator(_people),
]
Share = Annotated[float, Field(ge=0, le=1)]
Exchanges = Annotated[int, Field(ge=1, le=1000)]
Tokens = Annotated[int, Field(ge=1, lt=2**53)]  # what JSON and every server can read

#: What may differ when a run goes on: nothing here can change an answer or which are asked for.
#: A content file that is only now among those of a run was not content in the version that made it; one
#: that the experiment names anew is a change of the experiment.
MAY_CHANGE = MODELS_MAY_CHANGE | {"title", "results.*", "+content.*"}


class RoleConfig(ContentModel):
    """Which model plays a role, and how its answers are drawn."""

    model: str = Field(description="a name under models:")
    temperature: Annotated[float, Field(ge=0, le=5)] | None = 0.7
    top_p: Annotated[float, Field(gt=0, le=1)] | None = None
    max_tokens: Tokens | None = None
    stop: tuple[Annotated[str, StringConstraints(min_length=1, strip_whitespace=False)], ...] = (
        Field(default=(), description="texts at which an answer ends; for models that do not stop")
    )

    def sampling(self) -> Sampling:
        """The sampling parameters of the role's calls."""
        return Sampling(self.temperature, self.top_p, self.max_tokens, self.stop)


class Roles(ContentModel):
    """The models that help: who plays, answers, verifies, recommends and evaluates."""

    persona: RoleConfig
    assistant: RoleConfig
    verifier: RoleConfig
    recommender: RoleConfig
    evaluator: RoleConfig
    safety: RoleConfig | None = None


class HistoryConfig(ContentModel):
    """How histories are made. One exchange is a persona turn and the answer to it."""

    form: Literal["agents", "single_call"] = "agents"
    domain_sessions: int = Field(default=3, ge=0)
    everyday_sessions: int = Field(default=15, ge=0)
    exchanges: tuple[Exchanges, Exchanges] = (4, 8)
    domain_openers: str | None = Field(default=None, description="default: the domain's name")
    everyday_openers: str = "everyday"
    neutral: Literal["listed", "omit"] = Field(
        default="listed", description="whether the persona sheet lists norms without a stance"
    )


class FilterConfig(ContentModel):
    """What happens to sessions that reveal the culture or contradict the persona."""

    policy: Literal["resimulate", "report_only"] = "resimulate"
    attempts: int = Field(default=3, ge=1, le=20)
    contradictions: bool = True
    verifier_sees_states: bool = False
    explanation: int = Field(default=300, ge=0, description="longest explanation, characters")


class ChecklistConfig(ContentModel):
    """How recommendations are written and scored."""

    recommendations: Literal["shared", "per_persona"] = "shared"
    length: int = Field(default=400, ge=20, description="longest recommendation, characters")
    order: Literal["reasoning_first", "verdict_first"] = "reasoning_first"
    echo: bool = Field(default=False, description="repeat norm and recommendation, as published")
    reasoning: int = Field(default=300, ge=0, description="longest reasoning, characters")


class QueriesConfig(ContentModel):
    """Which queries are asked."""

    file: str | None = Field(default=None, description="default: the domain's name")
    ids: tuple[str, ...] = ()
    per_topic: Annotated[int, Field(ge=1)] | None = None


class ResultsConfig(ContentModel):
    """How results are counted; can be changed at any time, nothing is asked again."""

    draws: int = Field(default=2000, ge=100, le=100_000)
    level: Annotated[float, Field(gt=0, lt=1)] = 0.95
    interval: Literal["logit_t", "percentile"] = "logit_t"
    missing: MissingRule = Field(
        default="exclude",
        description="verdicts that are missing: left out, counted as not satisfied, or as the "
        "range from none to all of them satisfied",
    )


class LimitsConfig(Caps):
    """What a run may spend, when it counts as failed, and how much of it is under way at once."""

    failures: Share | None = Field(
        default=0.05, description="share of failed calls above which the exit status is 1"
    )
    personas_at_once: int = Field(
        default=10, ge=1, description="histories in use at once; fewer share more of the cache"
    )
    alike: int = Field(
        default=ALIKE, ge=2, description="stop when this many first calls of a model all fail alike"
    )


class Experiment(ContentModel):
    """One experiment file."""

    id: Slug
    title: str = ""
    domain: Slug
    cultures: tuple[Slug, ...] = Field(min_length=1)
    population: str | None = Field(default=None, description="default: the domain's name")
    personas: People = Field(
        default=None, description="the first N of each culture, or ids; default: all"
    )
    norms: dict[Slug, Annotated[tuple[str, ...], Field(min_length=1)]] = Field(
        default_factory=dict, description="cut a culture to these norms"
    )
    seed: int = Field(ge=0, lt=2**63)
    models: dict[Slug, ModelEntry] = Field(min_length=1)
    roles: Roles
    targets: dict[Slug, RoleConfig] = Field(min_length=1, description="the models under test")
    history: HistoryConfig = HistoryConfig()
    filter: FilterConfig = FilterConfig()
    checklist: ChecklistConfig = ChecklistConfig()
    settings: tuple[Slug, ...] = Field(default=("none", "hist", "ccot", "norms"), min_length=1)
    none: Literal["shared", "per_persona"] = "shared"
    neutral_norms: Literal["omit", "include"] = Field(
        default="omit", description="whether the setting norms lists norms without a stance"
    )
    score: Literal["answer", "everything"] = Field(
        default="answer", description="what of a ccot response is scored"
    )
    overflow: Literal["refuse", "drop_oldest"] = Field(
        default="refuse", description="what happens to a history that a target cannot hold"
    )
    queries: QueriesConfig = QueriesConfig()
    repeats: int = Field(default=1, ge=1, le=10_000)
    results: ResultsConfig = ResultsConfig()
    limits: LimitsConfig = LimitsConfig()


def load_experiment(path: Path) -> Experiment:
    """Read an experiment file by itself.

    Raises:
        ContentError: every problem with its place.
    """
    return load(path, Experiment, check_experiment)


def check_experiment(experiment: Experiment) -> Iterator[Found]:
    """Problems that the types do not show."""
    known = ", ".join(experiment.models)
    roles = {
        ("roles", n): getattr(experiment.roles, n) for n in type(experiment.roles).model_fields
    }
    roles |= {("targets", n): role for n, role in experiment.targets.items()}
    for loc, role in roles.items():
        if role is not None and role.model not in experiment.models:
            yield Found((*loc, "model"), f"unknown model {role.model!r}", f"models: {known}")
    low, high = experiment.history.exchanges
    if low > high:
        yield Found(("history", "exchanges"), f"least exchanges {low} exceed the most {high}")
    for culture in experiment.norms:
        if culture not in experiment.cultures:
            yield Found(("norms", culture), f"{culture!r} is not among the cultures")
    yield from _repeated(experiment)


def _repeated(experiment: Experiment) -> Iterator[Found]:
    chosen = experiment.personas
    lists: dict[tuple[str, ...], tuple[str, ...]] = {
        ("cultures",): experiment.cultures,
        ("settings",): experiment.settings,
        ("personas",): chosen if isinstance(chosen, tuple) else (),
        ("queries", "ids"): experiment.queries.ids,
        **{("norms", culture): ids for culture, ids in experiment.norms.items()},
    }
    for loc, names in lists.items():
        for index, name in enumerate(names):
            if name in names[:index]:
                yield Found((*loc, index), f"{name!r} stands twice")
