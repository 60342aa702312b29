"""What the store costs: ``PYTHONPATH=engine python bench/store.py``.

CPU seconds are user + system of the whole process; the ratio to JSON lines with one fsync for each
256 calls, measured in the same run, says more than the seconds. Calls are 4.2 kB: a rubric of
about 3.1 kB as the prefix, an answer to be judged, a verdict with its reason.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import random
import resource
import sqlite3
import tempfile
import time
import tracemalloc
from collections.abc import Iterator
from pathlib import Path

import orjson

from habitus.records import Message, Outcome, Prefix, Reply, Request, Sampling, Usage, call_key
from habitus.store import RunDir

IN_FLIGHT = 256


def words(generator: random.Random, size: int) -> str:
    """Text with word frequencies by Zipf's law; zstd shrinks it about as much as model answers."""
    out: list[str] = []
    length = 0
    while length < size:
        word = _WORDS[int(len(_WORDS) ** generator.random()) - 1]
        out.append(word)
        length += len(word) + 1
    return " ".join(out)


def _vocabulary() -> list[str]:
    generator = random.Random(1)
    letters = "etaoinshrdlucmfwypvbgk"
    return ["".join(generator.choices(letters, k=generator.randint(2, 9))) for _ in range(10_000)]


_WORDS = _vocabulary()


