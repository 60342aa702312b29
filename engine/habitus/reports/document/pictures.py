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
from habitus.reports.document.svg import Hatches, inline_svg
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


def pictures(pages: Iterable[Page | Skipped], prefix: str, title: str = "") -> list[Picture]:
    """All figures that can be drawn, in order.

    Args:
        pages: what there is.
        prefix: makes their ids unique on the page.
        title: what their headings begin with and need not repeat on the page.
    """
    found = []
    size = 0
    hatches = Hatches(f"{prefix}-hatch")
    can_draw = find_spec("matplotlib") is not None
    there = [page for page in pages if isinstance(page, Page)]
    for number, page in enumerate(there, 1):
        name = f"{prefix}-{number}"
        svg, missing = None, "" if can_draw else NO_MATPLOTLIB
        if can_draw and size < _MOST_BYTES:
            svg = _draw(page, name, hatches)
            size += len(svg)
        elif can_draw:
            missing = "left out, so that this file stays small; --figures writes it as a file"
        heading = _capital(page.heading.removeprefix(f"{title}: "))
        found.append(Picture(name, heading, page.text, svg, missing, _numbers(page, heading)))
    return found


def not_drawn(pages: Iterable[Page | Skipped]) -> list[str]:
    """Figures that there are not, each with its reason."""
    skipped = [page for page in pages if isinstance(page, Skipped)]
    return list(dict.fromkeys(f"no figure {page.name}: {page.reason}" for page in skipped))


def _capital(text: str) -> str:
    return text[:1].upper() + text[1:]


def _draw(page: Page, name: str, hatches: Hatches) -> Markup:
    with drawing():
        figure = page.draw()
        figure.suptitle("")
        said = (_line(page.heading), _line(page.text))
        return inline_svg(svg_bytes(figure), name, said, hatches)


def _line(text: str) -> str:
    return safe_text(text, lines=False).replace("\ufffe", "\ufffd").replace("\uffff", "\ufffd")


def _numbers(page: Page, heading: str) -> Table | None:
    found = page.numbers()
    if not found.rows:
        return None
    cut = len(found.rows) - _MOST_ROWS
    notes = [f"{cut:,} rows more with --figures"] if cut > 0 else []
    rows = found.rows[:_MOST_ROWS]
    return plain_table(f"Numbers of the figure: {heading}", found.columns, rows, notes)
