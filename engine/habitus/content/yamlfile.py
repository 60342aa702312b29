"""Reading YAML 1.2 with the place of every key and value.

``NO`` and ``yes`` are text here, as YAML 1.2 has it; duplicate keys are errors. The composed
node tree is walked once, which gives plain data and positions together and lets size, depth and
aliases be bounded before anything is built.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from habitus.errors import ContentError, Place, Problem

MAX_BYTES = 8 * 2**20
MAX_DEPTH = 40
MAX_ALIASES = 100

Loc = tuple[str | int, ...]

_SCALARS = {"str", "null", "bool", "int", "float", "timestamp", "value", "merge"}


@dataclass(frozen=True, slots=True)
class Document:
    """Plain data of a YAML file and the place of each of its parts.

    ``positions`` maps a path of keys and indices to (line, column) of the value; ``keys`` does
    the same for the key itself. ``elsewhere`` names the source of parts that were set from
    outside the file; they stand at line 0.
    """

    path: Path
    data: Any
    positions: dict[Loc, tuple[int, int]] = field(default_factory=dict)
    keys: dict[Loc, tuple[int, int]] = field(default_factory=dict)
    elsewhere: dict[Loc, Path] = field(default_factory=dict)

    def place(self, loc: Loc = (), *, of_key: bool = False) -> Place:
        """The place of a part, or of the nearest part around it that stands in the file."""
        tables = (self.keys, self.positions) if of_key else (self.positions, self.keys)
        for end in range(len(loc), -1, -1):
            for table in tables:
                if loc[:end] in table:
                    return Place(self._source(loc[:end]), *table[loc[:end]])
        return Place(self.path, 1, 1)

    def _source(self, loc: Loc) -> Path:
        for end in range(len(loc), 0, -1):
            if loc[:end] in self.elsewhere:
                return self.elsewhere[loc[:end]]
        return self.path

    def problem(self, loc: Loc, what: str, hint: str = "") -> Problem:
        """A problem at one part of the file."""
        return Problem(what, self.place(loc), hint)


def read_text(path: Path) -> str:
    """The text of a UTF-8 file.

    Raises:
        ContentError: missing, a folder, unreadable, too large, or not UTF-8 (with the line).
    """
    try:
        raw = path.read_bytes()
    except OSError as error:
        reason = error.strerror or type(error).__name__
        raise ContentError([Problem(f"cannot be read: {reason}", Place(path))]) from None
    if len(raw) > MAX_BYTES:
        what = f"file has {len(raw):,} bytes, over the limit of {MAX_BYTES:,}"
        raise ContentError([Problem(what, Place(path))])
    try:
        return raw.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = raw.count(b"\n", 0, error.start) + 1
        column = error.start - (raw.rfind(b"\n", 0, error.start) + 1) + 1
        place = Place(path, line, column)
        what = f"byte 0x{raw[error.start]:02x} is not UTF-8"
        raise ContentError([Problem(what, place, "save the file as UTF-8")]) from None


def read_yaml(path: Path) -> Document:
    """Read one YAML file.

    Raises:
        ContentError: not readable, not YAML, empty, duplicate keys, or beyond the limits.
    """
    return parse_yaml(read_text(path), path)


def parse_yaml(text: str, path: Path) -> Document:
    """Parse YAML text; ``path`` only names it in errors."""
    node = _compose(text, path)
    if node is None:
        raise ContentError([Problem("the file is empty", Place(path, 1, 1))])
    document = Document(path, None)
    walk = _Walk(document)
    data = walk.value(node, (), 0)
    if walk.problems:
        raise ContentError(walk.problems)
    return Document(path, data, document.positions, document.keys)


def _compose(text: str, path: Path) -> Any:
    from ruamel.yaml import YAML  # noqa: PLC0415  (heavy, and not every command reads YAML)
    from ruamel.yaml.error import MarkedYAMLError, YAMLError  # noqa: PLC0415

    try:
        return YAML(typ="safe", pure=True).compose(text)
    except MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        place = Place(path, mark.line + 1, mark.column + 1) if mark else Place(path, 1, 1)
        raise ContentError([_explain(text, error, place)]) from None
    except YAMLError as error:
        place, what = _reader_error(text, error, path)
        raise ContentError([Problem(what, place)]) from None
    except RecursionError:
        what = f"nested deeper than {MAX_DEPTH} levels"
        raise ContentError([Problem(what, Place(path, 1, 1))]) from None


def _explain(text: str, error: Any, place: Place) -> Problem:
    lines = text.splitlines()
    line = lines[place.line - 1] if place.line <= len(lines) else ""
    if (
        "\t" in line[: len(line) - len(line.lstrip())]
        or line[place.column - 1 : place.column] == "\t"
    ):
        return Problem("a tab is used for indentation", place, "use spaces")
    what = " ".join(part for part in (error.context, error.problem) if part)
    return Problem(f"not valid YAML: {what or error}", place)


def _reader_error(text: str, error: Any, path: Path) -> tuple[Place, str]:
    position = getattr(error, "position", None)
    if position is None:
        return Place(path, 1, 1), f"not valid YAML: {str(error).splitlines()[0]}"
    before = text[:position]
    place = Place(path, before.count("\n") + 1, position - (before.rfind("\n") + 1) + 1)
    return place, f"character U+{ord(text[position]):04X} is not allowed in YAML"


class _Walk:
    """Turns composed nodes into data, noting positions and problems."""

    def __init__(self, document: Document) -> None:
        self.document = document
        self.problems: list[Problem] = []
        self._seen: set[int] = set()
        self._aliases = 0

    def value(self, node: Any, loc: Loc, depth: int) -> Any:
        self.document.positions[loc] = _position(node)
        if depth > MAX_DEPTH or self._too_many_aliases(node):
            self._add(node, f"nested deeper than {MAX_DEPTH} levels or too many aliases")
            return None
        if node.id == "mapping":
            return dict(self._pairs(node, loc, depth))
        if node.id == "sequence":
            return [self.value(item, (*loc, i), depth + 1) for i, item in enumerate(node.value)]
        return self._scalar(node)

    def _too_many_aliases(self, node: Any) -> bool:
        if node.anchor is not None and id(node) in self._seen:
            self._aliases += 1
        self._seen.add(id(node))
        return self._aliases > MAX_ALIASES

    def _pairs(self, node: Any, loc: Loc, depth: int) -> Iterator[tuple[str, Any]]:
        first: dict[str, int] = {}
        for key_node, value_node in node.value:
            key = str(key_node.value)
            if key_node.id != "scalar":
                self._add(key_node, "a key must be a plain word")
                continue
            if key in first:
                self._add(key_node, f"duplicate key {key!r}; first on line {first[key]}")
                continue
            first[key] = key_node.start_mark.line + 1
            self.document.keys[(*loc, key)] = _position(key_node)
            yield key, self.value(value_node, (*loc, key), depth + 1)

    def _scalar(self, node: Any) -> Any:
        kind = str(node.tag).rpartition(":")[2]
        text = str(node.value)
        if kind not in _SCALARS:
            self._add(node, f"the tag {node.tag} is not allowed")
            return None
        if kind == "null":
            return None
        if kind == "bool":
            return text.lower() == "true"
        if kind in {"int", "float"}:
            return self._number(node, kind, text)
        return text

    def _number(self, node: Any, kind: str, text: str) -> Any:
        plain = text.replace("_", "")
        try:
            if kind == "float":
                return float(plain.lower().replace(".inf", "inf").replace(".nan", "nan"))
            base = {"0x": 16, "0o": 8, "0b": 2}.get(plain.lstrip("+-")[:2].lower(), 10)
            return int(plain, base)
        except ValueError:
            self._add(node, f"{text!r} is not a number")
            return None

    def _add(self, node: Any, what: str) -> None:
        self.problems.append(Problem(what, Place(self.document.path, *_position(node))))


def _position(node: Any) -> tuple[int, int]:
    return node.start_mark.line + 1, node.start_mark.column + 1
