"""llama.cpp inside this process: one loaded model that answers chat bodies.

    engine = Engine(EngineSettings(path, context_length=4096))
    answer = await engine.ask(body, seconds=60.0)      # a status and the body of the answer
    await engine.close()

Calls wait in line for a slot; a call that is cancelled or out of time stops at its next token.
Bodies and answers are those of a chat-completions server, so that they are read as any other.

**Equal requests give equal bytes.** Left to itself llama.cpp sums in another order when more
tokens are computed together; then a prompt that is partly cached, or that shares a batch with
another slot, gives slightly other numbers and sooner or later another word. ``reproducible``
settles that: keys and values in bfloat16 keep attention out of its tiled path, and weights are
not repacked, so each token is computed the same way whatever stands beside it. On Linux and the
default weights (Q4_1; the k-quants go the same way) a reply then depends on the request
alone: not on order, cache, number of threads or slots. Weights in Q4_0, Q8_0 or 16 bits, and
GPUs, have no such path: there ``prefix_cache: false`` with one slot gives equal bytes, at the
price of computing every prompt anew.

The module knows nothing of requests, schemas or outcomes.
"""

from __future__ import annotations

import asyncio
import json
import os
import secrets
import time
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from habitus.errors import ModelError

MOST_THREADS = 4  # more do not help a small model, and containers show cores they do not have
_SILENT, _TALKATIVE = -1, 3


@dataclass(frozen=True, slots=True)
class EngineSettings:
    """How a model is loaded. ``context_length`` is in tokens and for each slot."""

    path: Path
    context_length: int
    slots: int = 1
    threads: int | None = None
    reproducible: bool = True
    prefix_cache: bool = True
    cache_mib: int = 1024
    gpu_layers: int | None = None
    debug: bool = False


@dataclass(frozen=True, slots=True)
class EngineAnswer:
    """What came back: an HTTP status with a body, or a ``fault`` and nothing else."""

    status: int = 0
    body: bytes = b""
    fault: str = ""
    seconds: float = 0.0


class Engine:
    """A loaded model. Ask it from one event loop, as many times at once as you like.

    ``users`` counts the models of a run that share the engine; whoever takes it to zero closes.
    """

    def __init__(self, settings: EngineSettings) -> None:
        self.settings = settings
        self.users = 0
        self._closed = False
        self._server: Any = _load(settings)
        self._pool = ThreadPoolExecutor(settings.slots, thread_name_prefix="llama.cpp")

    async def ask(self, body: Mapping[str, Any], seconds: float) -> EngineAnswer:
        """Answer a chat-completions body; it may take so many ``seconds`` from when it gets a slot."""
        if self._closed:
            return EngineAnswer(fault="closed")
        call = _Call(self, body, seconds)
        try:
            return await asyncio.get_running_loop().run_in_executor(self._pool, call.run)
        except asyncio.CancelledError:
            call.cancelled = True
            raise

    async def close(self) -> None:
        """End running calls at their next token and give the memory back."""
        self._closed = True
        await asyncio.to_thread(self._pool.shutdown)
        server, self._server = self._server, None
        await asyncio.to_thread(_drop, [server])

    @property
    def closed(self) -> bool:
        """Whether the engine takes no more calls."""
        return self._closed

    def stream(self, body: Mapping[str, Any], take: Any) -> None:
        """Run a body on this thread; ``take`` gets each chunk and ends the call by True."""
        self._server.handle_chat_completions(dict(body), take)


