"""Running a study from the command line: signals, the closing words, the exit code."""

from __future__ import annotations

import shlex
import signal
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import TYPE_CHECKING

from habitus.cli.caps import raised
from habitus.cli.output import print_table, program, talk
from habitus.experiments import RunRequest, Stage, Study, run_experiment, run_outcomes
from habitus.experiments.tabulating import STUDY
from habitus.running import Observer, RunStoppedError, RunSummary
from habitus.store import RunDir

if TYPE_CHECKING:
    from habitus.analysis import Cause, OutcomeTable

_NEVER = 10**9  # calls that may fail alike
#: Stages of which `habitus view` shows a record by its id.
_SHOWN = frozenset({"attempts", "checks", "histories", "responses", "verdicts", "items", "labels"})


def run_and_tell(
    study: Study,
    request: RunRequest,
    observer: Observer | None,
    *,
    show: bool,
    again: Sequence[str],
    before: Sequence[Stage] = (),
) -> int:
    """Run, print the table of results, and say how it ended.

    Args:
        study: what is run.
        request: how it is run.
        observer: whoever watches.
        show: whether to print the table.
        again: the command that goes on, for whoever interrupts this one.
        before: stages to be through with, one after the other, before all of it is run.

    Returns:
        0 when complete, 1 when too many calls failed or a cap is reached. An interrupt is raised
        again after the command that goes on has been told.
    """
    with interruptible(shlex.join(again)):
        with _going_on_without(study, again):
            summary = _together(list(_sessions(study, request, observer, before)))
        if show:
            print_results(request)
        code = close_run(summary, study.experiment.limits.failures, counted=run_outcomes)
        return tell_cap(summary, again) or code


def _sessions(
    study: Study, request: RunRequest, observer: Observer | None, before: Sequence[Stage]
) -> Iterator[RunSummary]:
    """Each part of a run; the last of them is the one that reaches a cap."""
    for until in (*before, request.until):
        summary = run_experiment(study, replace(request, until=until), observer)
        yield summary
        if summary.reached:
            return


@contextmanager
def interruptible(again: str) -> Iterator[None]:
    """A request to end is an interrupt, and an interrupt says by which command to go on."""
    old = signal.signal(signal.SIGTERM, _interrupt)
    interrupt = signal.getsignal(signal.SIGINT)
    try:
        yield
    except KeyboardInterrupt:
        signal.signal(signal.SIGINT, signal.SIG_IGN)  # a second one is not to take these words away
        talk(f"stopped; everything that was answered is kept. To go on: {again}")
        raise
    finally:
        signal.signal(signal.SIGTERM, old)
        signal.signal(signal.SIGINT, interrupt)


@contextmanager
def _going_on_without(study: Study, again: Sequence[str]) -> Iterator[None]:
    """A run that stopped early says what it is about, and how the rest of it can be had at once."""
    try:
        yield
    except RunStoppedError as stopped:
        names = [t for t, role in study.experiment.targets.items() if role.model == stopped.model]
        whose = f" (of the targets {', '.join(names)})" if len(names) > 1 else ""
        whose = whose or "".join(f" (of the target {name})" for name in names)
        on = shlex.join([*again, "--set", f"limits.alike={_NEVER}"])
        what = (
            f"the model {stopped.model}{whose} does not answer" if stopped.model else "is not read"
        )
        raise RunStoppedError(
            f"{stopped}\nwhat was answered is kept. To go on with everything else, and count what "
            f"{what} as failed: {on}",
            stopped.model,
        ) from None


def _interrupt(*_: object) -> None:
    """What a request to end does: an interrupt, also where a shell has interrupts ignored."""
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        raise KeyboardInterrupt
    signal.raise_signal(signal.SIGINT)


def _together(parts: Sequence[RunSummary]) -> RunSummary:
    """Several sessions as one: the last found in the store what those before it had asked."""
    last = parts[-1]
    calls = sum(part.calls for part in parts)
    hits = max(0, last.calls + last.hits - calls)
    return replace(last, calls=calls, hits=hits, unchanged=all(part.unchanged for part in parts))


def print_results(request: RunRequest) -> None:
    """The table of results of a run, with its notes."""
    from habitus.cli.results import print_main_table

    with RunDir.open(request.out, write=False) as run:
        print_main_table(run)


