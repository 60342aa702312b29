"""Runs of other versions: what this version does not know of one is refused before it is touched.

    refuse_unknown(run, Experiment, kept)      # readers: tables and configuration
    refuse_newer(path, job)                    # before a session: every record as well

A run of an earlier version lacks what came later, and everything that came later has a value for that.
A run of a later one may hold what would be lost without a word if it went on here: a table, a field
of a record, a key of the configuration. The module does not know what any of them mean.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from pydantic import BaseModel, ValidationError

import habitus
from habitus.errors import StoreError
from habitus.records import TABLES
from habitus.running.job import Job
from habitus.store import RunDir

_NEWER = {"extra_forbidden", "literal_error"}
_TOLD = 6


def refuse_newer(path: Path, job: Job) -> None:
    """Refuse to go on with a run that holds what this version does not know; nothing is changed.

    Raises:
        StoreError: with what it is, and what to do.
    """
    try:
        run = RunDir.open(path, write=False)
    except StoreError:  # only a writer can mend what a kill left, and only a writer is to say it
        return
    with run:
        refuse_unknown(run, job.kept, run.config)
        for table in run.records.stages():
            _read_records(run, table, whole=_versions(run.manifest) != {habitus.__version__})


def refuse_unknown(run: RunDir, kind: type[BaseModel], config: Mapping[str, Any]) -> None:
    """Refuse a run with tables that are not known here, or a configuration with such keys.

    Args:
        run: the run.
        kind: what the configuration is.
        config: the configuration, or the part of it that ``kind`` describes.

    Raises:
        StoreError: with what it is, and what to do.
    """
    tables = [table for table in run.records.stages() if table not in TABLES]
    if tables:
        raise StoreError(f"{run.path} holds {_named('records of', tables)}, {_what_to_do(run)}")
    keys = list(dict.fromkeys(_unknown(kind, config)))
    if keys:
        what = f"{run.path / 'experiment.json'} has {_named('the key', keys)}"
        raise StoreError(f"{what}, {_what_to_do(run)}")


def versions(run: RunDir) -> list[str]:
    """The versions that worked on a run, in the order in which they first did."""
    names = [str(note.get("habitus", "")) for note in run.sessions]
    return list(dict.fromkeys(names or [str(run.manifest.get("habitus", ""))]))


def _versions(manifest: Mapping[str, Any]) -> set[str]:
    """Those that are named; a run from before they were has none."""
    return {str(note.get("habitus", "")) for note in manifest.get("sessions", ())}


def _read_records(run: RunDir, table: str, *, whole: bool) -> None:
    """Read a table: all of it, or, where only this version wrote it, its ends."""
    kind = TABLES[table]
    if whole:
        for _ in run.records.iterate(table, kind):
            pass
        return
    ids = run.records.ids(table)
    for name in {ids[0], ids[-1]}:
        run.records.get(table, name, kind)


def _unknown(kind: type[BaseModel], config: Mapping[str, Any]) -> Iterator[str]:
    try:
        kind.model_validate(config)
    except ValidationError as error:
        for problem in error.errors(include_url=False):
            if problem["type"] in _NEWER:
                yield ".".join(map(str, problem["loc"]))


def _named(what: str, names: list[str]) -> str:
    more = f" and {len(names) - _TOLD} more" if len(names) > _TOLD else ""
    return f"{what} {', '.join(names[:_TOLD])}{more}"


def _what_to_do(run: RunDir) -> str:
    return (
        f"which this version of habitus ({habitus.__version__}) does not know; use the version that "
        f"wrote it ({', '.join(versions(run))}), or a newer one"
    )
