"""What models turned out not to take, as a run keeps it: ``learned.json``.

A model that rejects a parameter, the system role or two turns of one role is adapted to once, at its
first rejection. What was then really sent stands with every call; this file says it once for each model, in
the words of an entry's ``quirks``.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import orjson

from habitus.errors import StoreError
from habitus.models import ModelEntry, Recorded
from habitus.store import RunDir

_FILE = "learned.json"


def keep_learned(
    run: RunDir, models: Mapping[str, Recorded], entries: Mapping[str, ModelEntry]
) -> None:
    """Write down what differs from the entries; what earlier sessions learned stays."""
    news = {name: _learned(model, entries[name]) for name, model in models.items()}
    news = {name: found for name, found in news.items() if found}
    if news:
        before = read_learned(run)
        whole = before | {name: before.get(name, {}) | found for name, found in news.items()}
        run.write(_FILE, orjson.dumps(whole, option=orjson.OPT_INDENT_2 | orjson.OPT_SORT_KEYS))


def read_learned(run: RunDir) -> dict[str, dict[str, Any]]:
    """Quirks by model that the run found out about; empty where there are none.

    Raises:
        StoreError: the file is damaged.
    """
    path = run.path / _FILE
    try:
        found = orjson.loads(path.read_bytes())
    except FileNotFoundError:
        return {}
    except ValueError as error:
        raise StoreError(f"{path} is damaged ({type(error).__name__}); remove it") from None
    return found if isinstance(found, dict) else {}


def _learned(model: Recorded, entry: ModelEntry) -> dict[str, Any]:
    if model.quirks is None:
        return {}
    now, given = model.quirks.model_dump(mode="json"), entry.quirks.model_dump(mode="json")
    return {name: value for name, value in now.items() if value != given[name]}
