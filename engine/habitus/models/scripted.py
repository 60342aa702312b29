"""Models that answer by a script: for tests, for demonstrations of failure, for planted runs.

Three ways to write a script:

- from Python: ``ScriptedModel("name", lambda request: "text")``;
- as ``options: {rules: [...]}`` of an entry: the first rule that matches answers;
- as ``options: {script: helpers}``: plays every helping role of an experiment without a model.
  It answers through the real prompts and schemas: its recommendations carry a marker, and its
  evaluator finds a recommendation met when the response carries the same marker.

Answers depend on the request alone, never on the order of requests.
"""

from __future__ import annotations

import asyncio
import json
import re
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Annotated, Any, Literal

from pydantic import Field, ValidationError, field_validator

from habitus.content import ContentModel
from habitus.content.visible import has_words
from habitus.errors import ModelError
from habitus.models.entry import ModelEntry, Opening
from habitus.records import Outcome, Reply, Request, Usage
from habitus.records.seeds import uniform

Script = Callable[[Request], Reply | str]
Probability = Annotated[float, Field(ge=0, le=1)]

MARKER = re.compile(r"\[\[([^\[\]\s]+)\]\]")
_ITEM = re.compile(r"norm_id: (\S+)\n.*\n *recommendation: .*?\[\[([^\[\]\s]+)\]\]")


def marker(recommendation: str) -> str:
    """The text by which a scripted evaluator knows that a recommendation is met."""
    return f"[[{recommendation}]]"


class Rule(ContentModel):
    """One rule: when it applies, and how the call ends then."""

    role: str | None = Field(default=None, description="persona, evaluator, target, ...")
    when: str | None = Field(default=None, description="regular expression on the last message")
    reply: str | tuple[str, ...] = Field(default="", description="text, or texts to draw from")
    reasoning: str = ""
    outcome: Outcome = Outcome.OK
    reason: str = ""

    @field_validator("when")
    @classmethod
    def _expression(cls, when: str | None) -> str | None:
        try:
            re.compile(when or "")
        except re.error as error:
            raise ValueError(f"no regular expression: {error}") from None
        return when

    @field_validator("reply")
    @classmethod
    def _texts(cls, reply: str | tuple[str, ...]) -> str | tuple[str, ...]:
        if reply == ():
            raise ValueError("a list of replies must hold at least one")
        return reply

    def matches(self, request: Request) -> bool:
        """Whether the rule applies to a request."""
        if self.role is not None and request.context.get("role") != self.role:
            return False
        return self.when is None or bool(re.search(self.when, request.all_messages[-1].text))

    def answer(self, request: Request) -> Reply:
        """The reply of the rule."""
        text = self.reply
        if not isinstance(text, str):
            place = uniform(request.seed or 0, "rule", request.record, request.repeat)
            text = text[int(place * len(text))]
        return Reply(self.outcome, text, reason=self.reason, reasoning=self.reasoning)


class ScriptedOptions(ContentModel):
    """``options:`` of a scripted entry. The shares concern the verifier of ``helpers``."""

    script: Literal["helpers"] | None = None
    rules: tuple[Rule, ...] = ()
    shown: Probability = Field(default=0.4, description="share of norms a session shows")
    agreement: Probability = Field(default=1.0, description="share shown as the persona holds them")
    reveal: Probability = Field(default=0.0, description="share of sessions with a reveal")
    delay: Annotated[float, Field(ge=0, le=60)] = Field(
        default=0.0, description="seconds before each answer, to watch a run or to stop it"
    )


class ScriptedModel:
    """A model that answers by a function of the request, after ``delay`` seconds."""

    def __init__(self, name: str, script: Script, delay: float = 0.0) -> None:
        self.name = name
        self._script = script
        self._delay = delay

    async def complete(self, request: Request) -> Reply:
        """What the script says, with tokens counted as words; no words are an empty answer."""
        if self._delay:
            await asyncio.sleep(self._delay)
        reply = self._script(request)
        if isinstance(reply, str):
            reply = Reply(Outcome.OK, reply)
        if reply.ok and not has_words(reply.text):
            reply = replace(reply, outcome=Outcome.UNPARSED, reason="empty")
        if reply.usage == Usage():
            prompt = sum(message.text.count(" ") + 1 for message in request.all_messages)
            reply = replace(reply, usage=Usage(prompt, reply.text.count(" ") + 1, 0))
        return reply

    async def aclose(self) -> None:
        """Nothing to give back."""


def open_scripted(name: str, entry: ModelEntry, _opening: Opening) -> ScriptedModel:
    """The scripted model of an entry."""
    try:
        options = ScriptedOptions.model_validate(entry.options)
    except ValidationError as error:
        raise ModelError(f"model {name!r}: options: {first_line(error)}") from None
    helpers = Helpers(options)

    def script(request: Request) -> Reply | str:
        for rule in options.rules:
            if rule.matches(request):
                return rule.answer(request)
        if options.script is None:
            return Reply(Outcome.ERROR, reason="no rule of the script applies")
        return helpers(request)

    return ScriptedModel(name, script, options.delay)


