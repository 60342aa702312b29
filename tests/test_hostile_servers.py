"""What a server says in any place is shown as text: nothing acts on a terminal or in a report."""

from __future__ import annotations

import itertools
import re
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web

import loopback
from loopback import answer, served, status
from study_fixture import FAST, harbour, set_options, terminal_in

ESCAPES = "\x1b[2J\x1b]0;title\x07\x9b31m\u202e<script>alert(1)</script>[bold]x"
STEPS = [
    answer(None, refusal=ESCAPES),
    answer("Rice.", f"stop{ESCAPES}"),
    answer(ESCAPES, f"content_filter{ESCAPES}"),
    answer(ESCAPES, reasoning=ESCAPES),
    answer(ESCAPES, "length"),
    status(400, f"content management policy {ESCAPES}", code=f"content_filter{ESCAPES}"),
    status(400, f"max_tokens is not supported {ESCAPES}", param=ESCAPES),
    status(400, f"maximum context length is 8192 tokens {ESCAPES}", code=ESCAPES),
    status(402, f"insufficient_quota {ESCAPES}"),
    status(404, ESCAPES, type=ESCAPES),
    status(500, ESCAPES),
    loopback.raw(f"<html>{ESCAPES}".encode()),
]
COMMANDS = [
    ["status", "first"], ["status", "first", "--json"], ["results", "first"], ["results", "first", "--filter"],
    ["view", "first", "--plain"], ["view", "first", "harbour-01/s01", "--plain"],
]  # fmt: skip
_ACTS = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]")


def test_nothing_that_a_server_says_acts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    steps = itertools.cycle(STEPS)

    async def any_of(request: web.Request, body: dict[str, Any]) -> web.StreamResponse:
        return await next(steps)(request, body)

    harbour(tmp_path)
    terminal = terminal_in(tmp_path, monkeypatch, capsys)
    with served(any_of) as server:
        entry = {"backend": "openai", "model": "m", "base_url": server.url, "retries": 0}
        changes: dict[str, Any] = {"models.main": entry, "filter.policy": "report_only"}
        changes |= {"history.domain_sessions": 3, "limits.alike": 1000, "limits.calls": 60}
        options = set_options({**FAST, **changes})
        printed = [terminal("run", "first", *options), terminal("run", "first", *options)]
        place = [f"--base-url={server.url}", "--model=m"]
        steps = itertools.cycle([answer(f"one two three {ESCAPES}", reasoning=ESCAPES)])
        printed.append(terminal("models", "check", *place))
        assert len(server.bodies) > 2 * len(STEPS)
    printed += [terminal(*words) for words in COMMANDS]
    assert not [err for code, _, err in printed if code not in {0, 1}]
    shown = "".join(out + err for _, out, err in printed)
    assert not _ACTS.search(shown.replace("\r", ""))
    assert "\\u001b[2J" in shown  # it was there to be shown
    assert terminal("report", "first", "-o", "report.html")[0] in {0, 1}
    page = (tmp_path / "report.html").read_text(encoding="utf-8")
    assert "<script>alert" not in page
    assert not _ACTS.search(page)
