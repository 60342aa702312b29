"""Personas: samplers, sheets, populations, and what is said of damaged files."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from habitus.errors import ContentError, UsageError
from habitus.norms import Culture, find_culture, list_cultures, norms_hash, state_shares
from habitus.personas import (
    Drawn,
    Persona,
    Population,
    coverage,
    draw,
    embeddedness,
    find_population,
    labels,
    load_openers,
    load_population,
    population_text,
    read_names,
    sheet,
    statements,
    states,
)

RANDOM = Drawn(sampler="random", seed=7)
BALANCED = Drawn(sampler="balanced", seed=7)
SAMPLERS = pytest.mark.parametrize("drawn", [RANDOM, BALANCED], ids=["random", "balanced"])

TINY = """\
culture: tiny
name: "Tiny"
domain: health
source: "made up"
values: {calm: "Calm", face: "Face"}
norms:
  - {id: tiny_1, kind: practice, values: [calm], statement: "The person rests."}
  - {id: tiny_2, kind: practice, values: [calm, face], statement: "The person hides pain."}
  - id: tiny_3
    kind: communication
    values: [face]
    statement: "The person speaks as tiny people do."
    persona_statement: "The person speaks softly."
"""


@pytest.fixture
def workspace(tmp_path: Path) -> Path:
    (tmp_path / "norms" / "health").mkdir(parents=True)
    (tmp_path / "norms" / "health" / "tiny.yaml").write_text(TINY, encoding="utf-8")
    (tmp_path / "personas").mkdir()
    return tmp_path


@pytest.fixture
def tiny(workspace: Path) -> Culture:
    return find_culture("tiny", workspace=workspace)


def wide(k: int) -> Culture:
    """A culture of ``k`` values, each with a norm of its own and one that it shares."""
    norms = [(f"a{i}", [f"v{i}"]) for i in range(k)]
    norms += [(f"b{i}", [f"v{i}", f"v{i + 1}"]) for i in range(k - 1)]
    return Culture.model_validate(
        {
            "culture": "wide",
            "name": "Wide",
            "domain": "health",
            "source": "a test",
            "values": {f"v{i}": f"Value {i}" for i in range(k)},
            "norms": [
                {"id": id_, "kind": "practice", "values": values, "statement": "The person does."}
                for id_, values in norms
            ],
        }
    )


def distinct(personas: tuple[Persona, ...]) -> int:
    return len({tuple(persona.stances.items()) for persona in personas})


def imbalance(personas: tuple[Persona, ...], culture: Culture) -> int:
    """Sum over norms of how many more follow than avoid, or the other way round."""
    return sum(abs(c.follow - c.avoid) for c in coverage(personas, culture).values())


def uncovered(personas: tuple[Persona, ...], culture: Culture) -> int:
    """Norms that are not both followed and avoided."""
    return sum(not counts.covered for counts in coverage(personas, culture).values())


class TestSamplers:
    @SAMPLERS
    @pytest.mark.parametrize("name", ["afghan", "burmese", "maori"])
    def test_personas_are_distinct_and_seeded(self, drawn: Drawn, name: str) -> None:
        culture = find_culture(name)
        people = draw([culture], 10, drawn)
        assert distinct(people) == 10
        assert [p.id for p in people] == [f"{name}-{i:02d}" for i in range(1, 11)]
        assert people == draw([culture], 10, drawn)
        other = draw([culture], 10, drawn.model_copy(update={"seed": 8}))
        assert [p.stances for p in other] != [p.stances for p in people]

    @SAMPLERS
    @given(k=st.integers(1, 5), data=st.data())
    @settings(max_examples=30)
    def test_every_number_up_to_all_assignments_is_possible(
        self, drawn: Drawn, k: int, data: st.DataObject
    ) -> None:
        n = data.draw(st.integers(1, 2**k))
        assert distinct(draw([wide(k)], n, drawn)) == n

    @SAMPLERS
    def test_more_than_there_are_is_an_error(self, drawn: Drawn, tiny: Culture) -> None:
        with pytest.raises(UsageError, match=r"2 values and so 4 different personas; 5 are"):
            draw([tiny], 5, drawn)

    @SAMPLERS
    def test_forty_values_are_no_problem(self, drawn: Drawn) -> None:
        assert distinct(draw([wide(40)], 20, drawn)) == 20

    def test_another_culture_in_the_call_changes_nothing(self) -> None:
        maori, nepali = find_culture("maori"), find_culture("nepali")
        alone = draw([maori], 10, RANDOM)
        assert draw([maori, nepali], 10, RANDOM)[:10] == alone
        after = draw([nepali, maori], 10, RANDOM)[10:]
        assert [p.stances for p in after] == [p.stances for p in alone]

    def test_more_personas_begin_with_the_same_ones(self) -> None:
        burmese = find_culture("burmese")
        assert draw([burmese], 30, RANDOM)[:10] == draw([burmese], 10, RANDOM)

    def test_random_draws_come_near_the_exact_means(self) -> None:
        culture = wide(12)
        people = draw([culture], 2000, RANDOM)
        for id_, counts in coverage(people, culture).items():
            share = state_shares(culture.by_id[id_])
            sd = (2000 * share.follow * (1 - share.follow)) ** 0.5
            assert abs(counts.follow - 2000 * share.follow) < 5 * sd

    def test_priors_shift_the_draw(self) -> None:
        culture = wide(12)
        people = draw([culture], 500, RANDOM.model_copy(update={"priors": {"v0": 0.9}}))
        held = sum(p.stances["v0"] == 1 for p in people)
        assert 400 < held < 490

    @pytest.mark.parametrize(
        ("drawn", "message"),
        [
            (RANDOM.model_copy(update={"priors": {"v9": 0.5}}), "has a value 'v9'"),
            (RANDOM.model_copy(update={"priors": {"v0": 2.0}}), "between 0 and 1"),
            (RANDOM.model_copy(update={"priors": {"v0": 1.0, "v1": 1.0}}), "2 different personas"),
            (BALANCED.model_copy(update={"priors": {"v0": 0.5}}), "takes no priors"),
        ],
        ids=["unknown", "no probability", "too few likely", "balanced"],
    )
    def test_priors_that_cannot_be_used(self, drawn: Drawn, message: str) -> None:
        with pytest.raises(UsageError, match=message):
            draw([wide(3)], 3, drawn)

    def test_a_culture_twice_is_an_error(self, tiny: Culture) -> None:
        with pytest.raises(UsageError, match="named twice"):
            draw([tiny, tiny], 1, RANDOM)


class TestBalanced:
    @pytest.mark.parametrize("n", [2, 10, 20])
    def test_even_numbers_follow_and_avoid_each_norm_equally_often(self, n: int) -> None:
        for culture in list_cultures("health"):
            assert imbalance(draw([culture], n, BALANCED), culture) == 0

    def test_odd_numbers_differ_by_one_at_most(self) -> None:
        culture = find_culture("burmese")
        counts = coverage(draw([culture], 9, BALANCED), culture).values()
        assert all(abs(c.follow - c.avoid) <= 1 for c in counts)

    @pytest.mark.parametrize("seed", range(3))
    def test_ten_cover_both_states_of_every_norm(self, seed: int) -> None:
        drawn = BALANCED.model_copy(update={"seed": seed})
        for culture in list_cultures("health"):
            assert uncovered(draw([culture], 10, drawn), culture) == 0

    def test_is_better_than_random(self) -> None:
        """By norms that are not both followed and avoided, and by the sum of |follow - avoid|."""
        shipped = list_cultures("health")
        for n in (4, 9):
            random, even = (
                [(draw([c], n, drawn), c) for c in shipped] for drawn in (RANDOM, BALANCED)
            )
            assert sum(imbalance(*pair) for pair in even) < sum(imbalance(*p) for p in random) / 2
            assert sum(uncovered(*pair) for pair in even) < sum(uncovered(*p) for p in random) / 4


class TestNames:
    def test_sixty_personas_have_sixty_names(self) -> None:
        people = draw(list_cultures("health"), 10, RANDOM)
        assert len({p.name for p in people}) == 60

    def test_names_go_on_with_letters_when_the_list_is_used_up(self, tiny: Culture) -> None:
        people = draw([wide(6), tiny], 4, RANDOM, names=["Ana", "Bo", "Cy"])
        assert len({p.name for p in people}) == 8
        assert {p.name for p in people} > {"Ana", "Bo", "Cy", "Ana A.", "Bo A.", "Cy A."}

    def test_shipped_names_give_no_culture_away(self) -> None:
        cultures = {c.name for c in list_cultures()}
        assert len(read_names()) >= 60
        assert not cultures & set(read_names())

    @pytest.mark.parametrize(
        ("text", "message"),
        [
            ("Ana\n\nAna\n", r"names\.txt:3:1: .* stands twice; first on line 1"),
            ("# no\n", "no names"),
        ],
        ids=["twice", "none"],
    )
    def test_damaged_lists(self, tmp_path: Path, text: str, message: str) -> None:
        path = tmp_path / "names.txt"
        path.write_text(text, encoding="utf-8")
        with pytest.raises(ContentError, match=message):
            read_names(path)


class TestStates:
    def persona(self, culture: Culture, calm: int, face: int) -> Persona:
        return Persona.model_validate(
            {
                "id": "tiny-01",
                "name": "Robin",
                "culture": "tiny",
                "norms_hash": norms_hash(culture),
                "stances": {"calm": calm, "face": face},
            }
        )

    @pytest.mark.parametrize(
        ("calm", "face", "expected", "share"),
        [(1, 1, (1, 1, 1), 1.0), (1, -1, (1, 0, -1), 0.5), (-1, -1, (-1, -1, -1), 0.0)],
    )
    def test_states_and_embeddedness(
        self, tiny: Culture, calm: int, face: int, expected: tuple[int, ...], share: float
    ) -> None:
        persona = self.persona(tiny, calm, face)
        assert tuple(states(persona, tiny).values()) == expected
        assert embeddedness(persona, tiny) == share

    def test_embeddedness_is_undefined_without_a_decided_norm(self, tiny: Culture) -> None:
        second = tiny.model_copy(update={"norms": tiny.norms[1:2]})
        assert embeddedness(self.persona(tiny, 1, -1), second) is None

    def test_coverage_counts_personas_of_the_culture_only(self, tiny: Culture) -> None:
        people = [self.persona(tiny, 1, 1), self.persona(tiny, 1, -1)]
        stranger = people[0].model_copy(update={"culture": "other"})
        assert coverage([*people, stranger], tiny)["tiny_2"] == (1, 1, 0)

    def test_sheet(self, tiny: Culture) -> None:
        persona = self.persona(tiny, 1, -1)
        assert sheet(persona, tiny) == (
            "Follows:",
            "- N1: The person rests.",
            "Avoids:",
            "- N3: The person speaks softly.",
            "No stance:",
            "- N2: The person hides pain.",
        )
        assert sheet(persona, tiny, neutral="omit", norms=["tiny_2", "tiny_3"], label="id") == (
            "Avoids:",
            "- tiny_3: The person speaks softly.",
        )
        with pytest.raises(UsageError, match="no norm tiny_9"):
            sheet(persona, tiny, norms=["tiny_9"])

    def test_statements_keep_their_number_and_order(self, tiny: Culture) -> None:
        assert statements(tiny, ["tiny_3", "tiny_1"], wording="full") == (
            "- N1: The person rests.",
            "- N3: The person speaks as tiny people do.",
        )
        assert statements(tiny, ["tiny_1"], label="none") == ("- The person rests.",)
        assert labels(tiny) == {"N1": "tiny_1", "N2": "tiny_2", "N3": "tiny_3"}

    def test_no_shipped_sheet_names_its_culture(self) -> None:
        for culture in list_cultures("health"):
            persona = draw([culture], 1, RANDOM)[0]
            text = "\n".join(sheet(persona, culture)).casefold().replace("ā", "a")
            assert culture.culture not in text
            assert "maori" not in text


class TestShippedPopulation:
    def test_ten_personas_for_each_health_culture(self) -> None:
        population, cultures = find_population("health")
        assert len(population.personas) == 60
        assert len({p.name for p in population.personas}) == 60
        for name, culture in cultures.items():
            people = population.of(name)
            assert len(people) == distinct(people) == 10
            assert uncovered(people, culture) == 0

    def test_is_what_its_seed_draws(self) -> None:
        population, cultures = find_population("health")
        assert population.drawn is not None
        assert draw(list(cultures.values()), 10, population.drawn) == population.personas


def good(culture: Culture) -> str:
    return f"""\
