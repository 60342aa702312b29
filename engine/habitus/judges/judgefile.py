"""``judges/<id>/judge.yaml``: what a judge is called, sees and may answer.

A judge with variants asks one question in several ways (a cue, a maxim): one prompt, filled with
each variant's name, definition and examples. Variants that are off are asked for by name only.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Literal

from pydantic import Field

from habitus.agents import END_TOKEN, LabelPlace, plain_label
from habitus.content import ContentModel, Found
from habitus.content.fields import Line, Slug

Seen = Literal["query", "question", "response"]
Form = Literal["json", "sentinel"]
_PLACEHOLDER = re.compile(r"\{\{\s*([\w-]+)[^}]*\}\}")


class SamplingFile(ContentModel):
    """How answers are drawn where nothing else is said."""

    temperature: float = Field(default=0.7, ge=0, le=2)
    top_p: float | None = Field(default=None, gt=0, le=1)
    max_tokens: int = Field(default=512, ge=1)


class AnswerFile(ContentModel):
    """The form of the answer; a text for each form lets the caller choose between the two."""

    form: Form = Field(default="json", description="the form that is asked for by default")
    place: LabelPlace = Field(default="end", description="where the label stands, in sentinels")
    end: str = Field(default=END_TOKEN, description="what ends an answer in sentinels; may be ''")
    keys: tuple[str, str] = Field(
        default=("reasoning", "label"), description="keys of the JSON: the reasoning, the label"
    )
    as_sentinel: str = Field(default="", description="how a sentinel is asked for; {{labels}}")
    as_json: str = Field(default="", description="how JSON is asked for; {{labels}}")


class VariantFile(ContentModel):
    """One cue or maxim of a judge; labels of its own stand in place of the judge's."""

    id: Slug
    name: Line
    definition: str = Field(min_length=1)
    family: str = Field(default="", description="which of the judge's questions is put")
    on: bool = Field(default=True, description="false: asked only when named")
    labels: tuple[str, ...] = Field(default=(), min_length=2)
    present: tuple[str, ...] = Field(default=(), min_length=1)


class JudgeFile(ContentModel):
    """``judges/<id>/judge.yaml``."""

    id: Slug
    name: str
    description: str = ""
    sees: tuple[Seen, ...] = Field(min_length=1, description="placeholders of the prompt")
    may_see_question: str = Field(
        default="",
        description="text with {{question}} that the caller may have put at {{question_shown}}",
    )
    labels: tuple[str, ...] = Field(
        default=(), min_length=2, description="the closed list of labels"
    )
    present: tuple[str, ...] = Field(
        default=(), min_length=1, description="labels that count as present, or as adhering"
    )
    aliases: dict[str, tuple[str, ...]] = Field(
        default_factory=dict, description="other words for a label"
    )
    reasoning: int = Field(default=300, ge=0, description="longest reasoning in JSON; 0: none")
    answer: AnswerFile = AnswerFile()
    sampling: SamplingFile = SamplingFile()
    questions: dict[str, str] = Field(
        default_factory=dict, description="question by family of variants; {{name}}"
    )
    variants: tuple[VariantFile, ...] = Field(default=(), min_length=1)

    def variant(self, name: str) -> VariantFile | None:
        """The variant of an id, or None."""
        return next((variant for variant in self.variants if variant.id == name), None)

    def labels_of(self, variant: VariantFile | None) -> tuple[str, ...]:
        """The closed list, which a variant may have of its own."""
        return (variant and variant.labels) or self.labels

    def present_of(self, variant: VariantFile | None) -> tuple[str, ...]:
        """Labels that count as present, or as adhering."""
        return (variant and variant.present) or self.present


def check_judge(judge: JudgeFile) -> Iterator[Found]:
    """Problems that the types do not show."""
    own = [bool(variant.labels and variant.present) for variant in judge.variants]
    for key in ("labels", "present"):
        if not getattr(judge, key) and not (own and all(own)):
            yield Found((), f"missing key {key!r}")
    yield from _check_labels(judge.labels, judge.present, ())
    yield from _check_aliases(judge)
    yield from _check_answer(judge)
    yield from _check_variants(judge)


