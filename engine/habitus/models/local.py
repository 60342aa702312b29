"""The embedded model: llama.cpp in this process, by default with weights of 98 MB: ``local``.

    model = open_model("tiny", ModelEntry(backend="local"))
    model = open_model("mine", ModelEntry(backend="local", model="models/mine.gguf"))
    reply = await model.complete(request)

Once the weights are there it needs no network and no GPU. Answers with a schema are held to it
token by token. Sampling is plain: what a request does not set (top-k, top-p, min-p) is off, and
``extra`` of the entry can turn it on. A reply has the same outcomes as one from a server: a
prompt that does not fit is ``overflow`` before anything is computed, an answer that was cut is
``truncated``. What equal requests guarantee is said in ``llamacpp``.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping
from dataclasses import replace
from typing import Annotated, Any

import orjson
from pydantic import Field, ValidationError

from habitus.content import ContentModel
from habitus.errors import ModelError
from habitus.models.controls import LIKELY
from habitus.models.entry import ModelEntry, Opening
from habitus.models.gguf import control_tokens
from habitus.models.grammar import UnsupportedSchemaError, compact_grammar
from habitus.models.llamacpp import Engine, EngineAnswer, EngineSettings
from habitus.models.reading import Read, read_completion
from habitus.models.rejections import read_rejection
from habitus.models.shared import Seat
from habitus.models.weights import find_weights
from habitus.models.wire import Encoder
from habitus.records import Outcome, Reply, Request, Schema

CONTEXT_LENGTH = 4096
PLAIN_SAMPLING: Mapping[str, Any] = {"top_k": 0, "top_p": 1.0, "min_p": 0.0}
_REMEMBERED = 256
_JSON_STARTS = tuple('{["-0123456789tfn')
_OUTCOMES = {"overflow": Outcome.OVERFLOW, "refused": Outcome.REFUSED}


class LocalOptions(ContentModel):
    """``options`` of an entry with backend ``local``.

    ``slots``: calls computed at once; one by default, since on few cores more slots only share
    the same speed, and with ``reproducible: false`` replies would depend on their neighbours.
    ``threads``: by default the cores of this process, at most four.
    ``reproducible``: equal requests give equal bytes (see ``habitus.models.llamacpp``); false
    gives llama.cpp its quickest settings, which matters for larger models only.
    ``prefix_cache``: beginnings that were computed before are not computed again. On by default,
    except on macOS with ``reproducible``: on its GPU a warm cache changes bytes.
    ``cache_mib``: memory for conversations that have lost their slot to another one.
    ``gpu_layers``: layers on a GPU, where this build of llama.cpp has one; None leaves it to it.
    """

    slots: Annotated[int, Field(ge=1, le=64)] = 1
    threads: Annotated[int, Field(ge=1, le=256)] | None = None
    reproducible: bool = True
    prefix_cache: bool | None = None
    cache_mib: Annotated[int, Field(ge=0)] = 1024
    gpu_layers: Annotated[int, Field(ge=0)] | None = None


class LocalModel:
    """A model on an engine in this process. Safe to ask many times at once and to cancel."""

    def __init__(self, name: str, entry: ModelEntry, engine: Engine) -> None:
        self._name = name
        self._entry = entry
        self._engine = engine
        self._seat = Seat(engine)
        shown = entry.model or engine.settings.path.name
        tokens = control_tokens(engine.settings.path) or LIKELY
        self._encoder = Encoder(shown, {**PLAIN_SAMPLING, **entry.extra}, entry.quirks, tokens)
        self._grammars: dict[bytes, str] = {}

    @property
    def name(self) -> str:
        """The name of the entry."""
        return self._name

    async def aclose(self) -> None:
        """Leave the engine; the last model on it gives the memory back."""
        await self._seat.leave()

    async def complete(self, request: Request) -> Reply:
        """Answer one request, when a slot is free."""
        outgoing = self._encoder.encode(replace(request, schema=None))
        body, sent = orjson.loads(outgoing.body), dict(outgoing.sent)
        if request.schema is not None:
            try:
                body["grammar"] = self._grammar(request.schema)
            except UnsupportedSchemaError as error:
                return Reply(Outcome.ERROR, reason=f"schema not enforceable: {error}", attempts=0)
            sent["grammar"] = {"name": request.schema.name, "compact": True}
        answer = await self._engine.ask(body, self._entry.timeout)
        read = self._read(answer, request, outgoing.cut)
        return read.reply(sent, answer.seconds)

    def _grammar(self, schema: Schema) -> str:
        known = self._grammars.get(schema.canonical)
        if known is None:
            known = compact_grammar(schema.body)
            if len(self._grammars) >= _REMEMBERED:
                del self._grammars[next(iter(self._grammars))]
            self._grammars[schema.canonical] = known
        return known

    def _read(self, answer: EngineAnswer, request: Request, cut: tuple[str, ...]) -> Read:
        if answer.fault:
            return Read(Outcome.ERROR, answer.fault)
        if answer.status != 200:
            rejection = read_rejection(answer.status, answer.body)
            outcome = _OUTCOMES.get(rejection.kind, Outcome.ERROR)
            return Read(outcome, rejection.reason, raw=rejection.text)
        read = read_completion(answer.body, self._entry.quirks, cut)
        if read.outcome is Outcome.TRUNCATED and self._full(read):
            return replace(read, reason="context full")
        if request.schema is not None and not request.sampling.stop and _free(read):
            return replace(read, outcome=Outcome.ERROR, reason="schema not enforced", raw=read.text)
        return read

    def _full(self, read: Read) -> bool:
        used = (read.usage.prompt or 0) + (read.usage.completion or 0)
        return used >= self._engine.settings.context_length


def _free(read: Read) -> bool:
    """Whether an answer is not JSON, or its beginning, although a grammar should have seen to it."""
    if read.outcome is Outcome.TRUNCATED:
        return not read.text.startswith(_JSON_STARTS)
    if read.outcome is not Outcome.OK:
        return False
    try:
        orjson.loads(read.text)
    except orjson.JSONDecodeError:
        return True
    return False


def open_local(name: str, entry: ModelEntry, opening: Opening) -> LocalModel:
    """The backend of an entry. Entries of a run with the same weights and settings share them.

    Raises:
        ModelError: weights or package are missing, or the options are wrong.
    """
    try:
        options = LocalOptions.model_validate(entry.options)
    except ValidationError as error:
        first = error.errors()[0]
        where = ".".join(map(str, first["loc"]))
        raise ModelError(f"model {name!r}: options.{where}: {first['msg']}") from None
    chosen = options.model_dump(exclude={"prefix_cache"})
    on_a_gpu = sys.platform == "darwin" and options.gpu_layers != 0
    cached = options.prefix_cache
    settings = EngineSettings(
        path=find_weights(entry.model, opening.base, opening.environ),
        context_length=entry.context_length or CONTEXT_LENGTH,
        debug=bool(opening.environ.get("HABITUS_DEBUG")),
        prefix_cache=not (on_a_gpu and options.reproducible) if cached is None else cached,
        **chosen,
    )
    engines: dict[EngineSettings, Engine] = opening.shared.setdefault("local", {})
    engine = engines.get(settings)
    if engine is None or engine.closed:
        engine = engines[settings] = Engine(settings)
    return LocalModel(name, entry, engine)
