"""Every error a user can meet, and the place it points to.

The tree, one line each:

    HabitusError                 anything that ends a command with one clear message (exit 2)
    ├── ContentError             a content or experiment file is wrong: every problem, with its place
    ├── NotFoundError            an id or path that leads nowhere, with the nearest names
    ├── UsageError               options that cannot be combined or a value that cannot be used
    ├── ModelError               a backend that cannot be opened (package, weights, key missing)
    └── StoreError               a run directory that cannot be opened or written
        ├── RunLockedError       another process is working on the run
        └── ConfigChangedError   the run was made with another configuration

A model's failed answer is no exception: it is an ``Outcome`` in a ``Reply`` and is counted.
This module knows nothing of the rest of the package.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from pathlib import Path


@dataclass(frozen=True, slots=True)
class Place:
    """Where in a file something stands. Lines and columns count from 1; 0 means the whole file."""

    path: Path
    line: int = 0
    column: int = 0

    def __str__(self) -> str:
        if not self.line:
            return str(self.path)
        return f"{self.path}:{self.line}:{self.column}"


@dataclass(frozen=True, slots=True)
class Problem:
    """One thing wrong in a file: what it is, where, and what to do about it."""

    what: str
    place: Place
    hint: str = ""

    def __str__(self) -> str:
        return f"{self.place}: {self.what}" + (f" ({self.hint})" if self.hint else "")


class HabitusError(Exception):
    """A message for the person at the terminal; never shown as a traceback."""

    exit_code = 2


class ContentError(HabitusError):
    """One or more problems in content files."""

    def __init__(self, problems: Iterable[Problem]) -> None:
        self.problems: tuple[Problem, ...] = tuple(problems)
        super().__init__("\n".join(map(str, self.problems)))


class NotFoundError(HabitusError):
    """A name that leads nowhere."""

    def __init__(self, kind: str, name: str, known: Sequence[str] = (), hint: str = "") -> None:
        near = get_close_matches(name, known, n=3)
        parts = [f"no {kind} called {name!r}"]
        if near:
            parts.append(f"did you mean {' or '.join(map(repr, near))}?")
        elif known:
            parts.append(f"there are: {', '.join(sorted(known)[:20])}")
        super().__init__("; ".join(parts) + (f"; {hint}" if hint else ""))


class UsageError(HabitusError):
    """Options or values that cannot be used as given."""


class ModelError(HabitusError):
    """A model that cannot be opened."""


class StoreError(HabitusError):
    """A run directory that cannot be opened, read or written."""


class RunLockedError(StoreError):
    """Another process is working on the run."""


class ConfigChangedError(StoreError):
    """The run directory was made with another configuration."""
