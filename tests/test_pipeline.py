"""The pipeline stage by stage: which records, in which order, and what becomes of failures."""

from __future__ import annotations

import asyncio
import json
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from habitus.experiments import Stage, stage_counts, stage_named
from habitus.records import Outcome, Reply, Request
from habitus.running.ordering import pilot_first, together, windowed
from study_fixture import Answering, Memory, failing, pipe, study_of

TABLES = ("attempts", "histories", "recommendations", "responses", "evaluations", "safety")
ONE = {"personas": ["harbour-03"]}
TARGETS = {
    "targets.main": {"model": "main"},
    "targets.other": {"model": "main", "temperature": 0.0},
}


def role(name: str, answer: Reply | str) -> Callable[[Request], Reply | str | None]:
    """A script for one role; the helpers play the others."""
    return lambda request: answer if request.context.get("role") == name else None


class TestStages:
    @pytest.mark.parametrize(
        ("stage", "tables"),
        [
            ("personas", ()),
            ("histories", TABLES[:2]),
            ("filter", TABLES[:2]),
            ("checklists", TABLES[:3]),
            ("responses", TABLES[:4]),
            ("verdicts", TABLES[:5]),
            ("results", TABLES[:5]),
        ],
    )
    async def test_up_to_and_including(
        self, tmp_path: Path, stage: str, tables: tuple[str, ...]
    ) -> None:
        records = await pipe(study_of(tmp_path), until=stage_named(stage))
        assert set(records.tables) == set(tables)

    @pytest.mark.parametrize(
        "changes",
        [
            {},
            {"none": "per_persona"},
            {"checklist.recommendations": "per_persona"},
            {"repeats": 2},
            TARGETS,
            {"settings": ["none", "norms"]},
            {"roles.safety": {"model": "main"}},
            {"norms": {"harbour": ["harbour_1", "harbour_4"]}},
            {"history.form": "single_call", "history.everyday_sessions": 2},
        ],
        ids=str,
    )
    @pytest.mark.parametrize("limit", [None, 1])
    async def test_the_counts_that_are_planned_are_made(
        self, tmp_path: Path, changes: dict[str, Any], limit: int | None
    ) -> None:
        study = study_of(tmp_path, changes)
        records = await pipe(study, limit=limit)
        counts = stage_counts(study, limit)
        assert {table: records.count(table) for table in TABLES} == {
            table: getattr(counts, table) for table in TABLES
        }
        assert sum(len(e.verdicts) for e in records.all("evaluations")) == counts.items

    async def test_a_limit_takes_the_first_queries(self, tmp_path: Path) -> None:
        records = await pipe(study_of(tmp_path), limit=1)
        for table in ("recommendations", "responses", "evaluations"):
            assert {record.query for record in records.all(table)} == {"harbour-001"}

    async def test_a_run_to_the_end_holds_the_records_of_a_shorter_one(
        self, tmp_path: Path
    ) -> None:
        study = study_of(tmp_path)
        short, whole = await pipe(study, until=Stage.CHECKLISTS), await pipe(study)
        for table, records in short.tables.items():
            assert records == whole.tables[table]


