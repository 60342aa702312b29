"""The pipeline: every stage as a map over records with stable ids, overlapping where it can.

A persona's responses start as soon as its history is accepted, and a response is scored as soon
as it is there. The pipeline asks models and puts records; where calls are remembered and how
many run at once is not its business, so running it again over a store that has every answer
makes no call and puts the same records.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from habitus.checklists import Evaluator, Query, Recommender, recommendation_id
from habitus.experiments.fitting import Fitting
from habitus.experiments.responding import SHARED, Question, Responder, Target, failed_response
from habitus.experiments.safety import SafetyReview
from habitus.experiments.settings import Setting
from habitus.experiments.stages import Stage
from habitus.histories import SessionFilter, SessionPlan, make_history
from habitus.personas.portrait import Portrait
from habitus.records import Attempt, History, Outcome, Recommendation, Response, StageRecord
from habitus.running import gathered, pilot_first, together, windowed


class Records(Protocol):
    """Where records are put."""

    async def put(self, table: str, record: StageRecord) -> None:
        """Keep a record; the same id is replaced."""
        ...

    async def drop(self, table: str, name: str) -> None:
        """Forget a record that is no longer made, if there is one."""
        ...


@dataclass(frozen=True, slots=True)
class Plan:
    """What is to be done: every item of the run, resolved.

    ``norms_text`` is the text of a persona's norms in the setting that spells them out,
    ``own_recommendations`` gives each persona recommendations of its own.
    """

    portraits: Sequence[Portrait]
    sessions: Mapping[str, Sequence[SessionPlan]]
    queries: Sequence[Query]
    settings: Sequence[Setting]
    norms_text: Mapping[str, str]
    repeats: int = 1
    none_shared: bool = True
    own_recommendations: bool = False
    personas_at_once: int = 10

    def shared(self, setting: Setting) -> bool:
        """Whether one response of a setting serves all personas."""
        return self.none_shared and not setting.uses_persona


@dataclass(frozen=True, slots=True)
class Cast:
    """Who does the work of each stage."""

    filter: SessionFilter
    recommender: Recommender
    responder: Responder
    evaluator: Evaluator
    targets: Sequence[Target]
    safety: SafetyReview | None = None


@dataclass
class Pipeline:
    """Runs a plan up to a stage."""

    plan: Plan
    cast: Cast
    records: Records
    until: Stage = Stage.VERDICTS
    _recommendations: dict[str, asyncio.Task[Recommendation]] = field(default_factory=dict)

    async def run(self) -> None:
        """Do all of it; what is already remembered costs no call."""
        await together((self._shared_flow, self._persona_flows), lambda flow: flow())

    async def _persona_flows(self) -> None:
        await windowed(self.plan.portraits, self._persona_flow, self.plan.personas_at_once)

    async def _persona_flow(self, portrait: Portrait) -> None:
        """All of one persona: its history, its checklists, its responses and their verdicts."""
        parts = [self._history_flow, self._norms_flow]
        if self.until >= Stage.CHECKLISTS:
            parts.append(self._checklist_flow)
        await together(parts, lambda part: part(portrait))

    async def _checklist_flow(self, portrait: Portrait) -> None:
        await together(self.plan.queries, lambda query: self._items(portrait, query))

    async def _history_flow(self, portrait: Portrait) -> None:
        settings = [s for s in self.plan.settings if s.uses_history]
        if not settings or self.until < Stage.HISTORIES:
            return
        plans = self.plan.sessions[portrait.id]
        groups = await gathered(plans, lambda plan: self._session(portrait, plan))
        history = make_history(portrait, groups)
        await self.records.put("histories", history)
        kept = [a for group in groups for a in group if a.decision != "rejected"]
        if self.until >= Stage.RESPONSES:
            await self._answer(portrait, settings, kept, history)

    async def _session(self, portrait: Portrait, plan: SessionPlan) -> tuple[Attempt, ...]:
        attempts = await self.cast.filter.session(portrait, plan)
        for attempt in attempts:
            await self.records.put("attempts", attempt)
        for number in range(len(attempts), self.cast.filter.rules.attempts):
            await self.records.drop("attempts", f"{plan.id}/a{number}")
        return attempts

    async def _norms_flow(self, portrait: Portrait) -> None:
        """The settings that need no history but differ by persona."""
        settings = [s for s in self.plan.settings if not s.uses_history and not self.plan.shared(s)]
        if settings and self.until >= Stage.RESPONSES:
            await self._answer(portrait, settings, (), None)

    async def _answer(
        self,
        portrait: Portrait,
        settings: Sequence[Setting],
        sessions: Sequence[Attempt],
        history: History | None,
    ) -> None:
        """All responses for one persona in some settings; those that begin alike are a group."""
        norms = self.plan.norms_text[portrait.id]
        groups = [
            [
                self._question(target, setting, portrait, query, repeat, fitting, history)
                for repeat in range(self.plan.repeats)
                for query in self.plan.queries
                for setting in group
            ]
            for group in self._alike(portrait, settings, sessions)
            for target in self.cast.targets
            for fitting in [Fitting(target.window, group, self.plan.queries, sessions, norms)]
        ]
        usable = history is None or history.outcome is Outcome.OK

        async def ask(question: Question) -> Response:
            return await self._respond(question, usable=usable)

        async def use(question: Question, response: Response) -> None:
            await self._score(question, response, (portrait,))

        await together(groups, lambda group: pilot_first(group, ask, use))

    def _alike(
        self, portrait: Portrait, settings: Sequence[Setting], sessions: Sequence[Attempt]
    ) -> list[list[Setting]]:
        """Settings grouped by what they show before the query."""
        groups: dict[bytes, list[Setting]] = {}
        for setting in settings:
            prefix = setting.prefix(sessions, self.plan.norms_text[portrait.id])
            groups.setdefault(prefix.digest if prefix else b"", []).append(setting)
        return list(groups.values())

    def _question(
        self,
        target: Target,
        setting: Setting,
        portrait: Portrait,
        query: Query,
        repeat: int,
        fitting: Fitting,
        history: History | None,
    ) -> Question:
        ids = tuple(self._item_id(portrait, norm, query) for norm in portrait.active)
        digest = history.digest if history else ""
        return Question(target, setting, portrait.id, query, repeat, fitting, digest, ids)

    async def _shared_flow(self) -> None:
        """The settings in which one response serves all personas."""
        settings = [s for s in self.plan.settings if self.plan.shared(s)]
        if not settings or self.until < Stage.RESPONSES:
            return
        questions = [
            Question(target, setting, SHARED, query, repeat, fitting, "", ids)
            for query, ids in self._all_items()
            for setting in settings
            for target in self.cast.targets
            for repeat in range(self.plan.repeats)
            for fitting in [Fitting(target.window, [setting], [query])]
        ]

        async def work(question: Question) -> None:
            response = await self._respond(question, usable=True)
            await self._score(question, response, self.plan.portraits)

        await windowed(questions, work, self.plan.personas_at_once)

    def _all_items(self) -> list[tuple[Query, tuple[str, ...]]]:
        """Each query with the ids of every item that any persona has for it."""
        pairs = [(p, norm) for p in self.plan.portraits for norm in p.active]
        return [
            (query, tuple(dict.fromkeys(self._item_id(p, norm, query) for p, norm in pairs)))
            for query in self.plan.queries
        ]

    async def _respond(self, question: Question, *, usable: bool) -> Response:
        if usable:
            response = await self.cast.responder.respond(question)
        else:
            response = failed_response(question, "the persona's history is not complete")
        await self.records.put("responses", response)
        return response

    async def _score(
        self, question: Question, response: Response, portraits: Sequence[Portrait]
    ) -> None:
        if self.until >= Stage.VERDICTS:
            await together(portraits, lambda p: self._evaluate(response, p, question.query))
            await self._review(response, question.query)

    async def _evaluate(self, response: Response, portrait: Portrait, query: Query) -> None:
        items = await self._items(portrait, query)
        evaluation = await self.cast.evaluator.evaluate(response, portrait, items)
        await self.records.put("evaluations", evaluation)

    async def _review(self, response: Response, query: Query) -> None:
        if self.cast.safety is not None:
            await self.records.put("safety", await self.cast.safety.review(response, query))

    def _item_id(self, portrait: Portrait, norm: str, query: Query) -> str:
        state = portrait.states[norm]
        owner = portrait.id if self.plan.own_recommendations else ""
        return recommendation_id(norm, 1 if state > 0 else -1, query.id, owner)

    async def _items(self, portrait: Portrait, query: Query) -> list[Recommendation]:
        """The persona's checklist for a query, in the order of its norms."""
        return await gathered(
            portrait.active, lambda norm: self._recommendation(portrait, norm, query)
        )

    async def _recommendation(self, portrait: Portrait, norm: str, query: Query) -> Recommendation:
        """A recommendation, made once and then shared."""
        name = self._item_id(portrait, norm, query)
        task = self._recommendations.get(name)
        if task is None:
            task = asyncio.create_task(self._recommend(portrait, norm, query))
            self._recommendations[name] = task
        return await task

    async def _recommend(self, portrait: Portrait, norm: str, query: Query) -> Recommendation:
        owner = portrait.id if self.plan.own_recommendations else ""
        recommendation = await self.cast.recommender.recommend(
            norm,
            portrait.statements[norm],
            1 if portrait.states[norm] > 0 else -1,
            query,
            owner,
        )
        await self.records.put("recommendations", recommendation)
        return recommendation
