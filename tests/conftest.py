"""What all tests share: where the package lies, and no network beyond this machine."""

from __future__ import annotations

import os
import signal
import socket
from pathlib import Path
from typing import Any

import pytest
from hypothesis import settings

# No test depends on the clock: a machine that is busy is no failure.
settings.register_profile("usual", settings(), deadline=None)
settings.load_profile("usual")
#: ``make soak``: every property of a reader on 2,000 examples that differ from time to time.
settings.register_profile("soak", max_examples=2000, deadline=None, print_blob=True)

_ENGINE = str(Path(__file__).resolve().parents[1] / "engine")
_LOCAL = {"localhost", "127.0.0.1", "::1", "0.0.0.0"}


# Programs that tests start find the package as the tests do, installed or not.
os.environ["PYTHONPATH"] = os.pathsep.join(
    part for part in (_ENGINE, os.environ.get("PYTHONPATH", "")) if part
)

# A shell starts what it puts in the background with interrupts ignored, and programs pass that on. Tests
# of interrupts start from what a terminal gives; the one about such shells ignores them itself.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.fixture(autouse=True)
def no_network(monkeypatch: pytest.MonkeyPatch) -> None:
    """Refuse to connect to anything but loopback."""
    connect = socket.socket.connect

    def guarded(self: socket.socket, address: Any) -> None:
        if isinstance(address, tuple) and str(address[0]) not in _LOCAL:
            pytest.fail(f"a test reached for the network: {address[0]}")
        connect(self, address)

    monkeypatch.setattr(socket.socket, "connect", guarded)
