"""``habitus judge``: judges on the answers of a file or a run."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from habitus.cli.caps import MaxCallsOption, MaxCostOption, MaxTotalTokensOption, caps_of
from habitus.cli.options import (
    MODEL_HELP,
    AnswerOption,
    FailuresOption,
    ForkOption,
    JsonOption,
    LimitOption,
    MaxTokensOption,
    QuietOption,
    SeedOption,
    TemperatureOption,
)
from habitus.cli.output import print_json, print_note, print_table, print_text, program, talk
from habitus.cli.root import new_app

if TYPE_CHECKING:
    from habitus.labelling import Columns, LabelCount, Labelling
    from habitus.store import RunDir

_HEADINGS = (
    "judge", "variant", "counted", "share", "n", "of", "unparsed", "failed", "no answer", "left",
)  # fmt: skip
_SHARES = (
    "share: n of the answers with a label; without one: unparsed (a reply in which none can be read), "
    "failed (no reply), no answer (nothing to judge), left (not asked yet)"
)

app = new_app("Judges on the answers of a file or a run.")


@app.command()
def judge(
    source: Annotated[
        str,
        typer.Argument(metavar="INPUT", help="JSON lines, CSV, .xlsx or Parquet; or a run."),
    ],
    *,
    model: Annotated[
        list[str],
        typer.Option("--model", metavar="[JUDGE=]MODEL", help=MODEL_HELP + "; repeatable."),
    ],
    judges: Annotated[
        list[str],
        typer.Option("--judges", metavar="NAME", help="Sets, judges, judge.variant; repeatable."),
    ] = ["franz"],  # noqa: B006  (typer copies it)
    out: Annotated[Path | None, typer.Option("--out", help="Run directory of the labels.")] = None,
    answer: AnswerOption = None,
    question: Annotated[
        bool, typer.Option("--question", help="Show the question to judges that may see it.")
    ] = False,
    batch: Annotated[
        bool,
        typer.Option("--batch-variants", help="All cues or maxims in one call; see the docs."),
    ] = False,
    temperature: TemperatureOption = None,
    max_tokens: MaxTokensOption = None,
    column: Annotated[
        list[str] | None,
        typer.Option(
            "--column",
            metavar="WHAT=NAME",
            help="The column of response, question, target, id or group; repeatable.",
        ),
    ] = None,
    sheet: Annotated[
        str,
        typer.Option(
            "--sheet", metavar="NAME", help="Of a workbook; else the first that is shown."
        ),
    ] = "",
    limit: LimitOption = None,
    seed: SeedOption = 0,
    fork: ForkOption = None,
    fresh: Annotated[
        list[str] | None,
        typer.Option("--fresh", metavar="JUDGE", help="Ask this judge again; repeatable."),
    ] = None,
    failures: FailuresOption = 0.05,
    max_calls: MaxCallsOption = None,
    max_total_tokens: MaxTotalTokensOption = None,
    max_cost: MaxCostOption = None,
    quiet: QuietOption = False,
    as_json: JsonOption = False,
) -> int:
    """Label answers; the same command goes on where it stopped.

    A run of labels is written: one label with its reason for each answer and verdict.
    """
    from habitus.cli.finding import model_entries, run_or_file
    from habitus.cli.jobs import JobOptions, run_and_count
    from habitus.judges import choose
    from habitus.labelling import LabellingJob, Manner, make_tasks, open_source

    members = choose(part for name in judges for part in name.split(","))
    entries, default, own = model_entries(model)
    manner = Manner(answer, question, batch, temperature, max_tokens)
    tasks = make_tasks(members, own, default, manner)
    path = run_or_file(source)
    needs = set().union(*(task.needs() for task in tasks))
    items = open_source(path, _columns(column or []), needs, sheet)
    used = {task.model for task in tasks}
    asked = {name: entry for name, entry in entries.items() if name in used}
    caps = caps_of(max_calls, max_total_tokens, max_cost, asked)
    job = LabellingJob(items, tasks, asked, seed, limit, caps)
    options = JobOptions(
        out=_beside(path, out or Path("runs") / f"{path.resolve().name.partition('.')[0]}-labels"),
        fork=fork,
        fresh=_stages(fresh or [], [task.judge.file.id for task in tasks]),
        failures=failures,
        quiet=quiet,
    )
    code = run_and_count(job, options, lambda run: print_labels(run, as_json=as_json))
    if not quiet:
        talk(f"`{program()} analyze {options.out}` says what it comes to")
    return code


def _beside(source: Path, out: Path) -> Path:
    """Where labels go: not into what they are of."""
    from habitus.errors import UsageError

    if out.resolve() == source.resolve():
        raise UsageError(f"{out} is what is judged; name another directory with --out")
    return out


def _stages(fresh: list[str], asked: list[str]) -> frozenset[str]:
    """Stages of calls by the judges that are to be asked again."""
    from habitus.errors import NotFoundError

    for name in fresh:
        if name not in asked:
            raise NotFoundError("judge among those that are asked", name, asked)
    return frozenset(f"judge/{name}" for name in fresh)


def print_labels(run: RunDir, *, as_json: bool = False) -> None:
    """How often each verdict was given, and how often none could be read."""
    from habitus.labelling import count_labels

    note, counts = count_labels(run)
    if as_json:
        shown = note.model_dump(exclude={"verdicts"})
        print_json({**shown, "verdicts": [count.as_json() for count in counts]})
        return
    print_table(_HEADINGS, [_row(count) for count in counts], keys=2)
    for text in _notes(note, counts):
        print_note(text)


def print_framing(path: Path) -> None:
    """The labels of a run, under a title."""
    from habitus.store import RunDir

    print_text("\nFraming: how often each verdict was given")
    with RunDir.open(path, write=False) as run:
        print_labels(run)


def _row(count: LabelCount) -> list[str | int | float | None]:
    from habitus.records import Outcome
    from habitus.tables import number

    unparsed = count.failed[Outcome.UNPARSED]
    return [
        count.note.judge,
        count.note.variant or None,
        " ".join(count.note.present),
        number(count.share),
        count.present,
        count.judged,
        unparsed,
        count.failed.total() - unparsed,
        count.unanswered,
        count.left,
    ]


def _notes(note: Labelling, counts: list[LabelCount]) -> list[str]:
    forms = sorted({c.note.form for c in counts})
    notes = [_SHARES, f"labels were asked for as: {' and '.join(forms)}"]
    if any(c.note.batched for c in counts):
        notes.append("cues or maxims were asked for together: another instrument than one by one")
    if note.made_up:
        notes.append(f"synthetic: made up, no model said it ({', '.join(note.made_up)})")
    return notes


def _columns(given: list[str]) -> Columns:
    from habitus.errors import UsageError
    from habitus.labelling import Columns

    names: dict[str, str] = {}
    known = Columns.__dataclass_fields__
    for text in given:
        purpose, equals, name = text.partition("=")
        if not equals or purpose not in known:
            raise UsageError(f"--column {text}: write one of {', '.join(known)}, '=' and a name")
        names[purpose] = name or "-"
    return Columns(**names)