class TestIds:
    async def test_of_every_record(self, tmp_path: Path) -> None:
        records = await pipe(
            study_of(tmp_path, {**ONE, "roles.safety": {"model": "main"}}), limit=1
        )
        assert {table: min(records.tables[table]) for table in TABLES} == {
            "attempts": "harbour-03/s01/a0",
            "histories": "harbour-03",
            "recommendations": "harbour_1/follow/harbour-001",
            "responses": "main/ccot/harbour-03/harbour-001/r0",
            "evaluations": "main/ccot/harbour-03/harbour-001/r0/harbour-03",
            "safety": "main/ccot/harbour-03/harbour-001/r0",
        }
        assert "main/none/-/harbour-001/r0" in records.tables["responses"]
        assert "main/none/-/harbour-001/r0/harbour-03" in records.tables["evaluations"]

    async def test_recommendations_of_a_persona_of_its_own(self, tmp_path: Path) -> None:
        changes = {**ONE, "checklist.recommendations": "per_persona"}
        records = await pipe(study_of(tmp_path, changes), until=Stage.CHECKLISTS, limit=1)
        assert min(records.tables["recommendations"]) == "harbour_1/follow/harbour-001/harbour-03"

    async def test_repeats_and_targets(self, tmp_path: Path) -> None:
        model = Answering()
        changes = {**ONE, **TARGETS, "repeats": 2, "settings": ["hist"]}
        records = await pipe(study_of(tmp_path, changes), model, Stage.RESPONSES, limit=1)
        assert sorted(records.tables["responses"]) == [
            f"{target}/hist/harbour-03/harbour-001/r{repeat}"
            for target in ("main", "other")
            for repeat in (0, 1)
        ]
        asked = {(r.record.split("/")[0], r.repeat): r for r in model.of("target")}
        assert len({request.seed for request in asked.values()}) == 4
        assert asked["main", 0].sampling.temperature == 0.7
        assert asked["other", 0].sampling.temperature == 0.0

    async def test_a_persona_more_changes_no_record_of_another(self, tmp_path: Path) -> None:
        few = await pipe(study_of(tmp_path, {"personas": 1, "none": "per_persona"}))
        more = await pipe(study_of(tmp_path, {"personas": 3, "none": "per_persona"}))
        for table, records in few.tables.items():
            assert records.items() <= more.tables[table].items()


class TestSharing:
    async def test_recommendations_are_asked_for_once(self, tmp_path: Path) -> None:
        model = Answering()
        await pipe(study_of(tmp_path, {"personas": 4}), model)
        names = Counter(request.record for request in model.of("recommender"))
        assert set(names.values()) == {1}

    async def test_a_shared_response_is_scored_against_the_items_of_each(
        self, tmp_path: Path
    ) -> None:
        study = study_of(tmp_path, {"settings": ["none"]})
        records = await pipe(study, limit=1)
        assert records.count("responses") == 1
        for evaluation, portrait in zip(records.all("evaluations"), study.portraits, strict=True):
            assert tuple(v.norm for v in evaluation.verdicts) == portrait.active
            assert {v.norm: v.state for v in evaluation.verdicts} == {
                norm: portrait.states[norm] for norm in portrait.active
            }

    async def test_neutral_norms_have_no_verdict(self, tmp_path: Path) -> None:
        study = study_of(tmp_path, {"personas": ["harbour-01"]})
        records = await pipe(study)
        neutral = {n for n, s in study.portraits[0].states.items() if not s}
        assert neutral
        assert not neutral & {v.norm for e in records.all("evaluations") for v in e.verdicts}


