"""A key stays where it is: in the environment or in its file, wherever a server repeats it."""

from __future__ import annotations

import asyncio
import json
import os
import sqlite3
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import zstandard
from pydantic import ValidationError

from fault_server import FaultServer, Plan
from habitus.errors import ContentError, ModelError
from habitus.models import ModelEntry, Opening, open_model
from habitus.models.entry import load_entry
from habitus.models.keys import SHORTEST_KEY, Secret, looks_like_key
from key_echoes import REPEATED, repeating, spellings
from labelling_fixture import answers, written
from loopback import KEY, VirtualClock, answer, ask, serving
from study_fixture import FAST, Terminal, harbour, set_options, terminal_in

ENGINE = Path(__file__).parents[1] / "engine"
LETTERS = "sk-only-letters-and-dashes"  # could pass for the code of an error
ODD = 'abc/def+ghi="jkl\\mno&<>0123'


def given_away(found: bytes, key: str = KEY) -> list[str]:
    """The spellings of a key that stand in some bytes, or half of it."""
    forms = {**spellings(key), "half of it": key[:9]}
    return [name for name, form in forms.items() if form.encode() in found]


def all_of(folder: Path) -> Iterator[tuple[str, bytes]]:
    """Every byte below a folder, and every value of every database, as it is and decompressed."""
    for path in sorted(folder.rglob("*")):
        if path.is_file():
            yield path.name, path.read_bytes()
        if path.suffix == ".sqlite":
            yield from _values(path)


def _values(path: Path) -> Iterator[tuple[str, bytes]]:
    connection = sqlite3.connect(path)
    tables = connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'").fetchall()
    for (table,) in tables:
        for row in connection.execute(f"SELECT * FROM {table}"):
            for value in row:
                body = value if isinstance(value, bytes) else str(value).encode()
                if body.startswith(zstandard.MAGIC_NUMBER.to_bytes(4, "little")):
                    body = zstandard.ZstdDecompressor().decompress(body)
                yield f"{path.name} {table}", body
    connection.close()


class TestReplies:
    @pytest.mark.parametrize("key", [KEY, LETTERS, ODD], ids=["usual", "letters", "odd"])
    @pytest.mark.parametrize("place", REPEATED)
    async def test_a_key_that_a_server_repeats_is_in_no_reply(
        self, key: str, place: str, caplog: pytest.LogCaptureFixture
    ) -> None:
        async with serving(repeating(place)) as server:
            entry = server.entry(retries=0)
            model = open_model("m", entry, Opening(environ={"KEY": key}, clock=server.clock))
            server.opened.append(model)
            reply = await model.complete(ask())
        assert server.headers[0]["Authorization"] == f"Bearer {key}"
        assert not given_away(repr(reply).encode(), key)
        assert not given_away(repr(reply).replace("\\\\", "\\").encode(), key)
        assert not given_away(caplog.text.encode(), key)

    @pytest.mark.parametrize("word", ["EMPTY", "none", "ollama", "x", "k" * (SHORTEST_KEY - 1)])
    async def test_a_word_for_no_key_is_left_in_answers(self, word: str) -> None:
        async with serving(answer(f"The {word} bowl.")) as server:
            opening = Opening(environ={"KEY": word}, clock=server.clock)
            model = open_model("m", server.entry(), opening)
            server.opened.append(model)
            assert (await model.complete(ask())).text == f"The {word} bowl."

    @pytest.mark.parametrize("place", ["redirect", "lasting redirect"])
    async def test_a_redirect_is_not_followed(self, place: str) -> None:
        with FaultServer(Plan(repeating=[place])) as server:
            plain = {"backend": "openai", "model": "m", "base_url": server.url}
            entry = ModelEntry.model_validate({**plain, "api_key_env": "KEY"})
            model = open_model("m", entry, Opening(environ={"KEY": KEY}, clock=VirtualClock()))
            reply = await model.complete(ask())
            await model.aclose()
        assert reply.reason.startswith("http 30")
        assert len(server.log) == 1
        assert not server.strayed

    def test_other_texts_stay_as_they_are(self) -> None:
        secret = Secret(KEY)
        for text in ("", "sk-secret", "100%", "a\\u0073k", "&amp; &#115;k", KEY[:-1], KEY.upper()):
            assert secret.hidden_text(text) == text
            assert secret.hidden(text.encode()) == text.encode()


