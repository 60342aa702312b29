"""Results counted again, by hand, from the record files of runs in which everything went wrong.

The count below knows nothing of the engine: it reads ``study.json`` and ``records/*.jsonl``.
"""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from random import Random
from typing import Any

import pytest

from habitus.analysis import OutcomeTable
from habitus.experiments import RunRequest, View, run_experiment, run_outcomes, run_results
from habitus.records import Outcome, Reply, Request
from habitus.store import RunDir
from study_fixture import Answering, failing, opening, study_of

FAILURES = [outcome for outcome in Outcome if outcome is not Outcome.OK]
NUMBERS = ("follow_rate", "avoid_rate", "norm_adaptation", "ccs", "ccs_persona_mean")
COUNTS = ("judged", "not_judged", "total")
Item = tuple[int, bool | None]


def messy(seed: str, roles: tuple[str, ...]) -> Callable[[Request], Reply | str | None]:
    """Helpers of whom a third fail in some way, and an evaluator that answers in many forms."""

    def script(request: Request) -> Reply | str | None:
        role = request.context["role"]
        draw = Random(f"{seed} {role} {request.record} {request.attempt} {request.repeat}")
        if role in roles and draw.random() < 0.35:
            text = draw.choice(["", "half an answer", '{"recommendation": "half"}'])
            return failing(draw.choice(FAILURES), text=text)
        return verdicts(request, draw) if role == "evaluator" else None

    return script


def verdicts(request: Request, draw: Random) -> str:
    """An answer of an evaluator in one of its many forms, readable or not."""
    assert request.schema is not None
    labels = list(request.schema.body["properties"])
    items = {label: {"reasoning": "-", "adherence": draw.random() < 0.5} for label in labels}
    listed = [{"norm_id": label, **item} for label, item in items.items()]
    pairs = ", ".join(f'"{label}": {json.dumps(item)}' for label, item in items.items())
    first = labels[0]
    forms = [
        json.dumps(dict(reversed(items.items()))),
        json.dumps(listed),
        json.dumps({"verdicts": listed}),
        f'Here: ```json\n{json.dumps(items)}\n``` "{first}" is met.',
        f'{{{pairs}, "{first}": {{"reasoning": "-", "adherence": true}}}}',
        json.dumps(items | {"N99": items[first]}),
        json.dumps({f"x{label}": item for label, item in items.items()}),
        json.dumps(items | {first: {"reasoning": "-", "adherence": "true"}}),
        json.dumps(items | {first: {"reasoning": "-", "adherence": 1}}),
        json.dumps(items | {first: {"reasoning": "-", "adherence": None}}),
        json.dumps({label: items[label] for label in labels[1:]}),
    ]
    return draw.choice(forms)


def lines(run: Path, table: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (run / f"records/{table}.jsonl").read_bytes().splitlines()]


def recount(run: Path, by: str | None, *, shown: bool) -> dict[tuple[Any, ...], dict[str, Any]]:
    """Rows by (target, setting, group), from the files alone; checks each verdict on the way."""
    study = json.loads((run / "study.json").read_text(encoding="utf-8"))
    responses = {r["id"]: r for r in lines(run, "responses")}
    written = {r["id"]: r for r in lines(run, "recommendations")}
    seen = {h["persona"]: h["shown"] for h in lines(run, "histories") if h["outcome"] == "ok"}
    cells: dict[tuple[Any, ...], dict[str, list[Item]]] = defaultdict(lambda: defaultdict(list))
    for evaluation in lines(run, "evaluations"):
        persona, query = evaluation["persona"], evaluation["query"]
        states = study["personas"][persona]["states"]
        assert sorted(v["norm"] for v in evaluation["verdicts"]) == sorted(
            norm for norm, state in states.items() if state
        )
        for verdict in evaluation["verdicts"]:
            norm, satisfied = verdict["norm"], verdict["satisfied"]
            item = written[verdict["recommendation"]]
            assert (item["norm"], item["state"], item["query"]) == (norm, states[norm], query)
            assert (satisfied is None) == (verdict["outcome"] != "ok")
            whole = responses[evaluation["response"]]["outcome"] == item["outcome"] == "ok"
            assert whole or satisfied is None
            group = {
                None: None, "persona": persona, "query": query,
                "culture": study["personas"][persona]["culture"],
                "topic": study["queries"][query]["topic"], "kind": study["norms"][norm]["kind"],
            }[by]  # fmt: skip
            if not shown or norm in seen.get(persona, ()):
                key = (evaluation["target"], evaluation["setting"], group)
                cells[key][persona].append((verdict["state"], satisfied))
    return {key: row(people) for key, people in cells.items()}


