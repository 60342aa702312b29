"""The lexical check: outright first-person statements of heritage, nationality or religion.

It stands beside the verifier model, which may overlook one. Words and first-person templates
are content (``judges/history_verifier/lexicon.yaml``); here they become one regular expression:
whole words, case-insensitive, any white space between words, curly and straight apostrophes, and
the contracted forms of "i am", "i have", "we are".
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from functools import cached_property
from pathlib import Path

from habitus.content import ContentModel, Found, load

_SLOTS = {"demonym": "demonyms", "country": "countries", "religion": "religions", "faith": "faiths"}
_SLOT = re.compile(r"\{(\w+)\}")
_SHORT = {  # written out in the file, contracted in people's mouths
    "i am": ("i_am", r"(?:i\s+am|i'?m)"),
    "i have": ("i_have", r"(?:i\s+have|i'?ve)"),
    "we are": ("we_are", r"(?:we\s+are|we'?re)"),
}
_CONTRACTED = dict(_SHORT.values())


class Lexicon(ContentModel):
    """Words that name a heritage, and the sentences in which they reveal one."""

    demonyms: tuple[str, ...]
    countries: tuple[str, ...]
    religions: tuple[str, ...]
    faiths: tuple[str, ...]
    patterns: tuple[str, ...]

    def reveals(self, text: str) -> tuple[str, ...]:
        """The revealing phrases in a text, in lower case, each once, in order."""
        plain = text.replace("\u2019", "'")
        if not self._any_word.search(plain):
            return ()
        found = (" ".join(m[0].lower().split()) for m in self._expression.finditer(plain))
        return tuple(dict.fromkeys(found))

    @cached_property
    def _any_word(self) -> re.Pattern[str]:
        """Any word of the lists: most texts have none and need no closer look."""
        words = {word for slot in _SLOTS.values() for word in getattr(self, slot)}
        return re.compile(rf"(?<!\w){_any_of(words)}(?!\w)", re.IGNORECASE)

    @cached_property
    def _expression(self) -> re.Pattern[str]:
        branches = "|".join(map(self._branch, self.patterns))
        return re.compile(rf"(?<!\w)(?:{branches})(?!\w)", re.IGNORECASE)

    def _branch(self, pattern: str) -> str:
        for full, (name, _) in _SHORT.items():
            pattern = re.sub(rf"\b{full}\b", f"{{{name}}}", pattern)
        return r"\s+".join(map(self._part, pattern.split()))

    def _part(self, word: str) -> str:
        match = _SLOT.fullmatch(word)
        if match is None:
            return re.escape(word)
        if match[1] in _CONTRACTED:
            return _CONTRACTED[match[1]]
        if match[1] == "gap":
            return r"\w+(?:\s+\w+)?"
        return _any_of(getattr(self, _SLOTS[match[1]]))


def load_lexicon(path: Path) -> Lexicon:
    """Read a lexicon file; a slot that is unknown is an error with its place."""
    return load(path, Lexicon, check_lexicon)


def check_lexicon(lexicon: Lexicon) -> Iterator[Found]:
    """Problems that the types do not show."""
    for index, pattern in enumerate(lexicon.patterns):
        for slot in _SLOT.findall(pattern):
            if slot not in {*_SLOTS, "gap"}:
                known = ", ".join(f"{{{name}}}" for name in (*_SLOTS, "gap"))
                yield Found(("patterns", index), f"unknown slot {{{slot}}}", f"known: {known}")


def _any_of(words: Iterable[str]) -> str:
    longest = sorted(words, key=lambda w: (-len(w), w))
    return "(?:" + "|".join(r"\s+".join(map(re.escape, w.split())) for w in longest) + ")"
