"""The report: its numbers are those of the results, and nothing that a model says acts in it."""

from __future__ import annotations

import base64
import csv
import hashlib
import json
import os
import re
import subprocess
import sys
from collections import Counter
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from habitus.content import read_yaml
from habitus.content.visible import safe_text
from habitus.records import Outcome, Reply, Request
from habitus.reports import ReportOptions, make_report, write_report_figures
from habitus.reports.document.cells import sortable_table
from habitus.reports.document.citing import works
from habitus.store import RunDir
from habitus.tables import TextTable, number
from report_fixture import (
    HOSTILE,
    Element,
    heads,
    hostile_labels,
    hostile_run,
    made_run,
    read_page,
    results_of,
    table_rows,
)
from study_fixture import Answering, Terminal, failing, harbour, terminal_in

ROOT = Path(__file__).resolve().parents[1]
DRAWINGS = {
    "svg",
    "g",
    "path",
    "text",
    "use",
    "defs",
    "clippath",
    "rect",
    "pattern",
    "title",
    "desc",
}
ELEMENTS = {
    "html", "head", "meta", "title", "style", "script", "body", "a", "header", "nav", "main",
    "footer", "section", "article", "div", "p", "h1", "h2", "h3", "h4", "h5", "ul", "ol", "li", "dl",
    "dt", "dd", "table", "caption", "thead", "tbody", "tr", "th", "td", "figure", "figcaption",
    "details", "summary", "span", "bdi", "strong", "em", "blockquote", "pre",
}  # fmt: skip


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return made_run(tmp_path_factory.mktemp("plain"))


@pytest.fixture(scope="module")
def page(run: Path) -> Element:
    return read_page(make_report(run).html)


