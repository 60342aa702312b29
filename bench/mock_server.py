"""A chat-completions server that does as little as possible: the floor of every measurement.

    with running(latency=0.2) as url: ...

It runs in a process of its own, reads requests by their Content-Length, and answers each after
``latency`` seconds with one prepared body. It does not look at what is asked.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import subprocess
import sys
from collections.abc import Iterator

import orjson

ANSWER = (
    "Warm rice porridge with ginger is gentle on the stomach, and you can make it in one pot. "
    "Eat small portions, rest after lunch, and ask the pharmacist before you add a remedy. "
) * 3


def response() -> bytes:
    """One HTTP response with a usual chat completion in it."""
    body = orjson.dumps(
        {
            "id": "chatcmpl-0",
            "object": "chat.completion",
            "created": 0,
            "model": "mock",
            "choices": [
                {
                    "index": 0,
                    "finish_reason": "stop",
                    "logprobs": None,
                    "message": {"role": "assistant", "content": ANSWER, "refusal": None},
                }
            ],
            "usage": {
                "prompt_tokens": 1000,
                "completion_tokens": 120,
                "total_tokens": 1120,
                "prompt_tokens_details": {"cached_tokens": 900},
            },
        }
    )
    head = f"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: {len(body)}\r\n"
    return head.encode() + b"\r\n" + body


class Answering(asyncio.Protocol):
    """One connection; requests on it come one after the other."""

    def __init__(self, latency: float, answer: bytes) -> None:
        self.latency = latency
        self.answer = answer
        self.buffer = bytearray()
        self.transport: asyncio.Transport | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = transport  # type: ignore[assignment]

    def connection_lost(self, _: Exception | None) -> None:
        self.transport = None

    def data_received(self, data: bytes) -> None:
        self.buffer += data
        while (end := self.buffer.find(b"\r\n\r\n")) >= 0:
            head = bytes(self.buffer[:end]).lower()
            start = head.find(b"content-length:")
            length = int(head[start + 15 :].split(b"\r\n", 1)[0]) if start >= 0 else 0
            if len(self.buffer) < end + 4 + length:
                return
            del self.buffer[: end + 4 + length]
            asyncio.get_running_loop().call_later(self.latency, self.reply)

    def reply(self) -> None:
        if self.transport is not None:
            self.transport.write(self.answer)


async def serve(latency: float) -> None:
    answer = response()
    loop = asyncio.get_running_loop()
    server = await loop.create_server(
        lambda: Answering(latency, answer), "127.0.0.1", 0, backlog=2048
    )
    print(server.sockets[0].getsockname()[1], flush=True)
    await server.serve_forever()


@contextlib.contextmanager
def running(latency: float = 0.2) -> Iterator[str]:
    """The base URL of a server in another process."""
    command = [sys.executable, __file__, "--latency", str(latency)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        port = int(process.stdout.readline())
        try:
            yield f"http://127.0.0.1:{port}/v1"
        finally:
            process.terminate()


def main() -> None:
    import uvloop

    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--latency", type=float, default=0.2)
    with contextlib.suppress(KeyboardInterrupt):
        uvloop.run(serve(parser.parse_args().latency))


if __name__ == "__main__":
    main()
