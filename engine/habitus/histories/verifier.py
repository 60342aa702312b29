"""The verifier: a model that reads one session and says which norms it shows.

It sees the statements only; ``sees_states`` gives it the persona's states as well, which is the
published form and tells it the answer. Explanations come before verdicts.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from habitus.agents import ItemReader, Items, ask
from habitus.content import Prompt
from habitus.histories.lexical import Lexicon
from habitus.histories.simulation import Role
from habitus.personas.portrait import Portrait
from habitus.records import (
    Attempt,
    NormCheck,
    Outcome,
    Request,
    SessionCheck,
    derive_seed,
    rubric_first,
)

_STATE_WORDS = {1: "follows it", 0: "has no stance", -1: "rejects it"}

_ITEM = {
    "type": "object",
    "properties": {
        "explanation": {"type": "string", "maxLength": 300},
        "inferrable_from_text": {"type": "boolean"},
        "implicitly_inferrable": {"type": "boolean"},
        "conversation_norm_adherence": {"type": ["boolean", "null"]},
    },
    "required": [
        "explanation",
        "inferrable_from_text",
        "implicitly_inferrable",
        "conversation_norm_adherence",
    ],
    "additionalProperties": False,
}

_REST = {
    "explicit_culture_revealed": {"type": "boolean"},
    "culture_guess": {"type": "string", "maxLength": 60},
}


@dataclass
class Verifier:
    """Checks sessions.

    Args:
        role: the model and its sampling.
        prompt: placeholders ``norms`` and ``session``.
        lexicon: the lexical check beside the model.
        seed: the seed of the experiment.
        sees_states: give the verifier the persona's states, as published.
        explanation: longest explanation in characters; 0 asks for none.
    """

    role: Role
    prompt: Prompt
    lexicon: Lexicon
    seed: int
    sees_states: bool = False
    explanation: int = 300
    _readers: dict[tuple[str, ...], ItemReader] = field(default_factory=dict)

    async def check(self, portrait: Portrait, attempt: Attempt) -> SessionCheck:
        """What one session shows, for every norm in play."""
        lexical = tuple(
            dict.fromkeys(phrase for t in attempt.turns for phrase in self.lexicon.reveals(t.text))
        )
        answer = await ask(
            self.role.model, self._request(portrait, attempt), self._reader(portrait)
        )
        if answer.failure is not None or answer.value is None:
            failure = answer.failure
            return SessionCheck(
                outcome=failure.outcome if failure else Outcome.UNPARSED,
                reason=failure.reason if failure else "",
                lexical_reveals=lexical,
                calls=answer.calls,
            )
        return self._checked(portrait, answer.value, lexical, answer.calls)

    def _reader(self, portrait: Portrait) -> ItemReader:
        ids = tuple(portrait.labels.values())
        if ids not in self._readers:
            self._readers[ids] = ItemReader("session_check", ids, _item(self.explanation), _REST)
        return self._readers[ids]

    def _request(self, portrait: Portrait, attempt: Attempt) -> Request:
        filled = self.prompt.fill({"norms": self._norms(portrait), "session": transcript(attempt)})
        rubric, rest = rubric_first(filled)
        return Request(
            messages=rest,
            prefix=rubric,
            sampling=self.role.sampling,
            seed=derive_seed(self.seed, "verify", attempt.id),
            stage="filter",
            record=attempt.id,
            context={"role": "verifier", "states": portrait.states_by_label},
        )

    def _norms(self, portrait: Portrait) -> str:
        lines = [f"- {portrait.labels[n]}: {text}" for n, text in portrait.statements.items()]
        if self.sees_states:
            words = (_STATE_WORDS[portrait.states[norm]] for norm in portrait.statements)
            lines = [f"{line} The person {word}." for line, word in zip(lines, words, strict=True)]
        return "\n".join(lines)

    def _checked(
        self,
        portrait: Portrait,
        items: Items,
        lexical: tuple[str, ...],
        calls: tuple[str, ...],
    ) -> SessionCheck:
        read = {n: items.read[label] for n, label in portrait.labels.items() if label in items.read}
        norms = tuple(_norm_check(norm, item) for norm, item in read.items())
        unread = [norm for norm in portrait.labels if norm not in read]
        reveal = items.rest.get("explicit_culture_revealed")
        unread += [name for name in _REST if name not in items.rest]
        return SessionCheck(
            outcome=Outcome.UNPARSED if unread else Outcome.OK,
            reason=f"no readable answer for {', '.join(unread)}" if unread else "",
            norms=norms,
            explicit_reveal=reveal,
            culture_guess=str(items.rest.get("culture_guess", "")),
            lexical_reveals=lexical,
            contradicted=contradictions(portrait, norms),
            calls=calls,
        )


def contradictions(portrait: Portrait, norms: tuple[NormCheck, ...]) -> tuple[str, ...]:
    """Norms with a non-zero state for which a session shows the opposite stance."""
    return tuple(c.norm for c in norms if c.stance != 0 and c.stance == -portrait.states[c.norm])


def transcript(attempt: Attempt) -> str:
    """A session as text, one paragraph a turn."""
    names = {"persona": "PERSON", "assistant": "ASSISTANT"}
    return "\n\n".join(f"{names[t.speaker]}: {t.text}" for t in attempt.turns)


def _norm_check(norm: str, item: Mapping[str, Any]) -> NormCheck:
    return NormCheck(
        norm=norm,
        explanation=item.get("explanation", ""),
        inferrable_from_text=item["inferrable_from_text"],
        implicitly_inferrable=item["implicitly_inferrable"],
        adherence=item["conversation_norm_adherence"],
    )


def _item(explanation: int) -> dict[str, Any]:
    """The schema of one norm's answer; without explanations when 0 characters are allowed."""
    properties: dict[str, Any] = dict(_ITEM["properties"])  # type: ignore[call-overload]
    properties["explanation"] = {"type": "string", "maxLength": explanation}
    if not explanation:
        del properties["explanation"]
    return {**_ITEM, "properties": properties, "required": list(properties)}
