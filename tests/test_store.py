"""The run directory: what is kept comes back, whatever the order and whatever the text."""

from __future__ import annotations

import asyncio
import json
import random
import sqlite3
import subprocess
import sys
import tempfile
import threading
import tracemalloc
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from habitus.errors import ConfigChangedError, RunLockedError, StoreError, UsageError
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
    Schema,
    Usage,
    call_key,
    messages,
)
from habitus.store import RunDir, canonical, changes, digest, is_run
from habitus.store.rows import RowWriter, read_call
from habitus.store.writer import GROUP, Writer

CONFIG: dict[str, Any] = {"seed": 7, "models": {"qwen2.5": {"base_url": "a", "temperature": 0.7}}}
HISTORY = Prefix(messages([("user", "Good morning. " * 300), ("assistant", "Hello. " * 300)]))
SCHEMA = Schema("verdicts", {"type": "object", "properties": {"b": {}, "a": {}}})


def call(number: int = 0, outcome: Outcome = Outcome.OK, text: str = "") -> tuple[Request, Reply]:
    asked = messages([("user", f"Question {number}?")])
    request = Request(asked, HISTORY, seed=number, stage="responses")
    return request, Reply(outcome, text or f"Answer {number}.", usage=Usage(100, 10, 90))


async def keep(run: RunDir, request: Request, reply: Reply, model: str = "m") -> bytes:
    key = call_key(model, request)
    await run.calls.add(key, request, reply, model)
    return key


async def keep_many(run: RunDir, numbers: Sequence[int]) -> list[bytes]:
    return list(await asyncio.gather(*(keep(run, *call(n)) for n in numbers)))


def response(number: int, text: str = "Rest.", outcome: Outcome = Outcome.OK) -> Response:
    return Response(
        id=f"t/hist/maori-{number:02d}/health-001/r0",
        outcome=outcome,
        reason="" if outcome is Outcome.OK else "length",
        target="t",
        setting="hist",
        persona=f"maori-{number:02d}",
        query="health-001",
        repeat=0,
        text=text,
    )


def recommendation(number: int) -> Recommendation:
    name = f"norm-{number}"
    return Recommendation(id=f"{name}/follow/health-001", norm=name, state=1, query="health-001")


def state(path: Path) -> dict[str, tuple[int, int]]:
    """Every file with its size and time of change: what writing would alter."""
    found = (p for p in path.rglob("*") if p.is_file())
    return {str(p.relative_to(path)): (p.stat().st_size, p.stat().st_mtime_ns) for p in found}


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


async def test_memory_does_not_grow_with_the_number_of_samples(tmp_path: Path) -> None:
    count, text = 1500, "word " * 4000
    with RunDir.create(tmp_path / "run", CONFIG) as run:
        tracemalloc.start()
        for start in range(0, count, 50):
            part = range(start, start + 50)
            await asyncio.gather(*(run.records.put("responses", response(n, text)) for n in part))
        seen = sum(1 for _ in run.records.iterate("responses", Response))
        run.records.export()
        _, peak = tracemalloc.get_traced_memory()
        tracemalloc.stop()
    assert seen == count
    assert peak < count * len(text) / 4


# The directory


def test_a_new_run_has_a_manifest_and_the_configuration_in_one_spelling(tmp_path: Path) -> None:
    path = tmp_path / "deep" / "run"
    with RunDir.create(path, {"b": 1.0, "a": [True, None]}, {"seeds": {"seed": 7}}) as run:
        run.write("results.json", b"{}")
        assert run.results.read_bytes() == b"{}"
        assert run.log.parent == path
    assert (path / "experiment.json").read_text() == (
        '{\n  "a": [\n    true,\n    null\n  ],\n  "b": 1\n}\n'
    )
    with RunDir.open(path, write=False) as run:
        assert run.config == {"a": [True, None], "b": 1}
        assert run.manifest["seeds"] == {"seed": 7}
        assert {"habitus", "store", "python", "created", "config"} <= run.manifest.keys()
        assert run.manifest["config"] == digest({"a": (True, None), "b": 1})
    assert is_run(path)
    assert not is_run(tmp_path)


