"""Think blocks are never part of an answer."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from habitus.models.thinking import split_thinking

CASES = {
    "closed": (
        "<think>I could say we...</think>They eat rice.",
        "They eat rice.",
        "I could say we...",
    ),
    "closing tag only": ("...so we</think>They eat rice.", "They eat rice.", "...so we"),
    "two blocks": ("<think>a</think>They <think>b</think>eat.", "They eat.", "a\n\nb"),
    "block after text": ("They eat rice. <think>done?</think>", "They eat rice.", "done?"),
    "upper case and spaces": ("<THINK >a</Think >\n\nRice.", "Rice.", "a"),
    "empty block": ("<think>\n\n</think>\n\nRice.", "Rice.", ""),
    "nested": ("<think>a<think>b</think>c</think>Rice.", "Rice.", "a<think>b\n\nc"),
    "other tags stay": ("<b>Rice</b> [think] <thinking>", "<b>Rice</b> [think] <thinking>", ""),
    "no tag, white space kept": (" Rice.\n", " Rice.\n", ""),
}


@pytest.mark.parametrize(("text", "visible", "reasoning"), CASES.values(), ids=CASES.keys())
def test_reasoning_is_not_graded_as_answer(text: str, visible: str, reasoning: str) -> None:
    split = split_thinking(text)
    assert (split.text, split.reasoning, split.finished) == (visible, reasoning, True)


@pytest.mark.parametrize(
    ("text", "visible", "reasoning"),
    [("<think>never closed", "", "never closed"), ("Well. <think>hm", "Well.", "hm")],
)
def test_an_unclosed_block_is_flagged(text: str, visible: str, reasoning: str) -> None:
    split = split_thinking(text)
    assert (split.text, split.reasoning, split.finished) == (visible, reasoning, False)


def test_tag_names_are_configurable() -> None:
    text = "[THINK]a</think>[/THINK]Rice. <thought>b</thought>"
    assert split_thinking(text, ("[THINK]", "thought")).text == "Rice."
    assert split_thinking(text, ("[THINK]", "thought")).reasoning == "a</think>\n\nb"
    assert split_thinking("<think>a</think>b", ()).text == "<think>a</think>b"


pieces = st.lists(st.sampled_from(["<think>", "</think>", "rice ", "< ", " /think>", "\n"]))


@given(pieces.map("".join))
def test_no_tag_and_no_word_is_lost_or_left(text: str) -> None:
    split = split_thinking(text)
    kept = split.text + split.reasoning
    assert kept.count("rice") == text.count("rice")
    assert "</think>" not in split.text
    if split.finished:
        assert "<think>" not in split.text


def test_a_long_text_of_openings_takes_linear_time() -> None:
    split = split_thinking("<think>" * 50_000 + "< " * 50_000)
    assert split.text == ""
    assert not split.finished
