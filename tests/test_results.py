"""Results against plain Python, planted truth and the published table."""

from __future__ import annotations

import json
import random
import tracemalloc
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from habitus.analysis import (
    MEASURES,
    Cell,
    Design,
    ResultOptions,
    VerdictTable,
    read_verdicts,
    results,
    results_tables,
    safety_rows,
    shown_norms,
)
from habitus.analysis.counting import Answered, groups
from habitus.analysis.measures import Resampler
from habitus.errors import StoreError, UsageError
from habitus.records import Evaluation, History, Outcome, SafetyLabel
from habitus.statistics import Interval, IntervalRule, harmonic_mean
from habitus.tables import number, with_interval
from results_fixture import design, drawn, evaluation, evaluations

QUICK = ResultOptions(seed=1, draws=200)


def table_of(plan: Design, seed: int = 1, missing: float = 0.0, **more: Any) -> VerdictTable:
    return read_verdicts(evaluations(plan, drawn(seed, missing=missing), **more), plan)


def as_json(table: VerdictTable, options: ResultOptions = QUICK) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(results(table, options).json_bytes())
    return found


# The numbers, counted again in plain Python


def rates_by_hand(records: list[Evaluation], people: list[str]) -> dict[str, float | None]:
    """The measures over a list of personas in which one may stand more than once."""
    found = {1: [0, 0], -1: [0, 0]}
    own: list[float] = []
    for person in people:
        mine = {1: [0, 0], -1: [0, 0]}
        for record in records:
            for verdict in record.verdicts if record.persona == person else ():
                if verdict.satisfied is not None:
                    mine[verdict.state][0] += verdict.satisfied
                    mine[verdict.state][1] += 1
        for state in (1, -1):
            found[state][0] += mine[state][0]
            found[state][1] += mine[state][1]
        ccs = harmonic_mean(share(*mine[1]), share(*mine[-1]))
        if ccs is not None:
            own.append(ccs)
    follow, avoid = share(*found[1]), share(*found[-1])
    return {
        "follow_rate": follow,
        "avoid_rate": avoid,
        "norm_adaptation": share(found[1][0] + found[-1][0], found[1][1] + found[-1][1]),
        "ccs": harmonic_mean(follow, avoid),
        "ccs_persona_mean": share(sum(own), len(own)),
    }


def share(part: float, whole: int) -> float | None:
    return part / whole if whole else None


def test_rows_equal_a_count_in_plain_python() -> None:
    plan = design()
    records = list(evaluations(plan, drawn(2, missing=0.1), repeats=2))
    for row in as_json(read_verdicts(records, plan))["rows"]:
        mine = [record for record in records if record.setting == row["setting"]]
        expected = rates_by_hand(mine, sorted(plan.states))
        assert {name: row[name] for name in MEASURES} == pytest.approx(expected)
        verdicts = [verdict for record in mine for verdict in record.verdicts]
        assert row["total"] == len(verdicts)
        assert row["not_judged"] == sum(v.satisfied is None for v in verdicts)
        assert row["follow_judged"] + row["avoid_judged"] == row["judged"]
        assert row["outcomes"] == {"unparsed": row["not_judged"]}


def test_matrix_draws_equal_resampling_personas_by_hand() -> None:
    plan = design()
    records = list(evaluations(plan, drawn(3, missing=0.2), settings=("hist",)))
    table = read_verdicts(records, plan)
    resampler = Resampler(table.cultures, len(table.queries), 40, 9, IntervalRule())
    answered = Answered.of(groups(table, ())[0], table.answers[0])
    sums = answered.group.sums(answered.satisfied, answered.judged, crossed=False)
    draws = resampler.draws(sums)
    for d in range(40):
        counts = resampler.personas[d].astype(int)
        people = [p for p, n in zip(table.personas, counts, strict=True) for _ in range(n)]
        expected = rates_by_hand(records, people)
        for measure, name in enumerate(MEASURES):
            assert draws[measure, d] == pytest.approx(expected[name], rel=1e-12)


