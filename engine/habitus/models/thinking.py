"""Reasoning that a model writes into its text, between tags, and the answer without it.

    split = split_thinking("<think>salt is out</think>They eat rice.")
    split.text, split.reasoning, split.finished     # "They eat rice.", "salt is out", True

Three forms occur: closed blocks; a closing tag alone, where the template had opened the block;
and a block that is never closed, after which no answer can follow.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from functools import lru_cache


@dataclass(frozen=True, slots=True)
class Split:
    """An answer and the reasoning taken out of it; ``finished`` is False for an open block."""

    text: str
    reasoning: str = ""
    finished: bool = True


@dataclass(frozen=True, slots=True)
class _Tags:
    pattern: re.Pattern[str]
    closings: frozenset[str]


def split_thinking(text: str, tags: tuple[str, ...] = ("think",)) -> Split:
    """Take every think block out of a text.

    Args:
        text: What the model wrote.
        tags: Names of tags (``think`` stands for ``<think>`` and ``</think>``), or opening tags
            with brackets of their own (``[THINK]`` is closed by ``[/THINK]``).

    Returns:
        The text as it was when it holds no tag; otherwise the rest, without white space around.
    """
    if not tags or ("<" not in text and "[" not in text):
        return Split(text)
    known = _known(tags)
    if known.pattern.search(text) is None:
        return Split(text)
    visible, hidden, finished = _walk(text, known)
    return Split("".join(visible).strip(), "\n\n".join(filter(None, hidden)), finished)


def _walk(text: str, known: _Tags) -> tuple[list[str], list[str], bool]:
    """Visible pieces, reasoning pieces, and whether the last block was closed.

    A closing tag that closes nothing makes reasoning of all that stood before it: a template
    may open the block on the server's side.
    """
    visible: list[str] = []
    hidden: list[str] = []
    inside = ""
    at = 0
    for tag in known.pattern.finditer(text):
        name = _canonical(tag[0])
        closing = name in known.closings
        if inside and name != inside:
            continue
        piece, at = text[at : tag.start()], tag.end()
        if inside:
            hidden.append(piece.strip())
            inside = ""
        elif closing:
            hidden.append("".join([*visible, piece]).strip())
            visible.clear()
        else:
            visible.append(piece)
            inside = _closing_of(name)
    if inside:
        hidden.append(text[at:].strip())
    else:
        visible.append(text[at:])
    return visible, hidden, not inside


@lru_cache(maxsize=64)
def _known(tags: tuple[str, ...]) -> _Tags:
    openings = [tag.lower() if _bracketed(tag) else f"<{tag.lower()}>" for tag in tags]
    closings = [_closing_of(opening) for opening in openings]
    return _Tags(_any_of([*openings, *closings]), frozenset(closings))


def _any_of(tags: Iterable[str]) -> re.Pattern[str]:
    """Tags in any case, with a little white space before the last bracket."""
    parts = [re.escape(tag[:-1]) + r"\s{0,8}" + re.escape(tag[-1]) for tag in tags]
    return re.compile("|".join(parts), re.IGNORECASE)


def _bracketed(tag: str) -> bool:
    return not (tag[0].isalnum() and tag[-1].isalnum())


def _closing_of(opening: str) -> str:
    return f"{opening[0]}/{opening[1:]}"


def _canonical(tag: str) -> str:
    return "".join(tag.lower().split())