def row(people: Mapping[str, list[Item]]) -> dict[str, Any]:
    every = [item for items in people.values() for item in items]
    judged = sum(satisfied is not None for _, satisfied in every)
    own = [ccs(items) for items in people.values()]
    numbers = (
        rate(every, {1}), rate(every, {-1}), rate(every, {1, -1}), ccs(every),
        mean([value for value in own if value is not None]),
    )  # fmt: skip
    counts = (judged, len(every) - judged, len(every))
    return dict(zip((*NUMBERS, *COUNTS), (*numbers, *counts), strict=True))


def rate(items: Iterable[Item], states: set[int]) -> float | None:
    return mean([float(s) for state, s in items if state in states and s is not None])


def ccs(items: list[Item]) -> float | None:
    follow, avoid = rate(items, {1}), rate(items, {-1})
    if follow is None or avoid is None:
        return None
    return 2 * follow * avoid / (follow + avoid) if follow + avoid else 0.0


def mean(values: list[float]) -> float | None:
    return sum(values) / len(values) if values else None


CASES: dict[str, tuple[dict[str, Any], tuple[str, ...]]] = {
    "the target fails": ({}, ("target",)),
    "none for each persona, twice": ({"none": "per_persona", "repeats": 2}, ("target",)),
    "two targets": ({"targets.second": {"model": "main", "temperature": 0.1}}, ("target",)),
    "one call writes a session": ({"history.form": "single_call"}, ("dialogue", "evaluator")),
    "the verifier fails": ({"filter.attempts": 2}, ("verifier",)),
    "the verifier only reports": ({"filter.policy": "report_only"}, ("verifier", "evaluator")),
    "recommendations fail": ({"checklist.recommendations": "per_persona"}, ("recommender",)),
    "verdicts come first": ({"checklist.order": "verdict_first", "checklist.echo": True}, ()),
}


@pytest.mark.parametrize(("changes", "roles"), CASES.values(), ids=CASES)
def test_results_are_what_the_records_say(
    tmp_path: Path, changes: dict[str, Any], roles: tuple[str, ...]
) -> None:
    study = study_of(tmp_path, {"personas": 4, "limits.alike": 10**6, **changes})
    model = Answering(messy(str(changes), roles))
    run_experiment(study, RunRequest(out=tmp_path / "run", opener=opening(model)))
    failed = 0
    with RunDir.open(tmp_path / "run", write=False) as run:
        for by in (None, "culture", "persona", "topic", "query", "kind"):
            for shown in (False, True):
                view = View(by=(by,) if by else (), shown=shown)
                rows = run_results(run, view).as_json()["rows"]
                found = {(r["target"], r["setting"], r.get(by)): r for r in rows if r["total"]}
                expected = recount(run.path, by, shown=shown)
                assert found.keys() == expected.keys()
                for key, wanted in expected.items():
                    assert {n: found[key][n] for n in wanted} == pytest.approx(wanted, abs=1e-12)
                    failed += wanted["not_judged"]
    assert failed > 0


PARTS = ("ok", *map(str, FAILURES), "not_asked")
Counts = dict[str, int]


