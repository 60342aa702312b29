"""What is asked of every item: judges with their variants, each by a model, in a form."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

from habitus.errors import UsageError
from habitus.judges import Asking, AskingAll, Form, Judge
from habitus.records import Sampling

Members = Iterable[tuple[Judge, tuple[str, ...]]]


@dataclass(frozen=True, slots=True)
class Task:
    """One judge as it is asked of every item.

    ``form`` None is the form of the judge's file; ``question`` shows the question to a judge that
    may see it; ``batched`` asks for all variants in one call.
    """

    judge: Judge
    variants: tuple[str, ...]
    model: str
    sampling: Sampling
    form: Form | None = None
    question: bool = False
    batched: bool = False

    def asking(self, variant: str) -> Asking:
        """How a variant is asked for."""
        return Asking(variant, self.form, self.question)

    def asking_all(self) -> AskingAll:
        """How all variants are asked for in one call."""
        return AskingAll(self.variants, None, self.question)

    def needs(self) -> set[str]:
        """What an item must have: ``question``, ``response``."""
        seen = {"question" if name == "query" else name for name in self.judge.file.sees}
        return seen | ({"question"} if self.question else set())

    def as_json(self) -> dict[str, Any]:
        """All of the task that can change a label."""
        sampling = self.sampling
        return {
            "judge": self.judge.file.id,
            "variants": list(self.variants),
            "content": self.judge.digest(batched=self.batched),
            "model": self.model,
            "form": "json" if self.batched else self.form or self.judge.file.answer.form,
            "question": self.question,
            "batched": self.batched,
            "temperature": sampling.temperature,
            "top_p": sampling.top_p,
            "max_tokens": sampling.max_tokens,
        }


@dataclass(frozen=True, slots=True)
class Manner:
    """How all judges of a run are asked; None leaves a choice to the judge's file."""

    form: Form | None = None
    question: bool = False
    batched: bool = False
    temperature: float | None = None
    max_tokens: int | None = None


def make_tasks(
    members: Members, models: Mapping[str, str], default: str, manner: Manner
) -> tuple[Task, ...]:
    """The tasks of judges with their variants.

    Args:
        members: judges and the variants that each is asked for.
        models: name of the model by id of the judge, for judges with one of their own.
        default: name of the model of all others.
        manner: how they are asked. The question goes to those judges that may see it, and all
            variants in one call are asked of those that have more than one.

    Raises:
        UsageError: a judge that cannot be asked so, one without a model, or a model for a judge
            that is not asked.
    """
    tasks = tuple(_task(*member, models, default, manner) for member in members)
    unused = models.keys() - {task.judge.file.id for task in tasks}
    if unused:
        raise UsageError(f"a model is given for {min(unused)!r}, which is not among the judges")
    without = [task.judge.file.id for task in tasks if not task.model]
    if without:
        raise UsageError(
            f"no model is given for {', '.join(without)}: add --model MODEL for all judges that "
            "have none of their own"
        )
    if manner.question and not any(task.question for task in tasks):
        raise UsageError("none of these judges can be shown the question by choice")
    if manner.batched and manner.form == "sentinel":
        raise UsageError("several variants in one call are always answered in JSON")
    if manner.batched and not any(task.batched for task in tasks):
        raise UsageError("none of these judges has variants to be asked for in one call")
    return tasks


def _task(
    judge: Judge,
    variants: tuple[str, ...],
    models: Mapping[str, str],
    default: str,
    manner: Manner,
) -> Task:
    own = judge.sampling
    if manner.temperature is not None:
        own = replace(own, temperature=manner.temperature)
    if manner.max_tokens is not None:
        own = replace(own, max_tokens=manner.max_tokens)
    task = Task(
        judge=judge,
        variants=variants,
        model=models.get(judge.file.id, default),
        sampling=own,
        form=manner.form,
        question=manner.question and bool(judge.file.may_see_question),
        batched=manner.batched and len(variants) > 1,
    )
    if task.batched:
        judge.check_all(task.asking_all())
    for variant in () if task.batched else variants:
        judge.check(task.asking(variant))
    return task


def verdicts(tasks: Iterable[Task]) -> Iterator[tuple[Task, str]]:
    """Every verdict on an item, judge by judge."""
    for task in tasks:
        for variant in task.variants:
            yield task, variant
