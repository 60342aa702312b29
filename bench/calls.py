"""What a call costs, from ``Recorded.complete`` to the wire and back to the log.

    python bench/calls.py [--calls 5000] [--in-flight 256] [--history 0] [--floor]

A mock server with 200 ms latency runs in another process. Ideal wall time is calls x latency /
in flight. Logs: ``null`` keeps nothing, ``store`` is the durable store of the engine. CPU is
user and system time of the client's process while it calls. With ``--history`` each request has
a shared beginning of that many bytes.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "engine"))

from habitus.models import CallLog, ModelEntry, Recorded, open_model
from habitus.records import Message, Outcome, Prefix, Reply, Request, Sampling
from habitus.store import RunDir
from mock_server import running

LATENCY = 0.2
SENTENCE = "My mother cooks for the whole family and the doctor said I should eat less salt. "


class NullLog:
    """Keeps nothing."""

    def find(self, _: bytes) -> Reply | None:
        return None

    async def add(self, key: bytes, request: Request, reply: Reply, model: str) -> None:
        pass


def open_log(name: str, stack: ExitStack) -> CallLog:
    if name == "null":
        return NullLog()
    folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="habitus-bench-")))
    return stack.enter_context(RunDir.create(folder / "run", {})).calls


def histories(size: int, number: int) -> list[Prefix | None]:
    """Shared beginnings of ``size`` bytes, in turns of about 250 bytes."""
    if not size:
        return [None]
    pairs = size // (2 * 3 * len(SENTENCE))
    turns = [
        turn
        for i in range(pairs)
        for turn in (Message("user", f"{i} {SENTENCE * 3}"), Message("assistant", SENTENCE * 3))
    ]
    return [Prefix((Message("user", f"Persona {n}."), *turns)) for n in range(number)]


def requests(calls: int, history: int) -> Iterator[Request]:
    """Requests of about 4 kB each, or 600 bytes behind a history; 52 in a row share one."""
    prefixes = histories(history, -(-calls // 52))
    text = SENTENCE * (7 if history else 48)
    sampling = Sampling(temperature=0.7, max_tokens=500)
    before = () if history else (Message("system", "You give advice."),)
    for n in range(calls):
        yield Request(
            messages=(*before, Message("user", f"{text} ({n})")),
            prefix=prefixes[n // 52 % len(prefixes)],
            sampling=sampling,
            seed=n,
        )


async def drive(url: str, log: CallLog, args: argparse.Namespace) -> float:
    """Seconds that all calls took.

    There are more workers than slots: while one waits for its reply to be durable, another one
    uses the slot.
    """
    in_flight = args.in_flight
    entry = ModelEntry(backend="openai", model="mock", base_url=url, concurrency=in_flight)
    model = Recorded(open_model("mock", entry), entry.identity("mock"), log)
    waiting = requests(args.calls, args.history)

    async def worker() -> None:
        for request in waiting:
            await model.complete(request)

    began = time.perf_counter()
    async with asyncio.TaskGroup() as group:
        for _ in range(round(in_flight * args.workers)):
            group.create_task(worker())
    wall = time.perf_counter() - began
    await model.aclose()
    assert model.counters.outcomes[Outcome.OK] == args.calls, model.counters
    return wall


def peak_mb() -> float:
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak / (2**20 if sys.platform == "darwin" else 1024)


def measure(args: argparse.Namespace) -> None:
    import uvloop

    calls, in_flight, name = args.calls, args.in_flight, args.log[0]
    with ExitStack() as stack:
        log = open_log(name, stack)
        before, used = peak_mb(), os.times()
        wall = uvloop.run(drive(args.url, log, args))
    now = os.times()
    cpu = now.user + now.system - used.user - used.system
    ideal = calls * LATENCY / in_flight
    print(
        f"{name:10} {calls:7} {in_flight:10} {wall / ideal:11.3f} {cpu / calls * 1000:12.3f}"
        f" {peak_mb():9.0f} {(peak_mb() - before) * 1024 / calls:11.2f}",
        flush=True,
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--calls", type=int, default=5000)
    parser.add_argument("--in-flight", type=int, default=256)
    parser.add_argument("--history", type=int, default=0, help="bytes of a shared beginning")
    parser.add_argument("--workers", type=float, default=1.25, help="workers for each slot")
    parser.add_argument("--log", action="append", choices=["null", "store"])
    parser.add_argument("--floor", action="store_true", help="measure the bare protocol as well")
    parser.add_argument("--url", help="run in this process against a server that is up")
    args = parser.parse_args()
    args.log = args.log or ["null"]
    if args.url:
        measure(args)
        return
    sizes = ["--calls", str(args.calls), "--in-flight", str(args.in_flight)]
    if args.floor:
        with running(LATENCY) as url:
            script = str(Path(__file__).with_name("clients.py"))
            subprocess.run(
                [sys.executable, script, "--client", "floor+uvloop", "--url", url, *sizes],
                check=True,
            )
    print(
        "log          calls  in flight  wall/ideal  CPU s/1,000   peak MB  kB per call", flush=True
    )
    for log in args.log:
        with running(LATENCY) as url:
            own = [sys.executable, __file__, "--url", url, "--log", log, *sizes]
            own += ["--history", str(args.history), "--workers", str(args.workers)]
            subprocess.run(own, check=True)


if __name__ == "__main__":
    main()