def first_line(error: ValidationError) -> str:
    """The first thing wrong with some options, in one line."""
    first = error.errors()[0]
    return f"{'.'.join(map(str, first['loc']))}: {first['msg']}"


class Helpers:
    """Plays persona, assistant, verifier, recommender, evaluator, judge and target."""

    def __init__(self, options: ScriptedOptions) -> None:
        self.options = options
        self._roles: Mapping[str, Script] = {
            "persona": self._persona,
            "assistant": self._assistant,
            "dialogue": self._dialogue,
            "verifier": self._verifier,
            "recommender": self._recommender,
            "evaluator": self._evaluator,
            "judge": self._judge,
        }

    def __call__(self, request: Request) -> Reply | str:
        """The answer of the role that the request is for."""
        return self._roles.get(str(request.context.get("role")), self._target)(request)

    def _persona(self, request: Request) -> str:
        return f"Let me add one thing about it, number {_number(request)}."

    def _assistant(self, request: Request) -> str:
        return f"I see. Tell me more about point {_number(request)}, please."

    def _target(self, request: Request) -> str:
        text = f"Here is what I would do, option {_number(request)}."
        after = request.context.get("answer_after")
        return f"I thought about it.\n{after}\n{text}" if after else text

    def _dialogue(self, request: Request) -> str:
        words = {1: "follow", 0: "neutral", -1: "avoid"}
        states = "\n".join(f"{n}: {words[s]}" for n, s in request.context["states"].items())
        talk = f"ASSISTANT: {self._assistant(request)}\nPERSONA: {self._persona(request)}\n"
        return f"{talk}ASSISTANT: Good to know.\nNORM STATES\n{states}"

    def _verifier(self, request: Request) -> str:
        states: Mapping[str, int] = request.context["states"]
        answer: dict[str, Any] = {n: self._check(request, n, s) for n, s in states.items()}
        reveal = self._draw(request, "reveal") < self.options.reveal
        answer |= {"explicit_culture_revealed": reveal, "culture_guess": "unknown"}
        return json.dumps(answer)

    def _check(self, request: Request, norm: str, state: int) -> dict[str, Any]:
        shown = self._draw(request, f"shown/{norm}") < self.options.shown
        agrees = self._draw(request, f"agrees/{norm}") < self.options.agreement
        stance = None
        if state and shown:
            stance = (state > 0) == agrees
        answer = {
            "explanation": "by script",
            "inferrable_from_text": True,
            "implicitly_inferrable": stance is not None,
            "conversation_norm_adherence": stance,
        }
        asked = request.schema.body["properties"][norm]["properties"] if request.schema else answer
        return {key: value for key, value in answer.items() if key in asked}

    def _recommender(self, request: Request) -> str:
        text = f"Meets the point {marker(request.context['recommendation'])}."
        return json.dumps({"recommendation": text})

    def _evaluator(self, request: Request) -> str:
        """An item is met when its marker stands in the prompt once more than in the item."""
        text = "\n".join(message.text for message in request.messages)
        found = Counter(MARKER.findall(text))
        marked = dict(_ITEM.findall(text))
        fields = request.schema.body["properties"] if request.schema else {}
        verdicts = {
            label: _item(item["properties"], met=found[marked.get(label, "")] > 1)
            for label, item in fields.items()
        }
        return json.dumps(verdicts)

    def _judge(self, request: Request) -> str:
        """The first label (of each variant), in the form and place that the judge asks for."""
        if request.schema is not None:
            return json.dumps(_labelled(request.schema.body))
        token = f"##{(request.context.get('labels') or ['Yes'])[0]}##"
        first = request.context.get("place") == "start"
        return f"{token} By script." if first else f"By script.\nFinal: {token} <|END|>"

    def _draw(self, request: Request, what: str) -> float:
        return uniform(request.seed or 0, what, request.record, request.attempt)


def _item(properties: Mapping[str, Any], *, met: bool) -> dict[str, Any]:
    answer: dict[str, Any] = {"norm": "-", "recommendation": "-", "reasoning": "by script"}
    return {key: answer.get(key, met) for key in properties}


def _labelled(schema: Mapping[str, Any]) -> Any:
    """The first label wherever a schema asks for one."""
    if "properties" in schema:
        return {key: _labelled(field) for key, field in schema["properties"].items()}
    return schema.get("enum", ["by script"])[0]


def _number(request: Request) -> int:
    return int(uniform(request.seed or 0, "number", request.record, request.repeat) * 1_000_000)
