"""The README is what a newcomer goes by: its commands exist, its examples work, its links lead on."""

from __future__ import annotations

import re
import shlex
from pathlib import Path
from typing import Any

import pytest

from habitus.cli import run
from habitus.cli.root import root
from habitus.content import read_yaml
from habitus.experiments import resolve
from habitus.models import ModelEntry
from habitus.norms import load_culture, norm_states
from study_fixture import Terminal, terminal_in

ROOT = Path(__file__).resolve().parents[1]
README = (ROOT / "README.md").read_text(encoding="utf-8")
MARKDOWN = sorted(
    path
    for folder in ("", "docs", "norms", "personas", "checklists", "judges", "experiments")
    for path in (ROOT / folder).glob("*.md")
)
WORKSPACE = ROOT / "experiments" / "workspace" / "README.md"


def yaml_blocks(text: str) -> list[str]:
    return re.findall(r"^```yaml\n(.*?)^```$", text, re.DOTALL | re.MULTILINE)


def command_lines(path: Path) -> list[str]:
    """Every command of habitus in a text: in indented lines and between backticks."""
    text = path.read_text(encoding="utf-8")
    lines = re.findall(r"^    (\S.*)$", text, re.MULTILINE) + re.findall(r"`([^`\n]+)`", text)
    parts = [part.split("#")[0].strip() for line in lines for part in line.split("&&")]
    return sorted({part for part in parts if part.startswith("habitus ")})


COMMANDS = [
    pytest.param(command, id=f"{path.relative_to(ROOT)}: {command}")
    for path in (*MARKDOWN, WORKSPACE)
    for command in command_lines(path)
]


@pytest.mark.parametrize("command", COMMANDS)
def test_a_command_and_its_options_exist(command: str) -> None:
    words = shlex.split(re.sub(r"<(\w+)>", r"\1", command))[1:]
    found: Any = root()
    context = found.make_context("habitus", [], resilient_parsing=True)
    while words and hasattr(found, "resolve_command") and not words[0].startswith("-"):
        name = words[0]
        _, found, words = found.resolve_command(context, words)
        assert found is not None, f"no command {name}"
        context = found.make_context("habitus", [], resilient_parsing=True)
    options = {name for option in found.params for name in option.opts}
    used = {word.partition("=")[0] for word in words if word.startswith("-")}
    assert used <= options | {"--help", "--install-completion"}


@pytest.mark.parametrize("wrong", ["habitus rnu first", "habitus run first --stages hist"])
def test_a_command_that_is_not_there_is_found_out(wrong: str) -> None:
    assert len(COMMANDS) > 40
    with pytest.raises(AssertionError):
        test_a_command_and_its_options_exist(wrong)


def test_the_two_commands_stand_on_top() -> None:
    first = [line.split("#")[0].strip() for line in README.splitlines() if line.startswith("    ")]
    assert first[:2] == ["make demo", "make test"]
    targets = re.findall(
        r"^([a-z-]+):", (ROOT / "Makefile").read_text(encoding="utf-8"), re.MULTILINE
    )
    assert {"demo", "test"} <= set(targets)


class TestANewCulture:
    """The section, done as it is printed: one file, one copy of another, no Python."""

    @pytest.fixture
    def culture(self) -> str:
        return next(block for block in yaml_blocks(README) if "\nculture:" in block)

    @pytest.fixture
    def study(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
    ) -> Terminal:
        monkeypatch.chdir(tmp_path)
        assert run(["new", "study"]) == 0
        return terminal_in(tmp_path / "study", monkeypatch, capsys)

    def test_the_file_has_under_40_lines_and_loads_as_printed(
        self, culture: str, study: Terminal
    ) -> None:
        assert len(culture.splitlines()) < 40
        path = study.folder / "norms" / "health" / "valley.yaml"
        assert not path.exists(), "the example must not collide with the workspace's own"
        path.write_text(culture, encoding="utf-8")
        schema = re.search(r"\$schema=(\S+)", culture)
        assert schema
        assert (path.parent / schema[1]).is_file()
        loaded = load_culture(path)
        assert {str(norm.kind) for norm in loaded.norms} == {"communication", "practice"}
        states = norm_states(loaded, {"thrift": 1, "neighbours": -1, "plainness": -1})
        assert states == {"valley_1": -1, "valley_2": 1, "valley_3": 0}

    def test_personas_and_a_run_on_it(self, culture: str, study: Terminal) -> None:
        (study.folder / "norms" / "health" / "valley.yaml").write_text(culture, encoding="utf-8")
        assert study("check", "norms")[0] == 0
        assert "valley_3" in study("norms", "show", "valley")[1]
        sample = ("-n", "4", "--sampler", "balanced", "-o", "personas/valley.yaml")
        assert study("personas", "sample", "valley", *sample)[0] == 0
        experiment = (study.folder / "experiments" / "first.yaml").read_text(encoding="utf-8")
        changed = next(block for block in yaml_blocks(README) if "population: valley" in block)
        for line in changed.splitlines():
            key = line.partition(":")[0]
            experiment, n = re.subn(rf"^{key}:.*$", line, experiment, flags=re.MULTILINE)
            assert n == 1, key
        (study.folder / "experiments" / "valley.yaml").write_text(experiment, encoding="utf-8")
        code, _, err = study("check")
        assert (code, err) == (0, "11 files checked, 0 problems\n")
        assert study("run", "valley", "--limit", "1", "--set", "results.draws=100")[0] == 0
        rows = study.json("results", "valley", "--by", "persona", "--json")["rows"]
        assert {row["persona"] for row in rows} == {f"valley-0{n}" for n in range(1, 5)}


