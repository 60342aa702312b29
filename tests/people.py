"""A small culture, one persona of it, the shipped prompts, and models that keep what they were asked."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from habitus.content import Prompt, find, read_prompt
from habitus.experiments.resolving import PROMPT_FILES
from habitus.histories import Lexicon
from habitus.histories.simulation import Role
from habitus.models.scripted import ScriptedModel
from habitus.personas.portrait import Portrait
from habitus.records import NormState, Reply, Request, Sampling

STATEMENTS = {
    "maori_1": "The person opens with talk of family.",
    "maori_2": "The person tries [oils, teas] before pills.",
    "maori_3": "The person decides alone.",
    "maori_4": "The person keeps pain to themselves.",
}
STATES: dict[str, NormState] = {"maori_1": 1, "maori_2": -1, "maori_3": 0, "maori_4": 1}


def portrait(persona: str = "maori-01", states: Mapping[str, NormState] | None = None) -> Portrait:
    """A persona that follows N1 and N4, rejects N2 and has no stance on N3."""
    states = states or STATES
    return Portrait(
        id=persona,
        culture="maori",
        states=states,
        statements={norm: STATEMENTS[norm] for norm in states},
        labels={norm: f"N{norm[-1]}" for norm in states},
        sheet="You are Jo. You talk of family first.",
    )


def prompt(role: str) -> Prompt:
    """A shipped prompt, by the name of what it is for."""
    folder, name, placeholders = PROMPT_FILES[role]
    return read_prompt(find(folder, f"{name}.md"), placeholders)


class Seat:
    """A scripted model that keeps every request and gives each reply a key of its own."""

    def __init__(self, *replies: Reply | str | Callable[[Request], Reply | str]) -> None:
        self.requests: list[Request] = []
        self._replies = replies
        self.model = ScriptedModel("seat", self._answer)

    def _answer(self, request: Request) -> Reply | str:
        self.requests.append(request)
        reply = self._replies[min(len(self.requests), len(self._replies)) - 1]
        reply = reply(request) if callable(reply) else reply
        if isinstance(reply, Reply):
            reply = replace(reply, key=len(self.requests).to_bytes())
        return reply

    @property
    def role(self) -> Role:
        """The model with a sampling."""
        return Role(self.model, Sampling(temperature=0.7, max_tokens=500))

    def seen(self, index: int = -1) -> str:
        """Everything that the model was shown in one call."""
        return "\n".join(message.text for message in self.requests[index].all_messages)


def lexicon(*demonyms: str) -> Lexicon:
    """A small lexicon of ``I am X``."""
    return Lexicon(
        demonyms=demonyms or ("testish",),
        countries=("testland",),
        religions=("tester",),
        faiths=("testing",),
        patterns=("i am {demonym}",),
    )


def stance(shown: bool | None, *, could: bool = True) -> dict[str, Any]:
    """A verifier's answer on one norm: kept to, rejected, or not to be told."""
    return {
        "explanation": "so",
        "inferrable_from_text": could,
        "implicitly_inferrable": shown is not None,
        "conversation_norm_adherence": shown,
    }


def checked(reveal: bool = False, **stances: bool | None) -> dict[str, Any]:
    """A verifier's whole answer for the four norms."""
    items: Sequence[str] = ("N1", "N2", "N3", "N4")
    answer: dict[str, Any] = {label: stance(stances.get(label)) for label in items}
    return answer | {"explicit_culture_revealed": reveal, "culture_guess": "unknown"}
