"""Answers with a fixed shape: a schema in the request, a reader for the reply, one repair.

A reader turns text into a :class:`Reading`: a value and what is wrong with it. ``ask`` makes the
call; a reply that was cut is asked again with twice the room, one that cannot be read (or not
wholly) is asked for once more with the fault named. What then is still unreadable is
``unparsed``; it never becomes a verdict.

Items are joined by identifier, never by position. An answer for several identifiers is one
object keyed by them, which a schema can enforce on every server (each identifier once, none
made up); a list of objects that name their identifier is read as well.

Lengths in a schema are a wish: a server that enforces schemas keeps to them, but a verdict is not
unreadable because its reasoning is long.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache, cached_property
from typing import Any, ClassVar, Generic, Protocol, TypeVar

from habitus.agents.jsontext import TWICE, decode_json
from habitus.models import ChatModel
from habitus.records import Failure, Message, Outcome, Reply, Request, Schema, derive_seed

Value = TypeVar("Value", covariant=True)  # noqa: PLC0105  (one name for all readers)


@dataclass(frozen=True, slots=True)
class Reading(Generic[Value]):
    """What a reader made of a text: a value or None, what is wrong, and in how many places."""

    value: Value | None
    problem: str = ""
    faults: int = 0


class Reader(Protocol[Value]):
    """Reads the text of an answer."""

    @property
    def schema(self) -> Schema | None:
        """The shape that is asked of the model; None for an answer in words."""
        ...

    @property
    def again(self) -> str:
        """How the answer is to be given, when it is asked for once more."""
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
    again = _again(request, first, reading, reader.again)
    if again is None:
        return Answer(None, first.failure, (first.key.hex(),))
    second = await model.complete(replace(again, schema=reader.schema))
    return _better(first, reading, second, _read(second, reader))


def _read(reply: Reply, reader: Reader[Value]) -> Reading[Value]:
    if not reply.ok:
        return Reading(None, reply.reason or reply.outcome.value)
    return reader.read(reply.text)


def _again(request: Request, reply: Reply, reading: Reading[Any], how: str) -> Request | None:
    """The one further request: more room, or the fault named. None when neither can help."""
    seed = derive_seed(request.seed or 0, "repair", request.record, request.attempt)
    again = replace(request, attempt=request.attempt + 1, seed=seed)
    if reply.outcome is Outcome.TRUNCATED and request.sampling.max_tokens:
        room = request.sampling.max_tokens * 2
        return replace(again, sampling=replace(request.sampling, max_tokens=room))
    if not reply.ok and reply.outcome is not Outcome.UNPARSED:
        return None
    fault = f"That answer could not be used: {reading.problem}. Give the whole answer again, {how}."
    said = (Message("assistant", reply.text),) if reply.text.strip() else ()
    ask_again = (*request.messages, *said, Message("user", fault)) if said else request.messages
    return replace(again, messages=ask_again)


def _better(
    first: Reply, one: Reading[Value], second: Reply, other: Reading[Value]
) -> Answer[Value]:
    """The reading with fewer faults, the later one of two alike; or why there is none."""
    calls = (first.key.hex(), second.key.hex())
    read = [reading for reading in (other, one) if reading.value is not None]
    if read:
        return Answer(min(read, key=lambda reading: reading.faults).value, None, calls)
    if not first.ok and not second.ok:
        return Answer(None, second.failure, calls)
    problem = other.problem if second.ok else one.problem
    return Answer(None, Failure(Outcome.UNPARSED, problem), calls)


@dataclass(frozen=True)
class ObjectReader:
    """Reads one JSON object that must meet the schema; ``tidy`` is applied before the check."""

    schema: Schema
    tidy: Callable[[Mapping[str, Any]], Mapping[str, Any]] = dict

    again: ClassVar[str] = "as JSON only"

    @cached_property
    def _validator(self) -> Any:
        return _validator(self.schema.body)

    def read(self, text: str) -> Reading[Mapping[str, Any]]:
        """The object, or None with the first thing wrong with it."""
        decoded = decode_json(text)
        return Reading(None, decoded.problem) if decoded.problem else self.check(decoded.value)

    def check(self, value: Any) -> Reading[Mapping[str, Any]]:
        """The same for a value that is decoded."""
        found = self.tidy(value) if isinstance(value, dict) else value
        problem = _first_error(self._validator, found)
        return Reading(None, problem) if problem else Reading(found)


@dataclass(frozen=True, slots=True)
class Items:
    """Answers by identifier, with what was left out, made up or given twice.

    An identifier that was answered twice is in ``invalid``: which answer was meant is not known.
    ``rest`` holds what was read of the properties beside the items.
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

    again: ClassVar[str] = "as JSON only"

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
    def _rest_validators(self) -> dict[str, Any]:
        return {name: _validator(schema) for name, schema in self.rest.items()}

    def read(self, text: str) -> Reading[Items]:
        """All answers that can be read; None only when there is no answer at all."""
        decoded = decode_json(text)
        if decoded.problem:
            return Reading(None, decoded.problem)
        found = keyed(decoded.value, self.id_key)
        if found is None:
            return Reading(None, f"it is no object keyed by {self.id_key}")
        return self._reading(found)

    def _reading(self, found: Keyed) -> Reading[Items]:
        errors = {i: self._error(found.items[i]) for i in self.ids if i in found.items}
        items = Items(
            read={i: found.items[i] for i, error in errors.items() if not error},
            missing=tuple(i for i in self.ids if i not in found.items),
            invalid={i: error for i, error in errors.items() if error},
            extra=len(found.items.keys() - set(self.ids)),
            doubled=sum(item is TWICE for item in found.items.values()),
            rest=self._rest(found.rest),
        )
        problem = "; ".join(self._problems(items))
        if not found.items and not items.rest:
            return Reading(None, problem)
        faults = len(items.missing) + len(items.invalid) + len(self.rest) - len(items.rest)
        return Reading(items, problem, faults)

    def _error(self, item: Any) -> str:
        return "answered twice" if item is TWICE else _first_error(self._item_validator, item)

    def _rest(self, rest: Mapping[str, Any]) -> dict[str, Any]:
        return {
            name: rest[name]
            for name, validator in self._rest_validators.items()
            if name in rest and not _first_error(validator, rest[name])
        }

    def _problems(self, items: Items) -> Iterator[str]:
        yield from [f"{i}: {error}" for i, error in items.invalid.items()][:3]
        if items.missing:
            yield f"no answer for {', '.join(items.missing)}"
        unread = [name for name in self.rest if name not in items.rest]
        if unread:
            yield f"{', '.join(unread)} missing or of another type"