class TestFailures:
    """Whatever fails is counted by its kind, and nothing of it is scored as unmet."""

    @pytest.mark.parametrize(
        "reply",
        [
            failing(Outcome.REFUSED, "content_filter"),
            failing(Outcome.TRUNCATED, "length", "Half an ans"),
            failing(Outcome.OVERFLOW, "too long"),
            failing(Outcome.ERROR, "connection reset"),
        ],
        ids=lambda reply: str(reply.outcome),
    )
    async def test_of_a_target(self, tmp_path: Path, reply: Reply) -> None:
        model = Answering(role("target", reply))
        records = await pipe(study_of(tmp_path, {**ONE, "roles.safety": {"model": "main"}}), model)
        for response in records.all("responses"):
            assert (response.outcome, response.reason) == (reply.outcome, reply.reason)
        for evaluation in records.all("evaluations"):
            assert evaluation.outcome is reply.outcome
            assert evaluation.calls == ()
            assert evaluation.verdicts
            for verdict in evaluation.verdicts:
                assert (verdict.satisfied, verdict.outcome) == (None, reply.outcome)
        for label in records.all("safety"):
            assert (label.unsafe, label.outcome, label.calls) == (None, reply.outcome, ())
        assert model.of("evaluator") == []

    @pytest.mark.parametrize(
        ("reply", "outcome"),
        [
            ("I think it is fine.", Outcome.UNPARSED),
            ("[]", Outcome.UNPARSED),
            ('{"verdict": null}', Outcome.UNPARSED),
            ('"ok"', Outcome.UNPARSED),
            ("{}", Outcome.UNPARSED),
            (failing(Outcome.REFUSED), Outcome.REFUSED),
            (failing(Outcome.ERROR), Outcome.ERROR),
        ],
        ids=str,
    )
    async def test_of_the_evaluator(
        self, tmp_path: Path, reply: Reply | str, outcome: Outcome
    ) -> None:
        records = await pipe(study_of(tmp_path, ONE), Answering(role("evaluator", reply)))
        assert {r.outcome for r in records.all("responses")} == {Outcome.OK}
        for evaluation in records.all("evaluations"):
            assert evaluation.outcome is outcome
            assert {(v.satisfied, v.outcome) for v in evaluation.verdicts} == {(None, outcome)}

    async def test_an_evaluator_that_leaves_one_item_out(self, tmp_path: Path) -> None:
        def script(request: Request) -> str | None:
            if request.context["role"] != "evaluator":
                return None
            assert request.schema is not None
            items = list(request.schema.body["properties"])[1:]
            return json.dumps({i: {"reasoning": "", "adherence": True} for i in items})

        records = await pipe(study_of(tmp_path, ONE), Answering(script), limit=1)
        for evaluation in records.all("evaluations"):
            first, *rest = evaluation.verdicts
            assert (first.satisfied, first.outcome) == (None, Outcome.UNPARSED)
            assert {v.satisfied for v in rest} == {True}
            assert (evaluation.missing, evaluation.outcome) == (1, Outcome.UNPARSED)

    async def test_of_the_recommender(self, tmp_path: Path) -> None:
        def script(request: Request) -> Reply | None:
            lost = "harbour_1/" in str(request.context.get("recommendation"))
            return failing(Outcome.REFUSED, "policy") if lost else None

        records = await pipe(study_of(tmp_path, ONE), Answering(script))
        for evaluation in records.all("evaluations"):
            verdicts = {v.norm: v for v in evaluation.verdicts}
            assert verdicts["harbour_1"].satisfied is None
            assert verdicts["harbour_1"].outcome is Outcome.REFUSED
            assert all(v.satisfied is not None for n, v in verdicts.items() if n != "harbour_1")

    async def test_of_the_assistant_leaves_no_history_and_no_answer_in_its_place(
        self, tmp_path: Path
    ) -> None:
        model = Answering(role("assistant", failing(Outcome.ERROR, "down")))
        records = await pipe(study_of(tmp_path, ONE), model)
        (history,) = records.all("histories")
        assert (history.outcome, history.missing) == (Outcome.ERROR, (1,))
        by_setting: dict[str, set[Outcome]] = {}
        for response in records.all("responses"):
            by_setting.setdefault(response.setting, set()).add(response.outcome)
        assert by_setting == {
            "none": {Outcome.OK},
            "hist": {Outcome.ERROR},
            "ccot": {Outcome.ERROR},
            "norms": {Outcome.OK},
        }
        assert not [r for r in model.of("target") if r.context["setting"] in {"hist", "ccot"}]
        assert not [
            v
            for e in records.all("evaluations")
            if e.setting in {"hist", "ccot"}
            for v in e.verdicts
            if v.satisfied is not None
        ]

    @pytest.mark.parametrize("label", ["Dangerous", "", "safe or Unsafe"])
    async def test_of_the_safety_judge(self, tmp_path: Path, label: str) -> None:
        answer = json.dumps({"reasoning": "", "label": label})
        changes = {**ONE, "roles.safety": {"model": "main"}}
        records = await pipe(study_of(tmp_path, changes), Answering(role("judge", answer)))
        assert records.count("safety") == records.count("responses")
        assert {(r.unsafe, r.outcome) for r in records.all("safety")} == {(None, Outcome.UNPARSED)}

    @pytest.mark.parametrize(("label", "unsafe"), [("Safe", False), ("Unsafe", True)])
    async def test_the_safety_judge_reads_labels(
        self, tmp_path: Path, label: str, unsafe: bool
    ) -> None:
        answer = json.dumps({"reasoning": "why", "label": label})
        changes = {**ONE, "roles.safety": {"model": "main"}}
        model = Answering(role("judge", answer))
        records = await pipe(study_of(tmp_path, changes), model, limit=1)
        assert {(r.unsafe, r.reasoning) for r in records.all("safety")} == {(unsafe, "why")}
        asked = model.of("judge")[0].all_messages
        assert "My hands crack open" in asked[-1].text
        assert not any("harbour" in message.text for message in asked)

    async def test_an_exception_ends_the_run_as_itself(self, tmp_path: Path) -> None:
        def script(request: Request) -> str:
            raise RuntimeError("a fault of ours")

        with pytest.raises(RuntimeError, match="a fault of ours"):
            await pipe(study_of(tmp_path), Answering(script))


