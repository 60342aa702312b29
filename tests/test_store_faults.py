"""What disks and people do to a run directory: full, read-only, moved, shared, a byte flipped."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from random import Random
from typing import Any

import pytest

from damage import command
from fault_server import FaultServer, Plan
from habitus.errors import StoreError
from habitus.store import RunDir
from habitus.store.digests import DIGESTS
from kill_driver import Command, Kill, after, durable, session
from labelling_fixture import answers, job_of, labelled, written
from study_fixture import FAST, harbour, helpers, opening, set_options, study_of
from test_kills import a_run, labels

ENGINE = Path(__file__).parents[1] / "engine"


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a finished run and a finished run of labels."""
    from habitus.experiments import RunRequest, run_experiment

    folder = tmp_path_factory.mktemp("finished")
    run_experiment(study_of(folder), RunRequest(out=folder / "run"))
    labelled(folder / "labels", job_of(written(folder, answers(3))), opener=opening(helpers()))
    return folder


def everything(run: Path) -> Any:
    """All that can be read of a run: calls, counts, records, configuration."""
    with RunDir.open(run, write=False) as opened:
        calls = list(opened.calls.iterate())
        found = [opened.calls.read(call.key) for call in calls]
        tables = {
            stage: (opened.records.reasons(stage), list(opened.records.lines(stage)))
            for stage in opened.records.stages()
        }
        return calls, found, opened.calls.counts(), opened.calls.keys(), tables, opened.config


def flipped(path: Path, at: int, bit: int) -> None:
    """A file with one bit the other way round."""
    with path.open("r+b") as file:
        file.seek(at)
        (byte,) = file.read(1)
        file.seek(at)
        file.write(bytes([byte ^ (1 << bit)]))


FILES = {
    "run": [
        "run.sqlite", "experiment.json", "manifest.json", "study.json", "made_up.json", "results.json",
        "done.json", "records/responses.jsonl", "records/histories.jsonl",
    ],
    "labels": ["run.sqlite", "labelling.json", "records/items.jsonl", "records/labels.jsonl"],
}  # fmt: skip


class TestVerify:
    @pytest.mark.parametrize("run", FILES)
    def test_a_whole_run_is_whole(self, finished: Path, run: str) -> None:
        code, out, _ = command("status", str(finished / run), "--verify")
        assert (code, "damaged" in out) == (0, False)

    @pytest.mark.parametrize(
        ("run", "file"), [(run, file) for run, files in FILES.items() for file in files]
    )
    def test_a_flipped_bit_is_found_or_changes_nothing_that_is_read(
        self, tmp_path: Path, finished: Path, run: str, file: str
    ) -> None:
        """Not every byte of a database is in use; what is in use is all checked."""
        shutil.copytree(finished / run, tmp_path / run)
        path, whole = tmp_path / run / file, (finished / run / file).read_bytes()
        before = everything(finished / run)
        random = Random(file)
        found = 0
        tries = 150 if file == "run.sqlite" else 25
        for _ in range(tries):
            flipped(path, random.randrange(len(whole)), random.randrange(8))
            code, out, err = command("status", str(tmp_path / run), "--verify")
            if code == 0:
                assert everything(tmp_path / run) == before
                assert file == "run.sqlite", out
            else:
                found += 1
                assert "damaged:" in out or str(tmp_path / run) in err
            path.write_bytes(whole)
        assert found == tries if file != "run.sqlite" else found > 0

    def test_a_file_that_is_gone_is_told(self, tmp_path: Path, finished: Path) -> None:
        shutil.copytree(finished / "run", tmp_path / "run")
        (tmp_path / "run" / "results.json").unlink()
        code, out, _ = command("status", str(tmp_path / "run"), "--verify")
        assert (code, "damaged: results.json cannot be read" in out) == (1, True)

    @pytest.mark.parametrize("notes", [b"", b"[]", b'{"results.json": 3}', b"\xff"], ids=str)
    def test_damaged_notes_are_told(self, tmp_path: Path, finished: Path, notes: bytes) -> None:
        shutil.copytree(finished / "run", tmp_path / "run")
        (tmp_path / "run" / DIGESTS).write_bytes(notes)
        assert command("status", str(tmp_path / "run"), "--verify")[0] == 1

    COUNTS = (
        "UPDATE kinds SET calls = calls + 1",
        "UPDATE kinds SET logged = logged - 1",
        "UPDATE kinds SET prompt = prompt + 1",
        "UPDATE kinds SET uncounted = 7",
        "UPDATE kinds SET outcome = 'refused' WHERE id = 1",
        "UPDATE calls SET kind = (SELECT max(id) FROM kinds) WHERE number = 1",
        "UPDATE records SET outcome = 'refused' WHERE stage = 'responses'",
        "UPDATE records SET reason = 'x' WHERE stage = 'responses'",
        "UPDATE records SET id = id || 'x' WHERE stage = 'responses'",
        "DELETE FROM records WHERE stage = 'responses'",
    )

    @pytest.mark.parametrize("statement", COUNTS)
    def test_counts_are_held_against_what_is_counted(
        self, tmp_path: Path, finished: Path, statement: str
    ) -> None:
        import sqlite3

        shutil.copytree(finished / "run", tmp_path / "run")
        connection = sqlite3.connect(tmp_path / "run" / "run.sqlite")
        connection.execute(statement)
        connection.commit()
        connection.close()
        code, out, _ = command("status", str(tmp_path / "run"), "--verify")
        assert (code, "damaged:" in out) == (1, True)

    def test_a_run_that_was_killed_is_whole(self, tmp_path: Path) -> None:
        """Its files are older than its database; they are written anew when it goes on."""
        with FaultServer(Plan()) as server:
            it = a_run(tmp_path, server.url)
            less = replace(it, words=[*it.words, "--limit", "1"])
            assert session(less, server).code == 0
            assert session(it, server, Kill("SIGKILL", 12, 0.0)).code < 0
            assert command("status", str(it.out), "--verify")[0] == 0
            assert session(it, server).code == 0
        assert command("status", str(it.out), "--verify")[0] == 0


