"""Prompts are text files with declared placeholders, filled in one pass.

A file may have parts for the roles, each opened by a comment line; text without one is a user
message::

    <!-- system -->
    You write short recommendations.
    <!-- user -->
    Norm: {{norm}}
    {{response|fenced}}

Only ``{{declared}}`` placeholders are filled, once: braces and placeholder-like text inside an
inserted text stay as they are. ``|fenced`` puts the text between two fence lines that cannot
occur in it, so that a text cannot close its own fence. ``<!-- note: ... -->`` at the start of a
line is for readers of the file and is not sent.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from habitus.content.yamlfile import read_text
from habitus.errors import ContentError, Place, Problem

_PLACEHOLDER = re.compile(r"\{\{\s*([^\W\d][\w-]*)\s*(?:\|\s*([\w-]*)\s*)?\}\}")
_PART = re.compile(r"^<!--\s*(system|user|assistant)\s*-->[ \t]*$", re.MULTILINE)
_NOTE = re.compile(r"^<!--\s*note:.*?-->\s*\n?", re.MULTILINE | re.DOTALL)
_FENCE_RUN = re.compile(r"~{3,}")


@dataclass(frozen=True, slots=True)
class Prompt:
    """The parts of a prompt file, as (role, text) pairs with placeholders."""

    name: str
    parts: tuple[tuple[str, str], ...]
    placeholders: frozenset[str]

    def fill(self, values: Mapping[str, str]) -> list[tuple[str, str]]:
        """The parts with every placeholder replaced, once and in one pass.

        Raises:
            KeyError: the caller gave other names than the file declares; a bug of the caller.
        """
        if set(values) != self.placeholders:
            raise KeyError(f"{self.name}: given {sorted(values)}, has {sorted(self.placeholders)}")
        return [(role, _fill(text, values)) for role, text in self.parts]

    def text(self, values: Mapping[str, str]) -> str:
        """The one part of a prompt that has a single part."""
        ((_, text),) = self.fill(values)
        return text


def read_prompt(path: Path, placeholders: Collection[str], *, single: str | None = None) -> Prompt:
    """Read a prompt file and check it against the placeholders its reader fills.

    Args:
        path: the file.
        placeholders: names that must each stand in it; no others may.
        single: what the one part of the file becomes ("the system prompt"), where more than one
            would have no place.

    Raises:
        ContentError: a placeholder that is unknown, missing, or filtered by an unknown word; an
            empty part; a part too many.
    """
    raw = read_text(path)
    problems = [*_misnamed(raw, path, frozenset(placeholders)), *_misplaced(raw, path, single)]
    if problems:
        raise ContentError(sorted(problems, key=lambda p: (p.place.line, p.place.column)))
    return Prompt(path.name, tuple(_parts(raw)), frozenset(placeholders))


def fence(text: str) -> str:
    """The text between two lines of tildes, longer than any run of tildes inside it."""
    longest = max((len(run) for run in _FENCE_RUN.findall(text)), default=2)
    line = "~" * (longest + 1)
    return f"{line}\n{text}\n{line}"


def _fill(text: str, values: Mapping[str, str]) -> str:
    def one(match: re.Match[str]) -> str:
        value = values[match[1]]
        return fence(value) if match[2] == "fenced" else value

    return _PLACEHOLDER.sub(one, text)


def _parts(raw: str) -> Iterator[tuple[str, str]]:
    text = _NOTE.sub("", raw)
    marks = list(_PART.finditer(text))
    if not marks:
        yield "user", text.strip()
        return
    for mark, following in zip(marks, [*marks[1:], None], strict=True):
        body = text[mark.end() : following.start() if following else len(text)]
        yield mark[1], body.strip()


def _misnamed(raw: str, path: Path, declared: frozenset[str]) -> Iterator[Problem]:
    seen = set()
    text = _without_notes(raw)
    for match in _PLACEHOLDER.finditer(text):
        seen.add(match[1])
        if match[1] not in declared:
            hint = f"known here: {', '.join(sorted(declared)) or 'none'}"
            yield Problem(f"unknown placeholder {match[0]}", _at(raw, path, match.start()), hint)
        if match[2] not in {None, "fenced"}:
            hint = "the one filter is |fenced"
            yield Problem(f"unknown filter in {match[0]}", _at(raw, path, match.start()), hint)
    for name in sorted(declared - seen):
        yield Problem(f"missing placeholder {{{{{name}}}}}", Place(path, 1, 1))


def _misplaced(raw: str, path: Path, single: str | None) -> Iterator[Problem]:
    text = _without_notes(raw)
    if not text.strip():
        yield Problem("the prompt is empty", Place(path, 1, 1))
    marks = list(_PART.finditer(text))
    if marks and text[: marks[0].start()].strip():
        yield Problem("text before the first part", Place(path, 1, 1), "move it below a part line")
    for mark, following in zip(marks, [*marks[1:], None], strict=False):
        if not text[mark.end() : following.start() if following else len(text)].strip():
            yield Problem(f"the {mark[1]} part is empty", _at(raw, path, mark.start()))
    if single and len(marks) > 1:
        what = f"the file has {len(marks)} parts, but it is {single} and can have one only"
        yield Problem(what, _at(raw, path, marks[1].start()))


def _without_notes(raw: str) -> str:
    """The file with its notes blanked, so that everything else keeps its place."""
    return _NOTE.sub(lambda match: re.sub(r"[^\n]", " ", match[0]), raw)


def _at(raw: str, path: Path, offset: int) -> Place:
    line = raw.count("\n", 0, offset) + 1
    return Place(path, line, offset - (raw.rfind("\n", 0, offset) + 1) + 1)
