"""A judge: a rubric with a closed list of labels, read from JSON with the reasoning first."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, Literal

from pydantic import Field

from habitus.agents import ObjectReader, ask
from habitus.content import ContentModel, Found, Prompt, find, load, read_prompt
from habitus.content.fields import Slug
from habitus.models import ChatModel
from habitus.records import Failure, Request, Sampling, Schema, rubric_first

Seen = Literal["query", "response"]


class JudgeFile(ContentModel):
    """``judges/<id>/judge.yaml``."""

    id: Slug
    name: str
    description: str = ""
    sees: tuple[Seen, ...] = Field(min_length=1, description="placeholders of the prompt")
    labels: tuple[str, ...] = Field(min_length=2, description="the closed list of labels")
    present: tuple[str, ...] = Field(min_length=1, description="labels that count as present")
    reasoning: int = Field(default=300, ge=0, description="longest reasoning; 0 asks for none")


def check_judge(judge: JudgeFile) -> Iterator[Found]:
    """Problems that the types do not show."""
    known = ", ".join(judge.labels)
    for index, label in enumerate(judge.present):
        if label not in judge.labels:
            yield Found(("present", index), f"{label!r} is not a label", f"labels: {known}")
    plain = [_plain(label) for label in judge.labels]
    for index, label in enumerate(plain):
        if not label:
            yield Found(("labels", index), "a label needs a letter or a digit")
        elif label in plain[:index]:
            same = judge.labels[plain.index(label)]
            hint = "capitals, spaces, hyphens and underscores do not tell labels apart"
            yield Found(("labels", index), f"label {judge.labels[index]!r} reads as {same!r}", hint)


def _plain(label: str) -> str:
    """A label with capitals made small, and spaces, hyphens and underscores made alike."""
    return re.sub(r"[\s_-]+", " ", label).strip().casefold()


@dataclass(frozen=True, slots=True)
class Labelled:
    """A label with its reasoning, or the failure in its place."""

    label: str | None
    present: bool | None
    reasoning: str
    failure: Failure | None
    calls: tuple[str, ...]


@dataclass(frozen=True)
class Judge:
    """A judge ready to be asked: its file and its prompt."""

    file: JudgeFile
    prompt: Prompt

    async def label(
        self,
        model: ChatModel,
        seen: Mapping[str, str],
        sampling: Sampling,
        seed: int,
        record: str,
    ) -> Labelled:
        """Label what is seen (a text for each name in ``sees``)."""
        rubric, rest = rubric_first(self.prompt.fill(seen))
        request = Request(
            messages=rest,
            prefix=rubric,
            sampling=sampling,
            seed=seed,
            stage=f"judge/{self.file.id}",
            record=record,
            context={"role": "judge", "judge": self.file.id},
        )
        answer = await ask(model, request, self._reader)
        if answer.value is None:
            return Labelled(None, None, "", answer.failure, answer.calls)
        label = str(answer.value["label"])
        reasoning = str(answer.value.get("reasoning", ""))
        return Labelled(label, label in self.file.present, reasoning, None, answer.calls)

    @cached_property
    def _reader(self) -> ObjectReader:
        properties: dict[str, Any] = {}
        if self.file.reasoning:
            properties["reasoning"] = {"type": "string", "maxLength": self.file.reasoning}
        properties["label"] = {"type": "string", "enum": list(self.file.labels)}
        body = {
            "type": "object",
            "properties": properties,
            "required": list(properties),
            "additionalProperties": False,
        }
        return ObjectReader(Schema(f"judge_{self.file.id}", body), self._spelt)

    def _spelt(self, answer: Mapping[str, Any]) -> Mapping[str, Any]:
        """The answer with its label in the spelling of the judge's list, where it is of the list."""
        label = answer.get("label")
        known = {_plain(name): name for name in self.file.labels}
        spelt = known.get(_plain(label), label) if isinstance(label, str) else label
        return answer if spelt == label else {**answer, "label": spelt}


def load_judge(path: Path) -> Judge:
    """Read ``judge.yaml`` and the ``prompt.md`` beside it."""
    file = load(path, JudgeFile, check_judge)
    return Judge(file, read_prompt(path.with_name("prompt.md"), set(file.sees)))


def find_judge(name: str, workspace: Path | None = None) -> Judge:
    """The judge of an id (workspace first) or of a path to its ``judge.yaml``."""
    if name.endswith((".yaml", ".yml")):
        return load_judge(Path(name))
    return load_judge(find("judges", f"{name}/judge.yaml", workspace))
