"""The store under kill -9, full disks, torn files and second processes."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import cast

import pytest

from habitus.errors import RunLockedError, StoreError
from habitus.records import Recommendation
from habitus.store import RunDir, is_run
from habitus.store.journal import Journal, RecordRow

CHILD = '''
import asyncio, os, resource, sys
from pathlib import Path
from habitus.errors import StoreError
from habitus.records import Outcome, Prefix, Recommendation, Reply, Request, call_key, messages
from habitus.store import RunDir

HISTORY = Prefix(messages([("user", "Good morning. " * 300)]))

def say(*words):
    os.write(1, (" ".join(map(str, words)) + "\\n").encode())

async def one(run, number, pad=""):
    """Ask call ``number`` unless it is stored; then keep what follows from it."""
    request = Request(messages([("user", f"Question {number}?")]), HISTORY, seed=number)
    key = call_key("m", request)
    if run.calls.find(key) is None:
        await run.calls.add(key, request, Reply(Outcome.OK, f"Answer {number}." + pad), "m")
        say("call", key.hex(), number)
    record = Recommendation(id=f"n{number:05}", norm="n", state=1, query="q", text=f"{number}")
    await run.records.put("recommendations", record)
    say("record", record.id)

async def work(run, numbers, workers, pad=lambda number: ""):
    todo = iter(numbers)
    async def worker():
        for number in todo:
            await one(run, number, pad(number))
    await asyncio.gather(*(worker() for _ in range(workers)))

path = Path(sys.argv[1])
'''


def script(body: str) -> list[str]:
    return [sys.executable, "-c", CHILD + body]


@contextmanager
def child(path: Path, body: str) -> Iterator[subprocess.Popen[str]]:
    process = subprocess.Popen(
        [*script(body), str(path)], stdout=subprocess.PIPE, stdin=subprocess.PIPE, text=True
    )
    with process:
        try:
            yield process
        finally:
            process.kill()


def said(process: subprocess.Popen[str]) -> str:
    assert process.stdout is not None
    return process.stdout.readline().rstrip("\n")


def kill_after(path: Path, lines: int, workers: int) -> list[str]:
    """Let a process write until it has acknowledged ``lines`` things; kill it; all it said."""
    body = f"asyncio.run(work(RunDir.begin(path, {{}}), range(100_000), {workers}))"
    with child(path, body) as process:
        heard = [said(process) for _ in range(lines)]
        process.send_signal(signal.SIGKILL)
        assert process.stdout is not None
        return heard + process.stdout.read().split("\n")


def hexes(run: RunDir) -> set[str]:
    keys = run.calls.keys()
    return {key.hex() for key in keys}


def acknowledged(heard: list[str], what: str) -> set[str]:
    # The last line may be torn, as the process was killed: it is no acknowledgement.
    whole = [line.split() for line in heard[:-1]]
    return {line[1] for line in whole if line and line[0] == what}


def check_holds(path: Path, heard: list[str], *, write: bool) -> None:
    with RunDir.open(path, write=write) as run:
        checked = run.verify()
        assert checked.problems == ()
        stored = hexes(run)
        records = {r.id: r for r in run.records.iterate("recommendations", Recommendation)}
        assert acknowledged(heard, "call") <= stored
        assert acknowledged(heard, "record") <= records.keys()
        assert all(record.text == str(int(name[1:])) for name, record in records.items())
        for call in run.calls.iterate():
            question = call.request["messages"][-1][1]
            assert call.reply.text == question.replace("Question", "Answer").replace("?", ".")


@pytest.mark.parametrize(
    ("lines", "workers"),
    [(1, 1), (5, 2), (60, 30), (700, 256)],
    ids=["first answer", "one by one", "small groups", "full groups"],
)
def test_kill_9_loses_nothing_that_was_acknowledged(
    tmp_path: Path, lines: int, workers: int
) -> None:
    path = tmp_path / "run"
    heard = kill_after(path, lines, workers)
    before = {p.name: p.stat().st_mtime_ns for p in path.iterdir()}
    check_holds(path, heard, write=False)
    assert {p.name: p.stat().st_mtime_ns for p in path.iterdir()} == before
    check_holds(path, heard, write=True)
    check_holds(path, heard, write=False)


def test_half_a_line_at_the_end_is_never_appended_to(tmp_path: Path) -> None:
    """Crash, go on, crash, go on: nothing is lost, nothing doubled, nothing broken between."""
    path = tmp_path / "run"
    heard: list[str] = []
    for _ in range(3):
        heard = kill_after(path, 40, 16)[:-1] + heard
    body = "with RunDir.begin(path, {}) as run: asyncio.run(work(run, range(200), 16)); "
    body += "run.records.export()"
    subprocess.run([*script(body), str(path)], check=True, stdout=subprocess.DEVNULL)
    check_holds(path, heard, write=False)
    with RunDir.open(path, write=False) as run:
        asked = [call.key for call in run.calls.iterate()]
        assert len(asked) == len(set(asked)) >= 200
    lines = (path / "records" / "recommendations.jsonl").read_text().splitlines()
    ids = [json.loads(line)["id"] for line in lines]
    assert ids == sorted(set(ids))
    assert len(ids) >= 200


def test_a_group_is_whole_or_not_there(tmp_path: Path) -> None:
    """The second item of a group cannot be written: the first is not there either."""
    RunDir.create(tmp_path / "run", {}).close()
    path = tmp_path / "run" / "run.sqlite"
    journal = Journal(path, {})
    kept = RecordRow("responses", "kept", "ok", "", b"{}")
    journal.commit([kept])
    broken = RecordRow("responses", "broken", cast("str", None), "", b"{}")
    with pytest.raises(StoreError, match="NOT NULL"):
        journal.commit([RecordRow("responses", "first", "ok", "", b"{}"), broken])
    journal.close()
    with RunDir.open(tmp_path / "run", write=False) as run:
        assert run.records.ids("responses") == ["kept"]


def test_an_interrupt_keeps_what_was_answered_and_the_rest_is_done_later(tmp_path: Path) -> None:
    path = tmp_path / "run"
    body = "with RunDir.begin(path, {}) as run: asyncio.run(work(run, range(100_000), 4))"
    with child(path, body + "\n") as process:
        heard = [said(process) for _ in range(5)]
        process.send_signal(signal.SIGINT)
        assert process.stdout is not None
        heard += process.stdout.read().split("\n")
        assert process.wait() not in {0, -signal.SIGKILL}
    assert sorted(p.name for p in path.iterdir() if p.name.startswith("run.")) == ["run.sqlite"]
    check_holds(path, heard, write=True)


@pytest.mark.parametrize(
    ("call", "at"),
    [("fsync", 1), ("fsync", 2), ("mkdir", 2), ("fsync", 3), ("fsync", 4)],
    ids=["experiment", "its name", "database", "manifest", "its name too"],
)
def test_a_creation_cut_short_anywhere_is_made_again(tmp_path: Path, call: str, at: int) -> None:
    """The process dies at each point where something has just become durable."""
    path = tmp_path / "run"
    RunDir.create(tmp_path / "old", {"seed": 0}).close()
    body = f"""
