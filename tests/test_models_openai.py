"""The backend for chat completions: every answer ends in exactly one outcome."""

from __future__ import annotations

import asyncio
import json
import logging
from typing import Any

import pytest

import loopback
from habitus.errors import ModelError
from habitus.models import ModelEntry, Opening, Price, open_model
from habitus.records import Outcome, Prefix, Request, Sampling, Schema, Usage
from loopback import KEY, ask, completion, conversation, raw, serving

CONTENT_FILTER = loopback.status(
    400,
    "The response was filtered due to the prompt triggering content management policy.",
    code="content_filter",
)
OUTCOMES: dict[str, tuple[loopback.Step, Outcome, str]] = {
    "an answer": (loopback.answer("Rice."), Outcome.OK, ""),
    "no finish reason": (loopback.answer("Rice.", None), Outcome.OK, ""),
    "cut": (loopback.answer("Rice, and", "length"), Outcome.TRUNCATED, "length"),
    "cut while reasoning": (
        loopback.answer(None, "length", reasoning="First"),
        Outcome.TRUNCATED,
        "length, only reasoning",
    ),
    "reasoning and no answer": (
        loopback.answer("", reasoning_content="First"),
        Outcome.TRUNCATED,
        "only reasoning",
    ),
    "a block never closed": (
        loopback.answer("<think>never closed"),
        Outcome.TRUNCATED,
        "unfinished reasoning",
    ),
    "filtered": (loopback.answer(None, "content_filter"), Outcome.REFUSED, "content_filter"),
    "refusal field": (
        loopback.answer(None, refusal="I can't help."),
        Outcome.REFUSED,
        "refusal: I can't help.",
    ),
    "filter as 400": (CONTENT_FILTER, Outcome.REFUSED, "content_filter"),
    "filter as 403": (
        loopback.status(403, "Input was flagged_input by moderation"),
        Outcome.REFUSED,
        "flagged_input",
    ),
    "filter as 400 with a completion in it": (
        raw(completion({"content": None}, "content_filter"), 400),
        Outcome.REFUSED,
        "content_filter",
    ),
    "refusal as 400 with a completion in it": (
        raw(completion({"content": None, "refusal": "I can't help."}), 400),
        Outcome.REFUSED,
        "refusal: I can't help.",
    ),
    "an answer as 400": (raw(completion({"content": "Rice."}), 400), Outcome.ERROR, "http 400"),
    "empty": (loopback.answer(""), Outcome.UNPARSED, "empty"),
    "white space": (loopback.answer(" \n"), Outcome.UNPARSED, "empty"),
    "null": (loopback.answer(None), Outcome.UNPARSED, "empty"),
    "no JSON": (raw(b"<html>busy</html>"), Outcome.ERROR, "malformed body"),
    "a list": (raw(b"[]"), Outcome.ERROR, "malformed body"),
    "no choices": (raw(b'{"choices": []}'), Outcome.ERROR, "malformed body"),
    "deep": (raw(b"[" * 100_000), Outcome.ERROR, "malformed body"),
    "error inside 200": (
        raw(b'{"error": {"message": "overloaded", "code": 502}}'),
        Outcome.ERROR,
        "http 502",
    ),
    "aborted": (loopback.answer("Ri", "abort"), Outcome.ERROR, "finish abort"),
    "500": (loopback.status(500), Outcome.ERROR, "http 500"),
    "404": (loopback.status(404, "no such model"), Outcome.ERROR, "http 404"),
    "401": (loopback.status(401, f"bad key {KEY}"), Outcome.ERROR, "401 unauthorised"),
    "redirect": (raw(b"", 302, {"Location": "http://127.0.0.1:1/"}), Outcome.ERROR, "http 302"),
    "quota": (
        loopback.status(429, "You exceeded your current quota", code="insufficient_quota"),
        Outcome.ERROR,
        "http 429 quota used up",
    ),
    "dropped": (loopback.dropped(), Outcome.ERROR, "connection"),
    "half a body": (loopback.half(), Outcome.ERROR, "connection"),
}


