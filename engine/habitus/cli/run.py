"""``habitus run``: run an experiment, or go on with it."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from habitus.cli.caps import MaxCallsOption, MaxCostOption, MaxTotalTokensOption, caps_of
from habitus.cli.output import program, talk
from habitus.cli.root import new_app

app = new_app("Run an experiment, or go on with it.")

ExperimentArgument = Annotated[str, typer.Argument(help="Id or path of an experiment file.")]
SetOption = Annotated[
    list[str] | None,
    typer.Option("--set", metavar="KEY=VALUE", help="Set a dotted key of the file; repeatable."),
]
LimitOption = Annotated[
    int | None,
    typer.Option("--limit", min=1, max=10**9, help="Only the first N queries of each persona."),
]


@app.command()
def run(
    experiment: ExperimentArgument,
    *,
    out: Annotated[
        Path | None, typer.Option("--out", help="Run directory; runs/<id> by default.")
    ] = None,
    stage: Annotated[
        str, typer.Option("--stage", help="Go up to and including this stage.")
    ] = "verdicts",
    changes: SetOption = None,
    limit: LimitOption = None,
    fork: Annotated[
        str | None,
        typer.Option("--fork", help="Start a new run with the stored answers of this one."),
    ] = None,
    fresh: Annotated[
        list[str] | None,
        typer.Option("--fresh", metavar="STAGE", help="Ask this stage's calls again; repeatable."),
    ] = None,
    max_calls: MaxCallsOption = None,
    max_total_tokens: MaxTotalTokensOption = None,
    max_cost: MaxCostOption = None,
    quiet: Annotated[bool, typer.Option("--quiet", help="No progress, no table.")] = False,
) -> int:
    """Run an experiment; the same command goes on where it stopped.

    A run that reaches a cap ends with exit code 1, is valid as far as it goes, and can go on with a
    higher one. Caps of the experiment's limits hold where no option is given.
    """
    from habitus.cli.finding import experiment_path, read_changes, run_path
    from habitus.cli.progress import Progress, study_ahead
    from habitus.cli.running import command_words, run_and_tell
    from habitus.experiments import RunRequest, Stage, call_stage, resolve, stage_named
    from habitus.experiments.casting import model_names

    until = stage_named(stage)
    study = resolve(experiment_path(experiment), read_changes(changes or []))
    entries = {name: study.experiment.models[name] for name in model_names(study)}
    limits = study.experiment.limits
    study = study.limited(caps_of(max_calls, max_total_tokens, max_cost, entries, limits))
    request = RunRequest(
        out=out or Path("runs") / study.experiment.id,
        until=until,
        limit=limit,
        fork=run_path(fork) if fork else None,
        fresh=frozenset(map(call_stage, fresh or ())),
        base=Path.cwd(),
    )
    options = {"out": out, "set": changes, "limit": limit, "fork": fork}
    options |= {"stage": stage} if until is not Stage.VERDICTS else {}
    options |= {"max_calls": max_calls, "max_total_tokens": max_total_tokens, "max_cost": max_cost}
    again = command_words(program(), "run", experiment, **options)
    talk(f"{study.experiment.id}: writing to {request.out}")
    observer: Any = None if quiet else Progress(study_ahead(study, request))
    return run_and_tell(study, request, observer, show=not quiet, again=again)
