"""The call log: every call with what was sent and what came back, found by its key.

    log = run.calls
    reply = log.find(key)                      # None, or a reply with stored=True
    await log.add(key, request, reply, "gpt")  # returns when the call is on the disk

``find`` sees calls that are still on their way to the disk. A stored call that ended in ``error``
is not found, so it is asked again. The log knows nothing of what the calls are for.
"""

from __future__ import annotations

import struct
import threading
from collections import OrderedDict
from collections.abc import Iterator
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Generic, TypeVar

import zstandard

from habitus.errors import StoreError
from habitus.records import Outcome, Reply, Request
from habitus.store.canonical import loads
from habitus.store.database import Reader, damaged, outcome_of, told_as_damage, unpacked
from habitus.store.journal import Item, split_keys
from habitus.store.rows import RowWriter, StoredCall, read_call, read_reply
from habitus.store.writer import Writer

K = TypeVar("K")
V = TypeVar("V")

_CACHE_BYTES = 32 * 2**20
_SHARED_BYTES = 8 * 2**20


@dataclass(frozen=True, slots=True)
class CallCount:
    """Calls of one stage, model and outcome.

    ``calls`` counts keys whose present answer this is, ``logged`` all that were asked (a failed
    call that was asked again is logged twice). Tokens are sums over ``logged``; ``uncounted``
    says for how many of them the server gave no numbers.
    """

    stage: str
    model: str
    outcome: Outcome
    calls: int
    logged: int
    prompt: int
    cached: int
    completion: int
    uncounted: int


