"""The embedded model: tokens a second, the share of prompts found in the cache, equal bytes.

    python bench/local.py [--model FILE.gguf] [--turns 3] [--tokens 24] [--slots 1] [--threads N]

Three conversations (persona, assistant, judge) take turns at one model, as in a run. The same
requests are asked with llama.cpp's prefix cache off, with what a slot holds, and with memory
for conversations that have lost their slot; then again in another order and all at once. The
last column says how many replies differ from those of the first row (in the last block, from
the first of the block): with the default weights on Linux and ``reproducible`` none may.
"""

from __future__ import annotations

import argparse
import asyncio
import random
import time
from collections.abc import Sequence
from typing import Any

from habitus.models import ModelEntry, Opening, open_model
from habitus.records import Message, Reply, Request, Sampling

WORDS = [
    "river",
    "stone",
    "market",
    "teacher",
    "garden",
    "window",
    "letter",
    "bread",
    "morning",
    "doctor",
    "music",
    "train",
]


def text(words: int, rng: random.Random) -> str:
    return " ".join(rng.choice(WORDS) for _ in range(words))


def conversations(turns: int, tokens: int) -> list[list[Request]]:
    """For each conversation its requests; each begins with all that was said before."""
    rng = random.Random(1)
    sampling = Sampling(temperature=0.7, max_tokens=tokens)
    every = []
    for role in ("a patient", "an assistant", "a judge"):
        said = [Message("system", f"You are {role}. {text(120, rng)}")]
        requests = []
        for turn in range(turns):
            said.append(Message("user", text(25, rng)))
            requests.append(
                Request(tuple(said), sampling=sampling, seed=7, record=f"{role} {turn}")
            )
            said.append(Message("assistant", text(25, rng)))
        every.append(requests)
    return every


def alternating(every: list[list[Request]]) -> list[Request]:
    return [request for turn in zip(*every, strict=True) for request in turn]


async def row(
    label: str, model: Any, requests: Sequence[Request], expected: dict[str, str]
) -> None:
    began = time.perf_counter()
    if label.endswith("at once"):
        replies: list[Reply] = await asyncio.gather(*map(model.complete, requests))
    else:
        replies = [await model.complete(request) for request in requests]
    wall = time.perf_counter() - began
    prompt = sum(r.usage.prompt or 0 for r in replies)
    cached = sum(r.usage.cached or 0 for r in replies)
    made = sum(r.usage.completion or 0 for r in replies)
    texts = {q.record: r.text for q, r in zip(requests, replies, strict=True)}
    differ = sum(text != expected.setdefault(record, text) for record, text in texts.items())
    print(
        f"{label:34}{wall:7.1f} s{prompt:8}{cached / prompt:8.0%}{made:8}"
        f"{made / wall:8.0f}/s{differ:5} of {len(texts)}",
        flush=True,
    )


async def main(options: argparse.Namespace) -> None:
    requests = alternating(conversations(options.turns, options.tokens))
    shuffled = random.Random(2).sample(requests, len(requests))
    expected: dict[str, str] = {}
    print(f"{'':34}{'wall':>9}{'prompt':>8}{'cached':>8}{'made':>8}{'made':>10}  differ")
    variants: list[tuple[str, dict[str, Any]]] = [
        ("no cache", {"prefix_cache": False}),
        ("cache of the slot", {"cache_mib": 0}),
        ("cache of the slot and of memory", {}),
        ("as llama.cpp is by itself", {"reproducible": False}),
    ]
    for label, settings in variants:
        chosen = {"slots": options.slots, "threads": options.threads, **settings}
        entry = ModelEntry(backend="local", model=options.model, options=chosen)
        model = open_model("bench", entry, Opening())
        if "reproducible" in settings:
            expected = {}
        await row(label, model, requests, expected)
        if settings.get("prefix_cache", True) and "cache_mib" not in settings:
            await row("  another order", model, shuffled, expected)
            await row("  all at once", model, requests, expected)
        await model.aclose()


if __name__ == "__main__":
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--model", default="")
    parser.add_argument("--turns", type=int, default=3)
    parser.add_argument("--tokens", type=int, default=24)
    parser.add_argument("--slots", type=int, default=1)
    parser.add_argument("--threads", type=int)
    asyncio.run(main(parser.parse_args()))
