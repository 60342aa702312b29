"""The lexical check: outright first-person statements of heritage, nationality or religion.

It stands beside the verifier model, which may overlook one. Words and first-person templates
are content; ``judges/history_verifier/lexicon.yaml`` describes how they match, and here they
become regular expressions. Most texts hold no word of the lists and need no closer look. For the
others one expression is built from the few words they hold: with all words in every template it
would take a second to compile and be slow to search.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Iterator, Mapping
from functools import cached_property
from pathlib import Path

from pydantic import Field

from habitus.content import ContentModel, Found, load

_SLOTS = {"demonym": "demonyms", "country": "countries", "religion": "religions", "faith": "faiths"}
_SLOT = re.compile(r"\{(\w+)\}")
#: Of a pattern: each gap, and each slot that holds words of one another, is tried in every way.
MOST_WORDS, MOST_GAPS, MOST_SLOTS = 12, 3, 3
_GAP = r"(?:[\w'-]+,?\s+){0,2}"
_SHORT = {  # written out in the file, contracted in people's mouths
    ("i", "am"): r"(?:i\s+am|i'?m)",
    ("i", "have"): r"(?:i\s+have|i'?ve)",
    ("we", "are"): r"(?:we\s+are|we're)",
}
_APOSTROPHES = str.maketrans("\u2018\u2019\u02bc", "'''")


class Lexicon(ContentModel):
    """Words that name a heritage, and the sentences in which they reveal one."""

    demonyms: tuple[str, ...] = Field(min_length=1)
    countries: tuple[str, ...] = Field(min_length=1)
    religions: tuple[str, ...] = Field(min_length=1)
    faiths: tuple[str, ...] = Field(min_length=1)
    not_before: tuple[str, ...] = Field(
        default=(), description="words behind a match that make it no reveal"
    )
    patterns: tuple[str, ...] = Field(min_length=1, description="first-person templates")

    def reveals(self, text: str) -> tuple[str, ...]:
        """The revealing phrases in a text, in lower case, each once, in order."""
        plain = _plain(text)
        held = {slot: set(words.findall(plain)) for slot, words in self._words.items()}
        branches = list(self._branches({slot: words for slot, words in held.items() if words}))
        if not branches:
            return ()
        whole = rf"(?<!\w)(?:{'|'.join(branches)})(?!\w){self._behind}"
        found = re.finditer(whole, plain, re.IGNORECASE)
        return tuple(dict.fromkeys(" ".join(m[0].lower().split()) for m in found))

    @cached_property
    def _words(self) -> dict[str, re.Pattern[str]]:
        """For each slot its words, whole or with the plural s that a template may add."""
        return {
            slot: re.compile(rf"(?<!\w){_any_of(getattr(self, name))}(?=s?(?!\w))", re.IGNORECASE)
            for slot, name in _SLOTS.items()
        }

    @cached_property
    def _behind(self) -> str:
        return rf"(?![\s-]+{_any_of(self.not_before)}(?!\w))" if self.not_before else ""

    @cached_property
    def _templates(self) -> tuple[tuple[set[str], str], ...]:
        """Each pattern's slots, and its regular expression with the slots still open."""
        return tuple(
            (_SLOTS.keys() & set(_SLOT.findall(pattern)), self._template(pattern))
            for pattern in self.patterns
        )

    def _branches(self, held: Mapping[str, set[str]]) -> Iterator[str]:
        """The templates that the words held by a text can fill, filled."""
        filled = {f"{{{slot}}}": _any_of(words) for slot, words in held.items()}
        for slots, template in self._templates:
            if slots <= held.keys():
                yield _SLOT.sub(lambda slot: filled[slot[0]], template)

    def _template(self, pattern: str) -> str:
        words = pattern.split()
        parts: list[str] = []
        while words:
            short = _SHORT.get((words[0], words[1])) if len(words) > 1 else None
            parts.append(short or self._token(words[0]))
            del words[: 2 if short else 1]
        joined = "".join(part if part == _GAP else part + r"\s+" for part in parts)
        return joined.removesuffix(r"\s+")

    def _token(self, word: str) -> str:
        if word == "{gap}":
            return _GAP
        return "(?:" + "|".join(map(self._alternative, _different(word.split("|")))) + ")"

    def _alternative(self, word: str) -> str:
        parts = re.split(r"(\{\w+\})", word)  # literal, slot, literal, ...
        parts[::2] = map(re.escape, parts[::2])
        return "".join(parts)


def load_lexicon(path: Path) -> Lexicon:
    """Read a lexicon file; a slot that is unknown is an error with its place."""
    return load(path, Lexicon, check_lexicon)


def check_lexicon(lexicon: Lexicon) -> Iterator[Found]:
    """Problems that the types do not show."""
    for index, pattern in enumerate(lexicon.patterns):
        gaps = pattern.count("{gap}")
        slots = len(_SLOT.findall(pattern)) - gaps
        if len(pattern.split()) > MOST_WORDS or gaps > MOST_GAPS or slots > MOST_SLOTS:
            what = (
                f"a pattern has at most {MOST_WORDS} words, {MOST_GAPS} gaps and {MOST_SLOTS} slots"
            )
            yield Found(("patterns", index), what, "longer ones take too long to search for")
        for slot in _SLOT.findall(pattern):
            if slot not in {*_SLOTS, "gap"}:
                known = ", ".join(f"{{{name}}}" for name in (*_SLOTS, "gap"))
                yield Found(("patterns", index), f"unknown slot {{{slot}}}", f"known: {known}")


def _different(words: Iterable[str]) -> Iterable[str]:
    return {word.casefold(): word for word in words}.values()


def _plain(text: str) -> str:
    return unicodedata.normalize("NFC", text).translate(_APOSTROPHES)


def _any_of(words: Iterable[str]) -> str:
    longest = sorted(map(_plain, words), key=lambda w: (-len(w), w))
    return "(?:" + "|".join(r"\s+".join(map(re.escape, w.split())) for w in longest) + ")"
