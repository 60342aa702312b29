"""A run directory: everything about one run, complete and portable.

    with RunDir.begin(path, config, manifest={"seeds": ..., "content": ...}) as run:
        reply = run.calls.find(key)
        await run.calls.add(key, request, reply, model)
        await run.records.put("responses", response)
        run.records.export()

    manifest.json     versions, content hashes, seeds, when it was made
    experiment.json   the resolved configuration, in one spelling
    run.sqlite        calls and records, durable
    records/          the records of each stage as JSON lines, by id
    digests.json      what the other files should be, for --verify
    results.json, log.txt, lock

One process writes; any number may read meanwhile, and readers write nothing. The manifest is
written last, so a directory with a manifest is a whole run.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import replace
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from habitus.errors import ConfigChangedError, StoreError
from habitus.store import database, digests
from habitus.store.calls import CallStore
from habitus.store.canonical import allowed, canonical, changes, digest, exactly
from habitus.store.files import Lock, left_locked, refuse_links, write_whole
from habitus.store.journal import Item, Journal
from habitus.store.manifest import NAME as _MANIFEST
from habitus.store.manifest import checked, made_now, session_notes, with_session
from habitus.store.stages import RecordStore
from habitus.store.verification import Verification, verify
from habitus.store.writer import Writer

_EXPERIMENT = "experiment.json"
_DATABASE = "run.sqlite"
_RECORDS = "records"
_LOCK = "lock"
_WRITTEN = (
    _LOCK,
    _RECORDS,
    _DATABASE,
    *(f"{_DATABASE}-{end}" for end in ("journal", "wal", "shm")),
)
_TOLD = 12  # changes of a configuration that are told one by one
# What a creation that was cut short can leave behind.
_UNFINISHED = {
    _LOCK, _EXPERIMENT, _DATABASE, f"{_DATABASE}-journal", f"{_DATABASE}-wal", f"{_DATABASE}-shm",
    _RECORDS, f".{_EXPERIMENT}.tmp", f".{_MANIFEST}.tmp", "log.txt",
}  # fmt: skip


class RunDir:
    """An open run directory. Made by ``create``, ``open``, ``begin`` or ``fork``."""

    def __init__(self, path: Path, lock: Lock | None) -> None:
        """With a lock the run is open for writing; the lock is let go on ``close``."""
        self.path = path
        self._lock = lock
        self._config, self._manifest = _read(path)
        self._journal: Journal | None = None
        self._writer: Writer[Item] | None = None
        unwritten: dict[bytes, bytes] = {}
        if lock is not None:
            self._journal = Journal(path / _DATABASE, unwritten)
            self._writer = Writer(self._journal.commit)
        try:
            self._reader = database.Reader(
                path / _DATABASE,
                beside_writer=lock is not None,
                killed=lock is None and left_locked(path / _LOCK),
            )
        except BaseException:
            if self._journal is not None:
                self._journal.close()
            raise
        self.calls = CallStore(self._reader, self._writer, unwritten)
        self.records = RecordStore(self._reader, self._writer, path / _RECORDS)

    @classmethod
    def create(
        cls, path: Path, config: Mapping[str, Any], manifest: Mapping[str, Any] | None = None
    ) -> Self:
        """Make a new run and open it for writing.

        Args:
            path: a directory that is empty, not there yet, or left by an unfinished creation.
            config: the resolved configuration, JSON values only.
            manifest: what the run wants to remember beside the versions: content hashes, seeds.

        Raises:
            StoreError: if something else is there, or the place cannot be written to.
            RunLockedError: if another process is making the same run.
        """
        lock = _claim(path)
        try:
            _fill(path, config, manifest or {})
            return cls(path, lock)
        except BaseException:
            lock.release()
            raise

    @classmethod
    def open(
        cls,
        path: Path,
        *,
        write: bool = True,
        config: Mapping[str, Any] | None = None,
        may_change: Collection[str] = (),
    ) -> Self:
        """Open a run.

        Args:
            path: the run directory.
            write: for reading (False) no lock is needed and nothing is written.
            config: the configuration to go on with; it must be the stored one.
            may_change: dotted fields that may differ, with wildcards for one part each
                (``models.*.base_url``); a field covers all below it, and
                ``+content.*`` what was not set before. Their new values are kept.

        Raises:
            ConfigChangedError: with every field that differs, its old and its new value.
            RunLockedError: if another process writes to the run.
            StoreError: if this is no run, or one that cannot be read.
        """
        _require(path)
        if write:
            refuse_links(path, _WRITTEN)
        lock = Lock(path / _LOCK) if write else None
        try:
            if config is not None:
                _adopt(path, config, may_change, keep=write)
            return cls(path, lock)
        except BaseException:
            if lock is not None:
                lock.release()
            raise

    @classmethod
    def begin(
        cls,
        path: Path,
        config: Mapping[str, Any],
        *,
        manifest: Mapping[str, Any] | None = None,
        may_change: Collection[str] = (),
    ) -> Self:
        """Go on with the run at ``path``, or make it."""
        if (path / _MANIFEST).exists():
            return cls.open(path, config=config, may_change=may_change)
        return cls.create(path, config, manifest)

    @classmethod
    def fork(
        cls,
        old: Path,
        new: Path,
        config: Mapping[str, Any],
        manifest: Mapping[str, Any] | None = None,
    ) -> Self:
        """Make a new run that starts with the stored calls of an old one, and no records.

        Calls whose key the new configuration does not change are found and not made again.
        """
        with cls.open(old, write=False) as source:
            origin = {"name": old.absolute().name, "config": digest(source.config)}
        lock = _claim(new)
        try:
            _fill(new, config, {**(manifest or {}), "forked_from": origin}, calls_of=old)
            return cls(new, lock)
        except BaseException:
            lock.release()
            raise

    @property
    def config(self) -> dict[str, Any]:
        """The resolved configuration."""
        return self._config

    @property
    def manifest(self) -> dict[str, Any]:
        """Versions, hashes, seeds and the time of creation."""
        return self._manifest

    @property
    def sessions(self) -> list[dict[str, Any]]:
        """Which versions worked on the run: how many sessions of each, the first and the last."""
        return session_notes(self._manifest)

    def note_session(self) -> None:
        """Say in the manifest that this version works on the run now."""
        self._manifest = with_session(self._manifest)
        self.write(_MANIFEST, canonical(self._manifest, indent=2) + b"\n")

    @property
    def log(self) -> Path:
        """Where a running command writes what it has to say."""
        return self.path / "log.txt"

    @property
    def results(self) -> Path:
        """Where results are written."""
        return self.path / "results.json"

    def write(self, name: str, data: bytes) -> Path:
        """Write a file of the run, such as ``results.json``: whole or not at all."""
        if self._lock is None:
            raise StoreError(f"{self.path} is open for reading only")
        digests.note_present(self.path, _MANIFEST)
        digests.note(self.path, name, data)
        write_whole(self.path / name, [data])
        return self.path / name

    def verify(self) -> Verification:
        """Check that everything the database says it holds is there, and the files beside it.

        The files are left out while a process works on the run, and after one that was killed:
        they are written anew when it ends, or when the run goes on.
        """
        checked = verify(self._reader)
        found = list(checked.problems)
        if self._lock is None and not _in_use(self.path):
            found += digests.damaged(self.path)
            found += self._unlike_records()
        return replace(checked, problems=tuple(found))

    def _unlike_records(self) -> list[str]:
        """Files of records that do not hold what the database holds."""
        try:
            unlike = [path.name for path in self.records.exported_otherwise()]
        except StoreError:  # the database is damaged, which was found
            return []
        return [f"{_RECORDS}/{name} is not what the database holds" for name in unlike]

    def close(self) -> None:
        """Write what is queued, tidy the database and let the lock go. May be called twice."""
        if self._writer is not None and self._journal is not None:
            self._writer.close()
        self._reader.close()
        if self._journal is not None:
            self._journal.close()
            self._journal = None
        if self._lock is not None:
            self._lock.release()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()


def is_run(path: Path) -> bool:
    """Whether a path is a run directory."""
    return (path / _MANIFEST).is_file()


def _in_use(path: Path) -> bool:
    """Whether a process works on a run, or was killed while it did: neither tidied up."""
    try:
        return (path / _LOCK).stat().st_size > 0
    except OSError:
        return False


def _claim(path: Path) -> Lock:
    """Make the directory if need be, and take its lock, if a run may be made there."""
    if is_run(path):
        raise StoreError(f"{path} is a run already; go on with it, or choose another directory")
    if path.exists() and not path.is_dir():
        raise StoreError(f"{path} is a file; a run needs a directory of its own")
    try:
        path.mkdir(parents=True, exist_ok=True)
        strange = sorted(found.name for found in path.iterdir() if found.name not in _UNFINISHED)
    except OSError as error:
        raise StoreError(f"{path} cannot be made: {error.strerror}") from error
    refuse_links(path, _WRITTEN)
    if strange:
        raise StoreError(
            f"{path} holds other things ({', '.join(strange[:3])}); choose an empty directory"
        )
    return Lock(path / _LOCK)


def _fill(
    path: Path,
    config: Mapping[str, Any],
    manifest: Mapping[str, Any],
    calls_of: Path | None = None,
) -> None:
    experiment = canonical(config, indent=2)
    full = made_now(manifest, database.FORMAT, digest(config))
    write_whole(path / _EXPERIMENT, [experiment, b"\n"])
    database.create(path / _DATABASE, calls_of and calls_of / _DATABASE)
    try:
        (path / _RECORDS).mkdir(exist_ok=True)
    except OSError as error:
        raise StoreError(f"{path} cannot be written to: {error.strerror}") from error
    write_whole(path / _MANIFEST, [canonical(full, indent=2), b"\n"])
    database.finish(path / _DATABASE)


def _require(path: Path) -> None:
    if is_run(path):
        return
    if not path.exists():
        raise StoreError(f"there is no run at {path}")
    if (path / _EXPERIMENT).exists() and (path / _LOCK).exists():
        raise StoreError(
            f"{path}: making this run was cut short; give the command that made it again"
        )
    raise StoreError(f"{path} is not a run directory: it has no {_MANIFEST}")


def _read(path: Path) -> tuple[dict[str, Any], dict[str, Any]]:
    manifest = _json(path / _MANIFEST)
    if manifest.get("store") != database.FORMAT:
        raise database.newer_format(path / _MANIFEST, manifest.get("store"))
    checked(manifest, path / _MANIFEST)
    if not (path / _DATABASE).is_file():
        raise StoreError(f"{path / _DATABASE} is missing; restore it from a copy")
    config = _json(path / _EXPERIMENT)
    # Older runs have no digest; between two files that are changed, the one before holds too.
    known = [manifest[k] for k in ("config", "config_before") if k in manifest]
    if known and digest(config) not in known:
        raise StoreError(
            f"{path / _EXPERIMENT} is damaged (not what {_MANIFEST} says it is); "
            "restore it from a copy"
        )
    return config, manifest


def _json(path: Path) -> dict[str, Any]:
    try:
        found = exactly(path.read_bytes())
    except OSError as error:
        raise StoreError(f"{path} cannot be read: {error.strerror}") from error
    except ValueError as error:
        raise StoreError(f"{path} is damaged ({error}); restore it from a copy") from error
    if not isinstance(found, dict):
        raise StoreError(f"{path} is damaged (no JSON object); restore it from a copy")
    return found


def _adopt(
    path: Path, config: Mapping[str, Any], may_change: Collection[str], *, keep: bool
) -> None:
    """Compare with the stored configuration, and keep the new one where it may differ."""
    stored, manifest = _read(path)
    found = changes(stored, config)
    refused = [change for change in found if not allowed(change, may_change)]
    if refused:
        raise ConfigChangedError(
            f"{path} was made with another configuration:\n"
            + "".join(f"  {change}\n" for change in refused[:_TOLD])
            + (f"  and {len(refused) - _TOLD} more\n" if len(refused) > _TOLD else "")
            + "undo the change, or write to another directory with --out DIR; where the command"
            + f" has it, --fork {path} takes over what was asked alike"
        )
    if found and keep:
        before = manifest.get("config", digest(stored))
        changed = {**manifest, "config": digest(config), "config_before": before}
        text = canonical(changed, indent=2) + b"\n"
        digests.note(path, _MANIFEST, text)
        write_whole(path / _MANIFEST, [text])
        write_whole(path / _EXPERIMENT, [canonical(config, indent=2), b"\n"])
