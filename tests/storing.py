"""Calls, records and a configuration to store."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from habitus.records import (
    Outcome,
    Prefix,
    Recommendation,
    Reply,
    Request,
    Response,
    Schema,
    Usage,
    call_key,
    messages,
)
from habitus.store import RunDir

CONFIG: dict[str, Any] = {"seed": 7, "models": {"qwen2.5": {"base_url": "a", "temperature": 0.7}}}
HISTORY = Prefix(messages([("user", "Good morning. " * 300), ("assistant", "Hello. " * 300)]))
SCHEMA = Schema("verdicts", {"type": "object", "properties": {"b": {}, "a": {}}})


def call(number: int = 0, outcome: Outcome = Outcome.OK, text: str = "") -> tuple[Request, Reply]:
    asked = messages([("user", f"Question {number}?")])
    request = Request(asked, HISTORY, seed=number, stage="responses")
    return request, Reply(outcome, text or f"Answer {number}.", usage=Usage(100, 10, 90))


async def keep(run: RunDir, request: Request, reply: Reply, model: str = "m") -> bytes:
    key = call_key(model, request)
    await run.calls.add(key, request, reply, model)
    return key


async def keep_many(run: RunDir, numbers: Sequence[int]) -> list[bytes]:
    return list(await asyncio.gather(*(keep(run, *call(n)) for n in numbers)))


def response(number: int, text: str = "Rest.", outcome: Outcome = Outcome.OK) -> Response:
    return Response(
        id=f"t/hist/maori-{number:02d}/health-001/r0",
        outcome=outcome,
        reason="" if outcome is Outcome.OK else "length",
        target="t",
        setting="hist",
        persona=f"maori-{number:02d}",
        query="health-001",
        repeat=0,
        text=text,
    )


def recommendation(number: int) -> Recommendation:
    name = f"norm-{number}"
    return Recommendation(id=f"{name}/follow/health-001", norm=name, state=1, query="health-001")


def state(path: Path) -> dict[str, tuple[int, int]]:
    """Every file with its size and time of change: what writing would alter."""
    found = (p for p in path.rglob("*") if p.is_file())
    return {str(p.relative_to(path)): (p.stat().st_size, p.stat().st_mtime_ns) for p in found}
