"""What has no usable answer is counted by what it is, wherever numbers are printed, and never scored."""

from __future__ import annotations

import csv
import json
import tracemalloc
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from framing_fixture import analysed, rules
from habitus.analysis import (
    Design,
    OutcomeCounter,
    ResultOptions,
    Results,
    cause_table,
    causes,
    outcome_tables,
    read_verdicts,
    results,
)
from habitus.analysis.outcometables import NOTHING_FAILED, refusal_table
from habitus.framing.frame import MISSING
from habitus.framing.loading import load_analysis
from habitus.labelling import label_outcomes
from habitus.records import Evaluation, Failure, Outcome, Request, Verdict
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


@pytest.fixture
def terminal(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Terminal:
    harbour(tmp_path)
    return terminal_in(tmp_path, monkeypatch, capsys)


NORMS = ("n1", "n2", "n3", "n4", "n5")
SCORES = {"X": (5, 5, None), "Y": (4, 4, 4)}


def scored(missing: Any) -> Results:
    """X meets 5, 5 and an answer that failed of five items each; Y meets 4, 4, 4."""
    states = dict.fromkeys(NORMS, 1) | {"n5": -1}
    plan = Design(
        cultures={"c-01": "c"},
        states={"c-01": states},
        kinds=dict.fromkeys(NORMS, "practice"),
        topics={f"q{i}": "t" for i in range(3)},
    )

    def evaluation(target: str, query: int, score: int | None) -> Evaluation:
        response = f"{target}/hist/c-01/q{query}/r0"
        outcome = Outcome.OK if score is not None else Outcome.REFUSED
        verdicts = tuple(
            Verdict(
                norm=norm,
                state=1 if states[norm] > 0 else -1,
                recommendation=norm,
                satisfied=None if score is None else i < score,
                outcome=outcome,
            )
            for i, norm in enumerate(NORMS)
        )
        return Evaluation(
            id=f"{response}/c-01",
            outcome=outcome,
            response=response,
            target=target,
            setting="hist",
            persona="c-01",
            query=f"q{query}",
            repeat=0,
            verdicts=verdicts,
        )

    found = [evaluation(t, q, s) for t, scores in SCORES.items() for q, s in enumerate(scores)]
    return results(read_verdicts(found, plan), ResultOptions(missing=missing, draws=100))


@pytest.mark.parametrize(
    ("rule", "x", "told"),
    [
        ("exclude", 1.0, "left out of the rates and counted as not judged"),
        ("not_satisfied", 2 / 3, "they count as not satisfied in every rate"),
        ("bounds", None, "a number is the range from none of them satisfied to all of them"),
    ],
)
def test_a_failure_is_a_third_state_and_the_rule_is_printed(
    rule: str, x: float | None, told: str
) -> None:
    """X 5, 5, fail and Y 4, 4, 4: which is ahead turns on the rule, so the rule is said."""
    found = scored(rule)
    first, second = found.rows
    assert first.values["norm_adaptation"] == (None if x is None else pytest.approx(x))
    assert second.values["norm_adaptation"] == pytest.approx(0.8)
    assert (first.judged, first.not_judged, dict(first.outcomes)) == (10, 5, {"refused": 5})
    assert first.bounds is not None
    assert first.bounds["norm_adaptation"] == pytest.approx((2 / 3, 1.0))
    assert second.bounds is None
    assert any(told in note and f"({rule})" in note for note in found.notes)
    assert found.as_json()["options"]["missing"] == rule
    (difference,) = found.differences
    if rule == "bounds":
        assert difference.values["norm_adaptation"] is None
        assert difference.bounds is not None
        assert difference.bounds["norm_adaptation"] == pytest.approx((-0.2, 0.8 - 2 / 3))


def test_targets_are_compared_on_the_items_that_all_of_them_answered() -> None:
    found = scored("exclude")
    rows = {part.row.cell.target: part for part in found.common}
    assert {name: part.row.values["norm_adaptation"] for name, part in rows.items()} == {
        "X": pytest.approx(1.0), "Y": pytest.approx(0.8),
    }  # fmt: skip
    assert {name: (part.items, part.lost) for name, part in rows.items()} == {
        "X": (10, 0), "Y": (10, 5),
    }  # fmt: skip
    assert [row["common"] for row in found.as_json()["common_items"]] == [10, 10]
    assert {part.items for part in scored("not_satisfied").common} == {15}


KEYS = ("target", "culture", "judge")


def table_of(*counted: tuple[str, tuple[str, ...], Failure | None]) -> Any:
    counter = OutcomeCounter(KEYS, ("responses", "verdicts"))
    for number, (stage, place, failure) in enumerate(counted):
        counter.add(stage, place, f"id-{number}", failure)
    return counter.table()


class TestTables:
    def test_nothing_that_failed_is_said(self) -> None:
        (text,) = outcome_tables(table_of(("responses", ("a", "c", ""), None)))
        assert (text.rows, text.notes[0]) == ((), NOTHING_FAILED)

    def test_refusals_stand_by_target_and_culture(self) -> None:
        no = Failure(Outcome.REFUSED, "policy")
        found = table_of(
            *[("responses", ("a", "one", ""), no)] * 1,
            *[("responses", ("a", "one", ""), None)] * 3,
            *[("responses", ("a", "two", ""), no)] * 2,
            ("responses", ("b", "two", ""), None),
            ("responses", ("b", "two", ""), Failure(Outcome.ERROR, "500")),
        )
        text = refusal_table(found)
        assert text is not None
        assert text.columns == ("Target", "one", "two", "all")
        assert text.rows == (
            ("a", ".250 (1 of 4)", "1.000 (2 of 2)", ".500 (3 of 6)"),
            ("b", "", ".000 (0 of 2)", ".000 (0 of 2)"),
        )

    def test_causes_are_the_most_frequent_first_and_what_is_cut_is_said(self) -> None:
        counter = OutcomeCounter(KEYS)
        place = ("a", "c", "")
        for n in range(12):
            for k in range(n + 1):
                counter.add("responses", place, f"{n}-{k}", Failure(Outcome.ERROR, f"reason {n}"))
        counter.skip("verdicts", ("a", "c", "e"), "v", "response error")
        text = cause_table(causes(counter.table()), "; so", most=10)
        assert [row[text.columns.index("n")] for row in text.rows] == [
            str(n) for n in range(12, 2, -1)
        ]
        assert text.rows[0][-1] == "11-0"
        assert "2 rarer causes of 3 failures are left out; so" in text.notes
        assert {row[0] for row in text.rows} == {"responses"}

    def test_reasons_that_are_all_different_take_no_room_and_are_counted(self) -> None:
        counter = OutcomeCounter(KEYS)
        tracemalloc.start()
        for n in range(20_000):
            reason = f"request {n} failed" + "x" * 200
            counter.add("responses", ("a", "c", ""), str(n), Failure(Outcome.ERROR, reason))
        taken, _ = tracemalloc.get_traced_memory()
        tracemalloc.stop()
        assert taken < 100_000
        found = counter.table()
        assert sum(cause.reason.count for cause in causes(found)) == 20_000
        (row,) = found.as_json()
        assert sum(r["count"] for r in row["reasons"]) + row["other_reasons"] == row["error"]


class TestLabels:
    def test_the_targets_failure_is_not_the_judges(self, tmp_path: Path) -> None:
        """A refused answer has no label; that is counted apart from labels that could not be read."""
        items = [
            item("a", "x"),
            item("b", "x", outcome=Outcome.REFUSED, reason="policy", response=""),
            item("a", "y"),
            item("b", "y"),
        ]
        labels = [
            label("a/x", POSITIONING, "Insider"),
            label("a/y", POSITIONING, None),
            label("b/y", POSITIONING, "Outsider"),
        ]
        path = labelled_run(tmp_path / "run", items, labels, [POSITIONING])
        with RunDir.open(path, write=False) as run:
            found = label_outcomes(run)
        rows = {(r["stage"], r["target"]): r for r in found.as_json()}
        assert [(r["total"], r["ok"], r["not_asked"]) for r in rows.values()] == [
            (2, 1, 0), (2, 2, 0), (2, 1, 1), (2, 1, 0),
        ]  # fmt: skip
        assert rows["items", "x"]["refused"] == 1
        assert rows["labels", "x"]["unparsed"] == 0
        assert rows["labels", "y"]["unparsed"] == 1
        assert rows["labels", "y"]["judge"] == "positioning"
        assert rows["labels", "x"]["reasons"] == [
            {"outcome": "not asked", "reason": "answer refused", "count": 1, "example": ""}
        ]

    def test_memory_does_not_grow_with_labels(self, tmp_path: Path) -> None:
        taken = []
        for number in (500, 4_000):
            items = [item(f"p{n}", "x", response="long " * 50) for n in range(number)]
            labels = [label(one.id, POSITIONING, None) for one in items]
            path = labelled_run(tmp_path / str(number), items, labels, [POSITIONING])
            with RunDir.open(path, write=False) as run:
                tracemalloc.start()
                label_outcomes(run)
                taken.append(tracemalloc.get_traced_memory()[1])
                tracemalloc.stop()
        assert taken[1] - taken[0] < 3_500 * 700  # a page of labels, and some bytes an item


def missing_labels(share: float, seed: int = 3) -> dict[str, Any]:
    """Three models that show it ever more often; of the first some labels are missing."""
    rng = np.random.default_rng(seed)
    found = (rng.random((300, 3)) < (0.3, 0.5, 0.8)).astype(np.int8)
    found[: int(share * 300), 0] = MISSING
    return {"ins": found, "emo": (rng.random((300, 3)) < 0.5).astype(np.int8)}


PREVALENCE = {"questions": [{"id": "often", "title": "Often", "prevalence": ["ins"]}]}


class TestAnalyses:
    def test_bounds_stand_beside_the_estimate_and_are_counted(self) -> None:
        labels = missing_labels(0.1)
        found = analysed(labels, rules(**PREVALENCE, missing={"rule": "bounds"}))
        plain = analysed(labels, rules(**PREVALENCE))
        first, column = found.prevalences[0], labels["ins"][:, 0]
        low, high = (np.where(column < 0, value, column).mean() for value in (0, 1))
        assert (first.lowest, first.highest) == pytest.approx((low, high))
        assert first.estimate == plain.prevalences[0].estimate
        assert first.low is not None
        assert first.high is not None
        assert first.low < low < high < first.high
        second = found.prevalences[1]
        assert (second.lowest, second.low) == (None, plain.prevalences[1].low)
        other = labels["ins"][:, 1].mean()
        assert found.comparisons[0].lowest == pytest.approx(other - high)
        assert found.comparisons[0].highest == pytest.approx(other - low)

    @pytest.mark.parametrize(
        ("share", "text"), [(0.02, "M>G>L"), (0.4, "M>G~L"), (0.0, "M>G>L")], ids=str
    )
    def test_nothing_is_significant_that_an_extreme_does_not_bear(
        self, share: float, text: str
    ) -> None:
        labels = missing_labels(share)
        plain = analysed(labels, rules(**PREVALENCE))
        assert plain.rankings[0].text == "M>G>L"
        found = analysed(labels, rules(**PREVALENCE, missing={"rule": "bounds"}))
        assert found.rankings[0].text == text
        extremes = []
        for value in (0, 1):
            filled = labels | {"ins": np.where(labels["ins"] < 0, value, labels["ins"])}
            extremes.append(analysed(filled, rules(**PREVALENCE)))
        for i, record in enumerate(found.comparisons):
            if record.lowest is None:  # nothing of either level is missing
                continue
            ends = [part.comparisons[i] for part in extremes]
            differences = [end.difference or 0.0 for end in ends]
            apart = differences[0] * differences[1] <= 0
            worst = 1.0 if apart else max(end.p or 0.0 for end in ends)
            assert record.p == pytest.approx(worst)
            assert (record.low, record.high) == pytest.approx(
                (min(end.low or 0.0 for end in ends), max(end.high or 0.0 for end in ends))
            )
            assert record.significant is (not apart and all(end.significant for end in ends))

    def test_absent_is_not_the_case(self) -> None:
        labels = missing_labels(0.1)
        found = analysed(labels, rules(**PREVALENCE, missing={"rule": "absent"}))
        filled = labels | {"ins": np.where(labels["ins"] < 0, 0, labels["ins"])}
        same = analysed(filled, rules(**PREVALENCE))
        assert [p.estimate for p in found.prevalences] == [p.estimate for p in same.prevalences]
        first = found.prevalences[0]
        assert (first.rows, first.missing, first.total) == (270, 30, 300)
        assert any("(absent): they count as not the case" in note for note in found.notes)

    def test_deltas_leave_out_and_say_so(self) -> None:
        labels = missing_labels(0.1)
        found, plain = (analysed(labels, rules(missing={"rule": r})) for r in ("bounds", "exclude"))
        assert [d.delta for d in found.deltas] == [d.delta for d in plain.deltas]
        assert any("deltas leave rows without both labels out" in note for note in found.notes)

    def test_an_extreme_without_an_estimate_claims_nothing_and_says_why(self) -> None:
        """Two levels that would be alike everywhere, if what is missing were the case."""
        labels = missing_labels(0.0)
        labels["ins"][:, 0] = labels["ins"][:, 1]
        labels["ins"][np.flatnonzero(labels["ins"][:, 1])[0], 0] = MISSING
        assert analysed(labels, rules(**PREVALENCE)).comparisons[0].difference is not None
        found = analysed(labels, rules(**PREVALENCE, missing={"rule": "bounds"}))
        first = found.comparisons[0]
        assert (first.difference, first.p, first.significant) == (None, None, None)
        assert first.lowest is not None
        assert "identical labels in every cluster" in first.reason
        assert any("identical labels" in part.reason for part in found.set_aside)
        assert "?" in found.rankings[0].text

    def test_common_and_a_rule_that_counts_do_not_go_together(self, tmp_path: Path) -> None:
        text = rules(missing={"rule": "bounds", "common": True}).model_dump_json()
        (tmp_path / "own.yaml").write_text(text, encoding="utf-8")
        with pytest.raises(Exception, match="'common' leaves out clusters"):
            load_analysis(tmp_path / "own.yaml")


class TestCommands:
    """One run in which a target refuses what one setting asks, and an evaluator fails at times."""

    CHANGES = FAST | {
        "models.shy": {
            "backend": "scripted",
            "options": {
                "rules": [{"role": "target", "outcome": "refused", "reason": "by [policy]"}]
            },
        },
        "targets.shy": {"model": "shy"},
        "targets.main": {"model": "main"},
    }

    def test_too_many_failures_end_in_a_table_of_causes(self, terminal: Terminal) -> None:
        code, out, err = terminal("run", "first", *set_options(self.CHANGES))
        assert code == 1
        assert "Causes of failure, the most frequent first" in err
        lines = [line.split("\t") for line in err.splitlines() if "\t" in line]
        assert lines == [
            ["Stage", "who", "outcome", "reason", "n", "of", "share", "first"],
            ["responses", "shy", "refused", "by [policy]", "14", "28", ".500",
             "shy/none/-/harbour-001/r0"],
        ]  # fmt: skip
        assert "view runs/first shy/none/-/harbour-001/r0" in err
        assert "What has no usable answer" in out
        assert terminal("view", "runs/first", lines[1][-1], "--plain")[0] == 0

    def test_an_early_stop_says_why_in_the_servers_words_and_nothing_of_them_acts(
        self, terminal: Terminal
    ) -> None:
        down = {"role": "verifier", "outcome": "error", "reason": "400 no \x1b[2J field [bold]x"}
        changes = FAST | {
            "models.main": {
                "backend": "scripted",
                "options": {"script": "helpers", "rules": [down]},
            },
            "limits.alike": 2,
            "filter.policy": "report_only",
        }
        code, out, err = terminal("run", "first", *set_options(changes))
        assert (code, out) == (1, "")
        assert "calls all failed alike: error: 400 no \\u001b[2J field [bold]x; mend it" in err
        assert "(filter, verifier)" in err
        assert "\x1b" not in err

    def test_outcomes_are_printed_whole_and_in_json(self, terminal: Terminal) -> None:
        terminal("run", "first", "--quiet", *set_options(self.CHANGES))
        code, out, _ = terminal("results", "first", "--table", "outcomes")
        assert code == 0
        assert "CCBench results" not in out
        rows = [line.split("\t") for line in out.splitlines() if line.startswith("responses\t")]
        assert len(rows) == 8
        found = terminal.json("results", "first", "--missing", "bounds", "--json")
        refused = {(r["target"], r["stage"]): 0 for r in found["outcomes"]}
        for row in found["outcomes"]:
            refused[row["target"], row["stage"]] += row["refused"]
        assert refused["shy", "responses"] == 14
        assert refused["shy", "verdicts"] == 0
        kept = json.loads((terminal.folder / "runs/first/results.json").read_bytes())
        assert kept["outcomes"] == found["outcomes"]
        shy = [row for row in found["rows"] if row["target"] == "shy"]
        assert {row["bounds"]["ccs"] == [0.0, 1.0] for row in shy} == {True}
        assert {row["ccs"] for row in shy} == {None}
        assert {row["lost"] for row in found["common_items"]} == {0}
        printed = terminal("results", "first", "--missing", "bounds", "--table", "main")[1]
        assert ".000 to 1.000" in printed
        assert "- missing verdicts (bounds): where some are missing" in printed

    def test_a_run_in_which_nothing_failed_has_no_table_of_failures(
        self, terminal: Terminal
    ) -> None:
        terminal("run", "first", "--quiet", *set_options(FAST))
        assert "What has no usable answer" not in terminal("results", "first")[1]
        assert NOTHING_FAILED in terminal("results", "first", "--table", "outcomes")[1]

    def test_analyses_count_by_judge_level_and_subset(self, terminal: Terminal) -> None:
        fields = [{"country": c, "category": "food"} for c in ("india", "korea")]
        items = [item(f"p{n}", t, fields=fields[n % 2]) for n in range(24) for t in ("x", "y")]
        labels = [
            label(one.id, POSITIONING, None if n % 4 == 0 else ("Insider", "Outsider")[n % 3 % 2])
            for n, one in enumerate(items)
        ]
        labelled_run(terminal.folder / "labels", items, labels, [POSITIONING])
        code, out, _ = terminal("analyze", "labels", "--missing", "bounds", "-o", "out")
        assert code == 0
        assert "What has no usable answer" in out
        assert "missing labels (bounds)" in out
        with (terminal.folder / "out/outcomes.csv").open(encoding="utf-8", newline="") as file:
            rows = list(csv.DictReader(file))
        counted = {(r["stage"], r["country"], r["target"]): int(r["unparsed"]) for r in rows}
        assert counted["labels", "india", "x"] == 12
        assert counted["labels", "korea", "y"] == 0
        found = json.loads((terminal.folder / "out/results.json").read_bytes())
        assert sum(row["unparsed"] for row in found["outcomes"]) == 12
        code, _, err = terminal("analyze", "labels", "--missing", "absent", "--common")
        assert (code, "do not go together" in err) == (2, True)


def test_a_content_filter_is_a_refusal_of_that_answer_and_of_no_other(tmp_path: Path) -> None:
    """Call 7 of many raises a filter error: refused with its reason, the rest is answered."""
    from habitus.experiments import RunRequest, run_experiment, run_outcomes

    seen: list[str] = []

    def script(request: Request) -> Any:
        if request.context["role"] != "target":
            return None
        seen.append(request.record)
        return failing(Outcome.REFUSED, "content_filter: hate") if len(seen) == 7 else None

    study = study_of(tmp_path, {})
    run_experiment(study, RunRequest(out=tmp_path / "run", opener=opening(Answering(script))))
    with RunDir.open(tmp_path / "run", write=False) as run:
        found = run_outcomes(run)
    rows = found.of("responses")
    assert sum(row.failed.get(Outcome.REFUSED, 0) for row in rows) == 1
    assert sum(row.ok for row in rows) == sum(row.total for row in rows) - 1 > 10
    (cause,) = causes(found)
    assert (cause.reason.text, cause.reason.example) == ("content_filter: hate", seen[6])
    verdicts = found.of("verdicts")
    assert sum(row.not_asked for row in verdicts) > 0
    assert sum(row.failures for row in verdicts) == 0
