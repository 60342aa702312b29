"""A chat-completions server on loopback that follows a script of answers and faults.

    async with serving(status(500), answer("Rice.")) as server:
        model = server.model()
        reply = await model.complete(ask("What?"))
    assert server.bodies[0]["model"] == "m"

Each request takes the next step of the script; the last step is repeated. A step is a function
of the request's body and may look at it, so a server that rejects parameters is one as well.
"""

from __future__ import annotations

import asyncio
import json
import threading
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Mapping
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass, field
from typing import Any

from aiohttp import web
from aiohttp.test_utils import TestServer

from habitus.models import ChatModel, ModelEntry, Opening, open_model
from habitus.records import Message, Request

Step = Callable[[web.Request, dict[str, Any]], Awaitable[web.StreamResponse]]

USAGE = {
    "prompt_tokens": 50,
    "completion_tokens": 7,
    "total_tokens": 57,
    "prompt_tokens_details": {"cached_tokens": 40},
}
KEY = "sk-secret-of-the-tests"


class VirtualClock:
    """A clock that moves only when somebody sleeps, and keeps what was slept."""

    def __init__(self) -> None:
        self.time = 1000.0
        self.epoch = 1_800_000_000.0
        self.sleeps: list[float] = []

    def now(self) -> float:
        return self.time

    def wall(self) -> float:
        return self.epoch + self.time

    async def sleep(self, seconds: float) -> None:
        until = self.time + seconds
        self.sleeps.append(seconds)
        await asyncio.sleep(0)
        self.time = max(self.time, until)


@dataclass
class Server:
    """A running server and what it was asked."""

    url: str = ""
    clock: VirtualClock = field(default_factory=VirtualClock)
    bodies: list[dict[str, Any]] = field(default_factory=list)
    headers: list[Mapping[str, str]] = field(default_factory=list)
    times: list[float] = field(default_factory=list)
    busy: int = 0
    busiest: int = 0
    script: list[Step] = field(default_factory=list)
    opened: list[ChatModel] = field(default_factory=list)
    listed: list[dict[str, Any]] = field(default_factory=list)
    opening: Opening = field(init=False)

    def __post_init__(self) -> None:
        self.opening = Opening(environ={"KEY": KEY}, clock=self.clock)

    def entry(self, **settings: Any) -> ModelEntry:
        plain = {"backend": "openai", "model": "m", "base_url": self.url, "api_key_env": "KEY"}
        return ModelEntry.model_validate(plain | settings)

    def model(self, **settings: Any) -> ChatModel:
        model = open_model("target", self.entry(**settings), self.opening)
        self.opened.append(model)
        return model


@asynccontextmanager
async def serving(*steps: Step) -> AsyncIterator[Server]:
    """A server that takes one step for each request."""
    server = Server(script=list(steps) or [answer("Rice.")])
    script = server.script

    async def respond(request: web.Request) -> web.StreamResponse:
        server.busy += 1
        server.busiest = max(server.busiest, server.busy)
        try:
            body = json.loads(await request.read())
            server.bodies.append(body)
            server.headers.append(request.headers)
            server.times.append(server.clock.now())
            step = script.pop(0) if len(script) > 1 else script[0]
            return await step(request, body)
        finally:
            server.busy -= 1

    async def listing(_: web.Request) -> web.StreamResponse:
        return web.json_response({"object": "list", "data": server.listed})

    app = web.Application(client_max_size=2**26)
    app.router.add_post("/v1/chat/completions", respond)
    app.router.add_get("/v1/models", listing)
    async with TestServer(app) as running:
        server.url = str(running.make_url("/v1"))
        try:
            yield server
        finally:
            for model in server.opened:
                await model.aclose()


@contextmanager
def served(*steps: Step) -> Iterator[Server]:
    """The same server in a thread of its own, for commands and runs that have their own loop."""
    ready, leave = threading.Event(), threading.Event()
    found: list[Server] = []

    async def serve() -> None:
        async with serving(*steps) as server:
            found.append(server)
            ready.set()
            await asyncio.to_thread(leave.wait)

    thread = threading.Thread(target=lambda: asyncio.run(serve()))
    thread.start()
    ready.wait()
    try:
        yield found[0]
    finally:
        leave.set()
        thread.join()


def ask(text: str = "What shall I eat?", **fields: Any) -> Request:
    """A request with one user message."""
    return Request(messages=(Message("user", text),), **fields)


def conversation(*pairs: tuple[str, str]) -> tuple[Message, ...]:
    """Messages from (role, text)."""
    return tuple(Message(role, text) for role, text in pairs)  # type: ignore[arg-type]


def completion(message: Mapping[str, Any], finish: str | None = "stop", **rest: Any) -> bytes:
    """The body of a chat completion."""
    choice = {"index": 0, "finish_reason": finish, "message": {"role": "assistant", **message}}
    return json.dumps(
        {"object": "chat.completion", "choices": [choice], "usage": USAGE, **rest}
    ).encode()


def answer(text: str | None, finish: str | None = "stop", **message: Any) -> Step:
    """A usual answer; more fields go into the message."""
    return raw(completion({"content": text, **message}, finish))


def raw(body: bytes, status: int = 200, headers: Mapping[str, str] | None = None) -> Step:
    """Any bytes."""

    async def step(_: web.Request, __: dict[str, Any]) -> web.StreamResponse:
        return web.Response(
            body=body, status=status, headers=headers, content_type="application/json"
        )

    return step


def status(number: int, message: str = "it failed", /, **fields: Any) -> Step:
    """An error body in OpenAI's form; ``headers`` may be among the fields."""
    headers = fields.pop("headers", None)
    return raw(json.dumps({"error": {"message": message, **fields}}).encode(), number, headers)


def _close(request: web.Request) -> None:
    if request.transport is not None:  # else the other side was first
        request.transport.close()


def dropped() -> Step:
    """The connection ends before any answer."""

    async def step(request: web.Request, _: dict[str, Any]) -> web.StreamResponse:
        _close(request)
        return web.Response()

    return step


def half() -> Step:
    """The connection ends in the middle of the body."""

    async def step(request: web.Request, _: dict[str, Any]) -> web.StreamResponse:
        response = web.StreamResponse(headers={"Content-Length": "5000"})
        await response.prepare(request)
        await response.write(b'{"choices": [')
        _close(request)
        return response

    return step


def waiting(event: asyncio.Event, then: Step | None = None) -> Step:
    """Answers when an event is set."""

    async def step(request: web.Request, body: dict[str, Any]) -> web.StreamResponse:
        await event.wait()
        return await (then or answer("Rice."))(request, body)

    return step


def rejecting(objection: Callable[[dict[str, Any]], str | None], code: int = 400) -> Step:
    """Says 400 with the words of ``objection``, or answers when it has none."""

    async def step(request: web.Request, body: dict[str, Any]) -> web.StreamResponse:
        words = objection(body)
        then = answer("Rice.") if words is None else status(code, words)
        return await then(request, body)

    return step
