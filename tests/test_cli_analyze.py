"""``habitus analyze``, and the files it writes."""

from __future__ import annotations

import csv
import json
from pathlib import Path

import pytest

from framing_fixture import franz_labels, items_of, label_run
from habitus.cells import safe_cell
from habitus.corpora.stored import Post, PostWriter
from habitus.tables import csv_text
from study_fixture import Terminal, terminal_in

QUICK = """\
id: quick
title: "Quick"
compare: {names: {llama: L, gemma: G, ministral: M}, subsets: {by: [country]}}
characteristics:
  - {id: insider, name: "Insider", judge: positioning}
  - {id: over, name: "Too much", judge: maxims, variant: quantity, labels: [UNDER]}
questions:
  - id: rq
    title: "RQ"
    prevalence: [insider]
    pairs: [{causes: [over], effects: [insider]}]
"""


@pytest.fixture
def study(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Terminal:
    """A folder with a run of labels of 60 posts, one country of which looks like a formula."""
    items = items_of(60, countries=("=cmd()", "korea"))
    label_run(tmp_path / "runs" / "labels", items, franz_labels(items))
    (tmp_path / "quick.yaml").write_text(QUICK, encoding="utf-8")
    return terminal_in(tmp_path, monkeypatch, capsys)


def test_tables_are_printed_with_the_choices_behind_them(study: Terminal) -> None:
    code, out, err = study("analyze", "labels", "--analysis", "quick.yaml")
    assert (code, err) == (0, "-o FOLDER writes all tables as CSV, and the figures\n")
    titles = [line for line in out.splitlines() if line.startswith("Quick: ")]
    assert titles == [
        *("Quick: rankings", "Quick: how often", "Quick: differences between levels"),
        *("Quick: P(effect | cause) - P(effect | no cause)",),
        *("Quick: differences of deltas between levels", "Quick: deltas in brief"),
    ]
    assert "korea\t30\tM>" in out
    assert "Too much (over): 1 = UNDER; 0 = APPROPRIATE, OVER" in out
    assert out.count("Benjamini-Hochberg") == 1
    assert "- labels of positioning, maxims: by the model m, asked for as json\n" in out
    assert "cases of the judged rows" in out


def test_json_has_undefined_as_null(study: Terminal) -> None:
    (study.folder / "quick.yaml").write_text(
        QUICK + "threshold: {clusters: 31}\n", encoding="utf-8"
    )
    found = study.json("analyze", "labels", "--analysis", "quick.yaml", "--json")
    (result,) = found["results"]
    assert result["levels"] == {"llama": "L", "gemma": "G", "ministral": "M"}
    assert {p["estimate"] for p in result["prevalences"]} == {None}
    assert {p["reason"] for p in result["prevalences"]} == {"30 clusters; at least 31 are needed"}
    assert [r["text"] for r in result["rankings"]] == ["L?G?M"] * 2
    assert [r["levels"] for r in result["rankings"]] == [["llama", "gemma", "ministral"]] * 2
    assert len(result["set_aside"]) == 4
    assert {m["undefined"] for m in result["movements"]} == {3}


def test_files_hold_every_table_in_full(study: Terminal) -> None:
    code, _, err = study("analyze", "labels", "--analysis", "quick.yaml", "-o", "out")
    assert code == 0
    assert "files written to out" in err
    folder = study.folder / "out" / "quick"
    names = {path.name for path in folder.iterdir() if path.suffix in {".csv", ".txt"}}
    assert names == {
        *("prevalences.csv", "comparisons.csv", "rankings.csv", "deltas.csv"),
        *("delta_comparisons.csv", "movements.csv", "notes.txt"),
    }
    with (folder / "prevalences.csv").open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    found = json.loads((study.folder / "out" / "results.json").read_text(encoding="utf-8"))
    kept = found["results"][0]["prevalences"]
    assert [float(row["estimate"]) for row in rows] == [p["estimate"] for p in kept]
    assert {row["country"] for row in rows} == {"'=cmd()", "korea"}
    assert {p["country"] for p in kept} == {"=cmd()", "korea"}
    assert "GEE" in (folder / "notes.txt").read_text(encoding="utf-8")


def test_figures_of_each_result_stand_with_its_tables(study: Terminal) -> None:
    with PostWriter(study.folder / "posts.parquet") as posts:
        posts.write(Post("a", "Rice?", "Which?", "IndianFood", "india", None, 3))
    code, _, err = study(
        *("analyze", "labels", "--analysis", "quick.yaml", "-o", "out", "--posts", "posts.parquet")
    )
    assert code == 0
    names = {path.name for path in (study.folder / "out" / "quick").iterdir()}
    assert {"prevalence.svg", "prevalence.png", "cooccurrence.svg"} <= names
    assert "quick: no figure maxims: the analysis asks for no prevalence of a maxim" in err
    assert "quick: no figure categories: the posts have no category" in err
    svg = (study.folder / "out" / "quick" / "prevalence.svg").read_text(encoding="utf-8")
    assert "=cmd()" in svg


def test_the_analysis_of_franz_is_the_default(study: Terminal) -> None:
    code, out, err = study("analyze", "labels", "--question", "rq2")
    assert code == 0
    assert "FRANZ: deltas in brief" in out
    assert "fits" in err  # 14 pairs in six subsets: it says how far it is
    assert "FRANZ: rankings" not in out


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        pytest.param(["nowhere"], "there is no run at runs/nowhere", id="run"),
        pytest.param(["labels", "--analysis", "frans"], "did you mean 'franz'?", id="analysis"),
        pytest.param(["labels", "--posts", "x"], "written with --out", id="posts"),
        pytest.param(["labels", "--question", "rq4"], "no question of the analysis", id="question"),
        pytest.param(
            ["labels", "--analysis", "ccbench"],
            "no row has all the fields that are compared (setting, target, group)",
            id="fields",
        ),
    ],
)
def test_a_mistake_is_one_message(arguments: list[str], message: str, study: Terminal) -> None:
    code, out, err = study("analyze", *arguments)
    assert (code, out) == (2, "")
    assert message in err
    assert "Traceback" not in err