class TestFilter:
    async def test_a_contradicting_session_is_held_again_and_records_of_old_attempts_go(
        self, tmp_path: Path
    ) -> None:
        """The second pass accepts the first attempt: what followed it is no record any more."""
        study = study_of(tmp_path, {**ONE, "settings": ["hist"]})
        portrait = study.portraits[0]
        wrong = {
            label: {
                "explanation": "x",
                "inferrable_from_text": True,
                "implicitly_inferrable": True,
                "conversation_norm_adherence": state < 0,
            }
            for label, state in portrait.states_by_label.items()
        } | {"explicit_culture_revealed": False, "culture_guess": "unknown"}

        def script(request: Request) -> str | None:
            first = request.record.endswith("/a0")
            verifier = request.context["role"] == "verifier"
            return json.dumps(wrong) if verifier and first else None

        records = await pipe(study, Answering(script), Stage.HISTORIES)
        first, second = records.all("attempts")
        assert (first.decision, first.rejected_for) == ("rejected", ("contradicts the persona",))
        assert second.decision == "accepted"
        (history,) = records.all("histories")
        assert history.sessions[0].attempt == "harbour-03/s01/a1"

        again = Memory(records.tables)
        models = dict.fromkeys(study.experiment.models, Answering())
        from habitus.experiments.casting import make_cast, make_plan
        from habitus.experiments.pipeline import Pipeline

        await Pipeline(make_plan(study), make_cast(study, models), again, Stage.HISTORIES).run()
        assert [(a.id, a.decision) for a in again.all("attempts")] == [
            ("harbour-03/s01/a0", "accepted")
        ]

    async def test_a_session_that_reveals_is_never_shown(self, tmp_path: Path) -> None:
        words = "As a Korean woman I never eat before noon."
        model = Answering(role("persona", words))
        changes = {**ONE, "settings": ["hist"], "history.exchanges": [3, 3]}
        records = await pipe(study_of(tmp_path, changes), model)
        assert [a.decision for a in records.all("attempts")] == ["rejected"] * 3
        (history,) = records.all("histories")
        assert (history.removed, history.outcome) == ((1,), Outcome.ERROR)
        assert model.of("target") == []


class TestOneCall:
    async def test_the_whole_session_is_written_at_once(self, tmp_path: Path) -> None:
        model = Answering()
        study = study_of(tmp_path, {**ONE, "settings": ["hist"], "history.form": "single_call"})
        records = await pipe(study, model, Stage.HISTORIES)
        (attempt,) = records.all("attempts")
        assert (len(model.of("dialogue")), model.of("persona"), model.of("assistant")) == (
            1,
            [],
            [],
        )
        assert attempt.restatement == dict(study.portraits[0].states)
        assert [turn.speaker for turn in attempt.turns] == ["persona", "assistant"] * 2
        assert "NORM STATES" not in str(attempt.turns)

    async def test_a_script_that_cannot_be_read_is_counted(self, tmp_path: Path) -> None:
        model = Answering(role("dialogue", "Once upon a time"))
        changes = {**ONE, "settings": ["hist"], "history.form": "single_call"}
        records = await pipe(study_of(tmp_path, changes), model)
        assert {a.outcome for a in records.all("attempts")} == {Outcome.UNPARSED}
        assert {r.outcome for r in records.all("responses")} == {Outcome.ERROR}


class Slow(Answering):
    """Lets go of the loop before it answers, and notes when each request came and left."""

    def __init__(self, script: Callable[[Request], Reply | str | None] | None = None) -> None:
        super().__init__(script)
        self.events: list[tuple[str, Request]] = []

    async def complete(self, request: Request) -> Reply:
        self.events.append(("asked", request))
        for _ in range(3):
            await asyncio.sleep(0)
        reply = await super().complete(request)
        self.events.append(("answered", request))
        return reply

    def most_at_once(self, **context: Any) -> int:
        """Most requests with this context that were under way together."""
        now = most = 0
        for event, request in self.events:
            if context.items() <= request.context.items():
                now += 1 if event == "asked" else -1
                most = max(most, now)
        return most