def test_in_a_shared_setting_an_item_weighs_the_product_of_its_two_counts() -> None:
    plan = design()
    records = list(evaluations(plan, drawn(4), settings=("none",), shared=("none",)))
    table = read_verdicts(records, plan)
    assert table.shared == (True,)
    resampler = Resampler(table.cultures, len(table.queries), 40, 9, IntervalRule())
    answered = Answered.of(groups(table, ())[0], table.answers[0])
    draws = resampler.draws(answered.group.sums(answered.satisfied, answered.judged, crossed=True))
    for d in range(40):
        queries = dict(zip(table.queries, resampler.queries[d].astype(int), strict=True))
        doubled = [record for record in records for _ in range(queries[record.query])]
        counts = resampler.personas[d].astype(int)
        people = [p for p, n in zip(table.personas, counts, strict=True) for _ in range(n)]
        expected = rates_by_hand(doubled, people)
        for measure, name in enumerate(MEASURES):
            assert draws[measure, d] == pytest.approx(expected[name], rel=1e-12)


def test_ccs_is_pooled_and_the_persona_mean_leaves_out_personas_without_one() -> None:
    plan = Design(
        cultures={"c-01": "c", "c-02": "c", "c-03": "c"},
        states={"c-01": {"n1": 1, "n2": -1}, "c-02": {"n1": 1, "n2": -1}, "c-03": {"n1": 1}},
        kinds={"n1": "practice", "n2": "practice"},
        topics={"q1": "disease"},
    )
    met = {("c-01", "n1"), ("c-01", "n2"), ("c-02", "n2"), ("c-03", "n1")}
    table = read_verdicts(
        evaluations(plan, lambda t, s, p, n, state: (p, n) in met, settings=("hist",)), plan
    )
    row = as_json(table)["rows"][0]
    assert row["follow_rate"] == pytest.approx(2 / 3)
    assert row["ccs"] == pytest.approx(0.8)
    assert row["ccs_persona_mean"] == pytest.approx(0.5)
    assert (row["personas"], row["personas_left_out"]) == (3, 1)


# Published numbers


def published() -> Iterator[tuple[str, str, dict[str, float]]]:
    data = json.loads((Path(__file__).parent / "ccbench_published.json").read_text("utf-8"))
    for model, columns in data["models"].items():
        for i, setting in enumerate(data["settings"]):
            yield model, setting, {name: column[i] for name, column in columns.items()}


def test_published_ccs_is_the_harmonic_mean_of_pooled_rates_except_in_none() -> None:
    agree = []
    for model, setting, cell in published():
        ccs = harmonic_mean(cell["follow_rate"], cell["avoid_rate"])
        assert ccs is not None
        if abs(ccs - cell["ccs"]) <= 0.001 + 1e-9:
            agree.append((model, setting))
    assert len(agree) == 15
    assert {setting for _, setting in agree} == {"hist", "ccot", "norms"}


# Missing answers


def broken(record: Evaluation, outcome: Outcome) -> Evaluation:
    return record.model_copy(update={"outcome": outcome, "verdicts": ()})


@pytest.mark.parametrize("outcome", [o for o in Outcome if o is not Outcome.OK])
def test_failed_judgements_are_a_third_state_and_never_a_zero(outcome: Outcome) -> None:
    """Failed judgements enter the mean as 0 and turn the ranking round."""
    plan = design()
    records = list(evaluations(plan, drawn(5), settings=("hist",)))
    whole = as_json(read_verdicts(records, plan))["rows"][0]
    rest = as_json(read_verdicts(records[1:], plan))["rows"][0]
    failed = as_json(read_verdicts([broken(records[0], outcome), *records[1:]], plan))["rows"][0]
    lost = len(records[0].verdicts)
    assert {name: failed[name] for name in MEASURES} == {name: rest[name] for name in MEASURES}
    assert (failed["judged"], failed["not_judged"]) == (whole["judged"] - lost, lost)
    assert failed["total"] == whole["total"]
    assert failed["outcomes"] == {str(outcome): lost}


