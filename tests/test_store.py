"""Calls and records: what is kept comes back, whatever the order and whatever the text."""

from __future__ import annotations

import asyncio
import json
import random
import sqlite3
import tempfile
import tracemalloc
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from habitus.errors import StoreError
from habitus.models import CallLog
from habitus.records import (
    Message,
    Outcome,
    Prefix,
    Recommendation,
    Reply,
    Request,
    Response,
    Sampling,
    Usage,
    call_key,
    messages,
)
from habitus.store import RunDir
from habitus.store.rows import RowWriter, read_call
from storing import CONFIG, HISTORY, SCHEMA, call, keep, keep_many, recommendation, response

# Calls

FULL = Reply(
    Outcome.TRUNCATED,
    "They eat rice.",
    reason="length",
    reasoning="I could say",
    finish="length",
    usage=Usage(12, 3, None),
    sent={"model": "m", "temperature": 0.7, "stop": ["###"], "extra": {"top_k": 3}},
    latency=0.123456789,
    attempts=3,
    waited=1.5,
    raw="<think>I could say</think>They eat rice.",
)
CHANGED = replace(
    FULL, sent={"messages": [{"role": "user", "content": "x " * 500}, {"role": "user", "n": 1}]}
)


@pytest.mark.parametrize("closed", [False, True], ids=["same process", "opened again"])
@pytest.mark.parametrize(
    "reply", [FULL, CHANGED, Reply(Outcome.OK)], ids=["full", "messages changed", "defaults"]
)
async def test_every_field_of_a_reply_comes_back(
    tmp_path: Path, reply: Reply, closed: bool
) -> None:
    request, _ = call()
    run = RunDir.create(tmp_path / "run", CONFIG)
    key = await keep(run, request, reply)
    if closed:
        run.close()
        run = RunDir.open(tmp_path / "run", write=False)
    log: CallLog = run.calls
    assert log.find(key) == replace(reply, key=key, stored=True)
    assert log.find(bytes(16)) is None
    run.close()


async def test_a_call_is_read_with_all_that_was_sent(tmp_path: Path) -> None:
    request = Request(
        messages([("user", "Why?")]),
        HISTORY,
        Sampling(0.7, 0.9, 100, ("###",)),
        SCHEMA,
        seed=5,
        repeat=1,
        attempt=2,
        stage="responses",
        record="t/hist/maori-01/health-001/r1",
    )
    with RunDir.create(tmp_path / "run", CONFIG) as run:
        key = await keep(run, request, Reply(Outcome.OK, "So."))
        found = run.calls.read(key)
    assert found is not None
    assert (found.key, found.model, found.stage) == (key, "m", "responses")
    assert found.record == request.record
    assert found.reply.text == "So."
    assert found.request == {
        "messages": [[m.role, m.text] for m in request.all_messages],
        "sampling": {"temperature": 0.7, "top_p": 0.9, "max_tokens": 100, "stop": ["###"]},
        "schema": {"name": "verdicts", "body": SCHEMA.body},
        "seed": 5,
        "repeat": 1,
        "attempt": 2,
    }


async def test_a_call_is_found_before_it_is_on_the_disk(tmp_path: Path) -> None:
    with RunDir.create(tmp_path / "run", CONFIG) as run:
        request, reply = call()
        key = call_key("m", request)
        adding = asyncio.create_task(keep(run, request, reply))
        await asyncio.sleep(0)
        assert run.calls.find(key) == replace(reply, key=key, stored=True)
        assert run.calls.keys() == {key}
        assert await adding == key
        assert run.calls.find(key) == replace(reply, key=key, stored=True)


async def test_a_cancelled_wait_loses_no_answer(tmp_path: Path) -> None:
    request, reply = call()
    with RunDir.create(tmp_path / "run", CONFIG) as run:
        adding = asyncio.create_task(keep(run, request, reply))
        await asyncio.sleep(0)
        adding.cancel()
        await asyncio.gather(adding, return_exceptions=True)
    with RunDir.open(tmp_path / "run", write=False) as run:
        assert run.calls.find(call_key("m", request)) is not None


OK, ERROR, REFUSED = Outcome.OK, Outcome.ERROR, Outcome.REFUSED


@pytest.mark.parametrize(
    ("asked", "found"),
    [
        ([(ERROR, "e")], None),
        ([(ERROR, "e"), (OK, "a")], "a"),
        ([(OK, "a"), (OK, "b")], "b"),
        ([(OK, "a"), (ERROR, "e")], "a"),
        ([(REFUSED, "r")], "r"),
        ([(ERROR, "e"), (ERROR, "f")], None),
    ],
    ids=["failed", "mended", "newer wins", "error hides none", "refusal stays", "failed twice"],
)
@pytest.mark.parametrize("together", [False, True], ids=["one by one", "one group"])
async def test_failed_calls_are_asked_again_and_the_log_keeps_both(
    tmp_path: Path, asked: list[tuple[Outcome, str]], found: str | None, together: bool
) -> None:
    request, _ = call()
    key = call_key("m", request)
    with RunDir.create(tmp_path / "run", CONFIG) as run:
        adds = [keep(run, request, Reply(outcome, text)) for outcome, text in asked]
        for waited in [adds] if together else [[add] for add in adds]:
            await asyncio.gather(*waited)
    with RunDir.open(tmp_path / "run") as run:
        reply = run.calls.find(key)
        assert (reply.text if reply else None) == found
        assert run.calls.keys() == ({key} if found else set())
        assert [c.reply.text for c in run.calls.iterate()] == [text for _, text in asked]
        assert sum(c.calls for c in run.calls.counts()) == 1
        assert sum(c.logged for c in run.calls.counts()) == len(asked)
        assert run.verify().ok


