"""Tables and notes on a terminal: they fit, and nothing in them is cut in the middle."""

from __future__ import annotations

import io
import re
from pathlib import Path

import pytest

from habitus.cli.output import print_note, print_table, program

COLUMNS = ["Target", "Setting", "Persona", "Follow", "n", "Adaptation", "n", "CCS", "bounds of CCS"]
ROW = ["small", "hist", "vietnamese-04", ".833 [.000, 1.000]", "1,012", ".750 [.000, 1.000]"]
ROW += ["2,024", ".741 [.000, 1.000]", ".100 to .900"]


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def drawn(width: int, monkeypatch: pytest.MonkeyPatch, rows: list[list[str]]) -> list[str]:
    monkeypatch.setenv("COLUMNS", str(width))
    monkeypatch.setenv("TERM", "xterm")
    stream = Terminal()
    print_table(COLUMNS, rows, keys=3, to=stream)
    plain = re.sub(r"\x1b\[[0-9;]*m", "", stream.getvalue())
    return [line.rstrip() for line in plain.splitlines() if line.strip()]


@pytest.mark.parametrize(("width", "parts"), [(160, 1), (100, 1), (80, 2), (60, 3)])
def test_a_table_fits_in_as_few_parts_as_can_be(
    width: int, parts: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    lines = drawn(width, monkeypatch, [ROW, ROW])
    assert max(map(len, lines)) <= width
    assert sum("Target" in line for line in lines) == parts
    assert sum(line.count("vietnamese-04") for line in lines) == 2 * parts
    assert sum(line.count("[.000, 1.000]") for line in lines) == 6


def test_a_count_stays_beside_what_it_counts(monkeypatch: pytest.MonkeyPatch) -> None:
    lines = drawn(60, monkeypatch, [ROW])
    heads = [re.split(r"\s{2,}", line.strip()) for line in lines if "Target" in line]
    assert [head[3:] for head in heads[:2]] == [["Follow", "n"], ["Adaptation", "n"]]


def test_a_table_without_rows_is_a_heading(monkeypatch: pytest.MonkeyPatch) -> None:
    assert drawn(160, monkeypatch, [])[0].split()[:2] == ["Target", "Setting"]


def test_words_are_broken_only_where_nothing_else_helps(monkeypatch: pytest.MonkeyPatch) -> None:
    lines = drawn(20, monkeypatch, [ROW])
    assert max(map(len, lines)) <= 20


def test_a_note_is_broken_between_words(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    text = "personas are resampled within their culture and norms are not " * 3
    monkeypatch.setenv("COLUMNS", "60")
    print_note(text)
    assert capsys.readouterr().out == f"- {text}\n"
    stream = Terminal()
    monkeypatch.setattr("sys.stdout", stream)
    print_note(text)
    first, *others = stream.getvalue().splitlines()
    assert first.startswith("- personas")
    assert others
    assert all(line.startswith("  ") and len(line) <= 60 for line in others)
    assert " ".join(line.strip() for line in (first, *others)) == f"- {text.strip()}"


@pytest.mark.parametrize(
    ("called", "on_path", "typed"),
    [
        ("work/.venv/bin/habitus", "work/.venv/bin", "habitus"),
        ("work/.venv/bin/habitus", "nothing", ".venv/bin/habitus"),
        ("work/.venv/bin/habitus", "usr/bin", ".venv/bin/habitus"),
        ("usr/bin/habitus", "nothing", "{folder}/usr/bin/habitus"),
        ("work/engine/habitus/__main__.py", "nothing", "habitus"),
    ],
)
def test_what_to_type_for_the_program(
    called: str, on_path: str, typed: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for folder in ("work/.venv/bin", "usr/bin"):
        (tmp_path / folder).mkdir(parents=True)
        (tmp_path / folder / "habitus").touch(0o755)
    monkeypatch.setattr("sys.argv", [str(tmp_path / called)])
    monkeypatch.setenv("PATH", str(tmp_path / on_path))
    monkeypatch.chdir(tmp_path / "work")
    assert program() == typed.format(folder=tmp_path)
