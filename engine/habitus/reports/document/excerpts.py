"""Texts that are shown whole when they are short, and else say how much of them is left out."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Excerpt:
    """A text, and how many characters of it are left out."""

    text: str
    more: int = 0


def excerpt(text: str, length: int) -> Excerpt:
    """The beginning of a text, of at most so many characters."""
    more = len(text) - length
    return Excerpt(text[:length], more) if more > 0 else Excerpt(text)
