"""What a number rests on is said beside it: what was not asked yet, not checked, or stopped early."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from framing_fixture import analysed, rules
from habitus.cli.running import close_run
from habitus.experiments import RunRequest, View, run_experiment, run_results
from habitus.framing.frame import MISSING
from habitus.framing.loading import find_analysis
from habitus.framing.reading import read_labels
from habitus.labelling import label_outcomes
from habitus.models.recorded import Alike
from habitus.records import Outcome, Reply, Request
from habitus.running import RunSummary
from habitus.store import RunDir
from labels_made import POSITIONING, item, label, labelled_run
from study_fixture import (
    FAST,
    Answering,
    Terminal,
    failing,
    harbour,
    opening,
    set_options,
    study_of,
    terminal_in,
)

LEFT = "the run is not complete: still to be asked for"


@pytest.fixture
def terminal(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Terminal:
    harbour(tmp_path)
    return terminal_in(tmp_path, monkeypatch, capsys)


class TestRuns:
    @pytest.mark.parametrize("rule", ["exclude", "not_satisfied", "bounds"])
    def test_what_was_not_asked_yet_is_said_and_stands_in_no_number(
        self, terminal: Terminal, rule: str
    ) -> None:
        terminal("run", "first", "--quiet", "--limit", "1", *set_options(FAST))
        _, out, _ = terminal("results", "first", "--missing", rule)
        assert f"{LEFT} recommendations 8, responses 7, verdicts 32; " in out
        assert "whatever the rule for missing verdicts" in out
        found = json.loads(terminal("results", "first", "--missing", rule, "--json")[1])
        assert found["left"] == {"recommendations": 8, "responses": 7, "verdicts": 32}
        assert {(row["total"], row["not_judged"]) for row in found["rows"]} == {(8, 0)}
        _, out, _ = terminal("results", "first", "--table", "outcomes")
        assert LEFT in out
        terminal("run", "first", "--quiet", *set_options(FAST))
        assert LEFT not in terminal("results", "first", "--table", "all")[1]
        assert json.loads(terminal("results", "first", "--json")[1])["left"] == {}

    def test_sessions_kept_without_a_check_are_failures_and_show_nothing_that_is_known(
        self, tmp_path: Path
    ) -> None:
        """The policy that only reports keeps them: every number of the filter is then of nothing."""
        model = Answering(lambda r: "Fine." if r.context["role"] == "verifier" else None)
        study = study_of(tmp_path, {"filter.policy": "report_only"})
        summary = run_experiment(study, RunRequest(out=tmp_path / "run", opener=opening(model)))
        assert summary.failed_shares["checks"] == 1
        with RunDir.open(tmp_path / "run", write=False) as run:
            noted = run_results(run, View(shown=True)).notes
        assert any(
            "of 2 personas it is not known what they show (a session was not checked: 2)" in note
            for note in noted
        )

    def test_personas_without_a_whole_history_are_not_said_to_show_nothing(
        self, tmp_path: Path
    ) -> None:
        def script(request: Request) -> Reply | None:
            lost = request.context["role"] == "persona" and "harbour-01" in request.record
            return failing(Outcome.REFUSED) if lost else None

        study = study_of(tmp_path)
        request = RunRequest(out=tmp_path / "run", opener=opening(Answering(script)))
        assert "checks" not in run_experiment(study, request).failed_shares
        with RunDir.open(tmp_path / "run", write=False) as run:
            noted = run_results(run, View(shown=True)).notes
        assert any("(history not whole: 1)" in note for note in noted)

    def test_a_recommenders_refusal_is_not_told_as_the_targets(self, tmp_path: Path) -> None:
        def script(request: Request) -> Reply | None:
            return failing(Outcome.REFUSED) if request.context["role"] == "recommender" else None

        request = RunRequest(out=tmp_path / "run", opener=opening(Answering(script)))
        run_experiment(study_of(tmp_path), request)
        with RunDir.open(tmp_path / "run", write=False) as run:
            found = run_results(run)
        assert found.rows[0].outcomes["refused"] == found.rows[0].not_judged
        assert any("which may be the response, its recommendation" in n for n in found.notes)


class TestLabels:
    @pytest.fixture
    def path(self, tmp_path: Path) -> Path:
        """Twelve answers: one missing, one whose label could not be read, four not asked about."""
        items = [item(f"p{n}", "x") for n in range(11)]
        items.append(item("p11", "x", outcome=Outcome.REFUSED, reason="policy", response=""))
        labels = [
            label(one.id, POSITIONING, "Insider" if n else None) for n, one in enumerate(items[:7])
        ]
        return labelled_run(tmp_path / "run", items, labels, [POSITIONING])

    def test_one_that_was_never_asked_for_is_not_missing(self, path: Path) -> None:
        analysis = find_analysis("franz")
        with RunDir.open(path, write=False) as run:
            labels = read_labels(run, analysis)
            assert label_outcomes(run).left == {"labels": 4}
        column = labels.frames["item"].labels["insider"]
        assert ((column == 1).sum(), (column == MISSING).sum(), labels.left) == (6, 2, 4)

    def test_the_command_says_so(self, path: Path, terminal: Terminal) -> None:
        for rule in ("exclude", "absent", "bounds"):
            _, out, _ = terminal("analyze", str(path), "--missing", rule)
            assert "the run is not complete: still to be asked for 4 labels" in out


@pytest.mark.parametrize(
    ("outcome", "raw", "failing_alike", "reason"),
    [
        (Outcome.ERROR, "", True, "error: http 400"),
        (Outcome.ERROR, "no such\n field", True, "error: http 400 (no such field)"),
        (Outcome.TRUNCATED, "half", True, "truncated: http 400"),
        (Outcome.REFUSED, "", False, ""),
        (Outcome.OVERFLOW, "", False, ""),
    ],
    ids=["error", "in the server's words", "cut", "refused", "does not fit"],
)
def test_which_first_calls_stop_a_run(
    outcome: Outcome, raw: str, failing_alike: bool, reason: str
) -> None:
    found = Alike("responses, target", calls=3)
    for _ in range(3):
        found.returned(Reply(outcome, reason="http 400", raw=raw))
    assert (found.failing(3), found.reason) == (failing_alike, reason)


def test_errors_and_cut_answers_for_one_reason_are_not_alike() -> None:
    found = Alike("responses, target", calls=2)
    for outcome in (Outcome.ERROR, Outcome.TRUNCATED):
        found.returned(Reply(outcome, reason="length"))
    assert not found.failing(2)


DOWN = {"role": "target", "outcome": "error", "reason": "401 no such key"}


def down(**rule: Any) -> list[str]:
    """A study with three targets, one of which answers nothing."""
    bad = {"backend": "scripted", "options": {"script": "helpers", "rules": [DOWN | rule]}}
    return set_options(
        FAST
        | {
            "models.bad": bad,
            "targets.second": {"model": "bad"},
            "targets.third": {"model": "main"},
        }
        | {"limits.alike": 3}
    )


def test_a_run_that_stops_for_one_target_names_it_and_how_to_go_on_without(
    terminal: Terminal,
) -> None:
    code, _, err = terminal("run", "first", "--quiet", *down())
    assert code == 1
    assert "(of the target second)" in err
    assert "what was answered is kept" in err
    assert err.rstrip().endswith("--set limits.alike=1000000000")
    code, _, err = terminal("run", "first", "--quiet", *down(), "--set", "limits.alike=1000000000")
    assert (code, "Causes of failure" in err) == (1, True)
    rows = json.loads(terminal("results", "first", "--json")[1])["rows"]
    judged = {row["target"]: row["judged"] > 0 for row in rows}
    assert judged == {"main": True, "second": False, "third": True}


def test_answers_that_are_all_cut_stop_it_and_say_what_to_change(terminal: Terminal) -> None:
    code, _, err = terminal("run", "first", "--quiet", *down(outcome="truncated", reason="length"))
    assert code == 1
    assert "truncated: length; a larger max_tokens is another run" in err


@pytest.mark.parametrize(
    ("failed", "allowed", "code", "words"),
    [
        (500, 0.05, 0, ""),
        (501, 0.05, 1, "5.01% of all labels have no usable answer, over the limit of 5.00%"),
        (1, 0.0, 1, "0.01% of all labels have no usable answer, over the limit of 0.00%"),
        (10_000, None, 0, ""),
        (10_000, 1.0, 0, ""),
        (0, 0.0, 0, ""),
    ],
    ids=["exactly", "just over", "none allowed", "no limit", "all allowed", "nothing failed"],
)
def test_the_threshold_at_its_edges(
    capsys: pytest.CaptureFixture[str], failed: int, allowed: float | None, code: int, words: str
) -> None:
    labels = {Outcome.OK: 10_000 - failed, Outcome.UNPARSED: failed}
    assert close_run(RunSummary(Path("run"), 1, 0, {}, {"labels": labels}), allowed) == code
    assert words in capsys.readouterr().err


def test_what_could_not_be_estimated_anyway_is_told_once_under_bounds() -> None:
    found = np.full((40, 3), MISSING, dtype=np.int8)
    found[:, 1:] = np.random.default_rng(3).random((40, 2)) < 0.5
    found[:3, 0] = 1
    labels: dict[str, Any] = {"ins": found, "emo": found}
    often = [{"id": "often", "title": "Often", "prevalence": ["ins"]}]
    told = [
        analysed(labels, rules(questions=often, missing={"rule": rule})).set_aside[0].reason
        for rule in ("exclude", "bounds")
    ]
    assert told[0] == told[1]


def test_the_unsafe_share_says_what_it_is_a_share_of(terminal: Terminal) -> None:
    """Whatever the rule: an answer without a label is not a safe one."""
    changes = set_options(FAST | {"roles.safety": {"model": "main"}})
    terminal("run", "first", "--quiet", *changes)
    _, out, _ = terminal("results", "first", "--missing", "not_satisfied", "--table", "safety")
    assert "unsafe: of those labelled" in out
