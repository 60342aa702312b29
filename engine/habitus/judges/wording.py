"""What placeholders of a judge's two prompts are filled with, but for what is judged.

``prompt.md`` asks for one variant, ``batch.md`` for several in one call: in place of one name,
definition and examples it has ``{{variants}}``, and ``{{answer}}`` is the JSON to be written.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence

from habitus.content import Prompt
from habitus.judges.examples import ExamplesFile, worked
from habitus.judges.judgefile import Form, JudgeFile, VariantFile

Texts = Iterator[tuple[str, str]]


def placeholders(judge: JudgeFile, *, with_examples: bool) -> set[str]:
    """What ``prompt.md`` must show: all that the judge's files give it."""
    given = {
        "examples": with_examples,
        "answer": bool(judge.answer.as_json or judge.answer.as_sentinel),
        "question_shown": bool(judge.may_see_question),
        "name": bool(judge.variants),
        "definition": bool(judge.variants),
        "asked": bool(judge.questions),
    }
    return set(judge.sees) | {name for name, there in given.items() if there}


def batch_placeholders(judge: JudgeFile) -> set[str]:
    """What ``batch.md`` must show."""
    question = {"question_shown"} if judge.may_see_question else set()
    return {*judge.sees, "variants", "answer"} | question


def texts_of_one(
    judge: JudgeFile, variant: VariantFile | None, examples: ExamplesFile | None, form: Form
) -> Texts:
    """Texts of ``prompt.md``."""
    answer = judge.answer
    if answer.as_json or answer.as_sentinel:
        how = answer.as_json if form == "json" else answer.as_sentinel
        yield "answer", _filled(how, "labels", _listed(judge.labels_of(variant), form))
    if examples:
        yield "examples", worked(examples.of(variant.id if variant else ""), answer, form)
    if variant is not None:
        yield from (("name", variant.name), ("definition", variant.definition))
    if variant is not None and judge.questions:
        yield "asked", _asked(judge, variant)


def texts_of_all(
    judge: JudgeFile, variants: Sequence[VariantFile], examples: ExamplesFile | None
) -> Texts:
    """Texts of ``batch.md``."""
    described = ("\n\n".join(_described(judge, variant, examples)) for variant in variants)
    yield "variants", "\n\n".join(described)
    yield "answer", _form(judge, variants)


def question_text(judge: JudgeFile, question: str) -> str:
    """The question as a judge is shown it that need not see it."""
    return _filled(judge.may_see_question, "question", question) + "\n\n"


def _described(
    judge: JudgeFile, variant: VariantFile, examples: ExamplesFile | None
) -> Iterator[str]:
    """One variant: its key and name, its question, definition, labels and examples."""
    yield f'Key "{variant.id}": {variant.name}'
    if judge.questions:
        yield f"Question: {_asked(judge, variant)}"
    yield variant.definition.strip()
    yield f"Labels: {_listed(judge.labels_of(variant), 'json')}"
    if examples:
        yield worked(examples.of(variant.id), judge.answer, "json")


def _form(judge: JudgeFile, variants: Sequence[VariantFile]) -> str:
    """The JSON that is to be written, with the labels of each variant in it."""
    reasoning, label = map(json.dumps, judge.answer.keys)
    reasons = f'{reasoning}: "...", ' if judge.reasoning else ""
    lines = (
        f'"{variant.id}": {{{reasons}{label}: {_listed(judge.labels_of(variant), "json")}}}'
        for variant in variants
    )
    return "{" + ",\n ".join(lines) + "}"


def _asked(judge: JudgeFile, variant: VariantFile) -> str:
    """The question that is put for a variant, by its family."""
    return _filled(judge.questions[variant.family], "name", variant.name)


def _listed(labels: Sequence[str], form: Form) -> str:
    """The labels as a sentence has them."""
    mark = '"{}"' if form == "json" else "##{}##"
    *most, last = [mark.format(name) for name in labels]
    return f"{', '.join(most)} or {last}"


def _filled(text: str, name: str, value: str) -> str:
    """A text of the judge's file with its one placeholder filled."""
    if not text:
        return ""
    return Prompt("judge.yaml", (("user", text),), frozenset({name})).text({name: value})
