"""Runs of labels, made by hand: items, labels, and what the run says of itself."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from habitus.records import JudgedItem, Label, Outcome
from habitus.store import RunDir

POSITIONING: dict[str, Any] = {
    "judge": "positioning",
    "labels": ["Insider", "Outsider"],
    "present": ["Insider"],
}
GENERALIZING: dict[str, Any] = {
    "judge": "generalizing",
    "labels": ["Generalizing", "Non-Generalizing"],
    "present": ["Generalizing"],
}
QUANTITY: dict[str, Any] = {
    "judge": "maxims",
    "variant": "quantity",
    "labels": ["APPROPRIATE", "UNDER", "OVER"],
    "present": ["APPROPRIATE"],
}
EMOTIONS: dict[str, Any] = {
    "judge": "anthropomorphism",
    "variant": "emotions",
    "labels": ["Yes", "No"],
    "present": ["Yes"],
}


def item(
    group: str, target: str, title: str = "Rice?", body: str = "Which?", **more: Any
) -> JudgedItem:
    """The answer of a target to a post."""
    given: dict[str, Any] = {
        "id": f"{group}/{target}",
        "group": group,
        "target": target,
        "question": f"{title}\n\n{body}",
        "response": "SECRET answer",
        "fields": {"country": "india", "category": "food and drink", "subreddit": "IndianFood"},
    }
    return JudgedItem(**{**given, **more})


def label(of: str, verdict: dict[str, Any], given: str | None, **more: Any) -> Label:
    """What a judge says of an item; None is an answer that could not be read."""
    judge, variant = verdict["judge"], verdict.get("variant", "")
    return Label(
        id=f"{of}/{judge}.{variant}" if variant else f"{of}/{judge}",
        item=of,
        judge=judge,
        variant=variant,
        label=given,
        present=None if given is None else given in verdict["present"],
        outcome=Outcome.OK if given is not None else Outcome.UNPARSED,
        reason="" if given is not None else "no label",
        reasoning="SECRET reasoning",
        **more,
    )


def labelled_run(
    path: Path,
    items: Iterable[JudgedItem],
    labels: Iterable[Label],
    verdicts: Sequence[dict[str, Any]],
    **more: Any,
) -> Path:
    """A run with these records."""
    items, labels = list(items), list(labels)
    asked = {"variant": "", "model": "m", "form": "sentinel", "question": False, "batched": False}
    about = {
        "origin": "posts.parquet",
        "kind": "posts",
        "made_up": [],
        "totals": {"items": len(items), "labels": len(labels)},
        "verdicts": [{**asked, **verdict} for verdict in verdicts],
    }

    async def fill(run: RunDir) -> None:
        puts = [run.records.put("items", found) for found in items]
        puts += [run.records.put("labels", found) for found in labels]
        await asyncio.gather(*puts)

    with RunDir.create(path, {"kind": "labels"}) as run:
        asyncio.run(fill(run))
        run.write("labelling.json", json.dumps({**about, **more}).encode())
    return path
