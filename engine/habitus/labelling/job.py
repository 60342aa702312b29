"""A run of labels: the items, and one label for each item, judge and variant.

The order is judge by judge, and within a judge item by item: the rubric, which stands first in a
judge's prompt, is then one prefix for all items. The first request of a prompt goes alone, so that
the others find its prefix. Judges that different models ask run side by side.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property, partial
from itertools import islice
from typing import Any

from habitus.judges import Labelled
from habitus.labelling.note import (
    ITEMS,
    LABELS,
    Labelling,
    LabelsConfig,
    VerdictNote,
    capped,
    keep_labelling,
)
from habitus.labelling.source import Source
from habitus.labelling.tasks import Task, verdicts
from habitus.models import Caps, ChatModel, ModelEntry
from habitus.records import Failure, JudgedItem, Label, Outcome, derive_seed
from habitus.running import ALIKE, MODELS_MAY_CHANGE, Session, together, windowed
from habitus.store import RunDir

Ask = Callable[[JudgedItem], Awaitable[tuple[Label, ...]]]
_PUT_AT_ONCE = 512


@dataclass(frozen=True)
class LabellingJob:
    """Judges over a source of items.

    Args:
        source: the items.
        tasks: what is asked of each of them.
        models: the models that the tasks name.
        seed: what the seeds of all calls are derived from.
        limit: the first items of the source only.
        caps: the most that the run may spend.
    """

    source: Source
    tasks: tuple[Task, ...]
    models: Mapping[str, ModelEntry]
    seed: int = 0
    limit: int | None = None
    caps: Caps = field(default_factory=Caps)

    may_change = MODELS_MAY_CHANGE
    alike = ALIKE

    @cached_property
    def config(self) -> Mapping[str, Any]:
        """What labels depend on: items, judges and how they are asked, models, seed."""
        return {
            "kind": "labels",
            "items": self.source.digest,
            "seed": self.seed,
            "judges": [task.as_json() for task in self.tasks],
            "models": {name: e.model_dump(mode="json") for name, e in self.models.items()},
            **capped(self.caps),
        }

    @property
    def kept(self) -> type[LabelsConfig]:
        """What the configuration is as it is read back."""
        return LabelsConfig

    @property
    def manifest(self) -> Mapping[str, Any]:
        """Seed and origin."""
        return {"seed": self.seed, "origin": self.source.name}

    @property
    def totals(self) -> Mapping[str, int]:
        """How many records each table will have; of a limited run, at most."""
        items, answered = (
            min(n, self.limit or n) for n in (self.source.size, self.source.answered)
        )
        return {ITEMS: items, LABELS: answered * sum(len(task.variants) for task in self.tasks)}

    @property
    def calls(self) -> int:
        """How many calls the labels take, when none has to be asked for once more."""
        answered = min(self.source.answered, self.limit or self.source.answered)
        return answered * sum(1 if task.batched else len(task.variants) for task in self.tasks)

    def begin(self, run: RunDir) -> None:
        """Keep what the labels are of."""
        note = Labelling(
            origin=self.source.name,
            kind=self.source.kind,
            made_up=tuple(self.source.made_up),
            totals=dict(self.totals),
            verdicts=tuple(_note(task, variant) for task, variant in verdicts(self.tasks)),
        )
        keep_labelling(run, note)

    async def work(self, session: Session) -> None:
        """Keep the items, then label them."""
        items = islice(self.source.read(), self.limit)
        await windowed(items, partial(session.put, ITEMS), _PUT_AT_ONCE)
        await together(self.models, partial(self._ask_model, session))

    def leave(self, run: RunDir) -> None:
        """Nothing follows from labels that is not counted when it is asked for."""

    def asked(self) -> Mapping[str, Any]:
        """How many items."""
        return {"limit": self.limit}

    def covered_by(self, asked: Mapping[str, Any]) -> bool:
        """Whether as many were asked for before."""
        most = asked["limit"]
        return most is None or (self.limit is not None and self.limit <= most)

    async def _ask_model(self, session: Session, name: str) -> None:
        """All tasks of a model, one after the other."""
        model = session.models[name]
        width = 2 * self.models[name].concurrency
        for task in self.tasks:
            if task.model == name:
                for ask in self._asks(task, model):
                    items = self._answered(session.store)
                    await _pilot_then(items, partial(_put, session, ask), width)

    def _answered(self, run: RunDir) -> Iterator[JudgedItem]:
        """The items that have a response to judge; of an earlier session there may be more."""
        wanted = self._wanted
        for item in run.records.iterate(ITEMS, JudgedItem):
            if item.outcome is Outcome.OK and (wanted is None or item.id in wanted):
                yield item

    @cached_property
    def _wanted(self) -> frozenset[str] | None:
        """The ids of the first items, where not all are asked for."""
        if self.limit is None:
            return None
        return frozenset(item.id for item in islice(self.source.read(), self.limit))

    def _asks(self, task: Task, model: ChatModel) -> Iterator[Ask]:
        if task.batched:
            yield partial(self._label_all, task, model)
        else:
            for variant in task.variants:
                yield partial(self._label, task, model, variant)

    async def _label(
        self, task: Task, model: ChatModel, variant: str, item: JudgedItem
    ) -> tuple[Label, ...]:
        name = label_id(item.id, task.judge.file.id, variant)
        seen = _seen(task, item)
        found = _nothing_to_see(seen) or await task.judge.label(
            model, seen, task.sampling, self._seed(name), item.id, task.asking(variant)
        )
        return (_made(item, task, variant, found),)

    async def _label_all(self, task: Task, model: ChatModel, item: JudgedItem) -> tuple[Label, ...]:
        seen = _seen(task, item)
        nothing = _nothing_to_see(seen)
        if nothing:
            return tuple(_made(item, task, variant, nothing) for variant in task.variants)
        found = await task.judge.label_all(
            model,
            seen,
            task.sampling,
            self._seed(label_id(item.id, task.judge.file.id)),
            item.id,
            task.asking_all(),
        )
        return tuple(_made(item, task, variant, found[variant]) for variant in task.variants)

    def _seed(self, name: str) -> int:
        return derive_seed(self.seed, "judge", name)


def label_id(item: str, judge: str, variant: str = "") -> str:
    """``<item>/<judge>`` or ``<item>/<judge>.<variant>``."""
    return f"{item}/{judge}.{variant}" if variant else f"{item}/{judge}"


async def _put(session: Session, ask: Ask, item: JudgedItem) -> None:
    for label in await ask(item):
        await session.put(LABELS, label)


async def _pilot_then(
    items: Iterator[JudgedItem], work: Callable[[JudgedItem], Awaitable[None]], width: int
) -> None:
    """The first item alone, so that the others find their shared prefix; then the others."""
    await windowed(islice(items, 1), work, 1)
    await windowed(items, work, width)


def _seen(task: Task, item: JudgedItem) -> dict[str, str]:
    texts = {"question": item.question, "query": item.question, "response": item.response}
    wanted = set(task.judge.file.sees) | ({"question"} if task.question else set())
    return {name: text for name, text in texts.items() if name in wanted}


def _nothing_to_see(seen: Mapping[str, str]) -> Labelled | None:
    """No label, where a text that the judge goes by is blank: no model is asked then."""
    blank = [name for name, text in seen.items() if not text.strip()]
    if not blank:
        return None
    failure = Failure(Outcome.UNPARSED, f"the item has no {blank[0]}")
    return Labelled(None, None, "", failure, ())


def _made(item: JudgedItem, task: Task, variant: str, found: Labelled) -> Label:
    failure = found.failure
    return Label(
        id=label_id(item.id, task.judge.file.id, variant),
        outcome=failure.outcome if failure else Outcome.OK,
        reason=failure.reason if failure else "",
        item=item.id,
        judge=task.judge.file.id,
        variant=variant,
        label=found.label,
        present=found.present,
        reasoning=found.reasoning,
        others=found.others,
        alias=found.alias,
        calls=found.calls,
    )


def _note(task: Task, variant: str) -> VerdictNote:
    asked, file = task.as_json(), task.judge.file
    return VerdictNote(
        judge=file.id,
        variant=variant,
        labels=task.judge.labels(variant).names,
        present=file.present_of(file.variant(variant)),
        model=task.model,
        form=asked["form"],
        question=task.question,
        batched=task.batched,
    )