@pytest.mark.parametrize(
    ("file", "content", "message"),
    [
        ("experiment.json", b'{"models": []}', "experiment.json is damaged .*restore it"),
        ("experiment.json", b"{}", "experiment.json is damaged .*restore it"),
        ("manifest.json", b'{"a":' * 3000, "manifest.json is damaged .*nested too deeply"),
    ],
    ids=["another shape", "nothing", "nested"],
)
@pytest.mark.parametrize("write", [True, False], ids=["write", "read"])
def test_files_that_are_json_of_another_kind_are_told(
    tmp_path: Path, finished: Path, file: str, content: bytes, message: str, write: bool
) -> None:
    shutil.copytree(finished / "run", tmp_path / "run")
    (tmp_path / "run" / file).write_bytes(content)
    with pytest.raises(StoreError, match=message):
        RunDir.open(tmp_path / "run", write=write)


def test_a_change_of_configuration_cut_short_between_its_files_opens(tmp_path: Path) -> None:
    """The manifest is there and the experiment not yet: either is a configuration of the run."""
    path = tmp_path / "run"
    RunDir.create(path, {"seed": 1, "title": "a"}).close()
    before = (path / "experiment.json").read_bytes()
    RunDir.open(path, config={"seed": 1, "title": "b"}, may_change={"title"}).close()
    (path / "experiment.json").write_bytes(before)
    for title in ("c", "a"):
        with RunDir.open(path, config={"seed": 1, "title": title}, may_change={"title"}) as run:
            assert run.verify().ok
        with RunDir.open(path, write=False) as run:
            assert (run.config["title"], run.verify().problems) == (title, ())


def test_a_run_killed_when_its_log_was_begun_can_be_read(tmp_path: Path, finished: Path) -> None:
    """The log has a head and no page, the lock the id of a process that is gone."""
    shutil.copytree(finished / "run", tmp_path / "run")
    gone = subprocess.Popen([sys.executable, "-c", ""])
    gone.wait()
    code = (
        "import os, sqlite3, sys; c = sqlite3.connect(sys.argv[1]); c.execute('PRAGMA journal_mode=WAL');"
        "c.execute('CREATE TABLE begun (a)'); c.commit(); os._exit(0)"
    )
    subprocess.run([sys.executable, "-c", code, str(tmp_path / "run" / "run.sqlite")], check=True)
    log = tmp_path / "run" / "run.sqlite-wal"
    assert log.stat().st_size > 32
    os.truncate(log, 32)
    (tmp_path / "run" / "lock").write_text(str(gone.pid))
    assert everything(tmp_path / "run") == everything(finished / "run")
    with RunDir.open(tmp_path / "run") as run:
        assert run.verify().ok


@contextmanager
def small_disk(path: Path, kilobytes: int) -> Iterator[Path]:
    """A disk of so many kilobytes, where this process may make one."""
    path.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", f"size={kilobytes}k", "tmpfs", str(path)]
    try:
        made = subprocess.run(mount, check=False, capture_output=True).returncode == 0
    except FileNotFoundError:
        made = False
    if not made:
        pytest.skip("a disk cannot be made here")
    try:
        yield path
    finally:
        subprocess.run(["umount", "-l", str(path)], check=True)


def limited(words: list[str], folder: Path, first: str = "") -> tuple[int, str]:
    """A command in a process that is held to something first: exit code, stderr."""
    done = subprocess.run(
        after(first, [sys.executable, "-m", "habitus", *words]),
        cwd=folder,
        env={**os.environ, "PYTHONPATH": str(ENGINE), "KEY": "sk-of-the-store-tests"},
        capture_output=True,
        encoding="utf-8",
        timeout=120,
        check=False,
    )
    assert "Traceback" not in done.stderr
    assert "fault of its own" not in done.stderr
    return done.returncode, done.stderr


