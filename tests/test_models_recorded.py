"""Calls are looked up first and written down: the same question is never paid for twice."""

from __future__ import annotations

import asyncio
from dataclasses import replace

import pytest

from habitus.models import ChatModel, Recorded
from habitus.models.scripted import ScriptedModel
from habitus.records import Outcome, Prefix, Reply, Request, Sampling, Schema, Usage
from loopback import ask, conversation

TOKENS = Usage(prompt=100, completion=10, cached=60)


class Log:
    """A call log in memory; adding waits while ``gate`` is closed."""

    def __init__(self) -> None:
        self.kept: dict[bytes, Reply] = {}
        self.models: set[str] = set()
        self.gate = asyncio.Event()
        self.gate.set()

    def find(self, key: bytes) -> Reply | None:
        return self.kept.get(key)

    async def add(self, key: bytes, request: Request, reply: Reply, model: str) -> None:
        await self.gate.wait()
        self.models.add(model)
        self.kept[key] = replace(reply, key=b"", stored=False)


class Counting:
    """Answers with the number of the call, or as its script says, when ``gate`` is open."""

    name = "target"

    def __init__(self, *outcomes: Outcome) -> None:
        self.calls = 0
        self.closed = False
        self.outcomes = outcomes or (Outcome.OK,)
        self.gate = asyncio.Event()
        self.gate.set()

    async def complete(self, request: Request) -> Reply:
        self.calls += 1
        number = self.calls
        await self.gate.wait()
        outcome = self.outcomes[min(number, len(self.outcomes)) - 1]
        reason = "" if outcome is Outcome.OK else "http 500"
        return Reply(outcome, f"answer {number}", reason, usage=TOKENS, attempts=2, waited=1.5)

    async def aclose(self) -> None:
        self.closed = True


DIFFERENT = {
    "seed": ask(seed=2),
    "repeat": ask(seed=1, repeat=1),
    "attempt": ask(seed=1, attempt=1),
    "temperature": ask(seed=1, sampling=Sampling(temperature=0.7)),
    "top_p": ask(seed=1, sampling=Sampling(top_p=0.7)),
    "max_tokens": ask(seed=1, sampling=Sampling(max_tokens=7)),
    "stop": ask(seed=1, sampling=Sampling(stop=("#",))),
    "schema": ask(seed=1, schema=Schema("s", {"type": "object"})),
    "text": ask("What else?", seed=1),
    "history": ask(seed=1, prefix=Prefix(conversation(("system", "Be brief.")))),
}


@pytest.mark.parametrize("other", DIFFERENT.values(), ids=DIFFERENT.keys())
async def test_a_changed_setting_or_repeat_never_gets_the_old_answer(other: Request) -> None:
    model, log = Counting(), Log()
    recorded = Recorded(model, "target", log)
    assert (await recorded.complete(ask(seed=1))).text == "answer 1"
    assert (await recorded.complete(other)).text == "answer 2"
    assert len(log.kept) == 2


async def test_the_same_run_twice_makes_no_call_and_marks_its_hits() -> None:
    log = Log()
    requests = [ask(f"{n}", seed=n) for n in range(5)]
    first = Recorded(Counting(), "target", log)
    answers = [await first.complete(request) for request in requests]
    model = Counting()
    second = Recorded(model, "target", log)
    again = [await second.complete(request) for request in requests]
    assert (model.calls, second.counters.calls, second.counters.hits) == (0, 0, 5)
    assert [reply.stored for reply in answers + again] == [False] * 5 + [True] * 5
    assert [(r.text, r.key) for r in answers] == [(r.text, r.key) for r in again]
    assert log.models == {"target"}


async def test_what_a_call_is_for_and_where_its_prefix_ends_change_nothing() -> None:
    model = Counting()
    recorded = Recorded(model, "target", Log())
    turns = conversation(("user", "a"), ("assistant", "b"))
    await recorded.complete(Request(messages=(*turns, *ask().messages), record="x"))
    await recorded.complete(ask(prefix=Prefix(turns), stage="y", context={"role": "target"}))
    assert model.calls == 1


async def test_another_model_never_gets_the_answer() -> None:
    log = Log()
    await Recorded(Counting(), "one", log).complete(ask())
    other = Counting()
    await Recorded(other, "two", log).complete(ask())
    assert other.calls == 1


async def test_a_reply_is_returned_when_it_is_durable_and_not_before() -> None:
    log = Log()
    log.gate.clear()
    call = asyncio.create_task(Recorded(Counting(), "target", log).complete(ask()))
    for _ in range(5):
        await asyncio.sleep(0)
    assert not call.done()
    log.gate.set()
    assert (await call).ok
    assert len(log.kept) == 1


async def test_identical_requests_in_flight_are_made_once() -> None:
    model = Counting()
    recorded = Recorded(model, "target", Log())
    model.gate.clear()
    calls = [asyncio.create_task(recorded.complete(ask())) for _ in range(10)]
    await asyncio.sleep(0)
    assert recorded.counters.in_flight == 1
    model.gate.set()
    replies = await asyncio.gather(*calls)
    assert model.calls == 1
    assert {reply.text for reply in replies} == {"answer 1"}
    assert sum(not reply.stored for reply in replies) == 1
    assert recorded.counters.in_flight == 0


