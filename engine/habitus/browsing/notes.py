"""Marks and notes that people put on the items of a run: ``notes.jsonl`` in its directory.

    notes = Notes(run_path)
    notes.mark("maori-01/s03/a0", True)
    notes.write("maori-01/s03/a0", "too direct for this persona")
    notes.of("maori-01/s03/a0")

A line is added for every change, under a lock of the file's own, so that people can take notes on a
run that is going on and several viewers lose none of each other's: a viewer changes or removes only
what it wrote itself, by the note's own id. What was there before stays in the file. Nothing here
knows what an item is.
"""

from __future__ import annotations

import fcntl
import getpass
import os
import secrets
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from pydantic import BaseModel, ConfigDict

from habitus.errors import StoreError

FILE = "notes.jsonl"


class Entry(BaseModel):
    """One line of the file: a mark set or taken away, or a note; an empty text takes it away."""

    model_config = ConfigDict(frozen=True)

    item: str
    at: str
    by: str = ""
    mark: bool | None = None
    note: str = ""
    text: str = ""


@dataclass(frozen=True, slots=True)
class Note:
    """A note on an item."""

    id: str
    text: str
    by: str
    at: str


@dataclass(frozen=True, slots=True)
class Remarks:
    """What people left on one item, notes in the order in which they were first written."""

    marked: bool = False
    notes: tuple[Note, ...] = ()


_NONE = Remarks()


class Notes:
    """The marks and notes of a run. ``unreadable`` lines are left out and counted."""

    def __init__(self, run: Path, by: str | None = None) -> None:
        """``by`` is who writes; the name of the account by default."""
        self._path = run / FILE
        self._by = _account() if by is None else by
        self._items: dict[str, Remarks] = {}
        self.unreadable = 0
        self.refresh()

    def of(self, item: str) -> Remarks:
        """What is on an item."""
        return self._items.get(item, _NONE)

    def items(self) -> frozenset[str]:
        """The items that have a mark or a note."""
        return frozenset(self._items)

    def own(self, item: str) -> Note | None:
        """The newest note on an item by this writer."""
        return next((note for note in reversed(self.of(item).notes) if note.by == self._by), None)

    def mark(self, item: str, on: bool) -> None:
        """Set or take away the mark of an item.

        Raises:
            StoreError: the file cannot be written.
        """
        self._add(Entry(item=item, at=_now(), by=self._by, mark=on))

    def write(self, item: str, text: str, note: str = "") -> str:
        """Write a note, or change the one with an id; gives its id. No text takes it away.

        Raises:
            StoreError: the file cannot be written.
        """
        note = note or secrets.token_hex(6)
        self._add(Entry(item=item, at=_now(), by=self._by, note=note, text=text.strip()))
        return note

    def refresh(self) -> None:
        """Read what others wrote."""
        try:
            lines = self._path.read_bytes().splitlines()
        except FileNotFoundError:
            lines = []
        except OSError as error:
            raise StoreError(f"{self._path} cannot be read: {error.strerror}") from error
        entries = [_entry(line) for line in lines if line.strip()]
        self.unreadable = entries.count(None)
        self._items = _folded(entry for entry in entries if entry is not None)

    def _add(self, entry: Entry) -> None:
        line = entry.model_dump_json(exclude_defaults=True).encode("utf-8", "backslashreplace")
        try:
            handle = os.open(self._path, os.O_RDWR | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o644)
            try:
                fcntl.flock(handle, fcntl.LOCK_EX)
                _append(handle, line + b"\n")
            finally:
                os.close(handle)
        except OSError as error:
            raise StoreError(f"{self._path} cannot be written: {error.strerror}") from error
        self.refresh()


def _append(handle: int, line: bytes) -> None:
    """One write of whole lines; what a crash left without an end gets one first."""
    size = os.fstat(handle).st_size
    if size and os.pread(handle, 1, size - 1) != b"\n":
        line = b"\n" + line
    while line:
        line = line[os.write(handle, line) :]
    os.fsync(handle)


def _entry(line: bytes) -> Entry | None:
    try:
        return Entry.model_validate_json(line)
    except ValueError:
        return None


def _folded(entries: Iterable[Entry]) -> dict[str, Remarks]:
    marks: dict[str, bool] = {}
    notes: dict[str, dict[str, Note]] = {}
    for entry in entries:
        if entry.mark is not None:
            marks[entry.item] = entry.mark
        if entry.note:
            held = notes.setdefault(entry.item, {})
            held[entry.note] = Note(entry.note, entry.text, entry.by, entry.at)
    kept = {item: tuple(n for n in held.values() if n.text) for item, held in notes.items()}
    return {
        item: Remarks(marks.get(item, False), kept.get(item, ()))
        for item in sorted(marks.keys() | kept.keys())
        if marks.get(item) or kept.get(item)
    }


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="seconds")


def _account() -> str:
    try:
        return getpass.getuser()
    except (KeyError, OSError):  # an account without a name
        return ""
