"""Which categories the posts of each country are about, in per cent of the country's posts."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial
from typing import TYPE_CHECKING

from habitus.corpora.shares import Share
from habitus.reports.pages import Numbers, Page, Skipped, even_chunks, numbered
from habitus.reports.style import LINE, PALETTE, label, line_count, new_figure, title, title_height
from habitus.reports.tilemap import Tile, draw_tiles, heads

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_ROWS, _COLUMNS = 40, 10
_ROW, _COLUMN, _LABELS = 0.18, 0.52, 1.65  # inches
_NONE = "(none)"
_HEADING = "Categories: per cent of each country's posts"


def category_pages(shares: Sequence[Share] | None) -> Iterator[Page | Skipped]:
    """A row for each category, the most frequent first, and a column for each country."""
    both = [share for share in shares or () if share.by == "country and category"]
    if not both:
        reason = (
            "it takes a file of posts (--posts)" if shares is None else "the posts have no category"
        )
        yield Skipped("categories", reason)
        return
    posts: dict[str | None, int] = {}
    for share in both:
        posts[share.category] = posts.get(share.category, 0) + share.n
    rows = sorted(posts, key=lambda name: (name is None, -posts[name], name or ""))
    columns = list(dict.fromkeys((share.country, share.of) for share in both))
    parts = [
        (some, there)
        for some in even_chunks(rows, _ROWS)
        for there in even_chunks(columns, _COLUMNS)
    ]
    for name, (some, there) in numbered("categories", parts):
        yield Page(
            name,
            _HEADING,
            f"A table of {len(some)} categories by {len(there)} countries: per cent of the posts.",
            partial(_draw, both, some, there),
            partial(_numbers, both, some, there),
        )


def _numbers(
    shares: Sequence[Share],
    categories: Sequence[str | None],
    countries: Sequence[tuple[str | None, int]],
) -> Numbers:
    known = [country for country, _ in countries]
    rows = tuple(
        (share.country or _NONE, share.category or _NONE, share.n, share.of, share.share)
        for share in shares
        if share.category in categories and share.country in known
    )
    return Numbers(("country", "category", "posts", "of", "share"), rows)


def _draw(
    shares: Sequence[Share],
    categories: Sequence[str | None],
    countries: Sequence[tuple[str | None, int]],
) -> Figure:
    from matplotlib.colors import LinearSegmentedColormap  # noqa: PLC0415

    rows = {_key(name): label(name or _NONE, 30) for name in categories}
    names, wide = heads([name or _NONE for name, _ in countries], (), _COLUMN)
    columns = {
        _key(country): f"{name}\n{of:,}"
        for name, (country, of) in zip(names, countries, strict=True)
    }
    most = max(share.share for share in shares)
    tiles = {
        (_key(name), _key(where)): Tile(0.0, "0") for name in categories for where, _ in countries
    }
    for share in shares:
        tiles[_key(share.category), _key(share.country)] = Tile(share.share / most, _percent(share))
    tall = max(_ROW, LINE * line_count(*rows.values()))
    width = _LABELS + wide * max(3, len(columns))
    head = LINE * line_count(*columns.values()) + title_height(_HEADING, width)
    figure = new_figure(width, head + tall * len(rows) + 0.1)
    draw_tiles(
        figure.subplots(),
        tiles,
        rows,
        columns,
        LinearSegmentedColormap.from_list("shares", ["white", PALETTE[0]]),
    )
    title(figure, _HEADING)
    return figure


def _percent(share: Share) -> str:
    value = 100 * share.share
    return f"{value:.1f}" if value >= 0.05 else "<0.1"


def _key(name: str | None) -> str:
    return "-" if name is None else f"+{name}"
