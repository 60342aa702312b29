"""A judge that is ready to be asked: its file, its prompt and its worked examples."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

from habitus.agents import FieldReader, LabelList, SentinelReader, ask
from habitus.content import Prompt, find, load, read_prompt
from habitus.errors import NotFoundError, UsageError
from habitus.judges.examples import ExamplesFile, load_examples, worked
from habitus.judges.judgefile import Form, JudgeFile, VariantFile, check_judge
from habitus.models import ChatModel
from habitus.records import Failure, Prefix, Request, Sampling, rubric_first


@dataclass(frozen=True, slots=True)
class Labelled:
    """A label with its reasoning, or the failure in its place.

    ``others`` are labels that the answer marked elsewhere than where its label stands.
    """

    label: str | None
    present: bool | None
    reasoning: str
    failure: Failure | None
    calls: tuple[str, ...]
    others: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Asking:
    """How a judge is asked: which variant, in which form, and whether it is shown the question.

    ``form`` None is the form of the judge's file. ``question`` is for judges whose file has
    ``may_see_question``.
    """

    variant: str = ""
    form: Form | None = None
    question: bool = False


@dataclass(frozen=True)
class _Ready:
    """What the requests of one variant and form share; ``prefixes`` holds their one rubric."""

    variant: str
    form: Form
    labels: LabelList
    present: tuple[str, ...]
    texts: Mapping[str, str]
    context: Mapping[str, Any]
    prefixes: list[Prefix] = field(default_factory=list)

    def shared(self, rubric: Prefix | None) -> Prefix | None:
        """The rubric as it was first made, where it is the same, so that it is hashed once."""
        if rubric is None or (self.prefixes and self.prefixes[0].messages == rubric.messages):
            return self.prefixes[0] if rubric else None
        self.prefixes[:] = [rubric]
        return rubric


@dataclass(frozen=True)
class Judge:
    """A judge ready to be asked."""

    file: JudgeFile
    prompt: Prompt
    examples: ExamplesFile | None = None

    @property
    def variants(self) -> tuple[str, ...]:
        """Ids of the variants that are on; one empty id for a judge without variants."""
        if not self.file.variants:
            return ("",)
        return tuple(variant.id for variant in self.file.variants if variant.on)

    @property
    def sampling(self) -> Sampling:
        """How answers are drawn where the caller does not say."""
        own = self.file.sampling
        return Sampling(own.temperature, own.top_p, own.max_tokens)

    @cached_property
    def digest(self) -> str:
        """Names all of the judge that a label depends on: file, prompt and examples."""
        content = {
            "file": self.file.model_dump(mode="json", exclude={"name", "description"}),
            "prompt": self.prompt.parts,
            "examples": self.examples.model_dump(mode="json") if self.examples else None,
        }
        return hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()

    def labels(self, variant: str = "") -> LabelList:
        """The closed list of labels of a variant, with other words for them."""
        aliases = {word: label for label, words in self.file.aliases.items() for word in words}
        return LabelList(self.file.labels_of(self._variant(variant)), aliases)

    def check(self, asking: Asking) -> None:
        """Refuse what this judge cannot be asked.

        Raises:
            NotFoundError: it has no such variant.
            UsageError: it has no text for the form, or does not take the question.
        """
        self._variant(asking.variant)
        answer = self.file.answer
        if asking.form not in {None, answer.form} and not (answer.as_json and answer.as_sentinel):
            raise UsageError(
                f"judge {self.file.id} answers as {answer.form} only; its file needs as_sentinel "
                "and as_json under answer for a choice"
            )
        if asking.question and not self.file.may_see_question:
            raise UsageError(f"judge {self.file.id} has no may_see_question in its file")

    async def label(
        self,
        model: ChatModel,
        seen: Mapping[str, str],
        sampling: Sampling,
        seed: int,
        record: str,
        asking: Asking = Asking(),
    ) -> Labelled:
        """Label what is seen: a text for each name in ``sees``; others are not looked at.

        Raises:
            NotFoundError, UsageError: as :meth:`check`.
        """
        ready = self._ready_for(asking)
        texts = dict(ready.texts)
        texts.update((name, seen[name]) for name in self.file.sees)
        if self.file.may_see_question:
            texts["question_shown"] = self._question(seen) if asking.question else ""
        rubric, rest = rubric_first(self.prompt.fill(texts))
        request = Request(
            messages=rest,
            prefix=ready.shared(rubric),
            sampling=sampling,
            seed=seed,
            stage=f"judge/{self.file.id}",
            record=record,
            context=ready.context,
        )
        answer = await ask(model, request, self._reader(ready, tuple(seen.values())))
        verdict = answer.value
        if verdict is None:
            return Labelled(None, None, "", answer.failure, answer.calls)
        present = verdict.label in ready.present
        return Labelled(
            verdict.label, present, verdict.reasoning, None, answer.calls, verdict.others
        )

    @cached_property
    def _ready(self) -> dict[Asking, _Ready]:
        return {}

    def _ready_for(self, asking: Asking) -> _Ready:
        """What all requests of one kind share, made at the first of them."""
        ready = self._ready.get(asking)
        if ready is None:
            self.check(asking)
            form = asking.form or self.file.answer.form
            variant = self._variant(asking.variant)
            labels = self.labels(asking.variant)
            texts = dict(self._texts(variant, form, labels))
            context = self._context(asking, labels)
            ready = _Ready(
                asking.variant, form, labels, self.file.present_of(variant), texts, context
            )
            self._ready[asking] = ready
        return ready

    def _context(self, asking: Asking, labels: LabelList) -> dict[str, Any]:
        """What a made-up model needs to play the judge; it is not sent."""
        return {
            "role": "judge",
            "judge": self.file.id,
            "variant": asking.variant,
            "labels": labels.names,
            "place": self.file.answer.place,
        }

    def _texts(
        self, variant: VariantFile | None, form: Form, labels: LabelList
    ) -> Iterator[tuple[str, str]]:
        """What placeholders of the prompt are filled with, but for what is judged."""
        answer = self.file.answer
        if answer.as_json or answer.as_sentinel:
            how = answer.as_json if form == "json" else answer.as_sentinel
            yield "answer", _filled(how, "labels", _listed(labels, form))
        if self.examples:
            examples = self.examples.of(variant.id if variant else "")
            yield "examples", worked(examples, answer, form)
        if variant is not None:
            yield from (("name", variant.name), ("definition", variant.definition))
        if variant is not None and self.file.questions:
            yield "asked", _filled(self.file.questions[variant.family], "name", variant.name)

    def _question(self, seen: Mapping[str, str]) -> str:
        return _filled(self.file.may_see_question, "question", seen["question"]) + "\n\n"

    def _reader(self, ready: _Ready, judged: tuple[str, ...]) -> FieldReader | SentinelReader:
        answer = self.file.answer
        if ready.form == "sentinel":
            return SentinelReader(ready.labels, answer.place, answer.end, judged)
        name = "_".join(filter(None, ("judge", self.file.id, ready.variant)))
        return FieldReader(name, ready.labels, answer.keys, self.file.reasoning, judged)

    def _variant(self, name: str) -> VariantFile | None:
        found = self.file.variant(name)
        if found is None and (name or self.file.variants):
            known = [variant.id for variant in self.file.variants]
            raise NotFoundError(f"variant of judge {self.file.id}", name, known)
        return found


def _listed(labels: LabelList, form: Form) -> str:
    """The labels as a sentence has them."""
    mark = '"{}"' if form == "json" else "##{}##"
    *most, last = [mark.format(name) for name in labels.names]
    return f"{', '.join(most)} or {last}"


def _filled(text: str, name: str, value: str) -> str:
    """A text of the judge's file with its one placeholder filled."""
    if not text:
        return ""
    return Prompt("judge.yaml", (("user", text),), frozenset({name})).text({name: value})


