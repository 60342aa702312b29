"""The thread that writes: it groups what arrives, and answers when a group is on the disk.

A group is at most 256 items, and no item waits longer than 20 ms for its group to close. One group
is one transaction and one ``call_soon_threadsafe``. The queue is bounded: ``room`` waits until
there is some. The first failure is the last thing the writer does: every waiting and every later
item is refused with the same StoreError, and what was acknowledged before stays.

The writer does not know what an item is; it is given ``commit``, which makes a group durable.
"""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Generic, Protocol, TypeVar

from habitus.errors import StoreError

GROUP = 256
SECONDS = 0.02
_QUEUED = 4 * GROUP
_QUEUED_BYTES = 16 * 2**20


class _Item(Protocol):
    @property
    def size(self) -> int: ...


T = TypeVar("T", bound=_Item)
Waiter = asyncio.Future[None]


class Writer(Generic[T]):
    """A writing thread. It starts with the first item."""

    def __init__(self, commit: Callable[[Sequence[T]], None]) -> None:
        """``commit`` is called in the thread, with one group at a time."""
        self._commit = commit
        self._queue: list[tuple[T, Waiter]] = []
        self._bytes = 0
        self._since = 0.0
        self._waiting: list[Waiter] = []
        self._wake = threading.Condition()
        self._closing = False
        self._failure: StoreError | None = None
        self._thread: threading.Thread | None = None

    async def room(self) -> None:
        """Wait until the queue has room."""
        while not self._failure and (len(self._queue) >= _QUEUED or self._bytes >= _QUEUED_BYTES):
            waiter = asyncio.get_running_loop().create_future()
            with self._wake:
                self._waiting.append(waiter)
            await waiter

    def enqueue(self, item: T) -> Waiter:
        """Hand an item over; the future is done when the item is durable.

        Raises:
            StoreError: if writing has failed before, or the writer is closed.
        """
        future: Waiter = asyncio.get_running_loop().create_future()
        with self._wake:
            if self._failure is not None:
                raise StoreError(str(self._failure))
            if self._closing:
                raise StoreError("the run directory is closed")
            if not self._queue:
                self._since = time.monotonic()
            self._queue.append((item, future))
            self._bytes += item.size
            if len(self._queue) in {1, GROUP}:
                self._wake.notify()
        if self._thread is None:
            self._thread = threading.Thread(target=self._run, name="habitus-store", daemon=True)
            self._thread.start()
        return future

    def close(self) -> None:
        """Write what is queued and end the thread. May be called twice."""
        with self._wake:
            self._closing = True
            self._wake.notify()
        if self._thread is not None:
            self._thread.join()

    def _run(self) -> None:
        while group := self._next():
            error = self._attempt([item for item, _ in group])
            self._answer([future for _, future in group], error)
            if error is not None:
                self._refuse(error)
                return

    def _next(self) -> list[tuple[T, Waiter]]:
        with self._wake:
            while not self._queue and not self._closing:
                self._wake.wait()
            until = self._since + SECONDS
            while len(self._queue) < GROUP and not self._closing:
                left = until - time.monotonic()
                if left <= 0:
                    break
                self._wake.wait(left)
            group, self._queue = self._queue[:GROUP], self._queue[GROUP:]
            self._since = time.monotonic()
            self._bytes -= sum(item.size for item, _ in group)
            waiting, self._waiting = self._waiting, []
        self._answer(waiting, None)
        return group

    def _attempt(self, items: Sequence[T]) -> StoreError | None:
        try:
            self._commit(items)
        except StoreError as error:
            return error
        except Exception as error:  # those who wait must hear of it, whatever it is
            return StoreError(f"the call log cannot be written: {error!r}")
        return None

    def _refuse(self, error: StoreError) -> None:
        with self._wake:
            self._failure = error
            rest, self._queue = self._queue, []
            waiting, self._waiting = self._waiting, []
        self._answer([future for _, future in rest], error)
        self._answer(waiting, None)

    @staticmethod
    def _answer(futures: Sequence[Waiter], error: StoreError | None) -> None:
        loops: dict[asyncio.AbstractEventLoop, list[Waiter]] = {}
        for future in futures:
            loops.setdefault(future.get_loop(), []).append(future)
        for loop, its in loops.items():
            with suppress(RuntimeError):  # the loop is closed: nobody waits any more
                loop.call_soon_threadsafe(_settle, its, error)


def _settle(futures: Sequence[Waiter], error: StoreError | None) -> None:
    for future in futures:
        if future.done():
            continue
        if error is None:
            future.set_result(None)
        else:
            future.set_exception(StoreError(str(error)))
