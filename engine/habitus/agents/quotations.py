"""What of an answer is the answerer's own, and what it quotes or wraps.

Fences around the whole answer, and around a line that is a verdict and nothing else, are wrapping
and come off. Other fences and block quotes hold somebody else's words and are left out. A think
block that opens the answer is taken off; one that is never closed leaves no answer.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable, Iterator, Sequence

_INVISIBLE = re.compile("[\u00ad\u180e\u200b-\u200f\u202a-\u202e\u2060-\u2064\u2066-\u2069\ufeff]")
_BREAKS = re.compile("\r\n?|[\x0b\x0c\x85\u2028\u2029]")
_FENCE = re.compile(r"\s{0,3}(`{3,}|~{3,})\s*[\w-]*\s*")
_THINK = re.compile(r"\s*<(think|thinking|thought|reasoning)\s*>", re.IGNORECASE)
_TEMPLATE_ENDS = ("<|eot_id|>", "<|im_end|>", "<|endoftext|>", "<end_of_turn>", "<|end|>", "</s>")


def normal_text(text: str) -> str:
    """The text with full-width forms made plain, invisible characters gone, one kind of break."""
    text = _BREAKS.sub("\n", text)
    if text.isascii():
        return text
    return _INVISIBLE.sub("", unicodedata.normalize("NFKC", text))


def own_text(text: str, end: str, alone: Callable[[str], bool]) -> tuple[str, str]:
    """An answer without wrapping, quotations, think block and end token; or what is wrong.

    Args:
        text: the answer.
        end: the end token of the answer, which may be missing.
        alone: whether a line is a verdict and nothing else.
    """
    text, problem = _without_thinking(normal_text(text))
    if problem:
        return "", problem
    ends = tuple(token.casefold() for token in (end, *_TEMPLATE_ENDS) if token)
    lines = _without_end(text, ends, "").strip("\n").split("\n")
    own = "\n".join(_own_lines(lines, lambda line: alone(_without_end(line, ends))))
    own = _without_end(own, ends).strip()
    return (own, "") if own else ("", "it is empty")


def _without_thinking(text: str) -> tuple[str, str]:
    opening = _THINK.match(text)
    if opening is None:
        return text, ""
    closings = list(re.finditer(rf"</{opening[1]}\s*>", text, re.IGNORECASE))
    if not closings:
        return "", "its reasoning is not finished"
    if len(closings) > 1:
        return "", "where its reasoning ends is not clear"
    return text[closings[0].end() :], ""


def _without_end(text: str, ends: Sequence[str], marks: str = "*_`") -> str:
    """The text without end tokens, white space and marks behind it."""
    while True:
        bare = text.rstrip()
        token = next((t for t in ends if bare.rstrip(marks).casefold().endswith(t)), None)
        if token is None:
            return bare
        tail = bare[len(bare.rstrip(marks)) :] if marks else ""
        text = bare[: len(bare) - len(tail) - len(token)].rstrip() + tail
        if tail:
            return text


def _own_lines(lines: Sequence[str], alone: Callable[[str], bool]) -> Iterator[str]:
    at = 0
    while at < len(lines):
        fence = _FENCE.fullmatch(lines[at])
        close = _closing(lines, at, fence[1]) if fence else None
        if fence and close is not None:
            inside = lines[at + 1 : close]
            whole = at == 0 and close == len(lines) - 1
            verdict = [line for line in inside if line.strip()]
            if fence[1][0] == "`" and (whole or (len(verdict) == 1 and alone(verdict[0]))):
                yield from inside
            at = close
        elif not fence and not lines[at].lstrip().startswith(">"):
            yield lines[at]
        at += 1


def _closing(lines: Sequence[str], at: int, mark: str) -> int | None:
    """The line that closes a fence; None where nothing does."""
    for number in range(at + 1, len(lines)):
        line = lines[number].strip()
        if len(line) >= len(mark) and not line.strip(mark[0]):
            return number
    return None
