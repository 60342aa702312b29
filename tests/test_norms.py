"""Cultures: states, exact means, graphs, and what is said of damaged files."""

from __future__ import annotations

import itertools
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from habitus.errors import ContentError, NotFoundError, UsageError
from habitus.norms import (
    Culture,
    as_dot,
    exact_counts,
    find_culture,
    graph,
    indistinguishable,
    list_cultures,
    load_culture,
    norm_state,
    norm_states,
    norms_hash,
)
from habitus.norms.naming import names_culture
from habitus.records import NormState

STATES: tuple[NormState, ...] = (1, -1, 0)  # in the order of StateShares
HEALTH = ("afghan", "burmese", "chinese", "maori", "nepali", "vietnamese")

GOOD = """\
culture: tiny
name: "Tiny"
domain: health
source: "made up"
confirmed: false
values:
  calm: "Calm"
  face: "Face"
norms:
  - id: tiny_1
    kind: practice
    values: [calm]
    statement: "The person rests."
  - id: tiny_2
    kind: communication
    values: [calm, face]
    statement: "The person speaks softly."
"""


def culture_of(links: Sequence[Sequence[int]], values: int) -> Culture:
    """A culture with numbered values and one norm for each list of value numbers."""
    return Culture.model_validate(
        {
            "culture": "made",
            "name": "Made",
            "domain": "health",
            "source": "a test",
            "values": {f"v{i}": f"Value {i}" for i in range(values)},
            "norms": [
                {
                    "id": f"n{i}",
                    "kind": "practice",
                    "values": [f"v{j}" for j in link],
                    "statement": "The person does so.",
                }
                for i, link in enumerate(links)
            ],
        }
    )


@st.composite
def cultures(draw: st.DrawFn) -> Culture:
    k = draw(st.integers(1, 6))
    link = st.lists(st.integers(0, k - 1), min_size=1, max_size=k, unique=True)
    return culture_of(draw(st.lists(link, min_size=1, max_size=6)), k)


def assignments(culture: Culture) -> list[dict[str, Any]]:
    signs = itertools.product((1, -1), repeat=len(culture.values))
    return [dict(zip(culture.values, row, strict=True)) for row in signs]


class TestShippedCultures:
    # Counts and means as published (Table 1 of the paper; means by enumeration, apart from here).
    @pytest.mark.parametrize(
        ("name", "values", "norms", "communication", "practice", "means"),
        [
            ("afghan", 9, 13, 5, 8, (4, 4, 5)),
            ("burmese", 18, 15, 8, 7, (3.75, 3.75, 7.5)),
            ("chinese", 8, 20, 6, 14, (8, 8, 4)),
            ("maori", 10, 19, 8, 11, (4.75, 4.75, 9.5)),
            ("nepali", 9, 13, 4, 9, (4.25, 4.25, 4.5)),
            ("vietnamese", 10, 15, 5, 10, (5.25, 5.25, 4.5)),
        ],
        ids=HEALTH,
    )
    def test_counts_and_exact_means(
        self,
        name: str,
        values: int,
        norms: int,
        communication: int,
        practice: int,
        means: tuple[float, float, float],
    ) -> None:
        culture = find_culture(name, "health")
        assert (len(culture.values), len(culture.norms)) == (values, norms)
        assert culture.count("communication") == communication
        assert culture.count("practice") == practice
        assert exact_counts(culture) == means

    def test_all_six_are_listed_and_none_is_confirmed(self) -> None:
        found = list_cultures("health")
        assert [culture.culture for culture in found] == list(HEALTH)
        assert all(c.confirmation(norm) is None for c in found for norm in c.norms)

    def test_three_statements_name_their_culture_and_have_words_of_their_own(self) -> None:
        named = [
            norm
            for culture in list_cultures("health")
            for norm in culture.norms
            if names_culture(norm.statement, culture.name, culture.culture)
        ]
        assert [norm.id for norm in named] == ["chinese_8", "maori_5", "maori_9"]
        assert all(norm.own_words == norm.persona_statement for norm in named)

    def test_groups_that_always_share_a_state(self) -> None:
        groups = indistinguishable(find_culture("maori"))
        assert groups == (("maori_6", "maori_8", "maori_19"), ("maori_15", "maori_18"))
        assert indistinguishable(find_culture("burmese")) == ()

    def test_first_line_names_the_schema(self) -> None:
        from habitus.content import schema_line, shipped_root

        for path in sorted((shipped_root() / "norms").glob("*/*.yaml")):
            named = schema_line(path)
            assert named is not None
            assert (path.parent / named).is_file()


