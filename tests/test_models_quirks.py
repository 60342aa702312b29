"""Models that cannot take everything: rewriting, and what is learned from a rejection."""

from __future__ import annotations

import asyncio
import logging
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from habitus.models import Quirks
from habitus.models.quirks import fits, rewrite
from habitus.models.rejections import learn, read_rejection
from habitus.records import Message, Outcome, Prefix, Request, Sampling, Schema
from loopback import ask, conversation, rejecting, serving, status

Pairs = list[tuple[str, str]]
NO_SYSTEM = Quirks(system_role=False)
ALTERNATE = Quirks(alternate=True)
STRICT = Quirks(system_role=False, alternate=True)
START = Quirks().opening

REPORTED: Pairs = [
    ("system", "S"),
    ("user", "a"),
    ("user", "b"),
    ("assistant", "c"),
    ("user", "d"),
]
REWRITTEN: dict[str, tuple[Quirks, Pairs, Pairs]] = {
    "nothing to do": (Quirks(), REPORTED, REPORTED),
    "system folded": (
        NO_SYSTEM,
        REPORTED,
        [("user", "S\n\na"), ("user", "b"), ("assistant", "c"), ("user", "d")],
    ),
    "neighbours joined": (
        ALTERNATE,
        REPORTED,
        [("system", "S"), ("user", "a\n\nb"), ("assistant", "c"), ("user", "d")],
    ),
    "both": (STRICT, REPORTED, [("user", "S\n\na\n\nb"), ("assistant", "c"), ("user", "d")]),
    "begins with assistant": (
        ALTERNATE,
        [("assistant", "a"), ("user", "b")],
        [("user", START), ("assistant", "a"), ("user", "b")],
    ),
    "begins with assistant after system": (
        STRICT,
        [("system", "S"), ("assistant", "a"), ("user", "b")],
        [("user", "S"), ("assistant", "a"), ("user", "b")],
    ),
    "system in the middle": (
        STRICT,
        [("user", "a"), ("assistant", "b"), ("system", "S"), ("user", "c")],
        [("user", "a"), ("assistant", "b"), ("user", "S\n\nc")],
    ),
    "system alone": (NO_SYSTEM, [("system", "S")], [("user", "S")]),
    "two system messages": (
        ALTERNATE,
        [("system", "S"), ("system", "T"), ("user", "a")],
        [("system", "S\n\nT"), ("user", "a")],
    ),
    "empty turns go": (
        Quirks(),
        [("user", "a"), ("assistant", " \n"), ("user", "b"), ("user", "")],
        [("user", "a"), ("user", "b")],
    ),
}


@pytest.mark.parametrize(("quirks", "given", "sent"), REWRITTEN.values(), ids=REWRITTEN.keys())
def test_messages_are_rewritten(quirks: Quirks, given: Pairs, sent: Pairs) -> None:
    assert rewrite(conversation(*given), quirks) == conversation(*sent)


turns = st.lists(
    st.builds(
        Message,
        st.sampled_from(["system", "user", "assistant"]),
        st.sampled_from(["a", "b\n", " "]),
    )
)
all_quirks = st.builds(Quirks, system_role=st.booleans(), alternate=st.booleans())


@given(turns, all_quirks)
def test_rewritten_messages_fit_and_keep_every_text(given: list[Message], quirks: Quirks) -> None:
    sent = rewrite(given, quirks)
    assert fits(sent, quirks)
    assert rewrite(sent, quirks) == sent
    kept = "".join(m.text for m in given if m.text.strip()).replace("\n", "")
    assert "".join(m.text for m in sent).replace("\n", "").replace(START, "") == kept


@given(turns, turns, all_quirks)
def test_fitting_in_two_parts_is_fitting_as_a_whole(
    first: list[Message], second: list[Message], quirks: Quirks
) -> None:
    last = first[-1].role if first else None
    both = fits(first, quirks) and fits(second, quirks, last)
    assert both == fits([*first, *second], quirks)


def template_objection(body: dict[str, Any]) -> str | None:
    """What a strict chat template says."""
    roles = [m["role"] for m in body["messages"]]
    if "system" in roles:
        return "System role not supported"
    if any(role != ("user", "assistant")[i % 2] for i, role in enumerate(roles)):
        return "Conversation roles must alternate user/assistant/user/assistant/..."
    return None


