"""What models turned out not to take, as a run keeps it: ``learned.json``.

A model that rejects a parameter, the system role or two turns of one role is adapted to once, at its
first rejection. What was then really sent stands with every call; this file says it once for each model, in
the words of an entry's ``quirks``, with the address at which it was learned. A later session of the run
begins with it, so that no request is rejected twice for the same reason. Another entry or another
address starts anew, and what an entry states itself is never overruled by what is remembered.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import orjson
from pydantic import BaseModel, ConfigDict

from habitus.errors import StoreError
from habitus.models import ModelEntry, Recorded
from habitus.models.quirks import Quirks
from habitus.store import RunDir

_FILE = "learned.json"


class _Learned(BaseModel):
    """What was learned of one model; without ``at``, by a version that did not say where."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    quirks: dict[str, Any]
    at: str | None = None
    entry: str = ""

    def holds_for(self, name: str, entry: ModelEntry) -> bool:
        """Whether it was learned of this entry, where it leads to now."""
        return self.at == entry.base_url and self.entry == entry.identity(name)


class Learning:
    """What one session begins with, and what it adds.

    Args:
        entries: the models of the session by name, as the experiment has them.
        path: the run that it goes on with, or begins with the answers of; None for a new one.
    """

    def __init__(self, entries: Mapping[str, ModelEntry], path: Path | None) -> None:
        self._entries = entries
        self._known = _read(path) if path is not None else {}
        self._seen: dict[str, Quirks | None] = {}

    def entry(self, name: str) -> ModelEntry:
        """The entry of a model with what is known of it; the same one where nothing is."""
        entry, known = self._entries[name], self._known.get(name)
        if known is None or not known.holds_for(name, entry):
            return entry
        stated = entry.quirks.model_fields_set
        more = {field: value for field, value in known.quirks.items() if field not in stated}
        quirks = Quirks.model_validate(entry.quirks.model_dump() | more)
        return entry.model_copy(update={"quirks": quirks})

    def keep(self, run: RunDir, models: Mapping[str, Recorded]) -> None:
        """Write down what is new, at once: a session that is killed has learned it too."""
        news = {
            name: model.quirks
            for name, model in models.items()
            if model.quirks is not self._seen.get(name)
        }
        if not news:
            return
        self._seen |= news
        for name, quirks in news.items():
            found = _differences(quirks, self._entries[name])
            if found:
                self._known[name] = self._joined(name, found)
        if self._known and self._known != _read(run.path):
            notes = {name: known.model_dump() for name, known in self._known.items()}
            run.write(_FILE, orjson.dumps(notes, option=orjson.OPT_INDENT_2 | orjson.OPT_SORT_KEYS))

    def _joined(self, name: str, found: Mapping[str, Any]) -> _Learned:
        entry, known = self._entries[name], self._known.get(name)
        before = known.quirks if known and known.holds_for(name, entry) else {}
        quirks = {**before, **found}
        return _Learned(quirks=quirks, at=entry.base_url, entry=entry.identity(name))


def read_learned(run: RunDir) -> dict[str, dict[str, Any]]:
    """Quirks by model that the run found out about; empty where there are none.

    Raises:
        StoreError: the file is damaged.
    """
    return {name: dict(known.quirks) for name, known in _read(run.path).items()}


def _read(folder: Path) -> dict[str, _Learned]:
    path = folder / _FILE
    try:
        found = orjson.loads(path.read_bytes())
        return {name: _note(note) for name, note in found.items()}
    except FileNotFoundError:
        return {}
    except (ValueError, AttributeError) as error:
        what = f"{path} is damaged ({type(error).__name__}); remove it, and it is learned anew"
        raise StoreError(what) from None


def _note(note: Any) -> _Learned:
    """One model's note; earlier versions wrote the quirks alone."""
    known = isinstance(note, dict) and "quirks" in note
    learned = _Learned.model_validate(note if known else {"quirks": note})
    Quirks.model_validate(learned.quirks)
    return learned


def _differences(quirks: Quirks | None, entry: ModelEntry) -> dict[str, Any]:
    if quirks is None:
        return {}
    now, given = quirks.model_dump(mode="json"), entry.quirks.model_dump(mode="json")
    return {name: value for name, value in now.items() if value != given[name]}
