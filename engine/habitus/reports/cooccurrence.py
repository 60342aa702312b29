"""What causes change, by place: for each pair how many deltas rise, fall or do not move.

A delta is of one level in one subset of the place (one model, one category). It rises or falls when
its test is significant, and does not move when it is not; where there is no test it is undefined,
and counted as such.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial
from typing import TYPE_CHECKING

from habitus.framing import Framing, Movement, movements
from habitus.reports.legends import legend_height, place_legend
from habitus.reports.pages import (
    Numbers,
    Page,
    Skipped,
    even_chunks,
    field_names,
    marked,
    numbered,
    places,
)
from habitus.reports.style import (
    GREY,
    LINE,
    UNDEFINED,
    label,
    line_count,
    new_figure,
    title,
    title_height,
)
from habitus.reports.tilemap import OWN, Tile, draw_tiles, heads

if TYPE_CHECKING:
    from matplotlib.colors import Colormap
    from matplotlib.figure import Figure

Pair = tuple[str, str]
_KEYS = ("↑ rise", "↓ fall", "= do not move", "n/a undefined")
_ROWS, _COLUMNS = 28, 8
_ROW, _COLUMN, _LABELS = 0.28, 0.64, 1.75  # inches
_FALLS, _SAME, _RISES = "#4d9cca", "#ffffff", "#e28e4d"  # Okabe and Ito's blue and vermillion


def cooccurrence_pages(framing: Framing) -> Iterator[Page | Skipped]:
    """A row for each pair, a column for each place; in pages where there are many."""
    pairs = list(dict.fromkeys((found.cause, found.effect) for found in framing.deltas))
    causes = list(dict.fromkeys(cause for cause, _ in pairs))
    pairs.sort(key=lambda pair: causes.index(pair[0]))
    there = list(places(framing))
    if not pairs:
        yield Skipped("cooccurrence", "the analysis asks for no pair of characteristics")
    elif not there:
        yield Skipped("cooccurrence", "the subsets are made by no field, so there is no column")
    else:
        parts = [
            (rows, columns)
            for rows in even_chunks(pairs, _ROWS)
            for columns in even_chunks(there, _COLUMNS)
        ]
        for name, (rows, columns) in numbered("cooccurrence", parts):
            yield Page(
                name,
                _heading(framing),
                f"A table of {len(rows)} pairs of characteristics by {field_names(framing)[0]}: in how "
                "many parts and levels the first makes the second more frequent, less, or neither.",
                partial(_draw, framing, rows, columns),
                partial(_numbers, framing, rows, columns),
            )


def _heading(framing: Framing) -> str:
    return marked(framing, f"{framing.title}: co-occurrence by {field_names(framing)[0]}")


def _numbers(framing: Framing, pairs: Sequence[Pair], there: Sequence[str]) -> Numbers:
    names = framing.characteristics
    found = tuple(
        (
            *(m.where, names.get(m.cause, m.cause), names.get(m.effect, m.effect)),
            *(m.rise, m.fall, m.same, m.undefined),
        )
        for m in movements(framing)
        if (m.cause, m.effect) in pairs and m.where in there
    )
    columns = (field_names(framing)[0], "cause", "effect", "rise", "fall", "do not move")
    return Numbers((*columns, "undefined"), found)


def _draw(framing: Framing, pairs: Sequence[Pair], there: Sequence[str]) -> Figure:
    heading = _heading(framing)
    rows = {_key(pair): _pair_name(framing, pair) for pair in pairs}
    tiles = _tiles(framing)
    names, wide = heads(there, tiles.values(), _COLUMN)
    columns = dict(zip(there, names, strict=True))
    width = _LABELS + wide * max(3, len(columns))
    tall = max(_ROW, LINE * line_count(*rows.values()))
    head = LINE * line_count(*names) + title_height(heading, width)
    figure = new_figure(width, head + tall * len(rows) + legend_height(_KEYS, width))
    axes = figure.subplots()
    draw_tiles(axes, tiles, rows, columns, _colours())
    for y in range(1, len(pairs)):
        if pairs[y][0] != pairs[y - 1][0]:
            axes.axhline(y, color=GREY, linewidth=0.9)
    title(figure, heading)
    _legend(figure)
    return figure


def _tiles(framing: Framing) -> dict[tuple[str, str], Tile]:
    return {
        (_key((found.cause, found.effect)), found.where): _tile(found)
        for found in movements(framing)
    }


def _tile(found: Movement) -> Tile:
    """``5↑ 1↓ 3=``, and in a second line how many are undefined.

    The colour is from all fall (0) over as many rise as fall to all rise (1).
    """
    known = found.rise + found.fall + found.same
    missing = f"{found.undefined} {UNDEFINED}" if found.undefined else ""
    if not known:
        return Tile(None, missing)
    text = f"{found.rise}↑ {found.fall}↓ {found.same}="
    lean = (found.rise - found.fall) / known
    return Tile((lean + 1) / 2, f"{text}\n{missing}" if missing else text)


def _key(pair: Pair) -> str:
    return "\n".join(pair)


def _pair_name(framing: Framing, pair: Pair) -> str:
    cause, effect = (framing.characteristics.get(name, name) for name in pair)
    return label(f"{cause} → {effect}", 30)


def _colours() -> Colormap:
    from matplotlib.colors import LinearSegmentedColormap  # noqa: PLC0415

    return LinearSegmentedColormap.from_list("moves", [_FALLS, _SAME, _RISES])


def _legend(figure: Figure) -> None:
    from matplotlib.patches import Patch  # noqa: PLC0415

    keys = [
        Patch(facecolor=_RISES),
        Patch(facecolor=_FALLS),
        Patch(facecolor=_SAME, edgecolor=GREY, linewidth=0.5),
        Patch(facecolor=_SAME, edgecolor=GREY, linewidth=0.5, hatch="////"),
    ]
    legend = place_legend(figure, list(zip(keys, _KEYS, strict=True)))
    for number, patch in enumerate(legend.get_patches()[:3]):
        patch.set_gid(f"{OWN}-key-{number}")
