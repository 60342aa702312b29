"""The embedded model for real: llama.cpp in this process with the default weights."""

from __future__ import annotations

import asyncio
import json
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from habitus.errors import ModelError
from habitus.models import ModelEntry, Opening, open_model
from habitus.models.grammar import UnsupportedSchemaError, compact_grammar
from habitus.models.local import LocalModel
from habitus.records import Message, Outcome, Request, Sampling, Schema

pytestmark = pytest.mark.local_model

on_one_path = pytest.mark.skipif(
    sys.platform == "darwin", reason="on a GPU sums depend on what is computed beside them"
)

WARM = Sampling(temperature=0.7, max_tokens=24)
RIVERS = Request((Message("user", "Name three rivers."),), sampling=WARM, seed=11)
LONG = " ".join(f"Rule {n}: answer politely and never mention the number {n}." for n in range(4))


def obj(**properties: Any) -> dict[str, Any]:
    required = list(properties)
    closed = {"required": required, "additionalProperties": False}
    return {"type": "object", "properties": properties, **closed}


def asks(text: str, **sampling: Any) -> Request:
    limits = Sampling(**{"max_tokens": 16, "temperature": 0.7, **sampling})
    return Request((Message("user", text),), sampling=limits, seed=5)


def opened(context_length: int = 512, **options: Any) -> LocalModel:
    entry = ModelEntry(backend="local", context_length=context_length, options=options)
    model = open_model("tiny", entry, Opening())
    assert isinstance(model, LocalModel)
    return model


@pytest.fixture(scope="module")
def model() -> Iterator[LocalModel]:
    """Loaded once; every test asks it from an event loop of its own."""
    model = opened(prefix_cache=True)
    yield model
    asyncio.run(model.aclose())


async def test_a_plain_reply(model: LocalModel) -> None:
    reply = await model.complete(asks("Say hello.", max_tokens=60))
    assert (reply.outcome, reply.reason, reply.finish) == (Outcome.OK, "", "stop")
    assert reply.text
    assert reply.usage.prompt is not None
    assert reply.usage.prompt > 10
    assert reply.usage.completion is not None
    assert 0 < reply.usage.completion < 60
    assert reply.sent["model"] == "SmolLM2-135M-Instruct.Q4_1.gguf"
    assert reply.sent["temperature"] == 0.7
    assert reply.sent["min_p"] == 0.0
    assert reply.latency > 0


@on_one_path
async def test_equal_seeds_give_equal_bytes_whatever_came_before(model: LocalModel) -> None:
    """The first is computed from nothing, the second from a warm cache."""
    first = await model.complete(RIVERS)
    grown = replace(RIVERS, messages=(*RIVERS.messages, Message("assistant", first.text)))
    await model.complete(replace(grown, messages=(*grown.messages, Message("user", "More."))))
    again = await model.complete(RIVERS)
    assert again.usage.cached != first.usage.cached
    assert again.text == first.text
    other = await model.complete(replace(RIVERS, seed=12))
    assert other.text != first.text


async def test_a_cut_answer_is_truncated(model: LocalModel) -> None:
    reply = await model.complete(asks("Tell me a long story.", max_tokens=5))
    assert (reply.outcome, reply.reason) == (Outcome.TRUNCATED, "length")
    assert reply.text
    assert reply.usage.completion == 5


async def test_a_prompt_that_does_not_fit_is_overflow(model: LocalModel) -> None:
    reply = await model.complete(asks("word " * 3000))
    assert (reply.outcome, reply.reason) == (Outcome.OVERFLOW, "context length")
    assert reply.text == ""
    assert "512 tokens" in reply.raw


async def test_stop_strings_end_the_answer(model: LocalModel) -> None:
    request = asks("Tell me about rain.", temperature=0.0)
    whole = (await model.complete(request)).text
    stop = whole.split()[4]
    limits = replace(request.sampling, stop=(stop, "never said"))
    cut = await model.complete(replace(request, sampling=limits))
    assert cut.outcome is Outcome.OK
    assert cut.text == whole[: whole.index(stop)]


async def test_a_conversation_is_computed_once(model: LocalModel) -> None:
    """Also when another conversation has had the slot in between."""
    persona = (Message("system", "You are a patient. " + LONG), Message("user", "Hello."))
    judge = (Message("system", "You judge texts. " + LONG), Message("user", "Is this fine?"))
    short = Sampling(max_tokens=4)
    first = await model.complete(Request(persona, sampling=short, seed=1))
    await model.complete(Request(judge, sampling=short, seed=1))
    turns = (*persona, Message("assistant", first.text), Message("user", "And then?"))
    second = await model.complete(Request(turns, sampling=short, seed=1))
    assert first.usage.prompt is not None
    assert second.usage.cached is not None
    assert second.usage.cached >= first.usage.prompt - 1


