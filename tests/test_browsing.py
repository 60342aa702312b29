"""Looking at a run without a screen: pages, plain text, filters, layout, marks and notes."""

from __future__ import annotations

import asyncio
import json
import shutil
import sqlite3
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
import zstandard
from hypothesis import given
from hypothesis import strategies as st
from rich.cells import cell_len

from habitus.browsing import (
    Browsed,
    Document,
    Filter,
    Notes,
    Wanted,
    lay_out,
    leaves,
    markdown,
    plain_text,
    question_tree,
    row_text,
    save,
    session_tree,
)
from habitus.browsing.document import Beside, Block, Folded, Heading, Paragraph
from habitus.browsing.layout import wrapped
from habitus.content.visible import safe_text
from habitus.errors import NotFoundError, StoreError, UsageError
from habitus.records import Attempt, Evaluation, Response, SafetyLabel, StageRecord
from habitus.store import RunDir
from labels_made import GENERALIZING, POSITIONING, item, label, labelled_run
from snapshots import compare
from study_fixture import terminal_in
from viewing_made import ARABIC, HOSTILE, small_run


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return small_run(tmp_path_factory.mktemp("viewing") / "run")


@pytest.fixture
def run(made: Path, tmp_path: Path) -> Path:
    """A copy of the small run, to write notes into."""
    return Path(shutil.copytree(made, tmp_path / "run"))


# Pages