population: mine
domain: health
personas:
  - id: tiny-01
    name: Robin
    culture: tiny
    norms_hash: "{norms_hash(culture)}"
    stances: {{calm: 1, face: -1}}
  - id: tiny-02
    name: Sam
    culture: tiny
    norms_hash: "{norms_hash(culture)}"
    stances: {{calm: -1, face: -1}}
"""


DAMAGED = [
    ("unknown culture", "name: Sam\n    culture: tiny", "name: Sam\n    culture: tinyy", 11, 14,
     "did you mean 'tiny'"),
    ("unknown value", "calm: -1, face: -1", "calm: -1, fce: -1", 13, 30, "did you mean 'face'?"),
    ("missing value", "calm: -1, face: -1", "calm: -1", 13, 14, "tiny-02 has no stance on face"),
    ("stance 0", "calm: -1, face", "calm: 0, face", 13, 21, "should be -1 or 1 (found 0)"),
    ("stance true", "calm: -1, face", "calm: true, face", 13, 21, "a stance is 1 or -1"),
    ("stance text", "calm: -1, face", "calm: follow, face", 13, 21, "a stance is 1 or -1"),
    ("duplicate id", "id: tiny-02", "id: tiny-01", 9, 9, "used twice; first by persona 1"),
    ("id of another", "id: tiny-02", "id: maori-02", 9, 9, "does not fit the culture 'tiny'"),
    ("id without number", "id: tiny-02", "id: tiny-x", 9, 9, "write tiny-01 and so on"),
    ("unknown key", "name: Sam", "nmae: Sam", 10, 5, "did you mean 'name'?"),
    ("duplicate key", "name: Sam", "name: Sam\n    name: Sam", 11, 5, "duplicate key 'name'"),
    ("bad sampler", "domain: health", "domain: health\ndrawn: {sampler: fair, seed: 1}", 3, 18,
     "'random' or 'balanced'"),
    ("other file name", "population: mine", "population: yours", 1, 13, "is called mine.yaml"),
]  # fmt: skip


class TestDamagedPopulations:
    @pytest.mark.parametrize(
        ("old", "new", "line", "column", "message"),
        [row[1:] for row in DAMAGED],
        ids=[row[0] for row in DAMAGED],
    )
    def test_every_problem_has_its_place(
        self,
        workspace: Path,
        tiny: Culture,
        old: str,
        new: str,
        line: int,
        column: int,
        message: str,
    ) -> None:
        assert good(tiny).count(old) == 1
        with pytest.raises(ContentError) as caught:
            self.load(workspace, good(tiny).replace(old, new))
        assert f"mine.yaml:{line}:{column}: " in str(caught.value)
        assert message in str(caught.value)

    def test_changed_norms_name_both_hashes_once_and_what_to_do(
        self, workspace: Path, tiny: Culture
    ) -> None:
        path = workspace / "norms" / "health" / "tiny.yaml"
        path.write_text(TINY.replace("rests", "sleeps"), encoding="utf-8")
        now = norms_hash(find_culture("tiny", workspace=workspace))
        with pytest.raises(ContentError) as caught:
            self.load(workspace, good(tiny))
        (problem,) = caught.value.problems
        assert (problem.place.line, problem.place.column) == (7, 17)
        assert norms_hash(tiny) in problem.what
        assert now in problem.what
        assert "2 of its personas" in problem.what
        assert "draw the personas again" in problem.hint

    def test_a_comment_in_the_norm_file_changes_nothing(
        self, workspace: Path, tiny: Culture
    ) -> None:
        path = workspace / "norms" / "health" / "tiny.yaml"
        path.write_text("# read by Ana\n" + TINY, encoding="utf-8")
        assert len(self.load(workspace, good(tiny)).personas) == 2

    def load(self, workspace: Path, text: str) -> Population:
        path = workspace / "personas" / "mine.yaml"
        path.write_text(text, encoding="utf-8")
        population, cultures = load_population(path, workspace)
        assert list(cultures) == ["tiny"]
        return population


@pytest.mark.parametrize("hash_", ["1234567890123456", "1234567890123e56", "00000000000000aa"])
def test_written_populations_are_read_back(
    workspace: Path, tiny: Culture, hash_: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    people = draw([tiny], 3, BALANCED, names=["no", "Ana: B", "# c"])
    people = tuple(p.model_copy(update={"norms_hash": hash_}) for p in people)
    drawn = Drawn(sampler="random", seed=-3, priors={"calm": 0.25})
    before = Population(population="mine", domain="health", drawn=drawn, personas=people)
    path = workspace / "personas" / "mine.yaml"
    path.write_text(population_text(before, comment="one\ntwo"), encoding="utf-8")
    from habitus.content import load

    assert load(path, Population) == before


OPENERS = """\
id: talk
kind: everyday
openers:
  - {id: a-1, area: food, text: "What is for dinner?"}
  - {id: a-2, area: food, text: "Soup again."}
