"""The order of work: requests that share a prefix run together, the first of them alone.

A server that caches prefixes computes a history once only if the second request comes after the
first has been read. So the first request of a group is a pilot, the rest follow together; and
only so many groups are under way that their prefixes fit into the cache side by side.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable
from itertools import islice
from typing import TypeVar

Item = TypeVar("Item")
Answer = TypeVar("Answer")


async def pilot_first(
    items: Iterable[Item],
    ask: Callable[[Item], Awaitable[Answer]],
    use: Callable[[Item, Answer], Awaitable[object]],
) -> None:
    """Ask for the first item alone, then for all others at once; use each answer when it comes.

    The others wait for the answer to the first, not for what is made of it.
    """
    first, *rest = items
    answer = await ask(first)

    async def work(item: Item | None) -> None:
        await (use(first, answer) if item is None else use(item, await ask(item)))

    await together([None, *rest], work)


async def together(items: Iterable[Item], work: Callable[[Item], Awaitable[object]]) -> None:
    """Work on all items at once; the first exception ends the others and is raised itself."""
    await windowed(items, work, None)


async def windowed(
    items: Iterable[Item], work: Callable[[Item], Awaitable[object]], width: int | None
) -> None:
    """Work on at most ``width`` items at once, begun in their order.

    With a width, items are taken from their source when their turn comes.
    """
    waiting = iter(items)

    async def worker(first: Item) -> None:
        await work(first)
        for item in waiting:
            await work(item)

    try:
        async with asyncio.TaskGroup() as group:
            for item in waiting if width is None else islice(waiting, width):
                group.create_task(_run(work, item) if width is None else worker(item))
    except BaseExceptionGroup as error:
        raise _first(error) from None


async def _run(work: Callable[[Item], Awaitable[object]], item: Item) -> None:
    await work(item)


def _first(error: BaseExceptionGroup[BaseException]) -> BaseException:
    inner = error.exceptions[0]
    return _first(inner) if isinstance(inner, BaseExceptionGroup) else inner
