"""Work that ends in order when it is asked to: its tasks are cancelled, and then it is interrupted.

    run_until_ended(session.run(), loop_factory)

An interrupt (Ctrl-C) does that by ``asyncio.Runner``. A shell has what it starts behind it (``&``) ignore
interrupts, and a runner then has no way to end; a request to end (SIGTERM) takes that way there.
The module does not know what the work is.
"""

from __future__ import annotations

import asyncio
import signal
import threading
from collections.abc import Callable, Coroutine
from typing import Any


def run_until_ended(
    work: Coroutine[Any, Any, None], loop_factory: Callable[[], asyncio.AbstractEventLoop] | None
) -> None:
    """Run some work in a loop of its own.

    Raises:
        KeyboardInterrupt: it was interrupted, or asked to end where interrupts are ignored.
    """
    ignored = signal.getsignal(signal.SIGINT) is signal.SIG_IGN
    with asyncio.Runner(loop_factory=loop_factory) as runner:
        if not ignored or threading.current_thread() is not threading.main_thread():
            runner.run(work)
            return
        before = signal.getsignal(signal.SIGTERM)
        signal.signal(signal.SIGINT, signal.default_int_handler)  # or a runner has no handler
        try:
            runner.run(_ended_by_requests(work))
        finally:
            signal.signal(signal.SIGINT, signal.SIG_IGN)
            signal.signal(signal.SIGTERM, before)


async def _ended_by_requests(work: Coroutine[Any, Any, None]) -> None:
    """The handler that the runner has made for interrupts becomes that of requests to end."""
    signal.signal(signal.SIGTERM, signal.getsignal(signal.SIGINT))
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    await work
