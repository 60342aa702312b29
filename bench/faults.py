"""What faults of a server cost: calls against the fault server of the tests, with more and more of them.

    python bench/faults.py [--calls 2000] [--in-flight 64] [--latency 0.05]

For each share of asks that fail in passing: seconds, requests on the wire for each call, and how
calls ended. Every kind of fault is met in equal shares, those with Retry-After among them.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "engine"))

from habitus.models import ModelEntry, open_model
from habitus.records import Message, Reply, Request

ROOT = Path(__file__).resolve().parents[1]
SHARES = (0.0, 0.01, 0.05, 0.2)


@contextmanager
def serving(passing: float, latency: float) -> Iterator[str]:
    """The address of a fault server in another process."""
    command = [sys.executable, str(ROOT / "tests" / "fault_server.py")]
    command += ["--passing", str(passing), "--latency", str(latency)]
    found = {**os.environ, "PYTHONPATH": str(ROOT / "engine")}
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=found) as process:
        assert process.stdout is not None
        try:
            yield process.stdout.readline().strip()
        finally:
            process.kill()


async def call(url: str, calls: int, in_flight: int) -> tuple[float, list[Reply]]:
    """Seconds and replies."""
    entry = ModelEntry(backend="openai", model="m", base_url=url, concurrency=in_flight)
    model = open_model("target", entry)
    began = time.perf_counter()
    replies = await asyncio.gather(
        *(model.complete(Request((Message("user", f"{n}"),), seed=n)) for n in range(calls))
    )
    seconds = time.perf_counter() - began
    await model.aclose()
    return seconds, replies


def main() -> None:
    """Print a line for each share."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--calls", type=int, default=2000)
    parser.add_argument("--in-flight", type=int, default=64)
    parser.add_argument("--latency", type=float, default=0.05)
    given = parser.parse_args()
    print("passing\tseconds\trequests a call\toutcomes")
    for share in SHARES:
        with serving(share, given.latency) as url:
            seconds, replies = asyncio.run(call(url, given.calls, given.in_flight))
        sent = sum(reply.attempts for reply in replies) / len(replies)
        ended = dict(Counter(str(reply.outcome) for reply in replies))
        print(f"{share:.0%}\t{seconds:.1f}\t{sent:.2f}\t{ended}", flush=True)


if __name__ == "__main__":
    main()
