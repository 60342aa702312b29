"""Keys of servers in texts: what looks like one, and how they are kept out.

    secret = Secret(key)
    secret.hidden(body)                           # b"... [key] ..."
    looks_like_key("sk-...")                      # in the wrong place

Whatever a server sends goes through :class:`Secret` before it is looked at, since servers repeat what
they were sent in answers, errors and pages. Where keys come from is for ``models.keyfiles``.
"""

from __future__ import annotations

import re
from base64 import b64encode
from collections.abc import Iterator, Mapping
from functools import cached_property
from typing import Any

MARK = "[key]"
SHORTEST_KEY = 12  # characters; what is shorter is a word for "no key" and stays in texts

#: How keys of known providers begin, and then a long run without a space.
_BEGINS = r"(?:sk|rk|gsk|csk|xai|hf|nvapi|pplx|tgp|r8|ghp|glpat)[-_]|github_pat_|AIza|eyJ"
_LIKE_A_KEY = re.compile(rf"(?<![A-Za-z0-9])(?:{_BEGINS})[A-Za-z0-9_\-.]{{16,}}")
_BEARER = re.compile(r"\bBearer\s+(?=\S*\d)[\w.~+/=-]{8,}", re.IGNORECASE)
_RANDOM = re.compile(r"[A-Za-z0-9]{32,}")
#: What an escape begins with. Bodies without one of them are searched for the key alone.
_ESCAPES = ("\\u", "%", "&")


class Secret:
    """A key that must not be seen, found in every spelling that a server can be expected to give it.

    Those are the key itself, each character of it in the escapes of JSON, of addresses or of HTML
    (as a whole or in part, one inside the other), and its base64, alone or after ``Bearer``.
    """

    def __init__(self, key: str | None) -> None:
        # A word such as EMPTY that stands for no key is no secret, and may stand in any answer.
        self._key = key if key and len(key) >= SHORTEST_KEY else ""
        self._odd = not _PLAIN.fullmatch(self._key)
        self._quick = (*_ESCAPES, self._key, *_encoded(self._key))
        self._quick_bytes = tuple(part.encode() for part in self._quick)

    def __repr__(self) -> str:
        return "Secret()"

    def hidden(self, body: bytes) -> bytes:
        """Bytes without the key. Those that do not have it come back as they are."""
        if not self._key or not (self._odd or any(part in body for part in self._quick_bytes)):
            return body
        return self._pattern.sub(MARK.encode(), body)

    def hidden_text(self, text: str) -> str:
        """A text without the key: JSON and markup may have spelt it with escapes."""
        if not self._key or not (self._odd or any(part in text for part in self._quick)):
            return text
        return self._text_pattern.sub(MARK, text)

    @cached_property
    def _pattern(self) -> re.Pattern[bytes]:
        return re.compile(_spellings(self._key).encode())

    @cached_property
    def _text_pattern(self) -> re.Pattern[str]:
        return re.compile(_spellings(self._key))


def looks_like_key(text: str) -> bool:
    """Whether a text holds something that looks like a key: then it is in the wrong place.

    That is a known beginning and a long rest, ``Bearer`` and a word with a digit, or 32 or more letters and
    digits with capitals, small letters and at least four digits mixed in one word.
    """
    if _BEARER.search(text):
        return True
    found = (match[0] for match in _LIKE_A_KEY.finditer(text))
    return any(map(_mixed, found)) or any(map(_random, _RANDOM.findall(text)))


def texts_in(value: Any) -> Iterator[str]:
    """Every text in a value of JSON, keys among them."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, Mapping):
        for key, inner in value.items():
            yield str(key)
            yield from texts_in(inner)
    elif isinstance(value, list | tuple):
        for inner in value:
            yield from texts_in(inner)


def _mixed(text: str) -> bool:
    """Not a name of words: ``sk-`` may begin one, and few names have so many letters and digits."""
    return any(c.isdigit() for c in text) or len(text) >= 32


def _random(word: str) -> bool:
    digits = sum(c.isdigit() for c in word)
    return digits >= 4 and word.lower() != word and word.upper() != word


def _spellings(key: str) -> str:
    return "|".join(["".join(map(_spelt, key)), *map(re.escape, _encoded(key))])


def _encoded(key: str) -> list[str]:
    forms = (key, f"Bearer {key}", f":{key}")
    return [b64encode(form.encode()).decode().rstrip("=") for form in forms]


def _spelt(char: str) -> str:
    """One character: itself, or as JSON (also inside JSON), an address or HTML may write it."""
    code = ord(char)
    hexa = "".join(f"[{c}{c.upper()}]" if c.isalpha() else c for c in f"{code:02x}")
    forms = [
        re.escape(char),
        rf"%(?:25){{0,4}}{hexa}",
        rf"\\{{1,8}}u00{hexa}",
        rf"&#[xX]0{{0,8}}{hexa};",
    ]
    forms += [rf"&#0{{0,8}}{code};"]
    if char in '"\\/':
        forms.append(rf"\\{{1,8}}{re.escape(char)}")
    forms += [name for name, meant in _ENTITIES.items() if meant == char]
    return f"(?:{'|'.join(forms)})"


_PLAIN = re.compile(r"[A-Za-z0-9_.-]*")  # no character of it has a shorter escape
_ENTITIES = {"&amp;": "&", "&lt;": "<", "&gt;": ">", "&quot;": '"', "&sol;": "/"}
