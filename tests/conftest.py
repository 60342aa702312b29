"""What all tests share: no network beyond this machine."""

from __future__ import annotations

import socket
from typing import Any

import pytest

_LOCAL = {"localhost", "127.0.0.1", "::1", "0.0.0.0"}


@pytest.fixture(autouse=True)
def no_network(monkeypatch: pytest.MonkeyPatch) -> None:
    """Refuse to connect to anything but loopback."""
    connect = socket.socket.connect

    def guarded(self: socket.socket, address: Any) -> None:
        if isinstance(address, tuple) and str(address[0]) not in _LOCAL:
            pytest.fail(f"a test reached for the network: {address[0]}")
        connect(self, address)

    monkeypatch.setattr(socket.socket, "connect", guarded)
