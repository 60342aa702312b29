"""Time as the models see it: a monotonic clock, the calendar, and a way to wait.

Retries and scheduling take a :class:`Clock`, so that their tests need no waiting.
"""

from __future__ import annotations

import asyncio
import time
from typing import Protocol


class Clock(Protocol):
    """What tells the time and waits."""

    def now(self) -> float:
        """Seconds that only grow."""
        ...

    def wall(self) -> float:
        """Seconds since 1970 (UTC), for dates that a server names."""
        ...

    async def sleep(self, seconds: float) -> None:
        """Wait."""
        ...


class SystemClock:
    """The machine's own clock."""

    def now(self) -> float:
        """Seconds of the monotonic clock."""
        return time.monotonic()

    def wall(self) -> float:
        """Seconds since 1970 (UTC)."""
        return time.time()

    async def sleep(self, seconds: float) -> None:
        """Wait on the event loop."""
        await asyncio.sleep(seconds)