async def test_counts_by_stage_model_and_outcome(tmp_path: Path) -> None:
    with RunDir.create(tmp_path / "run", CONFIG) as run:
        await keep_many(run, range(3))
        await keep(run, *call(9, Outcome.REFUSED), model="other")
        request, reply = call(10)
        await keep(run, request, replace(reply, usage=Usage()), model="other")
        found = run.calls.counts()
    assert [(c.stage, c.model, c.outcome, c.calls, c.prompt, c.uncounted) for c in found] == [
        ("responses", "m", Outcome.OK, 3, 300, 0),
        ("responses", "other", Outcome.OK, 1, 0, 1),
        ("responses", "other", Outcome.REFUSED, 1, 100, 0),
    ]


async def test_small_groups_are_joined_and_a_history_is_stored_once(tmp_path: Path) -> None:
    path = tmp_path / "run"
    for start in (0, 150, 300):
        with RunDir.begin(path, CONFIG) as run:
            for number in range(start, start + 150, 30):
                await keep_many(run, range(number, number + 30))
    with RunDir.open(path, write=False) as run:
        checked = run.verify()
        assert (checked.calls, checked.packs, checked.ok) == (450, 2, True)
        for number in random.Random(1).sample(range(450), 450):
            found = run.calls.find(call_key("m", call(number)[0]))
            assert found is not None
            assert found.text == f"Answer {number}."
    connection = sqlite3.connect(path / "run.sqlite")
    assert connection.execute("SELECT count(*) FROM shared").fetchone() == (1,)
    connection.close()


async def test_only_keys_of_16_bytes(tmp_path: Path) -> None:
    run = RunDir.create(tmp_path / "run", CONFIG)
    with run, pytest.raises(StoreError, match="16 bytes"):
        await run.calls.add(b"short", *call(), "m")


# Texts

TEXTS = st.text(st.characters(exclude_categories=()))


@given(sent=TEXTS, got=TEXTS, before=TEXTS, name=TEXTS)
def test_any_text_comes_back_letter_for_letter(sent: str, got: str, before: str, name: str) -> None:
    prefix = Prefix((Message("user", before),))
    request = Request((Message("user", sent),), prefix, record=name)
    reply = Reply(Outcome.OK, got, reason=name, raw=sent, sent={"stop": [before], name: got})
    row = RowWriter().row(bytes(16), request, reply, name)
    assert b"\n" not in row.line
    found = read_call(bytes(16), row.line, dict(row.shared).__getitem__)
    assert found.request["messages"] == [["user", before], ["user", sent]]
    assert (found.model, found.record) == (name, name)
    assert found.reply == replace(reply, key=bytes(16), stored=True)


@settings(max_examples=10, deadline=None)
@given(st.lists(TEXTS, min_size=1, max_size=10))
def test_any_text_survives_the_disk(texts: list[str]) -> None:
    async def write(path: Path) -> None:
        with RunDir.create(path, CONFIG) as run:
            adds = [
                keep(run, call(number)[0], Reply(Outcome.OK, text), model=text)
                for number, text in enumerate(texts)
            ]
            puts = [
                run.records.put("responses", response(n, t).model_copy(update={"reason": t}))
                for n, t in enumerate(texts)
            ]
            await asyncio.gather(*adds, *puts)
            run.records.export()

    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "run"
        asyncio.run(write(path))
        with RunDir.open(path, write=False) as run:
            assert [c.reply.text for c in run.calls.iterate()] == texts
            assert [r.text for r in run.records.iterate("responses", Response)] == texts
        exported = (path / "records" / "responses.jsonl").read_bytes().splitlines()
        assert [json.loads(line)["text"] for line in exported] == texts


def test_a_number_over_64_bits_and_a_foreign_object_are_kept(tmp_path: Path) -> None:
    reply = Reply(Outcome.OK, sent={"big": 2**70, "path": tmp_path, "key": b"\x01", "set": {1}})
    row = RowWriter().row(bytes(16), Request(()), reply, "m")
    found = read_call(bytes(16), row.line, dict(row.shared).__getitem__)
    assert found.reply.sent == {"big": 2**70, "path": str(tmp_path), "key": "01", "set": [1]}


# Records


