"""Posts by country and by category, each share beside what it is a share of.

for row in read_shares(Path("posts.parquet")):
    row.country, row.category, row.n, row.of, row.share
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from habitus.corpora.stored import column_names, read_posts

CATEGORY = "category"
By = Literal["country", "category", "country and category"]


@dataclass(frozen=True, slots=True)
class Share:
    """``n`` posts of ``of``.

    Rows by country or by category are shares of all posts; rows by both are shares of the
    country's posts. A category of None in such a row: posts that have none.
    """

    by: By
    country: str | None
    category: str | None
    n: int
    of: int

    @property
    def share(self) -> float:
        """``n`` of ``of``, between 0 and 1; there is no row of nothing."""
        return self.n / self.of


def read_shares(path: Path) -> tuple[Share, ...]:
    """Count the posts of a file, the most frequent first.

    Raises:
        UsageError: no such file, not Parquet, or no column ``country``.
    """
    labelled = CATEGORY in column_names(path)
    pairs = Counter[tuple[str | None, str | None]]()
    for batch in read_posts(path, ["country", CATEGORY] if labelled else ["country"]):
        countries = batch["country"]
        pairs.update(zip(countries, batch.get(CATEGORY, [None] * len(countries)), strict=True))
    return tuple(_shares(pairs, labelled))


def _shares(pairs: Counter[tuple[str | None, str | None]], labelled: bool) -> list[Share]:
    countries, categories = Counter[str | None](), Counter[str | None]()
    for (country, category), n in pairs.items():
        countries[country] += n
        categories[category] += n
    rows = [Share("country", c, None, n, pairs.total()) for c, n in _ordered(countries)]
    if not labelled:
        return rows
    rows += [Share("category", None, c, n, pairs.total()) for c, n in _ordered(categories)]
    for country, of in _ordered(countries):
        within = Counter({cat: n for (where, cat), n in pairs.items() if where == country})
        rows += [Share("country and category", country, cat, n, of) for cat, n in _ordered(within)]
    return rows


def _ordered(counts: Counter[str | None]) -> list[tuple[str | None, int]]:
    return sorted(counts.items(), key=lambda pair: (-pair[1], pair[0] or ""))