class TestRuns:
    async def test_a_key_is_in_no_byte_of_a_run_and_in_nothing_printed(
        self, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
    ) -> None:
        harbour(tmp_path)
        rows = [{**row, "model": name} for name in ("llama", "gemma") for row in answers(6)]
        written(tmp_path, rows)
        with FaultServer(Plan(repeating=list(REPEATED))) as server:
            entry = {
                "backend": "openai",
                "model": "m",
                "base_url": server.url,
                "api_key_env": "KEY",
            }
            changes: dict[str, Any] = {
                "models.main": {**entry, "retries": 0},
                "filter.policy": "report_only",
            }
            changes |= {"history.domain_sessions": 3, "limits.alike": 1000}
            options = set_options({**FAST, **changes})
            printed = await habitus(tmp_path, "run", "first", *options, HABITUS_DEBUG="1")
            judging = ["judge", "answers.jsonl", f"--model={json.dumps(entry | {'retries': 0})}"]
            printed += await habitus(tmp_path, *judging, "--judges=positioning", "--out=labels")
            assert set(server.faults()) == set(REPEATED)
        assert b"without a usable answer" in printed
        printed += shown(terminal_in(tmp_path, monkeypatch, capsys))
        assert not given_away(printed)
        found = list(all_of(tmp_path))
        assert any(b"Your key is [key]." in body for name, body in found if "packs" in name)
        assert not [(name, given_away(body)) for name, body in found if given_away(body)]

    @pytest.mark.parametrize(
        ("places", "finding"),
        [(["text", "reasoning"], "context length"), (["error 401"], "failed")],
        ids=["of answers", "of errors"],
    )
    async def test_what_models_check_prints(
        self, tmp_path: Path, places: list[str], finding: str
    ) -> None:
        """The server lists the key with its models, too."""
        (tmp_path / "key").write_text(KEY)
        (tmp_path / "key").chmod(0o600)
        with FaultServer(Plan(repeating=places)) as server:
            place = [f"--base-url={server.url}", "--model=m", f"--api-key-file={tmp_path / 'key'}"]
            printed = await habitus(tmp_path, "models", "check", *place, KEY="")
            assert {a.headers["Authorization"] for a in server.log} == {f"Bearer {KEY}"}
        assert finding.encode() in printed
        assert not given_away(printed)


def shown(terminal: Terminal) -> bytes:
    """What every command that shows a run prints and writes."""
    printed = ""
    for words in (
        ["status", "first"],
        ["status", "first", "--json"],
        ["status", "first", "--verify"],
        ["results", "first"],
        ["results", "first", "--json"],
        ["view", "first", "--plain"],
        ["view", "first", "--plain", "--json"],
        ["status", "labels"],
        ["analyze", "./labels", "--json"],
        ["view", "./labels", "--plain"],
        ["export", "./labels", "--to", "consensus", "-o", "exported"],
        ["report", "first", "-o", "report.html"],
    ):
        code, out, err = terminal(*words)
        assert code in {0, 1}, (words, err)
        printed += out + err
    assert (terminal.folder / "report.html").stat().st_size > 10_000
    return printed.encode()


async def habitus(folder: Path, *arguments: str, **environ: str) -> bytes:
    """What a command prints, given in a process of its own with the key in its environment."""
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-m", "habitus", *arguments,
        cwd=folder, env={**os.environ, "PYTHONPATH": str(ENGINE), "KEY": KEY, **environ},
        stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.STDOUT,
    )  # fmt: skip
    printed, _ = await process.communicate()
    return printed


def entry_of(path: Path | str, **more: Any) -> ModelEntry:
    plain = {"backend": "openai", "model": "m", "base_url": "http://127.0.0.1:1/v1"}
    return ModelEntry.model_validate({**plain, "api_key_file": str(path), **more})


def _linked(folder: Path, target: Path) -> Path:
    link = folder / "link"
    link.symlink_to(target)
    return link


def _in(folder: Path, *names: str) -> Path:
    """A key file in a folder of its own with some files beside it."""
    folder.mkdir(parents=True, exist_ok=True)
    for name in names:
        (folder / name).touch()
    return _written(folder / "key")


