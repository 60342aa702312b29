"""The viewer through key presses: what is on the screen, kept as text in ``tests/snapshots``."""

from __future__ import annotations

import asyncio
import base64
import json
import shutil
import threading
from collections.abc import Callable, Iterable
from pathlib import Path

import pytest
from textual.events import Key
from textual.pilot import Pilot
from textual.screen import ModalScreen

from habitus.browsing import Browsed, Facts, Filter, Notes, View, plain_text
from habitus.browsing.facts import Tell
from habitus.content.visible import safe_text
from habitus.records import JudgedItem, Label, Response
from habitus.store import RunDir
from habitus.tui import Viewer
from habitus.tui.outline import Outline
from labels_made import EMOTIONS, GENERALIZING, POSITIONING, QUANTITY, item, label, labelled_run
from snapshots import compare, screen
from test_browsing import fill, growing
from viewing_made import HOSTILE, small_run

SMALL, LARGE = (80, 24), (200, 60)


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = small_run(tmp_path_factory.mktemp("viewing") / "run")
    notes = Notes(path, by="ana")
    notes.mark("harbour-02/s01/a0", True)
    notes.write("harbour-02/s01/a0", "reads like a person")
    return path


@pytest.fixture
def run(made: Path, tmp_path: Path) -> Path:
    """A copy of the small run, to write notes into."""
    return Path(shutil.copytree(made, tmp_path / "run"))


