"""What is run, who watches it, and what it came to."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from pydantic import BaseModel

from habitus.errors import HabitusError
from habitus.models import Caps, ModelEntry, Recorded, open_model
from habitus.models.entry import Factory
from habitus.models.spending import Reached
from habitus.records import Outcome, StageRecord
from habitus.store import RunDir

if TYPE_CHECKING:
    from habitus.running.session import Session


#: What may differ when a run goes on: nothing here can change an answer.
MODELS_MAY_CHANGE = frozenset(
    {
        "models.*.base_url",
        "models.*.api_key_env",
        "models.*.api_key_file",
        "models.*.concurrency",
        "models.*.timeout",
        "models.*.retries",
        "models.*.price.*",
        "models.*.price",
        "limits.*",
    }
)
#: A run stops when so many first calls of a model all fail alike, where nothing else is said.
ALIKE = 20


class RunStoppedError(HabitusError):
    """A run that ended itself early; what it has is kept. ``model`` is the one that failed."""

    exit_code = 1

    def __init__(self, message: str, model: str = "") -> None:
        super().__init__(message)
        self.model = model


class Observer(Protocol):
    """Whoever watches a run."""

    def begin(self, run: RunDir, models: Mapping[str, Recorded]) -> None:
        """The run is open; ``models`` have counters that can be read at any time."""
        ...

    def put(self, table: str, record: StageRecord) -> None:
        """A record is on the disk."""
        ...

    def end(self) -> None:
        """Nothing more comes."""
        ...


class Silent:
    """Watches nothing."""

    def begin(self, run: RunDir, models: Mapping[str, Recorded]) -> None:
        """Ignore it."""

    def put(self, table: str, record: StageRecord) -> None:
        """Ignore it."""

    def end(self) -> None:
        """Ignore it."""


class Job(Protocol):
    """What a session works on."""

    @property
    def config(self) -> Mapping[str, Any]:
        """What the run is held to: JSON values, with the hash of every file that counts."""
        ...

    @property
    def manifest(self) -> Mapping[str, Any]:
        """What a new run remembers beside: seeds, hashes."""
        ...

    @property
    def may_change(self) -> Collection[str]:
        """Fields of the configuration that may differ when a run goes on."""
        ...

    @property
    def kept(self) -> type[BaseModel]:
        """What the configuration of a run is, as it is read back."""
        ...

    @property
    def models(self) -> Mapping[str, ModelEntry]:
        """The models that are asked, by name."""
        ...

    @property
    def alike(self) -> int:
        """The run stops when this many first calls of a model all failed alike."""
        ...

    @property
    def caps(self) -> Caps:
        """The most that the run may spend."""
        ...

    def begin(self, run: RunDir) -> None:
        """Keep in the run what it takes to read it."""
        ...

    async def work(self, session: Session) -> None:
        """Do it, with the models of the session and its records."""
        ...

    def leave(self, run: RunDir) -> None:
        """Write out what follows from the records; called however the session ended."""
        ...

    def asked(self) -> Mapping[str, Any]:
        """How far this session goes, as the run remembers it."""
        ...

    def covered_by(self, asked: Mapping[str, Any]) -> bool:
        """Whether a session that went so far has done all that this one is to do.

        Raises:
            KeyError, TypeError, ValueError: what is remembered cannot be read.
        """
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class JobRequest:
    """Where and how a job is run.

    ``fork`` starts a new run with the stored calls of an old one; ``fresh`` names stages of calls
    whose stored answers are asked for again; ``base`` is where relative paths of model entries
    start. ``opener`` makes models of entries: give one of your own to put another model behind a
    name. ``to_the_end``: go on whatever fails, where a job would stop early.
    """

    out: Path
    fork: Path | None = None
    fresh: frozenset[str] = frozenset()
    base: Path = field(default_factory=Path.cwd)
    opener: Factory = open_model
    to_the_end: bool = False


@dataclass(frozen=True, slots=True)
class RunSummary:
    """What a run came to.

    ``calls`` and ``hits`` are of this session. ``outcomes`` are those of the answers that the run
    rests on, by model (an answer that failed and was asked for again is not among them), and
    ``records`` those of its records, by table. ``unchanged``: there was nothing left to do.
    ``reached``: the cap that ended it; what was not asked is not there, and the run can go on.
    ``reasons``: why calls failed, by model: ``<outcome>: <reason>``.
    """

    out: Path
    calls: int
    hits: int
    outcomes: Mapping[str, Mapping[Outcome, int]]
    records: Mapping[str, Mapping[Outcome, int]]
    unchanged: bool = False
    reached: Reached | None = None
    reasons: Mapping[str, Mapping[str, int]] = field(default_factory=dict)

    @property
    def failed_shares(self) -> dict[str, float]:
        """Share without a usable answer: of all calls, and of the records of each table.

        An answer that came but could not be read is a failed record and no failed call. Attempts
        at sessions are left out: a failed one is followed by another, and histories count what
        could not be made. A prompt that did not fit is no failed call either: it may have been
        asked for with less history, and is a failed record otherwise.
        """
        calls: Counter[Outcome] = Counter()
        for found in self.outcomes.values():
            calls.update({o: n for o, n in found.items() if o is not Outcome.OVERFLOW})
        shares = {"calls": _failed(calls)}
        return shares | {t: _failed(n) for t, n in self.records.items() if t != "attempts"}


def _failed(found: Mapping[Outcome, int]) -> float:
    total = sum(found.values())
    return (total - found.get(Outcome.OK, 0)) / total if total else 0.0
