"""One process working on a run: it goes on where an earlier one stopped.

Answers that are stored are found by their keys and not asked for again. Whatever ends a session
(all done, an interrupt, a full disk, a cap on what it may spend), what was answered is on the disk,
and the records of every table are written out in the order of their ids.
"""

from __future__ import annotations

import contextlib
import sys
from collections import Counter
from collections.abc import AsyncIterator, Iterable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import orjson

from habitus.content.visible import safe_text
from habitus.errors import StoreError
from habitus.models import Budget, CallLog, ChatModel, NotAskedError, Opening, Recorded
from habitus.models.spending import Reached, check_prices
from habitus.records import Outcome, StageRecord
from habitus.running.account import inherited, open_budget
from habitus.running.ending import run_until_ended
from habitus.running.job import (
    Job,
    JobRequest,
    Observer,
    RunStoppedError,
    RunSummary,
    Silent,
)
from habitus.running.learning import Learning
from habitus.running.madeup import keep_made_up
from habitus.running.unreadable import Unreadable
from habitus.running.versions import refuse_newer
from habitus.store import RunDir, is_run

DONE = "done.json"
_REASONS = 50


def run_job(job: Job, request: JobRequest, observer: Observer | None = None) -> RunSummary:
    """Run a job, or go on with it. One that reaches a cap is a valid run, with ``reached`` set.

    Raises:
        ConfigChangedError: the directory holds a run of another configuration.
        ModelError: a model cannot be opened; a new run is then not made.
        RunStoppedError: the first calls of a model all failed alike.
        StoreError: the run cannot be read or written.
        UsageError: money is capped, and what a model costs is not known.
    """
    with contextlib.ExitStack() as open_runs:
        run = _existing(job, request)
        if run is not None:
            open_runs.enter_context(run)
            note = _done(job, run, request)
            if note is not None:
                return _unchanged(job, request, run, note)
        check_prices(job.caps, job.models)
        session = Session(job, request, observer or Silent(), open_runs, run)
        try:
            run_until_ended(session.run(), _loop_factory())
        except BaseException:
            with contextlib.suppress(StoreError):  # what ended the run is to be said
                session.leave()
            raise
        session.leave()
        return session.finish()


_NEVER = sys.maxsize  # calls that may fail alike


class Session:
    """One process working on a run. A run that is not there is made when its models are open."""

    def __init__(
        self,
        job: Job,
        request: JobRequest,
        observer: Observer,
        open_runs: contextlib.ExitStack,
        run: RunDir | None,
    ) -> None:
        self.models: dict[str, Recorded] = {}
        self._job = job
        self._request = request
        self._observer = observer
        self._open_runs = open_runs
        self._run = run
        self._budget: Budget | None = None
        self._earlier: dict[str, set[str]] = {}
        self._alike = _NEVER if request.to_the_end else job.alike
        self._unreadable = Unreadable(self._alike)
        self._learning = Learning(job.models, run.path if run else request.fork)

    @property
    def store(self) -> RunDir:
        """The run directory."""
        if self._run is None:
            raise StoreError(f"{self._request.out} is not open")
        return self._run

    async def run(self) -> None:
        """Open the models and the run, do the work, close the models."""
        async with self._opened_models() as models:
            if self._run is None:
                self._run = self._open_runs.enter_context(_new(self._job, self._request))
            self._begin(models)
            with contextlib.suppress(NotAskedError):  # what it is about is left out
                await self._job.work(self)

    async def put(self, table: str, record: StageRecord) -> None:
        """Keep a record, tell the observer, and stop when nothing can succeed."""
        await self.store.records.put(table, record)
        self._learning.keep(self.store, self.models)
        self._observer.put(table, record)
        self._stop_if_all_fail()  # whatever the record: a check may fail where its session is good
        self._stop_if_never_read(record)

    async def drop(self, table: str, name: str) -> None:
        """Forget a record of an earlier session that is not made any more."""
        if table not in self._earlier:
            self._earlier[table] = set(self.store.records.ids(table))
        if name in self._earlier[table]:
            await self.store.records.drop(table, name)

    def leave(self) -> None:
        """Write out what there is; called however the session ended."""
        if self.models:  # else it never began, and the error that ended it is all there is to say
            self._observer.end()
            self._learning.keep(self.store, self.models)
            self.store.records.export()
            self._job.leave(self.store)

    def finish(self) -> RunSummary:
        """Note that all that was asked for is done and written out, unless a cap ended it."""
        outcomes = {name: model.counters.outcomes for name, model in self.models.items()}
        reasons = {name: _first(model.counters.reasons) for name, model in self.models.items()}
        summary = _summary(self.store, self.models.values(), outcomes)
        summary = replace(summary, reasons=reasons)
        if self._reached is not None:
            return replace(summary, reached=self._reached)
        failed = sum(found.get(Outcome.ERROR, 0) for found in summary.records.values())
        note = {
            **self._job.asked(),
            "errors": failed,
            "outcomes": {name: {str(o): n for o, n in c.items()} for name, c in outcomes.items()},
            "reasons": {name: dict(found) for name, found in summary.reasons.items()},
        }
        self.store.write(DONE, orjson.dumps(note))
        return summary

    @property
    def _reached(self) -> Reached | None:
        return self._budget.reached if self._budget else None

    def _begin(self, models: Mapping[str, ChatModel]) -> None:
        self.store.note_session()
        _keep(self._job, self._request, self.store)
        self._budget = open_budget(self.store, self._job.caps, self._job.models)
        for name, model in models.items():
            self.models[name] = Recorded(
                model,
                self._job.models[name].identity(name),
                self.store.calls,
                self._request.fresh,
                self._budget.purse(name) if self._job.caps.limits else None,
            )
        self._observer.begin(self.store, self.models)

    @contextlib.asynccontextmanager
    async def _opened_models(self) -> AsyncIterator[Mapping[str, ChatModel]]:
        with contextlib.ExitStack() as runs:
            opening = Opening(base=self._request.base, stored_run=_stored_run(runs))
            models: dict[str, ChatModel] = {}
            try:
                for name in self._job.models:
                    entry = self._learning.entry(name)
                    models[name] = self._request.opener(name, entry, opening)
                yield models
            finally:
                for model in models.values():
                    await model.aclose()

    def _stop_if_never_read(self, record: StageRecord) -> None:
        found = self._unreadable.see(record)
        if found is not None:
            raise RunStoppedError(
                f"{found.who}: none of the first {found.answers} answers could be read: "
                f"{found.reason}; another model, prompt or max_tokens is another run: name its "
                "directory with --out, and this one with --fork"
            )

    def _stop_if_all_fail(self) -> None:
        for name, model in self.models.items():
            found = model.counters.failing_alike(self._alike)
            if found is not None:
                stage = f" ({found.what})" if found.what else ""
                mend = "mend it and give the same command again"
                if found.reason.startswith(Outcome.TRUNCATED):  # such an answer is kept
                    mend = (
                        "a larger max_tokens is another run: name its directory with --out, and "
                        "this one with --fork"
                    )
                raise RunStoppedError(
                    f"model {name!r}: the first {found.calls} calls all failed alike: "
                    f"{found.reason}; {mend}{stage}",
                    name,
                )


