"""What a run shows while it goes on: one bar a stage on a terminal, a line now and then elsewhere."""

from __future__ import annotations

import sys
import time
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from habitus.cli.output import talk
from habitus.cli.pace import Pace
from habitus.experiments import RunRequest, Stage, Study, plan_costs, stage_counts
from habitus.models import ModelEntry, Recorded
from habitus.records import Attempt, Outcome, StageRecord
from habitus.store import RunDir

_STAGE_OF = {
    "attempts": Stage.HISTORIES,
    "histories": Stage.HISTORIES,
    "recommendations": Stage.CHECKLISTS,
    "responses": Stage.RESPONSES,
    "evaluations": Stage.VERDICTS,
    "safety": Stage.VERDICTS,
}
_LINE_EVERY = 10.0  # seconds between lines of a log


@dataclass(frozen=True, slots=True)
class Ahead:
    """What a run has before it.

    ``records`` says how many records each table will have, ``calls`` how many calls that takes, as
    far as is known (0: it is not); ``entries`` are the models, with their prices.
    """

    records: Mapping[str, int]
    calls: int = 0
    entries: Mapping[str, ModelEntry] = field(default_factory=dict)


def study_ahead(study: Study, request: RunRequest) -> Ahead:
    """What a run of a study has before it."""
    counts = stage_counts(study, request.limit).model_dump()
    records = {
        table: counts[table]
        for table, stage in _STAGE_OF.items()
        if counts[table] and stage <= request.until
    }
    whole = request.until is Stage.VERDICTS
    calls = sum(stage.calls[0] for stage in plan_costs(study, request.limit)) if whole else 0
    return Ahead(records, calls, study.experiment.models)


class Progress:
    """Counts records as they come and shows how many are still to come."""

    def __init__(self, ahead: Ahead) -> None:
        self._ahead = ahead
        self._counts = {table: Counter[Outcome]() for table in ahead.records}
        self._again = Counter[str]()  # attempts at sessions that were held before
        self._pace = Pace({}, {}, 0)
        self._bars: _Bars | None = None
        self._last_line = time.monotonic()

    def begin(self, run: RunDir, models: Mapping[str, Recorded]) -> None:  # noqa: ARG002
        """Start to show."""
        self._pace = Pace(models, self._ahead.entries, self._ahead.calls)
        if sys.stderr.isatty():
            self._bars = _Bars(self._ahead.records, self._pace.told)

    def put(self, table: str, record: StageRecord) -> None:
        """One record more."""
        counts = self._counts.setdefault(table, Counter())
        counts[record.outcome] += 1
        self._again[table] += isinstance(record, Attempt) and record.attempt > 0
        if self._bars is not None:
            self._bars.show(table, self._done(table), self._note(table))
        elif time.monotonic() - self._last_line > _LINE_EVERY:
            self._last_line = time.monotonic()
            talk(self._line())

    def end(self) -> None:
        """Leave the terminal as it should be."""
        if self._bars is not None:
            self._bars.stop()
        talk(self._line())

    def _done(self, table: str) -> int:
        """Records, or sessions: several attempts may be made at one."""
        return self._counts[table].total() - self._again[table]

    def _note(self, table: str) -> str:
        again = f"{self._again[table]:,} more tries" if self._again[table] else ""
        return ", ".join(filter(None, [failures(self._counts[table]), again]))

    def _line(self) -> str:
        parts = []
        for table, total in self._ahead.records.items():
            note = self._note(table)
            told = f"{table} {self._done(table):,}/{total:,}"
            parts.append(f"{told} ({note})" if note else told)
        return "; ".join([*parts, self._pace.told()])


def failures(counts: Mapping[Outcome, int]) -> str:
    """Records without a usable answer, by outcome: ``refused 2, unparsed 1``."""
    found = sorted((str(outcome), n) for outcome, n in counts.items() if n)
    return ", ".join(f"{outcome} {n:,}" for outcome, n in found if outcome != Outcome.OK)


class _Bars:
    """Bars of rich, made only on a terminal; the line below them is read anew each time.

    What is written to the terminal meanwhile, by whomever, appears above the bars.
    """

    def __init__(self, totals: Mapping[str, int], told: Callable[[], str]) -> None:
        from rich.console import Console
        from rich.live import Live
        from rich.progress import BarColumn, MofNCompleteColumn, TextColumn
        from rich.progress import Progress as RichProgress
        from rich.table import Column

        widest = 2 * len(str(max(totals.values(), default=0))) + 1
        console = Console(stderr=True, markup=False, emoji=False, highlight=False)
        self._progress = RichProgress(
            TextColumn("{task.description:<16}", markup=False),
            BarColumn(),
            MofNCompleteColumn(table_column=Column(no_wrap=True, min_width=widest)),
            TextColumn("{task.fields[note]}", markup=False),
            console=console,
        )
        self._tasks: dict[str, Any] = {
            table: self._progress.add_task(table, total=total, note="")
            for table, total in totals.items()
        }
        self._told = told
        self._live = Live(console=console, get_renderable=self._all, refresh_per_second=4)
        self._live.start()

    def show(self, table: str, done: int, note: str) -> None:
        if table in self._tasks:
            self._progress.update(self._tasks[table], completed=done, note=note)

    def stop(self) -> None:
        self._live.stop()

    def _all(self) -> Any:
        from rich.console import Group
        from rich.text import Text

        return Group(self._progress, Text(self._told()))