@dataclass(frozen=True, slots=True)
class Keyed:
    """Answers by identifier (``TWICE`` where there are two), and what stands beside them."""

    items: dict[str, Any]
    rest: dict[str, Any]


def keyed(value: Any, id_key: str) -> Keyed | None:
    """Items by identifier, from an object keyed by them or from a list that names them."""
    if _names_ids([value], id_key):
        value = [value]
    if _names_ids(value, id_key):
        return Keyed(_from_list(value, id_key), {})
    if not isinstance(value, dict):
        return None
    lists = [name for name, part in value.items() if _names_ids(part, id_key)]
    if len(lists) > 1:
        return None  # which of them is the answer is not known
    if lists:
        rest = {name: part for name, part in value.items() if name != lists[0]}
        return Keyed(_from_list(value[lists[0]], id_key), rest)
    is_item = {name: isinstance(part, dict) or part is TWICE for name, part in value.items()}
    return Keyed(
        {name: _unnamed(part, name, id_key) for name, part in value.items() if is_item[name]},
        {name: part for name, part in value.items() if not is_item[name]},
    )


def _from_list(entries: list[dict[str, Any]], id_key: str) -> dict[str, Any]:
    items: dict[str, Any] = {}
    for entry in entries:
        name = str(entry[id_key])
        items[name] = TWICE if name in items else _unnamed(entry, entry[id_key], id_key)
    return items


def _unnamed(item: Any, name: Any, id_key: str) -> Any:
    """An answer without its own name, where it repeats it."""
    if item is TWICE or item.get(id_key) != name:
        return item
    return {key: part for key, part in item.items() if key != id_key}


def _names_ids(value: Any, id_key: str) -> bool:
    return (
        isinstance(value, list)
        and bool(value)
        and all(isinstance(e, dict) and id_key in e for e in value)
    )


def _validator(schema: Mapping[str, Any]) -> Any:
    return _without_lengths()(dict(schema))


@cache
def _without_lengths() -> Any:
    from jsonschema import Draft202012Validator, validators  # noqa: PLC0415  (slow to import)

    extend: Callable[..., Any] = validators.extend
    return extend(Draft202012Validator, {"maxLength": lambda *_: None})


def _first_error(validator: Any, value: Any) -> str:
    for error in validator.iter_errors(value):
        where = ".".join(map(str, error.absolute_path))
        message = str(error.message)[:200]
        return f"{where}: {message}" if where else message
    return ""
