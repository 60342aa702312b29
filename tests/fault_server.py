"""A chat-completions server that misbehaves by plan: every fault that servers were seen to have.

    plan = Plan(seed=3, passing={"429 seconds": 0.1, "half a body": 0.1}, lasting={"filtered": 0.05})
    with FaultServer(plan) as server:           # a thread of its own; other processes may ask it
        ...
        server.log                              # every request, and how it was answered

A request is named by what decides its answer: model, messages, seed. Faults are drawn from the
seed of the plan and that name, so that a plan is a test case: a *passing* fault meets a request on
its first asks and then no more; a *lasting* one is the answer to it whenever it comes; a *form*
is a way to give a good answer that says the same. Good answers depend on the name alone, follow
the JSON schema of the request, and carry a label where the prompt speaks of ``##labels##``.

The steps of ``loopback`` are the alphabet; a script of them is played with ``Plan(script=...)``
in the order of arrival. From a shell: ``python tests/fault_server.py --seed 3 --passing 0.2``.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import hashlib
import json
import re
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from email.utils import formatdate
from typing import Any, Self

from aiohttp import web

from key_echoes import repeating
from loopback import Step, answer, completion, dropped, half, raw, status

Body = Mapping[str, Any]
Good = Callable[[str], Step]
_LABEL = re.compile(r"##([^#\n]{1,60})##")
TOKENS = '<tool_call>{"name": "web_search"}</tool_call><|im_end|><|endoftext|>[INST] '


# --- faults that pass: the same request, asked again, is answered ---


def retry_after_date(seconds: float = 1.0) -> Step:
    """429 with the moment to come back as a date of HTTP."""

    async def step(request: web.Request, body: dict[str, Any]) -> web.StreamResponse:
        until = formatdate(time.time() + seconds, usegmt=True)
        return await status(429, "slow down", headers={"Retry-After": until})(request, body)

    return step


def hanging(seconds: float | None = None) -> Step:
    """The connection stays open and nothing comes, for so long or until the asker goes away."""

    async def step(request: web.Request, body: dict[str, Any]) -> web.StreamResponse:
        if seconds is None:
            await asyncio.Event().wait()
        await asyncio.sleep(seconds or 0.0)
        if request.transport is not None:
            request.transport.close()
        return web.Response()

    return step


def stalled() -> Step:
    """Half a body, and then nothing more though the connection stays open."""

    async def step(request: web.Request, _: dict[str, Any]) -> web.StreamResponse:
        response = web.StreamResponse(headers={"Content-Length": "5000"})
        await response.prepare(request)
        await response.write(b'{"choices": [')
        await asyncio.Event().wait()
        return response

    return step


def half_in_chunks() -> Step:
    """A chunked body that ends without its last chunk."""

    async def step(request: web.Request, _: dict[str, Any]) -> web.StreamResponse:
        response = web.StreamResponse()
        response.enable_chunked_encoding()
        await response.prepare(request)
        await response.write(completion({"content": "Rice."})[:40])
        if request.transport is not None:
            request.transport.close()
        return response

    return step


PASSING: Mapping[str, Step] = {
    "429 seconds": status(429, "slow down", headers={"Retry-After": "0.1"}),
    "429 milliseconds": status(429, "slow down", headers={"retry-after-ms": "50"}),
    "429 date": retry_after_date(),
    "429 date gone by": retry_after_date(-60.0),
    "429 nonsense": status(429, "slow down", headers={"Retry-After": "soon"}),
    "429": status(429, "slow down"),
    "408": status(408),
    "409": status(409),
    "500": status(500),
    "502": raw(b"<html><body>Bad Gateway</body></html>", 502),
    "503": status(503, "warming up"),
    "529": status(529, "overloaded"),
    "dropped": dropped(),
    "half a body": half(),
    "half in chunks": half_in_chunks(),
    "no JSON": raw(b"<html>busy</html>"),
    "nothing": raw(b""),
    "cut JSON": raw(completion({"content": "Rice."})[:-30]),
    "a list": raw(b"[]"),
    "no choices": raw(b'{"choices": []}'),
    "choices null": raw(b'{"choices": null}'),
    "message a list": raw(b'{"choices": [{"message": []}]}'),
    "error inside 200": raw(b'{"error": {"message": "overloaded", "code": 502}}'),
    "aborted": answer("Ri", "abort"),
}
#: Only where a call may wait for its whole time.
HANGING: Mapping[str, Step] = {"hanging": hanging(), "stalled": stalled()}


# --- answers that are none, whenever the request comes ---


def answered_400(finish: str = "content_filter", **message: Any) -> Step:
    """HTTP 400 with a whole completion in it, as some gateways report a filter."""
    return raw(completion({"content": None, **message}, finish), 400)


LASTING: Mapping[str, Step] = {
    "filtered": answer(None, "content_filter"),
    "refusal field": answer(None, refusal="I can't help."),
    "filter as an error body": status(
        400, "filtered due to our content management policy", code="content_filter"
    ),
    "filter as 400 with a completion": answered_400(),
    "refusal as 400 with a completion": answered_400("stop", refusal="I can't help."),
    "cut": answer("Rice, and", "length"),
    "cut while reasoning": answer(None, "length", reasoning="First"),
    "only reasoning": answer("", reasoning_content="First"),
    "think tag left open": answer("<think>never closed"),
    "empty": answer(""),
    "white space": answer(" \n"),
    "null": answer(None),
    "overflow": status(
        400, "maximum context length is 8192 tokens", code="context_length_exceeded"
    ),
    "too large": status(413, "request entity too large"),
}


# --- forms of one good answer ---


def _with(written: Callable[[str], str] = str, **message: Any) -> Good:
    return lambda text: answer(written(text), **message)


def _usage(usage: Any) -> Good:
    return lambda text: raw(completion({"content": text}, usage=usage))


FORMS: Mapping[str, Good] = {
    "plain": _with(),
    "reasoning": _with(reasoning="so we"),
    "reasoning_content": _with(reasoning_content="so we"),
    "think tags": _with(lambda text: f"<think>hm</think>{text}"),
    "think tag closed only": _with(lambda text: f"so we</think>{text}"),
    "think tags crossed": _with(lambda text: f"<think>a<think>b</think>c</think>{text}"),
    "no finish reason": lambda text: answer(text, None),
    "in parts": lambda text: raw(completion({"content": [{"type": "text", "text": text}]})),
    "no usage": _usage(None),
    "wrong usage": _usage({"prompt_tokens": -1, "completion_tokens": "7", "total_tokens": 10**30}),
    "more fields": _with(tool_calls=[], annotations=None, audio={"id": 1}),
}
#: What stands in front of an answer and is part of it, where the answer is text.
NOISE: Mapping[str, str] = {
    "tool tokens": TOKENS * 2,
    "lone surrogates": "R\ud800ce \udfff ",
    "NUL": "a\0b ",
    "escapes": "\x1b[2J\x07 =1+1 [bold]x[/bold] ",
    "long": "rice " * 40_000,
}
HUGE = answer("rice " * 3_500_000)


def echo(body: Body) -> Step:
    """Says again what it was asked."""
    return answer(str(body["messages"][-1]["content"]))


# --- the plan ---


@dataclass(frozen=True)
class Plan:
    """What goes wrong, and when.

    Args:
        seed: of every draw.
        passing: share of asks that meet each passing fault.
        lasting: share of requests that never get another answer than this.
        forms: names of ``FORMS``, one of which is drawn for each good answer.
        noise: share of text answers that carry each noise.
        echoing: share of text answers that repeat the prompt.
        repeating: places of ``key_echoes.REPEATED``: one after the other, requests get their key back there
            and nothing else.
        most: passing faults that one request meets at most.
        rejects: parameters that the model does not take.
        latency: shortest and longest time before an answer, in seconds.
    """

    seed: int = 0
    passing: Mapping[str, float] = field(default_factory=dict)
    lasting: Mapping[str, float] = field(default_factory=dict)
    forms: Sequence[str] = ("plain",)
    noise: Mapping[str, float] = field(default_factory=dict)
    echoing: float = 0.0
    repeating: Sequence[str] = ()
    most: int = 2
    rejects: Sequence[str] = ()
    latency: tuple[float, float] = (0.0, 0.0)

    @classmethod
    def all(cls, seed: int, *, passing: float = 0.3, lasting: float = 0.1, **more: Any) -> Plan:
        """Every fault there is, in equal shares that come to ``passing`` and ``lasting``."""
        return cls(
            seed=seed,
            passing=dict.fromkeys(PASSING, passing / len(PASSING)),
            lasting=dict.fromkeys(LASTING, lasting / len(LASTING)),
            forms=tuple(FORMS),
            **more,
        )

    def undisturbed(self) -> Plan:
        """The same answers without anything that passes."""
        return replace(self, passing={}, latency=(0.0, 0.0))

    def choose(self, name: str, ask: int, body: Body) -> tuple[str, Step]:
        """The fault, or the form, of one ask; asks of a request count from 0."""
        refused = self._rejected(body)
        if refused is not None:
            return "rejected", refused
        if ask < self.most and (fault := self._drawn(self.passing, "passing", name, str(ask))):
            return fault, {**PASSING, **HANGING}[fault]
        if fault := self._drawn(self.lasting, "lasting", name):
            return fault, LASTING[fault]
        return self._answer(name, body)

    def seconds(self, name: str, ask: int) -> float:
        """How long an ask waits for its answer."""
        least, most = self.latency
        return least + (most - least) * self.draw("latency", name, str(ask))

    def draw(self, *what: str) -> float:
        """A number in [0, 1) that depends on the seed and on what it is for."""
        text = "\0".join([str(self.seed), *what])
        return int.from_bytes(hashlib.blake2b(text.encode(), digest_size=6).digest()) / 2**48

    def _rejected(self, body: Body) -> Step | None:
        taken = next((name for name in self.rejects if name in body), None)
        if taken is None:
            return None
        return status(400, f"Unsupported parameter: '{taken}' is not supported with this model.")

    def _answer(self, name: str, body: Body) -> tuple[str, Step]:
        form = self.forms[int(self.draw("form", name) * len(self.forms))]
        if "response_format" not in body and not _LABEL.search(_all_text(body)):
            if self.draw("echo", name) < self.echoing:
                return "echo", echo(body)
            if noise := self._drawn(self.noise, "noise", name):
                return noise, FORMS[form](NOISE[noise] + good_answer(name, body))
        return form, FORMS[form](good_answer(name, body))

    def _drawn(self, shares: Mapping[str, float], *what: str) -> str:
        place = self.draw(*what)
        for fault, share in shares.items():
            place -= share
            if place < 0:
                return fault
        return ""


def name_of(model: str, messages: Iterable[tuple[str, str]], seed: int | None) -> str:
    """The name of a request: whatever else is sent with it does not change the answer here."""
    text = json.dumps([model, [list(message) for message in messages], seed])
    return hashlib.blake2b(text.encode(), digest_size=12).hexdigest()


def good_answer(name: str, body: Body) -> str:
    """What a model that does as it is told would say, by the name of the request alone."""
    draws = Plan(int(name, 16))
    form = body.get("response_format") or {}
    if form.get("type") == "json_schema":
        return json.dumps(filled(form["json_schema"]["schema"], draws))
    text = _all_text(body)
    if labels := sorted(set(_LABEL.findall(text))):
        return f"By plan.\nFinal: ##{labels[int(draws.draw('label') * len(labels))]}## <|END|>"
    words = f"What I would do is number {int(draws.draw('number') * 1e9)}."
    return f"I thought about it.\nANSWER:\n{words}" if "ANSWER:" in text else words


def filled(schema: Mapping[str, Any], draws: Plan, at: str = "") -> Any:
    """A value that meets a JSON schema, of the kind that Habitus writes."""
    if "enum" in schema:
        return schema["enum"][int(draws.draw(at) * len(schema["enum"]))]
    kinds = schema.get("type", "object")
    kind = kinds if isinstance(kinds, str) else kinds[int(draws.draw(at, "type") * len(kinds))]
    if kind == "object":
        properties = schema.get("properties", {})
        return {key: filled(part, draws, f"{at}/{key}") for key, part in properties.items()}
    if kind == "array":
        return [filled(schema["items"], draws, f"{at}/0")]
    number = int(draws.draw(at) * 100)
    likely = 5 if at.endswith("revealed") else 50  # or hardly a history would pass its filter
    return {"string": f"by plan {number}", "boolean": number < likely, "null": None}.get(
        kind, number
    )


def _all_text(body: Body) -> str:
    return "\n".join(str(message.get("content")) for message in body["messages"])


# --- the server ---


@dataclass
class Asked:
    """One request, in the order of arrival.

    ``session`` is what the server's ``session`` was; ``fault`` is how it was answered, a name of
    this module; ``good`` that it is answered and not sent away; ``sent`` that the whole answer was handed to the
    connection.
    """

    name: str
    session: int
    fault: str
    good: bool
    sent: bool = False
    headers: Mapping[str, str] = field(default_factory=dict)


class FaultServer:
    """The server, in a thread of its own while it is entered.

    ``log`` holds every request. ``session`` is set by whoever starts and ends the askers.
    ``answering`` may replace the plan by a function of (name, ask, body).
    """

    def __init__(self, plan: Plan) -> None:
        self.plan = plan
        self.url = ""
        self.log: list[Asked] = []
        self.strayed: list[Mapping[str, str]] = []
        self.session = 0
        self._asks: Counter[str] = Counter()
        self._changed = threading.Condition()
        self._started = threading.Event()
        self._thread = threading.Thread(target=self._run, name="fault-server", daemon=True)
        self._loop: asyncio.AbstractEventLoop | None = None
        self._end: asyncio.Event | None = None

    def __enter__(self) -> Self:
        self._thread.start()
        assert self._started.wait(30)
        return self

    def __exit__(self, *_: object) -> None:
        assert self._loop is not None
        assert self._end is not None
        self._loop.call_soon_threadsafe(self._end.set)
        self._thread.join(30)

    def of_session(self, session: int | None = None) -> list[Asked]:
        """The requests of a session, the present one by default."""
        wanted = self.session if session is None else session
        return [asked for asked in list(self.log) if asked.session == wanted]

    def reached(self, requests: int, seconds: float) -> bool:
        """Wait until so many requests of the session are to be answered; False when time is up."""
        with self._changed:
            return self._changed.wait_for(lambda: self._answered() >= requests, seconds)

    def _answered(self) -> int:
        return sum(asked.good for asked in self.of_session())

    def faults(self) -> Counter[str]:
        """How often each fault, or form of answer, was given."""
        return Counter(asked.fault for asked in self.log)

    def _run(self) -> None:
        asyncio.run(self._serve())

    async def _serve(self) -> None:
        self._loop, self._end = asyncio.get_running_loop(), asyncio.Event()
        app = web.Application(client_max_size=2**26)
        app.router.add_post("/v1/chat/completions", self._respond)
        app.router.add_get("/v1/models", self._list)
        app.router.add_route("*", "/elsewhere", self._elsewhere)
        runner = web.AppRunner(app, access_log=None, shutdown_timeout=0.1)
        await runner.setup()
        site = web.TCPSite(runner, "127.0.0.1", 0)
        await site.start()
        self.url = f"http://127.0.0.1:{runner.addresses[0][1]}/v1"
        self._started.set()
        await self._end.wait()
        await runner.cleanup()

    def _chosen(self, name: str, ask: int, body: Body) -> tuple[str, Step]:
        places = self.plan.repeating
        if not places:
            return self.plan.choose(name, ask, body)
        place = places[len(self.log) % len(places)]
        return place, repeating(place)

    async def _list(self, request: web.Request) -> web.StreamResponse:
        """The models there are: one, and in its card the key that was sent."""
        sent = request.headers.get("Authorization", "")
        return web.json_response({"data": [{"id": "m", "owned_by": sent, "max_model_len": sent}]})

    async def _elsewhere(self, request: web.Request) -> web.StreamResponse:
        """Where redirects lead: nobody is to come here."""
        self.strayed.append(dict(request.headers))
        return web.Response()

    async def _respond(self, request: web.Request) -> web.StreamResponse:
        body = json.loads(await request.read())
        turns = [(m["role"], m["content"]) for m in body["messages"]]
        name = name_of(body["model"], turns, body.get("seed"))
        ask = self._asks[name]
        fault, step = self._chosen(name, ask, body)
        passing = fault == "rejected" or fault in PASSING or fault in HANGING
        self._asks[name] += fault != "rejected"
        asked = Asked(name, self.session, fault, not passing, headers=dict(request.headers))
        with self._changed:
            self.log.append(asked)
            self._changed.notify_all()
        if seconds := self.plan.seconds(name, ask):
            await asyncio.sleep(seconds)
        response: web.StreamResponse = web.Response()
        with contextlib.suppress(ConnectionError):  # the asker is gone, or was sent away
            response = await step(request, body)
            if not response.prepared:
                await response.prepare(request)
                await response.write_eof()
                asked.sent = True
        return response


def main() -> None:
    """Serve until interrupted; the address stands on the first line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--passing", type=float, default=0.0)
    parser.add_argument("--lasting", type=float, default=0.0)
    parser.add_argument("--latency", type=float, default=0.0)
    given = parser.parse_args()
    plan = Plan.all(
        given.seed,
        passing=given.passing,
        lasting=given.lasting,
        latency=(given.latency, given.latency),
    )
    with FaultServer(plan) as server:
        print(server.url, flush=True)
        threading.Event().wait()


if __name__ == "__main__":
    main()
