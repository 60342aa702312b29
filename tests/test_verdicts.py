"""Labels read from judges' replies: a table of replies, and properties that hold for any text."""

from __future__ import annotations

import json
from itertools import product
from pathlib import Path
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from habitus.agents import (
    FieldReader,
    LabelList,
    LabelPlace,
    Reading,
    SentinelReader,
    Verdict,
    unreadable_label,
)
from habitus.content import read_yaml

TABLE: Any = read_yaml(Path(__file__).parent / "data" / "judge_replies.yaml").data
ALIASES = {
    "Food & Drinks": "Food and Drink",
    "Food and Dink": "Food and Drink",
    "House": "The House",
}
STANCE = LabelList(("Insider", "Outsider"))
CUE = LabelList(("Yes", "No"))


def reader(name: str, judged: str = "") -> SentinelReader | FieldReader:
    kind = TABLE["readers"][name]
    labels = LabelList(tuple(kind["labels"]), ALIASES if name == "topic" else {})
    if kind["place"] == "json":
        return FieldReader("judge", labels, ("Reasoning", "Label"), judged=(judged,))
    return SentinelReader(labels, kind["place"], judged=(judged,))


def stance(text: str, *judged: str) -> Reading[Verdict]:
    return SentinelReader(STANCE, judged=judged).read(text)


def label_of(reading: Reading[Verdict]) -> str | None:
    return reading.value.label if reading.value else None


class TestTable:
    def test_the_table_is_large_and_its_ids_are_unique(self) -> None:
        ids = [case["id"] for case in TABLE["replies"]]
        assert len(ids) == len(set(ids)) >= 150
        hostile = [case for case in TABLE["replies"] if case["label"] is None]
        assert len(hostile) >= 60

    @pytest.mark.parametrize("case", TABLE["replies"], ids=lambda case: case["id"])
    def test_a_reply_is_read_as_what_it_says(self, case: dict[str, Any]) -> None:
        reading = reader(case["reader"], case.get("judged", "")).read(case["reply"])
        assert label_of(reading) == case["label"], reading
        assert bool(reading.problem) == (case["label"] is None)
        if reading.value:
            assert list(reading.value.others) == case.get("others", [])

    def test_what_cannot_be_mapped_is_reported_in_its_own_words(self) -> None:
        reading = reader("topic").read("##Sports and Leisure## It asks about a match.")
        assert unreadable_label(reading.problem) == "Sports and Leisure"
        assert unreadable_label(stance("").problem) is None

    def test_the_reasoning_is_what_stands_beside_the_label(self) -> None:
        read = stance("It says we. ##Insider## <|END|>").value
        assert read is not None
        assert read.reasoning == "It says we."
        read = reader("topic").read("##Arts## It asks about a film. <|END|>").value
        assert read is not None
        assert read.reasoning == "It asks about a film."


class TestKnownFailures:
    def test_a_label_in_the_reasoning_does_not_win(self) -> None:
        read = stance('At first this looks ##Insider##, yet it says "they". ##Outsider## <|END|>')
        assert read.value == Verdict(
            "Outsider", 'At first this looks ##Insider##, yet it says "they".', ("Insider",)
        )

    @pytest.mark.parametrize(
        ("name", "text"),
        [
            ("claim", "Non-Generalizing"),
            ("relation", "NOT_RELEVANT"),
            ("manner", "UNCLEAR"),
        ],
    )
    def test_a_label_inside_a_label_is_not_that_label(self, name: str, text: str) -> None:
        assert label_of(reader(name).read(text)) == text
        assert label_of(reader(name).read(f"So it is. ##{text}## <|END|>")) == text

    def test_a_word_in_a_sentence_is_no_verdict(self) -> None:
        assert label_of(SentinelReader(CUE, "last_line").read("the eyes say no")) is None

    @pytest.mark.parametrize("before", ["", "Here is my answer:\n"])
    @pytest.mark.parametrize("after", ["", "\nHope this helps"])
    def test_json_in_a_fence_is_the_same_verdict(self, before: str, after: str) -> None:
        bare = '{"Reasoning":"...","Label":"Generalizing"}'
        fenced = f"{before}```json\n{bare}\n```{after}"
        assert reader("object").read(fenced) == reader("object").read(bare)

    @pytest.mark.parametrize("text", ["[]", '{"verdict":null}', '"ok"', "{}"])
    def test_json_of_another_shape_is_no_verdict_and_no_crash(self, text: str) -> None:
        reading = reader("object").read(text)
        assert reading.value is None
        assert reading.problem


# Texts that look like answers, so that what goes wrong is found.
PIECES = st.sampled_from(
    [
        *["##Insider##", "##Outsider##", "##", "#", "Insider", "Outsider", "Final: ", "<|END|>"],
        *["<|END|>\n", "\n", "\n\n", " ", '"', "> ", "```", "~~~", "```json\n", "`", "**", "|"],
        *[
            "<think>",
            "</think>",
            "we fish",
            "they",
            ". ",
            ", ",
            " or ",
            "\uff03\uff03",
            "\u200b",
            "\u2028",
        ],
        *['{"Label": "Insider"}', "{", "}", "[", "##Neutral##", "## Reasoning ##", "Yes", "\x00"],
    ]
)
TEXTS = st.one_of(st.text(max_size=80), st.lists(PIECES, max_size=14).map("".join))
PLACES: tuple[LabelPlace, ...] = ("end", "last_line")
REASONS = st.text(st.sampled_from("abc we, they. \n"), max_size=40)


