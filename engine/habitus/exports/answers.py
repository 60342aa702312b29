"""The answers of a run by what they answer, with one byte for each label and no text.

    answers = read_answers(run, about)
    answers.codes[unit, target, verdict]    # 0: no label; n: label n of the verdict, from 1

A *unit* is what several targets answered: one question of one group, such as a post, in one
setting and repeat. Answers are held as hashes and small numbers, about 60 bytes each, so that a million of
them and their 17 million labels fit into memory (64 bits: the chance that two of a million ids
share a hash is one in thirty million).
"""

from __future__ import annotations

import hashlib
import re
import zlib
from array import array
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import islice

import numpy as np
from numpy.typing import NDArray

from habitus.errors import StoreError, UsageError
from habitus.labelling import Labelling
from habitus.records import JudgedItem, Label, Outcome
from habitus.store import RunDir

#: States of an answer: none there, one without a response, one to judge, several.
NO_ANSWER, NO_RESPONSE, ONE, SEVERAL = range(4)
_NUMBER = re.compile(r"[-+]?[0-9]+(\.[0-9]+)?([eE][-+]?[0-9]+)?")
_BATCH = 1 << 16
_CONDITIONS = ("setting", "repeat")  # fields that tell the questions of a group apart


@dataclass(frozen=True, slots=True)
class Answers:
    """The answers and labels of a run.

    ``names`` are hashes of item ids, in the order of the items; ``unit`` is the unit of each item
    and ``first`` the first item of each unit. ``state`` has a row a unit and a column a target.
    ``fields`` are those whose value all answers of every unit share, ``own`` the others.
    ``numeric`` are fields of which every value is a number. ``posts``: the items are answers to posts.
    ``strays`` counts labels of no item, of no verdict of the run, or that are not of the list.
    """

    targets: tuple[str, ...]
    names: NDArray[np.uint64]
    unit: NDArray[np.intp]
    first: NDArray[np.intp]
    state: NDArray[np.uint8]
    codes: NDArray[np.uint8]
    fields: tuple[str, ...]
    own: tuple[str, ...]
    numeric: frozenset[str]
    posts: bool
    strays: int

    def items(self, run: RunDir) -> Iterator[tuple[int, JudgedItem]]:
        """The first item of each unit, with the unit's number.

        Raises:
            StoreError: the items are no longer those that were counted.
        """
        changed = StoreError(f"{run.path} changed meanwhile; wait until its command has ended")
        number = -1
        for number, item in enumerate(run.records.iterate("items", JudgedItem)):
            if number >= len(self.names) or self.names[number] != _hash(item.id):
                raise changed
            unit = int(self.unit[number])
            if self.first[unit] == number:
                yield unit, item
        if number + 1 != len(self.names):
            raise changed


def read_answers(run: RunDir, about: Labelling) -> Answers:
    """Read the items of a run, then its labels.

    Raises:
        UsageError: the run has no items.
    """
    seen = _Seen()
    for item in run.records.iterate("items", JudgedItem):
        seen.add(item)
    if not seen.names:
        raise UsageError(f"{run.path} has no answers that were judged")
    names = np.frombuffer(seen.names, np.uint64)
    _, first, unit = np.unique(
        np.frombuffer(seen.units, np.uint64), return_index=True, return_inverse=True
    )
    target = np.frombuffer(seen.of, np.uint8)
    state = np.full((len(first), len(seen.targets)), NO_ANSWER, np.uint8)
    state[unit, target] = np.frombuffer(seen.responded, np.uint8)
    times = np.zeros(state.shape, np.uint32)
    np.add.at(times, (unit, target), 1)
    state[times > 1] = SEVERAL
    codes, strays = _codes(run, about, names, unit * len(seen.targets) + target, state.size)
    own = {name for name, values in seen.fields.items() if _differs(values, unit, len(first))}
    return Answers(
        targets=tuple(seen.targets),
        names=names,
        unit=unit,
        first=first,
        state=state,
        codes=codes.reshape(*state.shape, len(about.verdicts)),
        fields=tuple(name for name in seen.fields if name not in own),
        own=tuple(name for name in seen.fields if name in own),
        numeric=frozenset(seen.fields) - seen.worded,
        posts=about.kind == "posts",
        strays=strays,
    )


