"""The stage records of a run: kept by (stage, id), read in the order of their ids.

    await run.records.put("responses", response)       # returns when it is on the disk
    for response in run.records.iterate("responses", Response): ...
    run.records.export()                               # records/responses.jsonl and the others

Arrival order leaves no trace: the same records give the same bytes in ``records/*.jsonl``. The
store knows no particular stage or record type.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import TypeVar

import zstandard
from pydantic import ValidationError

import habitus
from habitus.errors import StoreError
from habitus.records import Outcome, StageRecord
from habitus.store.canonical import loads, plain
from habitus.store.database import Reader, damaged, outcome_of, unpacked
from habitus.store.files import write_whole
from habitus.store.journal import Item, RecordRow
from habitus.store.writer import Writer

R = TypeVar("R", bound=StageRecord)
_PAGE = 256
_MANY = 4096  # rows without their bodies
#: From one stage to the next, by the index: as fast for a million records as for one.
_STAGES = """
WITH RECURSIVE found(stage) AS (
    SELECT min(stage) FROM records
    UNION ALL
    SELECT (SELECT min(stage) FROM records WHERE stage > found.stage)
    FROM found WHERE found.stage IS NOT NULL)
SELECT stage FROM found WHERE stage IS NOT NULL ORDER BY stage
"""
_STAGE = re.compile(r"[a-z][a-z0-9_-]*")


class RecordStore:
    """The stage records of a run."""

    def __init__(self, reader: Reader, writer: Writer[Item] | None, folder: Path) -> None:
        """``folder`` is where ``export`` writes."""
        self._reader = reader
        self._writer = writer
        self._folder = folder

    async def put(self, stage: str, record: StageRecord) -> None:
        """Keep a record; returns when it is on the disk.

        The same record again changes nothing; other content under the same id replaces it.

        Raises:
            StoreError: if it cannot be written, or something before it could not.
        """
        if self._writer is None:
            raise StoreError(f"{self._folder.parent} is open for reading only")
        if not _STAGE.fullmatch(stage) or not record.id:
            raise StoreError(f"a record needs a stage and an id, not {stage!r} and {record.id!r}")
        await self._writer.room()
        row = RecordRow(
            stage, plain(record.id), str(record.outcome), plain(record.reason), record.line()
        )
        await self._writer.enqueue(row)

    async def drop(self, stage: str, name: str) -> None:
        """Forget a record; returns when it is gone from the disk.

        Raises:
            StoreError: if it cannot be written, or something before it could not.
        """
        if self._writer is None:
            raise StoreError(f"{self._folder.parent} is open for reading only")
        await self._writer.room()
        await self._writer.enqueue(RecordRow(stage, plain(name)))

    def get(self, stage: str, name: str, kind: type[R]) -> R | None:
        """The record with an id, or None."""
        sql = "SELECT body FROM records WHERE stage = ? AND id = ?"
        found = self._reader.row(sql, stage, plain(name))
        return None if found is None else self._record(stage, name, found[0], kind)

    def iterate(self, stage: str, kind: type[R]) -> Iterator[R]:
        """All records of a stage by id, a page of them in memory."""
        for name, body in self._bodies(stage):
            yield self._record(stage, name, body, kind)

    def lines(self, stage: str) -> Iterator[bytes]:
        """All records of a stage by id, as JSON lines without their ends."""
        for name, body in self._bodies(stage):
            yield self._line(stage, name, body)

    def ids(self, stage: str) -> list[str]:
        """The ids of a stage, sorted."""
        rows = self._reader.rows("SELECT id FROM records WHERE stage = ? ORDER BY id", stage)
        return [name for (name,) in rows]

    def outcome(self, stage: str, name: str) -> Outcome | None:
        """How the record with an id ended, or None; its body is not read."""
        sql = "SELECT outcome FROM records WHERE stage = ? AND id = ?"
        found = self._reader.row(sql, stage, plain(name))
        return None if found is None else self._outcome(found[0])

    def endings(self, stage: str) -> Iterator[tuple[str, Outcome, str]]:
        """Id, outcome and reason of all records of a stage by id; no body is read."""
        sql = (
            "SELECT id, outcome, reason FROM records WHERE stage = ? AND id > ? ORDER BY id LIMIT ?"
        )
        last = ""
        while page := self._reader.rows(sql, stage, last, _MANY):
            for name, outcome, reason in page:
                yield name, self._outcome(outcome), reason
            last = page[-1][0]

    def failed(self, stage: str) -> dict[str, Outcome]:
        """The records of a stage that did not end well, by id; no body is read."""
        sql = "SELECT id, outcome FROM records WHERE stage = ? AND outcome <> ?"
        return {
            name: self._outcome(o) for name, o in self._reader.rows(sql, stage, str(Outcome.OK))
        }

    def under(self, stage: str, start: str, kind: type[R]) -> list[R]:
        """The records of a stage whose ids begin with a text, by id."""
        sql = "SELECT id, body FROM records WHERE stage = ? AND id >= ? AND id < ? ORDER BY id"
        low = plain(start)
        found = self._reader.rows(sql, stage, low, f"{low}\U0010ffff")
        return [self._record(stage, name, body, kind) for name, body in found]

    def stages(self) -> list[str]:
        """The stages that have records, sorted."""
        return [stage for (stage,) in self._reader.rows(_STAGES)]

    def counts(self, stage: str) -> dict[Outcome, int]:
        """How many records ended how."""
        out: dict[Outcome, int] = {}
        for (outcome, _), count in self.reasons(stage).items():
            out[outcome] = out.get(outcome, 0) + count
        return out

    def reasons(self, stage: str) -> dict[tuple[Outcome, str], int]:
        """How many records ended how, and why."""
        rows = self._reader.rows(
            "SELECT outcome, reason, count(*) FROM records WHERE stage = ? "
            "GROUP BY outcome, reason ORDER BY outcome, reason",
            stage,
        )
        return {(self._outcome(outcome), reason): count for outcome, reason, count in rows}

    def export(self) -> list[Path]:
        """Write ``records/<stage>.jsonl`` for every stage; each file whole or untouched."""
        if self._writer is None:
            raise StoreError(f"{self._folder.parent} is open for reading only")
        paths = []
        for stage in self.stages():
            path = self._folder / f"{stage}.jsonl"
            write_whole(path, (line + b"\n" for line in self.lines(stage)))
            paths.append(path)
        for path in set(self._folder.glob("*.jsonl")).difference(paths):
            path.unlink()  # the last record of that stage was dropped
        return paths

    def exported_otherwise(self) -> list[Path]:
        """Files that ``export`` wrote and that do not hold what is kept."""
        return [path for path in sorted(self._folder.glob("*.jsonl")) if not self._holds(path)]

    def _holds(self, path: Path) -> bool:
        try:
            with path.open("rb") as file:
                same = all(file.readline() == line + b"\n" for line in self.lines(path.stem))
                return same and not file.read(1)
        except OSError:
            return False

    def _bodies(self, stage: str) -> Iterator[tuple[str, bytes]]:
        # Page by page: an open query would keep the log of a running writer from being reused.
        sql = "SELECT id, body FROM records WHERE stage = ? AND id > ? ORDER BY id LIMIT ?"
        last = ""
        while page := self._reader.rows(sql, stage, last, _PAGE):
            for row in page:
                yield row[0], row[1]
            last = page[-1][0]

    def _line(self, stage: str, name: str, body: bytes) -> bytes:
        try:
            return unpacked(body)
        except zstandard.ZstdError as error:
            raise self._damaged(stage, name, error) from error

    def _record(self, stage: str, name: str, body: bytes, kind: type[R]) -> R:
        line = self._line(stage, name, body)
        try:
            return kind.model_validate_json(line)
        except ValidationError as error:
            return self._record_from_escapes(stage, name, line, kind, error)

    def _record_from_escapes(
        self, stage: str, name: str, line: bytes, kind: type[R], error: ValidationError
    ) -> R:
        try:  # the fast reader refuses lone surrogates, which line() writes as escapes
            return kind.model_validate(loads(line), strict=False)
        except ValueError:
            raise StoreError(
                f"{self._reader.path}: {stage} {name} is no {kind.__name__}: {_first(error)}"
                + _newer(error)
            ) from error

    def _outcome(self, text: str) -> Outcome:
        return outcome_of(self._reader.path, text)

    def _damaged(self, stage: str, name: str, error: Exception) -> StoreError:
        return damaged(self._reader.path, f"{stage} {name}: {error}")


def _newer(error: ValidationError) -> str:
    """What to do about a record with fields or words that a later version brought."""
    if not any(found["type"] in {"extra_forbidden", "literal_error"} for found in error.errors()):
        return ""
    return (
        f"; this version of habitus ({habitus.__version__}) does not know that: use the version that "
        "wrote the run (manifest.json names it), or a newer one"
    )


def _first(error: ValidationError) -> str:
    """The first thing wrong with a record, in one line."""
    found = error.errors(include_url=False)[0]
    return ": ".join([*([".".join(map(str, found["loc"]))] if found["loc"] else []), found["msg"]])
