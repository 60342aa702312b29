"""Running a study from the command line: signals, the closing words, the exit code."""

from __future__ import annotations

import signal

from habitus.cli.output import talk
from habitus.experiments import RunRequest, RunSummary, Study, run_experiment
from habitus.experiments.running import Observer
from habitus.store import RunDir


def run_and_tell(
    study: Study, request: RunRequest, observer: Observer | None, *, show: bool, again: str
) -> int:
    """Run, print the table of results, and say how it ended.

    Returns:
        0 when complete, 1 when too many calls failed. An interrupt is raised again after the
        command that goes on has been told.
    """
    signal.signal(signal.SIGTERM, lambda *_: signal.raise_signal(signal.SIGINT))
    try:
        summary = run_experiment(study, request, observer)
    except KeyboardInterrupt:
        talk(f"stopped; everything that was answered is kept. To go on: {again}")
        raise
    if show:
        print_results(request)
    return _close(study, summary)


def print_results(request: RunRequest) -> None:
    """The table of results of a run, with its notes."""
    from habitus.cli.results import print_main_table

    with RunDir.open(request.out, write=False) as run:
        print_main_table(run)


def _close(study: Study, summary: RunSummary) -> int:
    if summary.unchanged:
        talk("nothing left to do: every answer is stored, no call was made")
    else:
        talk(f"{summary.calls} calls made, {summary.hits} answers were stored already")
    failures = [c for c in summary.counts if c.outcome != "ok"]
    if failures:
        talk("calls without a usable answer:")
        for count in failures:
            talk(f"  {count.stage}  {count.model}  {count.outcome}: {count.calls}")
    allowed = study.experiment.limits.failures
    if allowed is not None and summary.failed_share > allowed:
        share, most = f"{summary.failed_share:.1%}", f"{allowed:.1%}"
        talk(f"{share} of all calls have no usable answer, over the limit of {most}")
        return 1
    return 0
