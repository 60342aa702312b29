"""Judges as files, and labels read from their answers."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from habitus.cli.kinds import kind_of
from habitus.errors import ContentError, NotFoundError, UsageError
from habitus.judges import Asking, Judge, Labelled, find_judge, find_set, load_judge, load_set
from habitus.models.scripted import Helpers, ScriptedOptions
from habitus.records import Failure, Outcome, Reply, Sampling
from people import Seat

GOOD = """\
id: framing
name: "Framing of the answer"
sees: [response]
labels: [Generalizing, Non-Generalizing, NOT_RELEVANT, Unclear]
present: [Generalizing]
"""
PROMPT = "<!-- system -->\nYou judge.\n<!-- user -->\n{{response|fenced}}\n"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    path = tmp_path / "judges" / "framing"
    path.mkdir(parents=True)
    (path / "judge.yaml").write_text(GOOD, encoding="utf-8")
    (path / "prompt.md").write_text(PROMPT, encoding="utf-8")
    return path


@pytest.fixture
def judge(folder: Path) -> Judge:
    return load_judge(folder / "judge.yaml")


async def label(judge: Judge, *replies: Reply | str) -> tuple[Labelled, Seat]:
    seat = Seat(*replies)
    found = await judge.label(seat.model, {"response": "They eat."}, Sampling(), 4, "r/1")
    return found, seat


def said(label: object, **more: object) -> str:
    return json.dumps({"reasoning": "as it says", "label": label, **more})


class TestFiles:
    def test_shipped_judges_are_found_by_id(self) -> None:
        judge = find_judge("safety")
        assert judge.file.labels == ("Safe", "Unsafe")
        assert judge.prompt.placeholders == {"query", "response"}

    def test_the_workspace_comes_first_and_a_path_is_a_path(self, folder: Path) -> None:
        workspace = folder.parents[1]
        assert find_judge("framing", workspace).file.id == "framing"
        assert find_judge(str(folder / "judge.yaml")).file.id == "framing"

    def test_an_unknown_judge_gets_the_nearest_name(self) -> None:
        with pytest.raises(
            NotFoundError, match=r"called 'safty/judge'; did you mean 'safety/judge"
        ):
            find_judge("safty")

    @pytest.mark.parametrize(
        ("old", "new", "message"),
        [
            (
                "present: [G",
                "present: [Neutral, G",
                "5:11: 'Neutral' is not a label (labels: Gener",
            ),
            ("Unclear", "unclear, UNCLEAR", "4:65: label 'UNCLEAR' reads as 'unclear' (capitals"),
            ("Unclear", "not-relevant", "4:56: label 'not-relevant' reads as 'NOT_RELEVANT'"),
            ("Unclear", '"--"', "4:56: a label needs a letter or a digit"),
            ("[response]", "[answer]", "3:8: sees.1: Input should be 'query', 'question' or"),
            ("[response]", "[]", "3:7: sees: needs at least 1 item"),
            (
                ", Non-Generalizing, NOT_RELEVANT, Unclear",
                "",
                "4:9: labels: needs at least 2 items",
            ),
            ("id: framing", "id: Framing!", "1:5: id: an id has lower-case letters, digits"),
            ("name:", "nmae:", "1:1: missing key 'name'"),
            ("present:", "reasoning: -1\npresent:", "5:12: reasoning: Input should be greater"),
            (
                '"Framing of the answer"',
                "12",
                "2:7: name: Input should be a valid string (found 12;",
            ),
        ],
    )
    def test_damage_is_told_with_its_place(
        self, folder: Path, old: str, new: str, message: str
    ) -> None:
        path = folder / "judge.yaml"
        assert old in GOOD
        path.write_text(GOOD.replace(old, new), encoding="utf-8")
        with pytest.raises(ContentError) as error:
            load_judge(path)
        told = [str(problem).removeprefix(f"{path}:") for problem in error.value.problems]
        assert any(problem.startswith(message) for problem in told), told

    @pytest.mark.parametrize(
        ("prompt", "message"),
        [
            ("{{query}}{{response}}", "1:1: unknown placeholder {{query}} (known here: response)"),
            ("You judge.", "1:1: missing placeholder {{response}}"),
            (None, " cannot be read: No such file or directory"),
        ],
    )
    def test_a_prompt_shows_what_the_judge_sees(
        self, folder: Path, prompt: str | None, message: str
    ) -> None:
        path = folder / "prompt.md"
        path.unlink() if prompt is None else path.write_text(prompt, encoding="utf-8")
        with pytest.raises(ContentError) as error:
            load_judge(folder / "judge.yaml")
        assert str(error.value).removeprefix(f"{path}:") == message


class TestLabels:
    async def test_a_label_is_read_with_its_reasoning(self, judge: Judge) -> None:
        found, seat = await label(judge, said("Generalizing"))
        assert found == Labelled("Generalizing", True, "as it says", None, ("",))
        (request,) = seat.requests
        assert [m.role for m in request.all_messages] == ["system", "user"]
        assert request.messages[0].text == "~~~\nThey eat.\n~~~"
        assert (request.seed, request.record, request.stage) == (4, "r/1", "judge/framing")
        assert request.schema is not None
        assert list(request.schema.body["properties"]) == ["reasoning", "label"]

    @pytest.mark.parametrize(
        ("given", "read", "present"),
        [
            ("Generalizing", "Generalizing", True),
            ("Non-Generalizing", "Non-Generalizing", False),
            ("non generalizing", "Non-Generalizing", False),
            ("NON_GENERALIZING", "Non-Generalizing", False),
            ("Not relevant", "NOT_RELEVANT", False),
            (" unclear ", "Unclear", False),
        ],
    )
    async def test_capitals_spaces_and_hyphens_make_no_difference(
        self, judge: Judge, given: str, read: str, present: bool
    ) -> None:
        found, seat = await label(judge, said(given))
        assert (found.label, found.present) == (read, present)
        assert len(seat.requests) == 1

    @pytest.mark.parametrize(
        "given",
        [
            "Generalizing?",
            "Generalizing or Unclear",
            "NonGeneralizing",
            "General",
            "RELEVANT",
            "",
            None,
            True,
            ["Generalizing"],
        ],
        ids=repr,
    )
    async def test_anything_else_is_unparsed_and_not_absent(
        self, judge: Judge, given: object
    ) -> None:
        found, seat = await label(judge, said(given))
        assert (found.label, found.present) == (None, None)
        assert found.failure is not None
        assert found.failure.outcome is Outcome.UNPARSED
        assert len(seat.requests) == 2

    @pytest.mark.parametrize("text", ["[]", '"ok"', "{}", '{"label": null}', "Generalizing"])
    async def test_another_shape_is_unparsed(self, judge: Judge, text: str) -> None:
        found, _ = await label(judge, text)
        assert (found.present, found.calls) == (None, ("", ""))

    async def test_a_label_named_in_the_reasoning_does_not_decide(self, judge: Judge) -> None:
        reasoning = 'At first "label": "Unclear", ##Generalizing##, yet no.'
        found, _ = await label(
            judge, json.dumps({"reasoning": reasoning, "label": "Non-Generalizing"})
        )
        assert (found.label, found.reasoning) == ("Non-Generalizing", reasoning)

    async def test_two_labels_are_none(self, judge: Judge) -> None:
        text = '{"reasoning": "", "label": "Unclear", "label": "Generalizing"}'
        found, _ = await label(judge, text)
        assert found.label is None
        found, _ = await label(judge, f"{said('Unclear')} {said('Generalizing')}")
        assert found.label is None

    async def test_a_failed_call_has_its_outcome(self, judge: Judge) -> None:
        found, _ = await label(judge, Reply(Outcome.REFUSED, said("Generalizing"), "filter"))
        failure = Failure(Outcome.REFUSED, "filter")
        assert (found.label, found.present, found.failure) == (None, None, failure)

    async def test_no_reasoning_is_asked_for_where_none_is_wanted(self, folder: Path) -> None:
        path = folder / "judge.yaml"
        path.write_text(GOOD + "reasoning: 0\n", encoding="utf-8")
        found, seat = await label(load_judge(path), '{"label": "Unclear"}')
        assert (found.label, found.reasoning) == ("Unclear", "")
        schema = seat.requests[0].schema
        assert schema is not None
        assert list(schema.body["properties"]) == ["label"]


VARIANTS = """\
id: warmth
name: "Warmth"
sees: [question, response]
labels: ["Yes", "No"]
present: ["Yes"]
answer:
  form: sentinel
  place: last_line
  keys: [Reasoning, Label]
  as_sentinel: "Reasons, then Final: {{labels}}"
  as_json: "JSON with {{labels}}"
