"""What is read of one submission, whatever the year wrote it.

``created_utc`` was a number, a string and a float; ``url`` and flairs were null for months;
``removed_by_category`` came in 2019, ``_meta`` in 2023; the text of a crosspost stands in its
parent. Only the fields named here are looked at. Names of users are read to hide them in the texts
and go no further. What is dropped is decided elsewhere (:mod:`habitus.corpora.filters`).
"""

from __future__ import annotations

import datetime as dt
import json
import math
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import orjson

from habitus.corpora.cleaning import clean_body, clean_title, hide_names

_ID = re.compile(r"(?:t3_)?([0-9a-z]{1,13})", re.IGNORECASE)
_MARKER = re.compile(r"\[\s*(?:removed|deleted)\b[^\[\]]{0,200}\]", re.IGNORECASE)
_LATEST = dt.datetime(9999, 1, 1, tzinfo=dt.UTC).timestamp()
_LARGEST = 2**31


@dataclass(frozen=True, slots=True)
class Submission:
    """A submission as far as it matters. None: the dump does not say, or not so that one can read.

    ``title`` and ``body`` are cleaned and name no user; ``body`` is the parent's when
    ``crossposted``. ``renamed`` says whether a name was replaced.
    """

    id: str
    title: str
    body: str
    created: dt.datetime | None
    num_comments: int | None
    over_18: bool | None
    deleted: bool
    advertised: bool
    crossposted: bool
    renamed: bool


def parse(line: bytes) -> object:
    """The JSON of a line.

    Raises:
        ValueError: it is not JSON, or not UTF-8.
    """
    try:
        return orjson.loads(line)
    except orjson.JSONDecodeError:
        pass
    try:  # a byte order mark, half of a surrogate pair: odd, but readable
        return json.loads(line.decode("utf-8-sig"))
    except RecursionError:
        raise ValueError("nested too deep") from None


def subreddit_of(data: object) -> str | None:
    """The subreddit of a submission; None when this is none (no object, no id, no title)."""
    if not isinstance(data, dict):
        return None
    name = data.get("subreddit")
    is_post = isinstance(data.get("title"), str) and _id(data) is not None
    return name if is_post and isinstance(name, str) else None


def read_submission(data: Mapping[str, Any]) -> Submission | None:
    """The submission, or None when its text is of a kind that cannot be read."""
    parents = list(_parents(data))
    body, crossposted = _body(data, parents)
    post_id = _id(data)
    if body is None or post_id is None:
        return None
    title = clean_title(str(data.get("title")))
    names = [name for one in (data, *parents) for name in _names(one)]
    told, shown = hide_names(title, names), hide_names(body, names)
    return Submission(
        id=post_id,
        title=told,
        body=shown,
        created=_time(data.get("created_utc")),
        num_comments=_count(data.get("num_comments")),
        over_18=_any_flag([data.get("over_18"), *(p.get("over_18", False) for p in parents)]),
        deleted=_deleted(data, title, body) or (crossposted and _deleted(parents[0], "", "")),
        advertised=data.get("promoted") is True or data.get("is_created_from_ads_ui") is True,
        crossposted=crossposted,
        renamed=(told, shown) != (title, body),
    )


def _id(data: Mapping[str, Any]) -> str | None:
    value = data.get("id")
    match = _ID.fullmatch(value) if isinstance(value, str) else None
    return match[1].lower() if match else None


def _parents(data: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    listed = data.get("crosspost_parent_list")
    for parent in listed if isinstance(listed, list) else ():
        if isinstance(parent, dict):
            yield parent


def _body(data: Mapping[str, Any], parents: list[Mapping[str, Any]]) -> tuple[str | None, bool]:
    """The text, and whether it is the parent's: a crosspost has none of its own."""
    own = data.get("selftext")
    if own is not None and not isinstance(own, str):
        return None, False
    text = clean_body(own or "")
    if text or not parents or not isinstance(parents[0].get("selftext"), str):
        return text, False
    text = clean_body(parents[0]["selftext"])
    return text, bool(text)


def _names(data: Mapping[str, Any]) -> Iterator[str]:
    for field in ("author", "author_fullname"):
        if isinstance(data.get(field), str):
            yield data[field]


def _deleted(data: Mapping[str, Any], title: str, body: str) -> bool:
    """Whether author, moderators or Reddit took it away.

    An author called ``[deleted]`` alone is an account that has gone; its text stands.
    """
    meta = data.get("_meta")
    later = isinstance(meta, dict) and (meta.get("was_deleted_later") or meta.get("removal_type"))
    said = data.get("removed_by_category") or data.get("removal_reason") or later
    return bool(said) or bool(_MARKER.fullmatch(title) or _MARKER.fullmatch(body))


def _number(value: object) -> float | None:
    if isinstance(value, bool) or not isinstance(value, (int, float, str)):
        return None
    try:
        number = float(value)
    except (ValueError, OverflowError):
        return None
    return number if math.isfinite(number) else None


def _time(value: object) -> dt.datetime | None:
    """UTC, to the second; None for 0, which is no time of a post."""
    number = _number(value)
    if number is None or not 0 < number < _LATEST:
        return None
    return dt.datetime.fromtimestamp(int(number), tz=dt.UTC)


def _count(value: object) -> int | None:
    number = _number(value)
    if number is None or number != int(number) or not 0 <= number < _LARGEST:
        return None
    return int(number)


def _flag(value: object) -> bool | None:
    if isinstance(value, str):
        return {"true": True, "false": False, "1": True, "0": False}.get(value.lower())
    return bool(value) if isinstance(value, (bool, int)) and value in {0, 1} else None


def _any_flag(values: list[object]) -> bool | None:
    flags = [_flag(value) for value in values]
    return True if True in flags else None if None in flags else False
