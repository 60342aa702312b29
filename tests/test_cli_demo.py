"""The demo as a newcomer sees it: who takes part, then stage after stage, then what to do next."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from study_fixture import Terminal, terminal_in

SCRIPTED = "models.main={backend: scripted, options: {script: helpers}}"
PARTS = [
    "1 of 5  Conversations",
    "2 of 5  Checklists",
    "3 of 5  Answers",
    "4 of 5  Verdicts",
    "5 of 5  Framing",
]


@pytest.fixture
def terminal(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Terminal:
    return terminal_in(tmp_path, monkeypatch, capsys)


def records(terminal: Terminal, table: str) -> list[dict[str, str]]:
    path = terminal.folder / "runs" / "demo" / "records" / f"{table}.jsonl"
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


def test_everything_is_shown_once_and_in_order(terminal: Terminal) -> None:
    code, out, err = terminal("demo", "--set", SCRIPTED)
    assert code == 0
    order = [
        "far too small",
        "`main:` under",
        "Personas",
        *PARTS,
        "CCBench results",
        "do not quote them",
    ]
    places = [out.index(words) for words in order]
    assert places == sorted(places)
    assert [out.count(part) for part in PARTS] == [1] * 5
    cast = " ".join(out[out.index("Personas") : out.index(PARTS[0])].split())
    assert "maori-04 of the culture maori rejects maori_4: The person likes relatives" in cast
    for attempt in records(terminal, "attempts"):
        assert out.count(f"Session {attempt['id']},") == 1
    answers = re.findall(r"^Answer to (\S+), (\S+), for (\S+)$", out, re.MULTILINE)
    told = {(r["query"], r["setting"], r["persona"]) for r in records(terminal, "responses")}
    assert {(q, s, "-" if who == "all" else who) for q, s, who in answers} == told
    assert len(answers) == len(told) == 14
    assert "calls made, 0 answers were stored already" in err


def test_no_line_is_wider_than_the_terminal(
    terminal: Terminal, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "72")
    out = terminal("demo", "--set", SCRIPTED)[1]
    shown = out[out.index("Personas") : out.index("CCBench results")]
    assert max(map(len, shown.splitlines())) <= 72


def test_again_there_is_nothing_left_to_do(terminal: Terminal) -> None:
    terminal("demo", "--quiet", "--set", SCRIPTED)
    code, out, err = terminal("demo", "--set", SCRIPTED)
    assert code == 0
    assert "nothing left to do" in err
    assert PARTS[0] not in out
    assert "CCBench results" in out


def test_another_model_is_told_where_to_go(terminal: Terminal) -> None:
    """Whoever changes the one line and gives the same command again learns what to type."""
    terminal("demo", "--quiet", "--set", SCRIPTED)
    other = "models.main={backend: scripted, model: other, options: {script: helpers}}"
    code, _, err = terminal("demo", "--quiet", "--set", other)
    assert code == 2
    assert 'models.main.model: "" -> "other"' in err
    assert "--out DIR" in err
    assert "--fork runs/demo" in err
    assert terminal("demo", "--quiet", "--out", "runs/real", "--set", other)[0] == 0
