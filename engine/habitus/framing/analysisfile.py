"""``experiments/analyses/<id>.yaml``: which questions are put to a run of labels, and by what rules.

    id: franz
    compare: {level: target, subsets: {by: [country]}}
    characteristics:
      - {id: insider, name: "Insider", judge: positioning}
    questions:
      - {id: how-often, title: "How often", prevalence: [insider]}

Every choice that can change a number is a key with a default, and is printed with the results.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated, Literal

from pydantic import Field

from habitus.content import ContentModel
from habitus.content.fields import Line, Slug
from habitus.statistics import Correlation, Covariance

RowsOf = Literal["item", "norm"]
MissingRule = Literal["exclude", "absent", "bounds"]
Family = Literal["fit", "subset", "question"]
NORM_FIELDS = ("state", "met")  # of an item, one for each norm: ``state.<norm>``


class TopFile(ContentModel):
    """Keeps the commonest values of a field, counted in clusters; ties go by name."""

    field: Line
    n: int = Field(default=3, ge=1)
    within: Line | None = Field(default=None, description="counted anew for each value of this")
    leave_out: tuple[Line, ...] = Field(default=(), description="values that are never among them")


class SubsetsFile(ContentModel):
    """How rows are divided before anything is fitted."""

    by: tuple[Line, ...] = Field(default=(), description="a subset for each combination of values")
    top: TopFile | None = None


class CompareFile(ContentModel):
    """What is compared with what, on which rows."""

    level: Line = Field(default="target", description="the field whose values are compared")
    reference: Line | None = Field(
        default=None, description="the value that stands first; it changes no number"
    )
    names: dict[Line, Line] = Field(
        default_factory=dict, description="short names of values in rankings, in their order"
    )
    cluster: Line = Field(default="group", description="rows that share this are not independent")
    rows: RowsOf = Field(
        default="item",
        description="norm: each item is a row for each norm of its persona, with fields norm, "
        "state, met",
    )
    subsets: SubsetsFile = SubsetsFile()

    def fields(self) -> Iterator[str]:
        """Every field that is looked at."""
        yield self.level
        yield from self.subsets.by
        if self.subsets.top is not None:
            yield self.subsets.top.field
            if self.subsets.top.within is not None:
                yield self.subsets.top.within


class CharacteristicFile(ContentModel):
    """Something that an answer has (1) or has not (0), by the label of a judge or by a field."""

    id: Slug
    name: Line
    judge: Slug | None = None
    variant: Slug | None = None
    field: Line | None = Field(default=None, description="a field in place of a judge")
    labels: tuple[Line, ...] = Field(
        default=(),
        description="labels (values of the field) coded 1; those that the judge's file calls "
        "present by default",
    )
    violates: bool = Field(
        default=False, description="true: 1 is every other label, such as breaking a maxim"
    )


class PairsFile(ContentModel):
    """Every cause with every effect, and with ``both_ways`` every effect as a cause, too."""

    causes: Annotated[tuple[Slug, ...], Field(min_length=1)]
    effects: Annotated[tuple[Slug, ...], Field(min_length=1)]
    both_ways: bool = False

    def each(self) -> Iterator[tuple[str, str]]:
        """Cause and effect; nothing is paired with itself."""
        there = [(c, e) for c in self.causes for e in self.effects if c != e]
        yield from there
        if self.both_ways:
            yield from ((e, c) for c, e in there)


class QuestionFile(ContentModel):
    """What is asked; without a ``compare`` of its own, that of the file."""

    id: Slug
    title: Line
    compare: CompareFile | None = None
    prevalence: tuple[Slug, ...] = ()
    pairs: tuple[PairsFile, ...] = ()

    def each_pair(self) -> tuple[tuple[str, str], ...]:
        """Causes and effects, each pair once."""
        return tuple(dict.fromkeys(pair for pairs in self.pairs for pair in pairs.each()))

    def named(self) -> frozenset[str]:
        """Characteristics that the question is about."""
        return frozenset(self.prevalence) | {name for pair in self.each_pair() for name in pair}


class GeeFile(ContentModel):
    """The fits.

    With a cause that varies within a cluster, only independence estimates what a delta is defined
    as: a weight on the other rows of a cluster mixes their causes in (Pepe and Anderson 1994,
    Communications in Statistics 23).
    """

    correlation: Correlation = Field(
        default="exchangeable",
        description="working correlation of the rows of a cluster, where prevalence is fitted",
    )
    pairs_correlation: Correlation = Field(
        default="independence",
        description="the same where a cause is in the model; exchangeable is biased there when "
        "what is asked moves both the cause and the effect",
    )
    covariance: Covariance = Field(
        default="bias_reduced",
        description="robust: the plain sandwich; bias_reduced: corrected for few clusters (Mancl "
        "and DeRouen), the same with many",
    )
    distribution: Literal["student", "normal"] = Field(
        default="student",
        description="of tests and intervals; student: with one degree of freedom less than the "
        "clusters of the smallest cell that a number rests on",
    )
    differences: Literal["log_odds", "probability"] = Field(
        default="log_odds",
        description="the scale on which two levels' probabilities are tested to be equal",
    )


class FdrFile(ContentModel):
    """The correction for many tests (Benjamini and Hochberg)."""

    family: Family = Field(
        default="fit",
        description="tests that are corrected together: those of one characteristic or pair in "
        "one subset, all of a subset, or all of a question",
    )
    sides: Literal["apart", "together"] = Field(
        default="apart", description="tests within a level and those between levels"
    )
    undefined: Literal["left_out", "counted"] = Field(
        default="left_out", description="whether undefined tests count in their number"
    )


class ThresholdFile(ContentModel):
    """How much must be there before anything is fitted."""

    cases: int = Field(
        default=10, ge=1, description="least cases of a cause, an effect and both together"
    )
    rows: Literal["subset", "level"] = Field(
        default="subset", description="where they are counted: over all levels, or in each"
    )
    clusters: int = Field(default=10, ge=2, description="least clusters of a level")
    cell_clusters: int = Field(
        default=2, ge=2, description="least clusters of a level with, and without, the cause"
    )


class MissingFile(ContentModel):
    """What becomes of rows without a label; they are counted in any case."""

    rule: MissingRule = Field(
        default="exclude",
        description="exclude: left out; absent: a missing label is not the case; bounds: the range "
        "from none of them the case to all of them, and no claim that an extreme does not bear",
    )
    common: bool = Field(
        default=False, description="true: only clusters in which every level has a label"
    )


class AnalysisFile(ContentModel):
    """``experiments/analyses/<id>.yaml``."""

    id: Slug = Field(description="also the name of the file")
    title: Line
    compare: CompareFile = CompareFile()
    characteristics: Annotated[tuple[CharacteristicFile, ...], Field(min_length=1)]
    questions: Annotated[tuple[QuestionFile, ...], Field(min_length=1)]
    gee: GeeFile = GeeFile()
    significance: float = Field(
        default=0.05,
        gt=0,
        lt=1,
        description="tests below it are significant; intervals hold 1 - it",
    )
    fdr: FdrFile = FdrFile()
    threshold: ThresholdFile = ThresholdFile()
    missing: MissingFile = MissingFile()

    def compare_of(self, question: QuestionFile) -> CompareFile:
        """What a question compares."""
        return question.compare or self.compare

    def characteristic(self, name: str) -> CharacteristicFile:
        """The characteristic of an id that is there."""
        return next(found for found in self.characteristics if found.id == name)
