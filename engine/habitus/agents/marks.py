"""Labels in a text: which words are a label of a closed list, and where labels are marked.

    LabelList(("Non-Generalizing", "Generalizing")).find("non generalizing")
    marked_labels("So: ##Insider##", LabelList(("Insider", "Outsider")))

A label is marked by double hashes around it, or by having a line to itself. Marked words that are
not of the list are found as well: they stand where a label should. Markdown headings are written
with the same hashes; one that holds a label ("## Verdict: ##Insider##") is told from a label.

The module does not know which of the labels is the answer.
"""

from __future__ import annotations

import re
from bisect import bisect
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property

from habitus.agents.quotations import normal_text

_JOINERS = re.compile(r"[\s_\-\u2010-\u2015\u2212]+")
_BREAK = re.compile("\n")
_HASHES = re.compile(r"#{2,}")
_LONGEST = 100  # characters between the hashes of a token
_UNHASHED = " \t*_`•.,;!-"
_MARKS = f"{_UNHASHED}#"
_PAIRS = {'"': '"', "'": "'", "(": ")", "[": "]", "\u201c": "\u201d", "\u2018": "\u2019"}


def plain_label(label: str) -> str:
    """A label without what does not tell labels apart."""
    return _JOINERS.sub(" ", normal_text(label)).strip().casefold()


@dataclass(frozen=True)
class LabelList:
    """A closed list of labels; ``aliases`` maps other words to labels of the list."""

    names: tuple[str, ...]
    aliases: Mapping[str, str] = field(default_factory=dict)

    @cached_property
    def _known(self) -> dict[str, str]:
        aliases = {plain_label(word): label for word, label in self.aliases.items()}
        return aliases | {plain_label(name): name for name in self.names}

    def find(self, text: str) -> str | None:
        """The label of the list that a text is, or None."""
        return self._known.get(plain_label(text.strip().strip("*_`#")))

    def alias(self, text: str) -> str:
        """The words of a text that is another word for a label; "" for the label itself."""
        label = self.find(text)
        words = text.strip().strip("*_`#")
        return words if label and plain_label(words) != plain_label(label) else ""


@dataclass(frozen=True, slots=True)
class Token:
    """A marked label: where it stands, its words, and which label of the list it is."""

    start: int
    end: int
    words: str
    label: str | None


def marked_labels(text: str, labels: LabelList) -> list[Token]:
    """Every ``##words##``, and every line that is a label and nothing else, in order."""
    marked = list(_marked(text, labels))
    breaks = [match.start() for match in _BREAK.finditer(text)]
    taken = {bisect(breaks, token.start) for token in marked}
    bare: list[Token] = []
    at = 0
    for number, line in enumerate(text.split("\n")):
        words = _bare(line) if number not in taken and len(line) < _LONGEST else ""
        label = labels.find(words) if words else None
        if label is not None:
            start = at + line.index(words)
            bare.append(Token(start, start + len(words), words, label))
        at += len(line) + 1
    return sorted([*marked, *bare], key=lambda token: token.start)


def _bare(line: str) -> str:
    """A line without marks, and without quotation marks or brackets that enclose it.

    Hashes behind a line and not before it close a label that began on another line.
    """
    words = line.strip(_MARKS)
    if line.strip(_UNHASHED).endswith("##") and not line.strip(_UNHASHED).startswith("#"):
        return ""
    while len(words) > 1 and _PAIRS.get(words[0]) == words[-1]:
        words = words[1:-1].strip(_MARKS)
    return words


def _marked(text: str, labels: LabelList) -> Iterator[Token]:
    hashes = [match.span() for match in _HASHES.finditer(text)]
    at = 0
    while at + 1 < len(hashes):
        words = _inside(text, hashes, at)
        label = labels.find(words) if words else None
        if not words or (label is None and _is_heading(text, hashes, at, labels)):
            at += 1
            continue
        yield Token(hashes[at][0], hashes[at + 1][1], words.strip(), label)
        at += 2


def _inside(text: str, hashes: Sequence[tuple[int, int]], at: int) -> str:
    """The words between two runs of hashes on one line, or nothing."""
    start, end = hashes[at][1], hashes[at + 1][0]
    if end - start > _LONGEST:
        return ""
    words = text[start:end]
    return words if words.strip() and "\n" not in words else ""


def _is_heading(text: str, hashes: Sequence[tuple[int, int]], at: int, labels: LabelList) -> bool:
    """Whether hashes open a heading ("## Verdict: ##Insider##") and not a label."""
    start, end = hashes[at]
    if text[end : end + 1] != " " or text[text.rfind("\n", 0, start) + 1 : start].strip():
        return False
    return at + 2 < len(hashes) and labels.find(_inside(text, hashes, at + 1) or "-") is not None