def test_an_answer_that_the_evaluator_left_out_is_missing() -> None:
    plan = design()
    records = list(evaluations(plan, drawn(5), settings=("hist",)))
    short = records[0].model_copy(update={"verdicts": records[0].verdicts[1:]})
    row = as_json(read_verdicts([short, *records[1:]], plan))["rows"][0]
    assert (row["not_judged"], row["outcomes"]) == (1, {"unparsed": 1})


def test_nothing_judged_is_null_not_zero() -> None:
    plan = design()
    found = as_json(table_of(plan, missing=1.0))
    for row in found["rows"]:
        assert all(row[name] is None for name in MEASURES)
        assert all(row["interval"][name] is None for name in MEASURES)
        assert (row["judged"], row["total"]) == (0, row["not_judged"])
        assert row["bounds"]["ccs"] == [0.0, 1.0]
    for difference in found["differences"]:
        assert difference["common"] == 0
        assert all(difference[name] is None for name in MEASURES)
    cells = results_tables(results(table_of(plan, missing=1.0), QUICK))[0].rows[0]
    assert cells.count("n/a") == len(MEASURES)


def test_the_other_rule_counts_missing_against_the_target_and_is_printed() -> None:
    plan = design()
    table = table_of(plan, missing=0.3)
    options = replace(QUICK, missing="not_satisfied")
    excluded, counted = as_json(table)["rows"][0], as_json(table, options)["rows"][0]
    satisfied = counted["follow_satisfied"]
    assert counted["follow_rate"] == satisfied / counted["follow_total"]
    assert excluded["follow_rate"] == satisfied / excluded["follow_judged"]
    assert counted["bounds"]["follow_rate"][0] == counted["follow_rate"]
    assert counted["judged"] == excluded["judged"]
    assert any("count as not satisfied" in note for note in as_json(table, options)["notes"])


@pytest.mark.parametrize(("missing", "given"), [(0.0, False), (0.3, True)])
def test_bounds_are_given_when_over_one_percent_is_missing(missing: float, given: bool) -> None:
    row = as_json(table_of(design(), missing=missing))["rows"][1]
    assert (row["bounds"] is not None) is given
    if given:
        for name in MEASURES[:4]:
            low, high = row["bounds"][name]
            assert low < row[name] < high


# One order, one answer; flat memory; records that do not fit


def test_order_of_records_does_not_matter() -> None:
    plan = design()
    answer = drawn(6, missing=0.1)
    records = list(evaluations(plan, answer, targets=("two", "one"), shared=("none",), repeats=2))
    options = replace(QUICK, by=("culture", "topic"))
    first = results(read_verdicts(records, plan), options).json_bytes()
    for seed in range(3):
        random.Random(seed).shuffle(records)
        assert results(read_verdicts(records, plan), options).json_bytes() == first


def test_memory_is_flat_in_the_number_of_records() -> None:
    """All transcripts are held until the end; memory grows with the number of samples."""
    plan = design(cultures=2, personas=25, queries=50, norms=3)
    patterns = list(evaluations(plan, drawn(7), settings=("hist",)))

    def stream(targets: int) -> Iterator[Evaluation]:
        for target in range(targets):
            for pattern in patterns:
                # Each record holds 20 KB of its own.
                texts = {"target": f"t{target}", "reason": "x" * 20_000}
                yield pattern.model_copy(update=texts)

    def peak(targets: int) -> int:
        tracemalloc.start()
        table = read_verdicts(stream(targets), plan)
        found = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        assert table.answers.shape == (targets, sum(len(r.verdicts) for r in patterns))
        return found

    # 50,000 records, 1 GB of text: what grows is some 150 bytes for each record.
    assert peak(20) - peak(1) < 10_000_000