async def test_a_run_moved_elsewhere_goes_on(tmp_path: Path) -> None:
    with RunDir.create(tmp_path / "old", CONFIG) as run:
        (key,) = await keep_many(run, [1])
    (tmp_path / "far").mkdir()
    (tmp_path / "old").rename(tmp_path / "far" / "new")
    with RunDir.begin(tmp_path / "far" / "new", CONFIG) as run:
        assert run.calls.find(key) is not None
        await keep_many(run, [2])


async def test_readers_write_nothing_and_see_what_is_committed(tmp_path: Path) -> None:
    path = tmp_path / "run"
    with RunDir.create(path, CONFIG) as run:
        (key,) = await keep_many(run, [1])
        before = state(path)
        with RunDir.open(path, write=False) as reader:
            assert reader.calls.find(key) is not None
            assert state(path) == before
            (other,) = await keep_many(run, [2])
            assert reader.calls.find(other) is not None
            assert reader.calls.keys() == {key, other}
            with pytest.raises(StoreError, match="reading only"):
                await keep(reader, *call(3))
            with pytest.raises(StoreError, match="reading only"):
                await reader.records.put("responses", response(1))
            with pytest.raises(StoreError, match="reading only"):
                reader.records.export()
            with pytest.raises(StoreError, match="reading only"):
                reader.write("results.json", b"")
        assert state(path).keys() == before.keys()
    before = state(path)
    with RunDir.open(path, write=False) as reader:
        assert len(reader.calls.keys()) == 2
        assert reader.verify().ok
    assert state(path) == before


async def test_a_reader_who_holds_on_does_not_stop_the_next_one(tmp_path: Path) -> None:
    path = tmp_path / "run"
    run = RunDir.create(path, CONFIG)
    (key,) = await keep_many(run, [1])
    with RunDir.open(path, write=False) as reader:
        assert reader.calls.find(key) is not None
        run.close()
    with RunDir.open(path, write=False) as reader:
        assert reader.calls.find(key) is not None
    with RunDir.open(path) as run:
        assert run.calls.find(key) is not None


def test_a_second_writer_is_told_the_process(tmp_path: Path) -> None:
    run = RunDir.create(tmp_path / "run", CONFIG)
    with run, pytest.raises(RunLockedError, match=r"process \d+ is working"):
        RunDir.open(tmp_path / "run")
    RunDir.open(tmp_path / "run").close()


async def test_nothing_is_taken_after_close(tmp_path: Path) -> None:
    run = RunDir.create(tmp_path / "run", CONFIG)
    run.close()
    run.close()
    with pytest.raises(StoreError, match="closed"):
        await keep_many(run, [1])


NEW: list[tuple[str, dict[str, Any], list[str]]] = [
    ("value", {"seed": 8}, ["seed: 7 -> 8"]),
    (
        "nested",
        {"models": {"qwen2.5": {"base_url": "a", "temperature": 0}}},
        ['models."qwen2.5".temperature: 0.7 -> 0'],
    ),
    (
        "gone",
        {"models": {"qwen2.5": {"base_url": "a"}}},
        ['models."qwen2.5".temperature: 0.7 -> (not set)'],
    ),
    ("added", {"cultures": ["maori"]}, ['cultures.0: (not set) -> "maori"']),
    ("type", {"seed": "7"}, ['seed: 7 -> "7"']),
    ("two", {"seed": True, "limit": []}, ["seed: 7 -> true", "limit: (not set) -> []"]),
]


@pytest.mark.parametrize(("new", "told"), [row[1:] for row in NEW], ids=[row[0] for row in NEW])
def test_a_changed_configuration_is_refused_field_by_field(
    tmp_path: Path, new: dict[str, Any], told: list[str]
) -> None:
    path = tmp_path / "run"
    RunDir.create(path, CONFIG).close()
    before = {**state(path), "lock": None}
    with pytest.raises(ConfigChangedError) as caught:
        RunDir.begin(path, {**CONFIG, **new}, may_change={"models.*.base_url"})
    assert all(f"  {line}\n" in str(caught.value) for line in told)
    assert str(caught.value).count(" -> ") == len(told)
    assert {**state(path), "lock": None} == before
    RunDir.begin(path, CONFIG).close()