@pytest.mark.parametrize(("step", "outcome", "reason"), OUTCOMES.values(), ids=OUTCOMES.keys())
async def test_every_answer_has_one_outcome(
    step: loopback.Step, outcome: Outcome, reason: str
) -> None:
    async with serving(step) as server:
        reply = await server.model(retries=1).complete(ask())
    assert (reply.outcome, reply.reason) == (outcome, reason)
    assert KEY not in repr(reply)


OVERFLOWS = {
    "OpenAI": "This model's maximum context length is 8192 tokens. However, your messages "
    "resulted in 9000 tokens. Please reduce the length of the messages.",
    "OpenAI responses": "Input tokens exceed the configured limit of 272000 tokens.",
    "vLLM": "This model's maximum context length is 2048 tokens. However, you requested 2100 "
    "tokens (2000 in the messages, 100 in the completion).",
    "vLLM, by max_tokens": "'max_tokens' or 'max_completion_tokens' is too large: 500. This "
    "model's maximum context length is 2048 tokens and your request has 1900 input tokens.",
    "vLLM decoder": "The decoder prompt (length 3000) is longer than the maximum model length.",
    "vLLM, newer": "You passed 8193 input tokens and requested 1 output tokens. However, the "
    "model's context length is only 8192 tokens.",
    "llama.cpp": "the request exceeds the available context size, try increasing it",
    "llama.cpp, newer": "request (9000 tokens) exceeds the available context size (8192 tokens)",
    "Anthropic": "prompt is too long: 210000 tokens > 200000 maximum",
    "Gemini": "The input token count (1200000) exceeds the maximum number of tokens allowed.",
    "Mistral": "Prompt contains 40000 tokens, too large for model with 32768 maximum context length",
    "TGI": "Input validation error: `inputs` tokens + `max_new_tokens` must be <= 4096",
    "Ollama": "the input length exceeds the context length",
}


@pytest.mark.parametrize("words", OVERFLOWS.values(), ids=OVERFLOWS.keys())
async def test_a_prompt_beyond_the_context_is_an_overflow_and_not_retried(words: str) -> None:
    async with serving(loopback.status(400, words)) as server:
        reply = await server.model().complete(ask(sampling=Sampling(max_tokens=500)))
    assert (reply.outcome, reply.reason, reply.attempts) == (Outcome.OVERFLOW, "context length", 1)
    assert server.clock.sleeps == []


async def test_thinking_that_used_up_the_limit_is_not_an_empty_answer() -> None:
    async with serving(loopback.answer(None, "length", reasoning="Let me see")) as server:
        reply = await server.model().complete(ask())
    assert (reply.outcome, reply.text, reply.reasoning) == (Outcome.TRUNCATED, "", "Let me see")


@pytest.mark.parametrize("field", ["reasoning", "reasoning_content"])
async def test_reasoning_is_kept_apart(field: str) -> None:
    async with serving(loopback.answer("They eat rice.", **{field: "so we"})) as server:
        reply = await server.model().complete(ask())
    assert (reply.text, reply.reasoning, reply.raw) == ("They eat rice.", "so we", "")


async def test_reasoning_in_tags_is_taken_out_and_the_raw_text_kept() -> None:
    written = "<think>I could say we...</think>They eat rice."
    async with serving(loopback.answer(written)) as server:
        reply = await server.model().complete(ask())
    assert (reply.text, reply.raw, reply.ok) == ("They eat rice.", written, True)


async def test_tags_of_the_entry_are_those_that_count() -> None:
    written = "[THINK]I could say we...[/THINK]They eat <think>rice."
    async with serving(loopback.answer(written)) as server:
        reply = await server.model(quirks={"think_tags": ["[THINK]"]}).complete(ask())
    assert (reply.outcome, reply.text) == (Outcome.OK, "They eat <think>rice.")
    assert (reply.reasoning, reply.raw) == ("I could say we...", written)


