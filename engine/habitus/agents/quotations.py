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
_TEMPLATE_ENDS = (
    *("<|eot_id|>", "<|im_end|>", "<|endoftext|>", "<|end_of_text|>", "<end_of_turn>", "<|end|>"),
    *("<|return|>", "<eos>", "</s>"),
)
_NO_LETTERS = re.compile(r"[\W_]+")
_LEFT_OUT = "\ufffc"


def normal_text(text: str) -> str:
    """The text with full-width forms made plain, invisible characters gone, one kind of break."""
    text = _BREAKS.sub("\n", text)
    if text.isascii():
        return text
    return _INVISIBLE.sub("", unicodedata.normalize("NFKC", text))


def letters_of(text: str) -> str:
    """Letters and digits alone: what two ways of quoting the same words share."""
    return _NO_LETTERS.sub("", text).casefold()


def own_text(text: str, end: str, alone: Callable[[str], bool]) -> tuple[str, str]:
    """An answer without wrapping, quotations, think block and end token; or what is wrong.

    Where it ends with a quotation, a sign for that stands at its end.

    Args:
        text: the answer.
        end: the end token of the answer, which may be missing.
        alone: whether a line is a verdict and nothing else.
    """
    text, problem = without_thinking(normal_text(text))
    if problem:
        return "", problem
    ends = end_tokens(end)
    lines = _without_end(text, ends, "").strip("\n").split("\n")
    kept = list(_own_lines(lines, lambda line: alone(_without_end(line, ends))))
    own = _without_end("\n".join(line for line in kept if line != _LEFT_OUT), ends).strip()
    if not own:
        return "", "it is empty"
    last = next(line for line in reversed(kept) if line.strip())
    return (f"{own}\n{_LEFT_OUT}" if last == _LEFT_OUT else own), ""


def end_tokens(end: str) -> tuple[str, ...]:
    """What may end an answer, in small letters: its own token and those of chat templates."""
    return tuple(token.casefold() for token in (end, *_TEMPLATE_ENDS) if token)


def without_thinking(text: str) -> tuple[str, str]:
    """A text without the think block that opens it, or what is wrong."""
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
            else:
                yield _LEFT_OUT
            at = close
        elif lines[at].lstrip().startswith(">"):
            yield _LEFT_OUT
        elif not fence:
            yield lines[at]
        at += 1


def _closing(lines: Sequence[str], at: int, mark: str) -> int | None:
    """The line that closes a fence; None where nothing does."""
    for number in range(at + 1, len(lines)):
        line = lines[number].strip()
        if len(line) >= len(mark) and not line.strip(mark[0]):
            return number
    return None
