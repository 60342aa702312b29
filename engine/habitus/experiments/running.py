"""Running an experiment: a run directory, opened models, the pipeline, and what is left behind.

    summary = run_experiment(study, RunRequest(out=Path("runs/demo")), observer)

The same request goes on where it stopped: answers that are stored are found by their keys and
not asked for again. Whatever ends a run (all done, an interrupt, a full disk), what was answered
is on the disk, and the records of every stage are written out in the order of their ids.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

import orjson

from habitus.errors import HabitusError, StoreError
from habitus.experiments.casting import make_cast, make_plan, model_names
from habitus.experiments.config import MAY_CHANGE
from habitus.experiments.materials import materials, run_config
from habitus.experiments.pipeline import Pipeline
from habitus.experiments.resolving import Study
from habitus.experiments.stages import Stage
from habitus.experiments.tabulating import STUDY, write_results
from habitus.models import CallLog, Opening, Recorded, open_model
from habitus.records import Outcome, StageRecord
from habitus.store import CallCount, RunDir

DONE = "done.json"


class RunStoppedError(HabitusError):
    """A run that ended itself early; what it has is kept."""

    exit_code = 1


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


@dataclass(frozen=True, slots=True)
class RunRequest:
    """What is asked of a run.

    ``limit`` takes the first queries of each persona; ``fork`` starts a new run with the stored
    calls of an old one; ``base`` is where relative paths of model entries start.
    """

    out: Path
    until: Stage = Stage.VERDICTS
    limit: int | None = None
    fork: Path | None = None
    base: Path = field(default_factory=Path.cwd)


@dataclass(frozen=True, slots=True)
class RunSummary:
    """What a run came to. ``calls`` and ``hits`` are of this session, ``counts`` of the run."""

    out: Path
    calls: int
    hits: int
    counts: tuple[CallCount, ...]
    unchanged: bool = False

    @property
    def failed_share(self) -> float:
        """Share of the run's calls whose answer cannot be used."""
        total = sum(count.calls for count in self.counts)
        bad = sum(count.calls for count in self.counts if count.outcome is not Outcome.OK)
        return bad / total if total else 0.0


def run_experiment(
    study: Study, request: RunRequest, observer: Observer | None = None
) -> RunSummary:
    """Run a study, or go on with it.

    Raises:
        ConfigChangedError: the directory holds a run of another configuration.
        RunStoppedError: the first calls of a model all failed alike.
        StoreError: the run cannot be read or written.
    """
    watching = observer or Silent()
    with _opened(study, request) as run:
        if _is_done(run, request):
            write_results(run)
            return RunSummary(request.out, 0, 0, tuple(run.calls.counts()), unchanged=True)
        run.write(STUDY, materials(study).model_dump_json(indent=1).encode())
        session = _Session(study, request, run, watching)
        try:
            with asyncio.Runner(loop_factory=_loop_factory()) as runner:
                runner.run(session.run())
        finally:
            watching.end()
            session.leave()
        return session.summary()


class _Session:
    """One process working on a run."""

    def __init__(self, study: Study, request: RunRequest, run: RunDir, observer: Observer) -> None:
        self.study = study
        self.request = request
        self.store = run
        self.observer = observer
        self.models: dict[str, Recorded] = {}

    async def run(self) -> None:
        """Open the models, run the pipeline, close the models."""
        async with self._opened_models():
            self.observer.begin(self.store, self.models)
            plan = make_plan(self.study, self.request.limit)
            cast = make_cast(self.study, self.models)
            await Pipeline(plan, cast, self, self.request.until).run()
        self._note_done()

    async def put(self, table: str, record: StageRecord) -> None:
        """Keep a record, tell the observer, and stop when nothing can succeed."""
        await self.store.records.put(table, record)
        self.observer.put(table, record)
        if record.outcome is Outcome.ERROR:
            self._stop_if_all_fail()

    def leave(self) -> None:
        """Write out what there is; called however the session ended."""
        with contextlib.suppress(StoreError):  # the error that ended the session says it already
            self.store.records.export()
            write_results(self.store)

    def summary(self) -> RunSummary:
        """What the session came to."""
        counters = [model.counters for model in self.models.values()]
        return RunSummary(
            out=self.request.out,
            calls=sum(c.calls for c in counters),
            hits=sum(c.hits for c in counters),
            counts=tuple(self.store.calls.counts()),
        )

    @contextlib.asynccontextmanager
    async def _opened_models(self) -> AsyncIterator[None]:
        with contextlib.ExitStack() as runs:
            opening = Opening(base=self.request.base, stored_run=_stored_run(runs))
            try:
                for name in model_names(self.study):
                    entry = self.study.experiment.models[name]
                    model = open_model(name, entry, opening)
                    self.models[name] = Recorded(model, entry.identity(name), self.store.calls)
                yield
            finally:
                for model in self.models.values():
                    await model.aclose()

    def _stop_if_all_fail(self) -> None:
        for name, model in self.models.items():
            reason = model.counters.failing_alike(self.study.experiment.limits.alike)
            if reason:
                raise RunStoppedError(
                    f"model {name!r}: the first {model.counters.calls} calls all failed alike: "
                    f"{reason}; mend it and give the same command again"
                )

    def _note_done(self) -> None:
        failed = sum(
            self.store.records.counts(table).get(Outcome.ERROR, 0)
            for table in self.store.records.stages()
        )
        note = {"stage": int(self.request.until), "limit": self.request.limit, "errors": failed}
        self.store.write(DONE, orjson.dumps(note))


@contextlib.contextmanager
def _opened(study: Study, request: RunRequest) -> Any:
    """The run directory, open for writing."""
    config = run_config(study)
    manifest = {"seed": study.experiment.seed, "content": dict(study.files)}
    if request.fork is not None:
        run = RunDir.fork(request.fork, request.out, config, manifest)
    else:
        run = RunDir.begin(request.out, config, manifest=manifest, may_change=MAY_CHANGE)
    with run:
        yield run


def _is_done(run: RunDir, request: RunRequest) -> bool:
    """Whether an earlier session did all that is asked for, and left no call to ask again."""
    path = run.path / DONE
    if not path.exists():
        return False
    note = orjson.loads(path.read_bytes())
    enough = note["limit"] is None or (request.limit is not None and request.limit <= note["limit"])
    return bool(enough and note["stage"] >= int(request.until) and not note["errors"])


def _stored_run(runs: contextlib.ExitStack) -> Any:
    """Opens other runs for reading, and closes them with the session."""

    def open_run(path: Path) -> tuple[Mapping[str, Any], CallLog]:
        run = runs.enter_context(RunDir.open(path, write=False))
        return run.config, run.calls

    return open_run


def _loop_factory() -> Any:
    try:
        import uvloop  # noqa: PLC0415  (not everywhere)
    except ImportError:
        return None
    return uvloop.new_event_loop