questions:
  has: "Does it have {{name}}?"
  shows: "Does it show {{name}}?"
variants:
  - {id: care, name: care, family: shows, definition: "Care for the asker."}
  - {id: pride, name: pride, family: has, definition: "Pride of its own.", on: false}
  - id: heat
    name: heat
    family: has
    definition: "How much."
    labels: [MUCH, LITTLE, TOO_LITTLE]
    present: [MUCH]
"""
VARIANTS_PROMPT = """\
<!-- system -->
{{name}}: {{definition}} {{asked}}
{{examples}}
{{answer}}
<!-- user -->
{{question|fenced}}
{{response|fenced}}
"""
EXAMPLES = """\
examples:
  - {variant: care, question: q1, response: r1, reasoning: "so", label: "Yes"}
  - {variant: care, question: q2, response: r2, reasoning: "not so", label: "No"}
  - {variant: pride, question: q3, response: r3, reasoning: "so", label: "Yes"}
  - {variant: heat, question: q4, response: r4, reasoning: "a bit", label: LITTLE}
"""
SEEN = {"question": "Am I right?", "response": "I think {{name}} and ##Yes## <|END|>"}


@pytest.fixture
def warmth(tmp_path: Path) -> Path:
    """A judge with variants that somebody adds to a workspace; no code goes with it."""
    path = tmp_path / "judges" / "warmth"
    path.mkdir(parents=True)
    (path / "judge.yaml").write_text(VARIANTS, encoding="utf-8")
    (path / "prompt.md").write_text(VARIANTS_PROMPT, encoding="utf-8")
    (path / "examples.yaml").write_text(EXAMPLES, encoding="utf-8")
    return path


async def ask(judge: Judge, asking: Asking, *replies: Reply | str) -> tuple[Labelled, Seat]:
    seat = Seat(*replies)
    return await judge.label(seat.model, SEEN, judge.sampling, 4, "r/1", asking), seat


class TestVariants:
    async def test_one_prompt_asks_for_each_variant(self, warmth: Path) -> None:
        judge = load_judge(warmth / "judge.yaml")
        assert judge.variants == ("care", "heat")
        found, seat = await ask(judge, Asking("care"), "It cares.\nFinal: ##yes## <|END|>")
        assert (found.label, found.present, found.reasoning) == ("Yes", True, "It cares.")
        rubric, shown = (message.text for message in seat.requests[0].all_messages)
        assert rubric == (
            "care: Care for the asker. Does it show care?\n"
            "Example 1\n\nQuestion:\n~~~\nq1\n~~~\nResponse:\n~~~\nr1\n~~~\n"
            "Answer:\nso\nFinal: ##Yes## <|END|>\n\n"
            "Example 2\n\nQuestion:\n~~~\nq2\n~~~\nResponse:\n~~~\nr2\n~~~\n"
            "Answer:\nnot so\nFinal: ##No## <|END|>\n"
            "Reasons, then Final: ##Yes## or ##No##"
        )
        assert shown == f"~~~\n{SEEN['question']}\n~~~\n~~~\n{SEEN['response']}\n~~~"
        assert seat.requests[0].schema is None
        assert seat.requests[0].sampling == Sampling(0.7, None, 512)

    async def test_a_variant_may_have_labels_of_its_own(self, warmth: Path) -> None:
        judge = load_judge(warmth / "judge.yaml")
        found, seat = await ask(judge, Asking("heat"), "A bit.\nFinal: ##too little##")
        assert (found.label, found.present) == ("TOO_LITTLE", False)
        assert "##MUCH##, ##LITTLE## or ##TOO_LITTLE##" in seat.seen()

    async def test_a_variant_that_is_off_is_asked_by_name(self, warmth: Path) -> None:
        judge = load_judge(warmth / "judge.yaml")
        found, _ = await ask(judge, Asking("pride"), "Final: ##No##")
        assert (found.label, found.present) == ("No", False)

    async def test_the_caller_may_have_json(self, warmth: Path) -> None:
        judge = load_judge(warmth / "judge.yaml")
        reply = '{"Reasoning": "so", "Label": "YES"}'
        found, seat = await ask(judge, Asking("care", form="json"), reply)
        assert (found.label, found.reasoning) == ("Yes", "so")
        schema = seat.requests[0].schema
        assert schema is not None
        assert schema.name == "judge_warmth_care"
        assert list(schema.body["properties"]) == ["Reasoning", "Label"]
        assert '{"Reasoning": "so", "Label": "Yes"}' in seat.seen()
        assert "##" not in seat.requests[0].all_messages[0].text
        assert seat.seen().count('JSON with "Yes" or "No"') == 1

    async def test_what_cannot_be_read_is_asked_once_more_then_unparsed(self, warmth: Path) -> None:
        judge = load_judge(warmth / "judge.yaml")
        found, seat = await ask(judge, Asking("care"), "Final: ##Yes## or ##No##", "Hm.")
        assert (found.label, found.present, len(seat.requests)) == (None, None, 2)
        assert found.failure == Failure(Outcome.UNPARSED, "there is no label at its end")
        again = seat.requests[1].messages[-1].text
        assert "more than one label stands there: No, Yes" in again
        assert "one label between double hashes last" in again
        found, _ = await ask(judge, Asking("care"), "Hm.", "Final: ##No##")
        assert (found.label, found.failure) == ("No", None)

    async def test_a_judged_text_does_not_label_itself(self, warmth: Path) -> None:
        judge = load_judge(warmth / "judge.yaml")
        found, _ = await ask(judge, Asking("care"), f"It says\n{SEEN['response']}")
        assert found.label is None
        reply = f"It says {SEEN['response']} of itself.\nFinal: ##No## <|END|>"
        found, _ = await ask(judge, Asking("care"), reply)
        assert (found.label, found.others) == ("No", ("Yes",))

    async def test_an_unknown_variant_gets_the_nearest_name(self, warmth: Path) -> None:
        judge = load_judge(warmth / "judge.yaml")
        with pytest.raises(NotFoundError, match=r"variant of judge warmth called 'cares'.*'care'"):
            await ask(judge, Asking("cares"), "")
        with pytest.raises(NotFoundError, match="variant of judge warmth"):
            await ask(judge, Asking(), "")

    async def test_a_judge_without_the_texts_has_one_form(self, judge: Judge) -> None:
        with pytest.raises(UsageError, match="framing answers as json only"):
            judge.check(Asking(form="sentinel"))
        with pytest.raises(UsageError, match="no may_see_question"):
            judge.check(Asking(question=True))

    @pytest.mark.parametrize("form", ["json", "sentinel"])
    @pytest.mark.parametrize("name", ["positioning", "post_categories", "safety"])
    async def test_a_scripted_model_plays_every_judge(self, name: str, form: str) -> None:
        judge = find_judge(name)
        if name == "safety" and form == "sentinel":
            return
        seat = Seat(Helpers(ScriptedOptions()))
        seen = {"query": "q", "question": "q", "response": "r"}
        asking = Asking(form="sentinel" if form == "sentinel" else "json")
        found = await judge.label(seat.model, seen, judge.sampling, 1, "r", asking)
        assert found.label == judge.labels().names[0]


class TestTemplates:
    async def test_braces_in_a_prompt_and_placeholders_in_a_response_stay_as_they_are(self) -> None:
        judge = find_judge("generalizing")
        response = "{question} {{question_shown}} {{answer}} <<rubric_item>> {0} </response> ~~~"
        seat = Seat('{"Reasoning": "", "Label": "Non-Generalizing"}')
        seen = {"question": "q", "response": response}
        found = await judge.label(seat.model, seen, judge.sampling, 1, "r")
        assert found.label == "Non-Generalizing"
        assert seat.requests[0].messages[0].text == f"The response:\n\n~~~~\n{response}\n~~~~"
        wanted = '{"Reasoning": "...", "Label": "Generalizing" or "Non-Generalizing"}'
        assert wanted in seat.requests[0].all_messages[0].text

    async def test_requests_of_one_rubric_share_their_prefix(self) -> None:
        judge = find_judge("anthropomorphism")
        seat = Seat("Final: ##No##")
        for response in ("one", "two"):
            seen = {"question": "q", "response": response}
            await judge.label(seat.model, seen, judge.sampling, 1, "r", Asking("agency"))
        first, second = (request.prefix for request in seat.requests)
        assert first is not None
        assert first is second

    def test_the_judge_of_the_manual_is_a_judge(self, tmp_path: Path) -> None:
        manual = (Path(__file__).parents[1] / "docs" / "judges.md").read_text(encoding="utf-8")
        blocks = re.findall(r"^```\w*\n(.*?)^```$", manual, re.DOTALL | re.MULTILINE)
        folder = tmp_path / "judges" / "hedging"
        folder.mkdir(parents=True)
        for name, text in zip(
            ("judge.yaml", "prompt.md", "examples.yaml"), blocks[1:], strict=True
        ):
            (folder / name).write_text(text, encoding="utf-8")
        assert find_judge("hedging", tmp_path).labels().names == ("Hedged", "Plain")


class TestQuestion:
    async def test_the_question_is_shown_only_when_it_is_wanted(self) -> None:
        judge = find_judge("positioning")
        for wanted in (False, True):
            found, seat = await ask(judge, Asking(question=wanted), "We. ##Insider## <|END|>")
            assert (found.label, found.present) == ("Insider", True)
            assert (SEEN["question"] in seat.seen()) is wanted
            assert (
                seat.requests[0]
                .messages[0]
                .text.endswith(f"The response:\n\n~~~\n{SEEN['response']}\n~~~")
            )


class TestDamage:
    @pytest.mark.parametrize(
        ("file", "old", "new", "message"),
        [
            ("judge.yaml", "place: last_line", "place: middle", "8:10: answer.place: Input should"),
            ("judge.yaml", "form: sentinel", "form: words", "7:9: answer.form: Input should be"),
            (
                "judge.yaml",
                '  as_sentinel: "Reasons, then Final: {{labels}}"\n',
                "",
                "7:3: the form is sentinel, and as_sentinel does not say how",
            ),
            (
                "judge.yaml",
                "JSON with {{labels}}",
                "JSON with {{label}}",
                "11:12: unknown placeholder {{label}} (known here: labels)",
            ),
            (
                "judge.yaml",
                "[Reasoning, Label]",
                "[Label, label]",
                "9:17: the two keys of the JSON are the same",
            ),
            (
                "judge.yaml",
                "family: has, definition",
                "family: hsa, definition",
                "17:38: there is no question for 'hsa' (families: has, shows)",
            ),
            ("judge.yaml", "id: pride", "id: care", "17:10: there are two variants 'care'"),
            ("judge.yaml", "[MUCH]", "[LOTS]", "23:15: 'LOTS' is not a label (labels: MUCH, LI"),
            ("judge.yaml", "    present: [MUCH]\n", "", "18:5: a variant with labels of its own"),
            ("judge.yaml", 'labels: ["Yes", "No"]\n', "", "1:1: missing key 'labels'"),
            (
                "judge.yaml",
                "questions:",
                "aliases: {Nope: [no]}\nquestions:",
                "12:17: 'Nope' is not a label (labels: Yes, No)",
            ),
            (
                "judge.yaml",
                "questions:",
                'aliases: {"Yes": ["NO"]}\nquestions:',
                "12:19: 'NO' already stands for 'No'",
            ),
            (
                "judge.yaml",
                "TOO_LITTLE]",
                '"too#"]',
                "22:28: a label stands on one line and has no",
            ),
            ("prompt.md", "{{examples}}", "", "1:1: missing placeholder {{examples}}"),
            ("prompt.md", "{{asked}}", "{{aksed}}", "2:26: unknown placeholder {{aksed}}"),
            (
                "examples.yaml",
                "variant: pride",
                "variant: price",
                "4:15: 'price' is not a variant (variants: care, pride, heat)",
            ),
            (
                "examples.yaml",
                "label: LITTLE",
                "label: Yes",
                "5:76: 'Yes' is not a label (labels: MUCH, LITTLE, TOO_LITTLE)",
            ),
            (
                "examples.yaml",
                "question: q2, ",
                "",
                "3:5: the judge sees the question, and the example has none",
            ),
            (
                "examples.yaml",
                '  - {variant: heat, question: q4, response: r4, reasoning: "a bit", label: LITTLE}\n',
                "",
                "2:3: there is no example for the variant 'heat'",
            ),
            (
                "examples.yaml",
                "examples:",
                "exmaples:",
                "1:1: unknown key 'exmaples' (did you mean",
            ),
        ],
    )
    def test_damage_is_told_with_its_place(
        self, warmth: Path, file: str, old: str, new: str, message: str
    ) -> None:
        path = warmth / file
        text = path.read_text(encoding="utf-8")
        assert old in text
        path.write_text(text.replace(old, new, 1), encoding="utf-8")
        with pytest.raises(ContentError) as error:
            load_judge(warmth / "judge.yaml")
        told = [str(problem).removeprefix(f"{path}:") for problem in error.value.problems]
        assert any(problem.startswith(message) for problem in told), told

    def test_check_reads_a_file_of_examples_by_itself(self, warmth: Path) -> None:
        kind = kind_of(warmth / "examples.yaml")
        assert kind is not None
        kind.load(warmth / "examples.yaml")
        (warmth / "examples.yaml").write_text("examples: []\n", encoding="utf-8")
        with pytest.raises(ContentError, match="1:11: examples: needs at least 1 item"):
            kind.load(warmth / "examples.yaml")


SET = "id: mine\nname: Mine\njudges:\n  - judge: warmth\n    variants: [pride]\n  - judge: safety\n"


class TestSets:
    def test_a_set_names_shipped_judges_and_those_of_the_workspace(self, warmth: Path) -> None:
        path = warmth.parent / "mine.yaml"
        path.write_text(SET, encoding="utf-8")
        verdicts = [(judge.file.id, variant) for judge, variant in load_set(path).verdicts()]
        assert verdicts == [("warmth", "pride"), ("safety", "")]
        assert find_set("mine", warmth.parents[1]).file.name == "Mine"
        kind = kind_of(path)
        assert kind is not None
        assert kind.name == "judge set"

    @pytest.mark.parametrize(
        ("old", "new", "message"),
        [
            ("judge: warmth", "judge: wramth", "4:12: no file in judges/ called 'wramth/judge'"),
            ("[pride]", "[prude]", "5:16: no variant of judge warmth called 'prude'; did you mean"),
            ("judge: safety", "judge: warmth", "6:12: 'warmth' stands here twice"),
            ("variants: [pride]", "variants: []", "5:15: judges.1.variants: needs at least 1 item"),
            ("judges:", "judge:", "1:1: missing key 'judges'"),
            ("judge: safety", "judge: Safety!", "6:12: judges.2.judge: an id has lower-case"),
        ],
    )
    def test_damage_is_told_with_its_place(
        self, warmth: Path, old: str, new: str, message: str
    ) -> None:
        path = warmth.parent / "mine.yaml"
        assert old in SET
        path.write_text(SET.replace(old, new), encoding="utf-8")
        with pytest.raises(ContentError) as error:
            load_set(path)
        told = [str(problem).removeprefix(f"{path}:") for problem in error.value.problems]
        assert any(problem.startswith(message) for problem in told), told

    def test_damage_in_a_judge_is_told_at_the_judge(self, warmth: Path) -> None:
        path = warmth.parent / "mine.yaml"
        path.write_text(SET, encoding="utf-8")
        (warmth / "prompt.md").unlink()
        with pytest.raises(ContentError, match=r"prompt\.md: cannot be read"):
            load_set(path)

    def test_an_unknown_set_gets_the_nearest_name(self) -> None:
        with pytest.raises(NotFoundError, match=r"'frans'; did you mean 'franz'"):
            find_set("frans")