def load_judge(path: Path) -> Judge:
    """Read ``judge.yaml``, and ``prompt.md`` and ``examples.yaml`` beside it.

    Raises:
        ContentError: anything that is wrong in one of the files, with its place.
    """
    file = load(path, JudgeFile, check_judge)
    beside = path.with_name("examples.yaml")
    examples = load_examples(beside, file) if beside.is_file() else None
    names = _placeholders(file, with_examples=examples is not None)
    return Judge(file, read_prompt(path.with_name("prompt.md"), names), examples)


def _placeholders(file: JudgeFile, *, with_examples: bool) -> set[str]:
    """What a prompt must show: all that the judge's files give it."""
    given = {
        "examples": with_examples,
        "answer": bool(file.answer.as_json or file.answer.as_sentinel),
        "question_shown": bool(file.may_see_question),
        "name": bool(file.variants),
        "definition": bool(file.variants),
        "asked": bool(file.questions),
    }
    return set(file.sees) | {name for name, there in given.items() if there}


def find_judge(name: str, workspace: Path | None = None) -> Judge:
    """The judge of an id (workspace first) or of a path to its ``judge.yaml``."""
    if name.endswith((".yaml", ".yml")):
        return load_judge(Path(name))
    return load_judge(find("judges", f"{name}/judge.yaml", workspace))