def calls(count: int, rubrics: int = 15) -> list[tuple[bytes, Request, Reply]]:
    """``count`` calls, rubric by rubric: the answers are the same under each rubric."""
    generator = random.Random(2)
    prefixes = [Prefix((Message("system", words(generator, 3100)),)) for _ in range(rubrics)]
    answers = [words(generator, 440) for _ in range(-(-count // rubrics))]
    out = []
    for number in range(count):
        prefix = prefixes[number // len(answers)]
        request = Request(
            (Message("user", answers[number % len(answers)]),),
            prefix,
            Sampling(temperature=0.7, max_tokens=512),
            seed=generator.getrandbits(31),
            stage="verdicts",
            record=f"target/hist/maori-{number % 60:02d}/health-{number % 52:03d}/r0",
        )
        reply = Reply(
            Outcome.OK,
            words(generator, 300) + " ##Yes##",
            finish="stop",
            usage=Usage(900 + number % 50, 80 + number % 30, 800),
            sent={"model": "some/model-7b", "temperature": 0.7, "max_tokens": 512,
                  "seed": request.seed},
            latency=generator.random(),
        )  # fmt: skip
        out.append((call_key("some model", request), request, reply))
    return out


def plain_line(key: bytes, request: Request, reply: Reply) -> bytes:
    """The same call as one self-contained JSON line."""
    return orjson.dumps({
        "key": key.hex(), "model": "some model", "stage": request.stage, "record": request.record,
        "messages": [(m.role, m.text) for m in request.all_messages], "seed": request.seed,
        "temperature": request.sampling.temperature, "max_tokens": request.sampling.max_tokens,
        "text": reply.text, "finish": reply.finish, "sent": dict(reply.sent),
        "usage": (reply.usage.prompt, reply.usage.completion, reply.usage.cached),
        "latency": reply.latency,
    })  # fmt: skip


def write_plain(path: Path, items: list[tuple[bytes, Request, Reply]]) -> None:
    with path.open("wb") as file:
        for start in range(0, len(items), IN_FLIGHT):
            file.writelines(plain_line(*item) + b"\n" for item in items[start : start + IN_FLIGHT])
            file.flush()
            os.fsync(file.fileno())


async def write_store(
    path: Path, items: list[tuple[bytes, Request, Reply]], workers: int = IN_FLIGHT
) -> None:
    todo: Iterator[tuple[bytes, Request, Reply]] = iter(items)

    async def work(run: RunDir) -> None:
        for key, request, reply in todo:
            if run.calls.find(key) is None:
                await run.calls.add(key, request, reply, "some model")

    with RunDir.create(path, {"seed": 1}) as run:
        await asyncio.gather(*(work(run) for _ in range(workers)))


def cpu(action: object) -> float:
    start = time.process_time()
    action()  # type: ignore[operator]
    return time.process_time() - start


def size(path: Path) -> int:
    return (path / "run.sqlite").stat().st_size


def measure_writing(folder: Path, count: int) -> None:
    items = calls(count)
    plain = [cpu(lambda n=n: write_plain(folder / f"plain{n}", items)) for n in range(3)]
    bytes_plain = (folder / "plain0").stat().st_size / count
    stored = [
        cpu(lambda n=n: asyncio.run(write_store(folder / f"run{n}", items))) for n in range(3)
    ]
    shuffled = random.Random(3).sample(items, count)
    mixed = cpu(lambda: asyncio.run(write_store(folder / "mixed", shuffled)))
    grouped = cpu(lambda: asyncio.run(write_store(folder / "grouped", items, workers=25)))
    few = items[:500]
    slow = cpu(lambda: asyncio.run(write_store(folder / "slow", few, workers=1)))
    again = cpu(lambda: read_all(folder / "run0", items))
    for name, seconds, number, held in (
        ("JSON lines + fsync", min(plain), count, bytes_plain),
        ("store, in order", min(stored), count, size(folder / "run0") / count),
        ("store, random order", mixed, count, size(folder / "mixed") / count),
        ("store, groups of 25", grouped, count, size(folder / "grouped") / count),
        ("store, one in flight", slow, len(few), size(folder / "slow") / len(few)),
        ("find all again", again, count, 0.0),
    ):
        per_thousand = 1000 * seconds / number
        print(
            f"{name:24}{per_thousand:8.3f} CPU s per 1,000{held:8.0f} bytes a call"
            f"{per_thousand / (1000 * min(plain) / count):8.1f} x plain"
        )


def read_all(path: Path, items: list[tuple[bytes, Request, Reply]]) -> None:
    with RunDir.open(path, write=False) as run:
        for key, _, reply in items:
            found = run.calls.find(key)
            assert found is not None
            assert found.text == reply.text


def measure_memory(folder: Path, count: int) -> None:
    items = calls(count)
    asyncio.run(write_store(folder / "warm", items[:1000]))
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    asyncio.run(write_store(folder / "memory", items))
    after = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    print(
        f"peak memory grows by     {(after - before) / count:8.3f} kB a call over {count:,} calls"
    )
    tracemalloc.start()
    asyncio.run(write_store(folder / "traced", items[: count // 4]))
    held, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    print(f"traced: held {held / 2**20:.1f} MiB, peak {peak / 2**20:.1f} MiB")


def measure_keys(folder: Path, count: int) -> None:
    with RunDir.create(folder / "many", {}):
        pass
    connection = sqlite3.connect(folder / "many" / "run.sqlite", isolation_level=None)
    connection.execute("BEGIN")
    connection.execute("INSERT INTO kinds (id, stage, model, outcome) VALUES (1, 's', 'm', 'ok')")
    for first in range(0, count, 256):
        keys = [os.urandom(16) for _ in range(min(256, count - first))]
        row = (first + 1, len(keys), b"".join(keys), os.urandom(80_000))
        connection.execute("INSERT INTO packs VALUES (?, ?, ?, ?)", row)
        rows = [(key, first + 1 + at, 1) for at, key in enumerate(keys)]
        connection.executemany("INSERT INTO calls VALUES (?, ?, ?)", rows)
    connection.execute("COMMIT")
    connection.close()
    with RunDir.open(folder / "many", write=False) as run:
        seconds = min(cpu(run.calls.keys) for _ in range(3))
        found = len(run.calls.keys())
    print(f"keys of {found:,} calls{seconds:13.3f} CPU s")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--calls", type=int, default=10_000)
    parser.add_argument("--keys", type=int, default=1_000_000)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        measure_writing(Path(name), options.calls)
    with tempfile.TemporaryDirectory() as name:
        measure_memory(Path(name), 2 * options.calls)
    with tempfile.TemporaryDirectory() as name:
        measure_keys(Path(name), options.keys)


if __name__ == "__main__":
    main()