@on_one_path
async def test_many_at_once(model: LocalModel) -> None:
    few = replace(WARM, max_tokens=8)
    requests = [replace(RIVERS, sampling=few, seed=seed) for seed in (1, 2, 3, 4)]
    alone = [await model.complete(request) for request in requests]
    together = await asyncio.gather(*map(model.complete, reversed(requests)))
    assert [r.text for r in reversed(together)] == [r.text for r in alone]
    assert len({r.text for r in together}) > 1
    assert all(r.outcome is Outcome.TRUNCATED for r in together)


@pytest.mark.parametrize(
    "schema",
    [
        pytest.param(
            obj(reason={"type": "string", "maxLength": 30}, ok={"type": "boolean"}),
            id="verdict",
        ),
        pytest.param(
            obj(
                items={
                    "type": "array",
                    "prefixItems": [
                        obj(
                            id={"const": "n1"},
                            met={"anyOf": [{"type": "boolean"}, {"type": "null"}]},
                        ),
                        obj(id={"const": 'n"2'}, met={"type": ["boolean", "null"]}),
                    ],
                    "items": False,
                    "minItems": 2,
                    "maxItems": 2,
                }
            ),
            id="list with fixed ids",
        ),
        pytest.param(
            obj(
                a=obj(
                    b=obj(
                        c={"enum": ["follow", "avoid", None]},
                        d={"type": "integer", "minimum": 1, "maximum": 5},
                    )
                )
            ),
            id="nested",
        ),
        pytest.param(
            {
                "$defs": {"W": {"type": "string", "maxLength": 5, "title": "W"}},
                "title": "T",
                **obj(words={"type": "array", "items": {"$ref": "#/$defs/W"}, "maxItems": 3}),
            },
            id="as pydantic writes it",
        ),
    ],
)
async def test_a_schema_is_enforced_without_white_space(
    model: LocalModel, schema: dict[str, Any]
) -> None:
    request = replace(asks("Say something.", max_tokens=90), schema=Schema("s", schema))
    reply = await model.complete(request)
    assert (reply.outcome, reply.reason) == (Outcome.OK, "")
    data = json.loads(reply.text)
    jsonschema.validate(data, schema)
    assert reply.text == json.dumps(data, ensure_ascii=False, separators=(",", ":"))
    assert reply.sent["grammar"] == {"name": "s", "compact": True}


async def test_json_cut_by_the_limit_is_truncated(model: LocalModel) -> None:
    schema = Schema("s", obj(text={"type": "string", "minLength": 200}))
    reply = await model.complete(replace(asks("Say something.", max_tokens=8), schema=schema))
    assert (reply.outcome, reply.reason) == (Outcome.TRUNCATED, "length")


async def test_a_schema_that_cannot_be_enforced_is_an_error(model: LocalModel) -> None:
    schema = Schema("s", obj(a={"type": "array", "uniqueItems": True}))
    reply = await model.complete(replace(asks("Say something."), schema=schema))
    assert (reply.outcome, reply.reason) == (
        Outcome.ERROR,
        "schema not enforceable: uniqueItems",
    )


async def test_a_grammar_that_was_dropped_is_an_error(model: LocalModel) -> None:
    """One of the choices may always be met by the other: llguidance does not build it."""
    overlapping = {"oneOf": [{"type": "string"}, {"type": "string", "maxLength": 3}]}
    request = replace(asks("Say hello.", max_tokens=4), schema=Schema("s", overlapping))
    reply = await model.complete(request)
    assert (reply.outcome, reply.reason) == (Outcome.ERROR, "schema not enforced")


async def test_texts_that_cannot_be_encoded_are_cleaned(model: LocalModel) -> None:
    reply = await model.complete(asks("A lone \ud800 and a \0 byte", max_tokens=2))
    assert reply.outcome in {Outcome.OK, Outcome.TRUNCATED}
    assert reply.sent["messages"][0]["content"] == "A lone \ufffd and a \ufffd byte"


async def test_a_last_assistant_turn_is_answered_not_continued(model: LocalModel) -> None:
    turns = (Message("user", "Hello."), Message("assistant", "Hi."))
    reply = await model.complete(Request(turns, sampling=Sampling(max_tokens=3), seed=1))
    assert reply.usage.completion == 3


async def test_a_cancelled_call_frees_its_slot(model: LocalModel) -> None:
    endless = asks("Tell me a story that never ends.", max_tokens=900, temperature=2.0)
    calls = [asyncio.create_task(model.complete(endless)) for _ in range(3)]
    await asyncio.sleep(0)
    for call in calls:
        call.cancel()
    ended = await asyncio.gather(*calls, return_exceptions=True)
    assert all(isinstance(end, asyncio.CancelledError) for end in ended)
    assert (await model.complete(asks("Hello.", max_tokens=1))).usage.completion == 1


