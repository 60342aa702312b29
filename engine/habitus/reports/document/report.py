"""From a run to one HTML file.

    made = make_report(Path("runs/first"), ReportOptions(labels=Path("runs/first-labels")))
    made.html                                  # the file, UTF-8
    write_report_figures(made, folder)         # its figures

A run of labels gives a report of its own; beside another run its labels stand in that report. The
same run gives the same bytes: nothing of the time or the machine that makes the report is in it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path

from habitus.analysis import OutcomeTable, Results, ends_text, filter_text, results_tables
from habitus.errors import UsageError
from habitus.experiments import read_materials, run_filter, run_outcomes
from habitus.experiments.materials import Materials
from habitus.labelling import label_outcomes, read_labelling
from habitus.reports.ccbench import Parts, ccbench_pages, run_parts
from habitus.reports.document.about import Fact, about_tables, label_facts, run_facts
from habitus.reports.document.cells import Table, sortable_table
from habitus.reports.document.citing import Work, works
from habitus.reports.document.coverage import (
    call_table,
    is_labels,
    left_over,
    progress,
    stage_table,
)
from habitus.reports.document.labelled import (
    LabelledItem,
    LabelPart,
    LabelReader,
    framing_parts,
    notes_of,
    read_part,
)
from habitus.reports.document.outcomes import Outcomes, outcome_section
from habitus.reports.document.pictures import Picture, not_drawn, pictures
from habitus.reports.document.rendering import render
from habitus.reports.document.samples import Sample, Sampler, Wanted
from habitus.reports.document.sessions import rejected_table
from habitus.reports.figures import write_pages
from habitus.reports.pages import Page, Skipped
from habitus.running import read_made_up
from habitus.store import RunDir

Told = Callable[[int, int], None]


@dataclass(frozen=True, slots=True)
class ReportOptions:
    """What goes into a report.

    ``labels``: a run of labels to stand beside. ``setting``: the one that figures show, ``hist`` by
    default. ``seed`` draws the transcripts, that of the run by default; ``sessions`` of each persona
    are shown. ``told`` hears of fits done and fits in all.
    """

    labels: Path | None = None
    setting: str | None = None
    seed: int | None = None
    sessions: int = 2
    told: Told | None = None


@dataclass(frozen=True, slots=True)
class Labels:
    """The section about labels."""

    counts: Table
    tables: tuple[Table, ...]
    figures: tuple[Picture, ...]
    notes: tuple[str, ...]
    samples: tuple[LabelledItem, ...]


@dataclass(frozen=True, slots=True)
class Contents:
    """Everything on the page, as plain data."""

    title: str
    kind: str
    synthetic: tuple[str, ...]
    incomplete: tuple[str, ...]
    facts: tuple[Fact, ...]
    seed: int
    outcomes: Outcomes
    setting: str = ""
    results: tuple[Table, ...] = ()
    figures: tuple[Picture, ...] = ()
    not_drawn: tuple[str, ...] = ()
    labels: Labels | None = None
    samples: tuple[Sample, ...] = ()
    coverage: tuple[Table, ...] = ()
    histories: tuple[Table, ...] = ()
    about: tuple[Table, ...] = ()
    works: tuple[Work, ...] = ()


@dataclass(frozen=True, slots=True)
class Report:
    """What was made: the file, and the figures to be drawn as files of their own."""

    html: bytes
    contents: Contents
    pages: tuple[Page | Skipped, ...] = field(default=(), repr=False)

    @property
    def pictures(self) -> tuple[Picture, ...]:
        """All figures of the page, drawn or not."""
        labels = self.contents.labels
        return (*self.contents.figures, *(labels.figures if labels else ()))

    @property
    def not_drawn(self) -> list[str]:
        """What is not on the page as a drawing, each with its reason."""
        left = [f"no figure {p.heading}: {p.missing}" for p in self.pictures if p.missing]
        return [*not_drawn(self.pages), *left]


def make_report(path: Path, options: ReportOptions | None = None) -> Report:
    """The report of a run, complete or not.

    Raises:
        StoreError: the run was never begun, or is damaged.
        UsageError: no such setting, labels that are none, or statsmodels is missing.
    """
    options = options or ReportOptions()
    with ExitStack() as runs:
        run = runs.enter_context(RunDir.open(path, write=False))
        labels = None
        if options.labels is not None:
            labels = runs.enter_context(RunDir.open(options.labels, write=False))
            if not is_labels(labels) or not read_labelling(labels).verdicts:
                raise UsageError(f"{options.labels} holds no labels; `habitus judge` makes them")
        if is_labels(run):
            if labels is not None:
                raise UsageError(f"{path} is a run of labels itself; leave --labels out")
            contents, pages = _label_contents(run, options)
        else:
            contents, pages = _run_contents(run, labels, options)
    return Report(render(contents), contents, tuple(pages))


def write_report_figures(made: Report, folder: Path) -> list[Path]:
    """Write every figure of a report as SVG, PDF and PNG, with its numbers as CSV.

    Raises:
        UsageError: matplotlib is missing, or a file cannot be written.
    """
    pages = [page for page in made.pages if isinstance(page, Page)]
    return write_pages(pages, folder, numbers=True)


def _run_contents(
    run: RunDir, labels: RunDir | None, options: ReportOptions
) -> tuple[Contents, list[Page | Skipped]]:
    kept = read_materials(run)
    parts = run_parts(run)
    setting = parts.setting(options.setting) if parts else ""
    own = list(ccbench_pages(parts, setting)) if parts else []
    part = read_part(labels, options.told) if labels else None
    framed = list(part.pages()) if part else []
    seed = kept.seed if options.seed is None else options.seed
    reader = LabelReader(labels) if labels else None
    synthetic = _synthetic_targets(run, kept)
    sampler = Sampler(run, kept, reader, frozenset(synthetic))
    stages = progress(run)
    contents = Contents(
        title=kept.title or kept.id,
        kind="run",
        synthetic=tuple(_made_up(synthetic, part)),
        incomplete=tuple(left_over(stages)),
        facts=tuple(run_facts(run, kept)),
        seed=seed,
        setting=setting,
        results=tuple(_result_tables(parts.whole)) if parts else (),
        figures=tuple(pictures(own, "figure", parts.title if parts else "")),
        not_drawn=tuple(not_drawn(own)),
        labels=_labels(part, framed, ()) if part else None,
        samples=tuple(sampler.samples(Wanted(seed, options.sessions))),
        outcomes=outcome_section(_counted(run, parts), label_outcomes(labels) if labels else None),
        coverage=(
            stage_table(stages, "the run"),
            *_with_rows([call_table(run, "the run")]),
            *([_calls_of(labels)] if labels else []),
        ),
        histories=tuple(_history_tables(run, kept)),
        about=(
            *about_tables(run, "the run"),
            *(about_tables(labels, "the labels") if labels else []),
        ),
        works=tuple(works(ccbench=True, franz=labels is not None)),
    )
    return contents, [*own, *framed]


def _label_contents(run: RunDir, options: ReportOptions) -> tuple[Contents, list[Page | Skipped]]:
    part = read_part(run, options.told)
    framed = list(part.pages())
    stages = progress(run)
    seed = int(run.manifest.get("seed", 0)) if options.seed is None else options.seed
    drawn = LabelReader(run).samples(seed, 3 * options.sessions)
    contents = Contents(
        title=f"Labels of {part.note.origin}",
        kind="labels",
        synthetic=tuple(_made_up([], part)),
        incomplete=tuple(left_over(stages)),
        facts=tuple(label_facts(run, part.note)),
        seed=seed,
        labels=_labels(part, framed, drawn),
        outcomes=outcome_section(label_outcomes(run)),
        coverage=(
            stage_table(stages, "the labels"),
            *_with_rows([call_table(run, "the labels")]),
        ),
        about=tuple(about_tables(run, "the labels")),
        works=tuple(works(ccbench=False, franz=True)),
    )
    return contents, framed


def _counted(run: RunDir, parts: Parts | None) -> OutcomeTable:
    """The outcomes of a run; they were counted with its results, where it has any."""
    found = parts.whole.outcomes if parts else None
    return found if found is not None else run_outcomes(run)


def _synthetic_targets(run: RunDir, kept: Materials) -> list[str]:
    made_up, targets = read_made_up(run), run.config.get("targets", {})
    roles = run.config.get("roles", {})
    scoring = {roles.get(role, {}).get("model") for role in ("recommender", "evaluator")}
    return [name for name in kept.targets if {targets[name]["model"], *scoring} & made_up]


def _made_up(targets: Iterable[str], part: LabelPart | None) -> Iterator[str]:
    """What on the page comes from no model."""
    named = ", ".join(targets)
    if named:
        yield f"answers or verdicts of {named} were planted or scripted"
    if part and part.synthetic:
        who = ", ".join(part.note.made_up)
        yield f"answers or labels were made up{f' by {who}' if who else ''}"


def _result_tables(found: Results) -> Iterator[Table]:
    for table in results_tables(found):
        yield sortable_table(table)


def _labels(
    part: LabelPart, pages: Iterable[Page | Skipped], drawn: Iterable[LabelledItem]
) -> Labels:
    tables: list[Table] = []
    notes = [part.problem] if part.problem else []
    for framing in part.framings:
        kept, left = framing_parts(framing)
        tables += kept
        notes += left
    pages = list(pages)
    notes += [*not_drawn(pages), *notes_of(part.framings)]
    figures = tuple(pictures(pages, "framing"))
    return Labels(part.counts, tuple(tables), figures, tuple(notes), tuple(drawn))


def _calls_of(labels: RunDir) -> Table:
    return call_table(labels, "the labels")


def _with_rows(tables: Iterable[Table]) -> list[Table]:
    return [table for table in tables if table.rows]


def _history_tables(run: RunDir, kept: Materials) -> Iterator[Table]:
    if "attempts" in run.records.stages():
        found = run_filter(run)
        yield sortable_table(filter_text(found))
        yield sortable_table(ends_text(found))
        yield rejected_table(run, kept)
