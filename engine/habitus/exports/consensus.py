"""The consensus subset of a run of labels: what a judge labels alike for every target.

    made = export_consensus(run, folder, ConsensusOptions())
    made.tables[0].tally.rows, made.notes

One table a characteristic, with a row for each unit (a post, or a question of a group in one
setting and repeat): its id, title and body or its question, its fields, and the label of each target.
Responses and reasonings are left out. A unit counts only where every target of the run has an
answer and a label that was read. ``manifest.json`` beside the tables says how many did.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

import habitus
from habitus.analysis import OutcomeTable
from habitus.content.writing import file_stems, write_text
from habitus.errors import UsageError
from habitus.exports.agreeing import Agreement, Tally, Wanted, choose, wanted_tables
from habitus.exports.answers import Answers, read_answers
from habitus.exports.tablefiles import Format, check_table, open_table
from habitus.labelling import Labelling, VerdictNote, label_outcomes, read_labelling
from habitus.records import JudgedItem
from habitus.store import RunDir

_OUTCOMES = "outcomes"
_BREAK = "\n\n"  # between title and body of a post


@dataclass(frozen=True, slots=True)
class ConsensusOptions:
    """``everything``: a table for every label of every verdict, not only what FRANZ publishes."""

    form: Format = Format.CSV
    everything: bool = False
    agreement: Agreement = Agreement.TRAIT


@dataclass(frozen=True, slots=True)
class Made:
    """One table that was written."""

    name: str
    file: str
    judge: str
    variant: str
    labels: tuple[str, ...]
    tally: Tally


@dataclass(frozen=True, slots=True)
class Consensus:
    """What was written, and what a reader of it should know."""

    folder: Path
    tables: tuple[Made, ...]
    notes: tuple[str, ...]
    manifest: dict[str, Any]


@dataclass(frozen=True, slots=True)
class _Planned:
    """A table before it is written: which units are in it."""

    made: Made
    wanted: Wanted
    asked: VerdictNote
    chosen: NDArray[np.bool_]


def export_consensus(
    run: RunDir, folder: Path, options: ConsensusOptions | None = None
) -> Consensus:
    """Write the tables of a run and their manifest into a folder that is empty or not there.

    Raises:
        UsageError: the run has no labels, or those of one target only; the folder holds other
            things or cannot be written; Parquet without pyarrow.
        StoreError: the run is damaged, or changed meanwhile.
    """
    options = options or ConsensusOptions()
    about = read_labelling(run)
    if not about.verdicts:
        raise UsageError(f"{run.path} holds answers and no labels: `habitus judge` labels them")
    _claim(folder)
    answers = read_answers(run, about)
    if len(answers.targets) < 2:
        raise UsageError(f"{run.path} has answers of one model; a consensus needs two or more")
    planned = _plan(about, answers, options)
    _write(run, folder, planned, answers, options.form)
    outcomes = label_outcomes(run)
    file = _write_outcomes(outcomes, folder, options.form)
    tables = tuple(table.made for table in planned)
    notes = (*_notes(about, answers, options), *_unfinished(run, about))
    manifest = {
        "kind": "consensus",
        "habitus": habitus.__version__,
        "run": {"name": run.path.absolute().name, "config": run.manifest.get("config")},
        "agreement": str(options.agreement),
        "units": len(answers.first),
        "columns": _columns(answers)[0],
        "fields_left_out": list(answers.own),
        "stray_labels": answers.strays,
        "tables": [_as_json(table) for table in tables],
        "outcomes": {"file": file, "rows": outcomes.as_json()},
        "notes": list(notes),
        "labelling": about.model_dump(mode="json"),
    }
    text = json.dumps(manifest, indent=2, allow_nan=False)
    write_text(folder / "manifest.json", text + "\n")
    return Consensus(folder, tables, notes, manifest)


def _claim(folder: Path) -> None:
    try:
        folder.mkdir(parents=True, exist_ok=True)
        there = sorted(path.name for path in folder.iterdir())
    except OSError as error:
        raise UsageError(f"{folder} cannot be made: {error.strerror}") from None
    if there:
        raise UsageError(
            f"{folder} holds other things ({', '.join(there[:3])}); choose an empty directory"
        )


def _plan(about: Labelling, answers: Answers, options: ConsensusOptions) -> list[_Planned]:
    wanted = wanted_tables(about.verdicts, everything=options.everything)
    planned = []
    for table, stem in zip(wanted, file_stems(table.name for table in wanted), strict=True):
        asked = about.verdicts[table.verdict]
        chosen, tally = choose(table, asked, answers, options.agreement)
        file = f"{stem}.{options.form}"
        made = Made(table.name, file, asked.judge, asked.variant, table.labels, tally)
        planned.append(_Planned(made, table, asked, chosen))
    return planned


def _write(
    run: RunDir, folder: Path, planned: list[_Planned], answers: Answers, form: Format
) -> None:
    """Read the items once, and write each unit into the tables that it is in."""
    columns, numeric = _columns(answers)
    for table in planned:
        check_table(form, table.made.tally.rows, len(columns))
    with ExitStack() as stack:
        files = [
            stack.enter_context(open_table(folder / table.made.file, columns, form, numeric))
            for table in planned
        ]
        for unit, item in answers.items(run):
            into = [pair for pair in zip(planned, files, strict=True) if pair[0].chosen[unit]]
            about_unit = _cells(item, answers) if into else []
            for table, file in into:
                codes = answers.codes[unit, :, table.wanted.verdict]
                file.write([*about_unit, *(table.asked.labels[code - 1] for code in codes)])


def _write_outcomes(outcomes: OutcomeTable, folder: Path, form: Format) -> str:
    """What became of every answer and label, beside the tables; the name of the file."""
    rows = outcomes.records()
    columns = list(rows[0])
    counts = [name for name in columns if isinstance(rows[0][name], int)]
    file = f"{_OUTCOMES}.{form}"
    with open_table(folder / file, columns, form, counts) as table:
        for row in rows:
            table.write([str(row[name]) for name in columns])
    return file


def _columns(answers: Answers) -> tuple[list[str], list[str]]:
    """The headings, no two alike, and those of columns that hold numbers only."""
    own = ("id", "title", "body") if answers.posts else ("id", "question")
    headings = list(own)
    numeric = []
    for kind, names in (("field", answers.fields), ("target", answers.targets)):
        for name in names:
            heading = name
            while heading in headings:
                heading = f"{kind}.{heading}"
            headings.append(heading)
            if kind == "field" and name in answers.numeric:
                numeric.append(heading)
    return headings, numeric


def _cells(item: JudgedItem, answers: Answers) -> list[str | None]:
    """Everything of a row but the labels."""
    if answers.posts:
        title, _, body = item.question.partition(_BREAK)
        own = [item.group, title, body]
    else:
        own = [item.group, item.question]
    return [*own, *map(item.fields.get, answers.fields)]


def _as_json(made: Made) -> dict[str, Any]:
    return {**asdict(made), "labels": list(made.labels)}


def _notes(about: Labelling, answers: Answers, options: ConsensusOptions) -> Iterator[str]:
    yield "rows, same label: of the complete, those with a label for every model"
    yield (
        "labels agree when they have the same side of the trait"
        if options.agreement is Agreement.TRAIT
        else "labels agree when they are the same word"
    )
    if about.made_up:
        yield f"synthetic: no model gave the answers of {', '.join(about.made_up)}"
    if answers.own:
        yield f"left out, since they differ between the answers: {', '.join(answers.own)}"
    if answers.strays:
        yield f"{answers.strays:,} labels belong to no answer or verdict of the run"


def _unfinished(run: RunDir, about: Labelling) -> Iterator[str]:
    for stage, total in about.totals.items():
        there = sum(run.records.counts(stage).values())
        if there < total:
            yield f"the run is unfinished: {there:,} of {total:,} {stage} are there"
