"""Waiting and trying again: Retry-After, backoff, deadlines, and slots that adapt."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from email.utils import formatdate
from typing import Any

import pytest

import loopback
from habitus.models.retries import RetryPolicy, retryable
from habitus.models.scheduling import Gate, Slot
from habitus.records import Outcome
from loopback import VirtualClock, ask, serving, status

OK = loopback.answer("Rice.")


@pytest.mark.parametrize("code", [408, 409, 429, 500, 502, 503, 504, 529])
async def test_passing_failures_are_asked_again(code: int) -> None:
    async with serving(status(code), status(code), OK) as server:
        reply = await server.model().complete(ask())
    assert (reply.outcome, reply.attempts) == (Outcome.OK, 3)
    assert reply.waited == pytest.approx(sum(server.clock.sleeps))


@pytest.mark.parametrize("code", [400, 401, 403, 404, 405, 422])
async def test_lasting_failures_are_not_asked_again(code: int) -> None:
    async with serving(status(code), OK) as server:
        reply = await server.model().complete(ask())
    assert (reply.outcome, reply.attempts, server.clock.sleeps) == (Outcome.ERROR, 1, [])


@pytest.mark.parametrize(
    "fault",
    [loopback.dropped(), loopback.half(), loopback.raw(b"<html>"), loopback.answer("R", "error")],
    ids=["dropped", "half a body", "malformed", "broken off"],
)
async def test_broken_answers_are_asked_again(fault: loopback.Step) -> None:
    async with serving(fault, OK) as server:
        reply = await server.model().complete(ask())
    assert (reply.outcome, reply.text, reply.attempts) == (Outcome.OK, "Rice.", 2)


@pytest.mark.parametrize("form", ["seconds", "date", "milliseconds"])
async def test_retry_after_is_waited_out(form: str) -> None:
    clock = VirtualClock()
    headers = {
        "seconds": {"Retry-After": "2"},
        "date": {"Retry-After": formatdate(clock.wall() + 2, usegmt=True)},
        "milliseconds": {"retry-after-ms": "2000"},
    }[form]
    async with serving(status(429, headers=headers), OK) as server:
        reply = await server.model().complete(ask())
    assert (reply.outcome, reply.attempts) == (Outcome.OK, 2)
    assert 2.0 <= reply.waited <= 2.5
    assert server.times[1] - server.times[0] == pytest.approx(reply.waited)


async def test_retry_after_is_bounded() -> None:
    async with serving(status(503, headers={"Retry-After": "86400"}), OK) as server:
        reply = await server.model().complete(ask())
    assert reply.ok
    assert 120 <= reply.waited <= 120.5


async def test_retry_after_beyond_the_deadline_ends_the_call_at_once() -> None:
    async with serving(status(429, headers={"Retry-After": "60"}), OK) as server:
        reply = await server.model(timeout=30).complete(ask())
    assert (reply.outcome, reply.reason, reply.attempts) == (Outcome.ERROR, "http 429", 1)
    assert server.clock.sleeps == []


async def test_when_one_call_is_told_to_wait_the_others_of_the_endpoint_wait_too() -> None:
    class Standing(VirtualClock):
        """Time that stands still until it is let go."""

        async def sleep(self, seconds: float) -> None:
            until = self.time + seconds
            self.sleeps.append(seconds)
            await going.wait()
            self.time = max(self.time, until)

    going = asyncio.Event()
    async with serving(status(429, headers={"Retry-After": "20"}), OK) as server:
        clock = server.clock = Standing()
        server.opening = replace(server.opening, clock=clock)
        model, other = server.model(concurrency=1), server.model(concurrency=1)
        first = asyncio.create_task(model.complete(ask("first")))
        while not clock.sleeps:
            await asyncio.sleep(0)
        second = asyncio.create_task(other.complete(ask("second")))
        while len(clock.sleeps) + len(server.bodies) < 3:
            await asyncio.sleep(0)
        assert len(server.bodies) == 1, "the second call was sent while the first was told to wait"
        assert clock.sleeps[1] >= 20
        going.set()
        assert all([(await first).ok, (await second).ok])


async def test_calls_come_back_spread_out_and_not_all_at_once() -> None:
    clock = SteppingClock()
    gate = Gate(50, clock)
    gate.pause(20)
    entered: list[float] = []

    async def call() -> None:
        async with gate.slot():
            entered.append(clock.now())

    await clock.run(*(call() for _ in range(50)))
    assert min(entered) >= 20
    assert len({round(at, 1) for at in entered}) > 20


async def test_retries_end_after_their_number() -> None:
    async with serving(status(500)) as server:
        reply = await server.model(retries=3).complete(ask())
    assert (reply.outcome, reply.reason, reply.attempts) == (Outcome.ERROR, "http 500", 4)
    assert len(server.clock.sleeps) == 3


async def test_the_deadline_covers_all_tries_and_waits() -> None:
    async with serving(status(500, headers={"Retry-After": "10"})) as server:
        reply = await server.model(retries=50, timeout=35).complete(ask())
    assert (reply.outcome, reply.attempts) == (Outcome.ERROR, 4)
    assert sum(server.clock.sleeps) < 35


async def test_a_server_that_never_answers_is_a_timeout() -> None:
    never = asyncio.Event()
    async with serving(loopback.waiting(never)) as server:
        reply = await server.model(timeout=0.02, retries=0).complete(ask())
        never.set()
    assert (reply.outcome, reply.reason) == (Outcome.ERROR, "timeout")


async def test_an_address_where_nothing_listens_is_a_connection_error() -> None:
    async with serving() as server:
        model = server.model(base_url="http://127.0.0.1:1/v1", retries=2)
        reply = await model.complete(ask())
    assert (reply.outcome, reply.reason, reply.attempts) == (Outcome.ERROR, "connection", 3)


async def test_a_server_may_say_whether_to_try_again() -> None:
    async with serving(status(500, headers={"x-should-retry": "false"}), OK) as server:
        assert (await server.model().complete(ask())).attempts == 1
    assert retryable(400, {"x-should-retry": "true"})


def test_backoff_grows_with_full_jitter_and_is_bounded() -> None:
    policy = RetryPolicy(first=0.5, longest=30)
    assert [policy.backoff(n, 1.0) for n in (1, 2, 3, 7, 5000)] == [0.5, 1.0, 2.0, 30.0, 30.0]
    assert policy.backoff(3, 0.0) == 0.0


UNREADABLE = ["", "soon", "-5", "NaN", "1e9", "Fri, 99 Foo 2026 00:00:00 GMT", "9" * 400]


@pytest.mark.parametrize("value", UNREADABLE)
def test_a_retry_after_that_cannot_be_read_is_as_none(value: str) -> None:
    assert RetryPolicy().told({"retry-after": value}, wall=0.0) is None


def test_a_date_in_the_past_means_no_wait() -> None:
    headers = {"retry-after": formatdate(1000, usegmt=True)}
    assert RetryPolicy().told(headers, wall=2000.0) == 0.0


class SteppingClock:
    """A clock that jumps to the next sleeper when all tasks wait."""

    def __init__(self) -> None:
        self.time = 0.0
        self._sleepers: list[tuple[float, asyncio.Future[None]]] = []

    def now(self) -> float:
        return self.time

    def wall(self) -> float:
        return self.time

    async def sleep(self, seconds: float) -> None:
        until = asyncio.get_running_loop().create_future()
        self._sleepers.append((self.time + seconds, until))
        await until

    async def run(self, *calls: Any) -> None:
        tasks = [asyncio.ensure_future(call) for call in calls]
        while not all(task.done() for task in tasks):
            for _ in range(5):
                await asyncio.sleep(0)
            if self._sleepers:
                self._sleepers.sort(key=lambda s: s[0])
                self.time, until = self._sleepers.pop(0)
                until.set_result(None)
        for task in tasks:
            task.result()


async def occupy(gate: Gate, number: int) -> list[Slot]:
    return [await gate.slot().__aenter__() for _ in range(number)]


async def test_overload_halves_the_slots_once_for_all_calls_in_flight() -> None:
    gate = Gate(64)
    slots = await occupy(gate, 64)
    for slot in slots:
        slot.congested()
    assert gate.limit == 32
    await slots[0].__aexit__(None, None, None)
    assert gate.busy == 63


async def test_slots_recover_after_successes_and_never_exceed_the_maximum() -> None:
    gate = Gate(256)
    for _ in range(20):
        async with gate.slot() as slot:
            slot.congested()
    assert gate.limit == 1
    for successes in range(5000):  # noqa: B007  (counted)
        async with gate.slot() as slot:
            slot.succeeded()
        if gate.limit == 256:
            break
    assert successes < 3000
    assert gate.limit == 256


async def test_a_reduced_limit_is_kept_to_and_the_queue_moves_on() -> None:
    gate = Gate(4)
    slots = await occupy(gate, 4)
    slots[0].congested()
    queued = [asyncio.create_task(gate.slot().__aenter__()) for _ in range(3)]
    for slot in slots[:2]:
        await asyncio.sleep(0)
        await slot.__aexit__(None, None, None)
    await asyncio.sleep(0)
    assert [task.done() for task in queued] == [False, False, False]
    await slots[2].__aexit__(None, None, None)
    await asyncio.sleep(0)
    assert [task.done() for task in queued] == [True, False, False]
    for task in queued[1:]:
        task.cancel()


async def test_a_cancelled_wait_for_a_slot_loses_no_slot() -> None:
    gate = Gate(1)
    (held,) = await occupy(gate, 1)
    queued = [asyncio.create_task(gate.slot().__aenter__()) for _ in range(3)]
    await asyncio.sleep(0)
    queued[0].cancel()
    await held.__aexit__(None, None, None)
    queued[1].cancel()  # in the very moment when it is handed the slot
    await asyncio.sleep(0)
    await asyncio.sleep(0)
    assert (await queued[2]) is not None
    assert gate.busy == 1


async def test_a_busy_server_is_asked_with_fewer_requests_and_all_are_answered() -> None:
    """A server that can do four at a time and says 429 to the rest."""
    async with serving() as server:
        model = server.model(concurrency=32, retries=50)
        busy = 0

        async def limited(request: Any, body: dict[str, Any]) -> Any:
            nonlocal busy
            busy += 1
            try:
                await asyncio.sleep(0.001)
                return await (OK if busy <= 4 else status(429))(request, body)
            finally:
                busy -= 1

        server.script[:] = [limited]
        replies = await asyncio.gather(*(model.complete(ask(f"{n}")) for n in range(100)))
        (endpoint,) = server.opening.shared["endpoints"].values()
        assert all(reply.ok for reply in replies)
        assert endpoint.gate.busy == 0
        assert endpoint.gate.limit < 32
