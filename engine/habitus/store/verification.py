"""Is everything that a run's database says it holds really there?

Each pack is decoded (its frame carries a checksum), its ranges must not overlap or leave gaps,
each call must be in the index, each index row must point to a call with its key, and each shared
text and each record must be readable. One pack is in memory at a time.
"""

from __future__ import annotations

from dataclasses import dataclass

import zstandard

from habitus.errors import StoreError
from habitus.store.canonical import loads
from habitus.store.database import Reader
from habitus.store.journal import split_keys
from habitus.store.rows import shared_names

_SHOWN = 20


@dataclass(frozen=True, slots=True)
class Verification:
    """What a check of the database found; ``problems`` is empty when all is well."""

    calls: int
    packs: int
    records: int
    problems: tuple[str, ...]

    @property
    def ok(self) -> bool:
        """Whether everything is there."""
        return not self.problems


def verify(reader: Reader) -> Verification:
    """Check a database that nobody is writing to."""
    return _Check(reader).result()


class _Check:
    def __init__(self, reader: Reader) -> None:
        self._reader = reader
        self._problems: list[str] = []
        self._needed: set[bytes] = set()
        self._calls = self._packs = self._records = self._indexed = 0

    def result(self) -> Verification:
        try:
            self._file()
            self._all_packs()
            self._index()
            self._shared()
            self._all_records()
        except StoreError as error:  # SQLite gave up: the rest cannot be reached
            self._problems.append(str(error))
        return Verification(self._calls, self._packs, self._records, tuple(self._problems))

    def _file(self) -> None:
        found = self._reader.rows(f"PRAGMA quick_check({_SHOWN})")
        self._problems += [str(text) for (text,) in found if text != "ok"]

    def _all_packs(self) -> None:
        following = 1
        for (first,) in self._reader.rows("SELECT first FROM packs ORDER BY first"):
            if first != following:
                self._problems.append(f"calls {following} to {first - 1} are missing")
            row = self._reader.row("SELECT rows, keys, body FROM packs WHERE first = ?", first)
            if row is None:
                raise StoreError("the run was written to while it was checked; try again")
            rows, keys, body = row
            self._packs += 1
            self._pack(first, rows, split_keys(keys), body)
            following = first + rows

    def _pack(self, first: int, rows: int, keys: list[bytes], body: bytes) -> None:
        lines = self._decode(f"pack {first}", body)
        if lines is None:
            return
        split = lines.split(b"\n")
        if not rows == len(keys) == len(split):
            self._problems.append(
                f"pack {first}: {rows} calls promised, {len(keys)} keys, {len(split)} lines"
            )
            return
        for number, (key, line) in enumerate(zip(keys, split, strict=True), first):
            self._call(number, key, line)

    def _call(self, number: int, key: bytes, line: bytes) -> None:
        self._calls += 1
        try:
            self._needed.update(shared_names(line))
        except (ValueError, KeyError, TypeError) as error:
            self._problems.append(f"call {number} cannot be read: {error!r}")
        found = self._reader.row("SELECT number FROM calls WHERE key = ?", key)
        if found is None:
            self._problems.append(f"call {number} is not in the index")
        elif found[0] == number:
            self._indexed += 1

    def _index(self) -> None:
        (count,) = self._reader.row("SELECT count(*) FROM calls") or (0,)
        if count != self._indexed:
            self._problems.append(f"{count - self._indexed} index rows point to no call of theirs")

    def _shared(self) -> None:
        for (name,) in self._reader.rows("SELECT digest FROM shared"):
            (body,) = self._reader.row("SELECT body FROM shared WHERE digest = ?", name) or (b"",)
            self._decode(f"text {name.hex()}", body)
            self._needed.discard(name)
        self._problems += [f"text {name.hex()} is missing" for name in sorted(self._needed)]

    def _all_records(self) -> None:
        last = ("", "")
        sql = (
            "SELECT stage, id, body FROM records WHERE (stage, id) > (?, ?) "
            "ORDER BY stage, id LIMIT 256"
        )
        while page := self._reader.rows(sql, *last):
            for stage, name, body in page:
                self._record(f"{stage} {name}", body)
            last = (page[-1][0], page[-1][1])

    def _record(self, what: str, body: bytes) -> None:
        self._records += 1
        line = self._decode(what, body)
        try:
            if line is not None:
                loads(line)
        except ValueError as error:
            self._problems.append(f"{what} cannot be read: {error}")

    def _decode(self, what: str, body: bytes) -> bytes | None:
        try:
            return zstandard.ZstdDecompressor().decompress(body)
        except zstandard.ZstdError as error:
            self._problems.append(f"{what} is damaged: {error}")
            return None
