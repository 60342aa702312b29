"""Records: the key of a call, seeds, ids, and bytes that are the same wherever they were made."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import fields, replace

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from habitus.checklists import recommendation_id
from habitus.histories import SessionPlan
from habitus.records import (
    Attempt,
    Failure,
    Message,
    NormCheck,
    Outcome,
    Prefix,
    Reply,
    Request,
    Response,
    Sampling,
    Schema,
    SessionCheck,
    StageRecord,
    Turn,
    Verdict,
    call_key,
    derive_seed,
    generator,
    messages,
    rubric_first,
)
from habitus.records.seeds import uniform

SCHEMA = Schema("answer", {"type": "object", "properties": {"a": {}, "b": {}}})
REQUEST = Request(
    messages=(Message("user", "How do I rest?"),),
    prefix=Prefix((Message("system", "Be brief."),)),
    sampling=Sampling(temperature=0.7, top_p=0.9, max_tokens=100, stop=("END",)),
    schema=SCHEMA,
    seed=1,
    repeat=0,
    attempt=0,
    stage="responses",
    record="m/hist/maori-01/health-001/r0",
    context={"role": "target"},
)


def sampling(**changes: object) -> Request:
    return replace(REQUEST, sampling=replace(REQUEST.sampling, **changes))  # type: ignore[arg-type]


CHANGES: dict[str, Request] = {
    "text": replace(REQUEST, messages=(Message("user", "How do I rest!"),)),
    "role": replace(REQUEST, messages=(Message("assistant", "How do I rest?"),)),
    "one more message": replace(REQUEST, messages=(*REQUEST.messages, Message("user", ""))),
    "prefix": replace(REQUEST, prefix=Prefix((Message("system", "Be long."),))),
    "no prefix": replace(REQUEST, prefix=None),
    "temperature": sampling(temperature=0.0),
    "no temperature": sampling(temperature=None),
    "top_p": sampling(top_p=0.95),
    "max_tokens": sampling(max_tokens=200),
    "stop": sampling(stop=("END", "STOP")),
    "no stop": sampling(stop=()),
    "schema": replace(REQUEST, schema=Schema("answer", {"type": "object"})),
    "order of a schema": replace(
        REQUEST, schema=Schema("answer", {"type": "object", "properties": {"b": {}, "a": {}}})
    ),
    "name of a schema": replace(REQUEST, schema=Schema("verdict", SCHEMA.body)),
    "no schema": replace(REQUEST, schema=None),
    "seed": replace(REQUEST, seed=2),
    "no seed": replace(REQUEST, seed=None),
    "repeat": replace(REQUEST, repeat=1),
    "attempt": replace(REQUEST, attempt=1),
}
UNSENT: dict[str, Request] = {
    "stage": replace(REQUEST, stage="verdicts"),
    "record": replace(REQUEST, record="another"),
    "context": replace(REQUEST, context={"role": "judge", "random": 17}),
    "a schema built again": replace(REQUEST, schema=Schema("answer", dict(SCHEMA.body))),
    "where the prefix ends": replace(REQUEST, prefix=None, messages=(*REQUEST.all_messages,)),
    "all in the prefix": replace(REQUEST, prefix=Prefix(REQUEST.all_messages), messages=()),
}

TEXT = st.text(st.characters(exclude_categories=[]))  # lone surrogates and NUL included
MESSAGES = st.lists(
    st.builds(Message, st.sampled_from(["system", "user", "assistant"]), TEXT), max_size=5
)


class TestCallKey:
    """A setting that is left out of the key silently gets the old answer."""

    @pytest.mark.parametrize("change", CHANGES)
    def test_whatever_can_change_the_answer_changes_the_key(self, change: str) -> None:
        assert call_key("m", CHANGES[change]) != call_key("m", REQUEST)

    def test_all_those_keys_are_different(self) -> None:
        assert len({call_key("m", r) for r in CHANGES.values()}) == len(CHANGES)

    def test_the_model_is_in_the_key(self) -> None:
        assert call_key("other", REQUEST) != call_key("m", REQUEST)

    @pytest.mark.parametrize("change", UNSENT)
    def test_what_is_not_sent_is_not_in_the_key(self, change: str) -> None:
        assert call_key("m", UNSENT[change]) == call_key("m", REQUEST)

    def test_every_field_of_a_request_is_in_one_of_the_two_tables(self) -> None:
        tables = [*CHANGES, *UNSENT]
        told = {"messages": "text"}
        for part in (*fields(Request), *fields(Sampling)):
            assert told.get(part.name, part.name) in tables or part.name == "sampling"

    def test_the_key_is_pinned_so_that_stored_answers_stay_found(self) -> None:
        assert len(call_key("m", REQUEST)) == 16
        assert call_key("m", REQUEST).hex() == "a61993c06074e925a96184fbc5058f0d"

    @given(MESSAGES, st.integers(0, 5))
    def test_where_a_prefix_ends_makes_no_difference(self, said: list[Message], at: int) -> None:
        whole = Request(tuple(said))
        split = Request(tuple(said[at:]), prefix=Prefix(tuple(said[:at])))
        assert call_key("m", whole) == call_key("m", split)
        assert split.all_messages == whole.messages

    @given(MESSAGES, MESSAGES)
    def test_no_two_conversations_share_a_key(self, one: list[Message], two: list[Message]) -> None:
        same = call_key("m", Request(tuple(one))) == call_key("m", Request(tuple(two)))
        assert same == (one == two)

    @given(TEXT)
    @example("\ud800")
    def test_any_text_has_a_key(self, text: str) -> None:
        request = Request(
            (Message("user", text),),
            sampling=Sampling(stop=(text,)),
            schema=Schema(text, {"enum": [text]}),
        )
        assert len(call_key(text, request)) == 16

    def test_a_prefix_is_named_by_its_messages(self) -> None:
        one, two = Prefix((Message("user", "a"),)), Prefix((Message("user", "a"),))
        assert (one.digest, one) == (two.digest, two)
        assert one.digest != Prefix((Message("user", "b"),)).digest
        two.hasher().update(b"more")
        assert one.digest == two.digest


class TestPromptMessages:
    def test_a_system_part_becomes_the_shared_prefix(self) -> None:
        prefix, rest = rubric_first([("system", "S"), ("user", "U"), ("assistant", "A")])
        assert prefix == Prefix((Message("system", "S"),))
        assert rest == (Message("user", "U"), Message("assistant", "A"))

    def test_what_differs_from_request_to_request_is_no_prefix(self) -> None:
        assert rubric_first([("user", "U")]) == (None, (Message("user", "U"),))

    def test_messages_come_from_filled_parts(self) -> None:
        assert messages([("user", "a")]) == (Message("user", "a"),)


class TestSeeds:
    def test_a_seed_hangs_on_everything_that_names_the_draw(self) -> None:
        seeds = {
            derive_seed(1, "turn", "maori-01/s01"),
            derive_seed(2, "turn", "maori-01/s01"),
            derive_seed(1, "verify", "maori-01/s01"),
            derive_seed(1, "turn", "maori-02/s01"),
            derive_seed(1, "turn", "maori-01/s01", 0),
            derive_seed(1, "turn", "maori-01/s01", 1),
            derive_seed(1, "turn", "maori-01/s01", 0, 1),
        }
        assert len(seeds) == 7

    def test_seeds_are_pinned_and_fit_a_backend(self) -> None:
        assert derive_seed(1, "turn/persona", "maori-01/s01/a0/t02", 0, 0) == 131380695
        assert all(0 <= derive_seed(s, "p", "r") < 2**31 for s in range(200))

    def test_the_order_of_draws_changes_nothing(self) -> None:
        names = [f"p-{i:02d}" for i in range(5)]
        forward = {n: generator(7, "sessions", n).permutation(10).tolist() for n in names}
        backward = {n: generator(7, "sessions", n).permutation(10).tolist() for n in names[::-1]}
        assert forward == backward
        assert len({tuple(order) for order in forward.values()}) == 5

    @given(st.integers(), TEXT, TEXT)
    def test_uniform_draws_lie_in_the_unit_interval(self, seed: int, what: str, who: str) -> None:
        assert 0 <= uniform(seed, what, who) < 1

    def test_uniform_draws_are_uniform(self) -> None:
        drawn = [uniform(1, "x", str(i)) for i in range(2000)]
        assert sum(drawn) / 2000 == pytest.approx(0.5, abs=0.02)
        assert sum(x < 0.1 for x in drawn) / 2000 == pytest.approx(0.1, abs=0.02)


def response(text: str = "Rest.", reason: str = "") -> Response:
    return Response(
        id="m/hist/maori-01/health-001/r0",
        reason=reason,
        target="m",
        setting="hist",
        persona="maori-01",
        query="health-001",
        repeat=0,
        text=text,
    )


def attempt(text: str = "Hi") -> Attempt:
    return Attempt(
        id="maori-01/s01/a0",
        persona="maori-01",
        number=1,
        attempt=0,
        kind="domain",
        opener="rest-1",
        turns=(Turn(speaker="persona", text=text or "-"),),
        restatement={"maori_1": -1},
        check=SessionCheck(lexical_reveals=(text,)),
    )


class TestStageRecords:
    def test_ids_follow_one_scheme(self) -> None:
        plan = SessionPlan("maori-01", 3, "domain", "o", "Hi", 4)
        assert plan.id == "maori-01/s03"
        assert recommendation_id("maori_1", -1, "health-001") == "maori_1/avoid/health-001"
        assert recommendation_id("maori_1", 1, "health-001", "maori-01") == (
            "maori_1/follow/health-001/maori-01"
        )

    def test_a_line_is_the_record_in_the_order_of_its_fields(self) -> None:
        line = response("Ruhe é é").line()
        assert b"\n" not in line
        assert line.decode().startswith('{"id":"m/hist/maori-01/health-001/r0","outcome":"ok"')
        assert "Ruhe é é" in line.decode()
        assert Response.model_validate_json(line) == response("Ruhe é é")

    @pytest.mark.parametrize("make", [response, attempt])
    @given(text=TEXT)
    @example(text="\udfff\n")
    def test_any_text_survives_a_line(self, make: Callable[[str], StageRecord], text: str) -> None:
        record = make(text)
        line = record.line()
        assert b"\n" not in line
        assert type(record).model_validate(json.loads(line)) == record
        assert make(text).line() == line

    def test_both_ways_of_writing_a_line_agree(self) -> None:
        """A lone surrogate takes another path; nothing but its own spelling may differ."""
        plain, broken = attempt("x\x7f\u2028é\t").line(), attempt("x\x7f\u2028é\t\ud800").line()
        assert broken.replace(b"\\ud800", b"") == plain

    def test_a_record_takes_no_unknown_field_and_no_change(self) -> None:
        with pytest.raises(ValueError, match="extra"):
            Response.model_validate({**response().model_dump(), "latency": 1.0})
        with pytest.raises(ValueError, match="frozen"):
            response().text = "x"  # type: ignore[misc]

    def test_what_was_not_judged_is_null_and_no_false(self) -> None:
        verdict = Verdict(
            norm="n", state=1, recommendation="r", satisfied=None, outcome=Outcome.UNPARSED
        )
        assert json.loads(verdict.model_dump_json())["satisfied"] is None

    @pytest.mark.parametrize(
        ("told", "adherence", "stance"),
        [
            (True, True, 1),
            (True, False, -1),
            (True, None, 0),
            (False, True, 0),
            (False, False, 0),
            (False, None, 0),
        ],
    )
    def test_a_stance_counts_only_where_it_can_be_told(
        self, told: bool, adherence: bool | None, stance: int
    ) -> None:
        check = NormCheck(
            norm="n",
            inferrable_from_text=True,
            implicitly_inferrable=told,
            adherence=adherence,
        )
        assert check.stance == stance

    @pytest.mark.parametrize(
        ("model", "lexical", "reveals"),
        [(None, (), False), (False, (), False), (True, (), True), (False, ("i am x",), True)],
    )
    def test_either_check_reveals(
        self, model: bool | None, lexical: tuple[str, ...], reveals: bool
    ) -> None:
        check = SessionCheck(explicit_reveal=model, lexical_reveals=lexical)
        assert check.reveals is reveals


class TestReplies:
    def test_only_ok_is_no_failure(self) -> None:
        for outcome in Outcome:
            reply = Reply(outcome, "text", "why")
            assert reply.ok is (outcome is Outcome.OK)
            assert reply.failure == (None if reply.ok else Failure(outcome, "why"))

    def test_the_outcomes_are_the_six_that_everyone_counts(self) -> None:
        assert [str(o) for o in Outcome] == [
            "ok", "refused", "truncated", "overflow", "unparsed", "error"
        ]  # fmt: skip
