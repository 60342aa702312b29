"""Which subreddit belongs to which country, and which phrases give away a post nobody wants.

    id: square
    title: "Posts of 64 subreddits in seven countries"
    countries:
      turkey: {name: "Turkey", subreddits: [AskTurkey, Turkey]}
    advertisements: ["promo code"]
    translations: ["how do you say ... in"]      # ... stands for up to eight words

A subreddit is found whatever its case. Another corpus is another file.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cached_property
from pathlib import Path
from typing import Annotated

from pydantic import AfterValidator, Field, WithJsonSchema

from habitus.content import ContentModel, Found, find, load
from habitus.content.fields import Line, Slug
from habitus.content.places import looks_like_path

FOLDER = "experiments"
PLACE = "corpora"
SUBREDDIT_PATTERN = r"^[A-Za-z0-9][A-Za-z0-9_]{1,20}$"
_SUBREDDIT = re.compile(SUBREDDIT_PATTERN)
_GAP = r"\W+(?:[\w'\u2019]+\W+){0,8}?"


def _subreddit(name: str) -> str:
    if name.lower().startswith(("r/", "/r/")):
        raise ValueError("write the name without 'r/'")
    if name.lower().startswith(("u_", "u/")):
        raise ValueError("this is the page of a user; user names are not kept")
    if not _SUBREDDIT.fullmatch(name):
        raise ValueError("a subreddit has 2 to 21 letters, digits or '_'")
    return name


def _phrase(text: str) -> str:
    if not all(re.search(r"\w", part) for part in text.split("...")):
        raise ValueError("a phrase has words, and words on both sides of each '...'")
    return text


Subreddit = Annotated[
    str,
    AfterValidator(_subreddit),
    WithJsonSchema({"type": "string", "pattern": SUBREDDIT_PATTERN}),
]
Phrase = Annotated[Line, AfterValidator(_phrase)]


class Country(ContentModel):
    """One country and where its posts are found."""

    name: Line
    subreddits: Annotated[tuple[Subreddit, ...], Field(min_length=1)]


class Phrases:
    """Finds phrases in text as whole words, whatever their case."""

    def __init__(self, phrases: tuple[str, ...]) -> None:
        words = (re.findall(r"\w+", phrase.lower()) for phrase in phrases)
        self._longest = {max(found, key=len) for found in words}  # most texts have none of them
        written = (_GAP.join(map(_words, phrase.split("..."))) for phrase in phrases)
        self._pattern = re.compile(rf"(?<!\w)(?:{'|'.join(written)})(?!\w)", re.IGNORECASE)

    def stand_in(self, text: str) -> bool:
        """Whether any of the phrases stands in a text."""
        lower = text.lower()
        return any(word in lower for word in self._longest) and bool(self._pattern.search(text))


def _words(text: str) -> str:
    return r"\W+".join(re.escape(word) for word in re.findall(r"\w+", text))


class CountryMap(ContentModel):
    """What a corpus is made of."""

    id: Slug = Field(description="also the name of the file")
    title: Line
    source: Line | None = Field(default=None, description="where the list comes from")
    countries: Annotated[dict[Slug, Country], Field(min_length=1)]
    advertisements: tuple[Phrase, ...] = Field(
        default=(), description="a post with one of these in title or body is an advertisement"
    )
    translations: tuple[Phrase, ...] = Field(
        default=(),
        description="a post with one of these in its title, or in a short body, asks for a translation",
    )

    @cached_property
    def by_subreddit(self) -> dict[str, tuple[str, str]]:
        """Lower-case name of a subreddit to its country's id and its name as written here."""
        return {
            name.lower(): (country, name)
            for country, listed in self.countries.items()
            for name in listed.subreddits
        }

    @cached_property
    def advertisement(self) -> Phrases:
        """The phrases of advertisements."""
        return Phrases(self.advertisements)

    @cached_property
    def translation(self) -> Phrases:
        """The phrases that ask for a translation."""
        return Phrases(self.translations)


def load_country_map(path: Path) -> CountryMap:
    """Read and check a country map.

    Raises:
        ContentError: every problem of the file with its place.
    """
    return load(path, CountryMap, check=lambda countries: _problems(countries, path))


def find_country_map(name: str, workspace: Path | None = None) -> CountryMap:
    """A country map by id, workspace first, or by path (a name with a slash or a suffix).

    Raises:
        NotFoundError: no such map, with the nearest names.
        ContentError: the file is wrong.
    """
    if looks_like_path(name):
        return load_country_map(Path(name))
    return load_country_map(find(f"{FOLDER}/{PLACE}", f"{name}.yaml", workspace))


def _problems(countries: CountryMap, path: Path) -> Iterator[Found]:
    if path.stem != countries.id:
        what = f"the id is {countries.id!r}, but the file is called {path.name}"
        yield Found(("id",), what, f"rename the file to {countries.id}.yaml, or change the id")
    first: dict[str, str] = {}
    for country, listed in countries.countries.items():
        for i, name in enumerate(listed.subreddits):
            loc = ("countries", country, "subreddits", i)
            if name.lower() in first:
                what = f"the subreddit {name!r} is listed twice; first in {first[name.lower()]}"
                yield Found(loc, what, "a subreddit belongs to one country; case does not matter")
            first.setdefault(name.lower(), country)
