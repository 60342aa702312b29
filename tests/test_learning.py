"""What a run has learned of its models is known to its next session, and to nobody else."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import loopback
from habitus.experiments import RunRequest, run_experiment
from habitus.records import Sampling, StageRecord
from habitus.running import Silent, read_learned
from habitus.store import RunDir
from study_fixture import (
    FAST,
    Terminal,
    contents,
    harbour,
    set_options,
    study_of,
    terminal_in,
)

BOTH = {"max_tokens_field": "max_completion_tokens", "system_role": False}


def objection(body: dict[str, Any]) -> str | None:
    """A model that takes neither ``max_tokens`` nor a system message."""
    if "max_tokens" in body:
        return "Unsupported parameter: 'max_tokens'. Use 'max_completion_tokens' instead."
    if body["messages"][0]["role"] == "system":
        return "System role not supported"
    return None


@pytest.fixture
def server() -> Iterator[loopback.Server]:
    with loopback.served(loopback.rejecting(objection)) as running:
        yield running


@pytest.fixture
def terminal(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Terminal:
    return terminal_in(tmp_path, monkeypatch, capsys)


def changes(server: loopback.Server, **entry: Any) -> dict[str, Any]:
    """A target on a server, in two settings."""
    far = {"backend": "openai", "model": "m", "base_url": server.url, "concurrency": 1, **entry}
    target = {"model": "small", "max_tokens": 100}
    return {"models.small": far, "targets": {"main": target}, "settings": ["none", "norms"]}


def words(folder: Path, server: loopback.Server, **entry: Any) -> list[str]:
    """The command that runs the small study with a target on a server."""
    file = folder / "experiments" / "first.yaml"
    options = set_options({**FAST, **changes(server, **entry)})
    return ["run", str(file if file.exists() else harbour(folder)), "--quiet", *options]


def rejected(server: loopback.Server) -> list[dict[str, Any]]:
    """The requests that it rejected since it was last asked for them."""
    found = [body for body in server.bodies if objection(body)]
    server.bodies.clear()
    return found


class TestSessions:
    def test_a_later_session_has_no_request_rejected(
        self, tmp_path: Path, terminal: Terminal, server: loopback.Server
    ) -> None:
        command = words(tmp_path, server)
        assert terminal(*command, "--out", "two", "--limit", "1")[0] == 0
        assert len(rejected(server)) == 2
        assert terminal(*command, "--out", "two")[0] == 0
        asked = len(server.bodies)
        assert (rejected(server), asked) == ([], 3)
        assert terminal.json("status", "two", "--json")["learned"] == {"small": BOTH}
        assert "small rejected what it was sent; since then" in terminal("status", "two")[1]
        assert terminal(*command, "--out", "one")[0] == 0
        assert contents(tmp_path / "two") == contents(tmp_path / "one")
        assert keys(tmp_path / "two") == keys(tmp_path / "one")

    def test_another_address_starts_anew(
        self, tmp_path: Path, terminal: Terminal, server: loopback.Server
    ) -> None:
        terminal(*words(tmp_path, server), "--out", "run", "--limit", "1")
        with loopback.served(loopback.answer("Rice.")) as other:
            assert terminal(*words(tmp_path, other), "--out", "run")[0] == 0
            assert len(other.bodies) == 3
            assert all("max_tokens" in body for body in other.bodies)
        assert read(tmp_path / "run") == {"small": BOTH}  # of the first address, still

    def test_what_the_entry_states_is_not_overruled(
        self, tmp_path: Path, terminal: Terminal, server: loopback.Server
    ) -> None:
        command = words(tmp_path, server, quirks={"max_tokens_field": "max_tokens"})
        terminal(*command, "--out", "run", "--limit", "1")
        assert len(rejected(server)) == 2
        assert terminal(*command, "--out", "run")[0] == 0
        again = rejected(server)
        assert len(again) == 1
        assert "max_tokens" in again[0]

    def test_a_fork_begins_with_it(
        self, tmp_path: Path, terminal: Terminal, server: loopback.Server
    ) -> None:
        terminal(*words(tmp_path, server), "--out", "run", "--limit", "1")
        rejected(server)
        more = ["--out", "fork", "--fork", "run", "--set=repeats=2"]
        assert terminal(*words(tmp_path, server), *more)[0] == 0
        assert rejected(server) == []
        assert read(tmp_path / "fork") == {"small": BOTH}

    def test_it_is_written_down_when_it_is_learned(
        self, tmp_path: Path, server: loopback.Server
    ) -> None:
        """A session that is killed has learned it too."""
        found = []

        class Reading(Silent):
            def put(self, table: str, record: StageRecord) -> None:
                if table == "responses" and "/norms/" in record.id:
                    found.append(read(tmp_path / "run"))

        study = study_of(tmp_path, changes(server))
        run_experiment(study, RunRequest(out=tmp_path / "run"), Reading())
        assert len(found) == 4
        assert all(learned == {"small": BOTH} for learned in found)


async def test_calls_that_wait_for_their_turn_are_not_rejected_one_by_one() -> None:
    async with loopback.serving(loopback.rejecting(objection)) as running:
        model = running.model(concurrency=1)
        sampling = Sampling(max_tokens=10)
        asked = [model.complete(loopback.ask(f"q{i}", sampling=sampling)) for i in range(20)]
        replies = await asyncio.gather(*asked)
        assert all(reply.ok and "max_completion_tokens" in reply.sent for reply in replies)
        assert (len(running.bodies), len(rejected(running))) == (21, 1)


class TestNotes:
    def noted(self, folder: Path, note: str) -> Path:
        with RunDir.create(folder / "run", {"id": "a"}):
            (folder / "run" / "learned.json").write_text(note)
        return folder / "run"

    def test_one_of_an_earlier_version_is_shown_and_not_gone_by(
        self, tmp_path: Path, terminal: Terminal, server: loopback.Server
    ) -> None:
        """It does not say where it was learned."""
        command = words(tmp_path, server)
        terminal(*command, "--out", "run", "--limit", "1")
        rejected(server)
        (tmp_path / "run" / "learned.json").write_text(json.dumps({"small": BOTH}))
        assert terminal.json("status", "run", "--json")["learned"] == {"small": BOTH}
        assert terminal(*command, "--out", "run")[0] == 0
        assert len(rejected(server)) == 2

    @pytest.mark.parametrize(
        "note", ["{", "[]", "3", '{"m": 3}', '{"m": {"quirks": {"colour": 1}, "at": "u"}}']
    )
    def test_a_damaged_one_is_told(self, tmp_path: Path, terminal: Terminal, note: str) -> None:
        code, out, err = terminal("status", str(self.noted(tmp_path, note)))
        assert (code, out) == (2, "")
        assert "learned.json is damaged" in err
        assert "remove it, and it is learned anew" in err


def read(run: Path) -> dict[str, dict[str, Any]]:
    with RunDir.open(run, write=False) as opened:
        return read_learned(opened)


def keys(run: Path) -> set[bytes]:
    with RunDir.open(run, write=False) as opened:
        return {call.reply.key for call in opened.calls.iterate()}
