"""How talk ends: the stop marker, turns without words, goodbyes, and talk that goes round.

    StopMarker("[END]").split("Thanks. [end]")     # ("Thanks.", True)
    load_goodbyes(path).closes("Adiós, gracias")
    goes_round(["Well.", "Yes.", "well", "Yes!"])

All of it goes by the words alone. Goodbyes are content (``personas/talk/goodbyes.yaml``); talk that
goes round is found in any language. The module knows no sides: whose marker counts is for others to
say.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher
from functools import cached_property
from pathlib import Path
from typing import Annotated

from pydantic import Field

from habitus.content import ContentModel, load
from habitus.content.fields import Line, Slug
from habitus.content.visible import has_words

_QUOTES = {'"': '"', "'": "'", "`": "`", "\u201c": "\u201d", "\u2018": "\u2019",
           "\u00ab": "\u00bb", "\u201e": "\u201c", "\u300c": "\u300d"}  # fmt: skip
_WIDE = {"[": "[\\[\uff3b\u3010]", "]": "[\\]\uff3d\u3011]"}  # as some languages write brackets
_EMPHASIS = "*_~"

#: Names that models give the two sides where they write a dialogue.
SIDES = (
    r"(?:(?:the )?(?:persona|user|assistant|ai|ai assistant|chat ?bot)|"
    r"human|person|customer|client|patient|bot|chatgpt|usuario|asistente|utilisateur|assistent|nutzer|benutzer|"
    r"assistente|utente|utilizador|gebruiker|användare|用户|助手|ユーザー|"
    r"アシスタント|사용자|어시스턴트)"
)
_LABEL = re.compile(rf"[\s*#_\[(]*{SIDES}[\s*_\])]*(?:[:\uff1a][\s*_]*)?", re.IGNORECASE)

_FAREWELL_WORDS = 14
_CLAUSE = re.compile(
    "[.!,;:\u2026\n\u2013\u2014\u3002\uff01\uff0c\u3001\uff1b\uff1a~\uff5e\u061b\u060c\u0964]+|\\s-\\s"
)
_BEFORE, _BEHIND, _AROUND_UNSPACED = 2, 1, 3  # other words; characters where words have no spaces
_QUESTION = re.compile("[?\uff1f\u061f]")
_RANGES = r"\u0e00-\u0e7f\u3040-\u30ff\u3400-\u9fff"  # Thai, Kana, Han: no spaces between words
_UNSPACED = re.compile(f"[{_RANGES}]")
_WORD = re.compile(rf"[{_RANGES}]|[^\W{_RANGES}]+")  # those count by characters

PERIODS = (1, 2, 3)
_NEAR, _NEAR_WORDS = 0.9, 8
_ROUNDS, _ROUNDS_OF_SHORT = 2, 4
_SHORT, _SHORT_UNSPACED = 8, 4  # letters


class Goodbyes(ContentModel):
    """``personas/talk/goodbyes.yaml``: how people take leave, and answer thanks."""

    languages: dict[Slug, Annotated[tuple[Line, ...], Field(min_length=1)]] = Field(
        default={}, description="the words of each language, found whole and in any case"
    )
    not_before: tuple[Line, ...] = Field(
        default=(), description="words behind a match that make it no goodbye"
    )

    alone: tuple[Line, ...] = Field(
        default=(),
        description="phrases of them that are words of other talk unless they stand alone",
    )
    around: tuple[Line, ...] = Field(
        default=(), description="words that people say around a goodbye, such as thanks"
    )

    def closes(self, text: str) -> bool:
        """Whether a turn is a short goodbye, and no question.

        A goodbye is a part of a sentence for itself: "he said goodbye to sugar" is other talk.
        """
        if len(_WORD.findall(text)) > _FAREWELL_WORDS or _QUESTION.search(text):
            return False
        return any(map(self._takes_leave, _CLAUSE.split(text)))

    def _takes_leave(self, clause: str) -> bool:
        said = _plain(clause)
        found = self._pattern.search(said)
        if found is None:
            return False
        before, behind = said[: found.start()], said[found.end() :]
        if _UNSPACED.search(found[0]):
            return sum(map(str.isalnum, before + behind)) <= _AROUND_UNSPACED
        first, last = self._others(before), self._others(behind)
        if found[0] in self._alone:
            return first == last == 0
        return (first <= _BEFORE and last == 0) or (first == 0 and last <= _BEHIND)

    def _others(self, text: str) -> int:
        """How many words there are that nobody says around a goodbye."""
        return sum(word not in self._around for word in _WORD.findall(text))

    @cached_property
    def _alone(self) -> frozenset[str]:
        return frozenset(map(_plain, self.alone))

    @cached_property
    def _around(self) -> frozenset[str]:
        return frozenset(word for line in self.around for word in _WORD.findall(_plain(line)))

    @cached_property
    def _pattern(self) -> re.Pattern[str]:
        every = {_plain(phrase) for phrases in self.languages.values() for phrase in phrases}
        found = [_phrase(phrase) for phrase in sorted(every, key=lambda one: (-len(one), one))]
        if not found:
            return re.compile("(?!)")  # nothing
        behind = "|".join(re.escape(_plain(word)) for word in self.not_before)
        none_behind = rf"(?!\s*(?:{behind})(?!\w))" if behind else ""
        return re.compile(rf"(?:{'|'.join(found)}){none_behind}")


def load_goodbyes(path: Path) -> Goodbyes:
    """Read a file of goodbyes.

    Raises:
        ContentError: it is damaged.
    """
    return load(path, Goodbyes)


@dataclass(frozen=True)
class StopMarker:
    """The marker by which a speaker ends a session, in whatever form it is written.

    Case, emphasis around it and spaces or line breaks in it do not matter, where it has marks of its own
    (``[END]``); a marker that is a plain word (``DONE``) is only found as it is. In quotation marks, with
    words or a question behind, it is talked about and is text.
    """

    text: str

    def split(self, said: str) -> tuple[str, bool]:
        """The words before the marker, and whether there is one that stops."""
        for found in self._pattern.finditer(said):
            before, behind = _peeled(said[: found.start()], said[found.end() :])
            close = _QUOTES.get(before[-1:], "")
            quoted = bool(close) and behind.startswith(close)
            if quoted and (has_letters(behind) or _QUESTION.search(behind)):
                continue
            return (before[:-1] if quoted else before).strip(), True
        return said, False

    @cached_property
    def _pattern(self) -> re.Pattern[str]:
        if self.text[0].isalnum() or self.text[-1].isalnum():
            return re.compile(rf"(?<!\w){re.escape(self.text)}(?!\w)")
        parts = re.findall(r"\w+|[^\w\s]", self.text)
        spelled = r"\s*".join(_WIDE.get(part, re.escape(part)) for part in parts)
        return re.compile(spelled, re.IGNORECASE)


def _peeled(before: str, behind: str) -> tuple[str, str]:
    """What stands around a marker, without emphasis that encloses it."""
    while before and behind and before[-1] == behind[0] and before[-1] in _EMPHASIS:
        before, behind = before[:-1], behind[1:]
    return before, behind


def has_letters(text: str) -> bool:
    """Whether there is a letter or a digit in a text."""
    return any(character.isalnum() for character in text)


def is_blank(text: str) -> bool:
    """Whether a turn says nothing: nothing visible, or the name of a side alone (``User:``)."""
    if not has_words(text):
        return True
    only = _LABEL.fullmatch(text.strip())
    return only is not None and (":" in text or "\uff1a" in text or "[" in text)


def goes_round(turns: Sequence[str]) -> bool:
    """Whether the last turns of one side say again what the ones before them said.

    One turn twice, or two or three turns in the same order; case, marks and a few words in a long turn
    make no difference, numbers do. Where all of them are as short as "Yes." they must be said four times:
    people answer two questions alike.
    """
    return any(_repeated(turns, period) for period in PERIODS)


def _repeated(turns: Sequence[str], period: int) -> bool:
    short = all(_is_short(turn) for turn in turns[-period:])
    rounds = _ROUNDS_OF_SHORT if short else _ROUNDS
    if len(turns) < rounds * period:
        return False
    return all(alike(turns[-i], turns[-i - period]) for i in range(1, (rounds - 1) * period + 1))


def _is_short(turn: str) -> bool:
    most = _SHORT_UNSPACED if _UNSPACED.search(turn) else _SHORT
    return sum(map(str.isalnum, turn)) <= most


def alike(one: str, other: str) -> bool:
    """Whether two turns say the same, in about the same words."""
    first, second = _words(one), _words(other)
    if first == second:
        return bool(first) or one.strip() == other.strip()
    if min(len(first), len(second)) < _NEAR_WORDS or _numbers(first) != _numbers(second):
        return False
    matcher = SequenceMatcher(None, first, second, autojunk=False)
    return matcher.quick_ratio() >= _NEAR and matcher.ratio() >= _NEAR


def _plain(text: str) -> str:
    """In one spelling: composed, without case, with straight apostrophes and single spaces."""
    folded = unicodedata.normalize("NFC", text).casefold()
    return " ".join(folded.replace("\u2019", "'").split())


def _phrase(text: str) -> str:
    """A phrase as a whole: not within a word, where its script has words."""
    start = "" if _UNSPACED.match(text[0]) else r"(?<!\w)"
    end = "" if _UNSPACED.match(text[-1]) else r"(?!\w)"
    return f"{start}{re.escape(text)}{end}"


def _words(text: str) -> list[str]:
    return _WORD.findall(unicodedata.normalize("NFKC", text).casefold())


def _numbers(words: list[str]) -> list[str]:
    return [word for word in words if any(character.isdigit() for character in word)]