async def test_text_in_parts_is_joined() -> None:
    parts = [
        {"type": "thinking", "thinking": [{"type": "text", "text": "hm"}]},
        {"type": "text", "text": "They eat "},
        {"type": "text", "text": "rice."},
    ]
    async with serving(raw(completion({"content": parts}))) as server:
        reply = await server.model().complete(ask())
    assert (reply.text, reply.reasoning) == ("They eat rice.", "hm")


async def test_one_filtered_call_of_a_hundred_leaves_the_others_alone() -> None:
    async with serving(
        *[loopback.answer("Rice.")] * 6, CONTENT_FILTER, loopback.answer("Rice.")
    ) as server:
        model = server.model(concurrency=4)
        replies = await asyncio.gather(*(model.complete(ask(f"{n}")) for n in range(100)))
    assert [r.outcome for r in replies].count(Outcome.REFUSED) == 1
    assert [r.outcome for r in replies].count(Outcome.OK) == 99
    assert len(server.bodies) == 100


async def test_a_wrong_key_is_not_retried_and_never_shown(
    caplog: pytest.LogCaptureFixture,
) -> None:
    caplog.set_level(logging.DEBUG)
    async with serving(loopback.status(401, f"Incorrect API key provided: {KEY[:6]}***")) as server:
        model = server.model()
        reply = await model.complete(ask())
    assert reply.attempts == 1
    assert server.headers[0]["Authorization"] == f"Bearer {KEY}"
    seen = repr((reply, model, server.opening.shared, server.entry())) + caplog.text
    assert KEY[:6] not in seen


async def test_an_error_text_that_repeats_the_key_is_kept_without_it() -> None:
    async with serving(loopback.status(404, f"nothing for {KEY} here")) as server:
        reply = await server.model().complete(ask())
    assert "nothing for [key] here" in reply.raw


def test_a_key_that_is_not_set_is_said_before_any_call() -> None:
    entry = ModelEntry(
        backend="openai", model="m", base_url="http://127.0.0.1:1/v1", api_key_env="NO_KEY"
    )
    with pytest.raises(ModelError, match="NO_KEY is not set"):
        open_model("target", entry, Opening(environ={}))


async def test_lone_surrogates_and_nul_do_not_enter() -> None:
    body = completion({"content": "R?ce ?", "reasoning": "?"}).replace(b"?", b"\\ud800\\u0000")
    async with serving(raw(body)) as server:
        reply = await server.model().complete(ask())
    assert (reply.text, reply.reasoning) == ("R\ufffd\ufffdce \ufffd\ufffd", "\ufffd\ufffd")
    assert reply.text.encode()


async def test_bytes_that_are_not_utf8_do_not_enter() -> None:
    async with serving(raw(completion({"content": "R?ce"}).replace(b"?", b"\xff"))) as server:
        reply = await server.model().complete(ask())
    assert (reply.text, reply.outcome) == ("R\ufffdce", Outcome.OK)


async def test_a_question_that_cannot_be_encoded_is_sent_cleaned_and_says_so() -> None:
    async with serving() as server:
        reply = await server.model().complete(ask("R\ud800ce?"))
    assert server.bodies[0]["messages"] == [{"role": "user", "content": "R\ufffdce?"}]
    assert reply.sent["messages"] == server.bodies[0]["messages"]


async def test_a_huge_answer_is_given_up_and_not_held() -> None:
    async with serving(loopback.answer("rice " * 3_500_000)) as server:
        reply = await server.model().complete(ask())
    assert (reply.outcome, reply.reason, reply.attempts) == (Outcome.ERROR, "answer too large", 1)


