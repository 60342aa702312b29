"""A model as an experiment file names it, and the door to the backends.

    entry = ModelEntry(backend="openai", model="m", base_url="http://127.0.0.1:8000/v1")
    model = open_model("target", entry)
    reply = await model.complete(request)

The entry says which model and how it is reached. It does not say how warm or how long answers
are: the roles of an experiment set sampling. Backends are imported only when one is opened.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from importlib import import_module
from pathlib import Path
from typing import Annotated, Any, Literal, Self, cast
from urllib.parse import urlsplit

from pydantic import AfterValidator, Field, WithJsonSchema, field_validator, model_validator
from pydantic_core import PydanticCustomError

from habitus.content import ContentModel, Document, load, read_yaml
from habitus.content.models import NOT_SHOWN, from_document
from habitus.errors import ModelError, NotFoundError
from habitus.models.clock import Clock, SystemClock
from habitus.models.keys import looks_like_key, texts_in
from habitus.models.model import CallLog, ChatModel
from habitus.models.quirks import Quirks
from habitus.records import Usage

Backend = Literal["openai", "local", "vllm", "scripted", "planted", "replay"]

SET_BY_THE_ENGINE = frozenset(
    [
        "model",
        "messages",
        "stream",
        "n",
        "temperature",
        "top_p",
        "max_tokens",
        "max_completion_tokens",
        "stop",
        "seed",
        "response_format",
    ]
)
FACTORIES: Mapping[str, tuple[str, str]] = {
    "openai": ("habitus.models.openai", "open_openai"),
    "local": ("habitus.models.local", "open_local"),
    "vllm": ("habitus.models.vllm", "open_vllm"),
    "scripted": ("habitus.models.scripted", "open_scripted"),
    "planted": ("habitus.models.planted", "open_planted"),
    "replay": ("habitus.models.replay", "open_replay"),
}

Money = Annotated[float, Field(ge=0, allow_inf_nan=False)]
_VARIABLE = r"^[A-Za-z_][A-Za-z0-9_]*$"
_KEY_FILE = r"^(~/|/).+$"


def _no_key(value: Any) -> Any:
    """Refuse what looks like a key, without showing it: entries are stored, printed and passed on."""
    if any(map(looks_like_key, texts_in(value))):
        what = "holds what looks like a key; keep it in a variable of the environment or in a file"
        raise PydanticCustomError(
            NOT_SHOWN, f"{what}, and name that in api_key_env or api_key_file"
        )
    return value


def _variable(text: str) -> str:
    _no_key(text)
    if not re.match(_VARIABLE, text):
        raise PydanticCustomError(
            NOT_SHOWN, "must be the name of a variable of the environment, not the key itself"
        )
    return text


def _key_file(text: str) -> str:
    _no_key(text)
    if not re.match(_KEY_FILE, text) or "\0" in text:
        raise PydanticCustomError(
            NOT_SHOWN, "must be the path of a file, from the root (/...) or from home (~/...)"
        )
    return text


KeyVariable = Annotated[
    str, AfterValidator(_variable), WithJsonSchema({"type": "string", "pattern": _VARIABLE})
]
KeyFile = Annotated[
    str, AfterValidator(_key_file), WithJsonSchema({"type": "string", "pattern": _KEY_FILE})
]


class Price(ContentModel):
    """What a million tokens cost. Without ``cached_input``, cached tokens cost as others do.

    ``date`` and ``source`` say since when and from where it is known.
    """

    input: Money
    output: Money
    cached_input: Money | None = None
    currency: str = "USD"
    date: str = ""
    source: str = ""

    def cost(self, usage: Usage) -> float | None:
        """What a call cost, in ``currency``; None where the server did not count tokens."""
        if usage.prompt is None or usage.completion is None:
            return None
        cached = min(usage.cached or 0, usage.prompt)
        cached_price = self.input if self.cached_input is None else self.cached_input
        fresh = (usage.prompt - cached) * self.input
        return (fresh + cached * cached_price + usage.completion * self.output) / 1e6


class ModelEntry(ContentModel):
    """One entry under ``models:`` of an experiment file.

    The key of a server is in the variable ``api_key_env`` of the environment or on the one line of
    the file ``api_key_file``; see ``habitus.models.keyfiles``.
    ``timeout`` is in seconds and covers all tries of a call and the waits between them, not the
    wait for a free slot. ``concurrency`` is the largest number of requests in flight. ``extra``
    is added to the body of every request. ``options`` belong to the backends that are no server;
    each checks its own.
    """

    backend: Backend
    model: Annotated[str, AfterValidator(_no_key)] = ""
    base_url: str | None = None
    api_key_env: KeyVariable | None = None
    api_key_file: KeyFile | None = None
    context_length: Annotated[int, Field(gt=0)] | None = None
    concurrency: Annotated[int, Field(ge=1, le=4096)] = 16
    timeout: Annotated[float, Field(gt=0, allow_inf_nan=False)] = 600.0
    retries: Annotated[int, Field(ge=0, le=50)] = 6
    quirks: Quirks = Quirks()
    price: Price | None = None
    extra: Annotated[dict[str, Any], AfterValidator(_no_key)] = Field(default_factory=dict)
    options: Annotated[dict[str, Any], AfterValidator(_no_key)] = Field(default_factory=dict)

    @field_validator("base_url")
    @classmethod
    def _reachable(cls, url: str | None) -> str | None:
        if url is None:
            return None
        try:
            parts = urlsplit(url)
        except ValueError:
            raise PydanticCustomError(NOT_SHOWN, "must be an address") from None
        if "@" in parts.netloc or "?" in url or "#" in url:
            raise PydanticCustomError(
                NOT_SHOWN, "must hold no user, password or query; name the key in api_key_env"
            )
        _no_key(url)
        if parts.scheme not in {"http", "https"} or not parts.hostname:
            raise ValueError("must be an address such as https://host/v1")
        if parts.path.rstrip("/").endswith("/chat/completions"):
            raise ValueError("must end before /chat/completions")
        return url.rstrip("/")

    @field_validator("extra")
    @classmethod
    def _additional(cls, extra: dict[str, Any]) -> dict[str, Any]:
        taken = sorted(SET_BY_THE_ENGINE & extra.keys())
        if taken:
            raise ValueError(f"{', '.join(taken)} cannot be set here: the engine sets it")
        if not _is_json(extra):
            raise ValueError("holds a number or a text that JSON cannot carry")
        return extra

    @model_validator(mode="after")
    def _complete(self) -> Self:
        if self.backend == "openai" and not self.base_url:
            raise ValueError("backend openai needs base_url, for instance https://host/v1")
        if self.backend == "openai" and not self.model:
            raise ValueError("backend openai needs model, the name the server knows it by")
        if self.backend != "openai" and (self.base_url or self.api_key_env or self.api_key_file):
            raise ValueError(f"backend {self.backend} takes no base_url or key")
        if self.api_key_env and self.api_key_file:
            raise ValueError("give api_key_env or api_key_file, not both")
        return self

    def identity(self, name: str) -> str:
        """Text that names the model in the key of a call: all of the entry that can change an answer.

        Address, key, concurrency, timeout, retries and price are left out, so that a run may go
        on at another address of the same model, or faster, with every stored answer still found.
        Only what differs from the defaults is in, so that a new setting leaves old keys as
        they are. The context length counts where it is ours to set, not where a server has one.
        """
        answering = {"backend", "model", "quirks", "extra", "options"}
        if self.backend != "openai":
            answering.add("context_length")
        data = self.model_dump(mode="json", include=answering, exclude_defaults=True)
        return json.dumps([name, data], ensure_ascii=False, sort_keys=True, separators=(",", ":"))


#: Opens a stored run by its path: its configuration and its calls.
StoredRun = Callable[[Path], tuple[Mapping[str, Any], CallLog]]


@dataclass(frozen=True, slots=True)
class Opening:
    """What surrounds a model when it is opened.

    ``base`` is the folder that relative paths of an entry start from. ``shared`` is for what
    the models of one run share; a backend keeps its own thing there under its own name.
    ``clock`` is what retries and waits go by.
    ``stored_run`` opens another run, for the backend that replays one.
    """

    base: Path = field(default_factory=Path.cwd)
    environ: Mapping[str, str] = field(default_factory=lambda: os.environ, repr=False)
    shared: dict[str, Any] = field(default_factory=dict)
    clock: Clock = field(default_factory=SystemClock)
    stored_run: StoredRun | None = None


Factory = Callable[[str, ModelEntry, Opening], ChatModel]


def open_model(name: str, entry: ModelEntry, opening: Opening | None = None) -> ChatModel:
    """The model of an entry, ready to answer.

    Pass one ``opening`` for all models of a run: those at one address then share its slots,
    its connections and its waits.

    Raises:
        ModelError: a package, key or file that the backend needs is missing.
    """
    module, function = FACTORIES[entry.backend]
    try:
        factory = cast("Factory", getattr(import_module(module), function))
    except ModuleNotFoundError as error:
        raise ModelError(f"model {name!r}: backend {entry.backend} needs {error.name}") from None
    return factory(name, entry, opening or Opening())


def _is_json(value: Any) -> bool:
    """Whether a value goes over the wire as it is: NaN would become null without a word."""
    import orjson  # noqa: PLC0415  (entries are read by commands that send nothing)

    try:
        return bool(orjson.loads(orjson.dumps(value)) == value)
    except TypeError:
        return False


def read_entry(path: Path, name: str) -> ModelEntry:
    """One entry of an experiment file, without reading the rest of it.

    Raises:
        ContentError: the file or the entry is wrong.
        NotFoundError: no entry of that name.
    """
    document = read_yaml(path)
    models = document.data.get("models") if isinstance(document.data, dict) else None
    if not isinstance(models, dict) or name not in models:
        known = list(models) if isinstance(models, dict) else []
        raise NotFoundError("model", name, known, hint=f"looked under models: in {path}")
    return from_document(_part(document, ("models", name)), ModelEntry)


def load_entry(path: Path) -> ModelEntry:
    """A file that holds one entry: ``experiments/models/<name>.yaml``.

    Raises:
        ContentError: the file is wrong.
    """
    return load(path, ModelEntry)


def _part(document: Document, at: tuple[str, ...]) -> Document:
    data, n = document.data, len(at)
    for key in at:
        data = data[key]
    positions = {loc[n:]: place for loc, place in document.positions.items() if loc[:n] == at}
    keys = {loc[n:]: place for loc, place in document.keys.items() if loc[:n] == at}
    return Document(document.path, data, positions, keys)
