"""The table of what the histories show, from attempts in any order."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import pytest

from habitus.analysis import ResultOptions, ends_text, filter_table, filter_text
from habitus.errors import StoreError
from habitus.experiments import RunRequest, Stage, run_experiment
from habitus.records import Attempt, NormCheck, Outcome, SessionCheck
from habitus.store import RunDir
from results_fixture import design
from study_fixture import study_of

PLAN = design(cultures=2, personas=3)
QUICK = ResultOptions(seed=1, draws=200)


def check(persona: str, *, agree: bool = True, told: int = 2, **more: Any) -> SessionCheck:
    """The first ``told`` scored norms can be told; neutral norms are told too and do not count."""
    norms = []
    for place, (norm, state) in enumerate(
        sorted(PLAN.states[persona].items(), key=lambda s: not s[1])
    ):
        seen = place < told or state == 0
        norms.append(
            NormCheck(
                norm=norm,
                inferrable_from_text=True,
                implicitly_inferrable=seen,
                adherence=((state > 0) is agree) if seen else None,
            )
        )
    return SessionCheck(norms=tuple(norms), explicit_reveal=False, **more)


def attempt(persona: str, number: int = 1, again: int = 0, **more: Any) -> Attempt:
    fields = {"check": check(persona), "decision": "accepted"} | more
    return Attempt(
        id=f"{persona}/s{number:02d}/a{again}",
        persona=persona,
        number=number,
        attempt=again,
        kind="everyday",
        opener="hello",
        **fields,
    )


def test_rates_are_over_first_attempts_and_counts_over_all() -> None:
    contradicting = attempt(
        "c0-01",
        check=check("c0-01", agree=False),
        decision="rejected",
        rejected_for=("contradiction",),
    )
    attempts = [contradicting, attempt("c0-01", again=1), attempt("c0-02"), attempt("c1-01")]
    first, second, everyone = filter_table(attempts, PLAN, QUICK).rows
    assert (first.culture, second.culture, everyone.culture) == ("c0", "c1", "all")
    assert (first.adherence.satisfied, first.adherence.judged) == (2, 4)
    assert (first.attempts, first.sessions, first.personas) == (3, 2, 2)
    assert first.decisions == {"accepted": 2, "rejected": 1}
    assert first.rejections == {"contradiction": 1}
    assert (everyone.adherence.satisfied, everyone.adherence.judged) == (4, 6)
    # One persona cannot show how personas differ.
    assert second.adherence_interval is None


def test_what_could_not_be_told_is_no_disagreement() -> None:
    silent = attempt("c0-01", check=check("c0-01", told=0))
    (row, _) = filter_table([silent], PLAN, QUICK).rows
    scored = len(PLAN.items["c0-01"])
    assert row.adherence.value is None
    assert (row.inferrable.satisfied, row.inferrable.judged) == (0, scored)
    assert row.as_json()["adherence"] is None


@pytest.mark.parametrize(
    "unchecked",
    [
        pytest.param({"check": None, "outcome": Outcome.ERROR}, id="no conversation"),
        pytest.param({"check": SessionCheck(outcome=Outcome.UNPARSED)}, id="no verdict"),
    ],
)
def test_a_session_that_was_not_checked_has_no_rate(unchecked: dict[str, Any]) -> None:
    (row, _) = filter_table([attempt("c0-01", **unchecked)], PLAN, QUICK).rows
    assert row.adherence.value is None
    assert row.reveal.value is None
    assert (row.reveal.judged, row.reveal.missing, row.sessions) == (0, 1, 1)


def test_reveals_by_model_and_by_word_list() -> None:
    attempts = [
        attempt("c0-01", check=check("c0-01").model_copy(update={"explicit_reveal": True})),
        attempt("c0-02", check=check("c0-02", lexical_reveals=("I am from C0",))),
        attempt("c0-03"),
    ]
    (row, _) = filter_table(attempts, PLAN, QUICK).rows
    assert row.reveal.value == pytest.approx(1 / 3)
    assert row.lexical_reveal.value == pytest.approx(1 / 3)


def test_personas_out_of_their_role_are_counted() -> None:
    attempts = [
        attempt("c0-01", role_breaks=("steps out of the role: roleplay",)),
        attempt("c0-02", role_breaks=()),
        attempt("c0-03", role_breaks=(), outcome=Outcome.ERROR, check=None),
        attempt("c0-03", number=2),  # of a version that did not look
    ]
    (row, _) = filter_table(attempts, PLAN, QUICK).rows
    assert (row.role_break.satisfied, row.role_break.judged, row.role_break.missing) == (1, 2, 2)
    assert row.as_json()["role_break"] == 0.5


def test_a_run_counts_personas_out_of_their_role(tmp_path: Path) -> None:
    said = [{"role": "persona", "reply": "As an AI language model, I have no body."}]
    options = {"script": "helpers", "rules": said}
    study = study_of(tmp_path, {"models.main.options": options, "filter.policy": "report_only"})
    request = RunRequest(out=tmp_path / "run", until=Stage.HISTORIES)
    run_experiment(study, request)
    with RunDir.open(tmp_path / "run", write=False) as run:
        kept = list(run.records.iterate("attempts", Attempt))
    assert {attempt.role_breaks for attempt in kept} == {("speaks as the assistant: as an ai",)}


def test_why_sessions_ended_is_counted_over_all_attempts() -> None:
    ended = ("complete", "farewell", "empty_turn", "complete", "")
    attempts = [
        attempt("c0-01" if n < 3 else "c1-01", number=n, end=end) for n, end in enumerate(ended)
    ]
    found = filter_table(attempts, PLAN, QUICK, {"persona": "small", "assistant": "main"})
    assert [dict(row.ends) for row in found.rows] == [
        {"complete": 1, "empty_turn": 1, "farewell": 1},
        {"complete": 1, "not said": 1},
        {"complete": 2, "empty_turn": 1, "farewell": 1, "not said": 1},
    ]
    table = ends_text(found)
    assert table.columns == (
        "Culture", "complete", "persona_stop", "farewell", "repetition", "empty_turn", "failed",
        "not said", "attempts",
    )  # fmt: skip
    assert table.rows[0] == ("c0", "1", "0", "1", "0", "1", "0", "0", "3")
    assert table.notes[-1] == "played: persona by small, assistant by main"
    assert found.as_json()["rows"][2]["ends"]["complete"] == 2


def test_order_of_attempts_does_not_matter() -> None:
    attempts = [
        attempt(p, number, again, rejected_for=("reveal",) if again else ())
        for p in PLAN.states
        for number in (1, 2)
        for again in (0, 1)
    ]
    first = filter_table(attempts, PLAN, QUICK).json_bytes()
    random.Random(1).shuffle(attempts)
    assert filter_table(attempts, PLAN, QUICK).json_bytes() == first
    text = filter_text(filter_table(attempts, PLAN, QUICK))
    assert all(len(row) == len(text.columns) for row in text.rows)


def test_no_attempts_give_an_empty_table() -> None:
    assert filter_table([], PLAN).rows == ()


def test_an_unknown_persona_is_refused() -> None:
    with pytest.raises(StoreError, match="'c9-01'"):
        filter_table([attempt("c0-01").model_copy(update={"persona": "c9-01"})], PLAN)
