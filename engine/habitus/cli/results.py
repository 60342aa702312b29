"""``habitus results``: Follow, Avoid, adaptation and CCS of a run, with intervals."""

from __future__ import annotations

from collections.abc import Sequence
from enum import StrEnum
from typing import TYPE_CHECKING, Annotated

import typer

from habitus.cli.output import print_json, print_note, print_table, print_text, program, talk
from habitus.cli.root import new_app

if TYPE_CHECKING:
    from habitus.analysis import Results
    from habitus.store import RunDir
    from habitus.tables import TextTable

app = new_app("Follow, Avoid, adaptation and CCS of a run, with intervals.")


_WIDE = 170  # columns that the main table takes when nothing in it is broken
_CHIEF = {"Target", "Setting", "Follow", "Avoid", "CCS", "not judged"}


class Dimension(StrEnum):
    """What results can be broken down by."""

    CULTURE = "culture"
    TOPIC = "topic"
    KIND = "kind"
    PERSONA = "persona"
    QUERY = "query"


class Missing(StrEnum):
    """What a missing verdict counts as."""

    EXCLUDE = "exclude"
    NOT_SATISFIED = "not_satisfied"
    BOUNDS = "bounds"


class Table(StrEnum):
    """The tables of results."""

    ALL = "all"
    MAIN = "main"
    OUTCOMES = "outcomes"
    COMMON = "common"
    DIFFERENCES = "differences"
    EMBEDDEDNESS = "embeddedness"
    SAFETY = "safety"


@app.command()
def results(
    run: Annotated[str, typer.Argument(help="A run directory, or the name of one in runs/.")],
    *,
    by: Annotated[
        list[Dimension] | None, typer.Option("--by", help="Break down by; repeatable.")
    ] = None,
    shown: Annotated[
        bool, typer.Option("--shown", help="Only norms that the persona's history shows.")
    ] = False,
    missing: Annotated[
        Missing | None, typer.Option("--missing", help="Rule for missing verdicts.")
    ] = None,
    resample_queries: Annotated[
        bool, typer.Option("--resample-queries", help="Allow for another choice of queries.")
    ] = False,
    wanted: Annotated[
        list[Table] | None,
        typer.Option(
            "--table",
            help="A table to print; repeatable. By default all, of the outcomes what failed.",
        ),
    ] = None,
    filter_: Annotated[
        bool, typer.Option("--filter", help="What the histories show, by culture, instead.")
    ] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """Print the results of a run as they stand; no call is made."""
    from habitus.analysis import ends_text, filter_text
    from habitus.cli.finding import run_path
    from habitus.experiments import View, run_filter, run_results
    from habitus.store import RunDir

    view = View(
        by=tuple(dimension.value for dimension in by or ()),
        shown=shown,
        missing=missing.value if missing else None,
        queries="resampled" if resample_queries else "fixed",
    )
    with RunDir.open(run_path(run), write=False) as opened:
        if filter_:
            table = run_filter(opened)
            if as_json:
                print_json(table.as_json())
            else:
                print_tables([filter_text(table), ends_text(table)])
            return
        found = run_results(opened, view)
    if as_json:
        print_json(found.as_json())
        return
    if not found.rows:
        talk(f"{run} has no verdicts yet; `{program()} status {run}` says what is left")
    print_tables(_chosen(found, wanted or (), run))


def _chosen(found: Results, wanted: Sequence[Table], run: str) -> list[TextTable]:
    """The tables that were asked for; without a word all, and of the outcomes what failed."""
    from habitus.analysis import named_tables, outcome_tables

    tables = {name: [table] for name, table in named_tables(found).items() if found.rows}
    whole = Table.OUTCOMES in wanted or Table.ALL in wanted
    more = f"; `{program()} results {run} --table outcomes` prints them"
    if found.outcomes is not None and (whole or found.outcomes.failures):
        outcomes = outcome_tables(found.outcomes, whole=whole, more=more)
        main = tables.pop(Table.MAIN, [])
        tables = {Table.MAIN: main, Table.OUTCOMES: outcomes, **tables}
    chosen = tables if not wanted or Table.ALL in wanted else set(wanted)
    return [table for name, several in tables.items() if name in chosen for table in several]


def print_tables(tables: list[TextTable]) -> None:
    """Print tables with their titles and notes."""
    for table in tables:
        print_text(f"\n{table.title}")
        if table.rows:
            print_table(table.columns, table.rows, keys=table.keys)
        for note in table.notes:
            print_note(note)


def print_main_table(run: RunDir) -> None:
    """The main table of a run, if it has verdicts, and what failed.

    On a narrow terminal the main table has its chief columns only.
    """
    import sys
    from shutil import get_terminal_size

    from habitus.analysis import named_tables, outcome_tables
    from habitus.experiments import run_results

    if "evaluations" not in run.records.stages():
        return
    found = run_results(run)
    if not found.rows:
        return
    table = named_tables(found)["main"]
    narrow = sys.stdout.isatty() and get_terminal_size().columns < _WIDE
    tables = [_chief_columns(table, run) if narrow else table]
    if found.outcomes is not None and found.outcomes.failures:
        more = f"; `{program()} results {run.path} --table outcomes` prints them"
        tables += outcome_tables(found.outcomes, more=more)
    print_tables(tables)


def _chief_columns(table: TextTable, run: RunDir) -> TextTable:
    """Follow and Avoid with their denominators, CCS, and what was not judged."""
    from dataclasses import replace

    kept = [i for i, name in enumerate(table.columns) if name in _CHIEF]
    kept = sorted({*kept, *(i + 1 for i in kept if table.columns[i] in {"Follow", "Avoid"})})
    return replace(
        table,
        columns=tuple(table.columns[i] for i in kept),
        rows=tuple(tuple(row[i] for i in kept) for row in table.rows),
        notes=(*table.notes, f"`{program()} results {run.path}` prints all columns and tables"),
    )
