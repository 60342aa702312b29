"""The shipped openers, queries and lexicon: complete, varied, and silent about every culture."""

from __future__ import annotations

import re
import unicodedata
from collections import Counter
from itertools import chain
from pathlib import Path
from typing import Any

import pytest

from habitus.content import read_yaml

ROOT = Path(__file__).parents[1]
AREAS = {
    "work",
    "mental_health",
    "relationships",
    "family",
    "health",
    "productivity",
    "sports",
    "entertainment",
    "communication",
    "decisions",
    "life",
    "finance",
    "fear",
    "belonging",
    "boundaries",
    "work_life_balance",
    "habits",
}
NAMED_TOPICS = ("disease", "mental health", "reproductive health", "relationships", "addiction")
WORD_LISTS = {"demonyms": 220, "countries": 200, "religions": 30, "faiths": 20}

# Words of the lexicon that the texts use in another, everyday sense.
ORDINARY_WORDS = {"polish": "shoe polish"}
# Parts of value labels that are plain English and say nothing of a culture.
ORDINARY_LABELS = {
    "face": "turned to the wall",
    "care": "for somebody",
    "balance": "of an account, of work and life",
    "connection": "a missed train",
    "understanding": "what siblings have among themselves",
}
_WORD = re.compile(r"[^\W_]+")


def content(path: str) -> Any:
    return read_yaml(ROOT / path).data


def plain(text: str) -> str:
    """The words of a text in lower case, each between two spaces."""
    text = unicodedata.normalize("NFC", text).casefold().replace("\u2019", "'")
    return " " + " ".join(_WORD.findall(text)) + " "


HEALTH = content("personas/openers/health.yaml")
EVERYDAY = content("personas/openers/everyday.yaml")
QUERIES = content("checklists/health.yaml")
LEXICON = content("judges/history_verifier/lexicon.yaml")
TEXTS: dict[str, str] = {
    item["id"]: item["text"]
    for item in chain(HEALTH["openers"], EVERYDAY["openers"], QUERIES["queries"])
}


def words(text: str) -> int:
    return len(text.split())


@pytest.mark.parametrize(
    ("path", "schema"),
    [
        ("personas/openers/health.yaml", "../openers.schema.json"),
        ("personas/openers/everyday.yaml", "../openers.schema.json"),
        ("checklists/health.yaml", "queries.schema.json"),
        ("judges/history_verifier/lexicon.yaml", "../lexicon.schema.json"),
    ],
)
def test_the_first_line_names_the_schema(path: str, schema: str) -> None:
    first = (ROOT / path).read_text(encoding="utf-8").splitlines()[0]
    assert first == f"# yaml-language-server: $schema={schema}"


def test_every_area_has_at_least_four_openers() -> None:
    count = Counter(opener["area"] for opener in HEALTH["openers"])
    assert set(count) == AREAS
    assert min(count.values()) >= 4
    assert (HEALTH["id"], HEALTH["kind"]) == ("health", "domain")


def test_health_openers_are_numbered_within_their_area() -> None:
    seen: Counter[str] = Counter()
    for opener in HEALTH["openers"]:
        seen[opener["area"]] += 1
        assert opener["id"] == f"{opener['area'].replace('_', '-')}-{seen[opener['area']]}"


def test_there_are_150_everyday_openers_of_many_areas() -> None:
    ids = [opener["id"] for opener in EVERYDAY["openers"]]
    assert ids == [f"everyday-{n:03}" for n in range(1, 151)]
    assert len({opener["area"] for opener in EVERYDAY["openers"]}) >= 12
    assert (EVERYDAY["id"], EVERYDAY["kind"]) == ("everyday", "everyday")


