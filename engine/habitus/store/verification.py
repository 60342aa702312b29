"""Is everything that a run's database says it holds really there?

Each pack is decoded (its frame carries a checksum), its ranges must not overlap or leave gaps,
each call must be in the index, each index row must point to a call with its key, and the counts by
stage, model and outcome must be those of the calls. Each shared text must have the digest it is
known by, and each record must be readable and end as it is counted. One pack is in memory at a
time.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import Any

import zstandard

from habitus.errors import StoreError
from habitus.store.canonical import loads, plain
from habitus.store.database import Reader, unpacked
from habitus.store.journal import Kind, split_keys
from habitus.store.rows import shared_digests, shared_names

_SHOWN = 20
_SUMS = ("calls", "logged", "prompt", "cached", "completion", "uncounted")


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
        self._kinds: dict[int, Kind] = {}
        self._logged: dict[Kind, Counter[str]] = {}

    def result(self) -> Verification:
        try:
            self._file()
            self._kinds = {kind: name for kind, name, _ in self._counts()}
            self._all_packs()
            self._index()
            self._totals()
            self._shared()
            self._all_records()
        except StoreError as error:  # SQLite gave up: the rest cannot be reached
            self._problems.append(str(error))
        return Verification(self._calls, self._packs, self._records, tuple(self._problems))

    def _file(self) -> None:
        found = self._reader.rows(f"PRAGMA integrity_check({_SHOWN})")
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
        kind = None
        try:
            self._needed.update(shared_names(line))
            kind = self._log(loads(line))
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            self._problems.append(f"call {number} cannot be read: {error!r}")
        found = self._reader.row("SELECT number, kind FROM calls WHERE key = ?", key)
        if found is None:
            self._problems.append(f"call {number} is not in the index")
        elif found[0] == number:
            self._indexed += 1
            if kind is not None and self._kinds.get(found[1]) != kind:
                self._problems.append(f"call {number} is counted as something that it is not")

    def _log(self, row: Any) -> Kind:
        """Count a call as the counts should; gives its kind."""
        kind = (plain(row["stage"]), plain(row["model"]), str(row["reply"]["outcome"]))
        prompt, completion, cached = row["reply"].get("usage", (None, None, None))
        self._logged.setdefault(kind, Counter()).update(
            logged=1,
            prompt=prompt or 0,
            cached=cached or 0,
            completion=completion or 0,
            uncounted=prompt is None or completion is None,
        )
        return kind

    def _counts(self) -> list[tuple[int, Kind, dict[str, int]]]:
        rows = self._reader.rows(
            "SELECT id, stage, model, outcome, calls, logged, prompt, cached, completion, "
            "uncounted FROM kinds"
        )
        return [
            (kind, (stage, model, outcome), dict(zip(_SUMS, sums, strict=True)))
            for kind, stage, model, outcome, *sums in rows
        ]

    def _totals(self) -> None:
        """The counts by kind are those of the calls, and the newest answers those of the index."""
        newest = dict(self._reader.rows("SELECT kind, count(*) FROM calls GROUP BY kind"))
        for kind, name, sums in self._counts():
            found = {"calls": newest.get(kind, 0), **self._logged.pop(name, Counter())}
            self._problems += [
                f"{' '.join(name)}: {what} {count} in the counts, {found.get(what, 0)} in the calls"
                for what, count in sums.items()
                if count != found.get(what, 0)
            ]
        self._problems += [f"{' '.join(name)}: not in the counts" for name in self._logged]

    def _index(self) -> None:
        (count,) = self._reader.row("SELECT count(*) FROM calls") or (0,)
        if count != self._indexed:
            self._problems.append(f"{count - self._indexed} index rows point to no call of theirs")

    def _shared(self) -> None:
        for (name,) in self._reader.rows("SELECT digest FROM shared"):
            (body,) = self._reader.row("SELECT body FROM shared WHERE digest = ?", name) or (b"",)
            text = self._decode(f"text {name.hex()}", body)
            if text is not None and name not in shared_digests(text):
                self._problems.append(f"text {name.hex()} is not what it is known by")
            self._needed.discard(name)
        self._problems += [f"text {name.hex()} is missing" for name in sorted(self._needed)]

    def _all_records(self) -> None:
        last = ("", "")
        sql = (
            "SELECT stage, id, body, outcome, reason FROM records WHERE (stage, id) > (?, ?) "
            "ORDER BY stage, id LIMIT 256"
        )
        while page := self._reader.rows(sql, *last):
            for stage, name, body, *ended in page:
                self._record(f"{stage} {name}", body, [name, *ended])
            last = (page[-1][0], page[-1][1])

    def _record(self, what: str, body: bytes, columns: list[str]) -> None:
        """A record can be read, and its columns say of it what it says of itself."""
        self._records += 1
        line = self._decode(what, body)
        if line is None:
            return
        try:
            record = loads(line)
            own = [plain(str(record.get(f, ""))) for f in ("id", "outcome", "reason")]
        except (ValueError, AttributeError) as error:
            self._problems.append(f"{what} cannot be read: {error}")
            return
        if own != columns:
            self._problems.append(f"{what} is counted as something that it is not")

    def _decode(self, what: str, body: bytes) -> bytes | None:
        try:
            return unpacked(body)
        except zstandard.ZstdError as error:
            self._problems.append(f"{what} is damaged: {error}")
            return None
