"""A JSON schema as a grammar that llama.cpp enforces token by token.

    body["grammar"] = compact_grammar(schema)

The grammar is read by llguidance, which llama.cpp carries. White space is off, so that a model
spends no token on it, and properties come in the order of the schema. llama.cpp drops a grammar
that llguidance cannot build and lets the model answer freely, without a word: so what cannot be
enforced is refused here, before anything is asked.

Enforced: type (single or list), properties in order, required, additionalProperties,
patternProperties, minProperties and maxProperties (where all listed properties are required),
items (a schema, or false after prefixItems), prefixItems, minItems, maxItems, const, enum,
anyOf, oneOf (where the choices exclude each other), allOf, $ref within the schema, minLength,
maxLength, pattern (no look-around), minimum, maximum, exclusive bounds, multipleOf, and the
formats in ``FORMATS``.

Refused: not, if/then/else, uniqueItems, contains, propertyNames, the dependent and unevaluated
keywords, other formats, references to other documents.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

FORMATS = frozenset(
    ["date", "date-time", "duration", "email", "hostname", "ipv4", "ipv6", "time", "uri", "uuid"]
)
_TYPES = frozenset(["null", "boolean", "integer", "number", "string", "array", "object"])
_HOLD_ONE = frozenset(["items", "additionalProperties", "additionalItems"])
_HOLD_LIST = frozenset(["anyOf", "oneOf", "allOf", "prefixItems"])
_HOLD_NAMED = frozenset(["properties", "patternProperties", "$defs", "definitions"])
_PLAIN = frozenset(
    [
        "type",
        "enum",
        "const",
        "$ref",
        "required",
        "minProperties",
        "maxProperties",
        "minItems",
        "maxItems",
        "minLength",
        "maxLength",
        "pattern",
        "format",
        "minimum",
        "maximum",
        "exclusiveMinimum",
        "exclusiveMaximum",
        "multipleOf",
    ]
)
_SAY_NOTHING = frozenset(
    [
        "$schema",
        "$comment",
        "title",
        "description",
        "default",
        "examples",
        "readOnly",
        "writeOnly",
        "deprecated",
        "contentEncoding",
        "contentMediaType",
        "discriminator",
    ]
)


class UnsupportedSchemaError(ValueError):
    """A schema that cannot be enforced; the message names the keyword."""


def compact_grammar(schema: Mapping[str, Any]) -> str:
    """The grammar of all JSON texts without white space that meet a schema.

    Raises:
        UnsupportedSchemaError: a part of the schema cannot be enforced.
    """
    whole = {**_enforceable(schema), "x-guidance": {"whitespace_flexible": False}}
    return "%llguidance {}\nstart: %json " + json.dumps(whole, ensure_ascii=False)


def _enforceable(schema: Any) -> Any:
    """A copy of a schema without what says nothing about the answer."""
    if isinstance(schema, bool):
        return schema
    if not isinstance(schema, Mapping):
        raise UnsupportedSchemaError(f"{schema!r} in the place of a schema")
    kept = {key: _part(key, value) for key, value in schema.items() if key not in _SAY_NOTHING}
    _check(kept)
    return kept


def _part(key: str, value: Any) -> Any:
    if key in _PLAIN:
        return value
    if key in _HOLD_ONE:
        return _enforceable(value)
    if key in _HOLD_LIST and isinstance(value, (list, tuple)):
        return [_enforceable(one) for one in value]
    if key in _HOLD_NAMED and isinstance(value, Mapping):
        return {name: _enforceable(one) for name, one in value.items()}
    raise UnsupportedSchemaError(key)


def _check(schema: Mapping[str, Any]) -> None:
    """Refuse values of keywords that llguidance would stumble over."""
    kinds = schema.get("type", [])
    unknown = set([kinds] if isinstance(kinds, str) else kinds) - _TYPES
    if unknown:
        raise UnsupportedSchemaError(f"type {min(unknown)}")
    form = schema.get("format")
    if form is not None and form not in FORMATS:
        raise UnsupportedSchemaError(f"format {form}")
    if not str(schema.get("$ref", "#")).startswith("#"):
        raise UnsupportedSchemaError("$ref to another document")
