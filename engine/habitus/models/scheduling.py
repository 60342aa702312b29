"""How many requests are in flight at one endpoint, and when all of them wait.

    async with gate.slot() as slot:
        ...
        slot.congested()        # or slot.succeeded()

The limit adapts as TCP does: halved when the server is overloaded, raised by a step for each
round of successes. When one call is told to wait, every call of the endpoint waits, and they
come back spread out. A gate knows nothing of HTTP.
"""

from __future__ import annotations

import asyncio
import random
from collections import deque
from collections.abc import Callable
from types import TracebackType

from habitus.models.clock import Clock, SystemClock

LEAST = 1.0
SHRINK = 0.5
ROUNDS_TO_RECOVER = 16
SPREAD = 0.25  # calls come back over this share of the wait
LONGEST_SPREAD = 5.0


class Gate:
    """The slots of one endpoint.

    ``limit`` is how many may be in flight now, ``maximum`` how many at most. ``draw`` gives
    uniform numbers in [0, 1): it spreads waits only and touches no result.
    """

    def __init__(
        self, maximum: int, clock: Clock | None = None, draw: Callable[[], float] = random.random
    ) -> None:
        self.maximum = maximum
        self.limit = float(maximum)
        self.busy = 0
        self._clock = clock or SystemClock()
        self._draw = draw
        self._queue: deque[asyncio.Future[None]] = deque()
        self._open_at = 0.0
        self._spread = 0.0
        self._shrinks = 0

    def raise_maximum(self, maximum: int) -> None:
        """Let more in, when another model shares the endpoint and allows more."""
        if maximum > self.maximum:
            self.maximum = maximum
            self.limit = float(maximum)
            self._fill()

    def slot(self) -> Slot:
        """A slot, to be entered with ``async with``."""
        return Slot(self)

    def pause(self, seconds: float) -> None:
        """Let nobody in for a while; calls in flight go on."""
        self._open_at = max(self._open_at, self._clock.now() + seconds)
        self._spread = min(SPREAD * seconds, LONGEST_SPREAD)

    async def enter(self) -> int:
        """Wait for a slot and for the end of a pause; gives the number of shrinks so far."""
        if self._queue or self.busy >= self._whole_limit():
            await self._wait_for_slot()
        else:
            self.busy += 1
        try:
            while (wait := self._open_at - self._clock.now()) > 0:
                await self._clock.sleep(wait + self._draw() * self._spread)
        except BaseException:
            self.leave()
            raise
        return self._shrinks

    def leave(self) -> None:
        """Give a slot back, to the call that waits longest."""
        self.busy -= 1
        self._fill()

    def congested(self, shrinks: int) -> None:
        """Halve the limit, once for all calls that were in flight when it happened."""
        if shrinks == self._shrinks:
            self._shrinks += 1
            self.limit = max(LEAST, self.limit * SHRINK)

    def succeeded(self) -> None:
        """Raise the limit a little."""
        if self.limit < self.maximum:
            step = max(1.0, self.maximum / ROUNDS_TO_RECOVER)
            self.limit = min(float(self.maximum), self.limit + step / self.limit)

    def _whole_limit(self) -> int:
        return int(self.limit + 1e-9)

    def _fill(self) -> None:
        while self._queue and self.busy < self._whole_limit():
            waiting = self._queue.popleft()
            if not waiting.done():
                self.busy += 1
                waiting.set_result(None)

    async def _wait_for_slot(self) -> None:
        waiting = asyncio.get_running_loop().create_future()
        self._queue.append(waiting)
        try:
            await waiting
        except asyncio.CancelledError:
            if waiting.done() and not waiting.cancelled():
                self.leave()  # the slot came in the same moment as the cancellation
            raise


class Slot:
    """One slot of a gate while a request is in flight."""

    __slots__ = ("_gate", "_shrinks")

    def __init__(self, gate: Gate) -> None:
        self._gate = gate
        self._shrinks = 0

    async def __aenter__(self) -> Slot:
        self._shrinks = await self._gate.enter()
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._gate.leave()

    def congested(self) -> None:
        """Say that the server is overloaded."""
        self._gate.congested(self._shrinks)

    def succeeded(self) -> None:
        """Say that the server answered."""
        self._gate.succeeded()
