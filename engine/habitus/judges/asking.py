"""What is asked of a judge, and what it says."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from habitus.agents import Answer, Reading, Verdict
from habitus.content import Prompt
from habitus.judges.judgefile import Form
from habitus.records import Failure, Outcome, Prefix, Request, rubric_first

_AROUND = 48  # tokens that keys, label and layout of one verdict may take


@dataclass(frozen=True, slots=True)
class Labelled:
    """A label with its reasoning, or the failure in its place.

    ``others`` are labels that the answer marked elsewhere than where its label stands; ``alias``
    holds the words that were given, where they are another word for the label.
    """

    label: str | None
    present: bool | None
    reasoning: str
    failure: Failure | None
    calls: tuple[str, ...]
    others: tuple[str, ...] = ()
    alias: str = ""


@dataclass(frozen=True, slots=True)
class Asking:
    """How a judge is asked: which variant, in which form, and whether it is shown the question.

    ``form`` None is the form of the judge's file. ``question`` is for judges whose file has
    ``may_see_question``.
    """

    variant: str = ""
    form: Form | None = None
    question: bool = False


@dataclass(frozen=True, slots=True)
class AskingAll:
    """How a judge is asked for several variants in one call; no ids are those that are on.

    Such a call is always answered in JSON: ``form`` is for judges without variants, which are asked
    as usual. ``question`` is as in :class:`Asking`.
    """

    variants: tuple[str, ...] = ()
    form: Form | None = None
    question: bool = False


@dataclass(frozen=True)
class Ready:
    """What requests of one kind share: texts for the prompt, but for what is judged.

    ``prefixes`` holds the rubric that they begin with, once there is one.
    """

    prompt: Prompt
    texts: Mapping[str, str]
    context: Mapping[str, Any]
    prefixes: list[Prefix] = field(default_factory=list)

    def request(self, texts: Mapping[str, str]) -> Request:
        """A request with the rest of the texts filled in."""
        rubric, rest = rubric_first(self.prompt.fill({**self.texts, **texts}))
        return Request(messages=rest, prefix=self._shared(rubric), context=self.context)

    def _shared(self, rubric: Prefix | None) -> Prefix | None:
        """The rubric as it was first made, where it is the same, so that it is hashed once."""
        if rubric is None or (self.prefixes and self.prefixes[0].messages == rubric.messages):
            return self.prefixes[0] if rubric else None
        self.prefixes[:] = [rubric]
        return rubric


def labelled(answer: Answer[Verdict], present: tuple[str, ...]) -> Labelled:
    """What an answer says; ``present`` are the labels that count as the trait being there."""
    found = answer.value
    if found is None:
        return Labelled(None, None, "", answer.failure, answer.calls)
    return Labelled(
        label=found.label,
        present=found.label in present,
        reasoning=found.reasoning,
        failure=None,
        calls=answer.calls,
        others=found.others,
        alias=found.alias,
    )


def answer_of(variant: str, answer: Answer[Mapping[str, Reading[Verdict]]]) -> Answer[Verdict]:
    """One variant's share of an answer for several: its verdict, or why it has none."""
    if answer.value is None:
        return Answer(None, answer.failure, answer.calls)
    reading = answer.value[variant]
    if reading.value is None:
        return Answer(None, Failure(Outcome.UNPARSED, reading.problem), answer.calls)
    return Answer(reading.value, None, answer.calls)


def room(max_tokens: int | None, variants: int, reasoning: int) -> int | None:
    """Room in tokens for the verdicts of several variants, from the room for one.

    The first has the room of one answer. Each other one adds what its part may take: half a token
    for each character of the longest reasoning, and 48 for keys, label and layout; but no
    more than the room of one answer. Nine cues at 512 tokens and 300 characters have 2,096.
    """
    if max_tokens is None:
        return None
    return max_tokens + (variants - 1) * min(max_tokens, reasoning // 2 + _AROUND)
