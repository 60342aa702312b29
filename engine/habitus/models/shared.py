"""A model on an engine that other models of the run may share: the last one to leave ends it."""

from __future__ import annotations

from typing import Protocol


class SharedEngine(Protocol):
    """What holds weights in memory; ``users`` counts the models on it."""

    users: int

    async def close(self) -> None:
        """Give the memory back."""
        ...


class Seat:
    """A model's place on an engine."""

    def __init__(self, engine: SharedEngine) -> None:
        self.left = False
        self._engine = engine
        engine.users += 1

    async def leave(self) -> None:
        """Leave the engine, once; the last one to leave closes it."""
        if self.left:
            return
        self.left = True
        self._engine.users -= 1
        if self._engine.users == 0:
            await self._engine.close()
