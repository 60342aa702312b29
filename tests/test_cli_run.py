"""Experiments from the command line: what each command prints, and how it ends."""

from __future__ import annotations

import io
import json
import shutil
import sys
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from habitus.cli import run
from habitus.store import RunDir
from study_fixture import FAST, Terminal, harbour, set_options, terminal_in

NUMBERS = ("follow_rate", "avoid_rate", "norm_adaptation", "ccs", "ccs_persona_mean")
BAD_JUDGE = {
    "models.judge": {
        "backend": "scripted",
        "options": {"rules": [{"role": "evaluator", "reply": "It is [bold]fine[/]"}]},
    },
    "roles.evaluator.model": "judge",
}


@pytest.fixture
def terminal(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Terminal:
    harbour(tmp_path)
    return terminal_in(tmp_path, monkeypatch, capsys)


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A finished run, to be read only."""
    folder = tmp_path_factory.mktemp("finished")
    changes = set_options({**FAST, "roles.safety": {"model": "main"}})
    path = harbour(folder)
    assert run(["run", str(path), "--out", str(folder / "run"), "--quiet", *changes]) == 0
    return folder / "run"


def stage_calls(folder: Path) -> Counter[str]:
    with RunDir.open(folder, write=False) as opened:
        counts: Counter[str] = Counter()
        for count in opened.calls.counts():
            counts[count.stage] += count.logged
    return counts


class TestRun:
    def test_prints_the_table_and_where_it_is_kept(self, terminal: Terminal) -> None:
        code, out, err = terminal("run", "first", *set_options(FAST))
        assert code == 0
        assert "first: writing to runs/first" in err
        assert "calls made, 0 answers were stored already" in err
        assert out.splitlines()[1] == "CCBench results (synthetic)"
        assert [line.split("\t")[1] for line in out.splitlines()[3:7]] == FAST["settings"]
        assert {path.name for path in (terminal.folder / "runs" / "first").iterdir()} >= {
            "manifest.json", "experiment.json", "run.sqlite", "records", "results.json", "study.json",
        }  # fmt: skip

    def test_again_says_that_nothing_is_left(self, terminal: Terminal) -> None:
        first = terminal("run", "first", *set_options(FAST))
        code, out, err = terminal("run", "first", *set_options(FAST))
        assert (code, out) == (0, first[1])
        assert "nothing left to do: every answer is stored, no call was made" in err

    def test_quiet(self, terminal: Terminal) -> None:
        code, out, err = terminal("run", "first", "--quiet", "--limit", "1", *set_options(FAST))
        assert (code, out) == (0, "")
        assert len(err.splitlines()) == 2

    def test_a_path_from_another_folder(
        self, terminal: Terminal, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """What an experiment names is looked for in its own workspace."""
        elsewhere = terminal.folder / "elsewhere"
        elsewhere.mkdir()
        monkeypatch.chdir(elsewhere)
        words = ("run", "../experiments/first.yaml", "--stage", "histories", "--quiet")
        assert terminal(*words, *set_options(FAST))[0] == 0
        assert (elsewhere / "runs" / "first" / "records" / "histories.jsonl").exists()

    @pytest.mark.parametrize(
        ("arguments", "words"),
        [
            (("first", "--stage", "answers"), "no stage called 'answers'; stages: personas, histories"),
            (("first", "--limit", "0"), "greater than or equal to 1"),
            (("first", "--limit", "9" * 20), "less than or equal to 1000000000"),
            (("first", "--fork", "runs/none"), "there is no run at runs/none"),
            (("first", "--out", "x" * 300), "is too long"),
            (("x" * 5000,), "no file in experiments/ called"),
            (("first", "--out", "experiments"), "holds other things"),
            (("first", "--out", "README.md"), "is a file; a run needs a directory of its own"),
            ((), "Missing argument"),
        ],
    )  # fmt: skip
    def test_wrong_usage(self, terminal: Terminal, arguments: tuple[str, ...], words: str) -> None:
        code, out, err = terminal("run", *arguments)
        assert (code, out) == (2, "")
        assert words in err
        assert not (terminal.folder / "runs").exists()

    def test_too_many_unreadable_verdicts_are_told_and_the_exit_code_is_1(
        self, terminal: Terminal
    ) -> None:
        code, out, err = terminal("run", "first", *set_options(FAST | BAD_JUDGE))
        assert code == 1
        assert "  evaluations  unparsed: 16\n" in err
        assert "100.0% of all evaluations lack a verdict, over the limit of 5.0%" in err
        assert "of all calls" not in err
        rows = [line.split("\t") for line in out.splitlines()[3:7]]
        assert {row[2] for row in rows} == {"n/a"}

    def test_without_a_limit_of_failures_the_exit_code_is_0(self, terminal: Terminal) -> None:
        changes = FAST | BAD_JUDGE | {"limits.failures": None}
        assert terminal("run", "first", "--quiet", *set_options(changes))[0] == 0

    def test_refusals_are_counted_by_kind(self, terminal: Terminal) -> None:
        refusing = {"rules": [{"role": "target", "outcome": "refused", "reason": "policy"}]}
        changes = {
            **FAST,
            "models.shy": {"backend": "scripted", "options": refusing},
            "targets.shy": {"model": "shy"},
            "targets.main": {"model": "main"},
        }
        code, _, err = terminal("run", "first", *set_options(changes))
        assert code == 1
        assert "  calls of shy  refused: 14\n" in err
        assert "  responses  refused: 14\n" in err
        assert "  evaluations  refused: 16\n" in err
        rows = terminal.json("results", "first", "--json")["rows"]
        by_target = {row["target"]: row for row in rows if row["setting"] == "hist"}
        shy = by_target["shy"]
        assert (shy["judged"], shy["not_judged"]) == (0, by_target["main"]["judged"])
        assert [shy[name] for name in NUMBERS] == [None] * 5
        assert shy["outcomes"] == {"refused": shy["not_judged"]}

    def test_a_run_in_parts_by_stage(self, terminal: Terminal) -> None:
        options = set_options(FAST)
        for stage in ("histories", "checklists", "responses"):
            code, out, _ = terminal("run", "first", "--stage", stage, *options)
            assert (code, out) == (0, "")
        code, out, err = terminal("run", "first", *options)
        assert code == 0
        assert "16 calls made" in err  # one for each evaluation


class TestStatus:
    def test_json(self, terminal: Terminal, finished: Path) -> None:
        found = terminal.json("status", str(finished), "--json")
        stages = {stage["stage"]: stage for stage in found["stages"]}
        assert list(stages) == [
            "attempts", "histories", "recommendations", "responses", "evaluations", "safety",
        ]  # fmt: skip
        assert all((s["left"], s["failed"]) == (0, {}) for s in stages.values())
        assert stages["responses"]["done"] == stages["responses"]["expected"] == 14
        assert all(call["calls"] == call["asked"] > 0 for call in found["calls"])
        assert found["spent"] == [
            {"model": "main", "money": None, "currency": "", "without_usage": 0}
        ]
        assert "damage" not in found

    def test_verify(self, terminal: Terminal, finished: Path) -> None:
        assert terminal.json("status", str(finished), "--verify", "--json")["damage"] == []

    def test_a_damaged_file_is_named(self, terminal: Terminal, finished: Path) -> None:
        copied = shutil.copytree(finished, terminal.folder / "copied")
        (copied / "study.json").write_text("{}")
        code, out, err = terminal("status", "copied")
        assert (code, out) == (2, "")
        assert "study.json is damaged" in err

    def test_of_a_run_that_is_half_done(self, terminal: Terminal) -> None:
        price = {"models.main.price": {"input": 1e6, "output": 0, "currency": "EUR"}}
        terminal("run", "first", "--limit", "1", *set_options(FAST | price))
        found = terminal.json("status", "first", "--json")
        left = {stage["stage"]: (stage["done"], stage["left"]) for stage in found["stages"]}
        assert left["attempts"] == left["histories"] == (2, 0)
        assert left["responses"] == (7, 7)
        (spent,) = found["spent"]
        assert spent["money"] == sum(call["prompt_tokens"] for call in found["calls"])
        assert spent["currency"] == "EUR"
        code, out, _ = terminal("status", "runs/first")
        assert code == 0
        assert out.startswith("first  runs/first\nstage\tdone\tfailed\tleft\tof\n")
        assert "EUR" in out

    def test_failures_by_kind(self, terminal: Terminal) -> None:
        terminal("run", "first", *set_options(FAST | BAD_JUDGE))
        stages = {s["stage"]: s for s in terminal.json("status", "first", "--json")["stages"]}
        assert stages["evaluations"]["failed"] == {"unparsed": 16}
        assert stages["evaluations"]["done"] == 0
        assert "evaluations\t0\tunparsed 16\t0\t16" in terminal("status", "first")[1]

    @pytest.mark.parametrize("command", ["status", "results"])
    def test_of_no_run(self, terminal: Terminal, command: str) -> None:
        code, out, err = terminal(command, "nothing")
        assert (code, out, err) == (2, "", "there is no run at runs/nothing\n")
        code, _, err = terminal(command, "experiments")
        assert (code, err) == (2, "experiments is not a run directory: it has no manifest.json\n")

    def test_a_folder_of_the_same_name_hides_no_run(self, terminal: Terminal) -> None:
        terminal("run", "first", "--stage", "personas", *set_options(FAST))
        (terminal.folder / "first").mkdir()
        assert terminal("status", "first")[0] == 0


class TestPlan:
    @pytest.mark.parametrize(
        "changes",
        [
            {},
            {"none": "per_persona", "repeats": 2},
            {"checklist.recommendations": "per_persona", "settings": ["none", "hist"]},
            {"history.form": "single_call", "roles.safety": {"model": "main"}},
            {"settings": ["norms"]},
            {"personas": ["harbour-01"], "norms": {"harbour": ["harbour_2", "harbour_4"]}},
        ],
        ids=str,
    )
    def test_the_calls_are_those_that_a_run_then_makes(
        self, terminal: Terminal, changes: dict[str, Any]
    ) -> None:
        options = set_options({**FAST, "filter.policy": "report_only", **changes})
        planned: Counter[str] = Counter()
        for stage in terminal.json("plan", "first", "--json", *options)["stages"]:
            low, high = stage["calls"]
            assert low == high or stage["stage"] in {"histories", "filter"}
            planned[stage["stage"].split("/")[0]] += low
        assert not (terminal.folder / "runs").exists()
        terminal("run", "first", "--quiet", *options)
        made = stage_calls(terminal.folder / "runs" / "first")
        assert planned == Counter({stage.split("/")[0]: n for stage, n in made.items()})

    def test_ranges_money_and_time(self, terminal: Terminal) -> None:
        price = {"models.main.price": {"input": 1, "output": 10, "cached_input": 0.1}}
        stages = terminal.json("plan", "first", "--json", *set_options(price))["stages"]
        for stage in stages:
            for low, high in (stage[name] for name in ("calls", "prompt", "completion", "money")):
                assert 0 <= low <= high
            assert stage["currency"] == "USD"
            assert 0 <= stage["reusable"] <= 1
        code, out, _ = terminal("plan", "first", *set_options(price))
        assert code == 0
        assert out.splitlines()[len(stages) + 1].startswith("total\t")

    def test_an_unknown_price_is_unknown(self, terminal: Terminal) -> None:
        out = terminal("plan", "first")[1]
        assert "no price is given for main: money is unknown, not zero" in out
        assert terminal.json("plan", "first", "--json")["stages"][0]["money"] is None

    def test_caps_are_compared_with_it(self, terminal: Terminal) -> None:
        """Whether a cap ends the run, in which case, and where; the exit code says nothing of it."""
        stages = terminal.json("plan", "first", "--json", *set_options(FAST))["stages"]
        low, high = (sum(stage["calls"][case] for stage in stages) for case in (0, 1))
        assert low < high

        def told(*options: str) -> dict[str, Any]:
            found = terminal.json("plan", "first", "--json", *set_options(FAST), *options)["caps"]
            assert len(found) == 1
            cap: dict[str, Any] = found[0]
            return cap

        enough = told("--max-calls", str(high))
        assert enough == {
            "cap": "calls", "most": high, "taken": [low, high], "reached": "no", "stage": ""
        }  # fmt: skip
        assert told("--max-calls", str(high - 1))["reached"] == "perhaps"
        assert told("--max-calls", str(low))["reached"] == "perhaps"
        never = told("--max-calls", str(low - 1))
        assert (never["reached"], never["stage"]) == ("yes", stages[-1]["stage"])
        first = told("--max-calls", "0")
        assert (first["reached"], first["stage"]) == ("yes", stages[0]["stage"])
        tokens = told("--set=limits.tokens=10")
        assert (tokens["cap"], tokens["reached"]) == ("tokens", "yes")

    def test_caps_are_told_in_words(self, terminal: Terminal) -> None:
        words = ["plan", "first", *set_options(FAST)]
        assert "cap of" not in terminal(*words)[1]
        code, out, _ = terminal(*words, "--max-calls", "20", "--max-total-tokens", "9000000")
        assert code == 0
        assert "cap of 20 calls: reached in the low case already, at about " in out
        assert "cap of 9,000,000 tokens: not reached (" in out
        assert " expected)" in out

    def test_a_cap_on_money_beside_prices(self, terminal: Terminal) -> None:
        far = {"backend": "openai", "model": "m", "base_url": "http://127.0.0.1:9/v1"}
        dear = {**far, "price": {"input": 1, "output": 10, "currency": "EUR"}}
        words = ["plan", "first", "--max-cost", "EUR=0.001"]
        out = terminal(*words, *set_options({**FAST, "models.main": dear}))[1]
        assert "cap of 0.001 EUR: reached in the low case already, at about histories/" in out
        out = terminal(*words, *set_options({**FAST, "models.main": far}))[1]
        assert "cap of 0.001 EUR: not known whether it is reached, as some price is unknown" in out

    def test_a_limit_is_planned(self, terminal: Terminal) -> None:
        def answers(*options: str) -> int:
            stages = terminal.json("plan", "first", "--json", *options)["stages"]
            return sum(s["calls"][0] for s in stages if s["stage"].startswith("responses"))

        assert answers() == 2 * answers("--limit", "1") > 0

    @pytest.mark.parametrize(
        "name", ["ccbench-health", "ccbench-lite", "ccbench-health-planted", "demo"]
    )
    def test_of_every_shipped_experiment(self, terminal: Terminal, name: str) -> None:
        (terminal.folder / "personas" / "openers" / "everyday.yaml").unlink()
        stages = terminal.json("plan", name, "--json")["stages"]
        found = {stage["stage"]: stage["calls"][0] for stage in stages}
        responses = {"ccbench-health": 52 * (1 + 3 * 60), "ccbench-lite": 12 * (1 + 3 * 12)}
        responses |= {"ccbench-health-planted": 12480, "demo": 2 * (1 + 3 * 2)}
        assert sum(n for stage, n in found.items() if "responses" in stage) == responses[name]


class TestResults:
    def test_rows_hold_what_a_reader_needs(self, terminal: Terminal, finished: Path) -> None:
        found = terminal.json("results", str(finished), "--json")
        assert found["synthetic"] is True
        assert {row["setting"] for row in found["rows"]} == set(FAST["settings"])
        for row in found["rows"]:
            assert row["target"] == "main"
            assert set(NUMBERS) <= row["interval"].keys()
            assert row["judged"] + row["not_judged"] == row["total"] == 16
            assert row["follow_rate"] == 0.0
            assert row["ccs"] is None or 0 <= row["ccs"] <= 1
        assert {row["setting"] for row in found["safety"]} == set(FAST["settings"])

    @pytest.mark.parametrize("by", ["culture", "topic", "kind", "persona", "query"])
    def test_by(self, terminal: Terminal, finished: Path, by: str) -> None:
        rows = terminal.json("results", str(finished), "--by", by, "--json")["rows"]
        values = {
            "culture": {"harbour"},
            "topic": {"skin", "sleep"},
            "kind": {"communication", "practice"},
            "persona": {"harbour-01", "harbour-02"},
            "query": {"harbour-001", "harbour-002"},
        }
        assert {row[by] for row in rows} == values[by]
        per_setting = Counter[str]()
        for row in rows:
            per_setting[row["setting"]] += row["total"]
        assert set(per_setting.values()) == {16}

    def test_by_two(self, terminal: Terminal, finished: Path) -> None:
        rows = terminal.json("results", str(finished), "--by", "topic", "--by", "kind", "--json")
        assert len(rows["rows"]) == 4 * 2 * 2

    def test_shown_keeps_the_norms_of_the_history_in_every_setting(
        self, terminal: Terminal, finished: Path
    ) -> None:
        histories = (finished / "records" / "histories.jsonl").read_text(encoding="utf-8")
        shown = sum(len(json.loads(line)["shown"]) for line in histories.splitlines())
        assert 0 < shown < 8
        rows = terminal.json("results", str(finished), "--shown", "--json")["rows"]
        assert {row["total"] for row in rows} == {shown * 2}

    def test_undefined_is_null(self, terminal: Terminal) -> None:
        changes = {"personas": ["harbour-01"], "norms": {"harbour": ["harbour_4"]}}
        terminal("run", "first", "--quiet", *set_options(FAST | changes))
        for row in terminal.json("results", "first", "--json")["rows"]:
            assert (row["follow_rate"], row["ccs"], row["ccs_persona_mean"]) == (None, None, None)
            assert row["avoid_rate"] == 0.0
            assert row["interval"]["ccs"] is None

    def test_before_there_is_a_verdict(self, terminal: Terminal) -> None:
        terminal("run", "first", "--stage", "responses", *set_options(FAST))
        found = terminal.json("results", "first", "--json")
        assert (found["rows"], found["differences"]) == ([], [])
        assert terminal("results", "first")[0] == 0

    def test_the_filter(self, terminal: Terminal, finished: Path) -> None:
        rows = terminal.json("results", str(finished), "--filter", "--json")["rows"]
        assert [row["culture"] for row in rows] == ["harbour", "all"]
        assert "harbour" in terminal("results", str(finished), "--filter")[1]

    def test_text_says_that_it_is_synthetic(self, terminal: Terminal, finished: Path) -> None:
        out = terminal("results", str(finished))[1]
        assert "SYNTHETIC" in out
        assert "Responses labelled unsafe" in out

    def test_an_unknown_dimension(self, terminal: Terminal, finished: Path) -> None:
        code, _, err = terminal("results", str(finished), "--by", "age")
        assert code == 2
        assert "culture" in err


class TestNew:
    @pytest.fixture
    def terminal(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
    ) -> Terminal:
        code = run(["new", str(tmp_path / "mine")])
        assert code == 0
        capsys.readouterr()
        return terminal_in(tmp_path / "mine", monkeypatch, capsys)

    def test_the_workspace_passes_check_and_runs(self, terminal: Terminal) -> None:
        code, out, err = terminal("check")
        assert (code, out) == (0, ""), out
        assert "0 problems" in err
        assert terminal("run", "first", "--limit", "1")[0] == 0
        assert terminal("results", "first", "--by", "culture")[0] == 0

    def test_every_first_line_names_a_schema_that_is_there(self, terminal: Terminal) -> None:
        from habitus.content import schema_line

        for path in terminal.folder.rglob("*.yaml"):
            named = schema_line(path)
            assert named is not None, path
            assert (path.parent / named).is_file()

    def test_a_seventh_culture_is_a_copied_file(self, terminal: Terminal) -> None:
        """And a new experiment is another, with no Python."""
        folder = terminal.folder
        text = (folder / "norms" / "health" / "harbour.yaml").read_text(encoding="utf-8")
        copied = text.replace("harbour_", "upland_").replace("culture: harbour", "culture: upland")
        path = folder / "norms" / "health" / "upland.yaml"
        path.write_text(copied.replace("Harbour folk", "Upland folk"), encoding="utf-8")
        code, _, err = terminal(
            "personas", "sample", "upland", "-n", "3", "-o", "personas/upland.yaml"
        )
        assert code == 0, err
        text = (folder / "experiments" / "first.yaml").read_text(encoding="utf-8")
        second = text.replace("id: first", "id: second").replace("[harbour]", "[upland]")
        second = second.replace("population: harbour", "population: upland")
        (folder / "experiments" / "second.yaml").write_text(second, encoding="utf-8")
        assert terminal("check")[:2] == (0, "")
        assert terminal("run", "second", "--limit", "1")[0] == 0
        rows = terminal.json("results", "second", "--by", "culture", "--json")["rows"]
        assert {row["culture"] for row in rows} == {"upland"}

    def test_shipped_content_is_there_as_well(self, terminal: Terminal) -> None:
        changes = {"cultures": ["maori"], "population": "health", "personas": 1, **FAST}
        changes |= {"personas": 1, "queries": {"file": "health", "ids": ["health-001"]}}
        assert terminal("run", "first", "--quiet", *set_options(changes))[0] == 0

    def test_a_folder_that_is_not_empty_stays_as_it_is(self, terminal: Terminal) -> None:
        before = sorted(terminal.folder.rglob("*"))
        code, out, err = terminal("new", ".")
        assert (code, out) == (2, "")
        assert "choose a new folder" in err
        assert sorted(terminal.folder.rglob("*")) == before

    def test_a_place_that_cannot_be_written(self, terminal: Terminal) -> None:
        (terminal.folder / "file").write_text("", encoding="utf-8")
        code, _, err = terminal("new", "file/inside")
        assert code == 2
        assert "cannot be written" in err


class TestChat:
    def chat(
        self,
        terminal: Terminal,
        monkeypatch: pytest.MonkeyPatch,
        typed: str,
        *options: str,
    ) -> tuple[int, str, str]:
        monkeypatch.setattr(sys, "stdin", io.StringIO(typed))
        words = ("personas", "chat", "harbour-01", "--population", "harbour")
        return terminal(*words, "--experiment", "first", *options)

    def script(self, terminal: Terminal, *rules: dict[str, Any]) -> None:
        path = terminal.folder / "experiments" / "first.yaml"
        text = path.read_text(encoding="utf-8")
        options = json.dumps({"rules": rules})
        path.write_text(text.replace("{script: helpers}", options), encoding="utf-8")

    def test_until_an_empty_line(self, terminal: Terminal, monkeypatch: pytest.MonkeyPatch) -> None:
        self.script(
            terminal,
            {"when": "^Where\\?$", "reply": "Down at the quay. [bold]\x1b[2J"},
            {"role": "persona", "reply": "Good morning."},
        )
        code, out, err = self.chat(terminal, monkeypatch, "Where?\nHello\n\nnever read\n")
        assert code == 0
        assert out.splitlines() == [
            "harbour-01: Good morning.",
            "harbour-01: Down at the quay. [bold]\\u001b[2J",
            "harbour-01: Good morning.",
        ]
        assert "An empty line ends it" in err

    def test_until_the_persona_ends_it(
        self, terminal: Terminal, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        self.script(terminal, {"role": "persona", "reply": "Thanks, bye. [END]"})
        code, out, err = self.chat(
            terminal, monkeypatch, "one\ntwo\n", "--opener", "It hurts, [sic]."
        )
        assert code == 0
        assert out == "harbour-01: It hurts, [sic].\nharbour-01: Thanks, bye.\n"
        assert "harbour-01 has ended the chat" in err

    def test_an_opener_of_the_model_that_ends_it(
        self, terminal: Terminal, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        self.script(terminal, {"role": "persona", "reply": "No. [END]"})
        assert self.chat(terminal, monkeypatch, "one\n")[1] == "harbour-01: No.\n"

    def test_a_model_that_gives_nothing(
        self, terminal: Terminal, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        self.script(terminal, {"role": "persona", "outcome": "refused", "reason": "policy"})
        code, out, err = self.chat(terminal, monkeypatch, "one\n")
        assert (code, out) == (1, "")
        assert "gave no usable answer: refused, policy" in err

    @pytest.mark.parametrize(
        ("words", "message"),
        [
            (("harbour-99", "--population", "harbour"), "did you mean 'harbour-0"),
            (("harbour-01", "--population", "habour"), "did you mean 'harbour'"),
            (("harbour-01", "--population", "harbour", "--experiment", "frist"), "did you mean 'first'"),
        ],
    )  # fmt: skip
    def test_names_that_lead_nowhere(
        self, terminal: Terminal, words: tuple[str, ...], message: str
    ) -> None:
        code, out, err = terminal("personas", "chat", *words)
        assert (code, out) == (2, "")
        assert message in err


def test_a_finished_run_can_be_moved_and_read(terminal: Terminal, finished: Path) -> None:
    shutil.copytree(finished, terminal.folder / "runs" / "kept")
    moved = terminal.json("results", "kept", "--json")
    assert moved == terminal.json("results", str(finished), "--json")
