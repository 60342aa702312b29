"""Holding one session: two agents turn by turn, or one call that writes it all.

Both forms begin with the opener word for word, spoken by the engine, and give the same record.
What a simulator needs to know of the persona is its sheet; it never sees queries or checklists.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Protocol

from habitus.agents import Agent, Conversation, Dialogue, Goodbyes, Rules
from habitus.content import Prompt
from habitus.histories.roles import role_breaks
from habitus.histories.script import ScriptError, read_script
from habitus.histories.sessions import SessionPlan
from habitus.models import ChatModel
from habitus.personas.portrait import Portrait
from habitus.records import (
    Attempt,
    Failure,
    Outcome,
    Prefix,
    Request,
    Sampling,
    Turn,
    derive_seed,
    messages,
)


class Simulator(Protocol):
    """Holds a session."""

    async def simulate(self, portrait: Portrait, plan: SessionPlan, attempt: int) -> Attempt:
        """One attempt at one session, not yet checked."""
        ...


@dataclass(frozen=True, slots=True)
class Role:
    """A model with the sampling of one role."""

    model: ChatModel
    sampling: Sampling


@dataclass
class AgentSimulator:
    """Two agents, each with its own model, memory and prompt.

    Args:
        persona: who plays the person.
        assistant: who answers.
        persona_prompt: placeholders ``sheet`` and ``stop``.
        assistant_prompt: no placeholders.
        seed: the seed of the experiment.
        stop: the marker by which the persona ends a session.
        goodbyes: words of leave-taking that end one as well.
    """

    persona: Role
    assistant: Role
    persona_prompt: Prompt
    assistant_prompt: Prompt
    seed: int
    stop: str = "[END]"
    goodbyes: Goodbyes = field(default_factory=Goodbyes)
    _prefixes: dict[str, Prefix] = field(default_factory=dict)

    async def simulate(self, portrait: Portrait, plan: SessionPlan, attempt: int) -> Attempt:
        """Let the two agents talk."""
        rules = Rules(plan.exchanges, self.stop, goodbyes=self.goodbyes)
        conversation = Conversation(self._persona(portrait), self._assistant(), rules)
        record = f"{plan.id}/a{attempt}"
        dialogue = await conversation.run(plan.text, record, attempt)
        return _attempt(plan, attempt, dialogue)

    def _persona(self, portrait: Portrait) -> Agent:
        key = portrait.id
        if key not in self._prefixes:
            values = {"sheet": portrait.sheet, "stop": self.stop}
            self._prefixes[key] = Prefix(messages(self.persona_prompt.fill(values)))
        prefix = self._prefixes[key]
        return Agent("persona", self.persona.model, prefix, self.persona.sampling, self.seed)

    def _assistant(self) -> Agent:
        if "" not in self._prefixes:
            self._prefixes[""] = Prefix(messages(self.assistant_prompt.fill({})))
        prefix = self._prefixes[""]
        return Agent("assistant", self.assistant.model, prefix, self.assistant.sampling, self.seed)


@dataclass
class SingleCallSimulator:
    """One call writes the dialogue after the opener and restates the norm states at its end.

    The restatement is kept for checking and is no part of the turns. Published form of the
    simulation (CCBench, arXiv 2607.05405).

    Args:
        writer: the model that writes; the persona's role.
        prompt: placeholders ``sheet``, ``opener``, ``exchanges`` and ``norm_ids``.
        seed: the seed of the experiment.
    """

    writer: Role
    prompt: Prompt
    seed: int

    async def simulate(self, portrait: Portrait, plan: SessionPlan, attempt: int) -> Attempt:
        """Ask for the dialogue, read it, cut it."""
        record = f"{plan.id}/a{attempt}"
        reply = await self.writer.model.complete(self._request(portrait, plan, record, attempt))
        dialogue = Dialogue(calls=[reply.key.hex()])
        if not reply.ok:
            dialogue.end, dialogue.failure = "failed", reply.failure
            return _attempt(plan, attempt, dialogue)
        try:
            script = read_script(reply.text, plan.text, portrait.labels)
        except ScriptError as error:
            dialogue.end, dialogue.failure = "failed", Failure(Outcome.UNPARSED, str(error))
            return _attempt(plan, attempt, dialogue)
        opener = Turn(speaker="persona", text=plan.text)
        dialogue.turns, dialogue.end = [opener, *script.turns], "complete"
        return _attempt(plan, attempt, dialogue).model_copy(
            update={"restatement": script.states or None}
        )

    def _request(self, portrait: Portrait, plan: SessionPlan, record: str, attempt: int) -> Request:
        values = {
            "sheet": portrait.sheet,
            "opener": plan.text,
            "exchanges": str(plan.exchanges),
            "norm_ids": ", ".join(portrait.labels.values()),
        }
        return Request(
            messages=messages(self.prompt.fill(values)),
            sampling=self.writer.sampling,
            seed=derive_seed(self.seed, "dialogue", record, attempt),
            attempt=attempt,
            stage="histories",
            record=record,
            context={"role": "dialogue", "states": portrait.states_by_label},
        )


def _attempt(plan: SessionPlan, attempt: int, dialogue: Dialogue) -> Attempt:
    failure = dialogue.failure or Failure(Outcome.OK, "")
    return Attempt(
        id=f"{plan.id}/a{attempt}",
        outcome=failure.outcome,
        reason=failure.reason,
        persona=plan.persona,
        number=plan.number,
        attempt=attempt,
        kind=plan.kind,
        opener=plan.opener,
        turns=tuple(dialogue.turns),
        end=dialogue.end,
        role_breaks=role_breaks(dialogue.turns),
        calls=tuple(dialogue.calls),
    )