@pytest.mark.parametrize(
    ("change", "message"),
    [
        pytest.param({"persona": "c9-01"}, "persona 'c9-01'", id="unknown persona"),
        pytest.param({"query": "health-999"}, "query 'health-999'", id="unknown query"),
        pytest.param({"persona": "c0-02"}, "does not have for persona 'c0-02'", id="other states"),
        pytest.param({"persona": "c1-01"}, "a verdict on norm", id="norms of another culture"),
    ],
)
def test_records_that_do_not_fit_are_refused(change: dict[str, str], message: str) -> None:
    plan = design()
    record = next(evaluations(plan, drawn(1))).model_copy(update=change)
    with pytest.raises(StoreError, match=message):
        read_verdicts([record], plan)


def test_rows_sharing_an_id_are_refused() -> None:
    """Rows sharing an id overwrite each other and the mean is wrong without any sign."""
    plan = design()
    records = list(evaluations(plan, drawn(1)))
    with pytest.raises(StoreError, match="setting 'hist', persona 'c0-02', query 'health-002'"):
        read_verdicts(
            [*records, evaluation(plan, ("one", "hist", "c0-02", "health-002", 0), drawn(1))], plan
        )
    twice = records[0].model_copy(update={"verdicts": records[0].verdicts * 2})
    with pytest.raises(StoreError, match="two verdicts on one norm"):
        read_verdicts([twice], plan)


# Differences


def test_differences_use_common_items_and_say_how_many() -> None:
    plan = design()
    records = list(evaluations(plan, drawn(8)))
    gone = {("none", "health-001"), ("hist", "health-002")}
    kept = [record for record in records if (record.setting, record.query) not in gone]
    found = as_json(read_verdicts(kept, plan))
    (difference,) = found["differences"]
    common = [record for record in kept if record.query == "health-003"]
    people = sorted(plan.states)
    none, hist = (
        rates_by_hand([r for r in common if r.setting == s], people) for s in ("none", "hist")
    )
    for name in MEASURES:
        a, b = none[name], hist[name]
        assert a is not None
        assert b is not None
        assert difference[name] == pytest.approx(b - a)
    items = sum(len(record.verdicts) for record in records) // 6
    assert [difference[k] for k in ("common", "only_a", "only_b")] == [items] * 3
    assert (difference["a"], difference["b"]) == ("none", "hist")


def test_uneven_coverage_is_never_silent() -> None:
    plan = design()
    records = list(evaluations(plan, drawn(8)))
    assert not any(
        "different items" in note for note in as_json(read_verdicts(records, plan))["notes"]
    )
    notes = as_json(read_verdicts(records[1:], plan))["notes"]
    assert any("rows rest on different items" in note for note in notes)


def test_differences_pair_settings_within_targets_and_targets_within_settings() -> None:
    table = table_of(design(), targets=("b", "a"), settings=("norms", "hist", "none"))
    assert table.cells[:3] == (Cell("a", "none"), Cell("a", "hist"), Cell("a", "norms"))
    found = as_json(table)["differences"]
    assert [d["between"] for d in found] == ["settings"] * 6 + ["targets"] * 3
    assert [(d["setting"], d["a"], d["b"]) for d in found[6:]] == [
        ("none", "a", "b"),
        ("hist", "a", "b"),
        ("norms", "a", "b"),
    ]


def test_pairing_takes_out_what_personas_bring_to_both_sides() -> None:
    """The same persona effects in both settings: the difference is known better than either."""
    plan = design(personas=8, queries=20)
    rng = np.random.default_rng(1)
    chance = {persona: rng.uniform(0.1, 0.8) for persona in plan.states}

    def answer(target: str, setting: str, persona: str, norm: str, state: int) -> bool:
        return bool(rng.random() < chance[persona] + (0.1 if setting == "hist" else 0))

    found = as_json(read_verdicts(evaluations(plan, answer), plan))
    widths = [
        high - low
        for part in (*found["rows"], *found["differences"])
        for low, high in [part["interval"]["norm_adaptation"]]
    ]
    assert widths[2] < 0.6 * min(widths[:2])