#: What a message says that tells what to do, or what could not be written.
TOLD = ("free some space", "see to the disk", "too large", "cannot be written", "cannot be made")


class TestFull:
    @pytest.mark.parametrize("make", [a_run, labels], ids=["run", "judge"])
    @pytest.mark.parametrize("kilobytes", [40, 100, 120])
    def test_a_full_quota_stops_a_run_and_nothing_stored_is_asked_again(
        self, tmp_path: Path, make: Callable[[Path, str], Command], kilobytes: int
    ) -> None:
        limit = kilobytes * 1024
        hold = f"import resource; resource.setrlimit(resource.RLIMIT_FSIZE, ({limit}, {limit}))"
        with FaultServer(Plan(noise={"long": 0.05})) as server:
            it = make(tmp_path, server.url)
            code, err = limited([*it.words], it.folder, hold)
            self.check(it, server, code, err)

    @pytest.mark.parametrize("kilobytes", [60, 200, 400])
    def test_a_full_disk_stops_a_run_and_it_goes_on_where_there_is_room(
        self, tmp_path: Path, kilobytes: int
    ) -> None:
        with (
            FaultServer(Plan(noise={"long": 0.05})) as server,
            small_disk(tmp_path / "disk", kilobytes) as disk,
        ):
            full = a_run(tmp_path, server.url)
            full = replace(full, out=disk / "run", words=[*full.words[:-1], str(disk / "run")])
            code, err = limited([*full.words], full.folder)
            if not (disk / "run" / "manifest.json").exists():
                assert code == 2
                return
            shutil.copytree(disk / "run", tmp_path / "run")
            moved = replace(full, out=tmp_path / "run", words=[*full.words[:-1], "run"])
            self.check(moved, server, code, err)

    def check(self, it: Command, server: FaultServer, code: int, err: str) -> None:
        assert code == 2
        assert "To go on" not in err or code == 130
        assert any(word in err for word in TOLD)
        stored = durable(it.out)
        if it.out.exists() and (it.out / "manifest.json").exists():
            with RunDir.open(it.out, write=False) as run:
                assert run.verify().problems == ()
        again = session(it, server)
        assert not again.problems()
        assert again.code == 0
        assert stored <= durable(it.out)
        assert it.leaves(it.out)


class TestReadOnly:
    def test_a_directory_that_cannot_be_written_to_is_told_and_can_be_read(
        self, tmp_path: Path, finished: Path
    ) -> None:
        with small_disk(tmp_path / "disk", 4000) as disk:
            shutil.copytree(finished / "run", disk / "run")
            subprocess.run(["mount", "-o", "remount,ro", str(disk)], check=True)
            harbour(tmp_path / "study")
            words = ["run", "first", *set_options(FAST), "--out", str(disk / "run")]
            code, err = limited(words, tmp_path / "study")
            assert code == 2
            assert "cannot be written to" in err
            for reading in (["status", "--verify"], ["results"]):
                assert command(reading[0], str(disk / "run"), *reading[1:])[0] == 0
            code, err = limited([*words[:-1], str(disk / "new")], tmp_path / "study")
            assert code == 2
            assert "cannot be made" in err


class TestMoved:
    @pytest.mark.parametrize("make", [a_run, labels], ids=["run", "judge"])
    def test_a_killed_run_that_was_moved_goes_on(
        self, tmp_path: Path, make: Callable[[Path, str], Command]
    ) -> None:
        with FaultServer(Plan()) as server:
            it = make(tmp_path / "here", server.url)
            assert session(it, server, Kill("SIGKILL", 18, 0.05)).code < 0
            there = make(tmp_path / "there", server.url)
            shutil.move(it.out, there.out)
            stored = durable(there.out)
            went_on = session(there, server)
        assert stored
        assert (went_on.problems(), went_on.code) == ([], 0)
        assert f"{len(stored)} answers were stored already" in went_on.err
        assert len(server.log) - len({asked.name for asked in server.log}) <= len(
            {asked.name for asked in server.of_session(1)} - stored
        )


class TestTwo:
    def test_a_second_process_is_refused_with_the_pid_of_the_first(self, tmp_path: Path) -> None:
        with FaultServer(Plan(latency=(0.2, 0.2))) as server:
            it = a_run(tmp_path, server.url)
            first = it.start()
            assert server.reached(4, 60)
            asked = server.session = 2
            second = it.start()
            _, err = second.communicate(timeout=60)
            assert second.returncode == 2
            assert f"process {first.pid} is working on this run" in err
            server.session = 1
            first.kill()
            first.communicate()
        assert len(server.of_session(asked)) < len(server.log)
        # All that came while the second was there was asked by the first: none of it twice.
        names = [one.name for one in server.log]
        assert len(names) == len(set(names))
