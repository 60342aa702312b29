"""Reading YAML 1.2 with the place of every key and value.

``NO`` and ``yes`` are text here, as YAML 1.2 has it; duplicate keys, merge keys (``<<``) and tags
of other kinds are errors. Size, depth and the number of nodes are bounded while the file is read;
the composed node tree is then walked once, which gives plain data and positions together and
bounds what aliases repeat.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any, NoReturn

from habitus.errors import ContentError, Place, Problem

MAX_BYTES = 8 * 2**20
MAX_DEPTH = 40
MAX_ALIASES = 100
MAX_PARTS = 200_000  # each is kept with its place; few aliases can repeat a lot

_TOO_DEEP = f"nested deeper than {MAX_DEPTH} levels"
_TOO_MANY = f"more than {MAX_PARTS:,} values"

Loc = tuple[str | int, ...]

_TAG = "tag:yaml.org,2002:"
_TEXT = {"str", "timestamp", "value"}  # dates and "=" are text like any other
_WORDS = {"null": {"", "~", "null"}, "bool": {"true", "false"}}
_COLLECTIONS = {"mapping": "map", "sequence": "seq"}


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
        with path.open("rb") as file:
            raw = file.read(MAX_BYTES + 1)
    except OSError as error:
        reason = error.strerror or type(error).__name__
        raise ContentError([Problem(f"cannot be read: {reason}", Place(path))]) from None
    if len(raw) > MAX_BYTES:
        what = f"the file is larger than the limit of {MAX_BYTES:,} bytes"
        raise ContentError([Problem(what, Place(path))])
    try:
        return raw.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        before = error.object[: error.start].decode("utf-8")  # the part that could be read
        place = Place(path, *_line_and_column(before, len(before)))
        what = f"byte 0x{error.object[error.start]:02x} is not UTF-8"
        raise ContentError([Problem(what, place, "save the file as UTF-8")]) from None


def read_yaml(path: Path) -> Document:
    """Read one YAML file.

    Raises:
        ContentError: not readable, not YAML, empty, duplicate keys, or beyond the limits.
    """
    return parse_yaml(read_text(path), path)


def parse_yaml(text: str, path: Path) -> Document:
    """Parse YAML text; ``path`` only names it in errors."""
    _check_version(text, path)
    node = _compose(text, path)
    if node is None or (node.id == "scalar" and not node.value and node.style is None):
        raise ContentError([Problem("the file is empty", Place(path, 1, 1))])
    walk = _Walk(path)
    data = walk.value(node, (), 0)
    if walk.problems:
        raise ContentError(dict.fromkeys(walk.problems))  # an alias repeats what it stands for
    return Document(path, data, walk.positions, walk.keys)


def _check_version(text: str, path: Path) -> None:
    """In an older version ``NO`` is false and ``010`` is eight. No other directive has a use here."""
    for number, line in enumerate(text.splitlines(), start=1):
        if line.startswith("%YAML") and line.split()[1:2] != ["1.2"]:
            what = f"the file asks for another YAML: {line.strip()!r}"
            raise ContentError([Problem(what, Place(path, number, 1), "remove this line")])
        if line.startswith("%") and not line.startswith("%YAML"):
            what = f"directives are not read: {line.strip()[:40]!r}"
            raise ContentError([Problem(what, Place(path, number, 1), "remove this line")])
        if line.strip() and not line.startswith(("#", "%")):
            return


def _compose(text: str, path: Path) -> Any:
    from ruamel.yaml import YAML  # noqa: PLC0415  (heavy, and not every command reads YAML)
    from ruamel.yaml.error import MarkedYAMLError, YAMLError  # noqa: PLC0415

    yaml = YAML(typ="safe", pure=True)
    yaml.Composer = _bounded_composer()
    yaml.composer.warn_double_anchors = False  # a warning is no message for a person
    try:
        return yaml.compose(text)
    except MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        place = Place(path, mark.line + 1, mark.column + 1) if mark else Place(path, 1, 1)
        raise ContentError([_explain(text, error, place)]) from None
    except YAMLError as error:
        place, what = _reader_error(text, error, path)
        raise ContentError([Problem(what, place)]) from None
    except _BeyondLimitError as error:
        mark = error.mark
        place = Place(path, mark.line + 1, mark.column + 1)
        raise ContentError([Problem(str(error), place)]) from None


class _BeyondLimitError(Exception):
    """A file has more of something than is read, from ``mark`` on."""

    def __init__(self, what: str, mark: Any) -> None:
        super().__init__(what)
        self.mark = mark


@cache
def _bounded_composer() -> Any:
    """A composer that stops at the limits: a small file can hold millions of nodes."""
    from ruamel.yaml.composer import Composer  # noqa: PLC0415  (heavy, like the rest of it)

    class Bounded(Composer):
        nodes = 0

        def compose_node(self, parent: Any, index: Any) -> Any:
            self.nodes += 1
            if self.nodes > 2 * MAX_PARTS:  # a value and its key are two
                raise _BeyondLimitError(_TOO_MANY, self.parser.peek_event().start_mark)
            if self.depth > MAX_DEPTH:
                raise _BeyondLimitError(_TOO_DEEP, self.parser.peek_event().start_mark)
            return super().compose_node(parent, index)

    return Bounded


def _explain(text: str, error: Any, place: Place) -> Problem:
    lines = text.splitlines()
    line = lines[place.line - 1] if place.line <= len(lines) else ""
    if "\t" in line[: len(line) - len(line.lstrip())]:
        return Problem("a tab is used for indentation", place, "use spaces")
    if line[place.column - 1 : place.column] == "\t":
        return Problem("a tab stands where YAML takes spaces only", place, "use spaces")
    what = " ".join(part for part in (error.context, error.problem) if part)
    return Problem(f"not valid YAML: {what or error}", place)


def _reader_error(text: str, error: Any, path: Path) -> tuple[Place, str]:
    position = getattr(error, "position", None)
    if position is None:
        return Place(path, 1, 1), f"not valid YAML: {str(error).splitlines()[0]}"
    place = Place(path, *_line_and_column(text, position))
    return place, f"character U+{ord(text[position]):04X} is not allowed in YAML"


class _Walk:
    """Turns composed nodes into data, noting positions and problems."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.positions: dict[Loc, tuple[int, int]] = {}
        self.keys: dict[Loc, tuple[int, int]] = {}
        self.problems: list[Problem] = []
        self._seen: set[int] = set()
        self._aliases = 0

    def value(self, node: Any, loc: Loc, depth: int) -> Any:
        self._check_limits(node, depth)
        self.positions[loc] = _position(node)
        if node.id == "scalar":
            return self._scalar(node)
        if str(node.tag) != _TAG + _COLLECTIONS[node.id]:
            self._add(node, f"the tag {_short(node.tag)} is not allowed")
            return None
        if node.id == "mapping":
            return dict(self._pairs(node, loc, depth))
        return [self.value(item, (*loc, i), depth + 1) for i, item in enumerate(node.value)]

    def _check_limits(self, node: Any, depth: int) -> None:
        """Stop at the first limit that is crossed: what follows is more of the same."""
        if node.anchor is not None and id(node) in self._seen:
            self._aliases += 1
        self._seen.add(id(node))
        if depth > MAX_DEPTH:
            self._stop(node, _TOO_DEEP)
        if self._aliases > MAX_ALIASES:
            self._stop(node, f"more than {MAX_ALIASES} aliases (*name)")
        if len(self.positions) >= MAX_PARTS:
            self._stop(node, _TOO_MANY)

    def _pairs(self, node: Any, loc: Loc, depth: int) -> Iterator[tuple[str, Any]]:
        first: dict[str, int] = {}
        for key_node, value_node in node.value:
            if key_node.id != "scalar":
                self._add(key_node, "a key must be a plain word")
                continue
            key = str(key_node.value)
            if str(key_node.tag) == _TAG + "merge":
                self._add(key_node, "merge keys (<<) are not read", "write the keys out")
                continue
            if key in first:
                self._add(key_node, f"duplicate key {key!r}; first on line {first[key]}")
                continue
            first[key] = key_node.start_mark.line + 1
            self.keys[(*loc, key)] = _position(key_node)
            value = self.value(value_node, (*loc, key), depth + 1)
            if value is None:  # an empty value stands nowhere, or on the line below
                self.positions[(*loc, key)] = _position(key_node)
            yield key, value

    def _scalar(self, node: Any) -> Any:
        kind = str(node.tag).removeprefix(_TAG)
        text = str(node.value)
        if kind in _TEXT:
            return text
        if kind in {"int", "float"}:
            return self._number(node, kind, text)
        if kind not in _WORDS:
            self._add(node, f"the tag {_short(node.tag)} is not allowed")
            return None
        if text.lower() not in _WORDS[kind]:
            self._add(node, f"{text!r} is not {kind}")
            return None
        return None if kind == "null" else text.lower() == "true"

    def _number(self, node: Any, kind: str, text: str) -> Any:
        plain = text.replace("_", "")
        try:
            if kind == "float":
                return float(plain.lower().replace(".inf", "inf").replace(".nan", "nan"))
            base = {"0x": 16, "0o": 8, "0b": 2}.get(plain.lstrip("+-")[:2].lower(), 10)
            return int(plain, base)
        except ValueError:
            self._add(node, f"{text[:40]!r} is not a number that can be read")
            return None

    def _stop(self, node: Any, what: str) -> NoReturn:
        raise ContentError([Problem(what, Place(self.path, *_position(node)))])

    def _add(self, node: Any, what: str, hint: str = "") -> None:
        self.problems.append(Problem(what, Place(self.path, *_position(node)), hint))


def _short(tag: Any) -> str:
    return str(tag).replace(_TAG, "!!")


def _position(node: Any) -> tuple[int, int]:
    return node.start_mark.line + 1, node.start_mark.column + 1


def _line_and_column(text: str, offset: int) -> tuple[int, int]:
    return text.count("\n", 0, offset) + 1, offset - (text.rfind("\n", 0, offset) + 1) + 1