def _written(path: Path, text: str = KEY, mode: int = 0o600) -> Path:
    path.write_text(text)
    path.chmod(mode)
    return path


def _pipe(path: Path) -> Path:
    os.mkfifo(path, 0o600)
    return path


UNUSABLE: dict[str, tuple[Callable[[Path], Path], str]] = {
    "none there": (lambda at: at / "none", "No such file"),
    "a folder": (lambda at: at, r"cannot be read|is no file"),
    "a pipe": (lambda at: _pipe(at / "pipe"), "is no file"),
    "for all to read": (lambda at: _written(at / "k", mode=0o644), "chmod 600"),
    "for the group to read": (lambda at: _written(at / "k", mode=0o640), "chmod 600"),
    "empty": (lambda at: _written(at / "k", "\n"), "the key on one line"),
    "several lines": (lambda at: _written(at / "k", f"{KEY}\n{KEY}\n"), "the key on one line"),
    "a private key": (lambda at: _written(at / "k", f"-----BEGIN X-----\n{KEY}\n"), "on one line"),
    "large": (lambda at: _written(at / "k", KEY * 400), "the key on one line"),
    "not ASCII": (lambda at: _written(at / "k", f"{KEY}\xe9"), "usable key"),
    "in a run": (lambda at: _in(at / "run", "manifest.json", "run.sqlite"), "lies in a run"),
    "deep in a run": (
        lambda at: (_in(at / "run", "manifest.json", "run.sqlite"), _in(at / "run" / "a" / "b"))[1],
        "lies in a run",
    ),
    "in content": (lambda at: (_in(at / "norms"), _in(at / "judges" / "x"))[1], "lies in judges/"),
    "linked into a run": (
        lambda at: _linked(at, _in(at / "run", "manifest.json", "run.sqlite")),
        "lies in a run",
    ),
}


