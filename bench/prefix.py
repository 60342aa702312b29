"""What share of its prompt tokens a server with a prefix cache must compute for FRANZ.

    PYTHONPATH=engine python bench/prefix.py [answers] [in flight]

A simulated server: blocks of 16 tokens (four characters a token), 300,000 tokens in the cache, the
oldest given up first; a prompt's blocks are found by others once it has been read. Answers of 512
tokens to questions of 150, in random words. The order of requests is that of `habitus judge`.
"""

from __future__ import annotations

import asyncio
import hashlib
import json
import random
import sys
import tempfile
from collections import OrderedDict
from pathlib import Path

from habitus.judges import choose
from habitus.labelling import LabellingJob, Manner, make_tasks, open_source
from habitus.models import ChatModel, ModelEntry, Opening
from habitus.models.scripted import Helpers, ScriptedModel, ScriptedOptions
from habitus.records import Reply, Request
from habitus.running import JobRequest, run_job

BLOCK = 64  # characters: 16 tokens
BLOCKS = 300_000 // 16


class Server:
    """A model with a prefix cache, that counts blocks."""

    def __init__(self, in_flight: int) -> None:
        self.name = "served"
        self.computed = self.total = 0
        self._slots = asyncio.Semaphore(in_flight)
        self._cache: OrderedDict[bytes, None] = OrderedDict()
        self._script = ScriptedModel("served", Helpers(ScriptedOptions(script="helpers")))

    async def complete(self, request: Request) -> Reply:
        async with self._slots:
            blocks = list(self._blocks(request))
            found = next((i for i, b in enumerate(blocks) if b not in self._cache), len(blocks))
            self.total += len(blocks)
            self.computed += len(blocks) - found
            await asyncio.sleep(0.02)  # others that come meanwhile do not find it
            for block in blocks:
                self._cache[block] = None
                self._cache.move_to_end(block)
            while len(self._cache) > BLOCKS:
                self._cache.popitem(last=False)
            return await self._script.complete(request)

    async def aclose(self) -> None:
        pass

    @staticmethod
    def _blocks(request: Request) -> list[bytes]:
        text = "\0".join(message.text for message in request.all_messages).encode()
        hasher, blocks = hashlib.blake2b(digest_size=8), []
        for start in range(0, len(text), BLOCK):
            hasher.update(text[start : start + BLOCK])
            blocks.append(hasher.digest())
        return blocks


def answers(path: Path, number: int) -> None:
    draw = random.Random(1)

    def words(tokens: int) -> str:
        text = " ".join(f"{draw.randrange(16**5):05x}" for _ in range(tokens))
        return text[: tokens * 4]

    rows = [{"question": words(150), "response": words(512)} for _ in range(number)]
    path.write_text("\n".join(map(json.dumps, rows)))


def measured(path: Path, in_flight: int, *, batched: bool) -> str:
    servers: list[Server] = []

    def opened(_name: str, _entry: ModelEntry, _opening: Opening) -> ChatModel:
        servers.append(Server(in_flight))
        return servers[0]

    entry = ModelEntry(backend="scripted", concurrency=in_flight)
    tasks = make_tasks(choose(["franz"]), {}, "served", Manner(batched=batched))
    source = open_source(path, needs={"question", "response"})
    job = LabellingJob(source, tasks, {"served": entry})
    request = JobRequest(out=path.with_name(f"run-{batched}"), opener=opened)
    summary = run_job(job, request)
    share = servers[0].computed / servers[0].total
    return f"{summary.calls:>6} calls, {servers[0].total * 16:>10,} tokens, computed {share:.3f}"


def main() -> None:
    number, in_flight = (int(a) for a in [*sys.argv[1:], "200", "256"][:2])
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "answers.jsonl"
        answers(path, number)
        for batched in (False, True):
            name = "cues and maxims together" if batched else "one call a verdict"
            print(f"{name:<26}{measured(path, in_flight, batched=batched)}")


if __name__ == "__main__":
    main()
