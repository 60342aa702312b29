"""The run directory: made whole, never made over, and one clear message when it is damaged."""

from __future__ import annotations

import sqlite3
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from habitus.errors import ConfigChangedError, RunLockedError, StoreError
from habitus.store import RunDir, digest, is_run
from storing import CONFIG, call, keep, keep_many, response, state

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


def test_many_changes_are_not_all_told(tmp_path: Path) -> None:
    path = tmp_path / "run"
    RunDir.create(path, {"seed": 7}).close()
    with pytest.raises(ConfigChangedError) as caught:
        RunDir.begin(path, {"seed": 7, "more": {f"key{i:02}": i for i in range(15)}})
    assert "  more.key11: (not set) -> 11\n  and 3 more\nundo the change" in str(caught.value)


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


def test_some_fields_may_be_new_and_not_others(tmp_path: Path) -> None:
    path = tmp_path / "run"
    old = {"content": {"a.yaml": "1"}}
    RunDir.create(path, old).close()
    with RunDir.begin(path, {"content": {"a.yaml": "1", "b.yaml": "2"}}, may_change={"+content.*"}):
        pass
    for changed in (
        {"a.yaml": "2", "b.yaml": "2"},
        {"a.yaml": "1", "b.yaml": "3"},
        {"a.yaml": "1"},
    ):
        with pytest.raises(ConfigChangedError, match=r"content\."):
            RunDir.begin(path, {"content": changed}, may_change={"+content.*"})


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


def test_opening_for_status_imports_nothing_heavy() -> None:
    code = (
        "import sys, habitus.store;"
        "print(sorted({'numpy', 'networkx', 'aiohttp', 'rich', 'ruamel'} & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
