"""Running an experiment: a run directory, opened models, the pipeline, and what is left behind.

    summary = run_experiment(study, RunRequest(out=Path("runs/demo")), observer)

The same request goes on where it stopped: answers that are stored are found by their keys and
not asked for again. Whatever ends a run (all done, an interrupt, a full disk), what was answered
is on the disk, and the records of every stage are written out in the order of their ids.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections import Counter
from collections.abc import AsyncIterator, Iterable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Protocol

import orjson

from habitus.errors import HabitusError, StoreError
from habitus.experiments.casting import make_cast, make_plan, model_names
from habitus.experiments.config import MAY_CHANGE
from habitus.experiments.materials import materials, run_config
from habitus.experiments.pipeline import Pipeline
from habitus.experiments.stages import Stage
from habitus.experiments.study import Study
from habitus.experiments.tabulating import STUDY, made_up_models, write_results
from habitus.models import CallLog, ChatModel, Opening, Recorded, open_model
from habitus.models.entry import Factory
from habitus.records import Outcome, StageRecord
from habitus.store import RunDir, is_run

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
    calls of an old one; ``fresh`` names stages of calls whose stored answers are asked for again;
    ``base`` is where relative paths of model entries start. ``opener``
    makes models of entries: give one of your own to put another model behind a name.
    """

    out: Path
    until: Stage = Stage.VERDICTS
    limit: int | None = None
    fork: Path | None = None
    fresh: frozenset[str] = frozenset()
    base: Path = field(default_factory=Path.cwd)
    opener: Factory = open_model


@dataclass(frozen=True, slots=True)
class RunSummary:
    """What a run came to.

    ``calls`` and ``hits`` are of this session. ``outcomes`` are those of the answers that the run
    rests on, by model (an answer that failed and was asked for again is not among them), and
    ``records`` those of its records, by table. ``unchanged``: there was nothing left to do.
    """

    out: Path
    calls: int
    hits: int
    outcomes: Mapping[str, Mapping[Outcome, int]]
    records: Mapping[str, Mapping[Outcome, int]]
    unchanged: bool = False

    @property
    def failed_shares(self) -> dict[str, float]:
        """Share without a usable answer: of all calls, and of the records of each table.

        An answer that came but could not be read is a failed record and no failed call. Attempts
        at sessions are left out: a failed one is followed by another, and histories count what
        could not be made.
        """
        calls: Counter[Outcome] = Counter()
        for found in self.outcomes.values():
            calls.update(found)
        shares = {"calls": _failed(calls)}
        return shares | {t: _failed(n) for t, n in self.records.items() if t != "attempts"}


def run_experiment(
    study: Study, request: RunRequest, observer: Observer | None = None
) -> RunSummary:
    """Run a study, or go on with it.

    Raises:
        ConfigChangedError: the directory holds a run of another configuration.
        ModelError: a model cannot be opened; a new run is then not made.
        RunStoppedError: the first calls of a model all failed alike.
        StoreError: the run cannot be read or written.
    """
    with contextlib.ExitStack() as open_runs:
        run = _existing(study, request)
        if run is not None:
            open_runs.enter_context(run)
            note = _done(run, request)
            if note is not None:
                return _unchanged(study, request, run, note)
        session = _Session(study, request, observer or Silent(), open_runs, run)
        try:
            with asyncio.Runner(loop_factory=_loop_factory()) as runner:
                runner.run(session.run())
        except BaseException:
            with contextlib.suppress(StoreError):  # what ended the run is to be said
                session.leave()
            raise
        session.leave()
        return session.finish()


