"""The questions of an analysis file, answered for a run of labels.

    labels = read_labels(run, analysis)
    for framing in analyse(labels, analysis): ...

Questions that compare the same levels in the same subsets give one result.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

from habitus.errors import NotFoundError, UsageError
from habitus.framing.analysisfile import AnalysisFile, CompareFile, QuestionFile
from habitus.framing.families import corrected
from habitus.framing.fitting import Fitter
from habitus.framing.notes import FEW_CLUSTERS, Told, notes
from habitus.framing.rankings import rankings
from habitus.framing.reading import Labels
from habitus.framing.results import (
    Comparison,
    Delta,
    DeltaComparison,
    Fitted,
    Framing,
    Prevalence,
    Ranking,
    SetAside,
)
from habitus.framing.subsets import Division, divide
from habitus.statistics import GeeEngine, StatsmodelsGee

Progress = Callable[[int, int], None]  # fits done, fits in all


@dataclass(frozen=True, slots=True)
class Asked:
    """What a caller chooses beside the file: which questions, what fits, who is told."""

    questions: tuple[str, ...] = ()
    engine: GeeEngine | None = None
    progress: Progress | None = None


def analyse(
    labels: Labels, analysis: AnalysisFile, asked: Asked | None = None
) -> tuple[Framing, ...]:
    """The results of an analysis, one for each comparison that its questions make.

    Raises:
        NotFoundError: there is no such question.
        UsageError: no row has the fields that are compared, or statsmodels is not installed.
    """
    asked = asked or Asked()
    wanted = _chosen(analysis, asked.questions)
    chosen = [question for question in wanted if _there(question, labels)]
    dropped = [question for question in wanted if question not in chosen]
    if not chosen:
        raise UsageError(
            f"the run has no labels for the questions asked; it lacks {', '.join(labels.lacking)}"
        )
    engine = asked.engine or StatsmodelsGee()
    work = []
    for compare, questions in _compared(analysis, chosen):
        division = divide(labels.frames[compare.rows], compare)
        work.append(_Work(labels, analysis, compare, division, questions, dropped))
    counter = _Counter(sum(part.fits for part in work), asked.progress)
    several = len(_compared(analysis, analysis.questions)) > 1
    return tuple(part.framing(engine, counter, several=several) for part in work)


def _compared(
    analysis: AnalysisFile, questions: Iterable[QuestionFile]
) -> list[tuple[CompareFile, list[QuestionFile]]]:
    """Questions by what they compare, in the order of the file."""
    found: list[tuple[CompareFile, list[QuestionFile]]] = []
    for question in questions:
        compare = analysis.compare_of(question)
        same = next((those for other, those in found if other == compare), None)
        if same is None:
            found.append((compare, [question]))
        else:
            same.append(question)
    return found


def _chosen(analysis: AnalysisFile, names: Sequence[str]) -> list[QuestionFile]:
    known = {question.id: question for question in analysis.questions}
    for name in names:
        if name not in known:
            raise NotFoundError(f"question of the analysis {analysis.id!r}", name, list(known))
    return [question for question in analysis.questions if not names or question.id in names]


def _there(question: QuestionFile, labels: Labels) -> bool:
    """Whether the run has labels for any of a question."""
    return bool(_prevalence_of(question, labels) or _pairs_of(question, labels))


def _prevalence_of(question: QuestionFile, labels: Labels) -> list[str]:
    return [name for name in question.prevalence if name in labels.codings]


def _pairs_of(question: QuestionFile, labels: Labels) -> list[tuple[str, str]]:
    return [pair for pair in question.each_pair() if set(pair) <= labels.codings.keys()]


@dataclass(slots=True)
class _Counter:
    """Tells how far the fits are."""

    total: int
    progress: Progress | None
    done: int = 0

    def add(self) -> None:
        self.done += 1
        if self.progress is not None:
            self.progress(self.done, self.total)


@dataclass(slots=True)
class _Found:
    """Results that grow question by question."""

    prevalences: list[Prevalence] = field(default_factory=list)
    comparisons: list[Comparison] = field(default_factory=list)
    rankings: list[Ranking] = field(default_factory=list)
    deltas: list[Delta] = field(default_factory=list)
    delta_comparisons: list[DeltaComparison] = field(default_factory=list)
    set_aside: list[SetAside] = field(default_factory=list)
    fits: int = 0
    fallbacks: int = 0
    few: int = 0

    def add(self, fits: Sequence[Fitted[Any, Any]], question: str) -> None:
        """Count fits and list those that gave less than they should."""
        self.fits += len(fits)
        self.fallbacks += sum(fit.fallback for fit in fits)
        self.few += sum(0 < fit.clusters < FEW_CLUSTERS for fit in fits)
        self.set_aside += [
            SetAside(fit.subset, question, fit.name, fit.reason) for fit in fits if fit.reason
        ]


@dataclass(frozen=True, slots=True)
class _Work:
    """The questions that make one comparison."""

    labels: Labels
    analysis: AnalysisFile
    compare: CompareFile
    division: Division
    questions: list[QuestionFile]
    dropped: list[QuestionFile]  # asked, but the run has no labels for them

    @property
    def fits(self) -> int:
        """How many fits there are to make."""
        each = (_prevalence_of(q, self.labels) + _pairs_of(q, self.labels) for q in self.questions)
        return sum(map(len, each)) * len(self.division.parts)

    def framing(self, engine: GeeEngine, counter: _Counter, *, several: bool) -> Framing:
        """Fit everything."""
        fitter = Fitter(engine, self.analysis, self.division.levels)
        found = _Found()
        for question in self.questions:
            self._answer(question, fitter, counter, found)
        first, analysis = self.questions[0], self.analysis
        names = {level: self.compare.names.get(level, level) for level in self.division.levels}
        told = Told(
            *(self.analysis, self.labels, self.compare, self.division),
            *(found.fits, found.fallbacks, found.few, bool(found.deltas)),
        )
        used = frozenset[str]().union(*(question.named() for question in self.questions))
        return Framing(
            id=f"{analysis.id}-{first.id}" if several else analysis.id,
            title=first.title if several and len(self.questions) == 1 else analysis.title,
            notes=tuple(notes(told, used, [question.id for question in self.dropped])),
            synthetic=bool(self.labels.made_up),
            characteristics={
                c.id: c.name
                for c in analysis.characteristics
                if c.id in used and c.id in self.labels.codings
            },
            levels=self.division.levels,
            subsets=tuple(part.subset for part in self.division.parts),
            prevalences=tuple(found.prevalences),
            comparisons=tuple(found.comparisons),
            rankings=tuple(found.rankings),
            deltas=tuple(found.deltas),
            delta_comparisons=tuple(found.delta_comparisons),
            set_aside=tuple(found.set_aside),
            names=names,
        )

    def _answer(
        self, question: QuestionFile, fitter: Fitter, counter: _Counter, found: _Found
    ) -> None:
        columns = self.labels.frames[self.compare.rows].labels
        fits: list[Fitted[Any, Any]] = []
        for name in _prevalence_of(question, self.labels):
            for part in self.division.parts:
                fits.append(fitter.prevalence(part, name, columns[name]))
                counter.add()
        how_many = len(fits)
        for cause, effect in _pairs_of(question, self.labels):
            for part in self.division.parts:
                pair = (columns[cause], columns[effect])
                fits.append(fitter.delta(part, (cause, effect), pair))
                counter.add()
        fits = corrected(fits, self.analysis)
        found.add(fits, question.id)
        for fit in fits[:how_many]:
            found.prevalences += fit.within
            found.comparisons += fit.between
        found.rankings += rankings(fits[:how_many], self.compare.names)
        for fit in fits[how_many:]:
            found.deltas += fit.within
            found.delta_comparisons += fit.between
