"""The lexical check, with the shipped lexicon: what it must catch and what it must let pass."""

from __future__ import annotations

from pathlib import Path

import pytest

from habitus.content import read_yaml
from habitus.errors import ContentError
from habitus.histories import Lexicon, load_lexicon

ROOT = Path(__file__).parents[1]
LEXICON = load_lexicon(ROOT / "judges" / "history_verifier" / "lexicon.yaml")
SENTENCES = read_yaml(Path(__file__).parent / "data" / "reveals.yaml").data
FILLED = {"demonym": "Newar", "country": "Viet Nam", "religion": "Buddhist", "faith": "Islam"}


def small(*patterns: str, not_before: tuple[str, ...] = ()) -> Lexicon:
    return Lexicon(
        demonyms=("nepali", "korean", "south korean"),
        countries=("nepal", "viet nam"),
        religions=("hindu",),
        faiths=("hinduism",),
        not_before=not_before,
        patterns=patterns,
    )


def test_the_sentences_are_many() -> None:
    assert len(SENTENCES["reveals"]) >= 40
    assert len(SENTENCES["harmless"]) >= 60


@pytest.mark.parametrize("sentence", SENTENCES["reveals"])
def test_an_outright_statement_is_caught(sentence: str) -> None:
    assert LEXICON.reveals(sentence)


@pytest.mark.parametrize("sentence", SENTENCES["harmless"])
def test_what_is_no_such_statement_passes(sentence: str) -> None:
    assert LEXICON.reveals(sentence) == ()


@pytest.mark.parametrize("pattern", LEXICON.patterns)
def test_every_pattern_can_match(pattern: str) -> None:
    for choice in (0, -1):
        text = " ".join(token.split("|")[choice] for token in pattern.split())
        for gap in ("", "some, other"):
            said = " ".join(text.replace("{gap}", gap).format(**FILLED).split())
            assert LEXICON.reveals(f"Well, {said}.") != (), said


@pytest.mark.parametrize(
    ("pattern", "text", "found"),
    [
        pytest.param("i am {demonym}", "So I AM\n Nepali!", ("i am nepali",), id="white-space"),
        pytest.param("i am {demonym}", "I\u2019m Nepali", ("i'm nepali",), id="curly"),
        pytest.param("i am {demonym}", "im nepali", ("im nepali",), id="no-apostrophe"),
        pytest.param("we are {demonym}", "we're Nepali", ("we're nepali",), id="we-are"),
        pytest.param("we are {demonym}", "they were Nepali", (), id="were-is-another-word"),
        pytest.param("i am {demonym}", "I am south korean", ("i am south korean",), id="longest"),
        pytest.param("i am {demonym}", "I am Nepalicious", (), id="whole-words"),
        pytest.param("i am {demonym}", "Chai am Nepali", (), id="whole-words-before"),
        pytest.param("we {demonym}s", "we Nepalis", ("we nepalis",), id="plural"),
        pytest.param("a half-{demonym}", "a half-Nepali", ("a half-nepali",), id="hyphen"),
        pytest.param("as a|one {demonym}, i", "as one Hindu, I", (), id="another-list"),
        pytest.param("as a|one {demonym}, i", "as one Nepali, I", ("as one nepali, i",), id="or"),
        pytest.param("as a|one {demonym}, i", "as one Nepali I", (), id="comma-is-asked-for"),
        pytest.param("in {country}", "in Viet  Nam", ("in viet nam",), id="phrase"),
        pytest.param("from {gap} {country}", "from Nepal", ("from nepal",), id="gap-of-none"),
        pytest.param(
            "from {gap} {country}", "from Pokhara, Nepal", ("from pokhara, nepal",), id="gap-comma"
        ),
        pytest.param("from {gap} {country}", "from a big town in Nepal", (), id="gap-of-four"),
        pytest.param("i am a {demonym}", "I'm a Korean-drama fan", (), id="not-before-hyphen"),
        pytest.param("i am a {demonym}", "I'm a Korean drama fan", (), id="not-before"),
    ],
)
def test_how_patterns_match(pattern: str, text: str, found: tuple[str, ...]) -> None:
    assert small(pattern, not_before=("drama",)).reveals(text) == found


def test_phrases_come_in_order_and_once() -> None:
    lexicon = small("i am {demonym}", "i am from {country}")
    text = "I am from Nepal. I am Nepali. As I said, I am from  Nepal."
    assert lexicon.reveals(text) == ("i am from nepal", "i am nepali")


def test_an_unknown_slot_is_told_with_its_place(tmp_path: Path) -> None:
    path = tmp_path / "lexicon.yaml"
    path.write_text(
        "demonyms: [nepali]\ncountries: [nepal]\nreligions: [hindu]\nfaiths: [hinduism]\n"
        'patterns:\n  - "i am {demonym}"\n  - "i am {nation}"\n',
        encoding="utf-8",
    )
    with pytest.raises(ContentError, match=r"7:5.*\{nation\}"):
        load_lexicon(path)