def test_every_line_for_a_model_is_a_valid_entry(tmp_path: Path) -> None:
    """The block of models, and each commented line of it in its turn."""
    block = next(block for block in yaml_blocks(README) if block.startswith("models:"))
    _, *lines = block.splitlines()
    assert len(lines) == 6
    backends = []
    for number, line in enumerate(lines):
        path = tmp_path / f"{number}.yaml"
        path.write_text("models:\n" + line.replace("# main:", "main:"), encoding="utf-8")
        entry = ModelEntry.model_validate(read_yaml(path).data["models"]["main"])
        backends.append(entry.backend)
    assert backends == ["local", "openai", "openai", "openai", "vllm", "local"]


def test_the_demo_names_the_same_line() -> None:
    study = resolve(ROOT / "experiments" / "demo.yaml", {})
    assert list(study.experiment.models) == ["main"]
    assert study.experiment.models["main"].backend == "local"


@pytest.mark.parametrize("path", MARKDOWN, ids=lambda path: str(path.relative_to(ROOT)))
def test_links_lead_to_files(path: Path) -> None:
    text = path.read_text(encoding="utf-8")
    links = [link for link in re.findall(r"\]\(([^)\s]+)\)", text) if "://" not in link]
    missing = [link for link in links if not (path.parent / link.partition("#")[0]).exists()]
    assert missing == []


def blocks(path: Path) -> list[str]:
    """The fenced texts of a page, in order."""
    text = path.read_text(encoding="utf-8")
    return re.findall(r"^```\w*\n(.*?)^```$", text, re.DOTALL | re.MULTILINE)


def keep(path: str, text: str) -> None:
    Path(path).parent.mkdir(parents=True, exist_ok=True)
    Path(path).write_text(text, encoding="utf-8")


def the_judge_of_judges_md() -> None:
    """``hedging``; the first block of the page shows its folder."""
    judge, prompt, examples = blocks(ROOT / "docs" / "judges.md")[1:]
    keep("judges/hedging/judge.yaml", judge)
    keep("judges/hedging/prompt.md", prompt)
    keep("judges/hedging/examples.yaml", examples)


def test_the_examples_of_the_docs_are_right(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    at = terminal_in(tmp_path, monkeypatch, capsys)
    the_judge_of_judges_md()
    (analysis,) = yaml_blocks((ROOT / "docs" / "analysis.md").read_text(encoding="utf-8"))
    keep("experiments/analyses/hedging.yaml", analysis)
    countries, topics, prompt = blocks(ROOT / "docs" / "corpora.md")
    keep("experiments/corpora/mine.yaml", countries)
    keep("judges/topics/judge.yaml", topics)
    keep("judges/topics/prompt.md", prompt)
    (model,) = blocks(ROOT / "docs" / "franz.md")
    keep("experiments/models/mine.yaml", model)
    code, _, err = at("check")
    assert (code, err) == (0, "6 files checked, 0 problems\n")


def test_rows_and_analysis_of_the_docs_go_together(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    at = terminal_in(tmp_path, monkeypatch, capsys)
    the_judge_of_judges_md()
    keep("hedging.yaml", *yaml_blocks((ROOT / "docs" / "analysis.md").read_text(encoding="utf-8")))
    rows = re.findall(
        r"^    (\{.*)$", (ROOT / "docs" / "franz.md").read_text("utf-8"), re.MULTILINE
    )
    keep("answers.jsonl", "\n".join(rows))
    model = "{backend: scripted, options: {script: helpers}}"
    judges = "positioning,hedging"
    assert at("judge", "answers.jsonl", "--model", model, "--judges", judges)[0] == 0
    code, out, _ = at("analyze", "answers-labels", "--analysis", "hedging.yaml")
    assert code == 0
    assert "north\t1\talpha?beta" in out
