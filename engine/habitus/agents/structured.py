"""Answers with a fixed shape: a schema in the request, a reader for the reply, one repair.

A reader turns text into a :class:`Reading`: a value and what is wrong with it. ``ask`` makes the
call; a reply that was cut is asked again with twice the room, one that cannot be read (or not
wholly) is asked for once more with the fault named. What then is still unreadable is
``unparsed``; it never becomes a verdict.

Items are joined by identifier, never by position. An answer for several identifiers is one
object keyed by them, which a schema can enforce on every server (each identifier once, none
made up); a list of objects that name their identifier is read as well.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, Generic, Protocol, TypeVar

from habitus.agents.jsontext import Decoded, decode_json
from habitus.models import ChatModel
from habitus.records import Failure, Message, Outcome, Reply, Request, Schema, derive_seed

Value = TypeVar("Value", covariant=True)  # noqa: PLC0105  (one name for all readers)


@dataclass(frozen=True, slots=True)
class Reading(Generic[Value]):
    """What a reader made of a text: a value, and the faults that are left (0 is a clean one)."""

    value: Value | None
    problem: str = ""
    faults: int = 0


class Reader(Protocol[Value]):
    """Reads the text of an answer."""

    @property
    def schema(self) -> Schema:
        """The shape that is asked of the model."""
        ...

    def read(self, text: str) -> Reading[Value]:
        """Read one answer."""
        ...


@dataclass(frozen=True, slots=True)
class Answer(Generic[Value]):
    """A value, or the failure that stands in its place; the keys of the calls behind it."""

    value: Value | None
    failure: Failure | None
    calls: tuple[str, ...]


async def ask(model: ChatModel, request: Request, reader: Reader[Value]) -> Answer[Value]:
    """Ask for an answer of the reader's shape; at most one more call to mend it."""
    first = await model.complete(replace(request, schema=reader.schema))
    reading = _read(first, reader)
    if reading.value is not None and not reading.problem:
        return Answer(reading.value, None, (first.key.hex(),))
    again = _again(request, first, reading)
    if again is None:
        return Answer(None, first.failure, (first.key.hex(),))
    second = await model.complete(replace(again, schema=reader.schema))
    better = min((_read(second, reader), reading), key=lambda r: (r.value is None, r.faults))
    return _answer(better, first, second)


def _read(reply: Reply, reader: Reader[Value]) -> Reading[Value]:
    if not reply.ok:
        return Reading(None, reply.reason or reply.outcome.value, faults=1)
    return reader.read(reply.text)


def _again(request: Request, reply: Reply, reading: Reading[Any]) -> Request | None:
    """The one further request: more room, or the fault named. None when neither can help."""
    seed = derive_seed(request.seed or 0, "repair", request.record, request.attempt)
    again = replace(request, attempt=request.attempt + 1, seed=seed)
    if reply.outcome is Outcome.TRUNCATED and request.sampling.max_tokens:
        room = request.sampling.max_tokens * 2
        return replace(again, sampling=replace(request.sampling, max_tokens=room))
    if not reply.ok and reply.outcome is not Outcome.UNPARSED:
        return None
    fault = f"That answer could not be used: {reading.problem}. Give the whole answer again, as JSON only."
    said = (Message("assistant", reply.text),) if reply.text.strip() else ()
    ask_again = (*request.messages, *said, Message("user", fault)) if said else request.messages
    return replace(again, messages=ask_again)


def _answer(reading: Reading[Value], first: Reply, second: Reply) -> Answer[Value]:
    calls = (first.key.hex(), second.key.hex())
    if reading.value is not None:
        return Answer(reading.value, None, calls)
    if second.ok or first.ok:
        return Answer(None, Failure(Outcome.UNPARSED, reading.problem), calls)
    return Answer(None, second.failure, calls)


@dataclass(frozen=True)
class ObjectReader:
    """Reads one JSON object that must meet the schema."""

    schema: Schema

    @cached_property
    def _validator(self) -> Any:
        return _validator(self.schema.body)

    def read(self, text: str) -> Reading[dict[str, Any]]:
        """The object, or None with the first thing wrong with it."""
        decoded = decode_json(text)
        if decoded is None:
            return Reading(None, "there is no JSON in it", faults=1)
        problem = _first_error(self._validator, decoded.value)
        return Reading(None if problem else decoded.value, problem, faults=bool(problem))