@dataclass(slots=True)
class _Call:
    """One call on its thread. Streamed, because only a streamed call can be ended early."""

    engine: Engine
    body: Mapping[str, Any]
    allowed: float
    cancelled: bool = False
    pieces: list[str] = field(default_factory=list)
    finish: str | None = None
    usage: Mapping[str, Any] | None = None
    error: Mapping[str, Any] | None = None
    fault: str = ""
    deadline: float = 0.0

    def run(self) -> EngineAnswer:
        """Ask, collect the chunks, and put them together."""
        began = time.monotonic()
        self.deadline = began + self.allowed
        streamed = {"stream": True, "stream_options": {"include_usage": True}}
        if not self._over():
            self.engine.stream({**self.body, **streamed, "return_progress": True}, self._take)
        seconds = time.monotonic() - began
        if self.fault:
            return EngineAnswer(fault=self.fault, seconds=seconds)
        if self.error is not None:
            code = self.error.get("code", 500)
            body = json.dumps({"error": self.error}).encode()
            return EngineAnswer(code if isinstance(code, int) else 500, body, seconds=seconds)
        return EngineAnswer(200, self._whole(), seconds=seconds)

    def _take(self, chunk: Mapping[str, Any]) -> bool:
        if "error" in chunk:
            self.error = chunk["error"]
            return True
        for choice in chunk.get("choices", ()):
            self.pieces.append(choice.get("delta", {}).get("content") or "")
            self.finish = choice.get("finish_reason") or self.finish
        self.usage = chunk.get("usage") or self.usage
        return self.usage is None and self._over()

    def _over(self) -> bool:
        """Whether there is a reason to go no further."""
        if self.cancelled or self.engine.closed:
            self.fault = "closed" if self.engine.closed else "cancelled"
        elif time.monotonic() > self.deadline:
            self.fault = "timeout"
        return bool(self.fault)

    def _whole(self) -> bytes:
        message = {"role": "assistant", "content": "".join(self.pieces)}
        choice = {"index": 0, "message": message, "finish_reason": self.finish}
        return json.dumps({"choices": [choice], "usage": self.usage}).encode()


def _load(settings: EngineSettings) -> Any:
    # Threads of the GNU OpenMP library spin while they wait: for ever, and two threads are slower
    # than one on cores shared with other work; not at all, and quiet cores lose a third of their
    # speed. A short spin is near the best of both. It is read with the import.
    os.environ.setdefault("OMP_WAIT_POLICY", "passive")
    os.environ.setdefault("GOMP_SPINCOUNT", "2000")
    try:
        import xllamacpp  # noqa: PLC0415  (100 MB, and only this backend needs it)
    except ImportError as error:
        raise ModelError(
            f"backend local needs the package xllamacpp, which cannot be loaded here ({error}); "
            "there are builds for Linux (x86-64, ARM) and macOS: pip install xllamacpp"
        ) from None
    try:
        return xllamacpp.Server(_parameters(xllamacpp, settings))
    except (RuntimeError, ValueError) as error:
        raise ModelError(
            f"llama.cpp cannot load {settings.path} ({error}); "
            "HABITUS_DEBUG=1 shows what it says while loading"
        ) from None


def _parameters(xllamacpp: Any, settings: EngineSettings) -> Any:
    params = xllamacpp.CommonParams()
    params.model.path = str(settings.path)
    params.n_parallel = settings.slots
    params.n_ctx = settings.context_length * settings.slots  # shared out evenly
    threads = settings.threads or min(MOST_THREADS, _cores())
    params.cpuparams.n_threads = params.cpuparams_batch.n_threads = threads
    if settings.gpu_layers is not None:
        params.n_gpu_layers = settings.gpu_layers
    params.ctx_shift = False  # a conversation that grows too long is cut, never shifted silently
    params.cache_prompt = settings.prefix_cache
    params.cache_ram_mib = settings.cache_mib if settings.prefix_cache else 0
    _answer_plainly(xllamacpp, params)
    if settings.reproducible:
        params.flash_attn_type = xllamacpp.llama_flash_attn_type.LLAMA_FLASH_ATTN_TYPE_ENABLED
        params.cache_type_k = params.cache_type_v = xllamacpp.ggml_type.GGML_TYPE_BF16
        params.no_extra_bufts = True  # no repacked weights
    params.verbosity = _TALKATIVE if settings.debug else _SILENT
    return params


def _answer_plainly(xllamacpp: Any, params: Any) -> None:
    """Text as the model wrote it, think blocks included, and nobody else at the door.

    llama.cpp listens on a loopback port even when it is asked in process.
    """
    params.prefill_assistant = False  # a last assistant turn is answered, not continued
    params.force_pure_content_parser = True
    params.reasoning_format = xllamacpp.common_reasoning_format.COMMON_REASONING_FORMAT_NONE
    params.api_keys = [secrets.token_urlsafe(24)]
    params.cors_origins = ""
    params.endpoint_slots = False
    params.ui = False


def _cores() -> int:
    """Cores that this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def _drop(held: list[Any]) -> None:
    """Let go of the server on a thread: its end waits for llama.cpp's own loop."""
    held.clear()