class TestFiles:
    async def test_a_key_from_a_file_is_sent_and_hidden(self, tmp_path: Path) -> None:
        path = _written(tmp_path / "key", f"{KEY}\n")
        async with serving(repeating("text")) as server:
            entry = server.entry(api_key_env=None, api_key_file="~/key")
            opening = Opening(environ={"HOME": str(path.parent)}, clock=server.clock)
            model = open_model("m", entry, opening)
            server.opened.append(model)
            reply = await model.complete(ask())
        assert server.headers[0]["Authorization"] == f"Bearer {KEY}"
        assert reply.text == "Your key is [key]."

    @pytest.mark.parametrize("name", UNUSABLE)
    def test_a_file_that_cannot_be_used_is_told_without_what_it_holds(
        self, tmp_path: Path, name: str
    ) -> None:
        make, message = UNUSABLE[name]
        with pytest.raises(ModelError, match=message) as error:
            open_model("m", entry_of(make(tmp_path)), Opening(base=tmp_path))
        assert not given_away(str(error.value).encode())

    def test_one_that_belongs_to_another_is_read_as_it_is(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """A secret mounted into a container is not for its user to change."""
        path = _written(tmp_path / "key", mode=0o444)
        monkeypatch.setattr(os, "getuid", lambda: path.stat().st_uid + 1)
        assert open_model("m", entry_of(path), Opening(base=tmp_path)).name == "m"

    def test_it_is_no_part_of_what_makes_a_run_another_run(self, tmp_path: Path) -> None:
        from habitus.running import MODELS_MAY_CHANGE

        entry = entry_of("~/key")
        other = entry.model_copy(update={"api_key_file": None})
        assert entry.identity("m") == other.identity("m")
        assert "models.*.api_key_file" in MODELS_MAY_CHANGE


LIKE_KEYS = {
    "usual": KEY + "-0123456789",
    "project": "sk-proj-" + "aB3" * 16,
    "letters only": "gsk_" + "aBcDeFgH" * 6,
    "named by its maker": "hf_" + "aBcDeFgH12" * 3,
    "bearer": "Bearer q7-x-93-lm",
    "at random": "aB3x" * 9,
}
WRONG_PLACES: dict[str, Callable[[str], dict[str, Any]]] = {
    "as the variable": lambda key: {"api_key_env": key},
    "as the file": lambda key: {"api_key_file": key},
    "as the path of a file": lambda key: {"api_key_file": f"/home/{key}"},
    "as the model": lambda key: {"model": key},
    "as the model's end": lambda key: {"model": f"m:{key}"},
    "as a key that there is not": lambda key: {"api_key": key},
    "in the body": lambda key: {"extra": {"auth": [{"token": key}]}},
    "as a name in the body": lambda key: {"extra": {key: 1}},
    "in options": lambda key: {"options": {"hf_token": key}},
    "as user": lambda key: {"base_url": f"https://{key}@host/v1"},
    "as password": lambda key: {"base_url": f"https://u:{key}@host/v1"},
    "as password alone": lambda key: {"base_url": f"https://:{key}@host:1/v1"},
    "in the query": lambda key: {"base_url": f"https://host/v1?key={key}"},
    "behind the address": lambda key: {"base_url": f"https://host/v1#{key}"},
    "in the path": lambda key: {"base_url": f"https://host/{key}/v1"},
    "in no address": lambda key: {"base_url": f"https://u:{key}@[host/v1"},
}


class TestWrongPlaces:
    @pytest.mark.parametrize("key", LIKE_KEYS.values(), ids=LIKE_KEYS)
    @pytest.mark.parametrize("place", WRONG_PLACES)
    def test_an_entry_with_a_key_in_it_is_refused_and_the_key_not_shown(
        self, tmp_path: Path, place: str, key: str
    ) -> None:
        plain = {"backend": "openai", "model": "m", "base_url": "http://127.0.0.1:1/v1"}
        path = tmp_path / "entry.yaml"
        path.write_text(json.dumps(plain | WRONG_PLACES[place](key)))
        with pytest.raises(ContentError) as error:
            load_entry(path)
        assert key.removeprefix("Bearer ") not in str(error.value)

    @pytest.mark.parametrize(
        "words",
        [
            ["models", "check", "--model=m", "--base-url=http://127.0.0.1:1/v1", "--api-key-env=KEY"],
            ["models", "check", "--model=m", "--base-url=http://u:KEY@127.0.0.1:1/v1"],
            ["models", "check", "--model=KEY", "--base-url=http://127.0.0.1:1/v1"],
            ["run", "first", "--set=models.main.api_key_env=KEY"],
            ["run", "first", "--set=models.main.base_url=http://KEY@h"],
            ["judge", "first", "--model={backend: openai, model: m, base_url: 'http://h', api_key_env: KEY}"],
        ],
        ids=["variable", "password", "model", "set", "set as user", "judge"],
    )  # fmt: skip
    def test_on_the_command_line(
        self,
        tmp_path: Path,
        words: list[str],
        capsys: pytest.CaptureFixture[str],
        monkeypatch: pytest.MonkeyPatch,
    ) -> None:
        harbour(tmp_path)
        terminal = terminal_in(tmp_path, monkeypatch, capsys)
        key = LIKE_KEYS["project"]
        code, out, err = terminal(*(word.replace("KEY", key) for word in words))
        assert code == 2
        assert key not in out + err

    @pytest.mark.parametrize(
        "name",
        [
            "gpt-4o-2024-08-06",
            "org/Meta-Llama-3.1-70B-Instruct-AWQ-INT4",
            "Qwen2.5-Coder-32B-Instruct-GPTQ-Int4-128g-actorder",
            "ft:gpt-4o-mini-2024-07-18:org::9aBcDeFg",
            "/models/snapshots/0e9e39f249a16976918f6564b8830bc894c89659/model",
            "https://abcdEFGH1234.us-east-1.aws.endpoints.example.com/v1",
            "accounts/fireworks/models/llama-v3p1-405b-instruct",
            "OPENAI_API_KEY",
            "the bearer of good news",
            "~/.keys/openai",
        ],
    )
    def test_usual_names_are_no_keys(self, name: str) -> None:
        assert not looks_like_key(name)

    def test_one_of_both_at_most(self) -> None:
        with pytest.raises(ValidationError, match="not both"):
            entry_of("~/key", api_key_env="KEY")

    @pytest.mark.parametrize("path", ["key", "./key", "../key", "~other/key", "", "a\0b"])
    def test_a_file_is_named_from_the_root_or_from_home(self, path: str) -> None:
        with pytest.raises(ValidationError, match="from home"):
            entry_of(path)