async def test_a_call_out_of_time_is_an_error(model: LocalModel) -> None:
    hasty = LocalModel("hasty", ModelEntry(backend="local", timeout=1e-6), model._engine)
    reply = await hasty.complete(asks("Hello."))
    await hasty.aclose()
    assert (reply.outcome, reply.reason) == (Outcome.ERROR, "timeout")
    assert (await model.complete(asks("Hello.", max_tokens=1))).usage.completion == 1


@on_one_path
async def test_slots_and_cache_change_no_byte() -> None:
    """Each request alone without a cache, and all together in two slots with one."""
    start = (Message("system", "You are brief. " + LONG),)
    requests = [
        Request((*start, Message("user", text)), sampling=replace(WARM, max_tokens=12), seed=3)
        for text in ("Hello.", "Tell me about bread, butter and salt.")
    ]
    plain = opened(context_length=256, prefix_cache=False)
    alone = [await plain.complete(request) for request in requests]
    await plain.aclose()
    quick = opened(context_length=256, slots=2, threads=1, prefix_cache=True)
    await quick.complete(requests[1])
    together = await asyncio.gather(*map(quick.complete, requests))
    await quick.aclose()
    assert [r.usage.cached for r in alone] == [0, 0]
    assert any(r.usage.cached for r in together)
    assert [r.text for r in together] == [r.text for r in alone]


async def test_an_answer_that_fills_the_context_is_truncated() -> None:
    model = opened(context_length=256)
    reply = await model.complete(asks("word " * 200, max_tokens=500, temperature=2.0))
    await model.aclose()
    assert (reply.outcome, reply.reason) == (Outcome.TRUNCATED, "context full")
    assert reply.usage.completion is not None
    assert reply.usage.completion < 40


async def test_models_of_a_run_share_weights_and_a_closed_one_says_so() -> None:
    opening = Opening()
    entry = ModelEntry(backend="local", context_length=256)
    first, second = open_model("a", entry, opening), open_model("b", entry, opening)
    assert len(opening.shared["local"]) == 1
    await first.aclose()
    await first.aclose()
    assert (await second.complete(asks("Hello."))).outcome is not Outcome.ERROR
    await second.aclose()
    reply = await second.complete(asks("Hello."))
    assert (reply.outcome, reply.reason) == (Outcome.ERROR, "closed")
    third = open_model("c", entry, opening)
    assert (await third.complete(asks("Hello."))).outcome is not Outcome.ERROR
    await third.aclose()


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ({"slots": 0}, "options.slots: .*greater than or equal to 1"),
        ({"thread": 2}, "options.thread: "),
        ({"cache_mib": "much"}, "options.cache_mib: "),
    ],
)
def test_wrong_options(options: dict[str, Any], says: str) -> None:
    with pytest.raises(ModelError, match=f"model 'tiny': {says}"):
        opened(**options)


def test_a_broken_file(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "broken.gguf").write_bytes(b"GGUF" + bytes(64))
    entry = ModelEntry(backend="local", model="broken.gguf")
    with pytest.raises(ModelError, match=r"cannot load .*broken\.gguf.*HABITUS_DEBUG"):
        open_model("tiny", entry, Opening(base=tmp_path))
    assert capfd.readouterr() == ("", "")


async def test_nothing_is_written_to_the_terminal(capfd: pytest.CaptureFixture[str]) -> None:
    model = opened(context_length=256)
    await model.complete(asks("Hello.", max_tokens=2))
    await model.complete(asks("word " * 400))
    await model.aclose()
    assert capfd.readouterr() == ("", "")


@pytest.mark.parametrize(
    ("schema", "keyword"),
    [
        ({"not": {}}, "not"),
        ({"if": {}, "then": {}}, "if"),
        ({"type": "array", "uniqueItems": True}, "uniqueItems"),
        ({"type": "array", "items": {"contains": {}}}, "contains"),
        (obj(a={"propertyNames": {}}), "propertyNames"),
        ({"anyOf": [{"dependentRequired": {}}]}, "dependentRequired"),
        ({"type": "text"}, "type text"),
        ({"type": "string", "format": "regex"}, "format regex"),
        ({"$ref": "other.json"}, "ref to another document"),
        ({"items": 5}, "5 in the place of a schema"),
        ({"anyOf": {}}, "anyOf"),
    ],
)
def test_schemas_that_are_refused(schema: dict[str, Any], keyword: str) -> None:
    with pytest.raises(UnsupportedSchemaError, match=keyword):
        compact_grammar(schema)


def test_properties_may_be_called_as_keywords_are() -> None:
    grammar = compact_grammar(obj(title={"type": "string", "title": "Title"}, note=True))
    assert '"title": {"type": "string"}' in grammar
    assert "Title" not in grammar