@pytest.fixture(scope="module")
def labels(made: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Labels over the responses of the small run."""
    return labelled_run(
        tmp_path_factory.mktemp("labels") / "labels",
        *labels_of(made),
        [POSITIONING, GENERALIZING, QUANTITY, EMOTIONS],
        kind="responses",
    )


def labels_of(made: Path) -> tuple[list[JudgedItem], list[Label]]:
    with RunDir.open(made, write=False) as opened:
        found = list(opened.records.iterate("responses", Response))
    items = [
        item(r.persona, r.target, id=r.id, response=r.text, fields={"setting": r.setting})
        for r in found
    ]
    given = [
        label(one.id, verdict, verdict["labels"][number % 2])
        for number, one in enumerate(items)
        for verdict in (POSITIONING, GENERALIZING, QUANTITY)
    ]
    return items, [*given, *(label(one.id, EMOTIONS, None) for one in items)]


#: Runs are made by event loops of their own, so not in that of a test.
aside = asyncio.to_thread


async def press(pilot: Pilot[None], keys: Iterable[str]) -> None:
    """Press keys, and wait for what they set going; ``type:...`` types a text."""
    for key in keys:
        if key.startswith("type:"):
            await pilot.press(*("space" if c == " " else c for c in key.removeprefix("type:")))
        else:
            await pilot.press(key)
    await pilot.app.workers.wait_for_complete()
    await pilot.pause()


async def until(pilot: Pilot[None], done: Callable[[], bool]) -> None:
    """Wait for something that a thread does."""
    while not done():
        await pilot.pause()


async def seen(app: Viewer, size: tuple[int, int], keys: Iterable[str]) -> str:
    """What is on the screen after some keys."""
    async with app.run_test(size=size) as pilot:
        await press(pilot, keys)
        return screen(app)


SCREENS = {
    "transcript": [],
    "rejected": ["j"],
    "persona_page": ["k", "k"],
    "verifier": ["j", "tab", "tab"],
    "marked": ["right_square_bracket"] * 4,
    "responses": ["2", "tab", "l"],
    "other_target": ["2", "tab", *"lllll"],
    "reasoning": ["2", "tab", "l", "l", "o", "G"],
    "judges": ["3", "tab", "l"],
    "zoom": ["z"],
    "help": ["question_mark"],
    "filter_dialog": ["2", "f", "j", "j", "l", "l"],
    "filtered": ["2", "f", *"jjjjj", "l", "k", "l", "enter"],
    "searched": ["slash", "type:net in the shed", "enter"],
    "nothing_found": ["slash", "type:no such words", "enter"],
    "note_dialog": ["a", "type:why nettles"],
    "export_dialog": ["e"],
}


@pytest.mark.parametrize("size", [SMALL, LARGE], ids=["80x24", "200x60"])
@pytest.mark.parametrize("name", SCREENS)
async def test_screens_are_as_they_were(
    made: Path, labels: Path, name: str, size: tuple[int, int]
) -> None:
    app = Viewer(Browsed(made, labels=labels), poll=False)
    compare(f"{name}_{size[0]}x{size[1]}", await seen(app, size, SCREENS[name]))


async def test_posts_with_the_answers_of_models(tmp_path: Path) -> None:
    items = [item(f"p{n}", target) for n in range(2) for target in ("m1", "m2")]
    given = [
        label(one.id, verdict, verdict["labels"][n % 2])
        for n, one in enumerate(items)
        for verdict in (POSITIONING, QUANTITY)
    ]
    verdicts = [POSITIONING, QUANTITY, EMOTIONS]
    path = await aside(labelled_run, tmp_path / "posts", items, given, verdicts)
    app = Viewer(Browsed(path), poll=False)
    compare("posts_120x40", await seen(app, (120, 40), []))


# What must hold


async def test_hostile_text_is_shown_letter_for_letter(tmp_path: Path) -> None:
    """Known from other viewers: brackets vanish, a closing one ends the program, codes act."""
    path = await aside(small_run, tmp_path / "run", HOSTILE, personas=1)
    Notes(path, by="[bold]").write("harbour-01/s01/a0", HOSTILE)
    wanted = "".join(safe_text(HOSTILE).split())
    app = Viewer(Browsed(path), poll=False)
    async with app.run_test(size=(250, 60)) as pilot:
        for keys in ([], ["tab", "tab"], ["2"], ["o"], ["a"], ["escape"], ["m"]):
            await press(pilot, keys)
            text = screen(app)
            assert text == safe_text(text)
            if keys in ([], ["2"], ["o"]):
                assert wanted in "".join(plain_text(app.state.page(0)).split())
                for piece in ("[bold]x[/]", ":smile:", r"\u001b[2J", "[INST] hi [/INST]", "{0} %s"):
                    assert piece in text


async def test_hostile_names_in_a_run_of_labels_are_text(tmp_path: Path) -> None:
    name = "[red]p\x1b[31m[/]"
    verdict = {"judge": "[/x]", "labels": ["[b]", "\u202eno"], "present": ["[b]"]}
    one = item(name, "[i]m[/i]", fields={"country": "[u]here", "category": "\x9bx"})
    given = [label(one.id, verdict, "[b]")]
    path = await aside(labelled_run, tmp_path / "run", [one], given, [verdict])
    app = Viewer(Browsed(path), poll=False)
    async with app.run_test(size=(120, 30)) as pilot:
        await press(pilot, ["f", "l"])
        assert "< [u]here >" in screen(app)
        assert r"[red]p\u001b[31m[/]/[i]m[/i]" in screen(app).splitlines()  # the line of the item
        await press(pilot, ["enter"])
        text = screen(app)
        branches = [branch for outline in app.query(Outline) for branch in outline.root.children]
        leaves = [str(leaf.label) for branch in branches for leaf in branch.children]
    assert [leaf[:20] for leaf in leaves] == [r"[red]p\u001b[31m[/]/["[:20]]
    assert text == safe_text(text)
    assert r"[red]p\u001b[31m[/]" in text
    assert "[/x]: [b]" in text


@pytest.mark.parametrize("size", [SMALL, LARGE], ids=["80x24", "200x60"])
async def test_nothing_rests_on_colour(
    made: Path, monkeypatch: pytest.MonkeyPatch, size: tuple[int, int]
) -> None:
    """Without colour the screen says the same, and no colour is drawn."""
    coloured = await seen(Viewer(Browsed(made), poll=False), size, ["j"])
    monkeypatch.setenv("NO_COLOR", "1")
    app = Viewer(Browsed(made), poll=False)
    async with app.run_test(size=size) as pilot:
        await press(pilot, ["j"])
        assert screen(app) == coloured
        strips = app.screen._compositor.render_strips()
        drawn = {s.style.color for strip in strips for s in strip if s.style and s.style.color}
        assert all(colour.is_default for colour in drawn)
    for word in ("PERSON  1 of", "ASSISTANT  2 of", "REJECTED"):
        assert word in coloured


async def test_a_run_that_is_going_on_grows_on_the_screen(made: Path, tmp_path: Path) -> None:
    path = growing(made, tmp_path / "growing")
    app = Viewer(Browsed(path), poll=False)
    async with app.run_test(size=SMALL) as pilot:
        await press(pilot, ["2"])
        assert "Nothing yet." in screen(app)
        assert "so far: attempts 0/4" in screen(app)
        await fill(path, made, ("attempts",))
        await press(pilot, ["r", "1", "l"])
        assert "s02 try 3 undecided" in screen(app)
        await press(pilot, ["j"])
        before = app.state.current()
        await fill(path, made, ("responses", "evaluations"))
        await press(pilot, ["r"])
        assert app.state.current() == before  # what is being read stays
        await press(pilot, ["2"])
        assert "harbour-001 skin" in screen(app)
        assert "NOT MET" in screen(app) or "MET" in screen(app)


async def test_a_view_with_a_filter_grows_too(made: Path, tmp_path: Path) -> None:
    path = growing(made, tmp_path / "growing")
    asked = Filter(culture="harbour", session="undecided")
    app = Viewer(Browsed(path), given=asked, poll=False)
    async with app.run_test(size=SMALL) as pilot:
        await press(pilot, [])
        assert "Nothing is as asked." in screen(app)
        await fill(path, made, ("attempts",))
        await press(pilot, ["r"])
        assert "s02 try 3 undecided" in screen(app)


class Held(Browsed):
    """A run that takes as long to read as a test wants."""

    def __init__(self, path: Path) -> None:
        super().__init__(path)
        self.go = threading.Event()
        self.read = 0

    def facts(self, view: View, tell: Tell = lambda _: None) -> Facts:
        self.read += 1
        found = super().facts(view, tell)
        assert self.go.wait(60)
        return found

    def search(self, view: View, text: str) -> frozenset[str]:
        self.read += 1
        found = super().search(view, text)
        assert self.go.wait(60)
        return found


@pytest.mark.parametrize("asked", [["f", *"jjjjj", "l", "enter"], ["slash", *"lard", "enter"]])
async def test_news_do_not_stop_what_is_being_read(
    made: Path, tmp_path: Path, asked: list[str]
) -> None:
    """On a large run that goes on there is news before all has been read."""
    path = growing(made, tmp_path / "growing")
    await fill(path, made, ("attempts", "responses"))
    browsed = Held(path)
    app = Viewer(browsed, poll=False)
    async with app.run_test(size=SMALL) as pilot:
        await press(pilot, ["2"])
        await pilot.press(*asked)
        await until(pilot, lambda: browsed.read == 1)
        await fill(path, made, ("evaluations",))
        for _ in range(2):  # the second look finds nothing
            app.action_refresh()
            await until(pilot, lambda: "news" not in app.state.reading)
            assert (app.state.news, browsed.read) == (1, 1)
        browsed.go.set()
        await until(pilot, lambda: not app.state.reading)
        assert browsed.read == 2
        assert "harbour-001 skin" in screen(app)
        assert "lard" in screen(app)


async def test_a_run_that_goes_away_is_said_and_not_a_crash(run: Path) -> None:
    app = Viewer(Browsed(run), poll=False)
    async with app.run_test(size=LARGE) as pilot:
        await press(pilot, [])
        (run / "run.sqlite").unlink()
        await press(pilot, ["j"])
        assert "run.sqlite is missing; restore it" in plain_text(app.state.page(0))
        assert str(run) in screen(app)
        await press(pilot, ["r"])
    assert app.fault is None


async def test_a_mark_and_a_note_are_saved(run: Path) -> None:
    app = Viewer(Browsed(run), poll=False)
    async with app.run_test(size=SMALL) as pilot:
        await press(pilot, ["m", "a", "type:why nettles", "enter"])
        assert "* s01" in screen(app)
        assert ": why nettles" in screen(app)
        await press(pilot, ["a", *["backspace"] * 7, "type:lard", "enter"])
    kept = Notes(run).of("harbour-01/s01/a0")
    assert kept.marked
    assert [note.text for note in kept.notes] == ["why lard"]


async def test_a_mark_is_on_the_answer_in_its_column(run: Path) -> None:
    app = Viewer(Browsed(run), poll=False)
    async with app.run_test(size=LARGE) as pilot:
        await press(pilot, ["2", "tab", "l", "l", "m"])
        assert app.state.current() == "main/ccot/harbour-01/harbour-001/r0"
        await press(pilot, ["right_square_bracket"])  # the column stays
        assert app.state.current() == "main/ccot/harbour-01/harbour-002/r0"
    assert Notes(run).items() >= {"main/ccot/harbour-01/harbour-001/r0"}


async def test_notes_that_cannot_be_written_are_said(run: Path) -> None:
    app = Viewer(Browsed(run), poll=False)
    (run / "notes.jsonl").unlink()
    (run / "notes.jsonl").mkdir()
    async with app.run_test(size=SMALL) as pilot:
        await press(pilot, ["m"])
        assert "notes.jsonl cannot be written" in " ".join(screen(app).split())


async def test_exports_are_files_and_copies_are_text(made: Path, tmp_path: Path) -> None:
    app = Viewer(Browsed(made), folder=tmp_path, poll=False)
    async with app.run_test(size=SMALL) as pilot:
        await press(pilot, ["e", "m", "2", "tab", "l", "e", "j", "y"])
        assert "copied" in screen(app)
        copied = app.clipboard
    written = sorted(path.name for path in tmp_path.iterdir())
    assert written == ["harbour-01-s01-a0.md", "main-hist-harbour-01-harbour-001-r0.json"]
    data = json.loads((tmp_path / written[1]).read_text("utf-8"))
    text = data["responses"][0]["response"]["text"]
    assert text in copied
    assert "FOLLOW" in copied
    assert base64.b64encode(copied.encode())  # what a terminal is sent holds no escape of its own
    assert "PERSON  1 of" in (tmp_path / written[0]).read_text("utf-8")


async def test_a_filter_goes_to_an_answer_that_fits(made: Path) -> None:
    asked = Filter.parse(["setting=norms", "target=other", "verdict=met"])
    browsed = Browsed(made)
    app = Viewer(browsed, item="harbour-01/harbour-001", given=asked, poll=False)
    async with app.run_test(size=SMALL) as pilot:
        await press(pilot, [])
        assert app.state.current().startswith("other/norms/")
        count = len(app.state.now.leaves)
        assert f"{count} of 4" in screen(app)
        await press(pilot, ["escape"])
        assert len(app.state.now.leaves) == 4


async def test_hits_lead_from_place_to_place_and_to_the_next_item(made: Path) -> None:
    app = Viewer(Browsed(made), poll=False)
    async with app.run_test(size=SMALL) as pilot:
        await press(pilot, ["slash", "type:LARD", "enter"])
        found = [leaf.key for leaf in app.state.now.leaves]
        assert found
        visited: list[str] = []
        while len(visited) < 100 and (not visited or "no further" not in app.state.said):
            visited.append(app.state.current())
            await pilot.press("n")
        assert list(dict.fromkeys(visited)) == found
        await press(pilot, ["escape"])
        assert len(app.state.now.leaves) == 6


async def test_it_begins_where_it_is_told_to(made: Path) -> None:
    app = Viewer(Browsed(made), item="other/ccot/harbour-02/harbour-002/r0", poll=False)
    async with app.run_test(size=SMALL) as pilot:
        await press(pilot, [])
        assert app.state.view == "responses"
        assert app.state.current() == "other/ccot/harbour-02/harbour-002/r0"


async def test_keys_of_the_viewer_do_not_act_behind_a_dialog(run: Path) -> None:
    app = Viewer(Browsed(run), poll=False)
    async with app.run_test(size=SMALL) as pilot:
        await press(pilot, ["question_mark", "m", "3", "escape"])
        assert app.state.view == "transcripts"
    assert not Notes(run).of("harbour-01/s01/a0").marked


def type_ahead(app: Viewer, text: str) -> None:
    """Keys that come faster than the viewer is: nobody waits for what they do."""
    named = {"\n": "enter", "\t": "tab", "/": "slash", "?": "question_mark", " ": "space"}
    for letter in text:
        app.post_message(Key(named.get(letter, letter), letter if letter.isprintable() else None))


async def test_keys_that_come_at_once_are_all_heeded(run: Path) -> None:
    app = Viewer(Browsed(run), poll=False)
    async with app.run_test(size=SMALL) as pilot:
        await press(pilot, [])
        first = app.state.key
        type_ahead(app, "\tG\t\tjmawhy nettles?\n\t/lard\n")
        await pilot.pause()
        await until(pilot, lambda: not app.is_typed_ahead)
        assert app.state.now.search == "lard"
        second = app.state.browsed.find("harbour-01/s02/a0")[1]
        assert first != second
    remarks = Notes(run).of(second)
    assert remarks.marked
    assert [note.text for note in remarks.notes] == ["why nettles?"]
    assert not Notes(run).of(first).marked


async def test_help_can_be_scrolled_where_it_has_no_room(run: Path) -> None:
    app = Viewer(Browsed(run), poll=False)
    async with app.run_test(size=(60, 16)) as pilot:
        await press(pilot, ["question_mark"])
        assert "q                   quit" not in screen(app)
        await press(pilot, ["j"] * 6)
        assert "q                   quit" in screen(app)
        await press(pilot, ["q"])
        assert not isinstance(app.screen, ModalScreen)


async def test_a_very_long_turn_is_laid_out_and_drawn_row_by_row(tmp_path: Path) -> None:
    path = await aside(small_run, tmp_path / "run", "so long " * 8_000, personas=1)
    app = Viewer(Browsed(path), poll=False)
    async with app.run_test(size=SMALL) as pilot:
        await press(pilot, ["tab", "G", "k", "k", "g", "space"])
        assert "so long so long" in screen(app)


async def test_resizing_keeps_the_place(made: Path) -> None:
    app = Viewer(Browsed(made), poll=False)
    async with app.run_test(size=LARGE) as pilot:
        await press(pilot, ["2", "tab", "l", "l"])
        await pilot.resize_terminal(*SMALL)
        await press(pilot, [])
        assert "[main ccot]" in screen(app)
        await pilot.resize_terminal(30, 8)
        await press(pilot, ["tab", "tab"])
        await pilot.resize_terminal(*LARGE)
        await press(pilot, [])
        assert "> main ccot" in screen(app)
