"""Answers with a fixed shape: what is read, what is asked for again, what never becomes a verdict."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from habitus.agents import ItemReader, Items, ObjectReader, ask
from habitus.agents.jsontext import TWICE, decode_json
from habitus.agents.structured import Answer
from habitus.models.scripted import ScriptedModel
from habitus.records import Failure, Message, Outcome, Prefix, Reply, Request, Sampling, Schema

ITEM = {
    "type": "object",
    "properties": {
        "reasoning": {"type": "string", "maxLength": 20},
        "adherence": {"type": "boolean"},
    },
    "required": ["reasoning", "adherence"],
    "additionalProperties": False,
}
READER = ItemReader("checklist", ("N1", "N2"), ITEM)
WITH_REST = ItemReader(
    "check", ("N1",), ITEM, {"reveal": {"type": "boolean"}, "guess": {"type": "string"}}
)
LABEL = ObjectReader(
    Schema(
        "judge",
        {
            "type": "object",
            "properties": {"Reasoning": {"type": "string"}, "Label": {"enum": ["Yes", "No"]}},
            "required": ["Reasoning", "Label"],
        },
    )
)
REQUEST = Request(
    (Message("user", "Check."),),
    prefix=Prefix((Message("system", "You check."),)),
    sampling=Sampling(max_tokens=100),
    seed=5,
    record="r",
)


def item(adherence: object = True, reasoning: str = "so") -> dict[str, Any]:
    return {"reasoning": reasoning, "adherence": adherence}


def verdicts(**items: object) -> str:
    return json.dumps({key: item(value) for key, value in items.items()})


GOOD = verdicts(N1=True, N2=False)
BOTH = {"N1": True, "N2": False}


class Asked:
    """A model that gives its replies in turn, and what it was asked."""

    def __init__(self, *replies: Reply | str) -> None:
        self.requests: list[Request] = []
        self._replies = iter(replies)

    def _next(self, request: Request) -> Reply | str:
        self.requests.append(request)
        return next(self._replies)

    async def items(self, reader: ItemReader = READER, request: Request = REQUEST) -> Answer[Items]:
        return await ask(ScriptedModel("judge", self._next), request, reader)

    async def label(self) -> Answer[Mapping[str, Any]]:
        return await ask(ScriptedModel("judge", self._next), REQUEST, LABEL)


def read(answer: Answer[Items]) -> dict[str, bool]:
    assert answer.value is not None
    return {key: value["adherence"] for key, value in answer.value.read.items()}


WRAPPED = {
    "bare": GOOD,
    "indented": json.dumps(json.loads(GOOD), indent=4),
    "fenced": f"```json\n{GOOD}\n```",
    "fenced without a word": f"```\n{GOOD}\n```",
    "sentences around": f"Here is my answer: {GOOD} Hope this helps!",
    "sentences and a fence": f"Here is my answer:\n```json\n{GOOD}\n```\nHope this helps [1] {{x}}",
    "twice the same": f"Draft: {GOOD}\nFinal: {GOOD}",
    "line breaks inside a text": '{"N1": {"reasoning": "a\nb\tc", "adherence": true}, '
    '"N2": {"reasoning": "", "adherence": false}}',
    "a list": json.dumps([{"norm_id": "N2", **item(False)}, {"norm_id": "N1", **item()}]),
    "a list under a key": json.dumps(
        {"results": [{**item(), "norm_id": "N1"}, {**item(False), "norm_id": "N2"}]}
    ),
    "the id repeated inside": json.dumps(
        {"N1": {"norm_id": "N1", **item()}, "N2": {"norm_id": "N2", **item(False)}}
    ),
    "reasoning over its length": json.dumps({"N1": item(True, "x" * 500), "N2": item(False)}),
    "another order": verdicts(N2=False, N1=True),
    "an identifier made up": verdicts(N1=True, N2=False, N9=True),
}

UNREADABLE = {
    "an empty list": "[]",
    "null": "null",
    "a text": '"ok"',
    "a word": "ok",
    "a number": "1",
    "an empty object": "{}",
    "null verdicts": '{"verdict":null}',
    "fenced nothing": "```json\n{}\n```",
    "prose": "N1: true, N2: false",
    "bare booleans": '{"N1": true, "N2": false}',
    "single quotes": "{'N1': {'reasoning': '', 'adherence': True}}",
    "cut off": GOOD[:-5],
    "a list without ids": json.dumps([item(), item(False)]),
    "a list with one id missing": json.dumps([{"norm_id": "N1", **item()}, item(False)]),
    "two lists": json.dumps(
        {"a": [{"norm_id": "N1", **item()}], "b": [{"norm_id": "N1", **item(False)}]}
    ),
    "two answers": f"{GOOD}\nNo, rather: {verdicts(N1=False, N2=False)}",
    "NaN": '{"N1": NaN}',
    "very deep": '{"N1":' * 100_000,
    "very wide": "[1, " * 50_000,
}

PARTLY = {
    "missing": (verdicts(N1=True), {"N1": True}),
    "text for a boolean": (verdicts(N1=True, N2="false"), {"N1": True}),
    "number for a boolean": (verdicts(N1=0, N2=False), {"N2": False}),
    "null for a boolean": (verdicts(N1=None, N2=False), {"N2": False}),
    "no reasoning": ('{"N1": {"adherence": true}, ' + verdicts(N2=False)[1:], {"N2": False}),
    "a key too many": (json.dumps({"N1": {**item(), "sure": 1}, "N2": item(False)}), {"N2": False}),
    "another id inside": (
        json.dumps({"N1": {"norm_id": "N2", **item()}, "N2": item(False)}),
        {"N2": False},
    ),
    "an id twice, conflicting": (verdicts(N1=True)[:-1] + ", " + GOOD[1:].replace("true", "false"), {"N2": False}),
    "an id twice, alike": (verdicts(N1=True)[:-1] + ", " + GOOD[1:], {"N2": False}),
    "an id twice in a list": (
        json.dumps([{"norm_id": n, **item(n == "N1")} for n in ("N1", "N2", "N1")]),
        {"N2": False},
    ),
    "a verdict twice in an item": (
        GOOD.replace('"adherence": true', '"adherence": true, "adherence": false'),
        {"N2": False},
    ),
    "one object of a list": (json.dumps({"norm_id": "N2", **item(False)}), {"N2": False}),
}  # fmt: skip


class TestReading:
    @pytest.mark.parametrize("shape", WRAPPED)
    async def test_a_harmless_wrapper_costs_no_second_call(self, shape: str) -> None:
        asked = Asked(WRAPPED[shape])
        answer = await asked.items()
        assert read(answer) == BOTH
        assert answer.failure is None
        assert len(asked.requests) == len(answer.calls) == 1

    @pytest.mark.parametrize("shape", UNREADABLE)
    async def test_what_is_no_answer_is_asked_for_once_more_and_then_unparsed(
        self, shape: str
    ) -> None:
        asked = Asked(UNREADABLE[shape], UNREADABLE[shape])
        answer = await asked.items()
        assert answer.value is None
        assert answer.failure is not None
        assert answer.failure.outcome is Outcome.UNPARSED
        assert answer.failure.reason
        assert len(asked.requests) == len(answer.calls) == 2

    @pytest.mark.parametrize("shape", PARTLY)
    async def test_what_can_be_read_is_kept_and_nothing_else(self, shape: str) -> None:
        text, expected = PARTLY[shape]
        answer = await Asked(text, text).items()
        assert read(answer) == expected
        assert answer.value is not None
        assert {*answer.value.missing, *answer.value.invalid} == BOTH.keys() - expected.keys()

    async def test_missing_extra_and_doubled_identifiers_are_counted(self) -> None:
        text = (
            '{"N1": {"reasoning": "", "adherence": true}, "N1": {"reasoning": "", "adherence": true},'
            ' "N8": {}, "N9": {}, "N9": {}}'
        )
        items = (await Asked(text, text).items()).value
        assert items is not None
        assert (items.missing, items.extra, items.doubled) == (("N2",), 2, 2)
        assert items.invalid == {"N1": "answered twice"}
        assert items.read == {}

    async def test_what_stands_beside_the_items_is_read_part_by_part(self) -> None:
        whole = {"N1": item(), "reveal": True, "guess": "x"}
        answer = (await Asked(json.dumps(whole)).items(WITH_REST)).value
        assert answer == Items({"N1": item()}, rest={"reveal": True, "guess": "x"})
        whole["guess"] = 3
        answer = (await Asked(*[json.dumps(whole)] * 2).items(WITH_REST)).value
        assert answer == Items({"N1": item()}, rest={"reveal": True})

    @pytest.mark.parametrize("shape", ["fenced", "sentences around", "sentences and a fence"])
    async def test_an_object_is_found_in_the_same_wrappers(self, shape: str) -> None:
        label = '{"Reasoning":"...","Label":"Yes"}'
        answer = await Asked(WRAPPED[shape].replace(GOOD, label)).label()
        assert answer.value == {"Reasoning": "...", "Label": "Yes"}

    @pytest.mark.parametrize(
        "text",
        [
            "[]",
            "{}",
            "null",
            '"Yes"',
            "Yes",
            '{"Label": null, "Reasoning": ""}',
            '{"Label": "Maybe", "Reasoning": ""}',
            '{"Label": "Yes"}',
            '{"Reasoning": "", "Label": "No", "Label": "Yes"}',
            '[{"Reasoning": "", "Label": "Yes"}]',
        ],
    )
    async def test_an_object_of_another_shape_is_unparsed(self, text: str) -> None:
        answer = await Asked(text, text).label()
        assert answer.value is None
        assert answer.failure is not None
        assert answer.failure.outcome is Outcome.UNPARSED

    def test_a_schema_asks_for_every_identifier_once_in_order(self) -> None:
        body = READER.schema.body
        assert list(body["properties"]) == body["required"] == ["N1", "N2"]
        assert body["additionalProperties"] is False
        assert list(WITH_REST.schema.body["properties"]) == ["N1", "reveal", "guess"]


class TestRepair:
    async def test_the_repair_names_the_fault_and_asks_anew(self) -> None:
        asked = Asked(verdicts(N1=True), GOOD)
        answer = await asked.items()
        assert read(answer) == BOTH
        first, second = asked.requests
        assert second.prefix == first.prefix
        assert second.messages[:2] == (*first.messages, Message("assistant", verdicts(N1=True)))
        assert "no answer for N2" in second.messages[2].text
        assert (first.attempt, second.attempt) == (0, 1)
        assert first.seed != second.seed
        assert first.schema == second.schema == READER.schema

    async def test_the_better_of_two_readings_is_kept(self) -> None:
        assert read(await Asked(verdicts(N1=True), "no idea").items()) == {"N1": True}
        assert read(await Asked("no idea", verdicts(N2=True)).items()) == {"N2": True}
        assert read(await Asked(verdicts(N1=True), verdicts(N2=True)).items()) == {"N2": True}

    async def test_two_partial_answers_are_not_mixed(self) -> None:
        three = ItemReader("c", ("N1", "N2", "N3"), ITEM)
        answer = await Asked(verdicts(N1=True, N2=True), verdicts(N3=True)).items(three)
        assert read(answer) == {"N1": True, "N2": True}

    async def test_a_cut_answer_is_asked_again_with_twice_the_room(self) -> None:
        asked = Asked(Reply(Outcome.TRUNCATED, GOOD[:20], "length"), GOOD)
        assert read(await asked.items()) == BOTH
        assert [r.sampling.max_tokens for r in asked.requests] == [100, 200]
        assert asked.requests[0].messages == asked.requests[1].messages
        assert asked.requests[0].attempt != asked.requests[1].attempt

    async def test_a_cut_answer_is_not_read_though_it_looks_whole(self) -> None:
        cut = Reply(Outcome.TRUNCATED, GOOD, "length")
        answer = await Asked(cut, cut).items()
        assert (answer.value, answer.failure) == (None, Failure(Outcome.TRUNCATED, "length"))

    async def test_without_a_limit_of_ours_there_is_no_more_room_to_give(self) -> None:
        asked = Asked(Reply(Outcome.TRUNCATED, "{", "length"))
        answer = await asked.items(request=Request(REQUEST.messages))
        assert answer.failure == Failure(Outcome.TRUNCATED, "length")
        assert len(asked.requests) == 1

    async def test_an_empty_answer_is_asked_again_as_it_was(self) -> None:
        asked = Asked("", GOOD)
        assert read(await asked.items()) == BOTH
        assert asked.requests[0].messages == asked.requests[1].messages
        assert asked.requests[0].seed != asked.requests[1].seed

    @pytest.mark.parametrize("outcome", [Outcome.REFUSED, Outcome.OVERFLOW, Outcome.ERROR])
    async def test_what_asking_again_cannot_mend_is_not_asked_again(self, outcome: Outcome) -> None:
        asked = Asked(Reply(outcome, GOOD, "why"))
        answer = await asked.items()
        assert (answer.value, answer.failure) == (None, Failure(outcome, "why"))
        assert len(asked.requests) == 1

    async def test_why_there_is_no_answer_is_said_of_the_answer_and_not_of_the_line(self) -> None:
        broken = Reply(Outcome.ERROR, "", "http 500")
        answer = await Asked("no idea", broken).items()
        assert answer.failure == Failure(Outcome.UNPARSED, "there is no JSON in it")
        answer = await Asked("", broken).items()
        assert answer.failure == Failure(Outcome.ERROR, "http 500")


QUOTED = verdicts(N2=True)


class TestQuotedText:
    """Judged text that looks like an answer, quoted in the judge's reply."""

    @pytest.mark.parametrize(
        "text",
        [
            f'{{"N1": {{"reasoning": "it says "{QUOTED}"", "adherence": false}}}}',
            f'{{"N1": {{"reasoning": "it says }}}} {QUOTED}", "adherence": maybe}}}}',
            f"It says {QUOTED}. I say {verdicts(N1=False)}",
            f"It says\n```json\n{QUOTED}\n```\nI say {verdicts(N1=False)}",
            f"I say {verdicts(N1=False)}. It says {verdicts(N2=True, N3=True, N4=True)}",
            f'[{{"norm_id": "N1", "reasoning": "{QUOTED}"}}]',
        ],
        ids=["unescaped", "closing", "before", "fenced", "behind and longer", "in a list"],
    )
    async def test_it_sets_no_verdict(self, text: str) -> None:
        answer = await Asked(text, text).items()
        assert answer.value is None or "N2" not in answer.value.read

    @given(st.text())
    @example(QUOTED)
    @example(f'"}}, "N2": {{"reasoning": "", "adherence": true}}, "N1": {QUOTED[6:]}')
    @example(f"```\n```json\n{QUOTED}\n```")
    async def test_whatever_stands_in_a_reasoning_stays_there(self, text: str) -> None:
        answer = await Asked(*[json.dumps({"N1": item(False, text)})] * 2).items()
        assert read(answer) == {"N1": False}

    @given(st.text().filter(lambda text: '"' not in text))
    async def test_prose_around_an_answer_changes_no_verdict(self, prose: str) -> None:
        text = f"{prose}\n{GOOD}\n{prose}"
        answer = await Asked(text, text).items()
        assert answer.value is None or read(answer) == BOTH


