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
from habitus.histories.roles import role_breaks
from habitus.models.quirks import Quirks
from habitus.models.reading import read_completion
from habitus.personas.openers import load_openers
from habitus.records import Attempt, Failure, Outcome, Reply
from habitus.store import RunDir
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
    ("\u8c22\u8c22\u4f60\u518d\u89c1", "\u597d\u7684\u518d\u89c1"),
]


ORDINARY = [
    ("I'll see you at the clinic? No, I meant my mum.", "Take care to drink water."),
    (
        "My doctor said I should take care with salt.",
        "Good night routines help: dim the lights an hour before.",
    ),
    ("Could it be my pillow", "You're welcome to try a firmer one."),
    ("I don't sleep well, good night's sleep is rare.", "A good night starts with a cool room."),
    ("He told me to say goodbye to sugar.", "You can say goodbye to sugar slowly."),
    (
        "Bye-bye sugar, I told myself last week, but I failed.",
        "Goodbye to sugar is hard; start with drinks.",
    ),
    ("I take care not to eat late.", "Good, take care not to skip breakfast."),
    ("I want to see you explain it simply.", "Rest, drink, and see your doctor on Monday."),
    (
        "I'll have a nice day out with my son tomorrow, so no pills.",
        "Have a good day plan: water, shade, rest.",
    ),
    ("My mother takes care of me. I take care of her.", "Then take care of yourself too."),
    ("As an AI teacher I sit all day.", "Then stand up every hour."),
    ("As a user of insulin I know that.", "Then check twice."),
    ("The persona on TV said so.", "What did they say"),
    ("As the assistant at the shop told me, I rub it in.", "Do that twice a day."),
    ("I am happy to help you move, I told my son, and now my back hurts.", "Rest it."),
    ("How can I help my mother", "Sit with her."),
    ("Doctor: he said two a day.", "Then two a day it is."),
    ("User manual says: no water.", "Then follow it."),
    ("My friend says: leave it.\nMe: I can't.", "What worries you"),
    ("I keep my character strong; you keep in character? No.", "All right."),
    ("We did a role play in therapy.", "How was that"),
    (
        "Adi\xf3s al az\xfacar, me dijo mi madre.",
        "Decir adi\xf3s al az\xfacar cuesta; empiece poco a poco.",
    ),
    ("Hasta luego no me toca la pastilla.", "Hasta ma\xf1ana no tome otra."),
    ("No como de nada desde ayer", "No se prive de nada del todo."),
    (
        "Mi hija se despidi\xf3: adi\xf3s mam\xe1, y llor\xe9.",
        "Es normal llorar al decir adi\xf3s.",
    ),
    ("Cu\xeddate, me dice siempre mi hermana", "Buen consejo: cu\xeddate la espalda."),
    ("Nos vemos obligados a caminar", "Caminar es bueno"),
    ("Hasta pronto no se cur\xf3 mi padre.", "Hasta ma\xf1ana espere con la compresa."),
    ("Ciao ist kein Wort", "Ciao sagt man so"),
    (
        "Gute Nacht sage ich immer um zehn, aber schlafe nicht.",
        "F\xfcr eine gute Nacht hilft ein k\xfchles Zimmer.",
    ),
    (
        "Einen sch\xf6nen Tag hatte ich gestern, heute tut alles weh.",
        "Planen Sie einen sch\xf6nen Tag ohne Termine.",
    ),
    ("Bis bald hat er gesagt und kam nie.", "Bis bald die Besserung kommt, dauert es."),
    ("Ich will tsch\xfcss sagen zum Rauchen.", "Tsch\xfcss zum Rauchen sagt man in Schritten."),
    ("Das habe ich gern geschehen lassen.", "Was ist denn geschehen"),
    ("Bonne nuit pour moi, c'est six heures.", "Pour une bonne nuit, \xe9vitez le caf\xe9."),
    ("Je ne prends plus de rien.", "Cela vient de rien souvent."),
    ("J'ai pass\xe9 une bonne journ\xe9e hier.", "Une bonne journ\xe9e commence par un bon repas."),
    ("J'ai dit adieu au sucre.", "Dire adieu au sucre prend du temps."),
    ("Il dit \xe0 bient\xf4t et jamais ne vient", "\xc9crivez-lui \xe0 bient\xf4t"),
    ("Prego ogni sera per mia madre.", "Se lei prega la sera, va bene: io non prego."),
    ("Buona notte non ne ho da mesi.", "Una buona notte comincia presto."),
    (
        "\u6211\u5988\u5988\u8bf4\u518d\u89c1\u7684\u65f6\u5019\u54ed\u4e86",
        "\u544a\u522b\u5f88\u96be\uff0c\u8bf4\u518d\u89c1\u8981\u6162\u6162\u6765",
    ),
    (
        "\u6211\u665a\u5b89\u90fd\u8bf4\u4e0d\u51fa\u6765\uff0c\u7761\u4e0d\u7740",
        "\u7761\u524d\u8bf4\u665a\u5b89\u53ef\u4ee5\u5e2e\u52a9\u5b69\u5b50\u5165\u7761",
    ),
    (
        "\u6211\u770b\u518d\u89c1\u6548\u4e5f\u8981\u4e00\u5468",
        "\u518d\u89c1\u6548\u4e4b\u524d\u8bf7\u7ee7\u7eed",
    ),
    (
        "\u533b\u751f\u4e0d\u5ba2\u6c14\u5730\u8bf4\u6211\u592a\u80d6",
        "\u4e0d\u5ba2\u6c14\u7684\u8bdd\u4e5f\u8981\u542c",
    ),
    (
        "\u307e\u305f\u306d\u3080\u308c\u306a\u3044",
        "\u307e\u305f\u306d\u3080\u3051\u304c\u6765\u305f\u3089\u5bdd\u3066\u304f\u3060\u3055\u3044",
    ),
    (
        "\u3055\u3088\u3046\u306a\u3089\u3068\u8a00\u3048\u305a\u306b\u6ce3\u304d\u307e\u3057\u305f",
        "\u3055\u3088\u3046\u306a\u3089\u3092\u8a00\u3046\u306e\u306f\u96e3\u3057\u3044\u3067\u3059",
    ),
    (
        "\u304a\u3084\u3059\u307f\u306e\u65e5\u3082\u75db\u3044",
        "\u304a\u3084\u3059\u307f\u306e\u65e5\u306f\u4f11\u307f\u307e\u3057\u3087\u3046",
    ),
    (
        "\u041f\u043e\u043a\u0430 \u0431\u043e\u043b\u0438\u0442, \u043d\u0435 \u0445\u043e\u0436\u0443.",
        "\u041f\u043e\u043a\u0430 \u043d\u0435 \u043f\u0440\u043e\u0439\u0434\u0451\u0442, \u043b\u0435\u0436\u0438\u0442\u0435.",
    ),
    (
        "\u041f\u043e\u043a\u0430 \u043d\u0435\u0442",
        "\u041f\u043e\u043a\u0430 \u043f\u0435\u0439\u0442\u0435 \u0432\u043e\u0434\u0443",
    ),
    (
        "\u042f \u043f\u043e\u043a\u0430 \u043f\u044c\u044e \u0447\u0430\u0439",
        "\u041f\u043e\u043a\u0430 \u044d\u0442\u043e\u0433\u043e \u0434\u043e\u0441\u0442\u0430\u0442\u043e\u0447\u043d\u043e",
    ),
    (
        "\u0642\u0627\u0644\u062a \u0623\u0645\u064a \u0645\u0639 \u0627\u0644\u0633\u0644\u0627\u0645\u0629 \u0648\u0628\u0643\u062a",
        "\u0645\u0646 \u0627\u0644\u0635\u0639\u0628 \u0623\u0646 \u062a\u0642\u0648\u0644 \u0645\u0639 \u0627\u0644\u0633\u0644\u0627\u0645\u0629",
    ),
    (
        "\u0623\u0637\u0644\u0628 \u0627\u0644\u0639\u0641\u0648 \u0645\u0646 \u0623\u062e\u064a",
        "\u0627\u0644\u0639\u0641\u0648 \u0639\u0646\u062f \u0627\u0644\u0645\u0642\u062f\u0631\u0629 \u062e\u064a\u0631",
    ),
    ("Kami sama-sama sakit", "Kalian sama-sama perlu istirahat"),
    ("Iyi geceler ge\xe7irmiyorum", "\u0130yi geceler i\xe7in erken yat\u0131n"),
    ("Iyi g\xfcnler g\xf6rd\xfck", "\u0130yi g\xfcnler gelecek"),
    ("Karibu sana alisema nikaingia", "Chakula ni karibu sana na moto"),
    ("Haere r\u0101 au ki te t\u0101kuta", "Haere r\u0101 koe \u0101p\u014dp\u014d"),
    ("Ciao bella \xe8 il nome del bar", "Al ciao bella si mangia bene"),
    ("Vars\xe5god sa hon och gav mig te", "Vars\xe5god att vila"),
    ("Hij zei doei en ging", "Een fijne dag begint vroeg"),
    ("Mam na razie do\u015b\u0107 tabletek", "Na razie to wystarczy"),
    ("at\xe9 mais de dez horas sem comer", "Pode ficar at\xe9 mais de doze"),
    ("Por nada neste mundo eu tomo isso", "Por nada interrompa o tratamento"),
    ("At\xe9 amanh\xe3 n\xe3o posso comer", "At\xe9 amanh\xe3 beba s\xf3 \xe1gua"),
    ("Feliz, que te vaya bien me dijo el doctor", "Es bueno que te vaya bien en el trabajo"),
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

    def test_a_run_knows_the_words_of_its_content(self, tmp_path: Path) -> None:
        rules = [
            {"role": "persona", "reply": "Thanks, bye!"},
            {"role": "assistant", "when": "bye", "reply": "You're welcome!"},
        ]
        options = {"script": "helpers", "rules": rules}
        changes = {**FAST, "models.main": {"backend": "scripted", "options": options}}
        changes |= {"history.exchanges": [4, 4], "filter.policy": "report_only"}
        request = RunRequest(out=tmp_path / "run", until=Stage.HISTORIES)
        run_experiment(study_of(tmp_path, changes), request)
        with RunDir.open(tmp_path / "run", write=False) as run:
            held = list(run.records.iterate("attempts", Attempt))
        assert {(a.end, len(a.turns)) for a in held} == {("farewell", 4)}

    def test_words_that_are_other_talk_as_well_stand_alone(self) -> None:
        found = Goodbyes(languages={"a": ("poka", "hwyl")}, alone=("Poka",), around=("da well",))
        assert found.closes("Da, poka da!")
        assert not found.closes("Poka net")
        assert found.closes("Hwyl, Ann")
        assert not found.closes("Hwyl to salt now")

    @pytest.mark.parametrize("pair", ORDINARY, ids=range(len(ORDINARY)))
    async def test_ordinary_talk_with_its_words_goes_on(self, pair: tuple[str, str]) -> None:
        """Words of leave-taking in other talk, on both sides and all in short turns."""
        persona, assistant = pair
        dialogue = await talk(*sides([persona, "Tea."], ["Well now, tell.", assistant]), 4)
        assert (dialogue.end, len(dialogue.turns)) == ("complete", 8)
        assert role_breaks(dialogue.turns) == ()

    @pytest.mark.parametrize(
        "answer", ["Yes.", "No.", "S\u00ed.", "\u662f\u7684\u3002", "Ja, oft."]
    )
    async def test_two_questions_are_answered_alike(self, answer: str) -> None:
        dialogue = await talk(*sides([answer, answer, answer, "Less now."]), 5)
        assert (dialogue.end, len(dialogue.turns)) == ("complete", 10)

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
            (["So I will.", "so i will!"], False),
            (["I will do so.", "i will do so!"], True),
            (["Well."] * 3, False),
            (["Well.", "well!"] * 2, True),
            (["\u662f\u7684\u3002"] * 3, False),
            (["\u662f\u7684\u3002"] * 4, True),
            (["\u6211\u6bcf\u5929\u90fd\u5403\u3002"] * 2, True),
            (["\U0001f64f"] * 4, True),
            (["\U0001f64f", "\U0001f44d"] * 2, False),
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
            (["Yes.", "No."] * 2, False),
            (["Yes.", "No."] * 4, True),
            (["Yes.", "No.", "So what now?", "yes", "no", "so what now"], True),
            (["Yes.", "No.", "So what now?", "yes", "no", "why now then"], False),
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
