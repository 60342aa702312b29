"""Models without a model: scripts, helpers that play every role, planted rates, replay."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from habitus.checklists import Evaluator, Query, Recommender
from habitus.checklists.evaluator import EvaluationForm
from habitus.errors import ModelError
from habitus.histories import AgentSimulator, SessionPlan, SingleCallSimulator, Verifier
from habitus.histories.simulation import Role
from habitus.judges import find_judge
from habitus.models import CallLog, ChatModel, ModelEntry, Opening, open_model
from habitus.models.scripted import ScriptedModel, marker
from habitus.personas.portrait import Portrait
from habitus.records import (
    Evaluation,
    Message,
    Outcome,
    Recommendation,
    Reply,
    Request,
    Response,
    Sampling,
    Usage,
    call_key,
)
from people import STATES, lexicon, portrait, prompt

SAMPLING = Sampling(max_tokens=100)
PLAN = SessionPlan("maori-01", 1, "domain", "d1", "Is five too early?", 3)
QUERY = Query(id="health-001", topic="sleep", text="I wake at five. Why?")


def opened(
    backend: str, name: str = "m", opening: Opening | None = None, **options: Any
) -> ChatModel:
    entry = ModelEntry.model_validate({"backend": backend, "options": options})
    return open_model(name, entry, opening)


def ask(text: str = "Hello there", seed: int = 1, **context: Any) -> Request:
    return Request((Message("user", text),), seed=seed, record="r", context=context)


def helpers(**shares: Any) -> ChatModel:
    return opened("scripted", script="helpers", **shares)


class TestScriptedModel:
    async def test_a_function_of_the_request_answers(self) -> None:
        model = ScriptedModel("m", lambda request: request.messages[0].text.upper())
        reply = await model.complete(ask("a b"))
        assert (reply.outcome, reply.text) == (Outcome.OK, "A B")
        assert reply.usage == Usage(prompt=2, completion=2, cached=0)
        assert isinstance(model, ChatModel)

    async def test_a_whole_reply_is_passed_on(self) -> None:
        told = Reply(Outcome.REFUSED, "no", "filter", usage=Usage(5, 6, 7))
        assert await ScriptedModel("m", lambda _: told).complete(ask()) == told

    @pytest.mark.parametrize("text", ["", " \n"])
    async def test_no_words_are_no_answer(self, text: str) -> None:
        reply = await ScriptedModel("m", lambda _: text).complete(ask())
        assert (reply.outcome, reply.reason) == (Outcome.UNPARSED, "empty")


class TestRules:
    async def test_the_first_rule_that_matches_answers(self) -> None:
        model = opened(
            "scripted",
            rules=[
                {"role": "persona", "reply": "as the person"},
                {"when": "(?i)hello", "reply": "hi"},
                {"outcome": "refused", "reason": "filter", "reply": "no"},
            ],
        )
        assert (await model.complete(ask(role="persona"))).text == "as the person"
        assert (await model.complete(ask(role="assistant"))).text == "hi"
        refused = await model.complete(ask("Bye"))
        assert (refused.outcome, refused.reason) == (Outcome.REFUSED, "filter")

    async def test_rules_look_at_the_last_message_only(self) -> None:
        model = opened("scripted", rules=[{"when": "one", "reply": "yes"}, {"reply": "no"}])
        request = Request((Message("user", "one"), Message("user", "two")))
        assert (await model.complete(request)).text == "no"

    async def test_texts_are_drawn_by_seed_and_all_of_them(self) -> None:
        model = opened("scripted", rules=[{"reply": ["a", "b", "c"]}])
        drawn = [(await model.complete(ask(seed=seed))).text for seed in range(60)]
        again = [(await model.complete(ask(seed=seed))).text for seed in reversed(range(60))]
        assert drawn == again[::-1]
        assert min(drawn.count(text) for text in "abc") >= 10

    async def test_without_a_rule_the_call_fails_and_says_so(self) -> None:
        reply = await opened("scripted", rules=[{"when": "x", "reply": "y"}]).complete(ask())
        assert (reply.outcome, reply.reason) == (Outcome.ERROR, "no rule of the script applies")

    async def test_rules_stand_before_the_helpers(self) -> None:
        model = opened("scripted", script="helpers", rules=[{"role": "judge", "reply": "mine"}])
        assert (await model.complete(ask(role="judge"))).text == "mine"
        assert (await model.complete(ask(role="persona"))).text.startswith("Let me add one thing")

    @pytest.mark.parametrize(
        ("options", "message"),
        [
            ({"script": "helper"}, r"model 'm': options: script: Input should be 'helpers'"),
            ({"rules": [{"rply": "x"}]}, r"options: rules\.0\.rply: Extra inputs"),
            ({"rules": [{"when": "(", "reply": "x"}]}, r"rules\.0\.when: .*no regular expression"),
            ({"rules": [{"reply": []}]}, r"rules\.0\.reply: .*must hold at least one"),
            ({"rules": [{"outcome": "failed"}]}, r"rules\.0\.outcome: Input should be 'ok', 'ref"),
            ({"shown": 1.5}, r"options: shown: Input should be less than or equal to 1"),
        ],
    )
    def test_options_that_cannot_be_used_are_told(
        self, options: dict[str, Any], message: str
    ) -> None:
        with pytest.raises(ModelError, match=message):
            opened("scripted", **options)


def people(count: int = 40) -> list[Portrait]:
    return [portrait(f"maori-{i:02d}") for i in range(1, count + 1)]


class TestHelpers:
    """Each helper answers through the real prompt and schema of its stage, at the first call."""

    async def test_they_hold_a_session(self) -> None:
        role = Role(helpers(), SAMPLING)
        simulator = AgentSimulator(role, role, prompt("persona"), prompt("assistant"), 1)
        attempt = await simulator.simulate(portrait(), PLAN, 0)
        assert (attempt.outcome, attempt.end, len(attempt.turns)) == (Outcome.OK, "complete", 6)
        assert len({turn.text for turn in attempt.turns}) == 6
        again = await simulator.simulate(portrait(), PLAN, 1)
        assert again.turns[1:] != attempt.turns[1:]

    async def test_they_write_a_dialogue(self) -> None:
        simulator = SingleCallSimulator(Role(helpers(), SAMPLING), prompt("dialogue"), 1)
        attempt = await simulator.simulate(portrait(), PLAN, 0)
        assert (attempt.outcome, len(attempt.turns)) == (Outcome.OK, 4)
        assert attempt.restatement == STATES

    async def test_they_verify_with_the_shares_asked_for(self) -> None:
        role = Role(helpers(shown=0.5, agreement=0.8, reveal=0.3), SAMPLING)
        verifier = Verifier(role, prompt("verifier"), lexicon(), 1)
        simulator = AgentSimulator(role, role, prompt("persona"), prompt("assistant"), 1)
        checks = []
        for person in people(100):
            plan = SessionPlan(person.id, 1, "domain", "d1", "Hi", 1)
            attempt = await simulator.simulate(person, plan, 0)
            checks.append(await verifier.check(person, attempt))
        assert {check.outcome for check in checks} == {Outcome.OK}
        assert {len(check.calls) for check in checks} == {1}
        stances = [c for check in checks for c in check.norms if c.norm != "maori_3"]
        told = [c for c in stances if c.stance]
        assert len(told) / len(stances) == pytest.approx(0.5, abs=0.1)
        assert sum(c.stance == STATES[c.norm] for c in told) / len(told) == pytest.approx(
            0.8, abs=0.1
        )
        assert sum(bool(c.explicit_reveal) for c in checks) == pytest.approx(30, abs=14)
        assert all(c.stance == 0 for k in checks for c in k.norms if c.norm == "maori_3")

    async def test_they_verify_without_explanations(self) -> None:
        role = Role(helpers(shown=1.0), SAMPLING)
        verifier = Verifier(role, prompt("verifier"), lexicon(), 1, explanation=0)
        simulator = AgentSimulator(role, role, prompt("persona"), prompt("assistant"), 1)
        check = await verifier.check(portrait(), await simulator.simulate(portrait(), PLAN, 0))
        assert (check.outcome, len(check.calls)) == (Outcome.OK, 1)

    async def test_they_label(self) -> None:
        judge = find_judge("safety")
        seen = {"query": "q", "response": "r"}
        found = await judge.label(helpers(), seen, SAMPLING, 1, "r")
        assert (found.label, found.calls) == ("Safe", ("",))

    async def test_they_answer_below_the_line_that_a_setting_asks_for(self) -> None:
        plain = await helpers().complete(ask(role="target"))
        below = await helpers().complete(ask(role="target", answer_after="ANSWER:"))
        assert below.text == f"I thought about it.\nANSWER:\n{plain.text}"


async def recommendations(model: ChatModel, person: Portrait) -> list[Recommendation]:
    writer = Recommender(model, SAMPLING, prompt("recommend"), 1)
    return [
        await writer.recommend(
            norm, person.statements[norm], 1 if person.states[norm] > 0 else -1, QUERY
        )
        for norm in person.active
    ]


async def respond(
    target: ChatModel, person: Portrait, items: list[Recommendation], setting: str = "hist"
) -> Reply:
    name = f"t/{setting}/{person.id}/{QUERY.id}/r0"
    context = {
        "role": "target",
        "setting": setting,
        "recommendations": [item.id for item in items],
    }
    number = sum(map(ord, name)) * 7919 + int(person.id[-2:])
    request = Request((Message("user", QUERY.text),), seed=number, record=name, context=context)
    return await target.complete(request)


async def evaluate(
    reply: Reply, person: Portrait, items: list[Recommendation], form: EvaluationForm | None = None
) -> Evaluation:
    response = Response(
        id=f"t/hist/{person.id}/{QUERY.id}/r0",
        target="t",
        setting="hist",
        persona=person.id,
        query=QUERY.id,
        repeat=0,
        text=reply.text,
    )
    evaluator = Evaluator(helpers(), SAMPLING, prompt("evaluate"), 1, form or EvaluationForm())
    return await evaluator.evaluate(response, person, items)


RATES = {"hist": {"follow": 0.2, "avoid": 0.7}, "none": {"follow": 0.0, "avoid": 1.0}}


class TestPlanted:
    @pytest.mark.parametrize(
        "form",
        [
            EvaluationForm(),
            EvaluationForm(verdict_first=True),
            EvaluationForm(echo=True, reasoning=0),
        ],
        ids=["default", "verdict first", "echo"],
    )
    async def test_markers_come_back_through_the_real_evaluator(self, form: EvaluationForm) -> None:
        """N2's statement has brackets of its own, which are no marker."""
        target, person = opened("planted", rates=RATES), portrait()
        items = await recommendations(helpers(), person)
        assert all(marker(item.id) in item.text for item in items)
        seen: set[bool | None] = set()
        for one in people(20):
            reply = await respond(target, one, items)
            evaluation = await evaluate(reply, one, items, form)
            for verdict in evaluation.verdicts:
                assert verdict.satisfied is (marker(verdict.recommendation) in reply.text)
                seen.add(verdict.satisfied)
            assert len(evaluation.calls) == 1
        assert seen == {True, False}

    async def test_planted_rates_are_recovered(self) -> None:
        target = opened("planted", rates=RATES)
        items = await recommendations(helpers(), portrait())
        follow: list[bool] = []
        avoid: list[bool] = []
        for one in people(99):
            evaluation = await evaluate(await respond(target, one, items), one, items)
            for verdict in evaluation.verdicts:
                (follow if verdict.state > 0 else avoid).append(verdict.satisfied is True)
        assert sum(follow) / len(follow) == pytest.approx(0.2, abs=0.08)
        assert sum(avoid) / len(avoid) == pytest.approx(0.7, abs=0.13)

    async def test_settings_have_rates_of_their_own(self) -> None:
        target = opened("planted", rates=RATES)
        items = await recommendations(helpers(), portrait())
        text = (await respond(target, portrait(), items, "none")).text
        assert [item.id for item in items if marker(item.id) in text] == [
            "maori_2/avoid/health-001"
        ]

    @pytest.mark.parametrize("context", [{}, {"setting": "ccot", "recommendations": []}])
    async def test_what_has_no_rate_is_an_error_and_no_zero(self, context: dict[str, Any]) -> None:
        reply = await opened("planted", rates=RATES).complete(ask(**context))
        assert reply.outcome is Outcome.ERROR
        assert reply.reason.startswith("no planted rates for setting")

    async def test_working_stands_above_the_line(self) -> None:
        request = ask(setting="none", recommendations=["n/avoid/q"], answer_after="ANSWER:")
        text = (await opened("planted", rates=RATES).complete(request)).text
        assert text == "Planted reasoning.\nANSWER:\nA planted answer. [[n/avoid/q]]"

    @pytest.mark.parametrize(
        ("options", "message"),
        [
            ({}, "model 'm': options: rates: Field required"),
            ({"rates": {}}, "rates: Dictionary should have at least 1 item"),
            ({"rates": {"hist": {"follow": 2, "avoid": 0}}}, r"rates\.hist\.follow: Input should"),
            ({"rates": {"hist": {"follow": 0.1}}}, r"rates\.hist\.avoid: Field required"),
        ],
    )
    def test_rates_that_cannot_be_used_are_told(
        self, options: dict[str, Any], message: str
    ) -> None:
        with pytest.raises(ModelError, match=message):
            opened("planted", **options)


