"""Posts of a corpus: as items for a judge of questions, and with the categories it gave them."""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

from habitus.agents.verdicts import unreadable_label
from habitus.corpora import CATEGORY, add_column, column_names, question_of, read_posts
from habitus.errors import UsageError
from habitus.labelling.note import LABELS
from habitus.labelling.source import Source
from habitus.records import JudgedItem, Label
from habitus.store import RunDir

_FIELDS = ("country", CATEGORY, "subreddit")
_NEEDED = ("id", "title", "body", "subreddit")


@dataclass(frozen=True, slots=True)
class PostSource:
    """The posts of a Parquet file, read a batch at a time.

    ``digest`` names what is read of them: other columns may come and go.
    """

    path: Path
    columns: tuple[str, ...]
    digest: str
    size: int

    @classmethod
    def open(cls, path: Path) -> PostSource:
        """Look at a file of posts.

        Raises:
            UsageError: no such file, not Parquet, a column is missing, or an id stands there twice.
        """
        there = column_names(path)
        columns = tuple(dict.fromkeys((*_NEEDED, *(f for f in _FIELDS if f in there))))
        return cls(path, columns, *_looked_through(path, columns))

    def posts(self) -> Iterator[dict[str, Any]]:
        """The posts, in the order of the file; a title or body that is null has no text."""
        return _posts(self.path, self.columns)

    def fields(self, post: dict[str, Any]) -> dict[str, str]:
        """What an analysis may group a post by."""
        return {name: str(post[name]) for name in _FIELDS if post.get(name) is not None}

    def questions(self) -> Source:
        """The posts as items without an answer, for judges that see the question alone.

        A category that they have is none of it: it is what such a judge gives them.
        """
        columns = tuple(name for name in self.columns if name != CATEGORY)
        if columns == self.columns:
            digest, size = self.digest, self.size
        else:
            digest, size = _looked_through(self.path, columns)
        read = partial(_questions, replace(self, columns=columns))
        return Source(self.path.name, "posts", digest, size, size, read)


def _questions(source: PostSource) -> Iterator[JudgedItem]:
    for post in source.posts():
        question = question_of(post["title"], post["body"])
        yield JudgedItem(
            id=post["id"],
            group=post["id"],
            target="-",
            question=question,
            fields=source.fields(post),
        )


def _posts(path: Path, columns: tuple[str, ...]) -> Iterator[dict[str, Any]]:
    for batch in read_posts(path, columns):
        for row in zip(*batch.values(), strict=True):
            post = dict(zip(batch, row, strict=True))
            yield post | {name: "" if post[name] is None else str(post[name]) for name in _NEEDED}


def _looked_through(path: Path, columns: tuple[str, ...]) -> tuple[str, int]:
    """Digest and number of the posts, when each has an id of its own."""
    hasher = hashlib.sha256()
    known: set[str] = set()
    for number, post in enumerate(_posts(path, columns), start=1):
        name = post["id"]
        if not name or name in known:
            what = f"has the id {name!r} of another row" if name else "has no id"
            raise UsageError(f"{path}: row {number} {what}")
        known.add(name)
        hasher.update(repr(list(post.items())).encode() + b"\n")
    return hasher.hexdigest(), len(known)


@dataclass(frozen=True, slots=True)
class Categories:
    """What posts were sorted into.

    Args:
        posts: posts by category; None for those of which no category could be read.
        mapped: posts by the words that were given and the category that the judge's aliases make
            of them.
        unmapped: posts by words that were given and stand for no category.
    """

    posts: Counter[str | None]
    mapped: Counter[tuple[str, str]]
    unmapped: Counter[str]


def write_categories(run: RunDir, posts: Path, out: Path) -> Categories:
    """Write the posts with the categories that a run of labels has for them."""
    found: dict[str, str | None] = {}
    mapped, unmapped = Counter[tuple[str, str]](), Counter[str]()
    for label in run.records.iterate(LABELS, Label):
        found[label.item] = label.label
        words = unreadable_label(label.reason)
        if label.label and label.alias:
            mapped[label.alias, label.label] += 1
        elif words is not None:
            unmapped[words] += 1
    add_column(posts, out, CATEGORY, lambda name: found.get(str(name)))
    return Categories(Counter(found.values()), mapped, unmapped)