@pytest.mark.parametrize(
    ("name", "item"),
    [
        ("session", "harbour-01/s02"),
        ("rejected", "harbour-01/s02/a0"),
        ("persona", "harbour-01"),
        ("culture", "harbour"),
        ("question", "harbour-01/harbour-001"),
        ("response", "main/ccot/harbour-01/harbour-001/r0"),
    ],
)
def test_plain_pages_are_as_they_were(
    made: Path, name: str, item: str, monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:  # fmt: skip
    code, out, err = terminal_in(made.parent, monkeypatch, capsys)("view", "run", item, "--plain")
    assert (code, err) == (0, "")
    compare(f"plain_{name}", out)


def test_plain_prints_what_there_is(
    made: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    terminal = terminal_in(made.parent, monkeypatch, capsys)
    rows = [line.split("\t") for line in terminal("view", "run", "--plain")[1].splitlines()]
    with RunDir.open(made, write=False) as opened:
        names = [*opened.records.ids("attempts"), *opened.records.ids("responses")]
        standing = {a.id: a.decision for a in opened.records.iterate("attempts", Attempt)}
    assert rows[0] == ["id", "kind", "outcome"]
    assert sorted(row[0] for row in rows[1:]) == sorted(names)
    assert {row[0]: row[2] for row in rows if row[1] == "session"} == standing
    assert terminal.json("view", "run", "--plain", "--json") == [
        dict(zip(rows[0], row, strict=True)) for row in rows[1:]
    ]


def test_json_gives_the_records_behind_an_id(
    made: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    terminal = terminal_in(made.parent, monkeypatch, capsys)
    name = "main/hist/harbour-02/harbour-001/r0"
    found = terminal.json("view", "run", name, "--json")
    with RunDir.open(made, write=False) as opened:
        response = opened.records.get("responses", name, Response)
        evaluation = opened.records.get("evaluations", f"{name}/harbour-02", Evaluation)
    assert response is not None
    assert evaluation is not None
    assert found["responses"][0]["response"] == response.model_dump(mode="json")
    assert found["responses"][0]["evaluation"] == evaluation.model_dump(mode="json")
    assert len(found["responses"][0]["recommendations"]) == len(evaluation.verdicts)
    session = terminal.json("view", "run", "harbour-01/s01", "--json")
    assert session["attempt"]["id"] == "harbour-01/s01/a0"


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("run", "harbour-01/s09", "--plain"), "did you mean 'harbour-01/s0"),
        (("run", "nobody", "--plain"), "`--plain` without an id lists what there is"),
        (("run", "--plain", "--filter", "colour=red"), "keys are culture"),
        (("run", "--plain", "--filter", "culture"), "write KEY=VALUE"),
        (("run", "--plain", "--filter", "verdict=mett"), "values are met, not met, not judged"),
        (("run", "--plain", "--filter", "targets-disagree=no"), "values are yes"),
        (("run", "--plain", "--filter", "evaluators-disagree=yes"), "--beside RUN"),
        (("run", "--plain", "--labels", "run"), "holds no labels"),
        (("nowhere", "--plain"), "there is no run at runs/nowhere"),
        (("run",), "the viewer needs a terminal"),
    ],
    ids=lambda value: value if isinstance(value, str) else " ".join(value),
)
def test_mistakes_are_one_message(
    made: Path, arguments: tuple[str, ...], said: str, monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:  # fmt: skip
    code, out, err = terminal_in(made.parent, monkeypatch, capsys)("view", *arguments)
    assert (code, out) == (2, "")
    assert said in err
    assert "Traceback" not in err


def test_hostile_text_is_shown_letter_for_letter(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    path = small_run(tmp_path / "run", HOSTILE, personas=1)
    terminal = terminal_in(tmp_path, monkeypatch, capsys)
    shown = safe_text(HOSTILE)
    response = "main/ccot/harbour-01/harbour-001/r0"
    for name in ("harbour-01/s01", "harbour-01/harbour-001", response):
        _, out, _ = terminal("view", "run", name, "--plain")
        assert shown in out
        assert out == safe_text(out)
        written = markdown(Browsed(path).page(name))
        assert f"```text\n{shown}\n```" in written
        assert written == safe_text(written)
        _, out, _ = terminal("view", "run", name, "--json")
        assert out == safe_text(out)


def test_markdown_fences_cannot_be_closed() -> None:
    from habitus.browsing import Page

    text = "a\n```\n# not a heading\n`````\nb"
    written = markdown(Page(Document("x", (Heading("*a* [b](c) <d>", 1), Paragraph(text)))))
    assert f"``````text\n{text}\n``````" in written
    assert r"# \*a\* \[b\](c) \<d\>" in written


def test_what_the_safety_judge_says_stands_below_the_checklist(tmp_path: Path) -> None:
    more: dict[str, Any] = {"personas": 1, "roles.safety": {"model": "main"}}
    path = small_run(tmp_path / "run", **more)
    with RunDir.open(path, write=False) as opened:
        labels = list(opened.records.iterate("safety", SafetyLabel))
    words = {True: "safety judge: UNSAFE", False: "safety judge: SAFE"}
    browsed = Browsed(path)
    for found in labels:
        assert found.unsafe is not None
        text = plain_text(browsed.page(found.response))
        assert words[found.unsafe] in text
        assert "meets " in text
        assert " of 4\n" in text  # the safety judge is not counted among the checklist
    data = browsed.records(labels[0].response)
    assert data["responses"][0]["safety"]["id"] == labels[0].id


# Trees and filters


def test_trees_hold_every_item_once(made: Path) -> None:
    browsed = Browsed(made)
    assert browsed.study is not None
    sessions = [leaf.key for leaf in leaves(session_tree(browsed.study))]
    with RunDir.open(made, write=False) as opened:
        assert sessions == opened.records.ids("attempts")
    questions = [leaf.key for leaf in leaves(question_tree(browsed.study))]
    assert questions == [f"harbour-0{p}/harbour-00{q}" for p in (1, 2) for q in (1, 2)]


def naive(made: Path, asked: Filter) -> set[tuple[str, str]]:
    """(persona, response) of the evaluations that have a verdict as asked, by going through all."""
    with RunDir.open(made, write=False) as opened:
        found = list(opened.records.iterate("evaluations", Evaluation))
    said = {
        (e.setting, e.persona, e.query, e.repeat, v.norm, e.target): v.satisfied
        for e in found
        for v in e.verdicts
    }
    out = set()
    for e in found:
        for v in e.verdicts:
            key = (e.setting, e.persona, e.query, e.repeat, v.norm)
            both = {said[(*key, target)] for target in ("main", "other")}
            word = {True: "met", False: "not met", None: "not judged"}[v.satisfied]
            if (
                asked.setting in {"", e.setting}
                and asked.target in {"", e.target}
                and asked.state in {"", {1: "follow", -1: "avoid"}[v.state]}
                and asked.verdict in {"", word}
                and (asked.targets_disagree != "yes" or both == {True, False})
            ):
                out.add((f"{e.persona}/{e.query}", e.response))
    return out


@pytest.mark.parametrize(
    "pairs",
    [
        ["setting=hist"],
        ["state=avoid", "verdict=met"],
        ["state=follow", "verdict=not met", "setting=norms", "target=other"],
        ["targets-disagree=yes", "setting=ccot"],
        ["targets-disagree=yes", "verdict=met", "target=main", "state=avoid"],
        ["verdict=not judged"],
    ],
    ids=" ".join,
)
def test_filters_find_what_a_count_by_hand_finds(made: Path, pairs: list[str]) -> None:
    browsed, asked = Browsed(made), Filter.parse(pairs)
    assert browsed.study is not None
    wanted = Wanted(asked, browsed.facts("responses"))
    expected = naive(made, asked)
    found = {leaf.key for leaf in leaves(question_tree(browsed.study, wanted))}
    assert found == {group for group, _ in expected}
    listed = {name for name, _, _ in browsed.listing(asked)}
    assert listed == {name for _, name in expected}


@pytest.mark.parametrize("word", ["accepted", "rejected", "flagged"])
def test_sessions_are_found_by_what_became_of_them(made: Path, word: str) -> None:
    browsed = Browsed(made)
    with RunDir.open(made, write=False) as opened:
        attempts = list(opened.records.iterate("attempts", Attempt))
    found = {name for name, _, _ in browsed.listing(Filter(session=word))}
    assert found == {a.id for a in attempts if a.decision == word}


def test_evaluators_disagree_over_the_same_text_only(run: Path, tmp_path: Path) -> None:
    """Another run beside: a verdict is turned round, and so is one of an answer that differs."""
    other = Path(shutil.copytree(run, tmp_path / "other"))
    turned, differs = (f"main/hist/harbour-01/harbour-00{n}/r0" for n in (1, 2))

    async def change() -> None:
        with RunDir.open(other) as opened:
            for name in (turned, differs):
                found = opened.records.get("evaluations", f"{name}/harbour-01", Evaluation)
                assert found is not None
                first = found.verdicts[0]
                verdict = first.model_copy(update={"satisfied": not first.satisfied})
                changed = found.model_copy(update={"verdicts": (verdict, *found.verdicts[1:])})
                await opened.records.put("evaluations", changed)
            response = opened.records.get("responses", differs, Response)
            assert response is not None
            await opened.records.put("responses", response.model_copy(update={"text": "Other."}))

    asyncio.run(change())
    browsed = Browsed(run, beside=other)
    asked = Filter.parse(["evaluators-disagree=yes"])
    assert [name for name, _, _ in browsed.listing(asked)] == [turned]
    assert "beside: " in plain_text(browsed.page(turned))
    assert list(Browsed(run).listing(asked)) == []


def test_searches_find_texts_of_turns_queries_responses_and_reasons(made: Path) -> None:
    browsed = Browsed(made)
    assert browsed.search("transcripts", ARABIC[:5]) & {"harbour-01/s01/a0"}
    assert browsed.search("responses", "FISH HALL") >= {"harbour-01/harbour-001"}
    assert len(browsed.search("responses", "it names LARD")) == 4
    assert browsed.search("responses", "no such words") == frozenset()


def test_a_response_that_all_share_is_shown_for_each_persona(made: Path) -> None:
    browsed, name = Browsed(made), "main/none/-/harbour-001/r0"
    for persona in ("harbour-01", "harbour-02"):
        page = browsed.page(f"{name}/{persona}")
        assert f"for {persona}" in plain_text(page)


# A run that is going on


async def fill(path: Path, source: Path, tables: tuple[str, ...]) -> None:
    kinds: dict[str, type[StageRecord]] = {
        "attempts": Attempt,
        "responses": Response,
        "evaluations": Evaluation,
    }
    with RunDir.open(source, write=False) as old, RunDir.open(path) as new:
        for table in tables:
            for record in old.records.iterate(table, kinds[table]):
                await new.records.put(table, record)


def growing(made: Path, path: Path) -> Path:
    """A run of the same study that has nothing yet."""
    with RunDir.open(made, write=False) as old:
        RunDir.create(path, old.config).close()
    for name in ("study.json", "made_up.json"):
        shutil.copy(made / name, path / name)
    return path


def test_a_run_that_is_going_on_is_seen_as_it_grows(made: Path, tmp_path: Path) -> None:
    path = growing(made, tmp_path / "growing")
    browsed = Browsed(path)
    assert browsed.index.going_on
    assert not browsed.refresh()
    asyncio.run(fill(path, made, ("attempts",)))
    assert browsed.refresh()
    assert {fate for _, _, fate in browsed.listing()} == {"undecided"}
    assert "not judged yet" not in plain_text(browsed.page("harbour-01/s01"))
    asyncio.run(fill(path, made, ("responses",)))
    assert browsed.refresh()
    text = plain_text(browsed.page("harbour-01/harbour-001"))
    assert "nothing yet" in text
    asyncio.run(fill(path, made, ("evaluations",)))
    assert browsed.refresh()
    assert "NOT MET" in plain_text(browsed.page("harbour-01/harbour-001"))


def test_a_viewer_leaves_a_writer_alone(made: Path, tmp_path: Path) -> None:
    """What is open for looking neither locks the run nor keeps its database from being tidied."""
    path = growing(made, tmp_path / "growing")
    browsed = Browsed(path)
    with RunDir.open(path):
        browsed.refresh()
        list(browsed.listing())
    assert not list(path.glob("run.sqlite-*"))


def test_looking_writes_nothing(made: Path) -> None:
    before = {p: p.stat().st_mtime_ns for p in made.rglob("*")}
    browsed = Browsed(made)
    for view in browsed.views:
        browsed.facts(view)
        browsed.search(view, "lard")
    for name in ("harbour-01/s01", "harbour-01/harbour-001"):
        plain_text(browsed.page(name))
    assert {p: p.stat().st_mtime_ns for p in made.rglob("*")} == before


# Labels


def test_posts_are_compared_by_target(tmp_path: Path) -> None:
    items = [item(f"p{n}", target) for n in range(3) for target in ("m1", "m2")]
    labels = [
        label("p0/m1", POSITIONING, "Insider"), label("p0/m2", POSITIONING, "Outsider"),
        label("p1/m1", POSITIONING, "Insider"), label("p1/m2", POSITIONING, None),
        label("p0/m1", GENERALIZING, "Generalizing"),
    ]  # fmt: skip
    browsed = Browsed(labelled_run(tmp_path / "run", items, labels, [POSITIONING, GENERALIZING]))
    assert browsed.views == ("judges",)
    found = [name for name, _, _ in browsed.listing(Filter(targets_disagree="yes"))]
    assert found == ["p0/m1", "p0/m2"]
    outsiders = browsed.listing(Filter(label="positioning=Outsider"))
    assert [name for name, _, _ in outsiders] == ["p0/m2"]
    assert len(list(browsed.listing(Filter(culture="india")))) == 6
    assert list(browsed.listing(Filter(culture="france"))) == []
    text = plain_text(browsed.page("p1/m2"))
    assert "positioning: NOT READ, unparsed: no label" in text
    assert "generalizing: not judged yet" in text


def test_labels_stand_beside_the_run_they_are_of(made: Path, tmp_path: Path) -> None:
    name = "main/hist/harbour-01/harbour-001/r0"
    judged = item("harbour-01", "main", id=name, fields={"setting": "hist", "culture": "harbour"})
    labels = [label(name, POSITIONING, "Insider")]
    path = labelled_run(tmp_path / "labels", [judged], labels, [POSITIONING], kind="responses")
    browsed = Browsed(made, labels=path)
    assert browsed.views == ("transcripts", "responses", "judges")
    found = browsed.compare("judges", "harbour-01/harbour-001")
    assert [column.id for column in found.columns] == [name]
    assert [band.cells[0].word for band in found.bands if band.cells[0]] == ["Insider"]
    with pytest.raises(UsageError, match="a run of labels itself"):
        Browsed(path, labels=path)


# Marks and notes


def test_marks_and_notes_are_kept_in_the_run(run: Path) -> None:
    notes = Notes(run, by="ana")
    notes.mark("harbour-01/s01/a0", True)
    first = notes.write("harbour-01/s01/a0", " too \x1b[31m direct ")
    notes.write("harbour-01/s01/a0", "and late")
    notes.write("harbour-01/s01/a0", "too direct", first)
    kept = Notes(run).of("harbour-01/s01/a0")
    assert kept.marked
    assert [note.text for note in kept.notes] == ["too direct", "and late"]
    assert "note ana: too direct" in plain_text(Browsed(run).page("harbour-01/s01"))
    assert [n for n, _, _ in Browsed(run).listing(Filter(marked="yes"))] == ["harbour-01/s01/a0"]
    notes.mark("harbour-01/s01/a0", False)
    for note in kept.notes:
        notes.write("harbour-01/s01/a0", "", note.id)
    assert Notes(run).items() == frozenset()


def test_two_viewers_do_not_lose_each_others_notes(run: Path) -> None:
    ana, ben = Notes(run, by="ana"), Notes(run, by="ben")
    ana.write("x", "by ana")
    ben.write("x", "by ben")
    assert ana.own("x") == Notes(run, by="ana").own("x")
    ana.refresh()
    assert [note.text for note in ana.of("x").notes] == ["by ana", "by ben"]
    own = ana.own("x")
    assert own is not None
    assert own.text == "by ana"


def note_many(path: Path, by: str) -> None:
    notes = Notes(path, by=by)
    for number in range(50):
        notes.write(f"item-{number}", f"{by} {number} " + "x" * 5000)


def test_notes_written_at_once_are_all_whole(run: Path) -> None:
    """More than a page at a time, by three viewers."""
    names = ("ana", "ben", "cho")
    with ThreadPoolExecutor() as viewers:
        list(viewers.map(note_many, [run] * 3, names))
    kept = Notes(run)
    assert kept.unreadable == 0
    assert {tuple(sorted(note.by for note in kept.of(f"item-{n}").notes)) for n in range(50)} == {
        names
    }


def test_a_line_that_was_cut_short_costs_no_other(run: Path) -> None:
    notes = Notes(run, by="ana")
    notes.write("x", "whole")
    with (run / "notes.jsonl").open("a", encoding="utf-8") as file:
        file.write('{"item": "y", "te')
    notes.write("z", "after")
    kept = Notes(run)
    assert kept.unreadable == 1
    assert kept.items() == {"x", "z"}


def test_notes_that_cannot_be_written_are_a_clear_error(run: Path) -> None:
    (run / "notes.jsonl").mkdir()
    with pytest.raises(StoreError, match=r"notes\.jsonl cannot be read"):
        Notes(run)


def test_notes_can_be_taken_while_the_run_goes_on(run: Path) -> None:
    with RunDir.open(run):
        Notes(run, by="ana").write("x", "seen")
    assert json.loads((run / "notes.jsonl").read_text("utf-8"))["text"] == "seen"


def test_exports_overwrite_nothing(tmp_path: Path) -> None:
    names = [save("text", "../main/hist:p/q/r0", "markdown", tmp_path) for _ in range(2)]
    assert [path.name for path in names] == ["main-hist-p-q-r0.md", "main-hist-p-q-r0-2.md"]
    with pytest.raises(StoreError, match="cannot be written"):
        save("text", "x", "json", tmp_path / "nowhere")


# Layout

texts = st.text(
    st.one_of(
        st.sampled_from(" \n\t-*ab.)(|שלוםعربية中文字👩‍🔬é\u0301\u200d\u202e\x1b"), st.characters()
    ),
    max_size=200,
)


@given(text=texts, width=st.integers(4, 60))
def test_rows_fit_and_lose_no_letter(text: str, width: int) -> None:
    rows = list(wrapped(text, width))
    assert all(cell_len(row) <= width for row in rows)
    letters = "".join(safe_text(text).split())
    assert "".join("".join(rows).split()) == letters


def test_code_keeps_its_lines_and_long_lines_go_on_below_their_beginning() -> None:
    code = "def dose(day):\n    return day * 2\n\n- one two three four five"
    assert list(wrapped(code, 20)) == [
        "def dose(day):", "    return day * 2", "", "- one two three four", "  five",
    ]  # fmt: skip


def blocks() -> Iterator[Block]:
    yield Paragraph("a b c " * 20, lead="FOLLOW norm_1: ", bar="| ")
    yield Beside(((Paragraph("left " * 9),), (Heading("right"), Paragraph("x" * 50))))
    yield Folded("f", "reasoning", (Paragraph("hidden"),))


@pytest.mark.parametrize("width", [1, 8, 20, 33, 80, 200])
def test_pages_fit_any_width(width: int) -> None:
    rows = lay_out(Document("x", tuple(blocks())), width, ())
    least = 4 + 2 + 3 + 4  # the narrowest cells, a bar and what stands between cells
    assert all(cell_len(row_text(row)) <= max(width, least) for row in rows)


def test_what_is_folded_is_hidden_until_it_is_asked_for() -> None:
    document = Document("x", tuple(blocks()))
    shown = ["\n".join(map(row_text, lay_out(document, 40, keys))) for keys in ((), document.folds)]
    assert ["hidden" in text for text in shown] == [False, True]
    assert [text.count("[+] reasoning") for text in shown] == [1, 0]


def test_an_id_that_is_not_there_is_named(made: Path) -> None:
    with pytest.raises(NotFoundError, match="no session, response or item in this run called"):
        Browsed(made).page("main/hist/harbour-09/harbour-001/r0")


@pytest.mark.parametrize("body", [b'{"persona": "x", "verdicts": 7}', b"[1, 2]", b'{"persona": 1}'])
def test_records_of_another_form_are_said_and_not_a_crash(run: Path, body: bytes) -> None:
    name = "main/hist/harbour-01/harbour-001/r0/harbour-01"
    with sqlite3.connect(run / "run.sqlite") as db:
        told = (zstandard.compress(body), "evaluations", name)
        db.execute("UPDATE records SET body = ? WHERE stage = ? AND id = ?", told)
    browsed = Browsed(run)
    for look in (
        lambda: list(browsed.listing(Filter(verdict="met"))),
        lambda: browsed.search("responses", "lard"),
    ):
        with pytest.raises(StoreError, match="has records of another form"):
            look()
    with pytest.raises(StoreError, match=f"evaluations {name} is no Evaluation: ") as found:
        browsed.page("harbour-01/harbour-001")
    assert "\n" not in str(found.value)