# Breakdowns, shown norms, shared answers


@pytest.mark.parametrize("dimension", ["culture", "topic", "kind", "persona", "query"])
def test_breakdowns_add_up(dimension: Any) -> None:
    plan = design()
    table = table_of(plan, missing=0.1)
    whole = as_json(table)["rows"]
    parts = as_json(table, replace(QUICK, by=(dimension,)))["rows"]
    for row in whole:
        mine = [part for part in parts if part["setting"] == row["setting"]]
        assert [part[dimension] for part in mine] == sorted({part[dimension] for part in mine})
        for name in ("judged", "not_judged", "total", "follow_satisfied", "avoid_satisfied"):
            assert sum(part[name] for part in mine) == row[name]
    assert all(
        (part["interval"]["norm_adaptation"] is None) is (dimension == "persona") for part in parts
    )


def test_two_dimensions_at_once() -> None:
    rows = as_json(table_of(design()), replace(QUICK, by=("topic", "culture")))["rows"]
    assert len(rows) == 2 * 3 * 2
    assert (rows[0]["topic"], rows[0]["culture"]) == ("disease", "c0")


@pytest.mark.parametrize("by", [("colour",), ("topic", "topic")])
def test_a_wrong_breakdown_is_refused(by: Any) -> None:
    with pytest.raises(UsageError, match="--by takes"):
        ResultOptions(by=by)


def test_shown_norms_keep_the_same_pairs_in_every_setting() -> None:
    plan = design()
    histories = [
        History(id=p, persona=p, sessions=(), shown=plan.items[p][:2])
        for p in plan.states
        if p != "c0-01"
    ]
    # What an incomplete history would have shown, no target was shown.
    lost = History(
        id="c0-01", outcome=Outcome.ERROR, persona="c0-01", sessions=(), shown=plan.items["c0-01"]
    )
    options = replace(QUICK, shown=shown_norms([*histories, lost]))
    found = as_json(table_of(plan), options)
    assert [row["total"] for row in found["rows"]] == [7 * 2 * 3] * 2
    assert [row["personas"] for row in found["rows"]] == [7, 7]
    assert any("14 of " in note and "1 of 8 personas" in note for note in found["notes"])


def test_no_shown_norm_at_all_leaves_rows_of_nulls() -> None:
    rows = as_json(table_of(design()), replace(QUICK, shown={}))["rows"]
    assert [row["total"] for row in rows] == [0, 0]
    assert all(row[name] is None for row in rows for name in MEASURES)


def test_a_shared_none_resamples_queries_too_and_says_so() -> None:
    found = as_json(table_of(design(), shared=("none",)))
    assert [row["resampled"] for row in found["rows"]] == ["personas and queries", "personas"]
    assert found["differences"][0]["resampled"] == "personas and queries"
    assert any("share one response" in note for note in found["notes"])


def test_shared_answers_make_the_interval_wider() -> None:
    """One response for all personas: eight personas are not eight looks at the model."""
    plan = design(personas=10, queries=6)
    rng = np.random.default_rng(2)
    met = {query: bool(rng.random() < 0.5) for query in plan.topics}
    records = [
        record.model_copy(
            update={
                "verdicts": tuple(
                    v.model_copy(update={"satisfied": met[record.query]}) for v in record.verdicts
                )
            }
        )
        for record in evaluations(plan, drawn(1), settings=("none",), shared=("none",))
    ]
    (row,) = as_json(read_verdicts(records, plan))["rows"]
    low, high = row["interval"]["norm_adaptation"]
    assert high - low > 0.5


# Intervals in rows


