"""``judges/<id>/examples.yaml``: worked examples, written into the prompt at ``{{examples}}``.

An example shows what the judge sees, the reasoning and the label; its answer is written in the
form that the judge is asked for, so that one file serves sentinels and JSON.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from pathlib import Path

from pydantic import Field

from habitus.content import ContentModel, Found, fence, load
from habitus.judges.judgefile import AnswerFile, Form, JudgeFile, check_judge


class ExampleFile(ContentModel):
    """One worked example; ``variant`` names the cue or maxim it belongs to."""

    variant: str = ""
    question: str = ""
    response: str = ""
    reasoning: str = Field(min_length=1)
    label: str


class ExamplesFile(ContentModel):
    """``judges/<id>/examples.yaml``."""

    examples: tuple[ExampleFile, ...] = Field(min_length=1)

    def of(self, variant: str) -> tuple[ExampleFile, ...]:
        """The examples of a variant ("" where the judge has none)."""
        return tuple(example for example in self.examples if example.variant == variant)


def load_examples(path: Path, judge: JudgeFile | None = None) -> ExamplesFile:
    """Read the examples of the judge beside them.

    Raises:
        ContentError: an unknown variant, a label that is not of its list, a text that the judge
            sees and the example lacks, a variant without examples.
    """
    known = judge or load(path.with_name("judge.yaml"), JudgeFile, check_judge)
    return load(path, ExamplesFile, lambda examples: _check(examples, known))


def _check(file: ExamplesFile, judge: JudgeFile) -> Iterator[Found]:
    for index, example in enumerate(file.examples):
        for key, what, hint in _faults(example, judge):
            yield Found(("examples", index, key), what, hint)
    for variant in judge.variants:
        if not file.of(variant.id):
            yield Found(("examples",), f"there is no example for the variant {variant.id!r}")


def _faults(example: ExampleFile, judge: JudgeFile) -> Iterator[tuple[str, str, str]]:
    variant = judge.variant(example.variant)
    if variant is None and (judge.variants or example.variant):
        ids = ", ".join(variant.id for variant in judge.variants) or "none"
        yield "variant", f"{example.variant!r} is not a variant", f"variants: {ids}"
        return
    labels = judge.labels_of(variant)
    if example.label not in labels:
        yield "label", f"{example.label!r} is not a label", f"labels: {', '.join(labels)}"
    question = judge.sees if "query" not in judge.sees else (*judge.sees, "question")
    for key, text in (("question", example.question), ("response", example.response)):
        if key in question and not text:
            yield key, f"the judge sees the {key}, and the example has none", ""
        if key not in question and text:
            yield key, f"the judge does not see the {key}", ""


def worked(examples: Iterable[ExampleFile], answer: AnswerFile, form: Form) -> str:
    """The examples as they stand in a prompt."""
    return "\n\n".join(
        f"Example {number}\n\n{_example(example, answer, form)}"
        for number, example in enumerate(examples, start=1)
    )


def _example(example: ExampleFile, answer: AnswerFile, form: Form) -> str:
    shown = (("Question", example.question), ("Response", example.response))
    parts = [f"{name}:\n{fence(text)}" for name, text in shown if text]
    return "\n".join([*parts, f"Answer:\n{answered(example, answer, form)}"])


def answered(example: ExampleFile, answer: AnswerFile, form: Form) -> str:
    """The answer of an example, in the form that is asked for."""
    if form == "json":
        reasoning, label = answer.keys
        return json.dumps({reasoning: example.reasoning, label: example.label}, ensure_ascii=False)
    token = f"##{example.label}##"
    if answer.place == "start":
        said = f"{token} {example.reasoning}"
    elif answer.place == "last_line":
        said = f"{example.reasoning}\nFinal: {token}"
    else:
        said = f"{example.reasoning} {token}"
    return f"{said} {answer.end}".strip()
