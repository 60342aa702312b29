"""What the two sides of a simulated session may do to each other, and what of it is counted."""

from __future__ import annotations

import itertools
import json
import sqlite3
import unicodedata
from pathlib import Path
from typing import Any

import pytest
import zstandard
from aiohttp import web

import loopback
from habitus.agents.conversation import Conversation, Rules
from habitus.agents.endings import Goodbyes, StopMarker, goes_round, is_blank
from habitus.errors import ContentError
from habitus.experiments import RunRequest, Stage, run_experiment
from habitus.histories import FilterRules, SessionFilter, SessionPlan
from habitus.models.quirks import Quirks
from habitus.models.reading import read_completion
from habitus.personas.openers import load_openers
from habitus.records import Attempt, Failure, Outcome, Reply
from people import Seat, portrait
from study_fixture import FAST, Terminal, harbour, set_options, study_of, terminal_in
from test_conversation import GOODBYES, Side, sides, talk, words
from test_filter import PLAN, session, verifier


@pytest.fixture
def terminal(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Terminal:
    return terminal_in(tmp_path, monkeypatch, capsys)


class TestStopMarker:
    @pytest.mark.parametrize(
        ("said", "before"),
        [
            ("Thanks. [END]", "Thanks."),
            ("Thanks. [end]", "Thanks."),
            ("Thanks. [ End ]", "Thanks."),
            ("Thanks.\n[\nEND\n]", "Thanks."),
            ("Thanks. **[END]**", "Thanks."),
            ("*nods* [END]", "*nods*"),
            ("Thanks. \u3010END\u3011", "Thanks."),
            ("Thanks. \uff3bend\uff3d", "Thanks."),
            ('Thanks. "[END]"', "Thanks."),
            ("`[END]`", ""),
            ("I say [END] and go on talking.", "I say"),
            ('You wrote "[END]", so: [END]', 'You wrote "[END]", so:'),
            ("[END]", ""),
        ],
    )
    def test_it_stops_in_any_form(self, said: str, before: str) -> None:
        assert StopMarker("[END]").split(said) == (before, True)

    @pytest.mark.parametrize(
        "said",
        [
            "In the end I slept.",
            "The [ending] was sad.",
            "END",
            'What does "[END]" mean?',
            "You said \u201c[END]\u201d and I wonder.",
            "What is `[END]`?",
            "[EN D]",
            "",
        ],
    )
    def test_what_only_looks_like_it_is_text(self, said: str) -> None:
        assert StopMarker("[END]").split(said) == (said, False)

    def test_a_plain_word_is_found_as_it_is_only(self) -> None:
        assert StopMarker("DONE").split("I am DONE") == ("I am", True)
        assert StopMarker("DONE").split("I am done, ABANDONED") == ("I am done, ABANDONED", False)

    @pytest.mark.parametrize("marker", ["[END]", "[end]", "**[END]**", "[ END ]", 'say "[END]"'])
    async def test_of_the_other_side_it_does_nothing(self, marker: str) -> None:
        persona, assistant = sides([], [f"One {marker}", marker, f"{marker} three"])
        dialogue = await talk(persona, assistant, 3)
        assert dialogue.end == "complete"
        assert words(dialogue)[1::2] == [f"One {marker}", marker, f"{marker} three"]
        assert persona.requests[0].messages[-1].text == f"One {marker}"

    @pytest.mark.parametrize("opener", ["[END]", "[END] good morning", "So [END]"])
    async def test_an_opener_with_it_is_spoken_and_stops_nothing(self, opener: str) -> None:
        persona, assistant = sides()
        dialogue = await Conversation(persona.agent, assistant.agent, Rules(2)).run(opener, "r")
        assert (words(dialogue)[0], dialogue.end, len(dialogue.turns)) == (opener, "complete", 4)


TAKING_LEAVE = [
    ("Thanks, bye!", "You're very welcome, have a nice day!"),
    ("¡Gracias, adiós!", "De nada, ¡hasta luego!"),
    ("Merci, au revoir", "De rien, bonne journée !"),
    ("Danke, tschüss!", "Gern geschehen, auf Wiedersehen!"),
    ("Obrigada, tchau!", "Por nada, até logo!"),
    ("Grazie, arrivederci", "Prego, buona giornata!"),
    ("Dank je, tot ziens", "Graag gedaan, fijne dag!"),
    ("Dziękuję, do widzenia", "Nie ma za co, na razie!"),
    (
        "\u0421\u043f\u0430\u0441\u0438\u0431\u043e, \u0434\u043e \u0441\u0432\u0438\u0434\u0430\u043d\u0438\u044f",
        "\u0412\u0441\u0435\u0433\u043e \u0434\u043e\u0431\u0440\u043e\u0433\u043e!",
    ),
    ("\u8c22\u8c22\uff0c\u518d\u89c1\uff01", "\u4e0d\u5ba2\u6c14\uff0c\u518d\u89c1\u3002"),
    (
        "\u3042\u308a\u304c\u3068\u3046\u3001\u307e\u305f\u306d",
        "\u3069\u3046\u3044\u305f\u3057\u307e\u3057\u3066\u3002",
    ),
    (
        "\uac10\uc0ac\ud574\uc694, \uc548\ub155\ud788 \uacc4\uc138\uc694",
        "\ucc9c\ub9cc\uc5d0\uc694.",
    ),
    ("Asante, kwaheri", "Karibu sana, kwaheri!"),
    ("Teşekkürler, hoşça kal", "Rica ederim, iyi günler!"),
]


class TestEndlessTalk:
    @pytest.mark.parametrize(("persona", "assistant"), TAKING_LEAVE)
    async def test_goodbyes_end_in_many_languages(self, persona: str, assistant: str) -> None:
        dialogue = await talk(*sides([persona] * 9, ["Tea.", *[assistant] * 9]), 9)
        assert (dialogue.end, len(dialogue.turns)) == ("farewell", 4)

    def test_a_question_is_none_in_any_of_them(self) -> None:
        assert not GOODBYES.closes("\u518d\u89c1\u5417\uff1f")
        assert not GOODBYES.closes("\u00bfAdi\u00f3s?")

    @pytest.mark.parametrize(
        "text",
        [
            "A good night\u2019s sleep is what I need.",
            "I take care of my mother.",
            "It passed by the window.",
            "Those goodbyes were hard.",
            "Tea is ready, and you may bye and bye lie down when all of them have gone to sleep again.",
            "",
        ],
        ids=["sleep", "care", "within a word", "plural", "long", "nothing"],
    )
    def test_ordinary_words_are_none(self, text: str) -> None:
        assert not GOODBYES.closes(text)

    def test_words_of_a_language_are_content(self) -> None:
        found = Goodbyes(languages={"welsh": ("Hwyl fawr",)}, not_before=("yn",))
        assert found.closes("hwyl  FAWR!")
        assert not found.closes("Hwyl fawr yn y bore")
        assert not found.closes("Goodbye!")
        assert not Goodbyes().closes("Goodbye!")

    @pytest.mark.parametrize("period", [1, 2, 3])
    @pytest.mark.parametrize("side", ["persona", "assistant"])
    async def test_talk_that_goes_round_ends(self, period: int, side: str) -> None:
        said = ["Kia pai to r\u0101.", "Ka pai hoki.", "\u0100e, ka pai."][:period]
        lines = list(itertools.islice(itertools.cycle(said), 60))
        dialogue = await talk(*(sides(lines) if side == "persona" else sides((), lines)), 30)
        assert dialogue.end == "repetition"
        assert sum(text in said for text in words(dialogue)) == 2 * period

    @pytest.mark.parametrize(
        ("turns", "round_"),
        [
            (["Well.", "well!"], True),
            (["\U0001f64f", "\U0001f64f"], True),
            (["\U0001f64f", "\U0001f44d"], False),
            (["I will try the tea tonight and see how it goes then."] * 2, True),
            (
                [
                    "I will try the tea tonight and see how it goes then, thank you.",
                    "I will try the tea tonight and see how it goes then, thanks you!",
                ],
                True,
            ),
            (
                [
                    "I will take 2 cups of the tea tonight and see how it goes.",
                    "I will take 3 cups of the tea tonight and see how it goes.",
                ],
                False,
            ),
            (["Yes.", "No.", "Yes."], False),
            (["Yes.", "No.", "Yes.", "No."], True),
            (["Yes.", "No.", "So?", "yes", "no", "so"], True),
            (["Yes.", "No.", "So?", "yes", "no", "why"], False),
            (["My hand hurts.", "My foot hurts."], False),
            ([], False),
        ],
    )
    def test_what_goes_round(self, turns: list[str], round_: bool) -> None:
        assert goes_round(turns) is round_


EMPTY = {
    "nothing": "",
    "white space": " \n\t\u00a0\u3000",
    "zero width": "\u200b\u200d\ufeff\u2060",
    "fillers": "\u3164\u2800",
    "a label": "User:",
    "a label in bold": "**Assistant:** ",
    "a wide label": "\u7528\u6237\uff1a",
    "a label in brackets": "[User]",
}


class TestEmptyTurns:
    @pytest.mark.parametrize("side", ["persona", "assistant"])
    @pytest.mark.parametrize("empty", EMPTY.values(), ids=EMPTY.keys())
    async def test_are_asked_for_once_more_and_then_end_it(self, empty: str, side: str) -> None:
        def said(*lines: str) -> tuple[Side, Side]:
            return sides(lines) if side == "persona" else sides((), lines)

        dialogue = await talk(*said(empty, "There."), exchanges=2)
        assert dialogue.end == "complete"
        assert "There." in words(dialogue)
        dialogue = await talk(*said(empty, empty, "never"), exchanges=2)
        assert dialogue.end == "empty_turn"
        assert dialogue.failure == Failure(Outcome.UNPARSED, "empty turn twice")
        assert all(text.strip() and text != empty for text in words(dialogue))

    async def test_thinking_alone_is_nothing_said_and_being_cut_is_a_failure(self) -> None:
        def thought(finish: str) -> Reply:
            body = loopback.completion({"content": "<think>hm</think>"}, finish)
            return read_completion(body, Quirks()).reply({}, 0.0)

        dialogue = await talk(*sides([thought("stop"), thought("stop")]))
        assert dialogue.end == "empty_turn"
        dialogue = await talk(*sides([thought("stop"), "There."]), exchanges=2)
        assert dialogue.end == "complete"
        assert (await talk(*sides([thought("length")]))).end == "failed"

    @pytest.mark.parametrize("text", ["\U0001f44d", "...", "User", "User: yes", "\u0939", "-"])
    def test_what_can_be_seen_is_something(self, text: str) -> None:
        assert not is_blank(text)

    def test_a_model_that_answers_with_nothing_visible_gave_no_answer(self) -> None:
        read = read_completion(loopback.completion({"content": "\u200b\ufeff"}), Quirks())
        assert (read.outcome, read.reason) == (Outcome.UNPARSED, "empty")


OPENERS = {
    "white space around it": "  is 5 am too early?  ",
    "CRLF": "one\r\ntwo\r\n",
    "decomposed": unicodedata.normalize("NFD", "\u00e9t\u00e9"),
    "composed": "\u00e9t\u00e9",
    "emoji": "\U0001f469\u200d\u2695\ufe0f help",
    "zero width inside": "a\u200bb",
    "a label": "User: hello",
    "think tags": "<think>x</think>hello",
}


class TestOpeners:
    @pytest.mark.parametrize("text", OPENERS.values(), ids=OPENERS.keys())
    async def test_are_word_for_word_from_the_file_to_the_record(
        self, tmp_path: Path, text: str
    ) -> None:
        path = tmp_path / "o.yaml"
        opener = {"id": "a", "area": "home", "text": text}
        path.write_text(
            json.dumps({"id": "o", "kind": "everyday", "openers": [opener]}, ensure_ascii=False)
        )
        (loaded,) = load_openers(path).openers
        assert loaded.text == text
        persona, assistant = sides()
        dialogue = await Conversation(persona.agent, assistant.agent, Rules(2)).run(text, "r")
        assert dialogue.turns[0].text == assistant.requests[0].messages[0].text == text

    @pytest.mark.parametrize("text", ["", " \n", "\u200b\ufeff"])
    def test_one_that_says_nothing_is_refused_with_its_place(
        self, tmp_path: Path, text: str
    ) -> None:
        path = tmp_path / "o.yaml"
        opener = {"id": "a", "area": "home", "text": text}
        path.write_text(
            json.dumps({"id": "o", "kind": "everyday", "openers": [opener]}, ensure_ascii=False)
        )
        with pytest.raises(ContentError, match=r"o\.yaml:1:"):
            load_openers(path)

    @pytest.mark.parametrize(
        "said", [PLAN.text.strip(), f"{PLAN.text}\n", PLAN.text.upper(), "[END]", ""]
    )
    async def test_a_session_with_other_words_is_none(self, said: str) -> None:
        class Wrong:
            async def simulate(self, _: object, plan: SessionPlan, attempt: int) -> Attempt:
                held = session(said or "-", plan.number, attempt)
                return held if said else held.model_copy(update={"turns": ()})

        stage = SessionFilter(Wrong(), verifier(Seat("{}")), FilterRules(report_only=True))
        attempts = await stage.session(portrait(), PLAN)
        assert {(a.outcome, a.decision, a.turns) for a in attempts} == {
            (Outcome.ERROR, "rejected", ())
        }
        assert "word for word" in attempts[0].reason

    @pytest.mark.parametrize(
        ("turns", "words"),
        [
            ([("assistant", "a")], "turn 1 is not the assistant's"),
            ([("persona", "a"), ("persona", "b")], "turn 2 is not the persona's"),
            ([("persona", "a"), ("assistant", "")], "turn 2 has no text"),
        ],
    )
    def test_a_record_of_turns_out_of_order_is_none(
        self, turns: list[tuple[str, str]], words: str
    ) -> None:
        data = session().model_dump()
        data["turns"] = [{"speaker": speaker, "text": text} for speaker, text in turns]
        with pytest.raises(ValueError, match=words):
            Attempt.model_validate(data)

    def test_a_stored_one_in_other_words_is_damage(
        self, tmp_path: Path, terminal: Terminal
    ) -> None:
        request = RunRequest(out=tmp_path / "run", until=Stage.HISTORIES)
        run_experiment(study_of(tmp_path, FAST), request)
        assert terminal("status", "run", "--verify")[0] == 0
        database = sqlite3.connect(tmp_path / "run" / "run.sqlite")
        sql = "SELECT rowid, id, body FROM records WHERE stage = 'attempts' ORDER BY id LIMIT 1"
        row, name, body = database.execute(sql).fetchone()
        record = json.loads(zstandard.decompress(body))
        record["turns"][0]["text"] += " "
        changed = zstandard.compress(json.dumps(record).encode())
        database.execute("UPDATE records SET body = ? WHERE rowid = ?", (changed, row))
        database.commit()
        database.close()
        code, out, _ = terminal("status", "run", "--verify")
        assert code == 1
        assert f"attempts {name} does not begin with its opener word for word" in out


SECRET = "SECRET-THOUGHT"
THINKING: dict[str, Any] = {
    "reasoning": lambda text: {"content": text, "reasoning": SECRET},
    "reasoning_content": lambda text: {"content": text, "reasoning_content": SECRET},
    "tags": lambda text: {"content": f"<think>{SECRET}</think>{text}"},
    "a closing tag": lambda text: {"content": f"{SECRET}</think>\n{text}"},
    "a part": lambda text: {
        "content": [{"type": "thinking", "thinking": SECRET}, {"type": "text", "text": text}]
    },
}


class TestReasoning:
    """Of any role, in any form, it stays out of everything that is asked and shown as said."""

    @pytest.mark.parametrize("form", THINKING)
    def test_it_reaches_no_prompt_and_no_turn(
        self, tmp_path: Path, terminal: Terminal, form: str
    ) -> None:
        numbers = itertools.count()

        async def step(_: web.Request, __: dict[str, Any]) -> web.StreamResponse:
            n = next(numbers)  # every fifth is thought alone, so that turns are asked for again
            text = "" if n % 5 == 4 else f"This is about point {n}."
            body = loopback.completion(THINKING[form](text))
            return web.Response(body=body, content_type="application/json")

        with loopback.served(step) as server:
            far = {"backend": "openai", "model": "m", "base_url": server.url, "concurrency": 4}
            changes = {**FAST, "models.main": far, "filter.policy": "report_only"}
            changes |= {"limits.alike": 1000, "history.exchanges": [3, 3]}
            words = ["run", str(harbour(tmp_path)), "--out", "run", "--quiet"]
            assert terminal(*words, *set_options(changes))[0] == 1  # nothing of it is a verdict
            bodies = list(server.bodies)
        asked = [json.dumps(body) for body in bodies]
        assert any("Give the whole answer again" in body for body in asked)  # repairs
        assert any("assistant" in [m["role"] for m in body["messages"]] for body in bodies)
        assert not [body for body in asked if SECRET in body]
        attempts = (tmp_path / "run" / "records" / "attempts.jsonl").read_text()
        assert "This is about point" in attempts
        assert SECRET not in attempts
        assert SECRET not in terminal("view", "run", "--plain", "harbour-01/s01")[1]
