"""Running a labelling job from the command line."""

from __future__ import annotations

import shlex
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from habitus.cli.finding import run_path
from habitus.cli.output import program, talk
from habitus.cli.progress import Ahead, Progress
from habitus.cli.running import close_run, interruptible, tell_cap
from habitus.labelling import label_outcomes
from habitus.running import Job, JobRequest, run_job
from habitus.store import RunDir


@dataclass(frozen=True, slots=True)
class JobOptions:
    """Where a job is run, and when it counts as failed."""

    out: Path
    fork: str | None = None
    fresh: frozenset[str] = frozenset()
    failures: float | None = 0.05
    quiet: bool = False


class CountedJob(Job, Protocol):
    """A job that knows how much it is."""

    @property
    def totals(self) -> Mapping[str, int]:
        """How many records each table will have."""
        ...

    @property
    def calls(self) -> int:
        """How many calls that takes, when none has to be made twice."""
        ...


def run_and_count(job: CountedJob, options: JobOptions, show: Callable[[RunDir], None]) -> int:
    """Run a job, show what it came to, and say how it ended.

    Args:
        job: what is run.
        options: where it is run.
        show: prints what the run has.

    Returns:
        0 when complete, 1 when too many records have no usable answer or a cap is reached.
    """
    request = JobRequest(
        out=options.out,
        fork=run_path(options.fork) if options.fork else None,
        fresh=options.fresh,
        to_the_end=options.failures is not None and options.failures >= 1,
    )
    ahead = Ahead(job.totals, job.calls, job.models)
    talk(f"writing to {options.out}")
    again = [program(), *sys.argv[1:]]
    with interruptible(shlex.join(again)):
        summary = run_job(job, request, None if options.quiet else Progress(ahead))
        if not options.quiet:
            with RunDir.open(options.out, write=False) as run:
                show(run)
        code = close_run(summary, options.failures, calls=False, counted=label_outcomes)
        return tell_cap(summary, again) or code