@pytest.mark.parametrize(
    "pattern", ["models.*.base_url", "models.*", "models", "*", "models.qwen*.*"]
)
def test_some_fields_may_change_and_are_kept(tmp_path: Path, pattern: str) -> None:
    path = tmp_path / "run"
    config = {"seed": 7, "models": {"qwen": {"base_url": "a", "temperature": 1}}}
    new = {"seed": 7, "models": {"qwen": {"base_url": "b", "temperature": 1.0}}}
    RunDir.create(path, config).close()
    with RunDir.begin(path, new, may_change={pattern}) as run:
        assert run.config == new
        assert run.manifest["config"] == digest(new)
    with pytest.raises(ConfigChangedError, match="base_url"):
        RunDir.open(path, write=False, config=config, may_change={"models.x", "seed"})


async def test_a_fork_starts_with_the_calls_of_the_old_run_and_no_records(tmp_path: Path) -> None:
    with RunDir.create(tmp_path / "old", CONFIG) as run:
        keys = await keep_many(run, range(300))
        await run.records.put("responses", response(1))
        new = {**CONFIG, "seed": 8}
        with RunDir.fork(tmp_path / "old", tmp_path / "new", new, {"seeds": 1}) as fork:
            assert fork.calls.keys() == set(keys)
            assert fork.records.stages() == []
            assert fork.config == new
            assert fork.manifest["forked_from"] == {"name": "old", "config": digest(CONFIG)}
            await keep_many(fork, [1000])
            assert fork.verify().ok
        assert len(run.calls.keys()) == 300
        with pytest.raises(StoreError, match="a run already"):
            RunDir.fork(tmp_path / "old", tmp_path / "new", new)


def _write(name: str, data: bytes) -> Callable[[Path], object]:
    return lambda path: (path / name).write_bytes(data)


def _sql(statement: str) -> Callable[[Path], object]:
    def run(path: Path) -> None:
        connection = sqlite3.connect(path / "run.sqlite", isolation_level=None)
        connection.execute(statement)
        connection.close()

    return run


def _scribble(path: Path) -> None:
    body = bytearray((path / "run.sqlite").read_bytes())
    body[100:4096] = b"\xff" * 3996
    (path / "run.sqlite").write_bytes(body)


DAMAGE: list[tuple[str, Callable[[Path], object], str]] = [
    ("no manifest", lambda p: (p / "manifest.json").unlink(), "cut short"),
    (
        "nothing left",
        lambda p: list(map(Path.unlink, filter(Path.is_file, p.iterdir()))),
        "not a run directory",
    ),
    ("manifest torn", _write("manifest.json", b'{"store": 1, "ha'), "manifest.json is damaged"),
    ("manifest a list", _write("manifest.json", b"[]"), "manifest.json is damaged"),
    ("manifest binary", _write("manifest.json", b"\xff\xfe"), "manifest.json is damaged"),
    ("newer manifest", _write("manifest.json", b'{"store": 99}'), "format 99.*newer one"),
    ("no experiment", lambda p: (p / "experiment.json").unlink(), "experiment.json cannot be read"),
    ("experiment torn", _write("experiment.json", b"{"), "experiment.json is damaged"),
    ("no database", lambda p: (p / "run.sqlite").unlink(), "run.sqlite is missing"),
    ("empty database", _write("run.sqlite", b""), "not the database of a run"),
    ("text for database", _write("run.sqlite", b"hello" * 1000), "damaged; restore"),
    ("first page lost", _scribble, "damaged; restore"),
    ("foreign database", _sql("PRAGMA application_id=1"), "not the database of a run"),
    ("newer database", _sql("PRAGMA user_version=99"), "format 99.*newer one"),
]


@pytest.mark.parametrize("write", [True, False], ids=["write", "read"])
@pytest.mark.parametrize(
    ("damage", "message"), [row[1:] for row in DAMAGE], ids=[row[0] for row in DAMAGE]
)
async def test_a_damaged_run_is_one_clear_message(
    tmp_path: Path, damage: Callable[[Path], object], message: str, write: bool
) -> None:
    path = tmp_path / "run"
    with RunDir.create(path, CONFIG) as run:
        await keep_many(run, range(20))
    damage(path)
    with pytest.raises(StoreError, match=message) as caught:
        RunDir.open(path, write=write)
    assert str(path) in str(caught.value)


