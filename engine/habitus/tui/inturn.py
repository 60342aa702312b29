"""Keys in turn: each has done what it does before the next is looked at.

Keys can come faster than they are handled, over a slow line or on a busy machine. A widget would take
those that follow before the first has moved the cursor or opened a dialog: ``jm`` would mark the item
before, and what is typed after ``/`` would get lost.
"""

from __future__ import annotations

import asyncio
from collections import deque
from typing import Any

from textual.app import App
from textual.events import Event, Key, Paste
from textual.message_pump import MessagePump

_STEPS = 3  # a key moves a cursor, the tree tells the viewer, and it shows the item later
_PATIENCE = 1.0  # seconds; what was closed meanwhile does not answer


class InTurn(App[None]):
    """An application that takes one key after the other."""

    def __init__(self, **given: Any) -> None:
        super().__init__(**given)
        self._typed: deque[Event] = deque()
        self._typing: asyncio.Task[None] | None = None

    async def on_event(self, event: Event) -> None:
        """Put what was typed into a line; all else is handled as it comes."""
        if not isinstance(event, (Key, Paste)) or event.is_forwarded:
            await super().on_event(event)
            return
        self._typed.append(event)
        if self._typing is None or self._typing.done():
            self._typing = asyncio.create_task(self._take())

    @property
    def is_typed_ahead(self) -> bool:
        """Whether keys wait, or one has not yet done all that it does."""
        return self._typing is not None and not self._typing.done()

    async def _take(self) -> None:
        while self._typed and self.is_running:
            await super().on_event(self._typed.popleft())
            for _ in range(_STEPS):
                await self._is_handled()

    async def _is_handled(self) -> None:
        """Wait until all on the way from the focus to here have handled what they were sent."""
        pumps: list[MessagePump] = [self.focused] if self.focused is not None else []
        pumps += [self.screen, self]
        for pump in pumps:
            handled = asyncio.Event()
            if pump.is_running and pump.call_later(handled.set):
                try:
                    await asyncio.wait_for(handled.wait(), _PATIENCE)
                except TimeoutError:
                    continue
