"""Which models of a run make answers up: what rests on them is marked synthetic everywhere."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import orjson

from habitus.errors import StoreError
from habitus.models import ModelEntry
from habitus.store import RunDir

_FILE = "made_up.json"


def keep_made_up(run: RunDir, entries: Mapping[str, ModelEntry], base: Path) -> None:
    """Write down which models make answers up, or replay answers that were made up.

    Args:
        run: the run.
        entries: its models by name.
        base: where relative paths of replayed runs start.
    """
    found = [name for name, entry in entries.items() if _makes_up(name, entry, base)]
    run.write(_FILE, orjson.dumps(sorted(found)))


def read_made_up(run: RunDir) -> frozenset[str]:
    """The names of the models whose answers no model gave.

    Raises:
        StoreError: nothing was run yet, or the file is damaged.
    """
    path = run.path / _FILE
    try:
        return frozenset(orjson.loads(path.read_bytes()))
    except FileNotFoundError:
        what = f"{run.path} has no {_FILE}: nothing was run yet; give the run command again"
        raise StoreError(what) from None
    except (ValueError, TypeError) as error:
        raise StoreError(f"{path} is damaged ({type(error).__name__}); run again") from None


def _makes_up(name: str, entry: ModelEntry, base: Path) -> bool:
    if entry.backend != "replay":
        return entry.backend in {"planted", "scripted"}
    with RunDir.open(base / entry.options["run"], write=False) as replayed:
        return (entry.options.get("model") or name) in read_made_up(replayed)
