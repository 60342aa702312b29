"""A table of coloured cells with a text in each, such as a heat map.

The text says what the colour means, so that nobody has to read the colour. A cell of which nothing
is known is hatched; a cell of nothing is not the cell of a zero.

What has a meaning by its colour carries an id that begins with ``OWN``: whoever shows the figure on
another ground leaves it as it is.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from habitus.reports.style import DARK, GREY, SIZE, UNDEFINED, bare, label, light

OWN = "own-colour"
_LETTER = 0.064  # inches, of the smallest size

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.colors import Colormap


@dataclass(frozen=True, slots=True)
class Tile:
    """A value from 0 to 1 on the scale of colours, None where undefined, and what is written."""

    value: float | None
    text: str


def draw_tiles(
    axes: Axes,
    tiles: Mapping[tuple[str, str], Tile],
    rows: Mapping[str, str],
    columns: Mapping[str, str],
    colours: Colormap,
) -> None:
    """Draw tiles by (row, column); rows from the top, with the names of both.

    A tile that is not there is undefined.
    """
    from matplotlib.patches import Rectangle  # noqa: PLC0415

    for y, row in enumerate(rows):
        for x, column in enumerate(columns):
            tile = tiles.get((row, column), Tile(None, UNDEFINED))
            known = tile.value is not None
            colour = colours(tile.value) if tile.value is not None else (1.0, 1.0, 1.0, 1.0)
            axes.add_patch(
                Rectangle(
                    (x, y), 1, 1, facecolor=colour, edgecolor="white" if known else GREY,
                    linewidth=0.8 if known else 0, hatch=None if known else "////",
                    gid=f"{OWN}-{x}-{y}" if known else None,
                )
            )  # fmt: skip
            _write(axes, x, y, tile, dark=not known or light(colour))
    axes.set_xlim(0, len(columns))
    axes.set_ylim(len(rows), 0)
    axes.set_xticks([x + 0.5 for x in range(len(columns))], list(columns.values()))
    axes.set_yticks([y + 0.5 for y in range(len(rows))], list(rows.values()))
    axes.xaxis.tick_top()
    bare(axes)


def _write(axes: Axes, x: int, y: int, tile: Tile, *, dark: bool) -> None:
    paper = {"facecolor": "white", "edgecolor": "none", "pad": 0.6} if tile.value is None else None
    axes.text(
        x + 0.5,
        y + 0.5,
        tile.text,
        ha="center",
        va="center",
        fontsize=SIZE,
        linespacing=1.0,
        color=DARK if dark else "white",
        bbox=paper,
        gid=None if paper else f"{OWN}-text-{x}-{y}",
    )


def heads(names: Sequence[str], tiles: Iterable[Tile], least: float) -> tuple[list[str], float]:
    """Names above columns, and the inches that each column needs for them and for its tiles.

    A column is as wide as the longest word, from ``least`` to twice as much.
    """
    words = (word for name in names for word in name.split())
    inside = (line for tile in tiles for line in tile.text.split("\n"))
    longest = max(map(len, (*words, *inside)), default=0)
    width = min(max(least, _LETTER * (longest + 1)), 2 * least)
    return [label(name, int(width / _LETTER)) for name in names], width
