"""``habitus report``: a run as one HTML file to hand on, and its figures as files."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from habitus.cli.output import print_text, talk
from habitus.cli.root import new_app

app = new_app("A run as one HTML file to hand on, and its figures as files.")

_TOLD_EVERY = 25  # fits


@app.command()
def report(
    run: Annotated[str, typer.Argument(help="A run directory, or the name of one in runs/.")],
    labels: Annotated[
        str | None,
        typer.Option("--labels", help="A run of labels of its answers, to stand beside."),
    ] = None,
    out: Annotated[
        Path | None,
        typer.Option("-o", "--out", help="The file; report.html in the run directory by default."),
    ] = None,
    figures: Annotated[
        Path | None,
        typer.Option("--figures", help="A folder for every figure as SVG, PDF, PNG and CSV."),
    ] = None,
    setting: Annotated[
        str | None, typer.Option("--setting", help="What the figures show; hist by default.")
    ] = None,
    seed: Annotated[
        int | None,
        typer.Option("--seed", min=0, help="Draws the transcripts; the run's by default."),
    ] = None,
    sessions: Annotated[
        int, typer.Option("--sessions", min=0, max=50, help="Sessions shown of each persona.")
    ] = 2,
) -> None:
    """Write the report of a run as it stands; no call is made, and the file needs no network.

    A run of labels has a report of its own, or stands beside its run with --labels.
    """
    from habitus.cli.finding import labels_path, run_path
    from habitus.content.writing import write_text
    from habitus.reports import ReportOptions, make_report, write_report_figures

    path = run_path(run)
    options = ReportOptions(
        labels=labels_path(labels) if labels else None,
        setting=setting,
        seed=seed,
        sessions=sessions,
        told=_tell,
    )
    made = make_report(path, options)
    to = out or path / "report.html"
    write_text(to, made.html.decode(), overwrite=True)
    talk(f"{len(made.html) / 1e6:.1f} MB, no network needed")
    for note in made.not_drawn:
        talk(note)
    if figures is not None:
        written = write_report_figures(made, figures)
        talk(f"{len(written)} files of figures written to {figures}")
    print_text(str(to))


def _tell(done: int, total: int) -> None:
    if done % _TOLD_EVERY == 0 and done < total:
        talk(f"{done:,} of {total:,} fits")
