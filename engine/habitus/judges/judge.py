"""A judge that is ready to be asked: its file, its prompts and its worked examples."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any

from habitus.agents import (
    FieldReader,
    LabelList,
    SentinelReader,
    VerdictsReader,
    ask,
    verdicts_schema,
)
from habitus.content import Prompt, find, load, read_prompt
from habitus.content.places import beside
from habitus.errors import ContentError, NotFoundError, Place, Problem, UsageError
from habitus.judges.asking import Asking, AskingAll, Labelled, Ready, answer_of, labelled, room
from habitus.judges.examples import ExamplesFile, load_examples
from habitus.judges.judgefile import Form, JudgeFile, VariantFile, check_judge
from habitus.judges.wording import (
    batch_placeholders,
    placeholders,
    question_text,
    texts_of_all,
    texts_of_one,
)
from habitus.models import ChatModel
from habitus.records import Request, Sampling

_AS_USUAL = Asking()
_ALL = AskingAll()


@dataclass(frozen=True)
class Judge:
    """A judge ready to be asked; ``batch`` is the prompt for several variants in one call."""

    file: JudgeFile
    prompt: Prompt
    examples: ExamplesFile | None = None
    batch: Prompt | None = None

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

    def digest(self, *, batched: bool = False) -> str:
        """Names all of the judge that a label depends on: file, prompt and examples."""
        content = {
            "file": self.file.model_dump(mode="json", exclude={"name", "description"}),
            "prompt": (self._batch_prompt() if batched else self.prompt).parts,
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

    def check_all(self, asking: AskingAll = _ALL) -> None:
        """Refuse what this judge cannot be asked in one call.

        Raises:
            NotFoundError: it has no such variant.
            UsageError: it has variants and no ``batch.md``, or as :meth:`check`.
        """
        form = None if self.file.variants else asking.form
        for variant in asking.variants or self.variants:
            self.check(Asking(variant, form, asking.question))
        if self.file.variants:
            self._batch_prompt()

    async def label(
        self,
        model: ChatModel,
        seen: Mapping[str, str],
        sampling: Sampling,
        seed: int,
        record: str,
        asking: Asking = _AS_USUAL,
    ) -> Labelled:
        """Label what is seen: a text for each name in ``sees``; others are not looked at.

        Raises:
            NotFoundError, UsageError: as :meth:`check`.
        """
        request = self._request(self._ready_for(asking), seen, question=asking.question)
        request = replace(request, sampling=sampling, seed=seed, record=record)
        answer = await ask(model, request, self._reader(asking, tuple(seen.values())))
        return labelled(answer, self._present(asking.variant))

    async def label_all(
        self,
        model: ChatModel,
        seen: Mapping[str, str],
        sampling: Sampling,
        seed: int,
        record: str,
        asking: AskingAll = _ALL,
    ) -> dict[str, Labelled]:
        """Label what is seen by several variants in one call, by their ids.

        A variant that the answer leaves out, gives twice or gives no label of its list is unparsed;
        the others keep their verdicts. All share the calls that were made. ``sampling`` is that of
        one verdict: its ``max_tokens`` grow with the number of variants, as
        :func:`habitus.judges.asking.room` says. A judge without variants is asked as by
        :meth:`label`, and its verdict stands under "".

        Raises:
            NotFoundError, UsageError: as :meth:`check_all`.
        """
        if not self.file.variants:
            self.check_all(asking)
            one = Asking("", asking.form, asking.question)
            return {"": await self.label(model, seen, sampling, seed, record, one)}
        ready, reader = self._ready_for_all(asking)
        limit = room(sampling.max_tokens, len(reader.fields), self.file.reasoning)
        wider = replace(sampling, max_tokens=limit)
        request = self._request(ready, seen, question=asking.question)
        request = replace(request, sampling=wider, seed=seed, record=record)
        answer = await ask(model, request, replace(reader, judged=tuple(seen.values())))
        return {
            variant: labelled(answer_of(variant, answer), self._present(variant))
            for variant in reader.fields
        }

    def _request(self, ready: Ready, seen: Mapping[str, str], *, question: bool) -> Request:
        texts: dict[str, str] = {name: seen[name] for name in self.file.sees}
        if self.file.may_see_question:
            shown = question_text(self.file, seen["question"]) if question else ""
            texts["question_shown"] = shown
        return replace(ready.request(texts), stage=f"judge/{self.file.id}")

    @cached_property
    def _ready(self) -> dict[Asking, Ready]:
        return {}

    @cached_property
    def _ready_all(self) -> dict[AskingAll, tuple[Ready, VerdictsReader]]:
        return {}

    def _ready_for(self, asking: Asking) -> Ready:
        """What all requests of one kind share, made at the first of them."""
        ready = self._ready.get(asking)
        if ready is None:
            self.check(asking)
            variant = self._variant(asking.variant)
            texts = dict(texts_of_one(self.file, variant, self.examples, self._form(asking)))
            labels = self.labels(asking.variant).names
            context = self._context(variant=asking.variant, labels=labels)
            ready = self._ready[asking] = Ready(self.prompt, texts, context)
        return ready

    def _ready_for_all(self, asking: AskingAll) -> tuple[Ready, VerdictsReader]:
        """The same for several variants, with the reader of their answers."""
        ready = self._ready_all.get(asking)
        if ready is None:
            self.check_all(asking)
            ids = dict.fromkeys(asking.variants or self.variants)
            fields = {variant: self._field_reader(variant, ()) for variant in ids}
            labels = {variant: reader.labels.names for variant, reader in fields.items()}
            chosen = [found for found in map(self._variant, ids) if found]
            texts = dict(texts_of_all(self.file, chosen, self.examples))
            context = self._context(variants=tuple(ids), labels=labels)
            shared = Ready(self._batch_prompt(), texts, context)
            schema = verdicts_schema(f"judge_{self.file.id}", fields)
            ready = self._ready_all[asking] = (shared, VerdictsReader(schema, fields))
        return ready

    def _batch_prompt(self) -> Prompt:
        if self.batch is None:
            raise UsageError(
                f"judge {self.file.id} cannot be asked for its variants in one call: there is no "
                "batch.md beside its prompt.md"
            )
        return self.batch

    def _context(self, **what: Any) -> dict[str, Any]:
        """What a made-up model needs to play the judge; it is not sent."""
        place = self.file.answer.place
        return {"role": "judge", "judge": self.file.id, "place": place, **what}

    def _form(self, asking: Asking) -> Form:
        return asking.form or self.file.answer.form

    def _present(self, variant: str) -> tuple[str, ...]:
        return self.file.present_of(self._variant(variant))

    def _reader(self, asking: Asking, judged: tuple[str, ...]) -> FieldReader | SentinelReader:
        if self._form(asking) == "json":
            return self._field_reader(asking.variant, judged)
        answer = self.file.answer
        return SentinelReader(self.labels(asking.variant), answer.place, answer.end, judged)

    def _field_reader(self, variant: str, judged: tuple[str, ...]) -> FieldReader:
        name = "_".join(filter(None, ("judge", self.file.id, variant)))
        keys = self.file.answer.keys
        return FieldReader(name, self.labels(variant), keys, self.file.reasoning, judged)

    def _variant(self, name: str) -> VariantFile | None:
        found = self.file.variant(name)
        if found is None and (name or self.file.variants):
            known = [variant.id for variant in self.file.variants]
            raise NotFoundError(f"variant of judge {self.file.id}", name, known)
        return found


def load_judge(path: Path) -> Judge:
    """Read ``judge.yaml``, and ``prompt.md``, ``batch.md`` and ``examples.yaml`` beside it.

    Raises:
        ContentError: anything that is wrong in one of the files, with its place.
    """
    file = load(path, JudgeFile, check_judge)
    pool = beside(path, "examples.yaml")
    examples = load_examples(pool, file) if pool.is_file() else None
    names = placeholders(file, with_examples=examples is not None)
    prompt = read_prompt(beside(path, "prompt.md"), names)
    return Judge(file, prompt, examples, _read_batch(beside(path, "batch.md"), file))


def _read_batch(path: Path, file: JudgeFile) -> Prompt | None:
    """The prompt for several variants, where there is one."""
    if not path.is_file():
        return None
    if not file.variants:
        what = f"judge {file.id} has no variants to ask for in one call"
        raise ContentError([Problem(what, Place(path, 1, 1), "remove this file")])
    return read_prompt(path, batch_placeholders(file))


def find_judge(name: str, workspace: Path | None = None) -> Judge:
    """The judge of an id (workspace first) or of a path to its ``judge.yaml``."""
    if name.endswith((".yaml", ".yml")):
        return load_judge(Path(name))
    return load_judge(find("judges", f"{name}/judge.yaml", workspace))