@dataclass(slots=True)
class _Seen:
    """What is kept of the items read so far."""

    targets: list[str] = field(default_factory=list)
    names: array[int] = field(default_factory=lambda: array("Q"))
    units: array[int] = field(default_factory=lambda: array("Q"))
    of: array[int] = field(default_factory=lambda: array("B"))
    responded: array[int] = field(default_factory=lambda: array("B"))
    fields: dict[str, array[int]] = field(default_factory=dict)
    worded: set[str] = field(default_factory=set)

    def add(self, item: JudgedItem) -> None:
        number = len(self.names)
        self.names.append(_hash(item.id))
        conditions = (item.fields.get(name, "") for name in _CONDITIONS)
        self.units.append(_hash(item.group, *conditions, item.question))
        self.of.append(self._target(item.target))
        self.responded.append(ONE if item.outcome is Outcome.OK else NO_RESPONSE)
        for name, value in item.fields.items():
            if name not in self.fields:
                self.fields[name] = array("I", [0]) * number
            self.fields[name].append(zlib.crc32(_bytes(value)) or 1)  # 0: it has no such field
            if not _NUMBER.fullmatch(value):
                self.worded.add(name)
        for values in self.fields.values():
            if len(values) == number:
                values.append(0)

    def _target(self, name: str) -> int:
        if name not in self.targets:
            self.targets.append(name)
        if len(self.targets) > 255:
            raise UsageError("the answers are of more than 255 targets")
        return self.targets.index(name)


def _codes(
    run: RunDir,
    about: Labelling,
    names: NDArray[np.uint64],
    cell: NDArray[np.intp],
    cells: int,
) -> tuple[NDArray[np.uint8], int]:
    """A row for each (unit, target), a column for each verdict; and the count of strays."""
    codes = np.zeros((cells, len(about.verdicts)), np.uint8)
    order = np.argsort(names)
    known = names[order]
    strays = 0
    labels = _known_labels(run, about)
    while batch := list(islice(labels, _BATCH)):
        of = np.array([item for item, _, _ in batch], np.uint64)
        verdict, code = np.array([(verdict, code) for _, verdict, code in batch]).T
        at = np.searchsorted(known, of).clip(max=len(known) - 1)
        there = (known[at] == of) & (code > 0)
        strays += int((~there).sum())
        codes[cell[order[at[there]]], verdict[there]] = code[there]
    return codes, strays


def _known_labels(run: RunDir, about: Labelling) -> Iterator[tuple[int, int, int]]:
    """Hash of the item, number of the verdict and code of each label that was read.

    The code is 0 where the verdict or the label is none of the run's.
    """
    verdicts = {(v.judge, v.variant): i for i, v in enumerate(about.verdicts)}
    codes = [{label: n for n, label in enumerate(v.labels, 1)} for v in about.verdicts]
    for label in run.records.iterate("labels", Label):
        if label.outcome is not Outcome.OK or label.label is None:
            continue
        verdict = verdicts.get((label.judge, label.variant))
        code = 0 if verdict is None else codes[verdict].get(label.label, 0)
        yield _hash(label.item), verdict or 0, code


def _differs(values: array[int], unit: NDArray[np.intp], units: int) -> bool:
    """Whether a field has two values within any unit."""
    found = np.frombuffer(values, np.dtype(f"u{values.itemsize}"))
    highest = np.zeros(units, found.dtype)
    lowest = np.full(units, np.iinfo(found.dtype).max, found.dtype)
    np.maximum.at(highest, unit, found)
    np.minimum.at(lowest, unit, found)
    return bool((highest != lowest).any())


def _hash(*texts: str) -> int:
    whole = "\0".join(texts) if len(texts) > 1 else texts[0]
    return int.from_bytes(hashlib.blake2b(_bytes(whole), digest_size=8).digest(), "little")


def _bytes(text: str) -> bytes:
    return text.encode("utf-8", "surrogatepass")
