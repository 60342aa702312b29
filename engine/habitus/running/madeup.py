"""Which models of a run make answers up: what rests on them is marked synthetic everywhere."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import orjson

from habitus.errors import StoreError
from habitus.models import ModelEntry
from habitus.store import RunDir

_FILE = "made_up.json"
_MAKING_UP = frozenset({"planted", "scripted"})


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
        return _of_before(run)
    except (ValueError, TypeError) as error:
        raise StoreError(f"{path} is damaged ({type(error).__name__}); run again") from None


def _of_before(run: RunDir) -> frozenset[str]:
    """What a run of a version that kept no such file says by its models."""
    if not run.calls.counts():
        what = f"{run.path} has no {_FILE}: nothing was run yet; give the run command again"
        raise StoreError(what)
    backends = {name: entry.get("backend") for name, entry in run.config["models"].items()}
    if "replay" in backends.values():
        raise StoreError(
            f"{run.path} has no {_FILE}: an earlier version of habitus made it, and whether the answers "
            "that it replays were made up is not known; give its command once more, which asks nothing"
        )
    return frozenset(name for name, backend in backends.items() if backend in _MAKING_UP)


def _makes_up(name: str, entry: ModelEntry, base: Path) -> bool:
    if entry.backend != "replay":
        return entry.backend in _MAKING_UP
    with RunDir.open(base / entry.options["run"], write=False) as replayed:
        return (entry.options.get("model") or name) in read_made_up(replayed)