class CallStore:
    """The call log of a run; a ``habitus.models.CallLog``."""

    def __init__(
        self, reader: Reader, writer: Writer[Item] | None, unwritten: dict[bytes, bytes]
    ) -> None:
        """``unwritten`` is shared with the journal, which takes out what it has committed."""
        self._reader = reader
        self._writer = writer
        self._unwritten = unwritten
        self._rows = RowWriter()
        self._packs: _Cache[int, list[bytes]] = _Cache(_CACHE_BYTES)
        self._shared: _Cache[bytes, bytes] = _Cache(_SHARED_BYTES)

    def find(self, key: bytes) -> Reply | None:
        """The stored answer for a key, or None; never one that ended in ``error``."""
        line = self._line(key)
        if line is None:
            return None
        with self._reading(key):
            reply = read_reply(key, loads(line), self._fetch)
        return None if reply.outcome is Outcome.ERROR else reply

    async def add(self, key: bytes, request: Request, reply: Reply, model: str) -> None:
        """Keep a call; returns when it is on the disk.

        Raises:
            StoreError: if it cannot be written, or something before it could not.
        """
        if self._writer is None:
            raise StoreError(f"{self._reader.path.parent} is open for reading only")
        if len(key) != _KEY.size:
            raise StoreError(f"a call key has {_KEY.size} bytes, not {len(key)}")
        await self._writer.room()
        # No await from here to the queue: rows must be queued in the order they were made.
        row = self._rows.row(key, request, reply, model)
        if reply.outcome is not Outcome.ERROR:
            self._unwritten[key] = row.line
        try:
            done = self._writer.enqueue(row)
        except StoreError:
            self._unwritten.pop(key, None)
            raise
        await done

    def read(self, key: bytes) -> StoredCall | None:
        """A whole call: what was sent (shared texts in their place) and what came back."""
        line = self._line(key)
        if line is None:
            return None
        with self._reading(key):
            return read_call(key, line, self._fetch)

    def keys(self) -> set[bytes]:
        """The keys of all calls that need not be made again."""
        found: set[bytes] = set()
        for (keys,) in self._reader.rows("SELECT keys FROM packs"):
            found.update(split_keys(keys))
        failed = self._reader.rows(
            "SELECT key FROM calls WHERE kind IN (SELECT id FROM kinds WHERE outcome = ?)",
            Outcome.ERROR,
        )
        found.difference_update(key for (key,) in failed)
        found.update(self._unwritten)
        return found

    def counts(self) -> list[CallCount]:
        """Committed calls and tokens by stage, model and outcome, sorted."""
        rows = self._reader.rows(
            "SELECT stage, model, outcome, calls, logged, prompt, cached, completion, uncounted "
            "FROM kinds ORDER BY stage, model, outcome"
        )
        return [
            CallCount(stage, model, outcome_of(self._reader.path, o), *sums)
            for stage, model, o, *sums in rows
        ]

    def iterate(self) -> Iterator[StoredCall]:
        """All committed calls in the order they came, repeats included; one pack in memory."""
        number = 1
        while (found := self._reader.row(_PACK_OF, number)) is not None:
            first, keys, body = found
            names, lines = split_keys(keys), self._decode(first, body)
            if len(names) != len(lines):
                raise damaged(
                    self._reader.path, f"pack {first}: {len(names)} keys, {len(lines)} calls"
                )
            if number - first >= len(lines):
                return
            for at in range(number - first, len(lines)):
                with self._reading(names[at]):
                    call = read_call(names[at], lines[at], self._fetch)
                yield call
            number = first + len(lines)

    def _reading(self, key: bytes) -> AbstractContextManager[None]:
        return told_as_damage(self._reader.path, f"call {key.hex()}")

    def _line(self, key: bytes) -> bytes | None:
        line = self._unwritten.get(key)
        if line is not None:
            return line
        found = self._reader.row(_WHERE, key)
        if found is None:
            return None
        number: int = found[0]
        first: int = found[1]
        lines = self._packs.get(first)
        if lines is None or number - first >= len(lines):
            first, lines = self._pack(number)
        return lines[number - first]

    def _pack(self, number: int) -> tuple[int, list[bytes]]:
        found = self._reader.row(_PACK_OF, number)
        if found is None:
            raise damaged(self._reader.path, f"call {number} is missing")
        first, _, body = found
        lines = self._decode(first, body)
        if number - first >= len(lines):
            raise damaged(self._reader.path, f"call {number} is missing")
        self._packs.put(first, lines, sum(map(len, lines)))
        return first, lines

    def _decode(self, first: int, body: bytes) -> list[bytes]:
        try:
            return unpacked(body).split(b"\n")
        except zstandard.ZstdError as error:
            raise damaged(self._reader.path, f"pack {first}: {error}") from error

    def _fetch(self, name: bytes) -> bytes:
        body = self._shared.get(name)
        if body is None:
            found = self._reader.row("SELECT body FROM shared WHERE digest = ?", name)
            if found is None:
                raise damaged(self._reader.path, f"text {name.hex()} is missing")
            try:
                body = unpacked(found[0])
            except zstandard.ZstdError as error:
                raise damaged(self._reader.path, f"text {name.hex()}: {error}") from error
            self._shared.put(name, body, len(body))
        return body


class _Cache(Generic[K, V]):
    """What was used last, up to a number of bytes."""

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._bytes = 0
        self._found: OrderedDict[K, tuple[V, int]] = OrderedDict()
        self._lock = threading.Lock()

    def get(self, name: K) -> V | None:
        with self._lock:
            if name not in self._found:
                return None
            self._found.move_to_end(name)
            return self._found[name][0]

    def put(self, name: K, value: V, size: int) -> None:
        with self._lock:
            _, before = self._found.pop(name, (None, 0))
            self._found[name] = (value, size)
            self._bytes += size - before
            while self._bytes > self._limit and len(self._found) > 1:
                _, (_, dropped) = self._found.popitem(last=False)
                self._bytes -= dropped


_KEY = struct.Struct("16s")
_PACK_OF = "SELECT first, keys, body FROM packs WHERE first <= ? ORDER BY first DESC LIMIT 1"
_WHERE = (
    "SELECT number, (SELECT max(first) FROM packs WHERE first <= number) FROM calls WHERE key = ?"
)
