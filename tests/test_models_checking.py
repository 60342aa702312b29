"""``models check``: what a server can do, from its answers."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest

import loopback
from habitus.cli import run
from habitus.models.checking import Finding, Status, check_model
from habitus.models.context import listed_length
from habitus.models.scripted import ScriptedModel
from loopback import raw, serving, status

CHECKS = (
    "reply",
    "system role",
    "assistant first",
    "same role twice",
    "stop strings",
    "max_tokens",
    "seed",
    "json schema",
    "usage",
    "cached tokens",
    "reasoning",
    "latency",
)


async def able(request: Any, body: dict[str, Any]) -> Any:
    """A server that can do everything."""
    text, finish = f"Rice {body.get('seed', '')}", "stop"
    if body.get("max_tokens", 400) == 16:
        finish = "length"
    if any(m["role"] == "system" for m in body["messages"]):
        text = "PINEAPPLE"
    if "stop" in body:
        text = "one two three "
    if "response_format" in body:
        text = '{"colour": "teal", "weight": 3}'
    return await loopback.answer(text, finish, reasoning="so")(request, body)


CARD = {"id": "m", "max_model_len": 8192}


async def findings(
    step: loopback.Step, *listed: dict[str, Any], **settings: Any
) -> dict[str, Finding]:
    async with serving(step) as server:
        server.listed += listed
        found = await check_model(server.model(**settings))
    return {finding.check: finding for finding in found}


async def test_a_server_that_can_do_everything() -> None:
    found = await findings(able, CARD)
    assert tuple(found) == (*CHECKS, "quirks", "context length")
    assert found["context length"].detail == "write into the entry: context_length: 8192"
    assert {f.status for f in found.values()} == {Status.YES}, found


async def test_a_server_that_can_do_little() -> None:
    count = iter(range(100))

    async def poor(request: Any, body: dict[str, Any]) -> Any:
        text = "one two three four" if "stop" in body else f"Rice {next(count)}"
        return await raw(loopback.completion({"content": text}, usage=None))(request, body)

    found = await findings(poor)
    cannot = {"stop strings", "max_tokens", "seed", "json schema", "usage", "reasoning"}
    assert {name for name, f in found.items() if f.status is Status.NO} == cannot
    unclear = {name for name, f in found.items() if f.status is Status.UNCLEAR}
    assert unclear == {"system role", "cached tokens", "context length"}


async def test_what_is_learned_is_said_as_a_line_for_the_entry() -> None:
    def objection(body: dict[str, Any]) -> str | None:
        roles = [m["role"] for m in body["messages"]]
        if "system" in roles:
            return "System role not supported"
        alternating = all(r == ("user", "assistant")[i % 2] for i, r in enumerate(roles))
        if not alternating:
            return "Conversation roles must alternate user/assistant"
        return "response_format is not supported" if "response_format" in body else None

    found = await findings(loopback.rejecting(objection))
    rejected = ("system role", "assistant first", "json schema", "quirks")
    assert [found[name].status for name in rejected] == [Status.NO] * 4
    detail = 'quirks: {system_role: false, alternate: true, structured: "none"}'
    assert found["quirks"].detail == f"write into the entry: {detail}"


async def test_a_server_that_does_not_answer_is_asked_once() -> None:
    found = await findings(status(401))
    assert list(found.values()) == [Finding("reply", Status.FAILED, "error (401 unauthorised)")]


async def test_a_failed_check_does_not_stop_the_others() -> None:
    def objection(body: dict[str, Any]) -> str | None:
        return "no such thing" if "seed" in body else None

    found = await findings(loopback.rejecting(objection))
    assert found["seed"] == Finding("seed", Status.FAILED, "error (http 400)")
    assert found["json schema"].status is Status.NO


async def test_any_backend_can_be_checked() -> None:
    found = await check_model(ScriptedModel("script", lambda _: "rice"))
    assert tuple(f.check for f in found) == CHECKS


@pytest.fixture
def command(capsys: pytest.CaptureFixture[str]) -> Callable[..., Awaitable[tuple[int, str, str]]]:
    async def call(*arguments: str) -> tuple[int, str, str]:
        code = await asyncio.to_thread(run, ["models", "check", *arguments])
        return code, *capsys.readouterr()

    return call


async def test_the_command_prints_json_for_an_ad_hoc_entry(command: Any) -> None:
    async with serving(able) as server:
        code, out, _ = await command("--base-url", server.url, "--model", "m", "--json")
    assert code == 0
    assert [row["check"] for row in json.loads(out)] == [*CHECKS, "quirks", "context length"]


async def test_the_command_takes_an_entry_of_an_experiment_file(
    command: Any, tmp_path: Path
) -> None:
    async with serving(status(401)) as server:
        path = tmp_path / "e.yaml"
        path.write_text(
            f"models:\n  a: {{backend: openai, model: m, base_url: '{server.url}', retries: 0}}\n"
        )
        code, out, talked = await command("a", "--experiment", str(path))
        assert (code, len(server.bodies)) == (1, 1)
    assert out.splitlines()[1] == "reply\tfailed\terror (401 unauthorised)"
    assert talked == "1 of 1 checks could not be made\n"


WRONG: dict[str, tuple[str, tuple[str, ...], str]] = {
    "nothing named": ("", (), "name a model"),
    "no model": ("", ("--base-url", "http://h/v1"), "needs model"),
    "bad address": ("", ("--base-url", "h", "--model", "m"), "--base-url: must be an address"),
    "both": ("models: {}", ("a", "--model", "m"), "not both"),
    "no such entry": ("models: {gpt: {backend: local}}", ("gtp",), "did you mean 'gpt'"),
    "damaged entry": (
        "models:\n  a: {backend: openai, model: m}",
        ("a",),
        "e.yaml:2:6: backend openai needs base_url",
    ),
    "unknown key": ("models:\n  a: {backend: local, modell: m}", ("a",), "e.yaml:2:23"),
    "wrong key variable": (
        "",
        ("--model", "m", "--base-url", "http://h", "--api-key-env", "NOPE_"),
        "NOPE_ is not set",
    ),
}


@pytest.mark.parametrize(("text", "arguments", "message"), WRONG.values(), ids=WRONG.keys())
async def test_a_wrong_call_gets_one_message(
    command: Any, tmp_path: Path, text: str, arguments: tuple[str, ...], message: str
) -> None:
    if text:
        path = tmp_path / "e.yaml"
        path.write_text(text)
        arguments = (*arguments, "--experiment", str(path))
    code, out, talked = await command(*arguments)
    assert (code, out) == (2, "")
    assert message in talked
    assert "Traceback" not in talked


@pytest.mark.parametrize(
    ("body", "length"),
    [
        (b'{"data": [{"id": "m", "max_model_len": 8192}]}', 8192),
        (b'{"data": [{"id": "n", "max_model_len": 1000}, {"id": "m", "context_length": 300}]}', 300),
        (b'{"data": [{"id": "m", "meta": {"n_ctx_train": 131072}}]}', None),
        (b'{"data": [{"id": "m", "max_model_len": 0}]}', None),
        (b'{"data": [{"id": "m", "max_model_len": "8192"}]}', None),
        (b'{"data": [{"id": "n", "max_model_len": 8192}]}', None),
        (b'{"data": [7]}', None),
        (b'{"data": 7}', None),
        (b"[]", None),
        (b"<html>", None),
    ],
    ids=lambda value: value.decode() if isinstance(value, bytes) else "",
)  # fmt: skip
def test_the_context_length_in_a_list_of_models(body: bytes, length: int | None) -> None:
    assert listed_length(body, "m") == length