async def test_when_the_first_of_identical_calls_is_cancelled_another_takes_its_place() -> None:
    model = Counting()
    recorded = Recorded(model, "target", Log())
    model.gate.clear()
    calls = [asyncio.create_task(recorded.complete(ask())) for _ in range(3)]
    await asyncio.sleep(0)
    calls[0].cancel()
    calls[1].cancel()
    await asyncio.sleep(0)
    model.gate.set()
    reply = await calls[2]
    assert (reply.text, reply.stored) == ("answer 2", False)
    assert recorded.counters.in_flight == 0


class BrokenLog(Log):
    async def add(self, key: bytes, request: Request, reply: Reply, model: str) -> None:
        raise OSError("disk full")


async def test_a_log_that_cannot_write_stops_every_caller() -> None:
    recorded = Recorded(Counting(), "target", BrokenLog())
    ended = await asyncio.gather(
        *(recorded.complete(ask()) for _ in range(3)), return_exceptions=True
    )
    assert [type(end) for end in ended] == [OSError] * 3


@pytest.mark.parametrize(
    ("outcome", "calls"),
    [(o, 2 if o is Outcome.ERROR else 1) for o in Outcome],
    ids=[str(o) for o in Outcome],
)
async def test_only_errors_are_asked_again(outcome: Outcome, calls: int) -> None:
    model, log = Counting(outcome, Outcome.OK), Log()
    first = await Recorded(model, "target", log).complete(ask())
    assert first.outcome is outcome
    assert len(log.kept) == 1
    second = await Recorded(model, "target", log).complete(ask())
    assert model.calls == calls
    assert second.outcome is (Outcome.OK if calls == 2 else outcome)


async def test_fresh_stages_are_asked_once_more_and_others_are_not() -> None:
    log, model = Log(), Counting()
    old, judged = replace(ask(), stage="responses"), replace(ask(), stage="verdicts", seed=9)
    recorded = Recorded(model, "m", log)
    for request in (old, judged):
        await recorded.complete(request)
    again = Recorded(model, "m", log, fresh={"responses"})
    assert (await again.complete(old)).text == "answer 3"
    assert (await again.complete(old)).text == "answer 3"
    assert (await again.complete(judged)).text == "answer 2"
    assert model.calls == 3


async def test_counters_say_what_was_spent() -> None:
    recorded = Recorded(Counting(Outcome.OK, Outcome.REFUSED), "target", Log())
    for request in (ask("a"), ask("b"), ask("a")):
        await recorded.complete(request)
    counters = recorded.counters
    assert (counters.calls, counters.hits, counters.attempts, counters.waited) == (2, 1, 4, 3.0)
    assert (counters.prompt, counters.cached, counters.completion) == (200, 120, 20)
    assert counters.outcomes == {Outcome.OK: 2, Outcome.REFUSED: 1}
    assert counters.reasons == {"refused: http 500": 1}


async def test_a_run_whose_first_calls_all_fail_alike_can_stop_early() -> None:
    recorded = Recorded(Counting(Outcome.ERROR), "target", Log())
    for n in range(20):
        assert recorded.counters.failing_alike() is None
        await recorded.complete(ask(f"{n}"))
    found = recorded.counters.failing_alike()
    assert found is not None
    assert (found.calls, found.reason) == (20, "error: http 500")
    mixed = Recorded(Counting(Outcome.OK, Outcome.ERROR), "target", Log())
    for n in range(30):
        await mixed.complete(ask(f"{n}"))
    assert mixed.counters.failing_alike() is None


ALIKE = {
    "the same words": (["401 no such key"] * 3, True),
    "ids and numbers differ": (
        ["no key (request 9f8e7d6c-1)", "no key (request 01234567-2)", "no key (request 777)"],
        True,
    ),
    "the words differ": (["401 no such key", "503 overloaded", "401 no such key"], False),
    "the code of HTTP differs": (["HTTP 401", "HTTP 503", "HTTP 401"], False),
    "too few": (["401 no such key"] * 2, False),
}


@pytest.mark.parametrize(("reasons", "alike"), ALIKE.values(), ids=ALIKE)
async def test_what_is_alike_and_what_is_not(reasons: list[str], alike: bool) -> None:
    replies = iter(reasons)
    model = ScriptedModel("target", lambda _: Reply(Outcome.ERROR, reason=next(replies)))
    recorded = Recorded(model, "target", Log())
    for n, _ in enumerate(reasons):
        await recorded.complete(ask(f"{n}"))
    found = recorded.counters.failing_alike(3)
    assert (found is not None) is alike
    if found is not None:
        assert found.reason == f"error: {reasons[0]}"


async def test_one_role_of_a_model_that_fails_is_found_beside_others_that_work() -> None:
    def script(request: Request) -> Reply | str:
        return failing if request.stage == "filter" else "good"

    failing = Reply(Outcome.ERROR, reason="400 no such schema")
    recorded = Recorded(ScriptedModel("target", script), "target", Log())
    for n in range(4):
        for stage in ("histories", "filter"):
            await recorded.complete(replace(ask(f"{stage} {n}"), stage=stage))
    found = recorded.counters.failing_alike(4)
    assert found is not None
    assert (found.what, found.calls, found.reason) == ("filter", 4, "error: 400 no such schema")


async def test_closing_closes_the_model() -> None:
    model = Counting()
    recorded: ChatModel = Recorded(model, "target", Log())
    assert isinstance(recorded, ChatModel)
    await recorded.aclose()
    assert model.closed


async def test_any_backend_can_be_recorded() -> None:
    scripted = ScriptedModel("helper", lambda request: request.messages[0].text.upper())
    recorded = Recorded(scripted, "helper", Log())
    assert (await recorded.complete(ask("rice"))).text == "RICE"
    assert recorded.name == "helper"