class TestStates:
    @pytest.mark.parametrize(
        ("stances", "state"),
        [
            ((1,), 1),
            ((-1,), -1),
            ((1, 1), 1),
            ((1, -1), 0),
            ((-1, -1), -1),
            ((1, 1, -1), 1),
            ((-1, 1, -1), -1),
            ((1, -1, 1, -1), 0),
        ],
    )
    def test_sign_of_the_mean(self, stances: tuple[int, ...], state: int) -> None:
        culture = culture_of([range(len(stances))], len(stances))
        taken: dict[str, Any] = dict(zip(culture.values, stances, strict=True))
        assert norm_state(culture.norms[0], taken) == state
        assert norm_states(culture, taken) == {"n0": state}

    @given(cultures())
    def test_closed_form_equals_enumeration(self, culture: Culture) -> None:
        rows = [list(norm_states(culture, a).values()) for a in assignments(culture)]
        means = [sum(row.count(s) for row in rows) / len(rows) for s in STATES]
        assert list(exact_counts(culture)) == pytest.approx(means, abs=1e-12)

    @given(cultures(), st.data())
    def test_closed_form_with_priors_equals_weighted_enumeration(
        self, culture: Culture, data: st.DataObject
    ) -> None:
        share = st.floats(0, 1)
        priors = {value: data.draw(share) for value in culture.values}
        means = [0.0, 0.0, 0.0]
        for stances in assignments(culture):
            weight = 1.0
            for value, stance in stances.items():
                weight *= priors[value] if stance == 1 else 1 - priors[value]
            row = list(norm_states(culture, stances).values())
            means = [m + weight * row.count(s) for m, s in zip(means, STATES, strict=True)]
        assert list(exact_counts(culture, priors)) == pytest.approx(means, abs=1e-9)

    def test_forty_values_are_no_problem(self) -> None:
        wide = culture_of([range(40), range(39), [0, 39], [7]], 40)
        follow, avoid, neutral = exact_counts(wide)
        middle = 137846528820 / 2**40  # C(40, 20) of 2**40 assignments
        assert neutral == middle + 0.5
        assert follow == avoid == (1 - middle) / 2 + 0.5 + 0.25 + 0.5

    @pytest.mark.parametrize(
        ("priors", "message"),
        [({"v9": 0.5}, "no value 'v9'"), ({"v0": 1.5}, "between 0 and 1")],
        ids=["unknown", "no probability"],
    )
    def test_priors_are_checked(self, priors: dict[str, float], message: str) -> None:
        with pytest.raises(UsageError, match=message):
            exact_counts(culture_of([[0]], 1), priors)


class TestGraph:
    def test_is_bipartite_with_a_link_for_each_value_of_a_norm(self) -> None:
        import networkx as nx

        culture = find_culture("vietnamese")
        net = graph(culture)
        assert nx.is_bipartite(net)
        assert net.number_of_nodes() == 10 + 15
        assert net.number_of_edges() == sum(len(norm.values) for norm in culture.norms)
        assert set(net["vietnam_10"]) == {"stoicism", "face", "modesty"}
        assert net.nodes["vietnam_10"]["kind"] == "communication"

    @given(cultures())
    @settings(max_examples=60)
    def test_indistinguishable_norms_are_those_that_never_differ(self, culture: Culture) -> None:
        rows = [norm_states(culture, a) for a in assignments(culture)]
        together = {frozenset(pair) for g in indistinguishable(culture) for pair in _pairs(g)}
        for a, b in _pairs([norm.id for norm in culture.norms]):
            never_differ = all(row[a] == row[b] for row in rows)
            assert (frozenset((a, b)) in together) == never_differ

    def test_dot_quotes_what_stands_in_the_file(self, tmp_path: Path) -> None:
        text = GOOD.replace('"Calm"', r"""'say "hi" \ '""")
        dot = as_dot(_loaded(tmp_path, text))
        assert r'"calm" [shape=box, label="say \"hi\" \\"];' in dot
        assert dot.count(" -- ") == 3


class TestHash:
    @pytest.mark.parametrize(
        ("old", "new", "same"),
        [
            ('source: "made up"', 'source: "elsewhere"  # a note', True),
            ("confirmed: false", "confirmed: {by: Ana, date: 2026-01-31}", True),
            ('calm: "Calm"', 'calm: "Calmness"', True),
            ("kind: practice", "kind: communication", True),
            ("[calm, face]", "[face, calm]", True),
            ("[calm, face]", "[face]", False),
            ("rests.", "sleeps.", False),
            ("id: tiny_1", "id: tiny_9", False),
        ],
    )
    def test_covers_what_a_persona_depends_on(
        self, tmp_path: Path, old: str, new: str, same: bool
    ) -> None:
        before = norms_hash(_loaded(tmp_path, GOOD))
        assert GOOD.count(old) == 1
        after = norms_hash(_loaded(tmp_path, GOOD.replace(old, new)))
        assert (before == after) == same