left, real = {at}, os.{call}
def deadly(*arguments):
    global left
    left -= 1
    done = real(*arguments)
    if not left:
        os.kill(os.getpid(), 9)
    return done
os.{call} = deadly
RunDir.fork(path.parent / "old", path, {{"seed": 1}}).close()
"""
    done = subprocess.run([*script(body), str(path)], check=False)
    assert done.returncode == -signal.SIGKILL
    if not is_run(path):
        with pytest.raises(StoreError, match=r"cut short|not a run"):
            RunDir.open(path)
    with RunDir.begin(path, {"seed": 1}) as run:
        assert run.verify().ok
    assert sorted(p.name for p in path.iterdir()) == [
        "experiment.json", "lock", "manifest.json", "records", "run.sqlite",
    ]  # fmt: skip


def test_two_processes_one_writes_and_the_other_may_read(tmp_path: Path) -> None:
    path = tmp_path / "run"
    body = """
run = RunDir.begin(path, {})
asyncio.run(work(run, range(10), 10))
say("ready")
sys.stdin.read()
"""
    with child(path, body) as process:
        while said(process) != "ready":
            pass
        with pytest.raises(RunLockedError, match=f"process {process.pid} is working"):
            RunDir.open(path)
        with RunDir.open(path, write=False) as run:
            assert len(run.calls.keys()) == 10
            assert sum(run.records.counts("recommendations").values()) == 10
        with RunDir.fork(path, tmp_path / "fork", {"seed": 1}) as fork:
            assert len(fork.calls.keys()) == 10
    with RunDir.open(path) as run:
        assert len(run.calls.keys()) == 10


FULL = """
run = RunDir.begin(path, {})
async def main():
    limit = 400_000
    resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit))
    noise = lambda number: os.urandom(2000).hex()
    try:
        await work(run, range(100_000), 20, noise)
    except StoreError as error:
        say("failed", error)
    try:
        await one(run, 999_999)
    except StoreError as error:
        say("refused", error)
    found = [c.key for c in run.calls.iterate()]
    say("readable", len(found))
