"""A person at the terminal in the assistant's place, a persona on the other side."""

from __future__ import annotations

import asyncio
import sys

from habitus.agents import Agent
from habitus.cli.finding import experiment_path
from habitus.cli.output import print_text, talk
from habitus.content import find, read_prompt
from habitus.errors import NotFoundError
from habitus.experiments.config import RoleConfig, load_experiment
from habitus.experiments.resolving import PROMPT_FILES
from habitus.models import ModelEntry, open_model
from habitus.personas import find_population, sheet
from habitus.records import Outcome, Prefix, messages
from habitus.running import RunStoppedError

_STOP = "[END]"


def hold_chat(
    persona: str, population: str, experiment: str | None, opener: str | None, seed: int
) -> None:
    """Talk until an empty line, the end of input, or the persona's stop marker."""
    prefix = _prefix(persona, population)
    role, entry = _role(experiment)
    if experiment is None:
        talk("The embedded model plays the persona; --experiment takes a better one from there.")
    talk(f"{persona} opens the chat; you are the assistant. An empty line ends it.")
    asyncio.run(_talk(persona, prefix, role, entry, opener, seed))


def _prefix(persona: str, population: str) -> Prefix:
    people, cultures = find_population(population)
    by_id = {one.id: one for one in people.personas}
    if persona not in by_id:
        hint = "--population names the population to look in"
        raise NotFoundError(f"persona in {population}", persona, list(by_id), hint)
    folder, name, placeholders = PROMPT_FILES["persona"]
    prompt = read_prompt(find(folder, f"{name}.md"), placeholders)
    lines = sheet(by_id[persona], cultures[by_id[persona].culture])
    return Prefix(messages(prompt.fill({"sheet": "\n".join(lines), "stop": _STOP})))


def _role(experiment: str | None) -> tuple[RoleConfig, ModelEntry]:
    if experiment is None:
        return RoleConfig(model="local", max_tokens=160, stop=("\n",)), ModelEntry(backend="local")
    read = load_experiment(experiment_path(experiment))
    return read.roles.persona, read.models[read.roles.persona.model]


async def _talk(
    persona: str,
    prefix: Prefix,
    role: RoleConfig,
    entry: ModelEntry,
    opener: str | None,
    seed: int,
) -> None:
    model = open_model(role.model, entry)
    agent = Agent("persona", model, prefix, role.sampling(), seed)
    try:
        open_chat = _tell(agent, persona, opener or await _say(agent, persona, 0))
        turn = 1
        while open_chat and (answer := _hear()):
            agent.hear(answer)
            open_chat = _tell(agent, persona, await _say(agent, persona, turn))
            turn += 1
    finally:
        await model.aclose()


def _tell(agent: Agent, persona: str, said: str) -> bool:
    """Show what the persona says; False when it ends the chat with it."""
    words, stop, _ = said.partition(_STOP)
    agent.say(words.strip())
    print_text(f"{persona}: {words.strip()}")
    if stop:
        talk(f"{persona} has ended the chat")
    return not stop


async def _say(agent: Agent, persona: str, turn: int) -> str:
    reply = await agent.speak(f"chat/{persona}/t{turn:02d}")
    cut = reply.outcome is Outcome.TRUNCATED and reply.text.strip()
    if not reply.ok and not cut:
        raise RunStoppedError(
            f"the persona's model gave no usable answer: {reply.outcome}, {reply.reason}"
        )
    return reply.text.strip()


def _hear() -> str:
    """One line of the person at the terminal; empty at the end of input."""
    if sys.stdin.isatty():
        sys.stderr.write("you: ")
        sys.stderr.flush()
    return sys.stdin.readline().strip()
