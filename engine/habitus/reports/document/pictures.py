"""The figures of a report: drawn where matplotlib is there, their numbers always.

A figure of a page has no heading of its own (its caption says it). So that the file stays small
enough to be sent, drawing ends when the drawings together reach a size; figures beyond it are named
and have their files with ``habitus report --figures``.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from importlib.util import find_spec

from markupsafe import Markup

from habitus.content.visible import safe_text
from habitus.reports.document.cells import Table, plain_table
from habitus.reports.document.svg import inline_svg
from habitus.reports.pages import Page, Skipped
from habitus.reports.style import drawing, svg_bytes

_MOST_BYTES = 2_200_000
_MOST_ROWS = 400
NO_MATPLOTLIB = 'drawing needs matplotlib: pip install "habitus[analysis]"; the numbers stand below'


@dataclass(frozen=True, slots=True)
class Picture:
    """A figure on the page: its heading, its text, its drawing or why there is none, its numbers."""

    id: str
    heading: str
    text: str
    svg: Markup | None
    missing: str
    numbers: Table | None


def pictures(pages: Iterable[Page | Skipped], prefix: str) -> list[Picture]:
    """All figures in order; ``prefix`` makes their ids unique on the page."""
    found = []
    size = 0
    can_draw = find_spec("matplotlib") is not None
    for number, page in enumerate(pages, 1):
        name = f"{prefix}-{number}"
        if isinstance(page, Skipped):
            found.append(Picture(name, page.name, "", None, f"not drawn: {page.reason}", None))
            continue
        svg, missing = None, "" if can_draw else NO_MATPLOTLIB
        if can_draw and size < _MOST_BYTES:
            svg = _draw(page, name)
            size += len(svg)
        elif can_draw:
            missing = "left out, so that this file stays small; --figures writes it as a file"
        found.append(Picture(name, page.heading, page.text, svg, missing, _numbers(page)))
    return found


def _draw(page: Page, name: str) -> Markup:
    with drawing():
        figure = page.draw()
        figure.suptitle("")
        return inline_svg(svg_bytes(figure), name, _line(page.heading), _line(page.text))


def _line(text: str) -> str:
    return safe_text(text, lines=False).replace("\ufffe", "\ufffd").replace("\uffff", "\ufffd")


def _numbers(page: Page) -> Table | None:
    found = page.numbers()
    if not found.rows:
        return None
    cut = len(found.rows) - _MOST_ROWS
    notes = [f"{cut:,} rows more with --figures"] if cut > 0 else []
    rows = found.rows[:_MOST_ROWS]
    return plain_table(f"Numbers of the figure: {page.heading}", found.columns, rows, notes)
