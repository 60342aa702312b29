"""From a study and its opened models to the cast that does the work of each stage."""

from __future__ import annotations

from collections.abc import Mapping

from habitus.checklists import Evaluator, Recommender
from habitus.checklists.evaluator import EvaluationForm
from habitus.experiments.config import RoleConfig
from habitus.experiments.fitting import Window
from habitus.experiments.pipeline import Cast, Plan
from habitus.experiments.responding import Responder, Target
from habitus.experiments.safety import SafetyReview
from habitus.experiments.study import Study
from habitus.histories import (
    AgentSimulator,
    FilterRules,
    SessionFilter,
    Simulator,
    SingleCallSimulator,
    Verifier,
    plan_sessions,
)
from habitus.histories.simulation import Role
from habitus.models import ChatModel

Models = Mapping[str, ChatModel]


def model_names(study: Study) -> tuple[str, ...]:
    """The entries under ``models:`` that the study really uses."""
    roles = study.experiment.roles
    used = [roles.persona, roles.assistant, roles.verifier, roles.recommender, roles.evaluator]
    used += [roles.safety] if roles.safety else []
    used += study.experiment.targets.values()
    return tuple(dict.fromkeys(role.model for role in used))


def make_plan(study: Study, limit: int | None = None) -> Plan:
    """Every item of the study, with the first ``limit`` queries of each persona."""
    experiment = study.experiment
    return Plan(
        portraits=study.portraits,
        sessions={
            portrait.id: plan_sessions(
                portrait.id, study.pools, experiment.history.exchanges, experiment.seed
            )
            for portrait in study.portraits
        },
        queries=study.queries[:limit],
        settings=study.settings,
        norms_text=study.norms_text,
        repeats=experiment.repeats,
        none_shared=experiment.none == "shared",
        own_recommendations=experiment.checklist.recommendations == "per_persona",
        personas_at_once=experiment.limits.personas_at_once,
    )


def make_cast(study: Study, models: Models) -> Cast:
    """Everyone who works on the study."""
    experiment = study.experiment
    recommender, evaluator = experiment.roles.recommender, experiment.roles.evaluator
    return Cast(
        filter=SessionFilter(_simulator(study, models), _verifier(study, models), _rules(study)),
        recommender=Recommender(
            model=models[recommender.model],
            sampling=recommender.sampling(),
            prompt=study.prompts.recommend,
            seed=experiment.seed,
            length=experiment.checklist.length,
        ),
        responder=Responder(experiment.seed, experiment.score),
        evaluator=Evaluator(
            model=models[evaluator.model],
            sampling=evaluator.sampling(),
            prompt=study.prompts.evaluate,
            seed=experiment.seed,
            form=EvaluationForm(
                verdict_first=experiment.checklist.order == "verdict_first",
                echo=experiment.checklist.echo,
                reasoning=experiment.checklist.reasoning,
            ),
        ),
        targets=[
            Target(name, models[role.model], role.sampling(), _window(study, role))
            for name, role in experiment.targets.items()
        ],
        safety=_safety(study, models),
    )


def make_simulator(study: Study, models: Models) -> AgentSimulator:
    """The two agents of the turn-by-turn form."""
    roles = study.experiment.roles
    return AgentSimulator(
        persona=_role(roles.persona, models),
        assistant=_role(roles.assistant, models),
        persona_prompt=study.prompts.persona,
        assistant_prompt=study.prompts.assistant,
        goodbyes=study.goodbyes,
        seed=study.experiment.seed,
    )


def _window(study: Study, role: RoleConfig) -> Window:
    entry = study.experiment.models[role.model]
    return Window(entry.context_length, role.max_tokens, study.experiment.overflow)


def _simulator(study: Study, models: Models) -> Simulator:
    if study.experiment.history.form == "agents":
        return make_simulator(study, models)
    return SingleCallSimulator(
        writer=_role(study.experiment.roles.persona, models),
        prompt=study.prompts.dialogue,
        seed=study.experiment.seed,
    )


def _verifier(study: Study, models: Models) -> Verifier:
    config = study.experiment.filter
    return Verifier(
        role=_role(study.experiment.roles.verifier, models),
        prompt=study.prompts.verifier,
        lexicon=study.lexicon,
        seed=study.experiment.seed,
        sees_states=config.verifier_sees_states,
        explanation=config.explanation,
    )


def _rules(study: Study) -> FilterRules:
    config = study.experiment.filter
    return FilterRules(
        report_only=config.policy == "report_only",
        attempts=config.attempts,
        contradictions=config.contradictions,
    )


def _safety(study: Study, models: Models) -> SafetyReview | None:
    role = study.experiment.roles.safety
    if role is None or study.safety is None:
        return None
    return SafetyReview(study.safety, models[role.model], role.sampling(), study.experiment.seed)


def _role(role: RoleConfig, models: Models) -> Role:
    return Role(models[role.model], role.sampling())