@pytest.mark.parametrize("code", [400, 500])
@pytest.mark.parametrize(
    "pairs", [REPORTED, [("assistant", "a"), ("user", "b")]], ids=["reported", "assistant first"]
)
async def test_a_template_that_rejects_roles_is_adapted_to_and_the_change_recorded(
    pairs: Pairs, code: int
) -> None:
    async with serving(rejecting(template_objection, code)) as server:
        model = server.model()
        first = await model.complete(Request(messages=conversation(*pairs)))
        asked = len(server.bodies)
        second = await model.complete(Request(messages=conversation(*pairs)))
    assert (first.ok, second.ok) == (True, True)
    assert len(server.bodies) == asked + 1
    assert first.sent["messages"] == server.bodies[-1]["messages"]
    assert server.clock.sleeps == []


async def test_a_template_that_counts_system_as_a_turn_is_adapted_to() -> None:
    def objection(body: dict[str, Any]) -> str | None:
        roles = [m["role"] for m in body["messages"]]
        fine = all(role == ("user", "assistant")[i % 2] for i, role in enumerate(roles))
        return None if fine else "Conversation roles must alternate user/assistant/..."

    async with serving(rejecting(objection)) as server:
        reply = await server.model().complete(Request(messages=conversation(*REPORTED)))
    assert (reply.ok, reply.attempts) == (True, 3)


async def test_a_prefix_is_rewritten_with_the_rest() -> None:
    prefix = Prefix(conversation(("system", "S"), ("user", "a")))
    async with serving() as server:
        model = server.model(quirks={"alternate": True, "system_role": False})
        reply = await model.complete(ask("b", prefix=prefix))
        plain = await model.complete(ask("b"))
    assert server.bodies[0]["messages"] == [{"role": "user", "content": "S\n\na\n\nb"}]
    assert reply.sent["messages"] == server.bodies[0]["messages"]
    assert "messages" not in plain.sent


def reasoning_model(body: dict[str, Any]) -> str | None:
    """What a reasoning model says to usual parameters."""
    if "max_tokens" in body:
        return (
            "Unsupported parameter: 'max_tokens' is not supported with this model. "
            "Use 'max_completion_tokens' instead."
        )
    if body.get("temperature", 1) != 1:
        return (
            "Unsupported value: 'temperature' does not support 0.7 with this model. "
            "Only the default (1) value is supported."
        )
    return None


async def test_a_model_that_rejects_max_tokens_and_temperature_is_adapted_to_and_never_silently(
    caplog: pytest.LogCaptureFixture,
) -> None:
    sampling = Sampling(temperature=0.7, max_tokens=300)
    caplog.set_level(logging.WARNING, "habitus.models")
    async with serving(rejecting(reasoning_model)) as server:
        model, other = server.model(), server.model()
        replies = await asyncio.gather(
            *(model.complete(ask(f"{n}", sampling=sampling)) for n in range(8))
        )
        asked = len(server.bodies)
        again = await model.complete(ask(sampling=sampling))
        assert len(server.bodies) == asked + 1
        await other.complete(ask(sampling=sampling))
    assert all(reply.ok for reply in replies)
    assert again.sent == {
        "model": "m",
        "max_completion_tokens": 300,
        "left_out": ["temperature"],
    }
    assert server.bodies[asked + 1]["max_tokens"] == 300, "another model is asked as before"
    assert [r.message for r in caplog.records][:2] == [
        "model target rejects what it was sent; from now on max_tokens_field: max_completion_tokens",
        "model target rejects what it was sent; from now on temperature: fixed",
    ]


async def test_a_rejection_that_nothing_helps_against_stands_after_a_bounded_number() -> None:
    words = "Unsupported parameter: temperature, top_p, seed, stop, max_tokens is not supported"
    sampling = Sampling(temperature=0.5, top_p=0.5, max_tokens=5, stop=("x",))
    async with serving(status(400, words)) as server:
        reply = await server.model().complete(ask(sampling=sampling, seed=1))
    assert (reply.outcome, reply.reason) == (Outcome.ERROR, "http 400")
    assert reply.attempts == 6
    assert server.clock.sleeps == []


async def test_a_stop_string_the_server_does_not_take_is_applied_here() -> None:
    async with serving(
        rejecting(lambda b: "stop is not supported" if "stop" in b else None)
    ) as server:
        reply = await server.model().complete(ask(sampling=Sampling(stop=("ic",))))
    assert (reply.text, reply.sent["left_out"]) == ("R", ["stop"])


