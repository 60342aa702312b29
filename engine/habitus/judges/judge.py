"""A judge that is ready to be asked: its file, its prompt and its worked examples."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from habitus.agents import FieldReader, LabelList, SentinelReader, ask
from habitus.content import Prompt, find, load, read_prompt
from habitus.errors import NotFoundError, UsageError
from habitus.judges.examples import ExamplesFile, load_examples, worked
from habitus.judges.judgefile import Form, JudgeFile, VariantFile, check_judge
from habitus.models import ChatModel
from habitus.records import Failure, Request, Sampling, rubric_first


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
        self.check(asking)
        form = asking.form or self.file.answer.form
        rubric, rest = rubric_first(self.prompt.fill(self._values(seen, asking, form)))
        request = Request(
            messages=rest,
            prefix=rubric,
            sampling=sampling,
            seed=seed,
            stage=f"judge/{self.file.id}",
            record=record,
            context=self._context(asking),
        )
        reader = self._reader(form, asking.variant, tuple(seen.values()))
        answer = await ask(model, request, reader)
        verdict = answer.value
        if verdict is None:
            return Labelled(None, None, "", answer.failure, answer.calls)
        present = verdict.label in self.file.present_of(self._variant(asking.variant))
        return Labelled(
            verdict.label, present, verdict.reasoning, None, answer.calls, verdict.others
        )

    def _context(self, asking: Asking) -> dict[str, Any]:
        """What a made-up model needs to play the judge; it is not sent."""
        return {
            "role": "judge",
            "judge": self.file.id,
            "variant": asking.variant,
            "labels": self.labels(asking.variant).names,
            "place": self.file.answer.place,
        }

    def _values(self, seen: Mapping[str, str], asking: Asking, form: Form) -> dict[str, str]:
        """What each placeholder of the prompt is filled with."""
        shown = {name: seen[name] for name in self.file.sees}
        return shown | {
            name: text
            for name, text in self._texts(seen, asking, form).items()
            if name in self.prompt.placeholders
        }

    def _texts(self, seen: Mapping[str, str], asking: Asking, form: Form) -> dict[str, str]:
        variant = self._variant(asking.variant)
        answer = self.file.answer
        how = answer.as_json if form == "json" else answer.as_sentinel
        texts = {"answer": _filled(how, "labels", self._listed(asking.variant, form))}
        if self.examples:
            texts["examples"] = worked(self.examples.of(asking.variant), answer, form)
        question = self.file.may_see_question if asking.question else ""
        texts["question_shown"] = (
            _filled(question, "question", seen["question"]) + "\n\n" if question else ""
        )
        if variant is not None:
            texts |= {"name": variant.name, "definition": variant.definition}
            put = self.file.questions.get(variant.family, "")
            texts["asked"] = _filled(put, "name", variant.name)
        return texts

    def _listed(self, variant: str, form: Form) -> str:
        """The labels as a sentence has them."""
        mark = '"{}"' if form == "json" else "##{}##"
        *most, last = [mark.format(name) for name in self.labels(variant).names]
        return f"{', '.join(most)} or {last}"

    def _reader(
        self, form: Form, variant: str, judged: tuple[str, ...]
    ) -> FieldReader | SentinelReader:
        answer = self.file.answer
        labels = self.labels(variant)
        if form == "sentinel":
            return SentinelReader(labels, answer.place, answer.end, judged)
        name = "_".join(filter(None, ("judge", self.file.id, variant)))
        return FieldReader(name, labels, answer.keys, self.file.reasoning, judged)

    def _variant(self, name: str) -> VariantFile | None:
        found = self.file.variant(name)
        if found is None and (name or self.file.variants):
            known = [variant.id for variant in self.file.variants]
            raise NotFoundError(f"variant of judge {self.file.id}", name, known)
        return found


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
