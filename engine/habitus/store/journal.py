"""One transaction for a group of calls and records.

Calls are packed: one row for each 4 kB call would take ten times the space. A group becomes a pack
of its own, and as soon as the last packs hold 256 calls together they are joined into one, in the
same transaction. A pack covers a range of call numbers, so joining packs changes no index.

The newest answer of a key wins; a call that ended in ``error`` is no answer and never hides one.
The log keeps both.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

import zstandard

from habitus.errors import StoreError
from habitus.records import Outcome
from habitus.store.database import close_writer, open_writer, store_error, unpacked
from habitus.store.rows import CallRow

PACK = 256
_PACK_BYTES = 2**20
_LEVEL = 3
_KEY = 16

Kind = tuple[str, str, str]


@dataclass(frozen=True, slots=True)
class RecordRow:
    """A stage record on its way to the disk; without a body, one that goes away."""

    stage: str
    id: str
    outcome: str = ""
    reason: str = ""
    body: bytes = b""

    @property
    def size(self) -> int:
        """Bytes it holds in memory, about."""
        return len(self.body)


Item = CallRow | RecordRow


@dataclass(slots=True)
class _Tail:
    """The last calls of the log, which are not yet in a full pack."""

    packs: list[int] = field(default_factory=list)
    keys: list[bytes] = field(default_factory=list)
    lines: list[bytes] = field(default_factory=list)
    size: int = 0

    def extend(self, keys: Iterable[bytes], lines: Sequence[bytes]) -> None:
        self.keys.extend(keys)
        self.lines.extend(lines)
        self.size += sum(map(len, lines))

    @property
    def full(self) -> bool:
        return len(self.lines) >= PACK or self.size >= _PACK_BYTES


class Journal:
    """The writing side of a run's database. Used by one thread at a time."""

    def __init__(self, path: Path, unwritten: dict[bytes, bytes]) -> None:
        """``unwritten`` holds the line of each call that is not yet committed, by key."""
        self._path = path
        self._unwritten = unwritten
        self._failed = False
        self._db = open_writer(path)
        self._file = _identity(path)
        self._compressor = zstandard.ZstdCompressor(level=_LEVEL, write_checksum=True)
        try:
            self._kinds: dict[Kind, int] = {
                (stage, model, outcome): kind
                for kind, stage, model, outcome in self._db.execute(
                    "SELECT id, stage, model, outcome FROM kinds"
                )
            }
            self._tail, self._next = self._open_tail()
        except (sqlite3.Error, zstandard.ZstdError, TypeError) as error:
            self._db.close()
            raise store_error(path, error) from error

    def commit(self, items: Sequence[Item]) -> None:
        """Make a group durable: all of it, or, with a StoreError, nothing."""
        calls = [item for item in items if isinstance(item, CallRow)]
        records = [item for item in items if isinstance(item, RecordRow)]
        try:
            self._refuse_lost()
            self._db.execute("BEGIN IMMEDIATE")
            if calls:
                self._write_calls(calls)
            if records:
                self._write_records(records)
            self._db.execute("COMMIT")
        except BaseException as error:
            self._failed = True  # what is in memory no longer agrees with the disk
            self._roll_back()
            if isinstance(error, sqlite3.Error | OSError):
                raise store_error(self._path, error) from error
            raise
        finally:
            self._forget(calls)

    def close(self) -> None:
        """Join what is left of small packs, and close the database."""
        if len(self._tail.packs) > 1 and not self._failed:
            try:
                self._db.execute("BEGIN IMMEDIATE")
                self._join()
                self._db.execute("COMMIT")
            except sqlite3.Error:
                self._roll_back()  # only space is lost: every call is in its small pack
        close_writer(self._db)

    def _refuse_lost(self) -> None:
        """SQLite would go on writing to a file that no directory holds any more."""
        if _identity(self._path) != self._file:
            raise StoreError(
                f"{self._path} is gone: the run was deleted, moved or replaced while it was worked on; "
                "put it back, or start anew"
            )

    def _roll_back(self) -> None:
        if self._db.in_transaction:
            with suppress(sqlite3.Error):
                self._db.execute("ROLLBACK")

    def _forget(self, calls: Sequence[CallRow]) -> None:
        for call in calls:
            if self._unwritten.get(call.key) is call.line:
                del self._unwritten[call.key]

    def _open_tail(self) -> tuple[_Tail, int]:
        small: list[tuple[int, bytes, list[bytes]]] = []
        following, calls = 1, 0
        newest = self._db.execute("SELECT first, rows, keys, body FROM packs ORDER BY first DESC")
        for first, rows, keys, body in newest:
            following = following if small else first + rows
            calls += rows
            if calls >= PACK:
                break
            lines = unpacked(body).split(b"\n")
            if sum(map(len, lines)) >= _PACK_BYTES:
                break
            small.append((first, keys, lines))
        newest.close()
        tail = _Tail()
        for first, keys, lines in reversed(small):
            tail.packs.append(first)
            tail.extend(split_keys(keys), lines)
        return tail, following

    def _write_calls(self, calls: Sequence[CallRow]) -> None:
        self._share(calls)
        self._pack(calls)
        self._index(calls)
        self._next += len(calls)

    def _share(self, calls: Sequence[CallRow]) -> None:
        new = {name: body for call in calls for name, body in call.shared}
        self._db.executemany(
            "INSERT OR IGNORE INTO shared VALUES (?, ?)",
            [(name, self._compressor.compress(body)) for name, body in new.items()],
        )

    def _pack(self, calls: Sequence[CallRow]) -> None:
        keys, lines = [call.key for call in calls], [call.line for call in calls]
        self._tail.extend(keys, lines)
        if self._tail.full:
            self._tail.packs.append(self._next)
            self._join()
        else:
            self._insert(self._next, keys, lines)
            self._tail.packs.append(self._next)

    def _join(self) -> None:
        tail = self._tail
        self._db.executemany("DELETE FROM packs WHERE first = ?", [(n,) for n in tail.packs])
        self._insert(tail.packs[0], tail.keys, tail.lines)
        self._tail = _Tail()

    def _insert(self, first: int, keys: Sequence[bytes], lines: Sequence[bytes]) -> None:
        body = self._compressor.compress(b"\n".join(lines))
        self._db.execute(
            "INSERT INTO packs VALUES (?, ?, ?, ?)", (first, len(lines), b"".join(keys), body)
        )

    def _index(self, calls: Sequence[CallRow]) -> None:
        known = self._known(calls)
        answered = {kind for name, kind in self._kinds.items() if name[2] != Outcome.ERROR}
        entries: dict[bytes, tuple[int, int]] = {}
        totals = _Totals()
        for number, call in enumerate(calls, self._next):
            kind = self._kind(call.kind)
            totals.log(kind, call)
            old = known.get(call.key)
            if call.kind[2] == Outcome.ERROR and old in answered:
                continue
            answered |= {kind} if call.kind[2] != Outcome.ERROR else set()
            totals.move(old, kind)
            known[call.key] = kind
            entries[call.key] = (number, kind)
        self._db.executemany(
            "INSERT INTO calls VALUES (?, ?, ?) ON CONFLICT (key) DO UPDATE "
            "SET number = excluded.number, kind = excluded.kind",
            [(key, *entry) for key, entry in sorted(entries.items())],
        )
        self._db.executemany(
            "UPDATE kinds SET calls = calls + ?, logged = logged + ?, prompt = prompt + ?, "
            "cached = cached + ?, completion = completion + ?, uncounted = uncounted + ? "
            "WHERE id = ?",
            [(*sums, kind) for kind, sums in totals.by_kind.items()],
        )

    def _known(self, calls: Sequence[CallRow]) -> dict[bytes, int]:
        marks = ", ".join("?" * len(calls))
        sql = f"SELECT key, kind FROM calls WHERE key IN ({marks})"  # noqa: S608
        return dict(self._db.execute(sql, [call.key for call in calls]))

    def _kind(self, name: Kind) -> int:
        kind = self._kinds.get(name)
        if kind is None:
            sql = "INSERT INTO kinds (stage, model, outcome) VALUES (?, ?, ?)"
            kind = self._kinds[name] = int(self._db.execute(sql, name).lastrowid or 0)
        return kind

    def _write_records(self, records: Sequence[RecordRow]) -> None:
        self._db.executemany(
            "INSERT INTO records VALUES (?, ?, ?, ?, ?) ON CONFLICT (stage, id) DO UPDATE SET "
            "outcome = excluded.outcome, reason = excluded.reason, body = excluded.body "
            "WHERE body IS NOT excluded.body",
            [
                (r.stage, r.id, r.outcome, r.reason, self._compressor.compress(r.body))
                for r in records
                if r.body
            ],
        )
        self._db.executemany(
            "DELETE FROM records WHERE stage = ? AND id = ?",
            [(r.stage, r.id) for r in records if not r.body],
        )


class _Totals:
    """What a group adds to each kind: calls, logged, prompt, cached, completion, uncounted."""

    def __init__(self) -> None:
        self.by_kind: dict[int, list[int]] = {}

    def log(self, kind: int, call: CallRow) -> None:
        sums = self._of(kind)
        used = call.usage
        sums[1] += 1
        sums[2] += used.prompt or 0
        sums[3] += used.cached or 0
        sums[4] += used.completion or 0
        sums[5] += used.prompt is None or used.completion is None

    def move(self, old: int | None, new: int) -> None:
        self._of(new)[0] += 1
        if old is not None:
            self._of(old)[0] -= 1

    def _of(self, kind: int) -> list[int]:
        return self.by_kind.setdefault(kind, [0] * 6)


def _identity(path: Path) -> tuple[int, int] | None:
    """Which file stands at a path; None where there is none."""
    try:
        found = path.stat()
    except OSError:
        return None
    return found.st_dev, found.st_ino


def split_keys(keys: bytes) -> list[bytes]:
    """The keys of a pack, one for each of its calls."""
    return [keys[at : at + _KEY] for at in range(0, len(keys), _KEY)]