def close_run(
    summary: RunSummary,
    allowed: float | None,
    *,
    calls: bool = True,
    counted: Callable[[RunDir], OutcomeTable] | None = None,
) -> int:
    """Say what a run came to.

    Args:
        summary: what it came to.
        allowed: the share without a usable answer that is still a success; None allows all.
        calls: whether calls are held to it as well as records. Not where a failed call is asked
            once more and the record says how that ended.
        counted: counts the outcomes of the run, for the table of causes where too much failed.

    Returns:
        0, or 1 when a larger share than is allowed has no usable answer.
    """
    if summary.unchanged:
        talk("nothing left to do: every answer is stored, no call was made")
    else:
        talk(f"{summary.calls} calls made, {summary.hits} answers were stored already")
    _tell_failures(summary)
    over = {
        what: share
        for what, share in summary.failed_shares.items()
        if allowed is not None and share > allowed and (calls or what != "calls")
    }
    for what, share in over.items():
        talk(_over(what, share, allowed or 0.0))
    if over and counted is not None:
        with RunDir.open(summary.out, write=False) as run:
            _tell_causes(summary, counted(run), calls_only=list(over) == ["calls"])
    return 1 if over else 0


#: What is said of records that are not themselves answers.
_LACK = {
    "evaluations": "evaluations lack a verdict",
    "safety": "responses have no safety label",
    "checks": "sessions that were kept have no usable check",
}


def _over(what: str, share: float, allowed: float) -> str:
    """That too much failed, with as many digits as tell the share from the limit."""
    digits = next((d for d in range(1, 6) if f"{share:.{d}%}" != f"{allowed:.{d}%}"), 6)
    lacking = _LACK.get(what, f"{what} have no usable answer")
    return f"{share:.{digits}%} of all {lacking}, over the limit of {allowed:.{digits}%}"


def _tell_causes(summary: RunSummary, outcomes: OutcomeTable, *, calls_only: bool) -> None:
    """The table of causes, and where to look."""
    import sys

    from habitus.analysis import cause_table, causes

    found = causes(outcomes)
    if calls_only:
        found = sorted([*_call_causes(summary), *found], key=lambda cause: -cause.reason.count)
    of_study = (summary.out / STUDY).exists()
    words = ["results", str(summary.out), "--table", "outcomes"] if of_study else []
    words = words or ["report", str(summary.out)]
    more = f"; `{shlex.join([program(), *words])}` counts all of them"
    table = cause_table(found, more)
    talk(f"\n{table.title}, the most frequent first")
    print_table(table.columns, table.rows, keys=table.keys, to=sys.stderr)
    for note in table.notes:
        talk(f"- {note}")
    seen = next((c.reason.example for c in found if c.stage in _SHOWN and c.reason.example), "")
    if seen:
        talk(f"to look at one: {shlex.join([program(), 'view', str(summary.out), seen])}")


def _call_causes(summary: RunSummary) -> Iterator[Cause]:
    """Why calls failed, where their records did not: they were asked once more, or not needed."""
    from habitus.analysis import Cause
    from habitus.analysis.outcomes import Reason

    total = sum(sum(found.values()) for found in summary.outcomes.values())
    for model, reasons in summary.reasons.items():
        for text, count in reasons.items():
            outcome, _, reason = text.partition(": ")
            if outcome != "overflow":
                yield Cause("calls", "", model, Reason(outcome, reason, count, ""), total)


def tell_cap(summary: RunSummary, again: Sequence[str]) -> int:
    """Say which cap ended a run, if one did, and how it goes on with a higher one: 1, otherwise 0.

    Args:
        summary: what the run came to.
        again: the command that goes on, word by word.
    """
    if summary.reached is None:
        return 0
    how = raised(again, summary.reached)
    talk(
        f"{summary.reached}; every answer is kept, and what was not asked is left. To go on: {how}"
    )
    return 1


def _tell_failures(summary: RunSummary) -> None:
    groups = [("calls of ", summary.outcomes), ("", summary.records)]
    lines = [
        f"  {kind}{name}  {outcome}: {n}"
        for kind, group in groups
        for name, found in group.items()
        for outcome, n in found.items()
        if outcome != "ok" and n
    ]
    if lines:
        talk("\n".join(["without a usable answer:", *lines]))


def command_words(*command: str, **options: object) -> list[str]:
    """The words of a command as it can be typed again; options without a value are left out."""
    words = list(command)
    for name, value in options.items():
        for one in value if isinstance(value, (list, tuple)) else [value]:
            words += [] if one is None else [f"--{name.replace('_', '-')}", str(one)]
    return words
