"""Which client can carry the calls? CPU and wall time of each against one mock server.

    python bench/clients.py [--calls 5000] [--in-flight 256]

Each client runs in a process of its own, with as many workers as requests in flight. The ideal
wall time is calls x latency / in flight. ``floor`` is a bare protocol that only writes prepared
bytes: what the loop and the server cost with any client.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import resource
import subprocess
import sys
import time
from collections.abc import Awaitable, Callable
from importlib.util import find_spec

import orjson

from mock_server import running

Call = Callable[[int], Awaitable[None]]
PROMPT = "My mother cooks for the whole family and the doctor said I should eat less salt. " * 48


def body(number: int) -> dict[str, object]:
    messages = [
        {"role": "system", "content": "You give advice."},
        {"role": "user", "content": f"{PROMPT} ({number})"},
    ]
    return {"model": "mock", "messages": messages, "temperature": 0.7, "max_tokens": 500}


async def openai_calls(
    url: str, in_flight: int, aiohttp: bool
) -> tuple[Call, Callable[[], Awaitable[None]]]:
    import httpx2
    from openai import AsyncOpenAI, DefaultAioHttpClient

    limits = httpx2.Limits(max_connections=in_flight, max_keepalive_connections=in_flight)
    http = DefaultAioHttpClient(limits=limits) if aiohttp else httpx2.AsyncClient(limits=limits)
    client = AsyncOpenAI(base_url=url, api_key="none", http_client=http, max_retries=0)

    async def call(number: int) -> None:
        reply = await client.chat.completions.create(**body(number))  # type: ignore[call-overload]
        assert reply.choices[0].message.content

    return call, client.close


async def aiohttp_calls(url: str, in_flight: int) -> tuple[Call, Callable[[], Awaitable[None]]]:
    import aiohttp

    session = aiohttp.ClientSession(connector=aiohttp.TCPConnector(limit=in_flight))
    address = f"{url}/chat/completions"
    headers = {"Content-Type": "application/json"}

    async def call(number: int) -> None:
        data = orjson.dumps(body(number))
        async with session.post(address, data=data, headers=headers) as response:
            reply = orjson.loads(await response.read())
        assert reply["choices"][0]["message"]["content"]

    return call, session.close


async def floor_calls(url: str, in_flight: int) -> tuple[Call, Callable[[], Awaitable[None]]]:
    host, port = url.split("/")[2].split(":")
    free = [await asyncio.open_connection(host, int(port)) for _ in range(in_flight)]

    async def call(number: int) -> None:
        reader, writer = free.pop()
        data = orjson.dumps(body(number))
        writer.write(b"POST / HTTP/1.1\r\nContent-Length: %d\r\n\r\n" % len(data) + data)
        head = await reader.readuntil(b"\r\n\r\n")
        await reader.readexactly(int(head.rpartition(b"Content-Length: ")[2].split(b"\r\n")[0]))
        free.append((reader, writer))

    async def close() -> None:
        for _, writer in free:
            writer.close()

    return call, close


async def drive(name: str, url: str, calls: int, in_flight: int) -> None:
    openers = {
        "openai": lambda: openai_calls(url, in_flight, aiohttp=False),
        "openai+aiohttp": lambda: openai_calls(url, in_flight, aiohttp=True),
        "aiohttp+orjson": lambda: aiohttp_calls(url, in_flight),
        "floor": lambda: floor_calls(url, in_flight),
    }
    call, close = await openers[name.removesuffix("+uvloop")]()
    numbers = iter(range(calls))

    async def worker() -> None:
        for number in numbers:
            await call(number)

    used, began = os.times(), time.perf_counter()
    async with asyncio.TaskGroup() as group:
        for _ in range(in_flight):
            group.create_task(worker())
    wall, now = time.perf_counter() - began, os.times()
    await close()
    cpu = now.user + now.system - used.user - used.system
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    print(
        f"{name:24} {wall / (calls * 0.2 / in_flight):10.2f} {cpu / calls * 1000:18.3f} {peak:10.0f}"
    )


def one(name: str, url: str, calls: int, in_flight: int) -> None:
    if name.endswith("uvloop"):
        import uvloop

        uvloop.run(drive(name, url, calls, in_flight))
    else:
        asyncio.run(drive(name, url, calls, in_flight))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--calls", type=int, default=5000)
    parser.add_argument("--in-flight", type=int, default=256)
    parser.add_argument("--client", help="one client, in this process (used by the script itself)")
    parser.add_argument("--url", default="")
    args = parser.parse_args()
    if args.client:
        one(args.client, args.url, args.calls, args.in_flight)
        return
    print(f"{'client':24} {'wall/ideal':>10} {'CPU s per 1,000':>18} {'peak MB':>10}", flush=True)
    names = ["floor+uvloop", "aiohttp+orjson+uvloop", "aiohttp+orjson"]
    names += ["openai+aiohttp+uvloop", "openai+uvloop"]
    for name in names:
        if name.startswith("openai") and find_spec("openai") is None:
            print(f"{name:24} (openai is not installed)")
            continue
        with running() as url:
            rest = ["--client", name, "--url", url, "--calls", str(args.calls)]
            command = [sys.executable, __file__, *rest, "--in-flight", str(args.in_flight)]
            subprocess.run(command, check=True)


if __name__ == "__main__":
    main()
