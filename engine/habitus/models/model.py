"""The one seam between the engine and any model, and the seam to what remembers calls."""

from __future__ import annotations

from typing import Protocol, runtime_checkable

from habitus.records import Reply, Request


@runtime_checkable
class ChatModel(Protocol):
    """Anything that answers a request.

    ``complete`` never raises for what a model or a network does: every reply has an outcome.
    It may be called many times at once.
    """

    @property
    def name(self) -> str:
        """The name of the model's entry, as the experiment calls it."""
        ...

    async def complete(self, request: Request) -> Reply:
        """Answer one request."""
        ...

    async def aclose(self) -> None:
        """Give back connections, processes and memory."""
        ...


class CallLog(Protocol):
    """What remembers calls; the store is one."""

    def find(self, key: bytes) -> Reply | None:
        """The stored answer for a key, or None."""
        ...

    async def add(self, key: bytes, request: Request, reply: Reply, model: str) -> None:
        """Keep a call; returns when it is durable."""
        ...
