"""``habitus run``: run an experiment, or go on with it."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from habitus.cli.output import talk
from habitus.cli.root import new_app

app = new_app("Run an experiment, or go on with it.")

ExperimentArgument = Annotated[str, typer.Argument(help="Id or path of an experiment file.")]
SetOption = Annotated[
    list[str] | None,
    typer.Option("--set", metavar="KEY=VALUE", help="Set a dotted key of the file; repeatable."),
]
LimitOption = Annotated[
    int | None, typer.Option("--limit", min=1, help="Only the first N queries of each persona.")
]


@app.command()
def run(
    experiment: ExperimentArgument,
    out: Annotated[
        Path | None, typer.Option("--out", help="Run directory; runs/<id> by default.")
    ] = None,
    stage: Annotated[
        str, typer.Option("--stage", help="Go up to and including this stage.")
    ] = "verdicts",
    changes: SetOption = None,
    limit: LimitOption = None,
    fork: Annotated[
        Path | None, typer.Option("--fork", help="Start with the stored answers of this run.")
    ] = None,
    quiet: Annotated[bool, typer.Option("--quiet", help="No progress, no table.")] = False,
) -> int:
    """Run an experiment; the same command goes on where it stopped."""
    from habitus.cli.finding import experiment_path, read_changes
    from habitus.cli.progress import Progress
    from habitus.cli.running import run_and_tell
    from habitus.experiments import RunRequest, resolve, stage_named

    path = experiment_path(experiment)
    study = resolve(path, read_changes(changes or []))
    request = RunRequest(
        out=out or Path("runs") / study.experiment.id,
        until=stage_named(stage),
        limit=limit,
        fork=fork,
        base=Path.cwd(),
    )
    talk(f"{study.experiment.id}: writing to {request.out}")
    observer: Any = None if quiet else Progress(study, request)
    return run_and_tell(study, request, observer, show=not quiet, again=_again(experiment, out))


def _again(experiment: str, out: Path | None) -> str:
    return f"habitus run {experiment}" + (f" --out {out}" if out else "")