USAGES: dict[str, tuple[Any, Usage]] = {
    "whole": (loopback.USAGE, Usage(50, 7, 40)),
    "no details": ({"prompt_tokens": 50, "completion_tokens": 7}, Usage(50, 7)),
    "details null": ({"prompt_tokens": 5, "prompt_tokens_details": None}, Usage(5)),
    "DeepSeek's field": ({"prompt_tokens": 50, "prompt_cache_hit_tokens": 4}, Usage(50, None, 4)),
    "missing": (None, Usage()),
    "wrong": ({"prompt_tokens": -1, "completion_tokens": "7"}, Usage()),
    "a list": ([1], Usage()),
    "truth values": ({"prompt_tokens": True}, Usage()),
    "more cached than sent": (
        {"prompt_tokens": 5, "prompt_tokens_details": {"cached_tokens": 6}},
        Usage(5),
    ),
}


@pytest.mark.parametrize(("usage", "read"), USAGES.values(), ids=USAGES.keys())
async def test_usage_is_what_the_server_counted_and_never_a_guess(usage: Any, read: Usage) -> None:
    async with serving(raw(completion({"content": "Rice."}, usage=usage))) as server:
        reply = await server.model().complete(ask())
    assert (reply.usage, reply.ok) == (read, True)


async def test_what_is_sent_is_the_whole_request_and_on_record() -> None:
    sampling = Sampling(temperature=0.7, top_p=0.9, max_tokens=300, stop=("###",))
    schema = Schema("verdict", {"type": "object", "properties": {"met": {"type": "boolean"}}})
    prefix = Prefix(conversation(("system", "Be brief."), ("user", "Hello"), ("assistant", "Hi")))
    request = ask(sampling=sampling, schema=schema, seed=5, prefix=prefix)
    async with serving() as server:
        reply = await server.model(extra={"top_k": 20}).complete(request)
    body = server.bodies[0]
    assert body.pop("messages") == [
        {"role": "system", "content": "Be brief."},
        {"role": "user", "content": "Hello"},
        {"role": "assistant", "content": "Hi"},
        {"role": "user", "content": "What shall I eat?"},
    ]
    form = body.pop("response_format")
    assert form["json_schema"] == {"name": "verdict", "strict": True, "schema": schema.body}
    plain = {"model": "m", "top_k": 20, "temperature": 0.7, "top_p": 0.9, "seed": 5}
    assert body == plain | {"max_tokens": 300, "stop": ["###"]}
    shown = {"type": "json_schema", "name": "verdict", "strict": True}
    assert reply.sent == body | {"response_format": shown}


async def test_a_shared_beginning_gives_the_same_bytes_as_plain_messages() -> None:
    turns = conversation(("user", "a\u2028\U0001f35a"), ("assistant", 'b "quoted" \\'))
    async with serving() as server:
        model = server.model()
        for request in (
            ask(prefix=Prefix(turns)),
            ask(prefix=Prefix(turns)),
            Request(messages=(*turns, *ask().messages)),
            Request(messages=(), prefix=Prefix((*turns, *ask().messages))),
        ):
            await model.complete(request)
    first, *others = [json.dumps(body) for body in server.bodies]
    assert others == [first] * 3


async def test_models_at_one_address_share_its_slots() -> None:
    async with serving() as server:
        models = [server.model(concurrency=2), server.model(concurrency=2)]
        await asyncio.gather(*(m.complete(ask(f"{n}")) for n in range(10) for m in models))
    assert len(server.bodies) == 20
    assert server.busiest <= 2


async def test_cancelled_calls_leave_nothing_behind() -> None:
    never = asyncio.Event()
    async with serving(loopback.waiting(never)) as server:
        model = server.model(concurrency=2)
        before = asyncio.all_tasks()
        calls = [asyncio.create_task(model.complete(ask(f"{n}"))) for n in range(6)]
        while server.busy < 2:
            await asyncio.sleep(0)
        for call in calls:
            call.cancel()
        ended = await asyncio.gather(*calls, return_exceptions=True)
        assert all(isinstance(end, asyncio.CancelledError) for end in ended)
        (endpoint,) = server.opening.shared["endpoints"].values()
        assert endpoint.gate.busy == 0
        never.set()
        assert (await model.complete(ask())).ok
        assert not {t for t in calls if t in asyncio.all_tasks() - before}


