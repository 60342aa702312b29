"""Why a line is not in the corpus: one reason each, the first that holds, in the order of the list.

Lines that are no post come first, then posts from elsewhere, then what a post's fields say, then
what its text says, then what was there before. Every line of every file is either kept or counted
under exactly one reason.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from enum import StrEnum

from habitus.corpora.countries import CountryMap
from habitus.corpora.submissions import Submission

SHORT = 300  # characters of a body in which a phrase is what the post is about

_LINK = re.compile(r"!?\[[^\[\]]{0,500}\]\([^()\s]{0,2000}(?:\s[^()]{0,200})?\)")
_URL = re.compile(r"<?(?:https?://|www\.)\S+>?", re.IGNORECASE)
_PLACEHOLDER = re.compile(r"\*?(?:processing (?:img|gif|video)) \w{1,20}\.{0,3}\*?", re.IGNORECASE)

_HINT = re.compile(r"://|www\.|\]\(|processing", re.IGNORECASE)  # spares most texts the search


class Reason(StrEnum):
    """Why a line was dropped, in the order of the tests."""

    EMPTY_LINE = "empty_line"
    LONG_LINE = "long_line"
    BROKEN_LINE = "broken_line"
    NO_POST = "no_post"
    ELSEWHERE = "elsewhere"
    OVER_18 = "over_18"
    OVER_18_UNKNOWN = "over_18_unknown"
    DELETED = "deleted"
    NO_COMMENTS = "no_comments"
    COMMENTS_UNKNOWN = "comments_unknown"
    NO_TEXT = "no_text"
    ONLY_URL = "only_url"
    ADVERTISEMENT = "advertisement"
    TRANSLATION = "translation"
    DUPLICATE_ID = "duplicate_id"
    DUPLICATE_TEXT = "duplicate_text"


Test = Callable[[Submission, CountryMap], bool]


def first_reason(post: Submission, countries: CountryMap) -> Reason | None:
    """The first filter that drops a post, or None."""
    return next((reason for reason, test in FILTERS if test(post, countries)), None)


def is_only_url(body: str) -> bool:
    """Whether a text has links, and without them no letter or digit."""
    if not _HINT.search(body):
        return False
    return not _says(_PLACEHOLDER.sub(" ", _URL.sub(" ", _LINK.sub(" ", body))))


def _says(text: str) -> bool:
    return any(map(str.isalnum, text))


def _is_advertisement(post: Submission, countries: CountryMap) -> bool:
    said = countries.advertisement.stand_in
    return post.advertised or said(post.title) or said(post.body)


def _asks_translation(post: Submission, countries: CountryMap) -> bool:
    asks = countries.translation.stand_in
    return asks(post.title) or (len(post.body) <= SHORT and asks(post.body))


FILTERS: tuple[tuple[Reason, Test], ...] = (
    (Reason.OVER_18, lambda post, _: post.over_18 is True),
    (Reason.OVER_18_UNKNOWN, lambda post, _: post.over_18 is None),
    (Reason.DELETED, lambda post, _: post.deleted),
    (Reason.NO_COMMENTS, lambda post, _: post.num_comments == 0),
    (Reason.COMMENTS_UNKNOWN, lambda post, _: post.num_comments is None),
    (Reason.NO_TEXT, lambda post, _: not _says(post.body)),
    (Reason.ONLY_URL, lambda post, _: is_only_url(post.body)),
    (Reason.ADVERTISEMENT, _is_advertisement),
    (Reason.TRANSLATION, _asks_translation),
)