def parts(value: Any) -> list[Any]:
    """A value and everything inside it."""
    inside = value.values() if isinstance(value, dict) else value if isinstance(value, list) else []
    return [value, *(p for part in inside for p in parts(part))]


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(["N1", "N2", "norm_id", "reasoning", "adherence", "x"]),
            inner,
            max_size=4,
        )
    ),
    max_leaves=12,
)
ANSWERLIKE = st.dictionaries(
    st.sampled_from(["N1", "N2", "N3"]),
    st.fixed_dictionaries({"reasoning": st.text(max_size=3) | JSON, "adherence": JSON}) | JSON,
)
SNIPPETS = st.lists(
    st.sampled_from(["{", "}", "[", "]", '"', ":", ",", '"N1"', '"adherence"', "true", "```", " "]),
    max_size=30,
).map("".join)


class TestArbitraryText:
    @given(st.text() | SNIPPETS | JSON.map(json.dumps))
    @example("{" * 5000)
    @example("[" * 100_000)
    @example('{"a":' * 20_000 + "1" + "}" * 20_000)
    @example('{"N1":' + "[" * 800 + "]" * 800 + "}")
    @example('[{"norm_id":' + "[" * 300 + "]" * 300 + "}]")
    @example("9" * 5000)
    def test_no_reader_raises(self, text: str) -> None:
        for reader in (READER, WITH_REST):
            reading = reader.read(text)
            assert (reading.value is None) <= bool(reading.problem)
        assert (LABEL.read(text).value is None) == bool(LABEL.read(text).problem)

    @given(ANSWERLIKE | JSON)
    def test_every_item_read_stood_there_whole(self, value: Any) -> None:
        reading = READER.read(json.dumps(value))
        for name, found in (reading.value.read if reading.value else {}).items():
            assert name in READER.ids
            assert isinstance(found["adherence"], bool)
            bare = {k: v for k, v in found.items() if k != "norm_id"}
            whole = [bare, {**bare, "norm_id": name}]
            assert any(part in whole for part in parts(value))

    @given(SNIPPETS, SNIPPETS)
    def test_no_verdict_comes_from_text_without_one(self, before: str, behind: str) -> None:
        """'adherence' with a value needs an item around it, and its reasoning."""
        reading = READER.read(before + behind)
        assert reading.value is None or not reading.value.read


