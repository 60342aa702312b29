"""The order of work: requests that share a prefix run together, the first of them alone.

A server that caches prefixes computes a history once only if the second request comes after the
first has been read. So the first request of a group is a pilot, the rest follow together; and
only so many groups are under way that their prefixes fit into the cache side by side.

Items whose calls are not made, as a cap is reached (``NotAskedError``), are left out, and the others
go on with what is stored: nothing that was paid for is lost, and no item fails for it.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Awaitable, Callable, Iterable
from functools import partial
from itertools import islice
from typing import TypeVar

from habitus.models import NotAskedError

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
    works: list[Callable[[], Awaitable[object]]] = [
        partial(_ask_and_use, i, ask, use) for i in rest
    ]
    with contextlib.suppress(NotAskedError):
        answer = await ask(first)
        works.insert(0, lambda: use(first, answer))
    await together(works, lambda work: work())


async def gathered(
    items: Iterable[Item], work: Callable[[Item], Awaitable[Answer]]
) -> list[Answer]:
    """What work makes of every item, in their order; all of them are worked on.

    Raises:
        NotAskedError: one of them was left out, so that what needs them all is left out, too.
    """
    every = list(items)
    answers: dict[int, Answer] = {}

    async def one(number: int) -> None:
        answers[number] = await work(every[number])

    await together(range(len(every)), one)
    if len(answers) < len(every):
        raise NotAskedError("a part of it was not asked")
    return [answers[number] for number in range(len(every))]


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
        await _run(work, first)
        for item in waiting:
            await _run(work, item)

    try:
        async with asyncio.TaskGroup() as group:
            for item in waiting if width is None else islice(waiting, width):
                group.create_task(_run(work, item) if width is None else worker(item))
    except BaseExceptionGroup as error:
        raise _first(error) from None


async def _run(work: Callable[[Item], Awaitable[object]], item: Item) -> None:
    with contextlib.suppress(NotAskedError):
        await work(item)


async def _ask_and_use(
    item: Item,
    ask: Callable[[Item], Awaitable[Answer]],
    use: Callable[[Item, Answer], Awaitable[object]],
) -> None:
    await use(item, await ask(item))


def _first(error: BaseExceptionGroup[BaseException]) -> BaseException:
    inner = error.exceptions[0]
    return _first(inner) if isinstance(inner, BaseExceptionGroup) else inner
