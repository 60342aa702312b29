"""Which units all targets agree on: the tables of a consensus and what became of every unit.

FRANZ publishes nine tables: emotions, empathy, validation, outsider, generalizing, and violations
of the four maxims. The paper does not say whether an answer that says too little and one that says
too much agree in violating a maxim; ``Agreement`` is the switch.

Labels are numbers here, and nothing is known of files.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from enum import StrEnum

import numpy as np
from numpy.typing import NDArray

from habitus.exports.answers import NO_ANSWER, NO_RESPONSE, ONE, SEVERAL, Answers
from habitus.labelling import VerdictNote

#: What FRANZ publishes: judge, variant, whether the labels that count as present are meant, name.
PUBLISHED = (
    ("anthropomorphism", "emotions", True, "emotions"),
    ("anthropomorphism", "empathy", True, "empathy"),
    ("anthropomorphism", "validation", True, "validation"),
    ("positioning", "", False, "outsider"),
    ("generalizing", "", True, "generalizing"),
    ("maxims", "quantity", False, "quantity_violated"),
    ("maxims", "quality", False, "quality_violated"),
    ("maxims", "relation", False, "relation_violated"),
    ("maxims", "manner", False, "manner_violated"),
)


class Agreement(StrEnum):
    """When the labels of a unit agree: both of the trait's side (violated), or the same word."""

    TRAIT = "trait"
    LABEL = "label"


@dataclass(frozen=True, slots=True)
class Wanted:
    """A table to be made: its name, the number of its verdict, and the labels it is about."""

    name: str
    verdict: int
    labels: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Tally:
    """What became of every unit.

    ``units`` is the sum of ``complete``, ``no_answer`` (of some target), ``several`` (answers of
    one target), ``no_response`` and ``no_label``; the first that holds counts. ``same`` of the
    complete have one label for all targets, whichever it is; ``rows`` are in the table.
    """

    units: int
    complete: int
    same: int
    rows: int
    no_answer: int
    several: int
    no_response: int
    no_label: int


def wanted_tables(verdicts: Iterable[VerdictNote], *, everything: bool) -> list[Wanted]:
    """The published tables of the verdicts; one a label if all are wanted or none is published."""
    verdicts = tuple(verdicts)
    number = {(verdict.judge, verdict.variant): i for i, verdict in enumerate(verdicts)}
    published = [
        Wanted(name, i, _side(verdicts[i], present))
        for judge, variant, present, name in PUBLISHED
        if (i := number.get((judge, variant), -1)) >= 0
    ]
    if published and not everything:
        return published
    return [
        Wanted(f"{_name(verdict)}.{label}", i, (label,))
        for i, verdict in enumerate(verdicts)
        for label in verdict.labels
    ]


def choose(
    wanted: Wanted, asked: VerdictNote, answers: Answers, agreement: Agreement
) -> tuple[NDArray[np.bool_], Tally]:
    """Whether each unit is in a table, and the count of all."""
    codes, state = answers.codes[:, :, wanted.verdict], answers.state
    complete = np.ones(len(codes), bool)
    left_out: dict[str, int] = {}
    for reason, holds in _reasons(codes, state):
        left_out[reason] = int((complete & holds).sum())
        complete &= ~holds
    same = complete & (codes == codes[:, :1]).all(axis=1)
    numbers = [asked.labels.index(label) + 1 for label in wanted.labels]
    agreeing = same if agreement is Agreement.LABEL else complete
    chosen = agreeing & np.isin(codes, numbers).all(axis=1)
    tally = Tally(
        units=len(codes),
        complete=int(complete.sum()),
        same=int(same.sum()),
        rows=int(chosen.sum()),
        **left_out,
    )
    return chosen, tally


def _side(verdict: VerdictNote, present: bool) -> tuple[str, ...]:
    """The labels that count as present, or the others: for a maxim, those that violate it."""
    return tuple(label for label in verdict.labels if (label in verdict.present) is present)


def _name(verdict: VerdictNote) -> str:
    return f"{verdict.judge}.{verdict.variant}" if verdict.variant else verdict.judge


def _reasons(
    codes: NDArray[np.uint8], state: NDArray[np.uint8]
) -> Iterator[tuple[str, NDArray[np.bool_]]]:
    """Why a unit is left out, in the order in which reasons count."""
    yield "no_answer", (state == NO_ANSWER).any(axis=1)
    yield "several", (state == SEVERAL).any(axis=1)
    yield "no_response", (state == NO_RESPONSE).any(axis=1)
    yield "no_label", ((codes == 0) & (state == ONE)).any(axis=1)
