"""The writing thread, and the one spelling of a configuration."""

from __future__ import annotations

import asyncio
import contextlib
import json
import threading
from collections.abc import Sequence
from typing import Any

import pytest

from habitus.errors import StoreError, UsageError
from habitus.records import (
    Outcome,
)
from habitus.store import canonical, changes
from habitus.store.writer import GROUP, Writer

# The writer


class Item:
    size = 1


async def test_the_queue_is_bounded() -> None:
    go, groups = threading.Event(), []

    def commit(items: Sequence[Item]) -> None:
        go.wait()
        groups.append(len(items))

    writer: Writer[Item] = Writer(commit)
    taken = 0

    async def add() -> None:
        nonlocal taken
        await writer.room()
        done = writer.enqueue(Item())
        taken += 1
        await done

    tasks = [asyncio.create_task(add()) for _ in range(3000)]
    while taken < 4 * GROUP:
        await asyncio.sleep(0)
    assert taken <= 5 * GROUP
    go.set()
    await asyncio.gather(*tasks)
    writer.close()
    assert sum(groups) == 3000
    assert max(groups) <= GROUP


async def test_the_first_failure_reaches_all_who_wait_and_all_who_come() -> None:
    def commit(items: Sequence[Item]) -> None:
        raise StoreError("the disk is full")

    writer: Writer[Item] = Writer(commit)
    waiting: list[asyncio.Future[None]] = []
    with contextlib.suppress(StoreError):  # the first group may fail while others are enqueued
        waiting.extend(writer.enqueue(Item()) for _ in range(600))
    found = await asyncio.gather(*waiting, return_exceptions=True)
    assert {(type(error), str(error)) for error in found} == {(StoreError, "the disk is full")}
    await writer.room()
    with pytest.raises(StoreError, match="the disk is full"):
        writer.enqueue(Item())
    writer.close()


async def test_a_fault_in_writing_reaches_those_who_wait() -> None:
    def commit(items: Sequence[Item]) -> None:
        raise ZeroDivisionError

    writer: Writer[Item] = Writer(commit)
    with pytest.raises(StoreError, match="ZeroDivisionError"):
        await writer.enqueue(Item())
    writer.close()


# One spelling


@pytest.mark.parametrize(
    ("value", "text"),
    [
        ({"b": 1, "a": 2}, b'{"a":2,"b":1}'),
        ([1.0, -0.0, 0.1, 1e300], b"[1,0,0.1,1e+300]"),
        ((True, None, "é"), '[true,null,"é"]'.encode()),
        ({"x": "\ud800"}, b'{"x":"\\ud800"}'),
        ({1: Outcome.OK}, b'{"1":"ok"}'),
    ],
    ids=["sorted", "floats", "plain", "surrogate", "keys"],
)
def test_canonical(value: Any, text: bytes) -> None:
    assert canonical(value) == text
    assert canonical(json.loads(text)) == text


@pytest.mark.parametrize("value", [float("nan"), float("inf"), b"x", {1}, object()], ids=type)
def test_what_json_cannot_hold_is_refused_with_its_place(value: Any) -> None:
    with pytest.raises(UsageError, match=r"models\.0\.x"):
        canonical({"models": [{"x": value}]})


def test_changes_treats_unset_and_null_alike() -> None:
    assert changes({"a": None, "b": 1.0}, {"b": 1}) == []
    assert [c.path for c in changes({"a": {"b": 1}}, {"a": {"b": 2, "c": 3}})] == [
        ("a", "b"),
        ("a", "c"),
    ]
