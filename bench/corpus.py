"""What ``habitus corpus build`` needs: ``PYTHONPATH=engine python bench/corpus.py``.

Writes synthetic submissions with the fields of a dump (about 1.7 kB a line, one kept in two), as
one zstd frame with the window named, runs the command in a process of its own, and prints its
peak resident memory (Linux) and its time. A decoder holds a window of what it has decoded, so ``--window
31`` adds up to 2 GiB with a file of that size, whoever decodes it.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import orjson
import zstandard

from habitus.corpora import find_country_map

ENGINE = Path(__file__).resolve().parents[1] / "engine"
PROGRAM = """
import sys
from habitus.cli import run
code = run()
print(*(l.split()[1] for l in open("/proc/self/status") if l.startswith("VmHWM")), file=sys.stderr)
sys.exit(code)
"""


def submissions(count: int) -> Iterator[bytes]:
    """``count`` lines; odd ones are over 18, elsewhere, removed, without text or seen before."""
    generator = random.Random(1)
    words = ["".join(generator.choices("etaoinshrdlu", k=5)) for _ in range(5000)]
    places = [name for _, name in find_country_map("square").by_subreddit.values()]
    for i in range(count):
        post = {
            "id": f"{i:x}",
            "title": " ".join(generator.choices(words, k=9)),
            "selftext": " ".join(generator.choices(words, k=120)),
            "author": f"writer{i}",
            "subreddit": generator.choice(places),
            "created_utc": 1600000000 + i,
            "num_comments": 3,
            "over_18": False,
            "removed_by_category": None,
            "url": None,
            "rest": "x" * 700,
        }
        odd = {1: {"over_18": True}, 3: {"subreddit": "tea"}, 5: {"selftext": "[removed]"},
               7: {"selftext": ""}, 9: {"id": "0"}}  # fmt: skip
        yield orjson.dumps(post | odd.get(i % 10, {})) + b"\n"


def write(path: Path, count: int, window: int) -> int:
    """Write one frame and return the bytes in it."""
    parameters = zstandard.ZstdCompressionParameters.from_level(3, window_log=min(window, 27))
    size = 0
    with path.open("wb") as file:
        compressor = zstandard.ZstdCompressor(compression_params=parameters).compressobj()
        for line in submissions(count):
            size += len(line)
            file.write(compressor.compress(line))
        file.write(compressor.flush())
    if window > 27:  # the descriptor of the window stands after magic number and flags
        with path.open("r+b") as file:
            file.seek(5)
            file.write(bytes([(window - 10) << 3]))
    return size


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--posts", type=int, default=200_000)
    parser.add_argument("--window", type=int, default=27, help="log2 of the window, 10 to 31")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        dump, out = Path(folder) / "RS.zst", Path(folder) / "posts.parquet"
        size = write(dump, given.posts, given.window)
        start = time.perf_counter()
        done = subprocess.run(
            [sys.executable, "-c", PROGRAM, "corpus", "build", str(dump), "-o", str(out), "--json"],
            env={**os.environ, "PYTHONPATH": str(ENGINE)},
            capture_output=True,
            text=True,
            check=True,
        )
        seconds = time.perf_counter() - start
        counts = json.loads(done.stdout)
        peak = int(done.stderr.splitlines()[-1]) / 1024
        print(f"{counts['lines']:,} lines, {size / 1e6:,.0f} MB, window 2^{given.window}")
        print(f"{counts['kept']:,} kept, {out.stat().st_size / 1e6:,.1f} MB of Parquet")
        print(f"peak {peak:,.0f} MiB, {seconds:.1f} s, {counts['lines'] / seconds:,.0f} lines/s")


if __name__ == "__main__":
    main()