def test_an_all_zero_rate_has_an_exact_interval_not_a_point() -> None:
    plan = design()
    table = read_verdicts(evaluations(plan, lambda *place: place[4] < 0), plan)
    for row in as_json(table)["rows"]:
        assert (row["follow_rate"], row["avoid_rate"], row["ccs"]) == (0.0, 1.0, 0.0)
        reach = 1 - 0.025 ** (1 / 8)
        assert row["interval"]["follow_rate"] == pytest.approx([0.0, reach])
        assert row["interval"]["avoid_rate"] == pytest.approx([1 - reach, 1.0])
        assert row["interval"]["ccs"] == pytest.approx([0.0, 2 * reach / (1 + reach)])
        assert row["interval"]["ccs_persona_mean"] == pytest.approx([0.0, reach])


def test_identical_settings_have_a_difference_of_zero_and_no_interval() -> None:
    plan = design()
    (difference,) = as_json(
        read_verdicts(evaluations(plan, lambda *place: len(place[3]) % 2 > 0), plan)
    )["differences"]
    assert difference["ccs"] == 0.0
    assert difference["interval"]["ccs"] is None


def test_one_persona_in_a_culture_leaves_no_interval_and_a_note() -> None:
    found = as_json(table_of(design(cultures=2, personas=1)))
    assert all(found["rows"][0]["interval"][name] is None for name in MEASURES)
    assert any("one persona only: c0, c1" in note for note in found["notes"])


def test_other_draws_give_nearly_the_same_interval() -> None:
    table = table_of(design(personas=8, queries=10))
    ends = [
        as_json(table, ResultOptions(seed=seed))["rows"][1]["interval"]["ccs"] for seed in (1, 2)
    ]
    assert ends[0] != ends[1]
    assert ends[0] == pytest.approx(ends[1], abs=0.02)


def planted_answers(table: VerdictTable, seed: int) -> VerdictTable:
    """New answers: persona effects (beta) around Follow .10 and Avoid .50 in hist, half in none."""
    rng = np.random.default_rng(seed)
    people = len(table.personas)
    chances = np.stack([rng.beta(0.1 * 29, 0.9 * 29, people), rng.beta(14.5, 14.5, people)])
    items = table.items
    chance = chances[np.where(items.state > 0, 0, 1), items.persona]
    rows = [
        rng.random(len(items)) < chance / (2 if c.setting == "none" else 1) for c in table.cells
    ]
    return replace(table, answers=np.stack(rows).astype(np.int8))


def test_printed_intervals_cover_planted_rates_over_200_seeds() -> None:
    table = table_of(design(cultures=3, personas=8, queries=10))
    truth = {"follow_rate": 0.10, "avoid_rate": 0.50, "ccs": 1 / 6}
    steps = {"follow_rate": 0.05, "avoid_rate": 0.25, "ccs": 1 / 12}
    hits = dict.fromkeys([*truth, *(f"{name} step" for name in steps)], 0)
    for seed in range(200):
        found = results(planted_answers(table, seed), ResultOptions(seed=seed, draws=400))
        row, difference = found.rows[1], found.differences[0]
        for name, expected in truth.items():
            hits[name] += inside(row.intervals[name], expected)
            hits[f"{name} step"] += inside(difference.intervals[name], steps[name])
    # Three standard errors of a share of .95 over 200 runs are .046.
    assert all(count / 200 >= 0.904 for count in hits.values()), hits


def inside(found: Interval | None, value: float) -> bool:
    return found is not None and found.low <= value <= found.high


# Embeddedness, safety, synthetic targets, text


def test_embeddedness_has_a_point_for_each_persona() -> None:
    plan = design(personas=8)
    (part,) = as_json(table_of(plan, settings=("hist",)))["embeddedness"]
    assert len(part["points"]) == 16
    for point in part["points"]:
        states = [s for s in plan.states[point["persona"]].values() if s]
        assert point["embeddedness"] == states.count(1) / len(states)
    x, y = ([p[k] for p in part["points"]] for k in ("embeddedness", "norm_adaptation"))
    assert part["norm_adaptation"]["pearson"] == pytest.approx(np.corrcoef(x, y)[0, 1])
    low, high = part["norm_adaptation"]["interval"]["spearman"]
    assert -1 <= low < part["norm_adaptation"]["spearman"] < high <= 1