DAMAGED = [
    ("unknown key", "kind: practice", "knid: practice", 11, 5, "did you mean 'kind'?"),
    ("missing key", "    kind: practice\n", "", 10, 5, "missing key 'kind'"),
    ("bad kind", "kind: practice", "kind: habit", 11, 11, "'communication' or 'practice'"),
    ("duplicate norm id", "id: tiny_2", "id: tiny_1", 14, 9, "used twice; first by norm 1"),
    ("duplicate key", 'face: "Face"', 'calm: "Face"', 8, 3, "duplicate key 'calm'"),
    ("norm without values", "values: [calm]", "values: []", 12, 13, "at least 1 item"),
    ("unknown value", "[calm, face]", "[calm, fce, face]", 16, 20, "did you mean 'face'?"),
    ("value twice", "[calm, face]", "[calm, face, face]", 16, 26, "names the value 'face' twice"),
    ("unused value", "[calm, face]", "[calm]", 8, 9, "no norm rests on the value 'face'"),
    ("unsafe id", "id: tiny_2", 'id: "../x"', 14, 9, "an id has lower-case letters"),
    ("capital id", "calm: ", "Calm: ", 7, 3, "an id has lower-case letters"),
    ("id of a value", "id: tiny_2", "id: face", 14, 9, "also the id of a value"),
    ("other file name", "culture: tiny", "culture: small", 1, 10, "the file is called tiny.yaml"),
    ("empty statement", '"The person rests."', '""', 13, 16, "the text is empty"),
    ("two lines", '"The person rests."', r'"a\nb"', 13, 16, "must stand on one line"),
    ("names itself", "person rests", "tíny person", 13, 16, "names the culture"),
    ("confirmed by nobody", "confirmed: false", "confirmed: true", 5, 12, "write false, or who"),
    ("nameless confirmation", "confirmed: false", "confirmed: {date: 2026-01-31}", 5, 1, "'by'"),
    ("number for text", 'name: "Tiny"', "name: 12", 2, 7, "valid string"),
    ("tab", "  calm:", "\tcalm:", 7, 1, "a tab is used"),
    ("not closed", '"The person rests."', '"The person rests.', 17, 17, "not valid YAML"),
    ("no list", GOOD, "- a\n", 1, 1, "expected keys such as culture, name, domain, found a list"),
    ("empty file", GOOD, "# nothing\n", 1, 1, "the file is empty"),
]


class TestDamagedFiles:
    @pytest.mark.parametrize(
        ("old", "new", "line", "column", "message"),
        [row[1:] for row in DAMAGED],
        ids=[row[0] for row in DAMAGED],
    )
    def test_every_problem_has_its_place(
        self, tmp_path: Path, old: str, new: str, line: int, column: int, message: str
    ) -> None:
        assert GOOD.count(old) == 1
        with pytest.raises(ContentError) as caught:
            _loaded(tmp_path, GOOD.replace(old, new))
        assert f"tiny.yaml:{line}:{column}: " in str(caught.value)
        assert message in str(caught.value)

    def test_wrong_encoding_names_the_line(self, tmp_path: Path) -> None:
        path = tmp_path / "tiny.yaml"
        path.write_bytes(GOOD.replace("Calm", "Rühe").encode("latin-1"))
        with pytest.raises(ContentError, match=r"tiny\.yaml:7:11: byte 0xfc is not UTF-8"):
            load_culture(path)

    def test_all_problems_are_told_at_once_in_the_order_of_lines(self, tmp_path: Path) -> None:
        text = GOOD.replace("id: tiny_2", "id: tiny_1").replace("culture: tiny", "culture: other")
        with pytest.raises(ContentError) as caught:
            _loaded(tmp_path, text)
        assert [problem.place.line for problem in caught.value.problems] == [1, 14]

    def test_a_persona_statement_must_not_name_the_culture_either(self, tmp_path: Path) -> None:
        text = GOOD + '    persona_statement: "The tiny person."\n'
        with pytest.raises(ContentError, match=r"18:24: the persona_statement of tiny_2 names"):
            _loaded(tmp_path, text)

    def test_folder_and_domain_agree(self, tmp_path: Path) -> None:
        folder = tmp_path / "norms" / "food"
        folder.mkdir(parents=True)
        (folder / "tiny.yaml").write_text(GOOD, encoding="utf-8")
        with pytest.raises(ContentError, match=r"tiny\.yaml:3:9: the domain is 'health'"):
            load_culture(folder / "tiny.yaml")