def recount_outcomes(run: Path) -> dict[tuple[str, ...], Counts]:
    """Everything by stage, target, setting and culture, from the files of records alone."""
    study = json.loads((run / "study.json").read_text(encoding="utf-8"))
    cultures = {name: person["culture"] for name, person in study["personas"].items()}
    cultures["-"] = "all (shared)"
    histories = {h["id"]: h["outcome"] for h in lines(run, "histories")}
    responses = {r["id"]: r for r in lines(run, "responses")}
    written = {r["id"]: r["outcome"] for r in lines(run, "recommendations")}
    found: dict[tuple[str, ...], Counts] = defaultdict(lambda: dict.fromkeys(PARTS, 0))
    for attempt in lines(run, "attempts"):
        culture = cultures[attempt["persona"]]
        found["attempts", "", "", culture][attempt["outcome"]] += 1
        check = attempt["check"]
        found["checks", "", "", culture][check["outcome"] if check else "not_asked"] += 1
    for persona, outcome in histories.items():
        found["histories", "", "", cultures[persona]][outcome] += 1
    for name, outcome in written.items():
        found["recommendations", "", "", study["norms"][name.split("/")[0]]["culture"]][
            outcome
        ] += 1
    for response in responses.values():
        place = (response["target"], response["setting"], cultures[response["persona"]])
        lost = response["reason"] == "the persona's history is not complete"
        found["responses", *place]["not_asked" if lost else response["outcome"]] += 1
    for evaluation in lines(run, "evaluations"):
        place = (evaluation["target"], evaluation["setting"], cultures[evaluation["persona"]])
        for verdict in evaluation["verdicts"]:
            before = responses[evaluation["response"]]["outcome"] == "ok"
            before = before and written[verdict["recommendation"]] == "ok"
            outcome = verdict["outcome"] if before else "not_asked"
            found["verdicts", *place][outcome] += 1
    return dict(found)


def counted(table: OutcomeTable) -> dict[tuple[str, ...], Counts]:
    """A table of outcomes as the recount has it; checks that it adds up."""
    out: dict[tuple[str, ...], Counts] = {}
    for row in table.as_json():
        parts = {name: row[name] for name in PARTS}
        assert row["total"] == sum(parts.values()) > 0
        told = sum(reason["count"] for reason in row["reasons"]) + row["other_reasons"]
        assert told == row["total"] - row["ok"]
        out[row["stage"], row["target"], row["setting"], row["culture"]] = parts
    assert len(out) == len(table.rows)
    return out


ROLES = ("target", "evaluator", "recommender", "verifier", "persona", "assistant")


@pytest.mark.parametrize("policy", ["resimulate", "report_only"])
@pytest.mark.parametrize("role", [*ROLES, "all of them"])
def test_outcomes_are_what_the_records_say(tmp_path: Path, role: str, policy: str) -> None:
    """Whichever role fails: each failure is counted once, as its own and not as another's."""
    roles = ROLES if role == "all of them" else (role,)
    changes = {
        "personas": 4, "limits.alike": 10**6, "filter.policy": policy, "filter.attempts": 2,
        "targets.second": {"model": "main", "temperature": 0.1},
    }  # fmt: skip
    study = study_of(tmp_path, changes)
    model = Answering(messy(f"{role} {policy}", roles))
    summary = run_experiment(study, RunRequest(out=tmp_path / "run", opener=opening(model)))
    with RunDir.open(tmp_path / "run", write=False) as run:
        outcomes = run_outcomes(run)
        results = run_results(run, View(by=("culture",)))
        assert counted(outcomes) == recount_outcomes(run.path)
    assert results.outcomes == outcomes
    for stage in ("attempts", "histories", "recommendations", "responses"):
        kept = summary.records[stage]
        rows = outcomes.of(stage)
        assert sum(row.ok for row in rows) == kept.get(Outcome.OK, 0)
        assert sum(row.total for row in rows) == sum(kept.values())
    for row in results.rows:
        place = ("verdicts", row.cell.target, row.cell.setting, dict(row.labels)["culture"])
        parts = counted(outcomes)[place]
        assert row.judged == parts["ok"]
        assert row.not_judged == sum(parts.values()) - parts["ok"]


