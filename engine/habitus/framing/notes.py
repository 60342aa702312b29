"""The choices behind a result and what was left out, in lines to print with it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from habitus.framing.analysisfile import AnalysisFile, CompareFile
from habitus.framing.reading import Labels
from habitus.framing.subsets import Division, Part
from habitus.statistics import IntArray

FEW_CLUSTERS = 40


@dataclass(frozen=True, slots=True)
class Told:
    """What the notes tell of."""

    analysis: AnalysisFile
    labels: Labels
    compare: CompareFile
    division: Division
    fits: int
    fallbacks: int
    few: int
    paired: bool


def notes(told: Told, used: frozenset[str], dropped: Sequence[str] = ()) -> Iterator[str]:
    """The lines.

    ``used`` are the characteristics that the result is about, ``dropped`` questions that were asked
    and that the run has no labels for.
    """
    if told.labels.made_up:
        names = ", ".join(told.labels.made_up)
        yield f"SYNTHETIC: answers or labels were made up, no model gave them ({names})"
    if told.labels.left:
        yield (
            f"the run is not complete: still to be asked for {told.labels.left:,} labels; they stand in "
            "no number, whatever the rule for missing labels"
        )
    yield from _rules(told)
    yield from _judges(told, used)
    yield from _codings(told, used)
    if dropped:
        yield f"the run has no labels for the questions {', '.join(dropped)}: not answered"
    yield from _left_out(told)
    yield from _warnings(told)


def _rules(told: Told) -> Iterator[str]:
    rules, compare = told.analysis, told.compare
    scale = {"log_odds": "log-odds", "probability": "probabilities"}[rules.gee.differences]
    yield (
        f"GEE, binomial, saturated in {compare.level} (and the cause); clusters: "
        f"{compare.cluster}; working correlation: {rules.gee.correlation}, of pairs "
        f"{rules.gee.pairs_correlation}; covariance: {rules.gee.covariance}"
    )
    about = {
        "student": "Student's t, degrees of freedom one less than the clusters of the "
        "smallest cell in it",
        "normal": "the normal",
    }[rules.gee.distribution]
    yield (
        "Wald tests: within a level of probability .5 (of delta 0), between levels of equal "
        f"{scale} (of equal deltas), by {about}; {100 * (1 - rules.significance):g}% intervals, of probabilities on "
        "the log-odds scale, of differences and deltas by the delta method; each for one at a time"
    )
    family = {
        "fit": "the tests of one characteristic or pair in one subset",
        "subset": "all tests of a question in one subset",
        "question": "all tests of a question",
    }[rules.fdr.family]
    undefined = {"left_out": "do not count", "counted": "count"}[rules.fdr.undefined]
    yield (
        f"q: Benjamini-Hochberg over {family}, within and between levels {rules.fdr.sides}; "
        f"undefined tests {undefined} in their number; significant: q < {rules.significance:g}"
    )
    least = rules.threshold
    where = {"subset": "over all levels", "level": "in each level"}[least.rows]
    yield (
        f"a pair needs {least.cases} cases of cause, effect and both, counted {where}; a level "
        f"{least.clusters} clusters, with and without the cause {least.cell_clusters}; no cell "
        "may be empty or all alike"
    )
    yield f"subsets: {_subsets(compare)}"


def _subsets(compare: CompareFile) -> str:
    by, top = " x ".join(compare.subsets.by) or "none, all rows together", compare.subsets.top
    if top is None:
        return by
    out = f", but for {', '.join(top.leave_out)}" if top.leave_out else ""
    within = f" within {top.within}" if top.within else ""
    return f"{by}; the {top.n} commonest of {top.field}{within}, counted in clusters{out}"


def _judges(told: Told, used: frozenset[str]) -> Iterator[str]:
    """Who gave the labels, and in what form: another way to ask is another instrument."""
    ways: dict[str, dict[str, None]] = {}
    for name, verdict in told.labels.asked.items():
        if name in used and verdict.way:
            ways.setdefault(verdict.way, {})[verdict.judge] = None
    for way, judges in ways.items():
        yield f"labels of {', '.join(judges)}: {way}"


def _codings(told: Told, used: frozenset[str]) -> Iterator[str]:
    for rule in told.analysis.characteristics:
        coding = told.labels.codings.get(rule.id)
        if coding is not None and rule.id in used:
            yield f"{rule.name} ({rule.id}): {coding}"
    lacking = [name for name in told.labels.lacking if name in used]
    if lacking:
        yield f"the run has no labels of {', '.join(lacking)}: left out"


def _missing(told: Told) -> Iterator[str]:
    """The rule for missing labels."""
    missing = told.analysis.missing
    if missing.rule == "exclude":
        common = ", and so are clusters in which a level has no label" if missing.common else ""
        yield f"rows without a label are left out and counted as missing{common}"
    elif missing.rule == "absent":
        yield "missing labels (absent): they count as not the case; how many stands under missing"
    else:
        yield (
            "missing labels (bounds): estimates leave them out; beside stands the range of the "
            "share from none of them the case to all of them; intervals go from the lower limit of "
            "the one to the upper limit of the other, and p is the larger of the two, 1 where they "
            "lie on both sides: nothing is significant that is not so at both"
        )
        if told.paired:
            yield "deltas leave rows without both labels out (exclude): they have no simple range"


def _left_out(told: Told) -> Iterator[str]:
    frame = told.labels.frames[told.compare.rows]
    yield from _missing(told)
    if frame.unanswered:
        yield f"{frame.unanswered:,} of {len(frame):,} rows have no answer to label"
    for name, count in told.division.left_out.items():
        yield f"{count:,} of {len(frame):,} rows have no {name} and stand in no subset"


def _warnings(told: Told) -> Iterator[str]:
    if told.paired and told.analysis.gee.pairs_correlation == "exchangeable":
        yield (
            "deltas are biased under an exchangeable correlation where what is asked moves both "
            "cause and effect (pairs_correlation: independence)"
        )
    if told.fallbacks:
        yield (
            f"in {told.fallbacks:,} of {told.fits:,} fits the exchangeable correlation has no "
            "estimate, or none that a correlation can have; rows are weighed as independent there"
        )
    gee = told.analysis.gee
    if told.few and (gee.covariance == "robust" or gee.distribution == "normal"):
        yield (
            f"in {told.few:,} of {told.fits:,} fits a level, or a level with or without the cause, "
            f"has labels in fewer than {FEW_CLUSTERS} clusters: intervals are too short there and "
            "too much is significant (covariance: bias_reduced, distribution: student)"
        )
    repeated = sum(len(part.rows) - len(_pairs(part)) for part in told.division.parts)
    if repeated:
        rows = sum(len(part.rows) for part in told.division.parts)
        yield (
            f"{repeated:,} of {rows:,} rows are not the first of their level in their cluster "
            f"({told.compare.cluster}); all of them count"
        )


def _pairs(part: Part) -> IntArray:
    """The different pairs of level and cluster."""
    return np.unique(np.stack([part.level, part.group], axis=1), axis=0)
