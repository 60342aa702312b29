"""Reading a dialogue that one call wrote.

The form asked for is one turn after another, each opened by a line that begins with ``ASSISTANT:``
or ``PERSONA:``, then a line ``NORM STATES`` and one ``<norm id>: follow|avoid|neutral`` a line.
The opener is the engine's; a script that repeats it word for word is read without it. A last turn
of the persona has no answer and is left out; so are rules and fences that close a turn.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from itertools import pairwise

from habitus.records import NormState, Turn

_SPEAKER = re.compile(
    r"^[ \t]*(?:\*\*|#{1,4}[ \t]*)?(PERSONA|ASSISTANT)(?:\*\*)?[ \t]*:(?:\*\*)?[ \t]*",
    re.MULTILINE | re.IGNORECASE,
)
_STATES = re.compile(
    r"^[ \t]*(?:\*\*|#{1,4}[ \t]*)?NORM STATES?\b.*$", re.MULTILINE | re.IGNORECASE
)
_STATE = re.compile(
    r"^[ \t*`-]*([\w-]+)[ \t*`]*:[ \t*`]*(follow|avoid|neutral)\b", re.MULTILINE | re.IGNORECASE
)
_RULE = re.compile(r"-{3,}|\*{3,}|_{3,}|={3,}|`{3,}")
_WORDS: dict[str, NormState] = {"follow": 1, "neutral": 0, "avoid": -1}


class ScriptError(Exception):
    """The text is no dialogue of the asked form; the message says why."""


@dataclass(frozen=True, slots=True)
class Script:
    """The turns after the opener, and the norm states restated at the end."""

    turns: tuple[Turn, ...]
    states: dict[str, NormState]


def read_script(text: str, opener: str, labels: Mapping[str, str]) -> Script:
    """Read a dialogue; the opener stands before it and belongs to the persona.

    Args:
        text: what the model wrote.
        opener: the engine's first turn.
        labels: norm id to the label under which its state is restated.

    Raises:
        ScriptError: no turns, two turns of one side in a row, an empty turn, or no restatement.
    """
    body, states = _cut(text, labels)
    turns = _turns(body)
    if turns and turns[0].speaker == "persona" and _same(turns[0].text, opener):
        turns = turns[1:]
    _check(turns)
    if turns[-1].speaker == "persona":
        turns = turns[:-1]
    return Script(tuple(turns), states)


def _cut(text: str, labels: Mapping[str, str]) -> tuple[str, dict[str, NormState]]:
    """The dialogue without its restatement, and the states that it gives, each one way only."""
    marks = list(_STATES.finditer(text))
    if not marks:
        raise ScriptError("the norm states are not restated at the end")
    last = marks[-1]
    found = {(m[1], _WORDS[m[2].lower()]) for m in _STATE.finditer(text, last.end())}
    stated = {label: {state for name, state in found if name == label} for label in labels.values()}
    once = {n: states.pop() for n, label in labels.items() if len(states := stated[label]) == 1}
    return text[: last.start()], once


def _turns(body: str) -> list[Turn]:
    marks = list(_SPEAKER.finditer(body))
    if not marks:
        raise ScriptError("no line begins with ASSISTANT: or PERSONA:")
    ends = [*(m.start() for m in marks[1:]), len(body)]
    return [
        Turn.model_validate({"speaker": m[1].lower(), "text": _words(body[m.end() : end])})
        for m, end in zip(marks, ends, strict=True)
    ]


def _words(text: str) -> str:
    """What a turn says, without the rules and fences behind it."""
    lines = text.rstrip().splitlines(keepends=True)
    while lines and (not lines[-1].strip() or _RULE.fullmatch(lines[-1].strip())):
        lines.pop()
    return "".join(lines).strip()


def _check(turns: list[Turn]) -> None:
    if len(turns) < 1 or turns[0].speaker != "assistant":
        raise ScriptError("the first turn after the opener is not the assistant's")
    for before, after in pairwise(turns):
        if before.speaker == after.speaker:
            raise ScriptError(f"two turns of the {after.speaker} in a row")
    if any(not turn.text for turn in turns):
        raise ScriptError("a turn without words")


def _same(one: str, other: str) -> bool:
    return " ".join(one.split()) == " ".join(other.split())