def test_common_items_are_those_that_every_target_has(tmp_path: Path) -> None:
    """Three targets that fail on different items: each is counted on what all of them answered."""
    targets = {f"targets.t{n}": {"model": "main", "temperature": n / 10} for n in range(3)}
    study = study_of(tmp_path, {**targets, "personas": 3, "limits.alike": 10**6})
    model = Answering(messy("common", ("target", "evaluator")))
    run_experiment(study, RunRequest(out=tmp_path / "run", opener=opening(model)))
    with RunDir.open(tmp_path / "run", write=False) as run:
        found = run_results(run)
        cells = cells_of(run.path)
    judged = {
        cell: {key for key, (_, satisfied) in items.items() if satisfied is not None}
        for cell, items in cells.items()
    }
    lost = []
    for part in found.common:
        cell = (part.row.cell.target, part.row.cell.setting)
        common = set.intersection(*(kept for of, kept in judged.items() if of[1] == cell[1]))
        assert (part.items, part.lost) == (len(common), len(judged[cell] - common))
        own = {key: cells[cell][key] for key in common}
        for name in NUMBERS:
            expected = number(own, name, None) if own else None
            assert part.row.values[name] == (
                None if expected is None else pytest.approx(expected, abs=1e-12)
            )
        lost.append(part.lost)
    assert len(lost) == len(cells) > 10
    assert min(lost[:4]) > 0


class TestBounds:
    """The rule that claims no point: from none of what is missing satisfied to all of it."""

    @pytest.mark.parametrize("seed", range(3))
    def test_ranges_are_those_of_every_assignment(self, tmp_path: Path, seed: int) -> None:
        """Whatever missing verdicts are said to be, the numbers lie in the range; its ends occur."""
        changes = {"targets.second": {"model": "main", "temperature": 0.1}, "personas": 3}
        study = study_of(tmp_path, {**changes, "limits.alike": 10**6, "queries.per_topic": 1})
        model = Answering(messy(f"bounds {seed}", ("target", "evaluator")))
        run_experiment(study, RunRequest(out=tmp_path / "run", opener=opening(model)))
        with RunDir.open(tmp_path / "run", write=False) as run:
            found = run_results(run, View(missing="bounds"))
            items = cells_of(run.path)
        seen = 0
        for part in found.rows:
            own = items[part.cell.target, part.cell.setting]
            for name in NUMBERS:
                low, high = (number(own, name, value) for value in (False, True))
                if low is None or high is None:
                    assert part.values[name] is None
                    continue
                assert part.bounds is None or part.bounds[name] == pytest.approx((low, high))
                assert part.values[name] == (pytest.approx(low) if low == high else None)
                interval = part.intervals[name]
                if part.bounds is not None and interval is not None:
                    assert interval.low <= low <= high <= interval.high
                for draw in range(4):
                    at_random = number(own, name, None, Random(f"{seed} {draw}"))
                    assert at_random is not None
                    assert low - 1e-12 <= at_random <= high + 1e-12
                seen += low != high
        assert seen > 10
        for difference in found.differences:
            both = [items[cell.target, cell.setting] for cell in (difference.a, difference.b)]
            common = both[0].keys() & both[1].keys()
            a, b = ({key: part[key] for key in common} for part in both)
            for name in NUMBERS:
                pairs = [(number(b, name, x), number(a, name, not x)) for x in (False, True)]
                ends = tuple(p - q for p, q in pairs if p is not None and q is not None)
                if difference.bounds is not None and len(ends) == 2:
                    assert difference.bounds[name] == pytest.approx(ends)


Keyed = dict[tuple[str, ...], Item]


def cells_of(run: Path) -> dict[tuple[str, str], Keyed]:
    """The items of each target and setting by persona, query and norm."""
    found: dict[tuple[str, str], Keyed] = defaultdict(dict)
    for evaluation in lines(run, "evaluations"):
        for verdict in evaluation["verdicts"]:
            key = (evaluation["persona"], evaluation["query"], verdict["norm"])
            cell = found[evaluation["target"], evaluation["setting"]]
            cell[key] = (verdict["state"], verdict["satisfied"])
    return found


def number(
    items: Keyed, name: str, missing: bool | None, draw: Random | None = None
) -> float | None:
    """A number of results with missing verdicts said to be one thing, or drawn."""
    people: dict[str, list[Item]] = defaultdict(list)
    for (persona, *_), (state, satisfied) in sorted(items.items()):
        said = missing if draw is None else draw.random() < 0.5
        people[persona].append((state, said if satisfied is None else satisfied))
    value: float | None = row(people)[name]
    return value
