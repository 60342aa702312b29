"""Answers from a stored run: the same requests, without asking any model.

    old: {backend: replay, options: {run: runs/first, model: gpt}}

A request is looked up under the identity that the named model had in the stored run. What was
not asked there is an error here, with that reason.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from habitus.content import ContentModel
from habitus.errors import ModelError
from habitus.models.entry import ModelEntry, Opening
from habitus.models.model import CallLog
from habitus.models.scripted import first_line
from habitus.records import Outcome, Reply, Request, call_key


class ReplayOptions(ContentModel):
    """``options:`` of a replay entry; ``model`` defaults to the entry's own name."""

    run: Path
    model: str | None = None


class ReplayModel:
    """Looks answers up in the call log of another run."""

    def __init__(self, name: str, log: CallLog, identity: str) -> None:
        self.name = name
        self._log = log
        self._identity = identity

    async def complete(self, request: Request) -> Reply:
        """The stored answer, or an error when there is none."""
        found = self._log.find(call_key(self._identity, request))
        if found is None:
            return Reply(Outcome.ERROR, reason="not in the replayed run")
        return replace(found, stored=False, key=b"")

    async def aclose(self) -> None:
        """The log belongs to whoever opened it."""


def open_replay(name: str, entry: ModelEntry, opening: Opening) -> ReplayModel:
    """The replaying model of an entry."""
    try:
        options = ReplayOptions.model_validate(entry.options)
    except ValidationError as error:
        raise ModelError(f"model {name!r}: options: {first_line(error)}") from None
    if opening.stored_run is None:
        raise ModelError(f"model {name!r}: backend replay works only inside a run")
    configuration, log = opening.stored_run(opening.base / options.run)
    return ReplayModel(name, log, _identity(configuration, options.model or name, options.run))


def _identity(configuration: Mapping[str, Any], model: str, run: Path) -> str:
    entries: Mapping[str, Any] = configuration.get("models", {})
    if model not in entries:
        raise ModelError(f"run {run} has no model {model!r}; it has {', '.join(entries)}")
    return ModelEntry.model_validate(entries[model]).identity(model)