class _Session:
    """One process working on a run. A run that is not there is made when its models are open."""

    def __init__(
        self,
        study: Study,
        request: RunRequest,
        observer: Observer,
        open_runs: contextlib.ExitStack,
        run: RunDir | None,
    ) -> None:
        self.study = study
        self.request = request
        self.observer = observer
        self.models: dict[str, Recorded] = {}
        self._open_runs = open_runs
        self._run = run
        self._earlier: dict[str, set[str]] = {}

    @property
    def store(self) -> RunDir:
        """The run directory."""
        if self._run is None:
            raise StoreError(f"{self.request.out} is not open")
        return self._run

    async def run(self) -> None:
        """Open the models and the run, do the work, close the models."""
        plan = make_plan(self.study, self.request.limit)
        async with self._opened_models() as models:
            if self._run is None:
                self._run = self._open_runs.enter_context(_new(self.study, self.request))
            self._begin(models)
            cast = make_cast(self.study, self.models)
            await Pipeline(plan, cast, self, self.request.until).run()

    async def put(self, table: str, record: StageRecord) -> None:
        """Keep a record, tell the observer, and stop when nothing can succeed."""
        await self.store.records.put(table, record)
        self.observer.put(table, record)
        if record.outcome is Outcome.ERROR:
            self._stop_if_all_fail()

    async def drop(self, table: str, name: str) -> None:
        """Forget a record of an earlier session that is not made any more."""
        if table not in self._earlier:
            self._earlier[table] = set(self.store.records.ids(table))
        if name in self._earlier[table]:
            await self.store.records.drop(table, name)

    def leave(self) -> None:
        """Write out what there is; called however the session ended."""
        if self.models:  # else it never began, and the error that ended it is all there is to say
            self.observer.end()
            self.store.records.export()
            write_results(self.store)

    def finish(self) -> RunSummary:
        """Note that all that was asked for is done and written out."""
        outcomes = {name: model.counters.outcomes for name, model in self.models.items()}
        summary = _summary(self.store, self.models.values(), outcomes)
        failed = sum(found.get(Outcome.ERROR, 0) for found in summary.records.values())
        note = {
            "stage": int(self.request.until),
            "limit": self.request.limit,
            "errors": failed,
            "outcomes": {name: {str(o): n for o, n in c.items()} for name, c in outcomes.items()},
        }
        self.store.write(DONE, orjson.dumps(note))
        return summary

    def _begin(self, models: Mapping[str, ChatModel]) -> None:
        _keep_study(self.study, self.store, self.request.base)
        for name, model in models.items():
            identity = self.study.experiment.models[name].identity(name)
            self.models[name] = Recorded(model, identity, self.store.calls, self.request.fresh)
        self.observer.begin(self.store, self.models)

    @contextlib.asynccontextmanager
    async def _opened_models(self) -> AsyncIterator[Mapping[str, ChatModel]]:
        with contextlib.ExitStack() as runs:
            opening = Opening(base=self.request.base, stored_run=_stored_run(runs))
            models: dict[str, ChatModel] = {}
            try:
                for name in model_names(self.study):
                    entry = self.study.experiment.models[name]
                    models[name] = self.request.opener(name, entry, opening)
                yield models
            finally:
                for model in models.values():
                    await model.aclose()

    def _stop_if_all_fail(self) -> None:
        for name, model in self.models.items():
            reason = model.counters.failing_alike(self.study.experiment.limits.alike)
            if reason:
                raise RunStoppedError(
                    f"model {name!r}: the first {model.counters.calls} calls all failed alike: "
                    f"{reason}; mend it and give the same command again"
                )


def _existing(study: Study, request: RunRequest) -> RunDir | None:
    """The run that is there already, open for writing."""
    if not is_run(request.out):
        return None
    if request.fork is not None and request.fork.resolve() == request.out.resolve():
        raise StoreError(f"{request.out} cannot be its own fork; name another directory with --out")
    return RunDir.open(request.out, config=run_config(study), may_change=MAY_CHANGE)


def _new(study: Study, request: RunRequest) -> RunDir:
    """A new run, empty or with the answers of the run it is forked from."""
    config = run_config(study)
    manifest = {"seed": study.experiment.seed, "content": dict(study.files)}
    if request.fork is not None:
        return RunDir.fork(request.fork, request.out, config, manifest)
    return RunDir.create(request.out, config, manifest)


def _unchanged(
    study: Study, request: RunRequest, run: RunDir, note: Mapping[str, Any]
) -> RunSummary:
    """Nothing to ask; titles and the rules of results may have changed."""
    _keep_study(study, run, request.base)
    write_results(run)
    outcomes = {
        name: {Outcome(outcome): n for outcome, n in found.items()}
        for name, found in note["outcomes"].items()
    }
    return replace(_summary(run, (), outcomes), unchanged=True)


def _summary(
    run: RunDir, models: Iterable[Recorded], outcomes: Mapping[str, Mapping[Outcome, int]]
) -> RunSummary:
    counters = [model.counters for model in models]
    return RunSummary(
        out=run.path,
        calls=sum(c.calls for c in counters),
        hits=sum(c.hits for c in counters),
        outcomes=outcomes,
        records=_records(run),
    )


def _records(run: RunDir) -> dict[str, dict[Outcome, int]]:
    return {table: run.records.counts(table) for table in run.records.stages()}


def _failed(found: Mapping[Outcome, int]) -> float:
    total = sum(found.values())
    return 1 - found.get(Outcome.OK, 0) / total if total else 0.0


def _keep_study(study: Study, run: RunDir, base: Path) -> None:
    kept = materials(study, made_up_models(study, base))
    run.write(STUDY, kept.model_dump_json(indent=1).encode())


def _done(run: RunDir, request: RunRequest) -> Mapping[str, Any] | None:
    """The note of an earlier session that did all that is asked for and left no call to ask."""
    path = run.path / DONE
    if request.fresh or not path.exists():
        return None
    try:
        note: Mapping[str, Any] = orjson.loads(path.read_bytes())
        most, stage, errors, _ = (note[key] for key in ("limit", "stage", "errors", "outcomes"))
    except (ValueError, KeyError, TypeError):  # damaged: going through all of it finds the same
        return None
    enough = most is None or (request.limit is not None and request.limit <= most)
    return note if enough and stage >= int(request.until) and not errors else None


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
