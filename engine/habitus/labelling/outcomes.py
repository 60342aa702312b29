"""The outcomes of a run of answers and labels: of every item, and of every label by its judge.

    table = label_outcomes(run)                       # by target, setting, culture or country
    table = label_outcomes(run, ("country", "category"))

A label is counted where its item belongs. Of the texts nothing is kept, of an item a hash and the
number of its place: 12 bytes. (64 bits: the chance that two of a million ids share a hash is one in
thirty million.)
"""

from __future__ import annotations

import hashlib
from array import array
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from itertools import islice

import numpy as np

from habitus.analysis import OutcomeCounter, OutcomeTable
from habitus.analysis.outcomes import outcome_of
from habitus.labelling.note import ITEMS, LABELS, VerdictNote, read_labelling
from habitus.records import Failure, JudgedItem, Outcome
from habitus.store import RunDir
from habitus.store.canonical import plain

#: Fields by which answers are told apart where nothing else is said, if they have them.
USUAL = ("setting", "culture", "country")
_BATCH = 1 << 14
_TARGET = "target"
STRAYS = "stray labels"  # of no item, or of no judge, of the run


def label_outcomes(run: RunDir, by: Sequence[str] | None = None) -> OutcomeTable:
    """The outcomes of a run of labels as it stands.

    Args:
        run: items, and labels of them if there are any.
        by: fields of items that rows are told apart by, beside the target; the usual ones that the
            first item has when left out.

    Raises:
        StoreError: it holds no labels, or is damaged.
    """
    note = read_labelling(run)
    fields = tuple(dict.fromkeys(_usual(run) if by is None else by))
    fields = tuple(name for name in fields if name != _TARGET)
    counter = OutcomeCounter(
        (_TARGET, *fields, "judge", "variant", "model"), (ITEMS, LABELS, STRAYS)
    )
    places = _Places(fields)
    for item in run.records.iterate(ITEMS, JudgedItem):
        place = places.add(item)
        failure = outcome_of(item.outcome, item.reason)
        counter.add(ITEMS, (*place, "", "", ""), item.id, failure)
    for verdict in note.verdicts:
        for number, place in enumerate(places.words):
            whole = (*place, verdict.judge, verdict.variant, verdict.model)
            counter.add_many(LABELS, whole, 0, places.unanswered[number])
    _count_labels(run, note.verdicts, places, counter)
    # Items are all there before the first label; of a limited run the totals are more than it asks.
    labels = places.count * len(note.verdicts)
    return counter.table({ITEMS: note.totals.get(ITEMS, 0), LABELS: labels})


class _Places:
    """The place of each item: its target and fields, as a number by the hash of its id."""

    def __init__(self, fields: Sequence[str]) -> None:
        self.words: list[tuple[str, ...]] = []
        self.unanswered: list[Counter[str]] = []
        self._fields = fields
        self._numbers: dict[tuple[str, ...], int] = {}
        self._hashes = array("Q")
        self._of = array("I")

    @property
    def count(self) -> int:
        """How many items there are."""
        return len(self._of)

    def add(self, item: JudgedItem) -> tuple[str, ...]:
        place = (item.target, *(item.fields.get(name, "") for name in self._fields))
        number = self._numbers.setdefault(place, len(self.words))
        if number == len(self.words):
            self.words.append(place)
            self.unanswered.append(Counter())
        self._hashes.append(_hash(plain(item.id)))
        self._of.append(number)
        if item.outcome is not Outcome.OK:
            self.unanswered[number][f"answer {item.outcome}"] += 1
        return place

    def finder(self) -> Callable[[Sequence[str]], list[int]]:
        """Finds the places of items by their ids, -1 for none; nothing is added afterwards."""
        hashes = np.frombuffer(self._hashes, np.uint64)
        order = np.argsort(hashes)
        known, of = hashes[order], np.frombuffer(self._of, np.uint32)[order]

        def find(names: Sequence[str]) -> list[int]:
            if not len(known):
                return [-1] * len(names)
            wanted = np.array([_hash(name) for name in names], np.uint64)
            at = np.searchsorted(known, wanted).clip(max=len(known) - 1)
            found: list[int] = np.where(known[at] == wanted, of[at].astype(np.int64), -1).tolist()
            return found

        return find


def _count_labels(
    run: RunDir, verdicts: Sequence[VerdictNote], places: _Places, counter: OutcomeCounter
) -> None:
    asked = {_called(verdict): verdict for verdict in verdicts}
    find = places.finder()
    endings = _labels(run)
    while batch := list(islice(endings, _BATCH)):
        numbers = find([item for _, item, _, _ in batch])
        for (name, item, called, failure), number in zip(batch, numbers, strict=True):
            verdict = asked.get(called)
            if number < 0 or verdict is None:
                counter.skip(STRAYS, ("",) * len(counter.keys), name, "of no answer or judge here")
                continue
            words = (*places.words[number], verdict.judge, verdict.variant, verdict.model)
            counter.add(LABELS, words, item, failure)  # which is what can be looked at


def _labels(run: RunDir) -> Iterator[tuple[str, str, str, Failure | None]]:
    """Id, item, judge with its variant, and failure of every label; no body is read."""
    for name, outcome, reason in run.records.endings(LABELS):
        item, _, called = name.rpartition("/")
        yield name, item, called, outcome_of(outcome, reason)


def _called(verdict: VerdictNote) -> str:
    return f"{verdict.judge}.{verdict.variant}" if verdict.variant else verdict.judge


def _usual(run: RunDir) -> list[str]:
    first = next(run.records.iterate(ITEMS, JudgedItem), None)
    known = first.fields if first is not None else {}
    if "setting" in known:  # answers in a shared setting have no culture
        return ["setting", "culture"]
    return [name for name in USUAL if name in known]


def _hash(text: str) -> int:
    raw = hashlib.blake2b(text.encode("utf-8", "surrogatepass"), digest_size=8).digest()
    return int.from_bytes(raw, "little")