@pytest.fixture(scope="module")
def hostile(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    folder = tmp_path_factory.mktemp("hostile")
    return hostile_run(folder), hostile_labels(folder)


@pytest.fixture(scope="module")
def hostile_html(hostile: tuple[Path, Path]) -> bytes:
    return make_report(hostile[0], ReportOptions(labels=hostile[1], sessions=9)).html


@pytest.fixture(scope="module")
def hostile_page(hostile_html: bytes) -> Element:
    return read_page(hostile_html)


@pytest.fixture(scope="module")
def texts(hostile_page: Element) -> set[str]:
    """Every text of a model or a corpus on the page."""
    found = (e for e in hostile_page.all("div") if e.attributes.get("class") == "text")
    return {element.text() for element in found}


def table_called(page: Element, caption: str) -> Element:
    found = [t for t in page.all("table") for c in t.all("caption") if c.text() == caption]
    assert len(found) == 1, caption
    return found[0]


def shown(row: dict[str, Any], name: str, *, signed: bool = False) -> str:
    text = number(row[name], signed=signed)
    ends = row["interval"][name]
    if ends is None:
        return text
    return f"{text} [{number(ends[0], signed=signed)}, {number(ends[1], signed=signed)}]"


MEASURES = ("follow_rate", "avoid_rate", "norm_adaptation", "ccs", "ccs_persona_mean")


def test_every_number_of_the_main_table_is_that_of_the_results(run: Path, page: Element) -> None:
    table = table_called(page, "CCBench results (synthetic)")
    assert heads(table)[:12] == [
        "Target", "Setting", "Follow", "n of Follow", "Avoid", "n of Avoid", "Adaptation",
        "n of Adaptation", "CCS", "CCS by persona", "personas", "not judged",
    ]  # fmt: skip
    wanted = [
        [
            f"{row['target']} (synthetic)",
            row["setting"],
            shown(row, "follow_rate"),
            f"{row['follow_judged']:,}",
            shown(row, "avoid_rate"),
            f"{row['avoid_judged']:,}",
            shown(row, "norm_adaptation"),
            f"{row['judged']:,}",
            shown(row, "ccs"),
            shown(row, "ccs_persona_mean"),
            f"{row['personas'] - row['personas_left_out']} of {row['personas']}",
            "0",
        ]
        for row in results_of(run)["rows"]
    ]
    assert len(wanted) == 4
    assert table_rows(table) == wanted


def test_every_paired_difference_is_that_of_the_results(run: Path, page: Element) -> None:
    rows = table_rows(table_called(page, "Paired differences on common items"))
    found = results_of(run)["differences"]
    assert [row[0] for row in rows] == [f"{d['b']} - {d['a']}" for d in found]
    for row, difference in zip(rows, found, strict=True):
        assert row[2:7] == [shown(difference, name, signed=True) for name in MEASURES]
        assert row[7] == f"{difference['common']:,}"


def test_figures_have_the_numbers_of_the_results(run: Path, page: Element) -> None:
    numbers = table_called(page, "Numbers of the figure: Results by setting (synthetic)")
    for row, wanted in zip(table_rows(numbers), results_of(run)["rows"], strict=True):
        found = dict(zip(heads(numbers), row, strict=True))
        assert (found["target"], found["setting"]) == (wanted["target"], wanted["setting"])
        for name in MEASURES[:4]:
            ends = wanted["interval"][name] or (None, None)
            assert found[name] == number(wanted[name])
            assert (found[f"{name}_low"], found[f"{name}_high"]) == tuple(map(number, ends))


def test_the_figures_of_ccbench_are_there_with_text_for_those_who_cannot_see_them(
    page: Element,
) -> None:
    captions = [" ".join(c.text().split()) for c in page.named("figures").all("figcaption")]
    assert [re.split(r" \(synthetic\)| A | Bars| Scatter", c)[0] for c in captions] == [
        "Results by setting",
        "Adaptation against embeddedness, setting hist",
        "Results by culture, setting hist",
        "Results by kind, setting hist",
        "Norm adaptation by topic and culture, main, setting hist",
    ]
    for drawing in page.all("svg"):
        colours = {e.attributes.get("fill", "none") for e in drawing.all()}
        assert "#ffffff" in colours  # its paper
        assert all(re.fullmatch(r"none|#[0-9a-f]{6}|url\(#figure-[\w-]+\)", c) for c in colours)
        assert drawing.attributes["role"] == "img"
        title, desc = next(drawing.all("title")), next(drawing.all("desc"))
        assert title.text()
        assert len(desc.text()) > 30
        ids = f"{title.attributes['id']} {desc.attributes['id']}"
        assert drawing.attributes["aria-labelledby"] == ids


def test_what_was_run_can_be_told_from_the_page(run: Path, page: Element) -> None:
    with RunDir.open(run, write=False) as opened:
        config, manifest = opened.config, opened.manifest
    text = " ".join(page.text().split())
    for wanted in (str(manifest["seed"]), manifest["config"], manifest["python"]):
        assert wanted in text
    for name, digest in config["content"].items():
        assert f"{name}{digest}" in page.text().replace("\n", "")
    choices = dict(table_rows(table_called(page, "Choices of the run")))
    assert choices["checklist.order"] == "reasoning_first"
    assert choices["results.draws"] == "100"
    assert "models.main.backend" not in choices


def test_an_endpoint_is_named_by_its_host_alone(tmp_path: Path) -> None:
    entry = {
        "backend": "openai", "model": "m",
        "base_url": "https://api.example.org:8443/team-rose/v1", "api_key_env": "ROSE_KEY",
    }  # fmt: skip
    html = make_report(made_run(tmp_path, {"models.main": entry})).html.decode()
    assert "api.example.org:8443" in html
    assert "rose" not in html.casefold()


def test_the_same_run_gives_the_same_bytes_in_any_process(run: Path) -> None:
    code = (
        "import sys, hashlib; from pathlib import Path; from habitus.reports import make_report;"
        "print(hashlib.sha256(make_report(Path(sys.argv[1])).html).hexdigest())"
    )
    found = {
        subprocess.run(
            [sys.executable, "-c", code, str(run)],
            env={**os.environ, "PYTHONHASHSEED": seed, "TZ": zone},
            check=True,
            capture_output=True,
            text=True,
        ).stdout
        for seed, zone in (("1", "UTC"), ("2", "Asia/Tokyo"))
    }
    assert found == {hashlib.sha256(make_report(run).html).hexdigest() + "\n"}


def test_synthetic_answers_cannot_be_missed(page: Element) -> None:
    (title,) = (e for e in page.all("title") if "Habitus report" in e.text())
    assert title.text().startswith("SYNTHETIC: ")
    (loud,) = (e for e in page.all("p") if e.attributes.get("class") == "loud")
    assert loud.text() == "Synthetic"
    for caption in page.named("figures").all("figcaption"):
        assert "(synthetic)" in caption.text()
    for heading in page.named("transcripts").all("h5"):
        assert "synthetic" in heading.text()


def test_answers_of_models_are_not_called_synthetic(tmp_path: Path) -> None:
    entry = {"backend": "openai", "model": "m", "base_url": "http://127.0.0.1:1/v1"}
    html = make_report(made_run(tmp_path, {"models.main": entry})).html.decode()
    body = html.partition("<body>")[2].partition("<script>")[0]
    assert "synthetic" not in body.casefold()


def test_a_run_that_is_not_complete_says_so(tmp_path: Path, page: Element) -> None:
    from habitus.experiments import RunRequest, Stage, run_experiment
    from study_fixture import opening, study_of

    harbour(tmp_path)
    request = RunRequest(
        out=tmp_path / "run", base=tmp_path, until=Stage.HISTORIES, opener=opening(Answering())
    )
    run_experiment(study_of(tmp_path), request)
    html = make_report(tmp_path / "run").html.decode()
    assert "This run is not complete" in html
    assert "responses left" in html
    assert "There are no verdicts yet" in html
    assert "This run is not complete" not in page.text()


def outcome_by_setting(request: Request) -> Reply | None:
    if request.context.get("role") != "target":
        return None
    return {
        "hist": failing(Outcome.REFUSED, "not <b>that</b>"),
        "ccot": failing(Outcome.TRUNCATED, "length"),
    }.get(str(request.context["setting"]))


def test_failures_are_counted_by_outcome_target_setting_and_culture(tmp_path: Path) -> None:
    run = made_run(tmp_path, {}, Answering(outcome_by_setting))
    page = read_page(make_report(run).html)
    table = table_called(page, "Outcomes of everything that was asked for")
    names = heads(table)
    found = {(row[0], row[2]): dict(zip(names, row, strict=True)) for row in table_rows(table)}
    assert found["responses", "none"]["ok"] == found["responses", "none"]["total"] == "2"
    assert (
        found["responses", "hist"] | {"total": "4", "ok": "0", "refused": "4"}
        == (found["responses", "hist"])
    )
    assert found["responses", "ccot"]["truncated"] == "4"
    assert found["verdicts", "hist"]["not asked"] == found["verdicts", "hist"]["total"] != "0"
    assert found["verdicts", "norms"]["ok"] == found["verdicts", "norms"]["total"] != "0"
    assert {row["refused"] for key, row in found.items() if key[0] == "verdicts"} == {"0"}
    assert "8 of" in page.named("outcomes").text()
    refused = table_rows(table_called(page, "Share of answers refused, by target and culture"))
    assert ["main", "hist", "", "1.000 (4 of 4)", "1.000 (4 of 4)"] in refused
    causes = table_called(page, "Causes of failure")
    reasons = [row[:4] for row in table_rows(causes)]
    assert ["responses", "main", "refused", "not <b>that</b>"] in reasons
    answers = [s.text() for s in page.named("transcripts").all("summary")]
    assert any(text.startswith("main, hist: refused") for text in answers)


def test_that_nothing_failed_is_said(tmp_path: Path) -> None:
    page = read_page(make_report(made_run(tmp_path)).html)
    said = " ".join(page.named("outcomes").text().split())
    assert "This run: nothing failed; all" in said
    assert not [t for t in page.all("table") if "What has no usable answer" in t.text()]


def test_rejected_sessions_are_listed_with_their_reasons(tmp_path: Path) -> None:
    entry = {"backend": "scripted", "options": {"script": "helpers", "reveal": 1.0}}
    harbour(tmp_path)
    from habitus.experiments import RunRequest, run_experiment
    from study_fixture import study_of

    changes = {"models.main": entry, "history.domain_sessions": 2}
    run_experiment(study_of(tmp_path, changes), RunRequest(out=tmp_path / "run", base=tmp_path))
    page = read_page(make_report(tmp_path / "run").html)
    rows = table_rows(table_called(page, "Sessions with a fault"))
    lines = (tmp_path / "run" / "records" / "attempts.jsonl").read_text().splitlines()
    rejected = [a for a in map(json.loads, lines) if a["decision"] == "rejected"]
    assert len(rows) == len(rejected) > 4
    assert [(row[1], row[2], row[3]) for row in rows] == [
        (a["persona"], f"s{a['number']:02d}", str(a["attempt"] + 1)) for a in rejected
    ]
    assert {row[5] for row in rows} == {"rejected"}
    assert all("explicit reveal (verifier)" in row[6] for row in rows)


def test_transcripts_are_drawn_by_seed_and_shown_whole(run: Path, page: Element) -> None:
    lines = (run / "records" / "attempts.jsonl").read_text().splitlines()
    attempts = {a["id"]: a for a in map(json.loads, lines)}
    turns = [text for a in attempts.values() for text in (t["text"] for t in a["turns"])]
    said = [
        next(li.all("div")).text()
        for ol in page.named("transcripts").all("ol")
        for li in ol.all("li")
    ]
    assert said
    assert set(said) <= set(turns)
    names = {
        seed: next(read_page(make_report(run, ReportOptions(seed=seed)).html).all("h3")).text()
        for seed in range(5)
    }
    assert len(set(names.values())) == 2  # both personas of the one culture have their turn
    assert next(page.all("h3")).text() in names.values()


def allowed(element: Element, *, drawing: bool = False) -> None:
    """Nothing acts: known elements, no handler, no style, no address but the page's own."""
    for child in element.children:
        if not isinstance(child, Element):
            continue
        inside = drawing or child.tag == "svg"
        assert child.tag in (DRAWINGS if inside else ELEMENTS), child.tag
        for name, value in child.attributes.items():
            assert not name.startswith("on"), name
            assert name not in {"style", "src", "srcdoc", "srcset", "action", "ping", "target"}
            if name in {"href", "xlink:href"}:
                assert value.startswith(("#", "https://arxiv.org/abs/")), value
        allowed(child, drawing=inside)


def test_nothing_that_a_model_or_a_file_says_becomes_an_element(
    hostile_html: bytes, hostile_page: Element
) -> None:
    page = hostile_page
    allowed(page)
    assert len(list(page.all("script"))) == len(list(page.all("style"))) == 1
    assert len(list(page.all("meta"))) == 6
    assert max(map(len, re.findall(rb"[\x00-\x08\x0b-\x1f\x7f]", hostile_html)), default=0) == 0
    assert not re.search("[\u202a-\u202e\u2066-\u2069\x80-\x9f]", hostile_html.decode())


def test_the_page_forbids_itself_everything_but_its_own_style_and_script(
    hostile_page: Element,
) -> None:
    page = hostile_page
    (policy,) = (
        m.attributes["content"]
        for m in page.all("meta")
        if m.attributes.get("http-equiv") == "Content-Security-Policy"
    )

    def source(tag: str) -> str:
        (found,) = page.all(tag)
        digest = hashlib.sha256(found.text().encode()).digest()
        return f"'sha256-{base64.b64encode(digest).decode()}'"

    assert policy == (
        f"default-src 'none'; style-src {source('style')}; script-src {source('script')}; "
        "base-uri 'none'; form-action 'none'"
    )


@pytest.mark.parametrize("name", HOSTILE)
def test_a_hostile_text_is_shown_letter_for_letter(name: str, texts: set[str]) -> None:
    if name == "long":
        assert any(re.fullmatch("x{300,6000}", found) for found in texts)
    else:
        assert safe_text(HOSTILE[name].replace("\r\n", "\n")) in texts


def test_long_texts_do_not_make_the_file_long(hostile_html: bytes) -> None:
    assert len(hostile_html) < 1_500_000
    assert b"more characters stand in the run" in hostile_html


def test_the_page_is_in_order_for_those_who_hear_it(hostile_page: Element) -> None:
    page = hostile_page
    ids = [e.attributes["id"] for e in page.all() if "id" in e.attributes]
    assert Counter(ids).most_common(1)[0][1] == 1
    for element in page.all():
        for name in ("aria-labelledby", "href"):
            for wanted in element.attributes.get(name, "").split():
                assert wanted.startswith("https:") or wanted.removeprefix("#") in ids
        for value in element.attributes.values():
            for wanted in re.findall(r"url\(#([^)]+)\)", value):
                assert wanted in ids
    (html,) = page.all("html")
    assert html.attributes["lang"] == "en"
    levels = [int(e.tag[1]) for e in page.all() if re.fullmatch("h[1-6]", e.tag)]
    assert levels[0] == 1
    assert levels.count(1) == 1
    assert all(b <= a + 1 for a, b in pairwise(levels))
    for table in page.all("table"):
        assert len(list(table.all("caption"))) == 1
        assert all(th.attributes.get("scope") in {"col", "row"} for th in table.all("th"))
    for found in page.all("div"):
        if "text" in found.attributes.get("class", "").split():
            assert found.attributes["dir"] == "auto"


def test_a_run_of_labels_has_a_report_of_its_own(hostile: tuple[Path, Path]) -> None:
    page = read_page(make_report(hostile[1]).html)
    allowed(page)
    counts = table_called(page, "Labels by judge")
    assert [row[:2] + row[3:6] for row in table_rows(counts)] == [
        ["positioning", "", ".500", "20", "40"],
        ["anthropomorphism", "emotions", ".500", "20", "40"],
    ]
    assert len(list(page.named("transcripts").all("article"))) == 6
    assert "Results" not in [h.text() for h in page.all("h2")]
    assert list(page.named("framing").all("svg"))


def test_labels_stand_beside_the_answers_they_are_of(run: Path, tmp_path: Path) -> None:
    from habitus.judges import choose
    from habitus.labelling import LabellingJob, Manner, make_tasks, open_source
    from habitus.running import JobRequest, run_job
    from study_fixture import HELPERS

    tasks = make_tasks(choose(["positioning"]), {}, "main", Manner())
    run_job(
        LabellingJob(open_source(run), tasks, {"main": HELPERS}, 1),
        JobRequest(out=tmp_path / "labels"),
    )
    page = read_page(make_report(run, ReportOptions(labels=tmp_path / "labels")).html)
    names = [dt.text() for dt in page.named("transcripts").all("dt")]
    assert names.count("positioning") == 4
    assert "Files of the run, with hashes of their contents" in page.text()
    assert "Judges of the labels" in page.text()


def test_figures_as_files_with_their_numbers(run: Path, tmp_path: Path) -> None:
    made = make_report(run)
    paths = write_report_figures(made, tmp_path / "a")
    names = ("settings", "embeddedness", "cultures", "kinds", "topics")
    assert [p.name for p in paths] == [
        f"{name}.{kind}" for name in names for kind in ("svg", "pdf", "png", "csv")
    ]
    again = write_report_figures(make_report(run), tmp_path / "b")
    assert [p.read_bytes() for p in paths] == [p.read_bytes() for p in again]
    assert not any(b"CreationDate" in p.read_bytes() for p in paths if p.suffix == ".pdf")
    with (tmp_path / "a" / "settings.csv").open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    for row, wanted in zip(rows, results_of(run)["rows"], strict=True):
        for name in MEASURES[:4]:
            assert row[name] == ("" if wanted[name] is None else str(wanted[name]))


def test_cells_of_the_numbers_do_not_run_in_a_spreadsheet(tmp_path: Path) -> None:
    from framing_made import CATEGORIES, CHARACTERISTICS, made_framing
    from habitus.reports.figures import figure_pages, write_pages
    from habitus.reports.pages import Page

    few = {"insider": CHARACTERISTICS["insider"]}
    models = ("=cmd()", "-5", "lone \ud800")
    framing = made_framing(models, ("@x",), CATEGORIES[:1], few, undefined=0)
    pages = [page for page in figure_pages(framing) if isinstance(page, Page)]
    paths = write_pages(pages, tmp_path, numbers=True)
    (path,) = (p for p in paths if p.name.startswith("prevalence") and p.suffix == ".csv")
    with path.open(encoding="utf-8", newline="") as file:
        rows = list(csv.reader(file))
    assert {row[2] for row in rows[1:]} == {"'=cmd()", "'-5", r"lone \ud800"}
    assert {row[0][0] for row in rows[1:]} == {"'"}


def test_a_hatch_is_defined_once_for_all_drawings() -> None:
    from framing_made import CATEGORIES, CHARACTERISTICS, MODELS, made_framing
    from habitus.reports.document.pictures import pictures
    from habitus.reports.figures import figure_pages

    few = {name: CHARACTERISTICS[name] for name in ("insider", "emotions")}
    framing = made_framing(MODELS, ("india", "china"), CATEGORIES[:1], few, undefined=0)
    drawn = [str(p.svg) for p in pictures(figure_pages(framing), "f") if p.svg]
    assert len(drawn) > 2
    ids = re.findall(r' id="(f-hatch-[^"]+)"', "".join(drawn))
    assert len(ids) == len(set(ids)) > 1
    assert {"#ffffff", "#0072b2"} <= set(re.findall(r' fill="(#[0-9a-f]{6})"', drawn[0]))
    used = set(re.findall(r"url\(#(f-hatch-[^)]+)\)", "".join(drawn)))
    assert used == set(ids)
    assert max(map(len, drawn)) < 200_000


def test_without_matplotlib_the_page_has_the_numbers_and_says_what_is_missing(run: Path) -> None:
    code = (
        "import sys; sys.modules['matplotlib'] = None; from pathlib import Path;"
        "from habitus.reports import make_report;"
        "sys.stdout.buffer.write(make_report(Path(sys.argv[1])).html)"
    )
    done = subprocess.run([sys.executable, "-c", code, str(run)], check=True, capture_output=True)
    page = read_page(done.stdout)
    assert not list(page.all("svg"))
    assert page.text().count("drawing needs matplotlib") == 5
    assert table_called(page, "Numbers of the figure: Results by setting (synthetic)")


def test_works_to_cite_are_those_of_the_citation_file() -> None:
    cff: Any = read_yaml(ROOT / "CITATION.cff").data
    software, ccbench, franz = works(ccbench=True, franz=True)
    assert cff["title"] in software.text
    assert str(cff["version"]) in software.text
    for work, reference in zip((ccbench, franz), cff["references"], strict=True):
        assert reference["title"] in work.text
        assert str(reference["year"]) in work.bibtex
        assert work.url == reference.get("url", "")
    assert cff["references"][0]["identifiers"][0]["value"] in ccbench.text


@pytest.mark.parametrize(
    ("text", "value", "below"),
    [
        (".115 [.092, .140]", 0.115, "[.092, .140]"),
        ("-.012 [-.1, +.1]", -0.012, "[-.1, +.1]"),
        ("+.5", 0.5, ""),
        ("3,120", 3120, ""),
        ("12 of 3,120 (unparsed 12)", 12, ""),
        ("1.000", 1, ""),
        ("0", 0, ""),
        ("n/a", None, ""),
        ("", None, ""),
        ("2026-11-30", None, ""),
        ("v1.2", None, ""),
        ("-", None, ""),
        ("1.2.3", None, ""),
    ],
)
def test_cells_are_sorted_by_the_number_they_begin_with(
    text: str, value: float | None, below: str
) -> None:
    table = sortable_table(TextTable("t", ("a", "b"), (("x", text), ("y", "1"))))
    found = table.rows[0][1]
    assert (found.value, found.below) == (value, below)


@pytest.fixture
def study(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Terminal:
    made_run(tmp_path)
    (tmp_path / "runs").mkdir()
    (tmp_path / "run").rename(tmp_path / "runs" / "first")
    return terminal_in(tmp_path, monkeypatch, capsys)


def test_the_command_writes_into_the_run_or_where_it_is_told(study: Terminal) -> None:
    code, out, err = study("report", "first")
    assert (code, out) == (0, "runs/first/report.html\n")
    assert "no network needed" in err
    assert study("report", "first", "-o", "other.html", "--figures", "figures")[0] == 0
    first = (study.folder / "runs" / "first" / "report.html").read_bytes()
    assert first == (study.folder / "other.html").read_bytes()
    assert {p.suffix for p in (study.folder / "figures").iterdir()} == {
        ".svg", ".pdf", ".png", ".csv",
    }  # fmt: skip


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("nothing",), "there is no run at runs/nothing"),
        (("first", "--labels", "first"), "holds no labels; `habitus judge` makes them"),
        (("first", "--setting", "hsit"), "no results in the setting 'hsit'; there are none, hist"),
        (("first", "-o", "runs"), "runs cannot be written"),
    ],
    ids=["no run", "no labels", "no setting", "no file"],
)
def test_a_mistake_is_one_message(
    study: Terminal, arguments: tuple[str, ...], message: str
) -> None:
    code, out, err = study("report", *arguments)
    assert (code, out) == (2, "")
    assert message in err
    assert "Traceback" not in err


def test_another_setting_for_the_figures(run: Path) -> None:
    made = make_report(run, ReportOptions(setting="ccot"))
    assert [p.heading for p in made.pictures[1:]] == [
        h.replace("hist", "ccot") for h in (p.heading for p in make_report(run).pictures[1:])
    ]
    assert "setting ccot" in made.pictures[1].heading
