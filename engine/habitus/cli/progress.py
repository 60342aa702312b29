"""What a run shows while it goes on: one bar a stage on a terminal, a line now and then elsewhere."""

from __future__ import annotations

import sys
import time
from collections import Counter
from collections.abc import Callable, Mapping
from typing import Any

from habitus.cli.output import talk
from habitus.experiments import RunRequest, Stage, Study, stage_counts
from habitus.models import Recorded
from habitus.records import Outcome, StageRecord
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


def study_totals(study: Study, request: RunRequest) -> dict[str, int]:
    """How many records of each table a run will have."""
    counts = stage_counts(study, request.limit).model_dump()
    return {
        table: counts[table]
        for table, stage in _STAGE_OF.items()
        if counts[table] and stage <= request.until
    }


class Progress:
    """Counts records as they come and shows how many are still to come.

    Args:
        totals: how many records each table will have.
    """

    def __init__(self, totals: Mapping[str, int]) -> None:
        self._totals = totals
        self._done: Counter[str] = Counter()
        self._failed: Counter[str] = Counter()
        self._models: Mapping[str, Recorded] = {}
        self._bars: _Bars | None = None
        self._last_line = time.monotonic()

    def begin(self, run: RunDir, models: Mapping[str, Recorded]) -> None:  # noqa: ARG002
        """Start to show."""
        self._models = models
        if sys.stderr.isatty():
            self._bars = _Bars(self._totals, self._calls)

    def put(self, table: str, record: StageRecord) -> None:
        """One record more."""
        self._done[table] += 1
        self._failed[table] += record.outcome is not Outcome.OK
        if self._bars is not None:
            self._bars.show(table, self._done[table], self._failed[table])
        elif time.monotonic() - self._last_line > _LINE_EVERY:
            self._last_line = time.monotonic()
            talk(self._line())

    def end(self) -> None:
        """Leave the terminal as it should be."""
        if self._bars is not None:
            self._bars.stop()
        talk(self._line())

    def _calls(self) -> str:
        counters = [model.counters for model in self._models.values()]
        prompt = sum(c.prompt for c in counters)
        cached = sum(c.cached for c in counters)
        share = f", {cached / prompt:.0%} of prompt tokens from cache" if prompt else ""
        return f"{sum(c.calls for c in counters):,} calls{share}"

    def _line(self) -> str:
        parts = [f"{table} {self._done[table]:,}/{n:,}" for table, n in self._totals.items()]
        failed = sum(self._failed.values())
        parts += [f"{failed:,} without answer"] if failed else []
        return "; ".join([*parts, self._calls()])


class _Bars:
    """Bars of rich, made only on a terminal; the line of calls below them is read anew each time."""

    def __init__(self, totals: Mapping[str, int], calls: Callable[[], str]) -> None:
        from rich.console import Console
        from rich.live import Live
        from rich.progress import BarColumn, MofNCompleteColumn, TextColumn
        from rich.progress import Progress as RichProgress

        console = Console(stderr=True, markup=False, emoji=False, highlight=False)
        self._progress = RichProgress(
            TextColumn("{task.description:<16}", markup=False),
            BarColumn(),
            MofNCompleteColumn(),
            TextColumn("{task.fields[note]}", markup=False),
            console=console,
        )
        self._tasks: dict[str, Any] = {
            table: self._progress.add_task(table, total=total, note="")
            for table, total in totals.items()
        }
        self._calls = calls
        self._live = Live(console=console, get_renderable=self._all, refresh_per_second=4)
        self._live.start()

    def show(self, table: str, done: int, failed: int) -> None:
        if table in self._tasks:
            note = f"{failed:,} without answer" if failed else ""
            self._progress.update(self._tasks[table], completed=done, note=note)

    def stop(self) -> None:
        self._live.stop()

    def _all(self) -> Any:
        from rich.console import Group
        from rich.text import Text

        return Group(self._progress, Text(self._calls()))