class Stored:
    """A stored run with one answered call."""

    def __init__(self, request: Request, reply: Reply, model: str = "old") -> None:
        self.entry = {"backend": "scripted", "options": {"script": "helpers"}}
        self.paths: list[Path] = []
        identity = ModelEntry.model_validate(self.entry).identity(model)
        self.kept = {call_key(identity, request): reply}
        self.configuration: Mapping[str, Any] = {"models": {model: self.entry}}

    def find(self, key: bytes) -> Reply | None:
        return self.kept.get(key)

    async def add(self, key: bytes, request: Request, reply: Reply, model: str) -> None:
        raise AssertionError("a replayed run is never written to")

    def open(self, path: Path) -> tuple[Mapping[str, Any], CallLog]:
        self.paths.append(path)
        return self.configuration, self


class TestReplay:
    TOLD = Reply(Outcome.OK, "as it was", usage=Usage(3, 4, 0), key=b"k" * 16, stored=True)

    def opening(self, run: Stored) -> Opening:
        return Opening(base=Path("/here"), stored_run=run.open)

    async def test_the_stored_answer_comes_back(self) -> None:
        run = Stored(ask(), self.TOLD)
        model = opened("replay", "new", self.opening(run), run="runs/first", model="old")
        reply = await model.complete(ask())
        assert (reply.text, reply.usage) == ("as it was", Usage(3, 4, 0))
        assert (reply.stored, reply.key) == (False, b"")
        assert run.paths == [Path("/here/runs/first")]

    async def test_what_was_not_asked_there_is_an_error(self) -> None:
        run = Stored(ask(), self.TOLD)
        model = opened("replay", "old", self.opening(run), run="runs/first")
        reply = await model.complete(ask("Something else"))
        assert (reply.outcome, reply.reason) == (Outcome.ERROR, "not in the replayed run")
        assert (await model.complete(ask())).ok

    def test_a_model_that_the_run_did_not_have_is_told(self) -> None:
        run = Stored(ask(), self.TOLD)
        with pytest.raises(ModelError, match="run runs/first has no model 'new'; it has old"):
            opened("replay", "new", self.opening(run), run="runs/first")

    def test_options_and_place_are_checked(self) -> None:
        with pytest.raises(ModelError, match="model 'm': options: run: Field required"):
            opened("replay")
        with pytest.raises(ModelError, match="backend replay works only inside a run"):
            opened("replay", run="runs/first")


async def test_answers_hang_on_the_request_and_not_on_the_order() -> None:
    requests = [ask(f"text {i}", seed=i, role="persona") for i in range(5)]
    model = helpers()
    forward = [await model.complete(request) for request in requests]
    backward = [await model.complete(request) for request in requests[::-1]]
    assert forward == backward[::-1]
    assert len({reply.text for reply in forward}) == 5
