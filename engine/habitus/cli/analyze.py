"""``habitus analyze``: how answers are framed, from the labels of judges."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from habitus.cli.output import print_json, program, talk
from habitus.cli.root import new_app

if TYPE_CHECKING:
    from habitus.analysis import OutcomeTable
    from habitus.corpora import Share
    from habitus.framing import AnalysisFile, Framing
    from habitus.tables import TextTable

app = new_app("How answers are framed: rankings, co-occurrence, maxims; from labels of judges.")

_TOLD_EVERY = 25  # fits
_SHORT = 40  # rows of a table that is printed without being asked for
_REASONS = 10  # rows of the table of what cannot be estimated: often one reason many times


class Table(StrEnum):
    """The tables of an analysis."""

    ALL = "all"
    RANKINGS = "rankings"
    PREVALENCE = "prevalence"
    DIFFERENCES = "differences"
    DELTAS = "deltas"
    DELTA_DIFFERENCES = "delta-differences"
    BRIEF = "brief"
    SET_ASIDE = "set-aside"
    OUTCOMES = "outcomes"


class Missing(StrEnum):
    """What becomes of missing labels."""

    EXCLUDE = "exclude"
    ABSENT = "absent"
    BOUNDS = "bounds"


def analysis_names(incomplete: str) -> list[str]:
    """Ids of analyses, for completion; no file is read."""
    from habitus.content import listing

    names = {path.stem for path in listing("experiments/analyses", "*.yaml")}
    return sorted(name for name in names if name.startswith(incomplete))


@app.command()
def analyze(
    run: Annotated[
        str, typer.Argument(help="A run of labels: its directory, or its name in runs/.")
    ],
    *,
    analysis: Annotated[
        str | None,
        typer.Option(
            "--analysis",
            metavar="NAME",
            help="Id or path of an analysis file; chosen by the run when left out.",
            autocompletion=analysis_names,
        ),
    ] = None,
    questions: Annotated[
        list[str] | None,
        typer.Option(
            "--question", metavar="ID", help="A question of the file; repeatable. All by default."
        ),
    ] = None,
    out: Annotated[
        Path | None,
        typer.Option("-o", "--out", help="A folder for tables (CSV), results.json and figures."),
    ] = None,
    posts: Annotated[
        Path | None,
        typer.Option("--posts", help="A Parquet file of posts, for the figure of categories."),
    ] = None,
    tables: Annotated[
        list[Table] | None,
        typer.Option(
            "--table", help="A table to print; repeatable. Rankings and short ones by default."
        ),
    ] = None,
    missing: Annotated[
        Missing | None,
        typer.Option("--missing", help="Rule for missing labels; the file's own by default."),
    ] = None,
    common: Annotated[
        bool,
        typer.Option("--common", help="Only clusters in which every level has a label."),
    ] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """Print what the labels of a run say; no call is made.

    What cannot be estimated is printed as n/a, with the reason.
    """
    from habitus.cli.finding import labels_path
    from habitus.framing import (
        Asked,
        analyse,
        default_analysis,
        find_analysis,
        framings_json,
        read_labels,
    )
    from habitus.labelling import label_outcomes, refuse_later
    from habitus.store import RunDir

    shares = _shares(posts, out)
    with RunDir.open(labels_path(run), write=False) as opened:
        rules = find_analysis(analysis or default_analysis(opened))
        rules = _with_missing(rules, missing, common=common)
        labels = read_labels(opened, rules)
        refuse_later(opened)
        outcomes = label_outcomes(opened, _fields(rules))
    found = analyse(labels, rules, Asked(tuple(questions or ()), progress=_tell))
    if out is not None:
        _write(found, outcomes, out, shares)
    if as_json:
        print_json(framings_json(found, {"outcomes": outcomes.as_json()}))
    else:
        if set(tables or ()) != {Table.OUTCOMES}:
            _print(found, tables or ())
        _print_outcomes(outcomes, tables or (), run)
        if out is None and not tables:
            talk("-o FOLDER writes all tables as CSV, and the figures")


def _with_missing(rules: AnalysisFile, rule: Missing | None, *, common: bool) -> AnalysisFile:
    """The analysis with another rule for missing labels."""
    from habitus.errors import UsageError
    from habitus.framing.loading import missing_problem

    changes: dict[str, object] = {} if rule is None else {"rule": rule.value}
    if common or rule not in {None, Missing.EXCLUDE}:  # another rule is chosen in place of common
        changes["common"] = common
    chosen = rules.missing.model_copy(update=changes)
    if problem := missing_problem(chosen):
        raise UsageError(f"--common and --missing do not go together: {problem}")
    return rules.model_copy(update={"missing": chosen})


def _fields(rules: AnalysisFile) -> list[str]:
    """By what labels are counted: what is compared, and what rows are divided by."""
    from habitus.framing.analysisfile import NORM_FIELDS

    compares = [rules.compare_of(question) for question in rules.questions]
    found = dict.fromkeys(name for c in compares for name in (c.level, *c.subsets.by))
    return [name for name in found if name not in {"norm", *NORM_FIELDS}]


def _print_outcomes(outcomes: OutcomeTable, wanted: Sequence[Table], run: str) -> None:
    """What failed, or every row where it is asked for."""
    from habitus.analysis import outcome_tables
    from habitus.cli.results import print_tables

    whole = Table.ALL in wanted or Table.OUTCOMES in wanted
    if whole or (outcomes.failures and not wanted):
        more = f"; `{program()} analyze {run} --table outcomes` prints them"
        print_tables(outcome_tables(outcomes, whole=whole, more=more))


def _tell(done: int, total: int) -> None:
    if done % _TOLD_EVERY == 0 and done < total:
        talk(f"{done:,} of {total:,} fits")


def _print(framings: Sequence[Framing], wanted: Sequence[Table]) -> None:
    from habitus.cli.output import print_note, print_text
    from habitus.cli.results import print_tables
    from habitus.framing import framing_tables

    for framing in framings:
        tables = framing_tables(framing)
        shown = _shown(framing, tables, wanted)
        print_tables([tables[name] for name in shown])
        print_text("")
        for name in wanted:
            if name not in {Table.ALL, Table.OUTCOMES} and name not in tables:
                print_note(f"{framing.title}: the table {name} has no rows")
        for note in framing.notes:
            print_note(note)
        more = [f"{name} ({len(tables[name].rows):,} rows)" for name in tables if name not in shown]
        if more and not wanted:
            print_note(f"more, with --table NAME: {', '.join(more)}")


def _silent(framing: Framing) -> Sequence[Table]:
    """Tables of which nothing could be estimated: the reasons stand in others."""
    found = {
        Table.DIFFERENCES: [found.difference for found in framing.comparisons],
        Table.DELTAS: [found.delta for found in framing.deltas],
        Table.DELTA_DIFFERENCES: [found.difference for found in framing.delta_comparisons],
    }
    return [name for name, values in found.items() if all(value is None for value in values)]


def _shown(
    framing: Framing, tables: Mapping[str, TextTable], wanted: Sequence[Table]
) -> Sequence[str]:
    """The tables that were asked for; without a word, the rankings and whatever is short."""
    if wanted:
        return [name for name in tables if Table.ALL in wanted or name in wanted]
    longest = dict.fromkeys(_silent(framing), 0) | {Table.SET_ASIDE: _REASONS}
    return [
        name
        for name, table in tables.items()
        if name == Table.RANKINGS or len(table.rows) <= longest.get(Table(name), _SHORT)
    ]


def _shares(posts: Path | None, out: Path | None) -> Sequence[Share] | None:
    """What the figure of categories is about; read first, since fits take a while."""
    from habitus.corpora import read_shares
    from habitus.errors import UsageError

    if posts is None:
        return None
    if out is None:
        raise UsageError("--posts is for a figure, and figures are written with --out")
    return read_shares(posts)


def _write(
    framings: Sequence[Framing],
    outcomes: OutcomeTable,
    folder: Path,
    shares: Sequence[Share] | None,
) -> None:
    """Everything that goes into a folder."""
    from habitus.framing import write_framings
    from habitus.reports import skipped_figures, write_figures

    written = write_framings(framings, folder, {"outcomes": outcomes.records()})
    for framing in framings:
        written += write_figures(framing, folder / framing.id, shares)
        for skipped in skipped_figures(framing, shares):
            talk(f"{framing.id}: no figure {skipped.name}: {skipped.reason}")
    talk(f"{len(written)} files written to {folder}")
