"""How talk ends: the stop marker, turns without words, goodbyes, and talk that goes round.

    StopMarker("[END]").split("Thanks. [end]")     # ("Thanks.", True)
    is_farewell("Adiós, gracias"), goes_round(["Well.", "Yes.", "well", "Yes!"])

All of it goes by the words alone. Goodbyes are known in some twenty languages; talk that goes round
is found in any. The module knows no sides: whose marker counts is for others to say.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher
from functools import cached_property

from habitus.content.visible import has_words

_QUOTES = {'"': '"', "'": "'", "`": "`", "\u201c": "\u201d", "\u2018": "\u2019",
           "\u00ab": "\u00bb", "\u201e": "\u201c", "\u300c": "\u300d"}  # fmt: skip
_WIDE = {"[": "[\\[\uff3b\u3010]", "]": "[\\]\uff3d\u3011]"}  # as some languages write brackets
_EMPHASIS = "*_~"

#: Names that models give the two sides where they write a dialogue.
SIDES = (
    r"(?:(?:the )?(?:persona|user|assistant|ai|ai assistant|chat ?bot)|"
    r"human|person|customer|client|patient|bot|chatgpt|usuario|asistente|utilisateur|assistent|nutzer|benutzer|"
    r"assistente|utente|utilizador|gebruiker|anv\u00e4ndare|\u7528\u6237|\u52a9\u624b|\u30e6\u30fc\u30b6\u30fc|"
    r"\u30a2\u30b7\u30b9\u30bf\u30f3\u30c8|\uc0ac\uc6a9\uc790|\uc5b4\uc2dc\uc2a4\ud134\ud2b8)"
)
_LABEL = re.compile(rf"[\s*#_\[(]*{SIDES}[\s*_\])]*(?:[:\uff1a][\s*_]*)?", re.IGNORECASE)

# Words of leave-taking, and of the answer to thanks, which closes talk as well.
_SPACED = (
    # English
    r"bye|goodbye|good ?night(?!['\u2019])|take care(?! of\b)|see you|farewell|"
    r"you['\u2019]?re (?:very |most )?welcome|have a (?:good|great|nice|lovely) (?:day|one|evening|night)|"
    # Spanish, Portuguese, Italian, French
    r"adi\u00f3s|adios|hasta (?:luego|pronto|ma\u00f1ana|la vista)|de nada|que te vaya bien|cu\u00eddate|"
    r"chau|tchau|adeus|at\u00e9 (?:logo|mais|breve|amanh\u00e3)|por nada|arrivederci|ciao|prego|buona (?:giornata|serata|notte)|"
    r"au revoir|\u00e0 bient\u00f4t|de rien|bonne (?:journ\u00e9e|soir\u00e9e|nuit)|adieu|"
    # German, Dutch, Scandinavian
    r"tsch\u00fcss?|tsch\u00fc\u00df|auf wiedersehen|bis bald|gern geschehen|gute nacht|sch\u00f6nen (?:tag|abend)|"
    r"tot ziens|graag gedaan|fijne (?:dag|avond)|doei|hej d\u00e5|vi ses|varsågod|ha det|vel bekomme|farvel|"
    # Polish, Russian, Turkish
    r"do widzenia|na razie|nie ma za co|\u0434\u043e \u0441\u0432\u0438\u0434\u0430\u043d\u0438\u044f|\u043f\u043e\u043a\u0430|"
    r"\u0432\u0441\u0435\u0433\u043e \u0434\u043e\u0431\u0440\u043e\u0433\u043e|ho\u015f\u00e7a kal|g\u00f6r\u00fc\u015f\u00fcr\u00fcz|rica ederim|iyi (?:g\u00fcnler|geceler)|"
    # Indonesian, Swahili, Maori, Vietnamese
    r"sampai jumpa|sama-sama|selamat tinggal|kwaheri|karibu sana|haere r\u0101|ka kite|hei kon\u0101|t\u1ea1m bi\u1ec7t|"
    # Korean, Arabic, Hindi
    r"\uc548\ub155\ud788 (?:\uacc4\uc138\uc694|\uac00\uc138\uc694)|\ucc9c\ub9cc\uc5d0\uc694|"
    r"\u0645\u0639 \u0627\u0644\u0633\u0644\u0627\u0645\u0629|\u0625\u0644\u0649 \u0627\u0644\u0644\u0642\u0627\u0621|\u0627\u0644\u0639\u0641\u0648|\u0639\u0641\u0648\u0627|"
    r"\u0905\u0932\u0935\u093f\u0926\u093e|\u092b\u093f\u0930 \u092e\u093f\u0932\u0947\u0902\u0917\u0947"
)
_UNSPACED = (  # Chinese, Japanese, Thai
    r"\u518d\u89c1|\u518d\u898b|\u62dc\u62dc|\u4e0d\u5ba2\u6c14|\u4e0d\u5ba2\u6c23|\u665a\u5b89|"
    r"\u3055\u3088\u3046\u306a\u3089|\u307e\u305f\u306d|\u3069\u3046\u3044\u305f\u3057\u307e\u3057\u3066|\u304a\u3084\u3059\u307f|"
    r"\u0e25\u0e32\u0e01\u0e48\u0e2d\u0e19|\u0e22\u0e34\u0e19\u0e14\u0e35\u0e04\u0e23\u0e31\u0e1a|\u0e22\u0e34\u0e19\u0e14\u0e35\u0e04\u0e48\u0e30"
)
_FAREWELL = re.compile(
    rf"(?P<spaced>(?<!\w)(?:{_SPACED})(?!\w))|(?P<unspaced>{_UNSPACED})", re.IGNORECASE
)
_FAREWELL_WORDS = 14
_CLAUSE = re.compile(
    "[.!,;:\u2026\n\u2013\u2014\u3002\uff01\uff0c\u3001\uff1b\uff1a~\uff5e\u061b\u060c\u0964]+|\\s-\\s"
)
#: Also words of other talk ("\u043f\u043e\u043a\u0430" is "while", "de nada" "of nothing"): a goodbye when alone.
_ALONE = re.compile(
    r"\u043f\u043e\u043a\u0430|de nada|por nada|de rien|prego|sama-sama|na razie|\u0627\u0644\u0639\u0641\u0648|\u0639\u0641\u0648\u0627|"
    r"bis bald|iyi g\u00fcnler|iyi geceler",
    re.IGNORECASE,
)
#: What people say around a goodbye; it does not make other talk of it.
_AROUND = re.compile(
    r"thank|thanks|you|so|much|very|and|then|ok|okay|well|alright|right|now|for|again|all|everyone|my|dear|friend|"
    r"too|soon|later|tomorrow|next|week|ahead|time|great|help|everything|good|"
    r"gracias|muchas|y|e|mi|amigo|amiga|doctor|doctora|merci|et|beaucoup|mon|ami|danke|und|vielen|dank|"
    r"obrigado|obrigada|muito|grazie|mille|dank|je|wel|bedankt|tack|och|dzi\u0119kuj\u0119|i|bardzo|"
    r"\u0441\u043f\u0430\u0441\u0438\u0431\u043e|\u0438|\u043d\u0443|te\u015fekk\u00fcrler|ve|terima|kasih|dan|asante|na|sana|kia|ora|c\u1ea3m|\u01a1n|"
    r"\uac10\uc0ac\ud574\uc694|\u0634\u0643\u0631\u0627|\u0927\u0928\u094d\u092f\u0935\u093e\u0926",
    re.IGNORECASE,
)
_BEFORE_GOODBYE, _AROUND_UNSPACED = 2, 3
_QUESTION = re.compile("[?\uff1f\u061f]")
# Scripts without spaces count by characters.
_WORD = re.compile(
    r"[\u0e00-\u0e7f\u3040-\u30ff\u3400-\u9fff]|[^\W\u0e00-\u0e7f\u3040-\u30ff\u3400-\u9fff]+"
)

PERIODS = (1, 2, 3)
_NEAR, _NEAR_WORDS = 0.9, 8
_ROUNDS, _ROUNDS_OF_SHORT = 2, 4
_SHORT, _SHORT_UNSPACED = 8, 4  # letters
_UNSPACED_LETTER = re.compile(r"[\u0e00-\u0e7f\u3040-\u30ff\u3400-\u9fff]")


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


def is_farewell(text: str) -> bool:
    """Whether a turn is a short goodbye, and no question.

    A goodbye is a part of a sentence for itself: "he said goodbye to sugar" is other talk.
    """
    if len(_WORD.findall(text)) > _FAREWELL_WORDS or _QUESTION.search(text):
        return False
    return any(map(_takes_leave, _CLAUSE.split(text)))


def _takes_leave(clause: str) -> bool:
    found = _FAREWELL.search(clause)
    if found is None:
        return False
    before, behind = clause[: found.start()], clause[found.end() :]
    if found["unspaced"]:
        return sum(map(str.isalnum, before + behind)) <= _AROUND_UNSPACED
    others = [word for word in _WORD.findall(behind) if not word[0].isupper()]
    most = 0 if _ALONE.fullmatch(found[0]) else _BEFORE_GOODBYE
    return _unlike_goodbyes(others) == 0 and _unlike_goodbyes(_WORD.findall(before)) <= most


def _unlike_goodbyes(words: Sequence[str]) -> int:
    return sum(not _AROUND.fullmatch(word) for word in words)


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
    most = _SHORT_UNSPACED if _UNSPACED_LETTER.search(turn) else _SHORT
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


def _words(text: str) -> list[str]:
    return _WORD.findall(unicodedata.normalize("NFKC", text).casefold())


def _numbers(words: list[str]) -> list[str]:
    return [word for word in words if any(character.isdigit() for character in word)]