def test_two_points_have_no_correlation() -> None:
    (part,) = as_json(table_of(design(cultures=1, personas=2), settings=("hist",)))["embeddedness"]
    assert part["norm_adaptation"]["pearson"] is None


def label(persona: str, query: str, unsafe: bool | None, setting: str = "hist") -> SafetyLabel:
    response = f"one/{setting}/{persona}/{query}/r0"
    return SafetyLabel(
        id=response,
        outcome=Outcome.OK if unsafe is not None else Outcome.REFUSED,
        response=response,
        target="one",
        setting=setting,
        persona=persona,
        query=query,
        unsafe=unsafe,
    )


def test_unsafe_responses_stand_beside_ccs_with_their_denominators() -> None:
    plan = design()
    labels = [label(p, "health-001", p.endswith("1")) for p in plan.states]
    labels += [label("c0-02", "health-002", None)]
    labels += [label("-", q, q.endswith("1"), "none") for q in plan.topics]
    rows = safety_rows(reversed(labels), plan, QUICK)
    hist = rows[1].as_json()
    assert (hist["unsafe"], hist["judged"], hist["not_judged"]) == (2, 8, 1)
    assert (hist["unsafe_rate"], hist["outcomes"]) == (0.25, {"refused": 1})
    assert rows[0].as_json()["unsafe_rate"] == pytest.approx(1 / 3)
    assert all(inside(row.interval, row.unsafe.value or 0) for row in rows)
    found = results(table_of(plan), QUICK, rows)
    assert [t.title for t in results_tables(found)][-1] == "Responses labelled unsafe"
    assert safety_rows([], plan) == ()


def test_synthetic_passes_through_everywhere() -> None:
    plan = design()
    options = replace(QUICK, synthetic=frozenset({"planted"}))
    found = results(table_of(plan, targets=("planted", "real")), options)
    data = json.loads(found.json_bytes())
    assert data["synthetic"] is True
    assert {row["target"]: row["synthetic"] for row in data["rows"]} == {
        "planted": True,
        "real": False,
    }
    assert all(d["synthetic"] for d in data["differences"] if d["between"] == "targets")
    assert data["notes"][0].startswith("SYNTHETIC")
    assert results_tables(found)[0].rows[0][0] == "planted (synthetic)"
    assert as_json(table_of(plan))["synthetic"] is False


@pytest.mark.parametrize(
    ("value", "signed", "text"),
    [
        (0.1154, False, ".115"),
        (1.0, False, "1.000"),
        (0.0, False, ".000"),
        (None, False, "n/a"),
        (0.012, True, "+.012"),
        (-0.012, True, "-.012"),
        (-0.0001, True, ".000"),
    ],
)
def test_numbers_in_tables(value: float | None, signed: bool, text: str) -> None:
    assert number(value, signed=signed) == text


def test_a_rate_in_a_table_has_interval_and_denominator() -> None:
    assert with_interval(0.115, Interval(0.0921, 0.14)) == ".115 [.092, .140]"
    found = results(table_of(design(), missing=0.1), QUICK)
    for text in results_tables(found):
        assert text.rows
        assert all(len(row) == len(text.columns) for row in text.rows)
    main = results_tables(found)[0]
    assert main.rows[0][3] == f"{found.rows[0].follow.judged:,}"
    told = [note for text in results_tables(found) for note in text.notes]
    assert sorted(told) == sorted(found.notes)
    assert "unparsed" in main.rows[0][-2]


def test_required_fields_of_the_json_form() -> None:
    row = as_json(table_of(design()))["rows"][0]
    assert {"target", "setting", "judged", "not_judged", "total", "interval", *MEASURES} <= set(row)
    assert set(row["interval"]) == set(MEASURES)
