"""What the shipped experiments say of themselves is true."""

from __future__ import annotations

import re
from collections import Counter
from fractions import Fraction
from itertools import product
from pathlib import Path

import pytest

from habitus.content import shipped_root
from habitus.experiments import Study, resolve
from habitus.experiments.counting import StageCounts, stage_counts

EXPERIMENTS = shipped_root() / "experiments"


@pytest.fixture(scope="module")
def full() -> Study:
    return resolve(EXPERIMENTS / "ccbench-health.yaml", {})


@pytest.fixture(scope="module")
def lite() -> Study:
    return resolve(EXPERIMENTS / "ccbench-lite.yaml", {})


def comment(name: str) -> str:
    """The comment at the head of an experiment, as one line."""
    text = (EXPERIMENTS / f"{name}.yaml").read_text(encoding="utf-8")
    head = text.partition("\nid:")[0].splitlines()[1:]
    return " ".join(line.removeprefix("#").strip() for line in head)


def items(study: Study) -> Counter[tuple[str, str, int]]:
    """Scored items of one query, by culture, kind of norm and state."""
    kinds = {n.id: str(n.kind) for culture in study.cultures.values() for n in culture.norms}
    return Counter(
        (p.culture, kinds[norm], p.states[norm]) for p in study.portraits for norm in p.active
    )


class TestLite:
    def test_is_about_a_twentieth(self, lite: Study, full: Study) -> None:
        small, large = stage_counts(lite), stage_counts(full)
        for name in ("attempts", "responses", "evaluations", "items"):
            share = Fraction(getattr(small, name), getattr(large, name))
            assert Fraction(1, 25) <= share <= Fraction(1, 18), name

    def test_its_comment_is_exact(self, lite: Study, full: Study) -> None:
        small, large = stage_counts(lite), stage_counts(full)
        said = comment("ccbench-lite")
        pairs = {
            "personas": (len(lite.portraits), len(full.portraits)),
            "sessions": (small.attempts, large.attempts),
            "queries": (len(lite.queries), len(full.queries)),
            "responses": (small.responses, large.responses),
            "verdicts": (small.items, large.items),
        }
        for what, (few, many) in pairs.items():
            assert re.search(rf"\b{few:,} of its {many:,} {what}\b", said), what

    def test_every_culture_kind_and_state_has_items(self, lite: Study, full: Study) -> None:
        wanted = set(product(full.cultures, ("communication", "practice"), (1, -1)))
        assert wanted == set(items(lite))

    def test_each_persona_has_items_of_both_states(self, lite: Study) -> None:
        per_culture = Counter(portrait.culture for portrait in lite.portraits)
        assert set(per_culture.values()) == {2}
        for portrait in lite.portraits:
            assert portrait.norms(1), portrait.id
            assert portrait.norms(-1), portrait.id

    def test_it_has_the_first_query_of_every_topic(self, lite: Study, full: Study) -> None:
        first = {query.topic: query.id for query in reversed(full.queries)}
        assert set(first) == set(full.query_set.topics)
        assert {query.topic: query.id for query in lite.queries} == first


class TestHealth:
    def test_is_the_published_plan(self, full: Study) -> None:
        assert Counter(p.culture for p in full.portraits) == dict.fromkeys(full.cultures, 10)
        assert len(full.cultures) == 6
        assert {pool.kind: pool.sessions for pool in full.pools} == {"domain": 3, "everyday": 15}
        assert len(full.queries) == 52
        assert [setting.id for setting in full.settings] == ["none", "hist", "ccot", "norms"]
        roles = full.experiment.roles
        used = [role for name in type(roles).model_fields if (role := getattr(roles, name))]
        assert {role.temperature for role in (*used, *full.experiment.targets.values())} == {0.7}

    def test_its_comment_is_exact(self, full: Study) -> None:
        counts: StageCounts = stage_counts(full)
        said = comment("ccbench-health")
        for words in (
            f"{len(full.cultures)} cultures, {len(full.portraits)} personas, 18 sessions each",
            f"{len(full.queries)} queries, {len(full.settings)} settings, every role at",
            f"{counts.attempts:,} sessions, {counts.evaluations:,} pairs of persona and query",
            f"{counts.items:,} verdicts",
        ):
            assert words in said

    def test_the_published_choices_are_valid_when_uncommented(self, tmp_path: Path) -> None:
        """Done as the comment says: the three keys deleted, the ``# `` taken off."""
        text = (EXPERIMENTS / "ccbench-health.yaml").read_text(encoding="utf-8")
        ours, told, block = text.partition("# The published choices:")
        assert "`models`, `roles` and `targets` above" in told + block
        kept = re.sub(r"(?m)^(models|roles|targets):\n(?:[ #].*\n|\n)*", "", ours)
        assert "models:" not in kept
        choices = [line.removeprefix("# ") for line in block.partition("\n#\n")[2].splitlines()]
        path = tmp_path / "experiments" / "ccbench-health.yaml"
        path.parent.mkdir()
        path.write_text(kept + "\n".join(choices) + "\n", encoding="utf-8")
        experiment = resolve(path, {}).experiment
        assert experiment.history.form == "single_call"
        assert experiment.filter.verifier_sees_states
        assert not experiment.filter.contradictions
        assert experiment.filter.attempts == 1
        assert experiment.checklist.recommendations == "per_persona"
        assert experiment.checklist.echo
        assert experiment.none == "per_persona"
        assert len(experiment.targets) == 5
        named = {role.model for role in experiment.targets.values()} | {"helper", "verifier"}
        assert named == set(experiment.models)
        assert {role.temperature for role in experiment.targets.values()} == {0.7}

    def test_the_planted_plan_is_the_same_plan(self, full: Study) -> None:
        planted = resolve(EXPERIMENTS / "ccbench-health-planted.yaml", {})
        changed = full.experiment.model_copy(update={"none": "per_persona"})
        same = ("cultures", "history", "filter", "checklist", "settings", "queries", "none", "seed")
        for name in same:
            assert getattr(planted.experiment, name) == getattr(changed, name), name
        assert stage_counts(planted).responses == 60 * 52 * 4