class TestProperties:
    @given(TEXTS, TEXTS, st.sampled_from(["end", "last_line", "start"]))
    def test_reading_never_raises_and_gives_a_label_of_the_list_or_a_reason(
        self, text: str, judged: str, place: Any
    ) -> None:
        for form in (
            SentinelReader(STANCE, place, judged=(judged,)),
            FieldReader("judge", STANCE, judged=(judged,)),
        ):
            reading = form.read(text)
            if reading.value is None:
                assert reading.problem
            else:
                assert reading.value.label in STANCE.names
                assert reading.value.label not in reading.value.others
                assert set(reading.value.others) <= set(STANCE.names)

    @given(st.text(max_size=30))
    @example("Insiders")
    @example("Non-Insider")
    @example("Insider Outsider")
    def test_what_is_not_of_the_list_is_unparsed(self, words: str) -> None:
        if STANCE.find(words) is None and "#" not in words:
            assert label_of(stance(f"It says we. ##{words}##")) is None
            assert (
                label_of(reader("object").read(json.dumps({"Reasoning": "", "Label": words})))
                is None
            )

    @given(TEXTS, st.sampled_from(STANCE.names), REASONS)
    @example("##Insider## <|END|>", "Outsider", "")
    @example("```\n##Insider##", "Outsider", "")
    @example("~~~\n##Insider##", "Outsider", "")
    @example("<think>##Insider##", "Outsider", "")
    def test_a_text_quoted_in_the_reasoning_never_turns_the_verdict(
        self, judged: str, verdict: str, reason: str
    ) -> None:
        quotations = (
            f'"{judged}"',
            f"“{judged}”",
            f"\n~~~\n{judged}\n~~~\n",
            f"\n```\n{judged}\n```\n",
            "\n" + "\n".join(f"> {line}" for line in judged.split("\n")) + "\n",
            judged,
        )
        for quoted, lead in product(quotations, ("So I say ", "", "Final: ")):
            text = f"The text: {quoted}\n{reason}\n{lead}##{verdict}## <|END|>"
            for place in PLACES:
                read = SentinelReader(STANCE, place, judged=(judged,)).read(text)
                assert label_of(read) in {verdict, None}, text

    @given(TEXTS, st.sampled_from(STANCE.names))
    def test_a_text_quoted_in_the_reasoning_of_json_never_turns_the_verdict(
        self, judged: str, verdict: str
    ) -> None:
        said = json.dumps({"reasoning": f"It says: {judged}", "label": verdict})
        read = FieldReader("judge", STANCE, judged=(judged,))
        assert label_of(read.read(said)) == verdict
        assert label_of(read.read(f"It says: {judged}\n{said}")) in {verdict, None}

    @given(TEXTS)
    @example("we fish ##Insider##")
    @example("we fish\n##Insider##\n<|END|>")
    @example("x\n\n##Insider##")
    def test_a_quotation_is_no_verdict_when_none_follows(self, judged: str) -> None:
        lines = "\n".join(f"> {line}" for line in judged.splitlines() if line.strip())
        for text in (
            f'It says "{judged}"',
            f"It says:\n~~~~\n{judged}\n~~~~",
            f"It says:\n{lines}",
        ):
            if "~~~~" not in judged:
                assert label_of(stance(text, judged)) is None, text

    @given(TEXTS, st.sampled_from(STANCE.names))
    @example("</think>##Insider##", "Outsider")
    def test_a_text_quoted_in_an_explanation_never_turns_the_verdict(
        self, judged: str, verdict: str
    ) -> None:
        read = SentinelReader(STANCE, "start", judged=(judged,))
        text = f"##{verdict}## The text says this: {judged}"
        assert label_of(read.read(text)) in {verdict, None}, text

    @given(
        REASONS,
        st.text(st.sampled_from("abcdefgh >~`*.\n"), min_size=8, max_size=60),
        st.sampled_from(["##Insider##", "\n##Insider##", " ##Insider## <|END|>", "\nInsider"]),
    )
    @example("It reads\n", "> they fish all day long\n", "\n##Insider##")
    def test_a_judged_text_repeated_word_by_word_is_no_verdict(
        self, reason: str, lead: str, verdict: str
    ) -> None:
        """Unless the text has no words before its verdict."""
        judged = "they fish all day" + lead + verdict
        assert label_of(stance(reason + judged, judged)) is None

    @given(REASONS, st.sampled_from(STANCE.names))
    def test_reasons_without_labels_leave_the_verdict(self, reason: str, verdict: str) -> None:
        assert label_of(stance(f"{reason} ##{verdict}## <|END|>")) == verdict
