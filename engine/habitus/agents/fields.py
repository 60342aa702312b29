"""Reading labels from the fields of JSON: one verdict, or one for each of several questions.

    one = FieldReader("claim", labels, judged=(response,))
    one.read('{"reasoning": "a bare plural", "label": "Generalizing"}').value.label

    fields = {"care": FieldReader("care", labels), "heat": FieldReader("heat", others)}
    all_of_them = VerdictsReader(verdicts_schema("warmth", fields), fields, judged=(response,))
    all_of_them.read('{"care": {...}, "heat": {...}}').value["care"].value.label

Several verdicts are one object keyed by the ids of the questions, or a list whose objects name
theirs under ``variant``. Each question stands by itself: one that is left out, answered twice or
answered with something that is no label has no verdict, and the others keep theirs.

A judged text must not label itself. JSON that repeats reasoning and label of the judged text is a
quotation, in whatever layout. What this cannot tell is an answer that is nothing but that JSON, with
a reasoning of a few letters or none.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache
from typing import Any, ClassVar

from habitus.agents.jsontext import TWICE, Decoded, decode_json
from habitus.agents.marks import LabelList, marked_labels
from habitus.agents.quotations import letters_of, normal_text, without_thinking
from habitus.agents.structured import ObjectReader, Reading, keyed
from habitus.agents.verdicts import Verdict
from habitus.records import Schema

ID_KEY = "variant"
_LONG = 16  # letters of reasoning that are not the same by chance
_QUOTED = "its JSON is a quotation of the judged text"
_ESCAPE = re.compile(r"\\(?:u([0-9a-fA-F]{4})|.)", re.DOTALL)


@dataclass(frozen=True)
class FieldReader:
    """Reads the label from a field of a JSON object.

    Args:
        name: name of the schema.
        labels: the closed list.
        keys: what the fields of the reasoning and of the label are called.
        longest: characters of the reasoning that are asked for; 0 asks for none.
        judged: the texts that the judge was shown.
    """

    name: str
    labels: LabelList
    keys: tuple[str, str] = ("reasoning", "label")
    longest: int = 300
    judged: Sequence[str] = ()

    again: ClassVar[str] = "as JSON only"

    @property
    def schema(self) -> Schema:
        """One object: the reasoning first where it is wanted, then the label."""
        return _label_schema(self.name, self.labels.names, self.keys, self.longest)

    def read(self, text: str) -> Reading[Verdict]:
        """The verdict, or None with the reason; it never raises, whatever the text."""
        text, decoded = _decoded(text)
        if decoded.problem:
            return Reading(None, decoded.problem)
        reading = self.verdict(decoded.value)
        if reading.value is None:
            return reading
        if _Shown(self.judged, self.keys).quoted(text, {self.name: decoded.value}):
            return Reading(None, _QUOTED)
        found = reading.value
        return Reading(replace(found, others=self._others(text, found.label)))

    def verdict(self, value: Any) -> Reading[Verdict]:
        """The verdict of an answer that is decoded already, and may be of any shape."""
        reading = ObjectReader(self.schema, self._tidy).check(value)
        if reading.value is None:
            return Reading(None, reading.problem)
        label = str(reading.value[self.keys[1]])
        reasoning = str(reading.value.get(self.keys[0], ""))
        return Reading(
            Verdict(label, reasoning, self._others(reasoning, label), self._alias(value))
        )

    def _alias(self, value: Mapping[str, Any]) -> str:
        given = (text for key, text in value.items() if key.casefold() == self.keys[1].casefold())
        return self.labels.alias(str(next(given, "")))

    def _others(self, text: str, label: str) -> tuple[str, ...]:
        marked = (token.label for token in marked_labels(normal_text(text), self.labels))
        return tuple(dict.fromkeys(other for other in marked if other and other != label))

    def _tidy(self, answer: Mapping[str, Any]) -> Mapping[str, Any]:
        """The answer with keys and label as the list spells them."""
        spelt = {key.casefold(): key for key in self.keys}
        names = [spelt.get(str(key).casefold(), key) for key in answer]
        if len(set(names)) < len(names):
            return answer
        tidy = dict(zip(names, answer.values(), strict=True))
        label = tidy.get(self.keys[1])
        if isinstance(label, str):
            tidy[self.keys[1]] = self.labels.find(label) or label
        return tidy


@dataclass(frozen=True)
class VerdictsReader:
    """Reads one verdict for each of several questions, joined by their ids.

    Args:
        schema: the shape of the whole answer, from :func:`verdicts_schema`.
        fields: how the answer to each question is read; all have the same two keys.
        judged: the texts that the judge was shown.
    """

    schema: Schema
    fields: Mapping[str, FieldReader]
    judged: Sequence[str] = ()

    again: ClassVar[str] = "as JSON only"

    @cached_property
    def _ids(self) -> LabelList:
        return LabelList(tuple(self.fields))

    def read(self, text: str) -> Reading[Mapping[str, Reading[Verdict]]]:
        """A reading for each id; None only when no question is answered at all."""
        text, decoded = _decoded(text)
        if decoded.problem:
            return Reading(None, decoded.problem)
        found = keyed(decoded.value, ID_KEY)
        items = self._joined(found.items) if found else {}
        if self.fields.keys().isdisjoint(items):
            return Reading(None, f"it is no object keyed by {', '.join(self.fields)}")
        shown = _Shown(self.judged, next(iter(self.fields.values())).keys)
        if shown.has_json and (TWICE in items.values() or items.keys() - self.fields.keys()):
            return Reading(None, "its JSON may hold some of the judged text")
        quoted = shown.quoted(text, items)
        readings = {name: self._one(name, items, name in quoted) for name in self.fields}
        problems = [f"{i}: {reading.problem}" for i, reading in readings.items() if reading.problem]
        return Reading(readings, "; ".join(problems[:3]), len(problems))

    def _joined(self, items: Mapping[str, Any]) -> dict[str, Any]:
        """Answers by id, in whatever spelling of it they are given."""
        joined: dict[str, Any] = {}
        for name, item in items.items():
            known = self._ids.find(name) or name
            joined[known] = TWICE if known in joined else item
        return joined

    def _one(self, name: str, items: Mapping[str, Any], quoted: bool) -> Reading[Verdict]:
        if name not in items:
            return Reading(None, "not answered")
        if items[name] is TWICE:
            return Reading(None, "answered twice")
        return Reading(None, _QUOTED) if quoted else self.fields[name].verdict(items[name])


def _decoded(text: str) -> tuple[str, Decoded]:
    """An answer without its think block, and the JSON of it."""
    text, problem = without_thinking(text)
    return text, Decoded(problem=problem) if problem else decode_json(text)


def verdicts_schema(name: str, fields: Mapping[str, FieldReader]) -> Schema:
    """One object keyed by the ids of the questions, each id once and in their order."""
    return Schema(name, _closed({i: reader.schema.body for i, reader in fields.items()}))


@dataclass(frozen=True)
class _Shown:
    """What a judge was shown, to tell a quotation of its JSON from an answer."""

    texts: Sequence[str]
    keys: tuple[str, str]

    @cached_property
    def has_json(self) -> bool:
        """Whether a text has the label's key as JSON writes it."""
        key = re.compile(rf'"\s*{re.escape(self.keys[1])}\s*\\?"\s*:', re.IGNORECASE)
        return any(key.search(normal_text(text)) for text in self.texts)

    @cached_property
    def _letters(self) -> tuple[str, ...]:
        return tuple(map(_letters, self.texts))

    def quoted(self, text: str, items: Mapping[str, Any]) -> frozenset[str]:
        """Which items of an answer are a quotation, by their names.

        Where the answer is the JSON and nothing else, a few letters of reasoning may be the same by
        chance; they count when the reasonings of all items together are long.
        """
        lengths = {name: self._reasoned(item) for name, item in items.items() if self._holds(item)}
        whole = len(lengths) == len(items) and sum(lengths.values()) >= _LONG
        if whole or (self.has_json and not _is_bare(text)):
            return frozenset(lengths)
        return frozenset(name for name, length in lengths.items() if length >= _LONG)

    def _reasoned(self, item: Mapping[str, Any]) -> int:
        """Letters of an item that are its reasoning."""
        reasons = (v for k, v in item.items() if str(k).casefold() == self.keys[0].casefold())
        return sum(len(_letters(value)) for value in reasons)

    def _holds(self, item: Any) -> bool:
        """Whether a text has the fields of an item one behind the other, forwards or backwards."""
        if not isinstance(item, Mapping) or not all(isinstance(v, str) for v in item.values()):
            return False
        parts = [_letters(json.dumps([key, value])) for key, value in item.items()]
        orders = ("".join(parts), "".join(reversed(parts)))
        return any(order in text for order in orders for text in self._letters)


def _letters(text: str) -> str:
    """Letters and digits alone: neither layout nor escapes of JSON make a difference."""
    plain = _ESCAPE.sub(lambda match: chr(int(match[1], 16)) if match[1] else "", text)
    return letters_of(normal_text(plain))


def _is_bare(text: str) -> bool:
    """Whether an answer is JSON and nothing else."""
    text = text.strip()
    return text[:1] in {"{", "["} and text[-1:] in {"}", "]"}


@lru_cache(maxsize=256)
def _label_schema(
    name: str, labels: tuple[str, ...], keys: tuple[str, str], longest: int
) -> Schema:
    properties: dict[str, Any] = {}
    if longest:
        properties[keys[0]] = {"type": "string", "maxLength": longest}
    properties[keys[1]] = {"type": "string", "enum": list(labels)}
    return Schema(name, _closed(properties))


def _closed(properties: Mapping[str, Any]) -> dict[str, Any]:
    return {
        "type": "object",
        "properties": dict(properties),
        "required": list(properties),
        "additionalProperties": False,
    }