def test_a_table_without_rows_is_told(study: Terminal) -> None:
    code, out, _ = study("analyze", "labels", "--question", "rq2", "--table", "rankings")
    assert code == 0
    assert "FRANZ: the table rankings has no rows" in out


def test_the_reasons_of_many_fits_are_not_printed_unasked(study: Terminal) -> None:
    out = study("analyze", "labels", "--question", "rq1")[1]
    assert "FRANZ: not estimable" not in out
    more = next(line for line in out.splitlines() if line.startswith("- more, with --table NAME"))
    assert "set-aside (" in more


def test_tables_in_which_nothing_is_estimated_are_not_printed_unasked(study: Terminal) -> None:
    text = QUICK + "threshold: {clusters: 31}\n"
    (study.folder / "quick.yaml").write_text(text, encoding="utf-8")
    out = study("analyze", "labels", "--analysis", "quick.yaml")[1]
    titles = [line for line in out.splitlines() if line.startswith("Quick: ")]
    assert titles == [
        *("Quick: rankings", "Quick: how often"),
        *("Quick: deltas in brief", "Quick: not estimable"),
    ]
    assert "30 clusters; at least 31 are needed" in out
    asked = study("analyze", "labels", "--analysis", "quick.yaml", "--table", "deltas")[1]
    assert "Quick: P(effect | cause)" in asked


HEDGING = {"judge": "hedging", "labels": ["Hedged", "Plain"], "present": ["Hedged"]}


@pytest.mark.parametrize(
    ("verdicts", "message"),
    [
        pytest.param(
            [], "other holds answers and no labels: `habitus judge` labels them", id="answers"
        ),
        pytest.param([HEDGING], "It has hedging: name them under 'characteristics'", id="own"),
    ],
)
def test_a_run_that_an_analysis_says_nothing_of(
    verdicts: list[dict[str, object]], message: str, study: Terminal
) -> None:
    label_run(study.folder / "runs" / "other", items_of(3), [], verdicts=verdicts)
    code, _, err = study("analyze", "other")
    assert code == 2
    assert message in err


def test_other_commands_say_what_a_run_of_labels_is(study: Terminal) -> None:
    code, _, err = study("results", "labels")
    assert code == 2
    assert "it is no run of an experiment" in err
    assert "habitus analyze" in err


@pytest.mark.parametrize("command", ["analyze", "export --to consensus -o out"])
def test_a_file_of_answers_is_to_be_judged_first(command: str, study: Terminal) -> None:
    (study.folder / "answers.jsonl").write_text("{}", encoding="utf-8")
    name, *more = command.split()
    code, _, err = study(name, "answers.jsonl", *more)
    assert code == 2
    assert "`habitus judge answers.jsonl --model MODEL` labels its answers" in err


def test_completion_knows_the_analyses() -> None:
    from habitus.cli.analyze import analysis_names

    assert analysis_names("") == ["answers", "ccbench", "franz"]


@pytest.mark.parametrize(
    ("text", "cell"),
    [
        ('=HYPERLINK("http://x","y")', '\'=HYPERLINK("http://x","y")'),
        ("-5 degrees?", "'-5 degrees?"),
        ("+1", "'+1"),
        ("@sum", "'@sum"),
        ("\u200b=1+1", "'\u200b=1+1"),
        ("\t=1", "'\t=1"),
        ("\rx", "'\rx"),
        ("\uff1d1+1", "'\uff1d1+1"),
        ("plain - text", "plain - text"),
        (" plain", " plain"),
        ("", ""),
    ],
)
def test_no_text_of_a_cell_runs_as_a_formula(text: str, cell: str) -> None:
    assert safe_cell(text) == cell


def test_numbers_stay_numbers() -> None:
    text = csv_text(["=name", "value"], [["-a", -0.25], [None, None], ["x", 3], ["y", True]])
    assert text == "'=name,value\n'-a,-0.25\n,\nx,3\ny,yes\n"