@dataclass(frozen=True, slots=True)
class Items:
    """Answers by identifier, with what was left out, made up or given twice.

    An identifier that was answered twice is in ``invalid``: which answer was meant is not known.
    """

    read: Mapping[str, Mapping[str, Any]]
    missing: tuple[str, ...] = ()
    invalid: Mapping[str, str] = field(default_factory=dict)
    extra: int = 0
    doubled: int = 0
    rest: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class ItemReader:
    """Reads one answer for each identifier.

    Args:
        name: name of the schema.
        ids: identifiers that must be answered, in the order of the question.
        item: JSON Schema of one answer; the order of its properties is the order of writing.
        rest: properties that stand once beside the items, by name.
        id_key: key under which a list names its identifiers.
    """

    name: str
    ids: Sequence[str]
    item: Mapping[str, Any]
    rest: Mapping[str, Any] = field(default_factory=dict)
    id_key: str = "norm_id"

    @cached_property
    def schema(self) -> Schema:
        """One object keyed by identifier, then the rest; nothing else."""
        properties = dict.fromkeys(self.ids, self.item) | dict(self.rest)
        body = {
            "type": "object",
            "properties": properties,
            "required": list(properties),
            "additionalProperties": False,
        }
        return Schema(self.name, body)

    @cached_property
    def _item_validator(self) -> Any:
        return _validator(self.item)

    @cached_property
    def _rest_validator(self) -> Any:
        return _validator(
            {"type": "object", "properties": dict(self.rest), "required": list(self.rest)}
        )

    def read(self, text: str) -> Reading[Items]:
        """All answers that can be read; None only when there is no answer at all."""
        decoded = decode_json(text)
        found = _keyed(decoded, self.id_key) if decoded else None
        if found is None:
            return Reading(None, "there is no JSON object in it", faults=len(self.ids) + 1)
        return self._reading(found)

    def _reading(self, found: _Keyed) -> Reading[Items]:
        errors = {i: _first_error(self._item_validator, found.items[i]) for i in self._known(found)}
        rest = {k: v for k, v in found.rest.items() if k in self.rest}
        errors |= {i: "answered twice" for i in found.doubled if i in errors}
        items = Items(
            read={i: found.items[i] for i, error in errors.items() if not error},
            missing=tuple(i for i in self.ids if i not in found.items),
            invalid={i: error for i, error in errors.items() if error},
            extra=len([i for i in found.items if i not in self.ids]),
            doubled=len(found.doubled),
            rest={} if _first_error(self._rest_validator, rest) else rest,
        )
        problems = list(self._problems(items))
        if not items.read and not items.rest:
            return Reading(None, "; ".join(problems), faults=len(self.ids) + 1)
        return Reading(items, "; ".join(problems), faults=_faults(items, self.rest))

    def _known(self, found: _Keyed) -> list[str]:
        return [i for i in self.ids if i in found.items]

    def _problems(self, items: Items) -> list[str]:
        problems = [f"{i}: {error}" for i, error in list(items.invalid.items())[:3]]
        if items.missing:
            problems.append(f"no answer for {', '.join(items.missing)}")
        if self.rest and not items.rest:
            problems.append(f"{', '.join(self.rest)} missing or of another type")
        return problems


def _faults(items: Items, rest: Mapping[str, Any]) -> int:
    return len(items.missing) + len(items.invalid) + bool(rest and not items.rest)


@dataclass(frozen=True, slots=True)
class _Keyed:
    items: dict[str, Any]
    rest: dict[str, Any]
    doubled: frozenset[str]


def _keyed(decoded: Decoded, id_key: str) -> _Keyed | None:
    """Items by identifier, from an object keyed by them or from a list that names them."""
    value = decoded.value
    rest: dict[str, Any] = {}
    if isinstance(value, dict):
        lists = [v for v in value.values() if _names_ids(v, id_key)]
        if not lists:
            items = {k: v for k, v in value.items() if isinstance(v, dict)}
            rest = {k: v for k, v in value.items() if not isinstance(v, dict)}
            return _Keyed(items, rest, frozenset(decoded.doubled) & items.keys())
        rest = {k: v for k, v in value.items() if v is not lists[0]}
        value = lists[0]
    if not _names_ids(value, id_key):
        return None
    return _from_list(value, id_key, rest)


def _from_list(entries: list[Any], id_key: str, rest: dict[str, Any]) -> _Keyed:
    items: dict[str, Any] = {}
    doubled: set[str] = set()
    for entry in entries:
        name = str(entry[id_key])
        if name in items:
            doubled.add(name)
        items[name] = {k: v for k, v in entry.items() if k != id_key}
    return _Keyed(items, rest, frozenset(doubled))


def _names_ids(value: Any, id_key: str) -> bool:
    return (
        isinstance(value, list)
        and bool(value)
        and all(isinstance(e, dict) and id_key in e for e in value)
    )


def _validator(schema: Mapping[str, Any]) -> Any:
    from jsonschema import Draft202012Validator  # noqa: PLC0415  (half a second of imports)

    return Draft202012Validator(dict(schema))


def _first_error(validator: Any, value: Any) -> str:
    for error in validator.iter_errors(value):
        where = ".".join(map(str, error.absolute_path))
        message = str(error.message)[:200]
        return f"{where}: {message}" if where else message
    return ""
