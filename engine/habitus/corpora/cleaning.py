r"""Text of a post as it is kept: decoded once, normalised, without names of users.

    clean_title("Rice &amp; beans\u200b")          # 'Rice & beans'
    hide_names("thanks u/some_one", ["poster"])     # 'thanks [user]'

Entities are decoded exactly once, and only those with a semicolon: ``&amp;lt;`` is the text
``&lt;``, and ``?a=1&copy=2`` stays an address. The editor's own blanks (``&#x200B;``, ``&nbsp;``
in the Markdown) go. Joiners stay where a script or an emoji needs them. What a text means is not
known here.
"""

from __future__ import annotations

import html
import re
import unicodedata
from collections.abc import Iterable

USER, EMAIL = "[user]", "[email]"

_ENTITY = re.compile(r"&(?:amp|lt|gt|quot|apos|nbsp|#\d{1,7}|#x[0-9a-f]{1,6});", re.IGNORECASE)
_BLANK_ENTITY = re.compile(r"&(?:nbsp|#x200b|#8203|#160|#xa0);", re.IGNORECASE)
_SURROGATE = re.compile(r"[\ud800-\udfff]")
_BREAK = re.compile(r"\r\n?|[\u0085\u2028\u2029\v\f]")
_UNSEEN = re.compile(
    r"[\x00-\x08\x0e-\x1f\x7f-\x9f\u00ad\u180e\u200b\u200e\u200f\u202a-\u202e\u2060-\u2069\ufeff\ufff9-\ufffb]"
)
_IDLE_JOINER = re.compile(r"(?<=[\x00-\x7f])[\u200c\u200d]+|^[\u200c\u200d]+")
_SPACE = re.compile(r"[^\S\n\t ]")
_BLANK_LINES = re.compile(r"\n{3,}")

_NAME = r"(?:[A-Za-z0-9_-]|\\[_-]){3,40}"
_REST = r"(?:[/?#][^\s)\]]*)?"  # of an address
_MENTION = re.compile(
    rf"(?:https?://)?(?:[\w-]{{1,20}}\.)?reddit\.com/(?:u|user)/{_NAME}{_REST}"
    rf"|(?:(?:https?://)?(?:[\w-]{{1,20}}\.)?reddit\.com)?/?(?<!\w)(?:r/)?u\\?_{_NAME}{_REST}"
    rf"|/?(?<!\w)(?:u|user)/{_NAME}"
    r"|(?<!\w)t2_[a-z0-9]{2,13}(?!\w)",
    re.IGNORECASE,
)
_HINT = re.compile(r"@|u/|user/|u\\?_|t2_", re.IGNORECASE)  # spares most texts the search
_EMAIL = re.compile(r"(?<![\w.+-])[\w.+-]{1,64}@(?:[\w-]{1,63}\.){1,5}[A-Za-z]{2,24}(?!\w)")
_HANDLE = re.compile(r"(?<![\w@.])@[A-Za-z0-9_](?:[\w.]|\\_){1,38}\w")
_SHORTEST = 3  # no account has a shorter name, and "u/s 138" is a paragraph of a law
_NOBODY = frozenset({"", "[deleted]", "[removed]", "automoderator", "none", "null"})


def clean_title(text: str) -> str:
    """A title on one line."""
    return " ".join(_plain(text).split())


def clean_body(text: str) -> str:
    """A body with its paragraphs; at most one empty line between two of them."""
    lines = (line.rstrip() for line in _SPACE.sub(" ", _plain(text)).split("\n"))
    return _BLANK_LINES.sub("\n\n", "\n".join(lines)).strip()


def hide_names(text: str, names: Iterable[str] = ()) -> str:
    """The text with every name of a user replaced by a neutral token.

    Args:
        text: cleaned text.
        names: user names that are known, such as the author's; each is replaced wherever it stands
            as a whole word, whatever its case.

    Mentions (``u/name``, links to a user's page, ``@name``), account ids and e-mail addresses are
    found by their form.
    """
    if _HINT.search(text):
        text = _HANDLE.sub(USER, _EMAIL.sub(EMAIL, _MENTION.sub(USER, text)))
    folded = text.replace("\\", "").casefold()
    for name in names:
        if _is_name(name) and name.casefold() in folded:
            text = _name_pattern(name).sub(USER, text)
    return text


def text_key(title: str, body: str) -> str:
    """What two posts of the same text share: compatible forms, case and white space set aside."""
    return " ".join(unicodedata.normalize("NFKC", f"{title}\n{body}").casefold().split())


def _plain(text: str) -> str:
    text = _ENTITY.sub(lambda match: html.unescape(match[0].lower()), text)
    text = _SURROGATE.sub("\ufffd", _BLANK_ENTITY.sub(" ", text))
    text = _UNSEEN.sub("", _BREAK.sub("\n", text))
    if "\u200c" in text or "\u200d" in text:
        text = _IDLE_JOINER.sub("", text)
    return unicodedata.normalize("NFC", text)


def _is_name(name: str) -> bool:
    return len(name) >= _SHORTEST and name.casefold() not in _NOBODY


def _name_pattern(name: str) -> re.Pattern[str]:
    written = re.escape(name).replace("_", r"\\?_").replace(r"\-", r"\\?-")
    return re.compile(rf"(?<![A-Za-z0-9_-]){written}(?![A-Za-z0-9_-])", re.IGNORECASE)
