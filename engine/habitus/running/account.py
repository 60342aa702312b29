"""What a run has spent so far, read from its calls, and the budget that is left to a session.

A cap is on the run, all its sessions together. What a fork took over from another run was paid for
there: it is remembered in the manifest and not counted again.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from itertools import islice
from pathlib import Path
from typing import Any

from habitus.models import Budget, Caps, ModelEntry
from habitus.models.spending import Amount, Purse, answered_unseen
from habitus.records import Schema, Usage
from habitus.store import CallCount, RunDir, StoredCall

INHERITED = "inherited"  # key of the manifest: what a fork took over
_SUMS = ("logged", "prompt", "completion", "cached")


def inherited(old: Path) -> dict[str, Any]:
    """What the manifest of a fork of this run remembers: calls and tokens by model."""
    with RunDir.open(old, write=False) as run:
        return {INHERITED: _sums(run.calls.counts())}


def open_budget(run: RunDir, caps: Caps, entries: Mapping[str, ModelEntry]) -> Budget:
    """The budget of a run, with all that it has spent charged."""
    budget = Budget(caps, entries)
    if not caps.limits:
        return budget
    counts = run.calls.counts()
    before: Mapping[str, Mapping[str, int]] = run.manifest.get(INHERITED, {})
    for model, sums in _sums(counts).items():
        if model in entries:
            own = {name: sums[name] - before.get(model, {}).get(name, 0) for name in _SUMS}
            usage = Usage(own["prompt"], own["completion"], own["cached"])
            budget.charge(budget.purse(model).charge(usage, own["logged"]))
    if (caps.tokens is not None or caps.cost) and any(count.uncounted for count in counts):
        _charge_unseen(run, budget, entries, sum(sums["logged"] for sums in before.values()))
    return budget


def caps_in(config: Mapping[str, Any]) -> Caps:
    """The caps in the configuration of a run; none where an older run knows of none."""
    limits: Mapping[str, Any] = config.get("limits") or {}
    return Caps.model_validate(
        {n: limits[n] for n in Caps.model_fields if limits.get(n) is not None}
    )


def _charge_unseen(
    run: RunDir, budget: Budget, entries: Mapping[str, ModelEntry], skip: int
) -> None:
    """Charge answers of which no server counted the tokens at the most they can have taken."""
    for call in islice(run.calls.iterate(), skip, None):
        if call.model in entries and answered_unseen(call.reply):
            budget.charge(replace(_most(budget.purse(call.model), call), calls=0))


def _most(purse: Purse, call: StoredCall) -> Amount:
    texts: Iterable[str] = (text for _, text in call.request["messages"])
    sampling: Mapping[str, Any] = call.request.get("sampling") or {}
    schema = call.request.get("schema")
    size = len(Schema(**schema).canonical) if schema else 0
    return purse.most(texts, size, sampling.get("max_tokens"))


def _sums(counts: Iterable[CallCount]) -> dict[str, dict[str, int]]:
    sums: dict[str, dict[str, int]] = {}
    for count in counts:
        of_model = sums.setdefault(count.model, dict.fromkeys(_SUMS, 0))
        for name in _SUMS:
            of_model[name] += getattr(count, name)
    return sums