asyncio.run(main())
run.close()
"""


def test_a_full_disk_is_one_clear_error_and_what_was_acknowledged_stays(tmp_path: Path) -> None:
    path = tmp_path / "run"
    done = subprocess.run(
        [*script(FULL), str(path)], capture_output=True, text=True, check=False, timeout=120
    )
    assert done.stderr == ""
    assert done.returncode == 0
    heard = done.stdout.split("\n")
    told = {line.split()[0]: line for line in heard if line}
    assert "run the same command again" in told["failed"]
    assert told["refused"].split(" ", 1)[1] == told["failed"].split(" ", 1)[1]
    calls = acknowledged(heard, "call")
    assert len(calls) > 10
    assert int(told["readable"].split()[1]) >= len(calls)
    with RunDir.open(path) as run:
        assert run.verify().problems == ()
        assert calls <= hexes(run)
        assert acknowledged(heard, "record") <= set(run.records.ids("recommendations"))


def crashed(path: Path, count: int) -> list[str]:
    """A run whose process died after its last answer, so that a write-ahead log is left."""
    body = f"asyncio.run(work(RunDir.begin(path, {{}}), range({count}), 1)); os._exit(9)"
    done = subprocess.run([*script(body), str(path)], capture_output=True, text=True, check=False)
    assert done.returncode == 9
    assert (path / "run.sqlite-wal").stat().st_size > 0
    return done.stdout.split("\n")


@pytest.mark.parametrize("share", [0.0, 0.3, 0.7, 0.999], ids=str)
@pytest.mark.parametrize("how", ["cut", "scribbled"])
def test_a_torn_log_gives_whole_calls_up_to_the_tear(
    tmp_path: Path, how: str, share: float
) -> None:
    path = tmp_path / "run"
    heard = crashed(path, 12)
    log = path / "run.sqlite-wal"
    at = int(log.stat().st_size * share)
    with log.open("r+b") as file:
        if how == "cut":
            file.truncate(at)
        else:
            file.seek(at)
            file.write(os.urandom(64))
    (path / "run.sqlite-shm").unlink()  # memory of a machine that is gone
    with RunDir.open(path) as run:
        assert run.verify().problems == ()
        kept = len(run.calls.keys())
    assert kept <= len(acknowledged(heard, "call"))
    assert kept > 0 or share < 0.5
    body = "with RunDir.begin(path, {}) as run: asyncio.run(work(run, range(12), 4))"
    subprocess.run([*script(body), str(path)], check=True, stdout=subprocess.DEVNULL)
    with RunDir.open(path, write=False) as run:
        assert len(run.calls.keys()) == len(run.records.ids("recommendations")) == 12
        assert run.verify().problems == ()


def test_an_interrupted_run_that_was_copied_without_shared_memory(tmp_path: Path) -> None:
    heard = crashed(tmp_path / "run", 3)
    far = tmp_path / "far"
    shutil.copytree(tmp_path / "run", far, ignore=shutil.ignore_patterns("*-shm"))
    with pytest.raises(StoreError, match="go on with the run once"):
        RunDir.open(far, write=False)
    check_holds(far, heard, write=True)
    check_holds(far, heard, write=False)


def test_export_leaves_the_old_file_when_the_disk_is_full(tmp_path: Path) -> None:
    path = tmp_path / "run"
    body = """
with RunDir.begin(path, {}) as run:
    asyncio.run(work(run, range(5), 5))
    run.records.export()
    asyncio.run(work(run, range(5, 20), 5))
    resource.setrlimit(resource.RLIMIT_FSIZE, (900, resource.RLIM_INFINITY))
    try:
        run.records.export()
    except StoreError as error:
        say("refused", error)
    resource.setrlimit(resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
"""
    done = subprocess.run([*script(body), str(path)], capture_output=True, text=True, check=True)
    assert "refused" in done.stdout
    assert "recommendations.jsonl cannot be written" in done.stdout
    assert [p.name for p in (path / "records").iterdir()] == ["recommendations.jsonl"]
    lines = (path / "records" / "recommendations.jsonl").read_text().splitlines()
    assert [json.loads(line)["id"] for line in lines] == [f"n{n:05}" for n in range(5)]
