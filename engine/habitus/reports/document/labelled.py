"""What judges say of answers: counts by verdict, the analysis of labels, answers drawn by seed."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from habitus.errors import UsageError
from habitus.framing import (
    Asked,
    Framing,
    analyse,
    default_analysis,
    find_analysis,
    framing_tables,
    read_labels,
)
from habitus.labelling import Labelling, count_labels, read_labelling
from habitus.records import JudgedItem, Label
from habitus.reports.document.cells import Table, plain_table, sortable_table
from habitus.reports.document.excerpts import Excerpt, excerpt
from habitus.reports.document.lots import drawn
from habitus.reports.figures import figure_pages
from habitus.reports.pages import Page, Skipped
from habitus.store import RunDir

Progress = Callable[[int, int], None]  # fits done, fits in all
_MOST_ROWS = 700
_MOST_REASON = 600
_LENGTH = 3_000
_ALWAYS = {"rankings", "brief"}


@dataclass(frozen=True, slots=True)
class Said:
    """One label of one answer: which judge, what it says, and why."""

    judge: str
    label: str
    reason: Excerpt


@dataclass(frozen=True, slots=True)
class LabelledItem:
    """An answer with its labels."""

    id: str
    target: str
    fields: str
    question: Excerpt
    answer: Excerpt
    outcome: str
    labels: tuple[Said, ...]


class LabelReader:
    """The labels of single answers of a run of labels."""

    def __init__(self, run: RunDir) -> None:
        self._run = run
        self._verdicts = read_labelling(run).verdicts

    def of(self, item: str) -> Iterator[Said]:
        """What each judge says of an answer, in the order of the run."""
        for verdict in self._verdicts:
            which = f"{verdict.judge}.{verdict.variant}" if verdict.variant else verdict.judge
            found = self._run.records.get("labels", f"{item}/{which}", Label)
            if found is not None:
                said = found.label if found.label is not None else str(found.outcome)
                reason = found.reasoning or found.reason
                yield Said(which, said, excerpt(reason, _MOST_REASON))

    def samples(self, seed: int, number: int) -> list[LabelledItem]:
        """Answers drawn by seed, in the order of their ids."""
        names = drawn(seed, "report/items", self._run.records.ids("items"))[:number]
        found = [self._run.records.get("items", name, JudgedItem) for name in sorted(names)]
        return [self._sample(item) for item in found if item is not None]

    def _sample(self, item: JudgedItem) -> LabelledItem:
        shown = [f"{k}: {v}" for k, v in sorted(item.fields.items()) if "." not in k]
        return LabelledItem(
            id=item.id,
            target=item.target,
            fields="; ".join(shown)[:_MOST_REASON],
            question=excerpt(item.question, _LENGTH),
            answer=excerpt(item.response, _LENGTH),
            outcome=f"{item.outcome} {item.reason}".strip(),
            labels=tuple(self.of(item.id)),
        )


@dataclass(frozen=True, slots=True)
class LabelPart:
    """Everything the report says about a run of labels; ``problem`` where it cannot be analysed."""

    note: Labelling
    counts: Table
    framings: tuple[Framing, ...]
    problem: str

    @property
    def synthetic(self) -> bool:
        """Whether answers or labels come from no model."""
        return bool(self.note.made_up) or any(found.synthetic for found in self.framings)

    def pages(self) -> Iterator[Page | Skipped]:
        """The figures of every analysis; that of posts by category needs the posts."""
        for framing in self.framings:
            yield from (p for p in figure_pages(framing) if p.name != "categories")


def read_part(run: RunDir, progress: Progress | None = None) -> LabelPart:
    """Count and analyse the labels of a run.

    Raises:
        StoreError: the run holds no labels, or is damaged.
        UsageError: statsmodels is missing.
    """
    note, counts = count_labels(run)
    rows = [
        (
            *(c.note.judge, c.note.variant, ", ".join(c.note.present), c.share, c.present),
            *(c.judged, c.failed.total(), c.unanswered, c.left),
        )
        for c in counts
    ]
    columns = ("Judge", "variant", "present means", "share present", "present", "judged", "failed")
    table = plain_table("Labels by judge", (*columns, "no answer to judge", "left"), rows, keys=2)
    framings, problem = _analysed(run, progress)
    return LabelPart(note, table, framings, problem)


def _analysed(run: RunDir, progress: Progress | None) -> tuple[tuple[Framing, ...], str]:
    try:
        rules = find_analysis(default_analysis(run))
        return analyse(read_labels(run, rules), rules, Asked(progress=progress)), ""
    except UsageError as error:
        return (), str(error)


def framing_parts(framing: Framing) -> tuple[list[Table], list[str]]:
    """The tables of an analysis that are short enough for the page, and what is left out."""
    kept: list[Table] = []
    left: list[str] = []
    silent = _silent(framing)
    for name, table in framing_tables(framing).items():
        if name in silent:
            left.append(
                f"{table.title}: nothing could be estimated, for the reasons in other tables"
            )
        elif name in _ALWAYS or len(table.rows) <= _MOST_ROWS:
            kept.append(sortable_table(table))
        else:
            left.append(
                f"{len(table.rows):,} rows of {table.title}: habitus analyze, --table {name}"
            )
    return kept, left


def _silent(framing: Framing) -> set[str]:
    """Tables of differences and deltas in which every value is undefined."""
    found = {
        "differences": [part.difference for part in framing.comparisons],
        "deltas": [part.delta for part in framing.deltas],
        "delta-differences": [part.difference for part in framing.delta_comparisons],
    }
    return {name for name, values in found.items() if all(value is None for value in values)}


def notes_of(framings: Sequence[Framing]) -> list[str]:
    """The choices behind the analyses, each once."""
    return list(dict.fromkeys(note for framing in framings for note in framing.notes))
