"""``habitus export``: a run as files for others."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from habitus.cli.output import print_json, print_note, print_table, print_text
from habitus.cli.root import new_app

app = new_app("A run as files for others: the consensus subset.")


class To(StrEnum):
    """What a run can be exported to; the names of ``habitus.exports.KINDS``."""

    CONSENSUS = "consensus"


class As(StrEnum):
    """What tables are written as."""

    CSV = "csv"
    XLSX = "xlsx"
    PARQUET = "parquet"


class Agree(StrEnum):
    """When labels agree."""

    TRAIT = "trait"
    LABEL = "label"


@app.command()
def export(
    run: Annotated[
        str, typer.Argument(help="A run of labels: its directory, or its name in runs/.")
    ],
    to: Annotated[To, typer.Option("--to", help="What to make of it.")],
    out: Annotated[Path, typer.Option("-o", "--out", help="A folder that is empty or not there.")],
    form: Annotated[As, typer.Option("--format", help="What tables are written as.")] = As.CSV,
    everything: Annotated[
        bool, typer.Option("--all", help="A table for every label, not only the published ones.")
    ] = False,
    agree: Annotated[
        Agree,
        typer.Option("--agree", help="Labels agree on one side of the trait, or word for word."),
    ] = Agree.TRAIT,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """Write tables of the posts that a judge labels alike for every model, and count the rest.

    Texts of responses and reasonings are left out.
    """
    from habitus.cli.finding import labels_path
    from habitus.exports import KINDS, Agreement, Format, Wish
    from habitus.store import RunDir

    wish = Wish(out, Format(form.value), everything, Agreement(agree.value))
    with RunDir.open(labels_path(run), write=False) as opened:
        found = KINDS[to.value].export(opened, wish)
    if as_json:
        print_json(found.manifest)
        return
    print_text(f"\n{found.title}")
    print_table(found.columns, found.rows)
    for note in found.notes:
        print_note(note)
