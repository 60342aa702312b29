"""Entries of ``tests/data/mends/`` fit the engine and the documents; ``make mends`` tries them out."""

from __future__ import annotations

from pathlib import Path

import pytest

import mends
from mends import Ended, Mend

ALL = mends.mends()


@pytest.mark.parametrize("mend", ALL, ids=[mend.name for mend in ALL])
def test_a_mend_can_be_taken_out(mend: Mend) -> None:
    taken_out = mend.taken_out()
    compile(taken_out, mend.file, "exec")
    assert taken_out != mend.path().read_text(encoding="utf-8")


@pytest.mark.parametrize("mend", ALL, ids=[mend.name for mend in ALL])
def test_its_tests_are_those_that_the_documents_name(mend: Mend) -> None:
    assert mend.tests
    assert set(mend.tests) <= mends.row_of(mend)
    assert all(mends.node_of(test) for test in mend.tests)


def test_every_known_failure_has_one() -> None:
    numbers = {mend.about for mend in ALL if mend.about.isdigit()}
    assert numbers == {str(number) for number in range(1, 26)}


def test_none_is_there_twice() -> None:
    assert len({mend.name for mend in ALL}) == len(ALL)


MEND = Mend("1", "a fault", "cells.py", "a", "b", ("test_a.py::test_one", "test_a.py::test_two"))


@pytest.mark.parametrize(
    ("ended", "fails"),
    [
        (Ended(1, frozenset(MEND.tests), frozenset(MEND.tests)), True),
        (Ended(1, frozenset(MEND.tests[:1]), frozenset(MEND.tests)), False),
        (Ended(0, frozenset(), frozenset(MEND.tests)), False),
        (Ended(2, output="ImportError"), False),
        (Ended(-1, output="they did not end"), False),
    ],
    ids=["all fail", "one does not", "none does", "none was collected", "they hang"],
)
def test_a_mend_has_its_tests_when_each_of_them_fails(ended: Ended, fails: bool) -> None:
    assert mends.judge(MEND, ended)[0] is fails


def test_a_piece_that_is_not_there_once_is_told(tmp_path: Path) -> None:
    path = MEND.path(tmp_path)
    path.parent.mkdir(parents=True)
    for text in ("", "a a"):
        path.write_text(text)
        with pytest.raises(ValueError, match=r"cells\.py: stands there [02] times"):
            MEND.taken_out(tmp_path)