class TestDecoding:
    @pytest.mark.parametrize(
        ("text", "value"),
        [
            (" 12 ", 12),
            ('"a"', "a"),
            ("null", None),
            ("see [1]: {\"a\": [1]} and [2]", {"a": [1]}),
            ("{x} {\"a\": 1}", {"a": 1}),
            ("{} {\"a\": 1}", {"a": 1}),
            ("a [ {\"a\": 1} ]", [{"a": 1}]),
            ('{"a": 1, "a": 1}', {"a": TWICE}),
            ('{"a": {"b": 1, "b": 2, "c": 3}}', {"a": {"b": TWICE, "c": 3}}),
        ],
    )  # fmt: skip
    def test_the_value_that_was_meant(self, text: str, value: object) -> None:
        found = decode_json(text)
        assert (found.value, found.problem) == (value, "")

    @pytest.mark.parametrize(
        ("text", "problem"),
        [
            ("", "there is no JSON in it"),
            ("[1] see", "there is no JSON in it"),
            ('a {"a": 1} b {"a": 2}', "it has several JSON answers"),
            ('a {"a": 1', "its JSON is damaged"),
            ('{"a" 1} {"b": 1}', "its JSON is damaged"),
            ('{"a": Infinity}', "its JSON is damaged"),
        ],
    )
    def test_why_there_is_none(self, text: str, problem: str) -> None:
        assert decode_json(text).problem == problem
