"""The fault server, and what every fault of its becomes: a retry, an outcome, or a good answer."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from damage import thorough
from fault_server import (
    FORMS,
    HANGING,
    HUGE,
    LASTING,
    NOISE,
    PASSING,
    FaultServer,
    Plan,
    good_answer,
    name_of,
)
from habitus.models import ChatModel, ModelEntry, Opening, open_model
from habitus.records import Outcome, Reply, Request, Sampling, Schema
from loopback import VirtualClock, ask, serving

OUTCOMES = {
    "filtered": Outcome.REFUSED,
    "refusal field": Outcome.REFUSED,
    "filter as an error body": Outcome.REFUSED,
    "filter as 400 with a completion": Outcome.REFUSED,
    "refusal as 400 with a completion": Outcome.REFUSED,
    "cut": Outcome.TRUNCATED,
    "cut while reasoning": Outcome.TRUNCATED,
    "only reasoning": Outcome.TRUNCATED,
    "think tag left open": Outcome.TRUNCATED,
    "empty": Outcome.UNPARSED,
    "white space": Outcome.UNPARSED,
    "null": Outcome.UNPARSED,
    "overflow": Outcome.OVERFLOW,
    "too large": Outcome.OVERFLOW,
}
SAMPLING = Sampling(temperature=0.7, top_p=0.9)
VERDICT = Schema(
    "verdict",
    {
        "type": "object",
        "properties": {
            "why": {"type": "string"},
            "met": {"type": "boolean"},
            "stance": {"type": ["boolean", "null"]},
            "label": {"type": "string", "enum": ["A", "B"]},
            "all": {"type": "array", "items": {"type": "integer"}},
        },
    },
)


@pytest.fixture
def server() -> Iterator[FaultServer]:
    """A server without faults, until it is given another plan."""
    with FaultServer(Plan()) as running:
        yield running


def model(server: FaultServer, **settings: Any) -> ChatModel:
    """A model there whose waits take no time."""
    plain = {"backend": "openai", "model": "m", "base_url": server.url, "retries": 8}
    entry = ModelEntry.model_validate(plain | settings)
    return open_model("target", entry, Opening(clock=VirtualClock()))


async def answered(server: FaultServer, *requests: Request, **settings: Any) -> list[Reply]:
    """The replies to some requests that are made at once."""
    asked = model(server, **settings)
    try:
        return await asyncio.gather(*(asked.complete(request) for request in requests))
    finally:
        await asked.aclose()


def expected(request: Request) -> str:
    """The good answer to a request."""
    turns = [(message.role, message.text) for message in request.all_messages]
    body = {"messages": [{"role": role, "content": text} for role, text in turns]}
    return good_answer(name_of("m", turns, request.seed), body)


@pytest.mark.parametrize("fault", PASSING)
async def test_what_passes_is_asked_again_and_answered(server: FaultServer, fault: str) -> None:
    server.plan = Plan(passing={fault: 1.0}, most=2)
    (reply,) = await answered(server, ask(seed=1))
    assert (reply.outcome, reply.text, reply.attempts) == (Outcome.OK, expected(ask(seed=1)), 3)
    assert [asked.fault for asked in server.log] == [fault, fault, "plain"]
    assert [asked.good for asked in server.log] == [False, False, True]


@pytest.mark.parametrize("fault", PASSING)
async def test_what_does_not_pass_is_an_error(server: FaultServer, fault: str) -> None:
    server.plan = Plan(passing={fault: 1.0}, most=100)
    (reply,) = await answered(server, ask(), retries=2)
    assert (reply.outcome, reply.attempts, reply.text in {"", "Ri"}) == (Outcome.ERROR, 3, True)
    assert reply.reason


@pytest.mark.parametrize("fault", LASTING)
async def test_what_lasts_has_an_outcome_and_is_not_asked_again(
    server: FaultServer, fault: str
) -> None:
    server.plan = Plan(lasting={fault: 1.0})
    (reply,) = await answered(server, ask())
    assert (reply.outcome, reply.attempts) == (OUTCOMES[fault], 1)
    assert reply.reason


@pytest.mark.parametrize("form", FORMS)
async def test_every_form_of_a_good_answer_says_the_same(server: FaultServer, form: str) -> None:
    server.plan = Plan(forms=(form,))
    (reply,) = await answered(server, ask(seed=2))
    assert (reply.outcome, reply.text) == (Outcome.OK, expected(ask(seed=2)))


@pytest.mark.parametrize("noise", NOISE)
async def test_noise_is_text_of_the_answer(server: FaultServer, noise: str) -> None:
    server.plan = Plan(noise={noise: 1.0})
    (reply,) = await answered(server, ask())
    assert reply.ok
    assert reply.text.endswith(expected(ask()))
    assert len(reply.text) == len(NOISE[noise] + expected(ask()))
    assert "\0" not in reply.text
    assert reply.text.encode()


@pytest.mark.parametrize("fault", HANGING)
async def test_what_hangs_is_given_up_in_time(server: FaultServer, fault: str) -> None:
    server.plan = Plan(passing={fault: 1.0}, most=100)
    (reply,) = await answered(server, ask(), timeout=0.2)
    assert (reply.outcome, reply.reason) == (Outcome.ERROR, "timeout")


async def test_an_endpoint_that_repeats_the_prompt(server: FaultServer) -> None:
    server.plan = Plan(echoing=1.0)
    (reply,) = await answered(server, ask("a <think>b</think> c"))
    assert (reply.text, reply.reasoning) == ("a  c", "b")


async def test_a_huge_answer_is_no_answer() -> None:
    async with serving(HUGE) as server:
        reply = await server.model().complete(ask())
    assert (reply.outcome, reply.reason) == (Outcome.ERROR, "answer too large")


async def test_rejected_parameters_are_learned_once(server: FaultServer) -> None:
    server.plan = Plan(rejects=("temperature", "seed", "top_p"))
    asked = model(server)
    try:
        replies = [await asked.complete(ask(f"{n}", seed=n, sampling=SAMPLING)) for n in range(4)]
    finally:
        await asked.aclose()
    assert all(reply.ok for reply in replies)
    assert server.faults() == {"rejected": 3, "plain": 4}
    assert "seed" not in replies[-1].sent


async def test_answers_follow_the_schema_and_the_labels(server: FaultServer) -> None:
    import json

    from jsonschema import validate

    requests = [ask(f"{n}", schema=VERDICT, seed=n) for n in range(20)]
    for reply in await answered(server, *requests):
        validate(json.loads(reply.text), VERDICT.body)
    (label,) = await answered(server, ask("Say ##A## or ##B##"))
    assert label.text.endswith(("##A## <|END|>", "##B## <|END|>"))


def test_a_plan_is_a_test_case() -> None:
    def drawn(seed: int) -> list[str]:
        plan = Plan.all(seed)
        body = {"messages": [{"role": "user", "content": "a"}]}
        return [plan.choose(f"{n:x}", ask, body)[0] for n in range(60) for ask in range(3)]

    assert drawn(1) == drawn(1)
    assert drawn(1) != drawn(2)
    assert len(set(drawn(1))) > 15


@thorough
@given(st.integers(0, 2**32), st.floats(0, 0.9), st.floats(0, 0.6))
def test_whatever_the_plan_every_call_has_one_outcome(
    seed: int, passing: float, lasting: float
) -> None:
    """Transient faults leave no trace in an answer, lasting ones are told, and each is asked once."""
    plan = Plan.all(seed, passing=passing, lasting=lasting, rejects=("temperature",))
    requests = [ask(f"{n}", seed=n, sampling=SAMPLING) for n in range(12)]
    with FaultServer(plan) as server:
        replies = asyncio.run(_all(server, requests))
    names = [asked.name for asked in server.log if asked.good and asked.sent]
    assert len(names) == len(set(names)) == 12
    for request, reply in zip(requests, replies, strict=True):
        assert reply.outcome is not Outcome.ERROR
        assert not reply.ok or reply.text == expected(request)
        assert reply.ok or reply.reason


async def _all(server: FaultServer, requests: list[Request]) -> list[Reply]:
    return await answered(server, *requests, concurrency=5)