async def test_records_come_back_sorted_by_id(tmp_path: Path) -> None:
    numbers = random.Random(1).sample(range(700), 700)
    with RunDir.create(tmp_path / "run", CONFIG) as run:
        await asyncio.gather(*(run.records.put("responses", response(n)) for n in numbers))
        found = list(run.records.iterate("responses", Response))
        assert found == sorted(map(response, range(700)), key=lambda r: r.id)
        assert run.records.ids("responses") == [r.id for r in found]
        assert run.records.get("responses", found[3].id, Response) == found[3]
        assert run.records.get("responses", "nobody", Response) is None
        assert run.records.get("verdicts", found[3].id, Response) is None
        assert run.records.stages() == ["responses"]


async def test_records_are_counted_by_outcome_and_reason(tmp_path: Path) -> None:
    with RunDir.create(tmp_path / "run", CONFIG) as run:
        for number, outcome in enumerate([Outcome.OK, Outcome.OK, Outcome.TRUNCATED]):
            await run.records.put("responses", response(number, outcome=outcome))
        assert run.records.counts("responses") == {Outcome.OK: 2, Outcome.TRUNCATED: 1}
        assert run.records.reasons("responses") == {
            (Outcome.OK, ""): 2,
            (Outcome.TRUNCATED, "length"): 1,
        }
        assert run.records.counts("verdicts") == {}


async def test_rows_sharing_an_id_never_pile_up_the_later_one_replaces(tmp_path: Path) -> None:
    with RunDir.create(tmp_path / "run", CONFIG) as run:
        for text in ("first", "first", "second"):
            await run.records.put("responses", response(1, text))
        assert [r.text for r in run.records.iterate("responses", Response)] == ["second"]
        await asyncio.gather(*(run.records.put("responses", response(1, t)) for t in "abc"))
        assert [r.text for r in run.records.iterate("responses", Response)] == ["c"]


async def test_the_same_calls_and_records_in_any_order_give_the_same_files(tmp_path: Path) -> None:
    files = []
    for shuffle in (1, 2):
        order = random.Random(shuffle).sample(range(300), 300)
        with RunDir.create(tmp_path / str(shuffle), CONFIG) as run:
            for start in range(0, 300, 100):
                part = order[start : start + 100]
                await asyncio.gather(
                    *(keep(run, *call(n)) for n in part),
                    *(run.records.put("responses", response(n, f"text {n}")) for n in part),
                    *(run.records.put("recommendations", recommendation(n)) for n in part),
                )
            paths = run.records.export()
        files.append({path.name: path.read_bytes() for path in paths})
    assert files[0] == files[1]
    assert sorted(files[0]) == ["recommendations.jsonl", "responses.jsonl"]
    assert files[0]["responses.jsonl"].count(b"\n") == 300


@pytest.mark.parametrize(
    ("stage", "name"), [("../x", "a"), ("", "a"), ("A", "a"), ("responses", "")]
)
async def test_a_record_needs_a_stage_and_an_id(tmp_path: Path, stage: str, name: str) -> None:
    record = response(1).model_copy(update={"id": name})
    run = RunDir.create(tmp_path / "run", CONFIG)
    with run, pytest.raises(StoreError, match="a stage and an id"):
        await run.records.put(stage, record)


async def test_a_record_of_another_type_is_one_clear_message(tmp_path: Path) -> None:
    with RunDir.create(tmp_path / "run", CONFIG) as run:
        await run.records.put("responses", response(1))
        with pytest.raises(StoreError, match="is no Recommendation"):
            list(run.records.iterate("responses", Recommendation))


def long_text(number: int) -> str:
    """20 kB that take about half of it when they are packed."""
    return random.Random(number).randbytes(10_000).hex()


async def test_memory_does_not_grow_with_the_number_of_samples(tmp_path: Path) -> None:
    count = 1500
    with RunDir.create(tmp_path / "run", CONFIG) as run:
        tracemalloc.start()
        for start in range(0, count, 50):
            part = range(start, start + 50)
            made = (response(n, long_text(n)) for n in part)
            await asyncio.gather(*(run.records.put("responses", one) for one in made))
        seen = sum(1 for _ in run.records.iterate("responses", Response))
        run.records.export()
        _, peak = tracemalloc.get_traced_memory()
        tracemalloc.stop()
    assert seen == count
    assert peak < count * len(long_text(0)) / 4


async def test_memory_does_not_grow_with_the_number_of_calls(tmp_path: Path) -> None:
    async def peak(count: int) -> int:
        with RunDir.create(tmp_path / str(count), CONFIG) as run:
            tracemalloc.start()
            for start in range(0, count, 50):
                made = (call(n, text=long_text(n)) for n in range(start, start + 50))
                await asyncio.gather(*(keep(run, *one) for one in made))
            seen = sum(1 for _ in run.calls.iterate())
            _, found = tracemalloc.get_traced_memory()
            tracemalloc.stop()
        assert seen == count
        return found

    assert await peak(1000) - await peak(200) < 800 * len(long_text(0)) / 4
