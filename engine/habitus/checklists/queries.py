"""Queries by topic, as files."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from pathlib import Path

from pydantic import Field

from habitus.content import ContentModel, Found, load
from habitus.content.fields import Slug


class Query(ContentModel):
    """One question in the voice of a person."""

    id: Slug = Field(description="<domain>-NNN")
    topic: Slug
    text: str = Field(min_length=1)


class QuerySet(ContentModel):
    """The queries of a domain, and the topics they fall under."""

    id: Slug
    domain: Slug
    topics: dict[Slug, str] = Field(min_length=1, description="topic id to label")
    queries: tuple[Query, ...] = Field(min_length=1)


def load_queries(path: Path) -> QuerySet:
    """Read a query file.

    Raises:
        ContentError: with the place of every duplicate id, repeated text or unknown topic.
    """
    return load(path, QuerySet, check_queries)


def check_queries(queries: QuerySet) -> Iterator[Found]:
    """Problems that the types do not show."""
    first: dict[str, int] = {}
    texts: dict[str, str] = {}
    for index, query in enumerate(queries.queries):
        at = ("queries", index)
        if query.id in first:
            hint = f"it is also the id of query {first[query.id] + 1} of the list"
            yield Found((*at, "id"), f"duplicate query id {query.id!r}", hint)
        if query.topic not in queries.topics:
            known = ", ".join(queries.topics)
            yield Found((*at, "topic"), f"unknown topic {query.topic!r}", f"topics: {known}")
        plain = " ".join(query.text.lower().split())
        if plain in texts:
            yield Found((*at, "text"), f"{query.id} has the text of {texts[plain]}")
        first.setdefault(query.id, index)
        texts.setdefault(plain, query.id)
    yield from _unused(queries)


def _unused(queries: QuerySet) -> Iterator[Found]:
    used = Counter(query.topic for query in queries.queries)
    for topic in queries.topics:
        if not used[topic]:
            yield Found(("topics", topic), f"no query has the topic {topic!r}")
