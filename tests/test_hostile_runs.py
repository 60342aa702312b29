"""Runs that a stranger gives, and a process whose streams or disk are not what they should be."""

from __future__ import annotations

import os
import shutil
import sqlite3
import subprocess
import sys
from contextlib import suppress
from pathlib import Path

import orjson
import pytest
import zstandard

from damage import command
from habitus.errors import ContentError, StoreError
from habitus.experiments.settings import load_setting
from habitus.store import RunDir, digest
from labelling_fixture import answers, job_of, labelled, written
from storing import call, keep
from study_fixture import FAST, harbour, helpers, opening, set_options, study_of
from test_store_faults import ENGINE, limited, small_disk


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a finished run and a finished run of labels."""
    from habitus.experiments import RunRequest, run_experiment

    folder = tmp_path_factory.mktemp("finished")
    run_experiment(study_of(folder), RunRequest(out=folder / "run"))
    labelled(folder / "labels", job_of(written(folder, answers(3))), opener=opening(helpers()))
    return folder


#: SQLite takes anything in any column, and so may whoever passes a run on.
COLUMNS = (
    "UPDATE records SET outcome = 'neither'",
    "UPDATE records SET outcome = x'ff'",
    "UPDATE records SET reason = x'ff'",
    "UPDATE records SET body = 7",
    "UPDATE records SET body = 'text'",
    "UPDATE records SET id = CAST(id AS BLOB)",
    "UPDATE kinds SET model = x'ff' WHERE id = 1",
    "UPDATE kinds SET outcome = 'neither' WHERE id = 1",
    "UPDATE kinds SET prompt = 'x' WHERE id = 1",
    "UPDATE kinds SET logged = x'00' WHERE id = 1",
    "UPDATE packs SET body = 7",
    "UPDATE packs SET keys = 'x'",
    "UPDATE packs SET keys = x'00'",
    "UPDATE packs SET rows = 'x'",
    "UPDATE calls SET number = 'x'",
    "UPDATE calls SET kind = 'x'",
    "UPDATE shared SET body = 7",
)


def changed(run: Path, statement: str, *values: object) -> None:
    connection = sqlite3.connect(run / "run.sqlite")
    connection.execute(statement, values)
    connection.commit()
    connection.close()


class TestColumns:
    @pytest.mark.parametrize("statement", COLUMNS)
    @pytest.mark.parametrize("run", ["run", "labels"])
    def test_of_another_type_are_damage(
        self, tmp_path: Path, finished: Path, run: str, statement: str
    ) -> None:
        path = tmp_path / run
        shutil.copytree(finished / run, path)
        changed(path, statement)
        reading = {"run": ["results", str(path)], "labels": ["report", str(path)]}[run]
        told = [command(*words) for words in (["status", str(path)], reading)]
        verified = command("status", str(path), "--verify")
        assert verified[0] in {1, 2}
        for code, _, err in told:
            assert code == 0 or "is damaged" in err

    @pytest.mark.parametrize(
        ("field", "value"),
        [("stage", "7"), ("reply", "[]"), ("request", "null"), ("model", "null")],
    )
    def test_a_call_of_another_shape_is_damage(
        self, tmp_path: Path, finished: Path, field: str, value: str
    ) -> None:
        path = tmp_path / "run"
        shutil.copytree(finished / "run", path)
        connection = sqlite3.connect(path / "run.sqlite")
        first, body = connection.execute("SELECT first, body FROM packs LIMIT 1").fetchone()
        connection.close()
        lines = zstandard.ZstdDecompressor().decompress(body).split(b"\n")
        call = orjson.loads(lines[0])
        lines[0] = orjson.dumps({**call, field: orjson.loads(value)})
        packed = zstandard.ZstdCompressor().compress(b"\n".join(lines))
        changed(path, "UPDATE packs SET body = ? WHERE first = ?", packed, first)
        assert command("status", str(path), "--verify")[0] == 1
        if field in {"reply", "request"}:
            with RunDir.open(path, write=False) as run, pytest.raises(StoreError, match="damaged"):
                list(run.calls.iterate())

    @pytest.mark.parametrize("line", [b"[]", b"{}", b'"x"', b"null", b'{"id": 7, "turns": [3]}'])
    @pytest.mark.parametrize("run", ["run", "labels"])
    def test_records_of_another_shape_are_damage(
        self, tmp_path: Path, finished: Path, run: str, line: bytes
    ) -> None:
        path = tmp_path / run
        shutil.copytree(finished / run, path)
        changed(path, "UPDATE records SET body = ?", zstandard.ZstdCompressor().compress(line))
        for words in (["status"], ["report"], ["view", "--plain"], ["status", "--verify"]):
            assert command(words[0], str(path), *words[1:])[0] in {0, 1, 2}

    def test_a_label_of_a_judge_that_the_run_does_not_have_is_damage(
        self, tmp_path: Path, finished: Path
    ) -> None:
        path = tmp_path / "labels"
        shutil.copytree(finished / "labels", path)
        with RunDir.open(path, write=False) as run:
            line = next(run.records.lines("labels"))
        body = zstandard.ZstdCompressor().compress(
            orjson.dumps({**orjson.loads(line), "judge": "x"})
        )
        changed(path, "UPDATE records SET body = ? WHERE id = ?", body, orjson.loads(line)["id"])
        code, _, err = command("report", str(path))
        assert (code, "is of a judge that the run does not have" in err) == (2, True)

    @pytest.mark.parametrize("price", ["x", 7, {"input": -1}, {"input": "x", "output": []}])
    def test_a_price_of_another_shape_is_damage(
        self, tmp_path: Path, finished: Path, price: object
    ) -> None:
        """With a digest to match: whoever passes a run on can write that as well."""
        path = tmp_path / "run"
        shutil.copytree(finished / "run", path)
        config = orjson.loads((path / "experiment.json").read_bytes())
        for entry in config["models"].values():
            entry["price"] = price
        manifest = orjson.loads((path / "manifest.json").read_bytes())
        (path / "experiment.json").write_bytes(orjson.dumps(config))
        (path / "manifest.json").write_bytes(orjson.dumps({**manifest, "config": digest(config)}))
        code, _, err = command("status", str(path))
        assert code == 2
        assert "is damaged" in err, err

    @pytest.mark.parametrize("table", ["packs", "records", "shared"])
    def test_a_frame_that_says_it_is_endless_is_damage(
        self, tmp_path: Path, finished: Path, table: str
    ) -> None:
        """Its size is believed by whoever unpacks it, and memory set aside for it."""
        path = tmp_path / "run"
        shutil.copytree(finished / "run", path)
        head = b"\x28\xb5\x2f\xfd\xe0" + (2**50).to_bytes(8, "little")
        changed(path, f"UPDATE {table} SET body = ?", head + b"\x01\x00\x00")
        code, out, err = command("status", str(path), "--verify")
        assert code in {1, 2}
        assert "it says that it holds" in out + err


def closing(streams: str) -> str:
    return "".join(f"os.close({stream})\n" for stream in streams)


class TestStreams:
    @pytest.mark.parametrize("streams", ["0", "1", "2", "012"])
    def test_that_are_closed_stop_no_run(
        self, tmp_path: Path, finished: Path, streams: str
    ) -> None:
        """Files would get their numbers, and the event loop ends a process in which they do."""
        harbour(tmp_path)
        words = ["run", "first", *set_options(FAST), "--out", "run"]
        code, _ = limited(words, tmp_path, closing(streams))
        assert code == 0
        with RunDir.open(tmp_path / "run", write=False) as run:
            assert run.verify().problems == ()
            assert run.records.counts("responses")

    def test_a_message_that_cannot_be_written_changes_no_exit_code(self, tmp_path: Path) -> None:
        full = os.open("/dev/full", os.O_WRONLY)
        done = subprocess.run(
            [sys.executable, "-m", "habitus", "status", "nowhere"],
            cwd=tmp_path,
            env={**os.environ, "PYTHONPATH": str(ENGINE)},
            stderr=full,
            check=False,
        )
        os.close(full)
        assert done.returncode == 2


def test_a_disk_that_is_full_when_a_run_is_opened_is_told(tmp_path: Path, finished: Path) -> None:
    harbour(tmp_path / "study")
    with small_disk(tmp_path / "disk", 400) as disk:
        (disk / "run").mkdir()
        with suppress(OSError), (disk / "fill").open("wb", buffering=0) as fill:
            while True:
                fill.write(bytes(4096))
        words = ["run", "first", *set_options(FAST), "--out", str(disk / "run")]
        code, err = limited(words, tmp_path / "study")
    assert (code, "cannot be written" in err) == (2, True)


def test_numbers_of_any_length_are_what_they_are(tmp_path: Path) -> None:
    """One that was rounded when it was read made a new run look damaged."""
    config = {"options": {"a": 10**30, "b": -(10**19), "c": 2**64}}
    RunDir.create(tmp_path / "run", config).close()
    with RunDir.open(tmp_path / "run", config=config) as run:
        assert run.config == config


@pytest.mark.parametrize("how", ["deleted", "moved", "replaced"])
async def test_a_run_that_is_taken_away_takes_no_more_answers(tmp_path: Path, how: str) -> None:
    """They would be written to a file that nobody finds again, and paid for all the same."""
    run = RunDir.create(tmp_path / "run", {"seed": 1})
    await keep(run, *call(1))
    if how == "deleted":
        shutil.rmtree(tmp_path / "run")
    else:
        (tmp_path / "run").rename(tmp_path / "elsewhere")
    if how == "replaced":
        RunDir.create(tmp_path / "run", {"seed": 2}).close()
    with pytest.raises(StoreError, match="is gone"):
        await keep(run, *call(2))
    with suppress(StoreError):
        run.close()
    if how != "deleted":
        with RunDir.open(tmp_path / "elsewhere") as moved:
            assert moved.verify().problems == ()
            assert moved.calls.counts()[0].calls == 1


@pytest.mark.parametrize("length", [200, 3000])
def test_a_prompt_with_a_name_that_no_file_can_have_is_told(tmp_path: Path, length: int) -> None:
    """Found by damaging settings at random."""
    folder = tmp_path / "experiments" / "settings"
    folder.mkdir(parents=True)
    text = f"id: x\ndescription: X.\nhistory: none\nquery_prompt: {'a' * length}\n"
    (folder / "x.yaml").write_text(text)
    with pytest.raises(ContentError, match="aaaa"):
        load_setting(folder / "x.yaml")


def test_states_of_norms_that_are_not_there_are_damage(tmp_path: Path, finished: Path) -> None:
    path = tmp_path / "run"
    shutil.copytree(finished / "run", path)
    kept = orjson.loads((path / "study.json").read_bytes())
    persona, norm = next(iter(kept["personas"])), next(iter(kept["norms"]))
    del kept["norms"][norm]
    (path / "study.json").write_bytes(orjson.dumps(kept))
    for words in (["results", str(path)], ["status", str(path)], ["report", str(path)]):
        code, _, said = command(*words)
        assert (code, "study.json is damaged" in said) == (2, True), (words, persona, said)
