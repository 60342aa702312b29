"""A key in the environment stays there, wherever a server repeats it."""

from __future__ import annotations

import asyncio
import os
import sys
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web

import loopback
from habitus.models import Opening, open_model
from habitus.store import RunDir
from loopback import KEY, answer, ask, completion, raw, serving
from study_fixture import FAST, harbour, set_options

ENGINE = Path(__file__).parents[1] / "engine"
LETTERS = "sk-only-letters-and-dashes"  # could pass for the code of an error
ESCAPED = "".join(f"\\u{ord(c):04x}" for c in KEY)


def echoes(key: str) -> dict[str, loopback.Step]:
    """Every place of an answer where a server may repeat the key."""
    spelt = completion({"content": "KEY"}).replace(b"KEY", ESCAPED.encode())
    return {
        "text": answer(f"Your key is {key}."),
        "text in escapes": raw(spelt),
        "think block": answer(f"<think>{key}</think>Rice."),
        "unfinished": answer(f"<think>{key}"),
        "reasoning": answer("Rice.", reasoning=f"With {key} I may."),
        "refusal": answer(None, refusal=f"{key} may not ask this."),
        "refusal that is cut": answer(None, refusal="x" * 185 + key),
        "finish reason": answer("Rice.", f"stop {key}"),
        "error text": loopback.status(404, f"nothing for {key}"),
        "error text that is cut": loopback.status(404, "x" * 3985 + key),
        "error code": loopback.status(403, "safety system", code=key),
        "error of another form": raw(b'{"detail": {"headers": ["Bearer %b"]}}' % key.encode(), 400),
        "no JSON": raw(b"<html>" + key.encode()),
        "no JSON that is cut": raw(b"x" * 1990 + key.encode()),
        "unauthorised": loopback.status(401, f"bad key {key}"),
    }


@pytest.mark.parametrize("key", [KEY, LETTERS])
@pytest.mark.parametrize("place", echoes(""))
async def test_a_key_that_a_server_repeats_is_in_no_reply(key: str, place: str) -> None:
    async with serving(echoes(key)[place]) as server:
        entry = server.entry(retries=0)
        model = open_model("m", entry, Opening(environ={"KEY": key}, clock=server.clock))
        server.opened.append(model)
        reply = await model.complete(ask())
    assert server.headers[0]["Authorization"] == f"Bearer {key}"
    assert key[:9] not in repr(reply)


@pytest.mark.parametrize("word", ["EMPTY", "none", "ollama"])
async def test_a_word_for_no_key_is_left_in_answers(word: str) -> None:
    async with serving(answer(f"The {word} bowl.")) as server:
        model = open_model("m", server.entry(), Opening(environ={"KEY": word}, clock=server.clock))
        server.opened.append(model)
        assert (await model.complete(ask())).text == f"The {word} bowl."


async def test_a_key_is_in_no_file_of_a_run_and_in_nothing_printed(tmp_path: Path) -> None:
    steps = list(echoes(KEY).values())
    count = iter(range(10**6))

    async def any_echo(request: web.Request, body: dict[str, Any]) -> web.StreamResponse:
        return await steps[next(count) % len(steps)](request, body)

    harbour(tmp_path)
    async with serving(any_echo) as server:
        entry = server.entry(retries=0).model_dump(mode="json", exclude_defaults=True)
        changes = set_options({**FAST, "models.main": entry, "filter.policy": "report_only"})
        printed = await habitus(tmp_path, "run", "first", *changes)
        printed += await habitus(tmp_path, "status", "first")
        printed += await habitus(tmp_path, "results", "first")
        assert len(server.bodies) > len(steps)
    assert b"without a usable answer" in printed
    assert KEY.encode() not in printed
    files = [path for path in (tmp_path / "runs").rglob("*") if path.is_file()]
    assert len(files) > 5
    assert not [path for path in files if KEY.encode() in path.read_bytes()]
    with RunDir.open(tmp_path / "runs" / "first", write=False) as opened:
        calls = [str(call) for call in opened.calls.iterate()]
    assert len(calls) > len(steps)
    assert not [call for call in calls if KEY[:9] in call]


async def habitus(folder: Path, *arguments: str) -> bytes:
    """What a command prints, given in a process of its own with the key in its environment."""
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-m", "habitus", *arguments,
        cwd=folder, env={**os.environ, "PYTHONPATH": str(ENGINE), "KEY": KEY},
        stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.STDOUT,
    )  # fmt: skip
    printed, _ = await process.communicate()
    return printed