def _existing(job: Job, request: JobRequest) -> RunDir | None:
    """The run that is there already, open for writing."""
    if not is_run(request.out):
        return None
    if request.fork is not None and request.fork.resolve() == request.out.resolve():
        raise StoreError(f"{request.out} cannot be its own fork; name another directory with --out")
    refuse_newer(request.out, job)
    return RunDir.open(request.out, config=job.config, may_change=job.may_change)


def _new(job: Job, request: JobRequest) -> RunDir:
    """A new run, empty or with the answers of the run it is forked from."""
    if request.fork is not None:
        manifest = {**job.manifest, **inherited(request.fork)}
        return RunDir.fork(request.fork, request.out, job.config, manifest)
    return RunDir.create(request.out, job.config, job.manifest)


def _keep(job: Job, request: JobRequest, run: RunDir) -> None:
    """What it takes to read the run without the files it was made from."""
    keep_made_up(run, job.models, request.base)
    job.begin(run)


def _unchanged(job: Job, request: JobRequest, run: RunDir, note: Mapping[str, Any]) -> RunSummary:
    """Nothing to ask; titles and the rules of results may have changed."""
    _keep(job, request, run)
    job.leave(run)
    outcomes = {
        name: {Outcome(outcome): n for outcome, n in found.items()}
        for name, found in note["outcomes"].items()
    }
    reasons = note.get("reasons", {})  # a run of before does not have them
    return replace(_summary(run, (), outcomes), unchanged=True, reasons=reasons)


def _summary(
    run: RunDir, models: Iterable[Recorded], outcomes: Mapping[str, Mapping[Outcome, int]]
) -> RunSummary:
    counters = [model.counters for model in models]
    return RunSummary(
        out=run.path,
        calls=sum(c.calls for c in counters),
        hits=sum(c.hits for c in counters),
        outcomes=outcomes,
        records={table: run.records.counts(table) for table in run.records.stages()},
    )


def _first(reasons: Counter[str]) -> dict[str, int]:
    """The commonest reasons; servers can give a new one for each call."""
    ranked = sorted(reasons.items(), key=lambda found: (-found[1], found[0]))
    return {safe_text(reason): count for reason, count in ranked[:_REASONS]}


def _done(job: Job, run: RunDir, request: JobRequest) -> Mapping[str, Any] | None:
    """The note of an earlier session that did all that is asked for and left no call to ask."""
    path = run.path / DONE
    if request.fresh or not path.exists():
        return None
    try:
        note: Mapping[str, Any] = orjson.loads(path.read_bytes())
        errors, _ = note["errors"], note["outcomes"]
        return note if job.covered_by(note) and not errors else None
    except (ValueError, KeyError, TypeError):  # damaged: going through all of it finds the same
        return None


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