def test_there_are_52_queries_over_12_topics() -> None:
    assert [query["id"] for query in QUERIES["queries"]] == [f"health-{n:03}" for n in range(1, 53)]
    count = Counter(query["topic"] for query in QUERIES["queries"])
    assert len(QUERIES["topics"]) == 12
    assert set(count) == set(QUERIES["topics"])
    assert set(count.values()) <= {4, 5}
    labels = " ".join(QUERIES["topics"].values()).casefold()
    assert [topic for topic in NAMED_TOPICS if topic not in labels] == []


@pytest.mark.parametrize(
    ("items", "least", "most"),
    [
        pytest.param(HEALTH["openers"], 5, 60, id="health-openers"),
        pytest.param(EVERYDAY["openers"], 1, 100, id="everyday-openers"),
        pytest.param(QUERIES["queries"], 40, 150, id="queries"),
    ],
)
def test_lengths_keep_to_their_limits_and_use_their_range(
    items: list[dict[str, str]], least: int, most: int
) -> None:
    lengths = {item["id"]: words(item["text"]) for item in items}
    assert {i: n for i, n in lengths.items() if not least <= n <= most} == {}
    span = most - least
    assert min(lengths.values()) <= least + 0.25 * span
    assert max(lengths.values()) >= least + 0.55 * span


def test_ids_and_texts_are_unique() -> None:
    items = [*HEALTH["openers"], *EVERYDAY["openers"], *QUERIES["queries"]]
    assert len(TEXTS) == len(items)
    count = Counter(plain(text) for text in TEXTS.values())
    assert [text for text, n in count.items() if n > 1] == []


def test_no_two_texts_open_or_close_alike() -> None:
    several = [plain(text).split() for text in TEXTS.values() if words(text) >= 8]
    for part in (slice(None, 4), slice(-4, None)):
        count = Counter(" ".join(text[part]) for text in several)
        assert [phrase for phrase, n in count.items() if n > 1] == []


def test_styles_differ() -> None:
    for items in (HEALTH["openers"], EVERYDAY["openers"], QUERIES["queries"]):
        texts = [item["text"] for item in items]
        for trait in (
            [t for t in texts if t[0].islower()],
            [t for t in texts if t[0].isupper()],
            [t for t in texts if "?" in t],
            [t for t in texts if "?" not in t],
        ):
            assert len(trait) >= 0.05 * len(texts)


@pytest.mark.parametrize("name", WORD_LISTS)
def test_lists_of_the_lexicon_are_long_sorted_and_lower_case(name: str) -> None:
    entries = LEXICON[name]
    assert len(entries) >= WORD_LISTS[name]
    assert entries == sorted(set(entries))
    assert [e for e in entries if e != unicodedata.normalize("NFC", e).lower()] == []


def test_no_text_names_a_people_a_country_or_a_religion() -> None:
    named = {plain(word) for name in WORD_LISTS for word in LEXICON[name]}
    named -= {plain(word) for word in ORDINARY_WORDS}
    found = {i: [w for w in named if w in plain(text)] for i, text in TEXTS.items()}
    assert {i: w for i, w in found.items() if w} == {}


def test_words_excused_as_ordinary_are_in_use() -> None:
    said = "".join(plain(text) for text in TEXTS.values())
    assert [word for word in (*ORDINARY_WORDS, *ORDINARY_LABELS) if plain(word) not in said] == []


CULTURES = sorted((ROOT / "norms" / "health").glob("*.yaml"))


def test_the_health_cultures_are_there() -> None:
    assert len(CULTURES) >= 6


@pytest.mark.parametrize("path", CULTURES, ids=lambda path: path.stem)
def test_no_text_names_a_culture_or_one_of_its_values(path: Path) -> None:
    culture = read_yaml(path).data
    labels = culture["values"].values()
    names = {culture["culture"], culture["name"], *labels}
    names |= {part for label in labels for part in re.split(r"[()/&]| and ", label)}
    wanted = {plain(name) for name in names if name.strip()} - set(map(plain, ORDINARY_LABELS))
    found = {i: [w for w in wanted if w in plain(text)] for i, text in TEXTS.items()}
    assert {i: w for i, w in found.items() if w} == {}