def test_no_run_there(tmp_path: Path) -> None:
    with pytest.raises(StoreError, match="there is no run at"):
        RunDir.open(tmp_path / "nowhere")


async def test_a_run_is_never_made_over_something_else(tmp_path: Path) -> None:
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "thesis.tex").write_text("x")
    with pytest.raises(StoreError, match=r"other things \(thesis.tex\)"):
        RunDir.create(tmp_path / "full", CONFIG)
    with pytest.raises(StoreError, match="is a file"):
        RunDir.create(tmp_path / "full" / "thesis.tex", CONFIG)
    with pytest.raises(StoreError, match="cannot be made"):
        RunDir.create(tmp_path / "full" / "thesis.tex" / "run", CONFIG)
    with RunDir.create(tmp_path / "run", CONFIG) as run:
        await keep_many(run, [1])
    with pytest.raises(StoreError, match="a run already"):
        RunDir.create(tmp_path / "run", CONFIG)
    (tmp_path / "run" / "manifest.json").unlink()
    with pytest.raises(StoreError, match=r"manifest.json is missing"):
        RunDir.create(tmp_path / "run", CONFIG)


def test_a_place_that_cannot_be_written_to(tmp_path: Path) -> None:
    RunDir.create(tmp_path / "run", CONFIG).close()
    (tmp_path / "run" / "lock").unlink()
    (tmp_path / "run" / "lock").mkdir()
    with pytest.raises(StoreError, match="cannot be written to"):
        RunDir.open(tmp_path / "run")
    RunDir.open(tmp_path / "run", write=False).close()


# Verification

LOSSES: list[tuple[str, str, str]] = [
    ("pack", "UPDATE packs SET body = zeroblob(length(body)) WHERE first = 1", "pack 1 is damaged"),
    ("keys", "UPDATE packs SET keys = zeroblob(16)", "keys"),
    ("gap", "DELETE FROM packs WHERE first = 1", "are missing"),
    ("index row", "DELETE FROM calls WHERE number = 3", "call 3 is not in the index"),
    ("index to nowhere", "UPDATE calls SET number = 9999 WHERE number = 3", "1 index rows point"),
    ("shared", "DELETE FROM shared", "is missing"),
    ("shared body", "UPDATE shared SET body = zeroblob(9)", "is damaged"),
    ("record", "UPDATE records SET body = zeroblob(9)", "is damaged"),
]


@pytest.mark.parametrize(
    ("statement", "problem"), [row[1:] for row in LOSSES], ids=[row[0] for row in LOSSES]
)
async def test_verify_names_what_is_lost(tmp_path: Path, statement: str, problem: str) -> None:
    path = tmp_path / "run"
    with RunDir.create(path, CONFIG) as run:
        await keep_many(run, range(300))
        await keep_many(run, range(300, 310))
        await run.records.put("responses", response(1))
        assert run.verify().ok
    _sql(statement)(path)
    with RunDir.open(path, write=False) as run:
        checked = run.verify()
    assert not checked.ok
    assert any(problem in text for text in checked.problems)


@pytest.mark.parametrize("statement", [LOSSES[0][1], LOSSES[5][1]], ids=["pack", "shared"])
async def test_a_damaged_call_is_one_clear_message(tmp_path: Path, statement: str) -> None:
    path = tmp_path / "run"
    with RunDir.create(path, CONFIG) as run:
        (key, *_) = await keep_many(run, range(300))
    _sql(statement)(path)
    with RunDir.open(path, write=False) as run, pytest.raises(StoreError, match="damaged"):
        run.calls.read(key)


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
    waiting = [writer.enqueue(Item()) for _ in range(600)]
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


def test_opening_for_status_imports_nothing_heavy() -> None:
    code = (
        "import sys, habitus.store;"
        "print(sorted({'numpy', 'networkx', 'aiohttp', 'rich', 'ruamel'} & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