class TestReading:
    @pytest.mark.parametrize("word", ["NO", "yes", "off", "Null-ish", "1e3x"])
    def test_words_stay_text(self, tmp_path: Path, word: str) -> None:
        assert _loaded(tmp_path, GOOD.replace('"Calm"', word)).values["calm"] == word

    @pytest.mark.parametrize("word", ["no", "yes", "on"])
    def test_ids_stay_text(self, tmp_path: Path, word: str) -> None:
        culture = _loaded(tmp_path, GOOD.replace("calm", word))
        assert list(culture.values) == [word, "face"]
        assert culture.norms[0].values == (word,)

    def test_a_norm_has_its_own_confirmation_or_that_of_the_file(self, tmp_path: Path) -> None:
        text = GOOD.replace("confirmed: false", "confirmed: {by: Ana, date: 2026-01-31}")
        text = text.replace("    kind: practice\n", "    kind: practice\n    confirmed: false\n")
        culture = _loaded(tmp_path, text)
        first, second = (culture.confirmation(norm) for norm in culture.norms)
        assert first is None
        assert second is not None
        assert (second.by, str(second.date)) == ("Ana", "2026-01-31")

    def test_workspace_comes_before_shipped(self, tmp_path: Path) -> None:
        _write(tmp_path, "health", GOOD.replace("tiny", "maori").replace("Tiny", "Mine"))
        assert find_culture("maori", workspace=tmp_path).name == "Mine"
        assert find_culture("nepali", workspace=tmp_path).name == "Nepali"

    def test_an_id_in_two_domains_asks_for_the_domain(self, tmp_path: Path) -> None:
        _write(tmp_path, "health", GOOD)
        _write(tmp_path, "food", GOOD.replace("domain: health", "domain: food"))
        with pytest.raises(UsageError, match="several domains"):
            find_culture("tiny", workspace=tmp_path)
        assert find_culture("tiny", "food", tmp_path).domain == "food"

    def test_an_unknown_culture_names_near_ones(self) -> None:
        with pytest.raises(NotFoundError, match="did you mean 'maori'"):
            find_culture("moari")

    def test_a_path_is_a_path(self, tmp_path: Path) -> None:
        path = tmp_path / "tiny.yaml"
        path.write_text(GOOD, encoding="utf-8")
        assert find_culture(str(path)).culture == "tiny"

    def test_problems_of_all_files_are_listed_together(self, tmp_path: Path) -> None:
        _write(tmp_path, "food", GOOD)
        _write(tmp_path, "food", GOOD.replace("tiny", "other").replace("practice", "habit"))
        with pytest.raises(ContentError) as caught:
            list_cultures("food", tmp_path)
        assert {problem.place.path.name for problem in caught.value.problems} == {
            "tiny.yaml",
            "other.yaml",
        }


@pytest.mark.parametrize(
    ("text", "names", "found"),
    [
        ("a whole view (Te Ao Māori)", ("Maori",), True),
        ("MAORIS too", ("Māori",), True),
        ("a maorian idea", ("Maori",), False),
        ("give me a hand", ("Han",), False),
        ("the Han people", ("Han",), True),
        ("of Te  Reo days", ("te_reo",), True),
        ("nothing", ("",), False),
    ],
)
def test_names_are_found_as_words(text: str, names: tuple[str, ...], found: bool) -> None:
    assert names_culture(text, *names) == found


def _pairs(ids: Sequence[str]) -> list[tuple[str, str]]:
    return list(itertools.combinations(ids, 2))


def _loaded(folder: Path, text: str) -> Culture:
    path = folder / "tiny.yaml"
    path.write_text(text, encoding="utf-8")
    return load_culture(path)


def _write(workspace: Path, domain: str, text: str) -> None:
    folder = workspace / "norms" / domain
    folder.mkdir(parents=True, exist_ok=True)
    name = text.split("\n", 1)[0].removeprefix("culture: ")
    (folder / f"{name}.yaml").write_text(text, encoding="utf-8")


def test_model_round_trip() -> None:
    culture = find_culture("maori")
    assert Culture.model_validate(json.loads(culture.model_dump_json())) == culture