async def test_the_proxy_of_the_environment_is_used_and_never_for_this_machine(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async with serving() as proxy, serving() as server:
        monkeypatch.setenv("http_proxy", proxy.url.removesuffix("/v1"))
        monkeypatch.delenv("no_proxy", raising=False)
        elsewhere = proxy.model(base_url="http://model.invalid/v1")
        assert (await elsewhere.complete(ask())).ok
        assert (await server.model().complete(ask())).ok
    assert (len(proxy.bodies), len(server.bodies)) == (1, 1)
    assert proxy.headers[0]["Host"] == "model.invalid"


async def test_a_proxy_that_cannot_be_used_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("http_proxy", "socks5://127.0.0.1:1")
    async with serving() as server:
        with pytest.raises(ModelError, match="http_proxy"):
            await server.model(base_url="http://model.invalid/v1").complete(ask())


ENTRIES: dict[str, tuple[dict[str, Any], str]] = {
    "no address": ({"backend": "openai", "model": "m"}, "needs base_url"),
    "no model": ({"backend": "openai", "base_url": "http://h/v1"}, "needs model"),
    "no scheme": ({"backend": "openai", "model": "m", "base_url": "h/v1"}, "an address"),
    "password": ({"backend": "openai", "model": "m", "base_url": "http://u:p@h"}, "no user"),
    "whole path": (
        {"backend": "openai", "model": "m", "base_url": "http://h/v1/chat/completions"},
        "end before",
    ),
    "no JSON in extra": (
        {"backend": "openai", "model": "m", "base_url": "http://h", "extra": {"a": [float("nan")]}},
        "that JSON cannot carry",
    ),
    "a number too large in extra": (
        {"backend": "openai", "model": "m", "base_url": "http://h", "extra": {"a": 10**30}},
        "that JSON cannot carry",
    ),
    "sampling in extra": (
        {"backend": "openai", "model": "m", "base_url": "http://h", "extra": {"temperature": 1}},
        "temperature cannot be set here",
    ),
    "address of a script": ({"backend": "scripted", "base_url": "http://h"}, "takes no base_url"),
}


@pytest.mark.parametrize(("fields", "message"), ENTRIES.values(), ids=ENTRIES.keys())
def test_a_wrong_entry_says_what_is_wrong(fields: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        ModelEntry.model_validate(fields)


def test_identity_names_what_can_change_an_answer_and_nothing_else() -> None:
    entry = ModelEntry(backend="openai", model="m", base_url="http://a/v1")
    same = {
        "base_url": "http://b/v1",
        "api_key_env": "K",
        "concurrency": 3,
        "timeout": 5.0,
        "retries": 1,
        "price": Price(input=1, output=2),
        "context_length": 8192,
    }
    for name, value in same.items():
        assert entry.model_copy(update={name: value}).identity("t") == entry.identity("t"), name
    quirks = entry.quirks.model_copy(update={"system_role": False})
    other = {"model": "n", "extra": {"top_k": 1}, "quirks": quirks, "options": {"a": 1}}
    names = {entry.model_copy(update={k: v}).identity("t") for k, v in other.items()}
    assert len(names | {entry.identity("t"), entry.identity("u")}) == 6


def test_price_counts_cached_tokens_apart_and_unknown_ones_not_at_all() -> None:
    price = Price(input=2.0, cached_input=0.5, output=8.0)
    assert price.cost(Usage(1_000_000, 500_000, 400_000)) == pytest.approx(1.2 + 0.2 + 4.0)
    assert Price(input=2.0, output=8.0).cost(Usage(100, 0, 100)) == pytest.approx(0.0002)
    assert price.cost(Usage(10, None)) is None