class TestOrder:
    async def test_the_first_request_on_a_history_is_alone_until_it_is_answered(
        self, tmp_path: Path
    ) -> None:
        model = Slow()
        await pipe(study_of(tmp_path, {**ONE, "settings": ["hist", "ccot"]}), model)
        target = [(event, r.record) for event, r in model.events if r.context["role"] == "target"]
        assert [event for event, _ in target[:2]] == ["asked", "answered"]
        assert target[0][1] == "main/hist/harbour-03/harbour-001/r0"
        assert [event for event, _ in target[2:5]] == ["asked"] * 3

    async def test_the_others_do_not_wait_for_the_verdict_on_the_first(
        self, tmp_path: Path
    ) -> None:
        model = Slow()
        await pipe(study_of(tmp_path, {**ONE, "settings": ["hist"]}), model)
        first = "main/hist/harbour-03/harbour-001/r0"
        order = [
            (event, r.record) for event, r in model.events if r.context["role"] in {"target", "evaluator"}
        ]  # fmt: skip
        second = order.index(("asked", "main/hist/harbour-03/harbour-002/r0"))
        assert second < order.index(("answered", f"{first}/harbour-03"))

    async def test_a_history_is_asked_about_only_when_it_is_whole(self, tmp_path: Path) -> None:
        model = Slow()
        changes = {**ONE, "settings": ["hist"], "history.domain_sessions": 3}
        await pipe(study_of(tmp_path, changes), model)
        roles = [r.context["role"] for event, r in model.events if event == "asked"]
        last = max(i for i, name in enumerate(roles) if name in {"persona", "verifier"})
        assert roles.index("target") > last

    @pytest.mark.parametrize("width", [1, 2, 4])
    async def test_only_so_many_personas_are_under_way(self, tmp_path: Path, width: int) -> None:
        model = Slow()
        changes = {"personas": 4, "settings": ["hist"], "limits.personas_at_once": width}
        await pipe(study_of(tmp_path, changes), model)
        under_way: set[str] = set()
        most = 0
        last = {
            r.record.split("/")[-1]: i
            for i, (_, r) in enumerate(model.events)
            if r.context["role"] == "evaluator"
        }
        for i, (_, request) in enumerate(model.events):
            if request.context["role"] in {"persona", "assistant", "verifier"}:
                under_way.add(request.record.split("/")[0])
            most = max(most, len(under_way))
            under_way -= {name for name, end in last.items() if end == i}
        assert most == width

    async def test_windowed_begins_in_order(self) -> None:
        begun: list[int] = []
        now = most = 0

        async def work(item: int) -> None:
            nonlocal now, most
            begun.append(item)
            now += 1
            most = max(most, now)
            await asyncio.sleep(0)
            now -= 1

        await windowed(range(10), work, 3)
        assert (begun, most) == (list(range(10)), 3)

    async def test_a_width_beyond_all_items_costs_nothing(self) -> None:
        async def work(_: int) -> None:
            assert len(asyncio.all_tasks()) <= 4

        await windowed(range(3), work, 10**6)

    async def test_pilot_first_of_one(self) -> None:
        used: list[tuple[str, int]] = []

        async def ask(item: str) -> int:
            return len(item)

        async def use(item: str, answer: int) -> None:
            used.append((item, answer))

        await pilot_first(["a"], ask, use)
        await pilot_first(["bb", "c", "ddd"], ask, use)
        assert used[0] == ("a", 1)
        assert sorted(used) == [("a", 1), ("bb", 2), ("c", 1), ("ddd", 3)]

    async def test_together_raises_the_first_error_itself_and_stops_the_rest(self) -> None:
        finished: list[int] = []

        async def work(item: int) -> None:
            if item == 2:
                raise ValueError("two")
            await asyncio.sleep(1000)
            finished.append(item)

        with pytest.raises(ValueError, match="two"):
            await together(range(4), work)
        assert finished == []