SCHEMA = Schema("verdict", {"type": "object", "properties": {"met": {"type": "boolean"}}})
STRUCTURED: dict[str, tuple[dict[str, Any], dict[str, Any]]] = {
    "json_object": (
        {"structured": "json_object"},
        {"response_format": {"type": "json_object"}},
    ),
    "guided": ({"structured": "guided"}, {"guided_json": dict(SCHEMA.body)}),
    "structured_outputs": (
        {"structured": "structured_outputs"},
        {"structured_outputs": {"json": dict(SCHEMA.body)}},
    ),
    "none": ({"structured": "none"}, {}),
    "lenient": (
        {"strict": False},
        {
            "response_format": {
                "type": "json_schema",
                "json_schema": {"name": "verdict", "schema": dict(SCHEMA.body), "strict": False},
            }
        },
    ),
}


@pytest.mark.parametrize(("quirks", "sent"), STRUCTURED.values(), ids=STRUCTURED.keys())
async def test_a_schema_is_handed_over_as_the_quirk_says(
    quirks: dict[str, Any], sent: dict[str, Any]
) -> None:
    async with serving() as server:
        await server.model(quirks=quirks).complete(ask(schema=SCHEMA))
    body = server.bodies[0]
    assert {k: v for k, v in body.items() if k not in {"model", "messages"}} == sent


async def test_a_server_without_schemas_is_asked_for_json_and_then_plainly() -> None:
    def objection(body: dict[str, Any]) -> str | None:
        form = body.get("response_format")
        return form and f"response_format of type {form['type']} is not supported"

    async with serving(rejecting(objection)) as server:
        reply = await server.model().complete(ask(schema=SCHEMA))
    forms = [body.get("response_format", {}).get("type") for body in server.bodies]
    assert forms == ["json_schema", "json_object", None]
    assert reply.sent["left_out"] == ["schema"]


WORDS: dict[str, tuple[str, dict[str, Any]]] = {
    "max_tokens": (
        "Unsupported parameter: 'max_tokens' is not supported, use 'max_completion_tokens'.",
        {"max_tokens_field": "max_completion_tokens"},
    ),
    "max_tokens, without the other name": (
        "Unsupported parameter: 'max_tokens' is not supported with this model.",
        {"max_tokens_field": "max_completion_tokens"},
    ),
    "temperature": ("`temperature` is deprecated for this model.", {"temperature": "fixed"}),
    "temperature, only one": (
        "invalid temperature: only 1 is allowed for this model",
        {"temperature": "fixed"},
    ),
    "temperature beside top_p": (
        "`temperature` and `top_p` cannot both be specified for this model.",
        {"omit": ("top_p",)},
    ),
    "seed": (
        "[{'loc': ['body', 'seed'], 'msg': 'Extra inputs are not permitted'}]",
        {"omit": ("seed",)},
    ),
    "system": ("System role not supported", {"system_role": False}),
    "developer": ("Developer instruction is not enabled for models/m", {"system_role": False}),
    "first user": ("Conversations must start with a user prompt.", {"alternate": True}),
    "invalid schema": (
        "Invalid schema for response_format 'v': 'additionalProperties' is required",
        {"strict": False},
    ),
}
SENT = {"max_tokens", "temperature", "top_p", "seed", "system", "schema"}


@pytest.mark.parametrize(("words", "change"), WORDS.values(), ids=WORDS.keys())
def test_wordings_of_rejections_are_understood(words: str, change: dict[str, Any]) -> None:
    rejection = read_rejection(400, status_body(words))
    assert learn(rejection, Quirks(), SENT) == Quirks(**change)


UNTEACHING = {
    "value out of range": "temperature must be at most 2",
    "too many tokens": "max_tokens is too large: 90000. This model supports at most 4096.",
    "other parameter": "Unknown parameter: 'top_k'",
    "our mistake": "messages: at least one message is required",
}


@pytest.mark.parametrize("words", UNTEACHING.values(), ids=UNTEACHING.keys())
def test_a_wrong_value_teaches_nothing(words: str) -> None:
    assert learn(read_rejection(400, status_body(words)), Quirks(), SENT) is None


def test_what_was_not_sent_cannot_be_what_is_rejected() -> None:
    rejection = read_rejection(400, status_body("temperature is not supported"))
    assert learn(rejection, Quirks(), {"max_tokens"}) is None


def status_body(words: str) -> bytes:
    return b'{"error": {"message": "%b"}}' % words.encode()
