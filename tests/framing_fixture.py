"""Frames and runs of labels to analyse, made up row by row."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterable, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from habitus.framing import AnalysisFile, Codes, Frame, Framing, Labels, analyse
from habitus.framing.coding import Coding
from habitus.judges import find_set
from habitus.records import JudgedItem, Label
from habitus.store import RunDir

MODELS = ("llama", "gemma", "ministral")
LEAST = {"cases": 1, "clusters": 2}


def rules(**more: Any) -> AnalysisFile:
    """An analysis of the characteristics ``ins`` and ``emo`` of models, all rows in one subset."""
    file: dict[str, Any] = {
        "id": "own",
        "title": "Own",
        "compare": {
            "reference": "llama",
            "names": {"llama": "L", "gemma": "G", "ministral": "M"},
        },
        "characteristics": [
            {"id": "ins", "name": "Insider", "judge": "positioning"},
            {"id": "emo", "name": "Emotions", "judge": "anthropomorphism", "variant": "emotions"},
        ],
        "questions": [
            {
                "id": "all",
                "title": "All",
                "prevalence": ["ins"],
                "pairs": [{"causes": ["ins"], "effects": ["emo"]}],
            }
        ],
    }
    return AnalysisFile.model_validate(file | more)


def frame_of(
    labels: Mapping[str, npt.NDArray[Any]],
    models: Sequence[str] = MODELS,
    fields: Mapping[str, Sequence[str]] | None = None,
) -> Frame:
    """A frame of posts by models; each label of shape (posts, models), each field one a post."""
    posts = len(next(iter(labels.values())))
    columns: dict[str, list[str]] = {
        "group": [f"p{i:05d}" for i in range(posts) for _ in models],
        "target": [model for _ in range(posts) for model in models],
    }
    for name, values in (fields or {}).items():
        columns[name] = [value for value in values for _ in models]
    return Frame(
        {name: Codes.of(words) for name, words in columns.items()},
        {name: values.astype(np.int8).ravel() for name, values in labels.items()},
    )


def labels_of(frame: Frame) -> Labels:
    codings = {name: Coding(("Yes",), ("No",), ("Yes",)) for name in frame.labels}
    return Labels({"item": frame}, codings)


def analysed(
    labels: Mapping[str, npt.NDArray[Any]], analysis: AnalysisFile | None = None, **more: Any
) -> Framing:
    """The one result for posts by models."""
    (found,) = analyse(labels_of(frame_of(labels, **more)), analysis or rules())
    return found


# Runs


def items_of(
    posts: int, models: Sequence[str] = MODELS, countries: Sequence[str] = ("india", "korea")
) -> list[JudgedItem]:
    """Answers to posts, by id; categories in turn, ``animals`` least often."""
    categories = ("arts", "food and drink", "tourism", "arts", "kinship", "food and drink")
    return [
        JudgedItem(
            id=f"p{i:04d}/{model}",
            group=f"p{i:04d}",
            target=model,
            question="Is it so?\n\nI ask.",
            response="We do it so.",
            fields={
                "country": countries[i % len(countries)],
                "category": (*categories, "animals")[i // len(countries) % 7],
            },
        )
        for i in range(posts)
        for model in sorted(models)
    ]


def label(item: JudgedItem, judge: str, variant: str = "", **more: Any) -> Label:
    name = f"{item.id}/{judge}" + (f".{variant}" if variant else "")
    return Label(**{"id": name, "item": item.id, "judge": judge, "variant": variant} | more)


@cache
def _verdicts() -> tuple[tuple[str, str, tuple[str, ...], tuple[str, ...]], ...]:
    """Judge, variant, labels and those that count as present, for all verdicts of FRANZ."""
    return tuple(
        (j.file.id, v, j.labels(v).names, j.file.present_of(j.file.variant(v)))
        for j, v in find_set("franz").verdicts()
    )


def franz_labels(items: Iterable[JudgedItem], seed: int = 1) -> list[Label]:
    """All 15 verdicts on items, drawn with a chance of their own for each model."""
    rng = np.random.default_rng(seed)
    chance = {model: 0.25 + 0.2 * i for i, model in enumerate(MODELS)}
    found = []
    for item in items:
        for judge, variant, names, present in _verdicts():
            drawn = rng.random() < chance.get(item.target, 0.5)
            one = next(name for name in names if (name in present) == drawn)
            found.append(label(item, judge, variant, label=one, present=drawn))
    return found


def franz_verdicts() -> list[dict[str, Any]]:
    """What ``labelling.json`` says of the judges of FRANZ."""
    return [
        {
            "judge": judge,
            "variant": variant,
            "labels": list(names),
            "present": list(present),
            "model": "m",
            "form": "json",
            "question": False,
            "batched": False,
        }
        for judge, variant, names, present in _verdicts()
    ]


def label_run(
    path: Path,
    items: Sequence[JudgedItem],
    labels: Sequence[Label],
    made_up: Sequence[str] = (),
    verdicts: Sequence[Mapping[str, Any]] | None = None,
    kind: str = "posts",
) -> Path:
    """A run of labels on the disk."""
    note = {
        "origin": "test",
        "kind": kind,
        "made_up": list(made_up),
        "totals": {"items": len(items), "labels": len(labels)},
        "verdicts": list(franz_verdicts() if verdicts is None else verdicts),
    }

    async def fill(run: RunDir) -> None:
        await asyncio.gather(*(run.records.put("items", item) for item in items))
        await asyncio.gather(*(run.records.put("labels", found) for found in labels))

    with RunDir.create(path, {"kind": "labels"}) as run:
        asyncio.run(fill(run))
        run.write("labelling.json", json.dumps(note).encode())
    return path
