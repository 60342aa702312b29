"""Content files checked against pydantic models, each problem with its line and column."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from difflib import get_close_matches
from pathlib import Path
from typing import Any, TypeVar

from pydantic import BaseModel, ConfigDict, ValidationError
from pydantic_core import ErrorDetails

from habitus.content.yamlfile import Document, Loc, parse_yaml, read_text
from habitus.errors import ContentError, Problem


class ContentModel(BaseModel):
    """Base of everything read from a content file: unknown keys are errors, values are frozen."""

    model_config = ConfigDict(extra="forbid", frozen=True, str_strip_whitespace=True)


Model = TypeVar("Model", bound=BaseModel)
#: Type of an error about a value that must not be seen: what is there instead of it is not told.
NOT_SHOWN = "not_shown"
_SHOWN = 60  # characters of a wrong value in a message


@dataclass(frozen=True, slots=True)
class Found:
    """What a ``check`` function reports: where in the data, what, and what to do."""

    loc: Loc
    what: str
    hint: str = ""


Check = Callable[[Any], Iterable[Found]]


def load(path: Path, model: type[Model], check: Check | None = None) -> Model:
    """Read a file into a model; ``check`` adds what one field alone cannot show.

    Raises:
        ContentError: every problem of the file, in the order of its lines.
    """
    return from_document(parse_yaml(read_text(path), path), model, check)


def from_document(document: Document, model: type[Model], check: Check | None = None) -> Model:
    """As :func:`load`, from a document that is already read."""
    if not isinstance(document.data, dict):
        what = f"expected keys such as {_some_fields(model)}, found {_kind(document.data)}"
        raise ContentError([Problem(what, document.place())])
    try:
        result = model.model_validate(document.data)
    except ValidationError as error:
        raise _content_error(document, model, error) from None
    found = list(check(result)) if check else []
    if found:
        raise ContentError(_ordered(document.problem(f.loc, f.what, f.hint) for f in found))
    return result


def file_hash(path: Path) -> str:
    """The first 16 hex digits of the SHA-256 of a file's bytes, with CRLF read as LF."""
    return hashlib.sha256(path.read_bytes().replace(b"\r\n", b"\n")).hexdigest()[:16]


def _content_error(
    document: Document, model: type[BaseModel], error: ValidationError
) -> ContentError:
    return ContentError(_ordered(_problem(document, model, e) for e in error.errors()))


def _ordered(problems: Iterable[Problem]) -> list[Problem]:
    return sorted(problems, key=lambda p: (p.place.line, p.place.column))


def _problem(document: Document, model: type[BaseModel], error: ErrorDetails) -> Problem:
    loc = _real_loc(document, error["loc"])
    if error["type"] == "extra_forbidden":
        return Problem(
            f"unknown key {loc[-1]!r}", document.place(loc, of_key=True), _near(model, loc)
        )
    if error["type"] == "missing" and isinstance(loc[-1], int):
        what = f"{_dotted(loc[:-1])}: item {loc[-1] + 1} is missing"
        return Problem(what, document.place(loc[:-1]))
    if error["type"] == "missing":
        where = f" in {_dotted(loc[:-1])}" if loc[:-1] else ""
        return Problem(f"missing key {loc[-1]!r}{where}", document.place(loc[:-1], of_key=True))
    message = _message(error)
    if loc[-1:] == ("[key]",):
        what = f"{_dotted(loc[:-1])}: {message}"
        return Problem(what, document.place(loc[:-1], of_key=True))
    if loc not in document.positions:  # a name that pydantic adds at the end
        loc = loc[:-1]
    what = f"{_dotted(loc)}: {message}" if loc else message
    return Problem(what, document.place(loc), _got(error))


def _message(error: ErrorDetails) -> str:
    """What pydantic says, in the words of somebody who writes YAML and not Python."""
    context = error.get("ctx", {})
    match error["type"]:
        case "model_type" | "dict_type":
            return "must hold keys of its own"
        case "tuple_type" | "list_type":
            return "must be a list"
        case "too_short":
            return f"needs at least {_items(context['min_length'])}"
        case "too_long":
            return f"takes at most {_items(context['max_length'])}"
    return error["msg"].removeprefix("Value error, ")


def _items(count: int) -> str:
    return f"{count} item" if count == 1 else f"{count} items"


def _real_loc(document: Document, loc: Loc) -> Loc:
    """The loc without the names pydantic adds for unions and validators."""
    real: Loc = ()
    for i, part in enumerate(loc):
        last = i == len(loc) - 1
        if last or (*real, part) in document.positions:
            real = (*real, part)
    return real


def _near(model: type[BaseModel], loc: Loc) -> str:
    owner = _owner(model, loc[:-1])
    fields = [f.alias or n for n, f in owner.model_fields.items()] if owner else []
    close = get_close_matches(str(loc[-1]), fields, n=1)
    if close:
        return f"did you mean {close[0]!r}?"
    return f"known keys: {', '.join(fields)}" if fields else ""


def _owner(model: type[BaseModel], loc: Loc) -> type[BaseModel] | None:
    """The model that owns the key at ``loc``, as far as annotations tell."""
    current: Any = model
    for part in loc:
        current = _step(current, part)
        if current is None:
            return None
    return _model_in(current)


def _step(annotation: Any, part: str | int) -> Any:
    owner = _model_in(annotation) if isinstance(part, str) else None
    if owner is not None:
        by_name = {f.alias or n: f for n, f in owner.model_fields.items()}
        if part in by_name:
            return by_name[str(part)].annotation
    args = [a for a in getattr(annotation, "__args__", ()) if a not in (type(None), ...)]
    return args[-1] if args else None


def _model_in(annotation: Any) -> type[BaseModel] | None:
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return annotation
    for arg in getattr(annotation, "__args__", ()):
        found = _model_in(arg)
        if found is not None:
            return found
    return None


def _got(error: ErrorDetails) -> str:
    value = error.get("input")
    if error["type"] == NOT_SHOWN:
        return ""
    if value is None:
        return "found nothing"
    if isinstance(value, str):
        return f"found {value!r}" if len(value) <= _SHOWN else f"found {value[:_SHOWN]!r}..."
    if isinstance(value, (int, float)):
        quotes = "; put it in quotes" if error["type"] == "string_type" else ""
        return f"found {value!r}{quotes}"
    return f"found {_kind(value)}"


def _dotted(loc: Loc) -> str:
    return ".".join(str(part + 1) if isinstance(part, int) else part for part in loc)


def _some_fields(model: type[BaseModel]) -> str:
    return ", ".join(list(model.model_fields)[:3])


def _kind(data: Any) -> str:
    names = {list: "a list", dict: "keys", str: "text", type(None): "nothing"}
    return names.get(type(data), f"{data!r}")
