"""Judges as files, and labels read from their answers."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from habitus.errors import ContentError, NotFoundError
from habitus.judges import Judge, Labelled, find_judge, load_judge
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
            ("[response]", "[answer]", "3:8: sees.1: Input should be 'query' or 'response' (found"),
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