def _check_labels(
    labels: Sequence[str], present: Sequence[str], at: tuple[str | int, ...]
) -> Iterator[Found]:
    known = ", ".join(labels)
    for index, label in enumerate(present):
        if labels and label not in labels:
            yield Found((*at, "present", index), f"{label!r} is not a label", f"labels: {known}")
    plain = [plain_label(label) for label in labels]
    for index, label in enumerate(plain):
        place = (*at, "labels", index)
        if not any(character.isalnum() for character in label):
            yield Found(place, "a label needs a letter or a digit")
        elif "#" in label or "\n" in label:
            yield Found(place, "a label stands on one line and has no '#'")
        elif label in plain[:index]:
            same = labels[plain.index(label)]
            hint = "capitals, spaces, hyphens and underscores do not tell labels apart"
            yield Found(place, f"label {labels[index]!r} reads as {same!r}", hint)


def _check_aliases(judge: JudgeFile) -> Iterator[Found]:
    owner = {plain_label(label): label for label in judge.labels}
    for label, words in judge.aliases.items():
        if label not in judge.labels:
            hint = f"labels: {', '.join(judge.labels)}"
            yield Found(("aliases", label), f"{label!r} is not a label", hint)
            continue
        for index, word in enumerate(words):
            other = owner.setdefault(plain_label(word), label)
            if other != label:
                what = f"{word!r} already stands for {other!r}"
                yield Found(("aliases", label, index), what)


def _check_answer(judge: JudgeFile) -> Iterator[Found]:
    answer = judge.answer
    texts = {"as_sentinel": answer.as_sentinel, "as_json": answer.as_json}
    if any(texts.values()) and not texts[f"as_{answer.form}"]:
        what = f"the form is {answer.form}, and as_{answer.form} does not say how it is asked for"
        yield Found(("answer",), what)
    if answer.keys[0].casefold() == answer.keys[1].casefold():
        yield Found(("answer", "keys", 1), "the two keys of the JSON are the same")
    for key, text in texts.items():
        yield from _check_text(text, {"labels"}, ("answer", key))
    yield from _check_text(judge.may_see_question, {"question"}, ("may_see_question",))
    if judge.may_see_question and "question" in judge.sees:
        yield Found(("may_see_question",), "the judge sees the question anyway", "leave one out")


def _check_variants(judge: JudgeFile) -> Iterator[Found]:
    for family, text in judge.questions.items():
        yield from _check_text(text, {"name"}, ("questions", family))
    ids = [plain_label(variant.id) for variant in judge.variants]
    for index, variant in enumerate(judge.variants):
        at: tuple[str | int, ...] = ("variants", index)
        if ids[index] in ids[:index]:
            hint = "hyphens and underscores do not tell ids apart"
            yield Found((*at, "id"), f"there are two variants {variant.id!r}", hint)
        if judge.questions and variant.family not in judge.questions:
            hint = f"families: {', '.join(judge.questions)}"
            yield Found((*at, "family"), f"there is no question for {variant.family!r}", hint)
        if bool(variant.labels) != bool(variant.present):
            yield Found(
                at, "a variant with labels of its own says which are present, and the reverse"
            )
        yield from _check_labels(variant.labels, variant.present, at)


def _check_text(text: str, wanted: set[str], at: tuple[str | int, ...]) -> Iterator[Found]:
    """A text of the file with placeholders: those it needs, and no others."""
    if not text:
        return
    found = {match[1] for match in _PLACEHOLDER.finditer(text)}
    for name in sorted(found - wanted):
        yield Found(at, f"unknown placeholder {{{{{name}}}}}", f"known here: {', '.join(wanted)}")
    for name in sorted(wanted - found):
        yield Found(at, f"missing placeholder {{{{{name}}}}}")