"""


class TestOpeners:
    def load(self, folder: Path, text: str) -> int:
        path = folder / "talk.yaml"
        path.write_text(text, encoding="utf-8")
        return len(load_openers(path).openers)

    def test_good(self, tmp_path: Path) -> None:
        assert self.load(tmp_path, OPENERS) == 2

    @pytest.mark.parametrize(
        ("change", "place", "message"),
        [
            (lambda t: t.replace("a-2", "a-1"), "5:10", "used twice"),
            (lambda t: t.replace("everyday", "daily"), "2:7", "'domain' or 'everyday'"),
            (lambda t: t.replace('"Soup again."', '""'), "5:33", "at least 1 character"),
            (lambda t: t.replace("Soup again.", "what is  for dinner?"), "5:33", "that of a-1"),
            (lambda t: t.replace("id: talk", "id: walk"), "1:5", "is called talk.yaml"),
            (lambda t: t.replace('area: food, text: "S', 'text: "S'), "5:5", "'area'"),
        ],
        ids=["id twice", "kind", "empty", "text twice", "file name", "missing"],
    )
    def test_damaged(
        self, tmp_path: Path, change: Callable[[str], str], place: str, message: str
    ) -> None:
        with pytest.raises(ContentError) as caught:
            self.load(tmp_path, change(OPENERS))
        assert f"talk.yaml:{place}: " in str(caught.value)
        assert message in str(caught.value)
