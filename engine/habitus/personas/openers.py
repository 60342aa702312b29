"""First turns of sessions, spoken word for word.

id: health
kind: domain                    # or everyday
openers:
  - {id: sleep-1, area: health, text: "..."}
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Literal

from pydantic import AfterValidator, Field, StringConstraints

from habitus.content import ContentModel, Found, load
from habitus.content.fields import Line, Slug
from habitus.content.visible import has_words


def _says_something(text: str) -> str:
    if not has_words(text):
        raise ValueError("says nothing: white space and invisible characters are no first turn")
    return text


class Opener(ContentModel):
    """One first turn."""

    id: Slug
    area: Line = Field(description="what it is about: work, family, food, ...")
    text: Annotated[
        str, StringConstraints(strip_whitespace=False), AfterValidator(_says_something)
    ] = Field(min_length=1, description="spoken word for word, white space at its ends as well")


class Openers(ContentModel):
    """A list of openers of one kind."""

    id: Slug = Field(description="also the name of the file")
    kind: Literal["domain", "everyday"]
    openers: Annotated[tuple[Opener, ...], Field(min_length=1)]


def load_openers(path: Path) -> Openers:
    """Read and check a file of openers.

    Raises:
        ContentError: every problem of the file with its place.
    """
    return load(path, Openers, check=lambda openers: _problems(openers, path))


def _problems(openers: Openers, path: Path) -> Iterator[Found]:
    if path.stem != openers.id:
        what = f"the id is {openers.id!r}, but the file is called {path.name}"
        yield Found(("id",), what, f"rename the file to {openers.id}.yaml, or change the id")
    ids: dict[str, int] = {}
    texts: dict[str, str] = {}
    for i, opener in enumerate(openers.openers):
        if opener.id in ids:
            what = (
                f"the opener id {opener.id!r} is used twice; first by opener {ids[opener.id] + 1}"
            )
            yield Found(("openers", i, "id"), what, "give every opener an id of its own")
        said = " ".join(opener.text.casefold().split())
        if said in texts:
            yield Found(("openers", i, "text"), f"the text is that of {texts[said]}", "remove one")
        ids.setdefault(opener.id, i)
        texts.setdefault(said, opener.id)
