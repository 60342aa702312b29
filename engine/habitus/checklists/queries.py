"""Queries by topic, as files."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from pathlib import Path

from pydantic import Field

from habitus.content import ContentModel, Found, load
from habitus.content.fields import Line, Slug


class Query(ContentModel):
    """One question in the voice of a person."""

    id: Slug = Field(description="<domain>-NNN")
    topic: Slug
    text: str = Field(min_length=1)


class QuerySet(ContentModel):
    """The queries of a domain, and the topics they fall under."""

    id: Slug = Field(description="also the name of the file")
    domain: Slug
    topics: dict[Slug, Line] = Field(min_length=1, description="topic id to label")
    queries: tuple[Query, ...] = Field(min_length=1)


def load_queries(path: Path) -> QuerySet:
    """Read a query file.

    Raises:
        ContentError: with the place of every duplicate id, repeated text or unknown topic.
    """
    return load(path, QuerySet, lambda queries: check_queries(queries, path))


def check_queries(queries: QuerySet, path: Path) -> Iterator[Found]:
    """Problems that the types do not show."""
    if path.stem != queries.id:
        what = f"the id is {queries.id!r}, but the file is called {path.name}"
        yield Found(("id",), what, f"rename the file to {queries.id}.yaml, or change the id")
    first: dict[str, int] = {}
    texts: dict[str, str] = {}
    for index, query in enumerate(queries.queries):
        at = ("queries", index)
        if query.id in first:
            what = f"the query id {query.id!r} is used twice; first by query {first[query.id] + 1}"
            yield Found((*at, "id"), what, "give every query an id of its own")
        if query.topic not in queries.topics:
            known = ", ".join(queries.topics)
            yield Found((*at, "topic"), f"unknown topic {query.topic!r}", f"topics: {known}")
        plain = " ".join(query.text.lower().split())
        if plain in texts:
            yield Found((*at, "text"), f"the text is that of {texts[plain]}", "remove one")
        first.setdefault(query.id, index)
        texts.setdefault(plain, query.id)
    yield from _unused(queries)


def _unused(queries: QuerySet) -> Iterator[Found]:
    used = Counter(query.topic for query in queries.queries)
    for topic in queries.topics:
        if not used[topic]:
            yield Found(("topics", topic), f"no query has the topic {topic!r}")
