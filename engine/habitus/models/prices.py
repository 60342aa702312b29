"""What providers charge, as dated lists: ``experiments/prices/*.yaml``.

    book = find_prices(workspace)
    entry = book.priced(entry)          # with a price, where a list has one

A price belongs to a model at a host: the same weights on a server of one's own cost nothing by the
token. An entry's own price comes first. A price from a list says the date and the source of the list, and
a run keeps it: later lists change no number of an old run. What no list has is unknown, never zero.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated
from urllib.parse import urlsplit

from pydantic import Field

from habitus.content import ContentModel, listing, load
from habitus.models.entry import ModelEntry, Money, Price

Name = Annotated[str, Field(min_length=1)]


class ListedPrice(ContentModel):
    """What a million tokens of one model cost."""

    input: Money
    output: Money
    cached_input: Money | None = None


class PriceList(ContentModel):
    """One file of prices: what one host charges, as of a date."""

    host: Annotated[str, Field(pattern=r"^[^/@\s]+$")] = Field(
        description="as it stands in base_url, with its port where it has one"
    )
    currency: Annotated[str, Field(pattern=r"^[A-Z]{3}$")] = "USD"
    date: dt.date = Field(description="when the prices were read")
    source: Name = Field(description="where they were read")
    models: dict[Name, ListedPrice] = Field(
        default_factory=dict, description="by the name that requests give the model"
    )

    def price(self, model: str) -> Price | None:
        """The price of a model, with date and source."""
        found = self.models.get(model)
        if found is None:
            return None
        return Price(
            **found.model_dump(),
            currency=self.currency,
            date=self.date.isoformat(),
            source=self.source,
        )


@dataclass(frozen=True, slots=True)
class PriceBook:
    """Lists of prices; the newest that has a model at a host decides."""

    lists: tuple[PriceList, ...] = ()

    def priced(self, entry: ModelEntry) -> ModelEntry:
        """An entry with its price, where it has none of its own and a list has one."""
        if entry.price is not None or entry.base_url is None:
            return entry
        hosts = {urlsplit(entry.base_url).netloc, urlsplit(entry.base_url).hostname}
        found = [
            (prices.date, price)
            for prices in self.lists
            if prices.host in hosts and (price := prices.price(entry.model)) is not None
        ]
        if not found:
            return entry
        return entry.model_copy(update={"price": max(found, key=lambda pair: pair[0])[1]})

    def all_priced(self, entries: Mapping[str, ModelEntry]) -> dict[str, ModelEntry]:
        """Entries by name, each with its price."""
        return {name: self.priced(entry) for name, entry in entries.items()}


def load_prices(path: Path) -> PriceList:
    """Read one list.

    Raises:
        ContentError: every problem with its place.
    """
    return load(path, PriceList)


def find_prices(workspace: Path | None = None) -> PriceBook:
    """All lists of the workspace and of what ships.

    Raises:
        ContentError: one of them is wrong.
    """
    paths: Iterable[Path] = listing("experiments", "prices/*.yaml", workspace).values()
    return PriceBook(tuple(load_prices(path) for path in paths))
