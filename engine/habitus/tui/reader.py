"""A page to read: rows of a document, laid out for its width, drawn line by line.

Only the rows on the screen are drawn, so a page may be as long as it likes. The reader knows no run.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import ClassVar

from textual.binding import Binding, BindingType
from textual.geometry import Size
from textual.message import Message
from textual.scroll_view import ScrollView
from textual.strip import Strip

from habitus.browsing import Document, Row, highlighted, lay_out
from habitus.tui.styles import strip


class Reader(ScrollView, can_focus=True):
    """Shows a document."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("j,down", "scroll_down", show=False),
        Binding("k,up", "scroll_up", show=False),
        Binding("space,pagedown", "page_down", show=False),
        Binding("b,pageup", "page_up", show=False),
        Binding("g,home", "scroll_home", show=False),
        Binding("G,end", "scroll_end", show=False),
    ]

    class Resized(Message):
        """The reader has another width, and pages with columns may be made anew for it."""

    def __init__(self, name: str) -> None:
        super().__init__(id=name)
        self._document = Document("", ())
        self._rows: list[Row] = []
        self._needle = ""
        self._unfolded: Collection[str] = ()
        self._laid_out = 0

    @property
    def document(self) -> Document:
        """What is shown."""
        return self._document

    @property
    def inner_width(self) -> int:
        """Cells in a row."""
        return max(1, self.scrollable_content_region.width)

    def show(self, document: Document, *, needle: str = "", unfolded: Collection[str] = ()) -> None:
        """Show a document; the same one again stays where it was scrolled to."""
        if (document, needle, unfolded) == (self._document, self._needle, self._unfolded):
            return
        stays = document.id == self._document.id
        self._document, self._needle, self._unfolded = document, needle, unfolded
        self._lay_out()
        if not stays:
            self.scroll_to(0, 0, animate=False, immediate=True)

    def next_hit(self, step: int) -> bool:
        """Scroll to the next row with what is searched for; whether there was one."""
        at = round(self.scroll_y)
        hits = [n for n, row in enumerate(self._rows) if any(s.style == "hit" for s in row)]
        after = [n for n in hits if n > at] if step > 0 else [n for n in hits if n < at][::-1]
        if not after or (step > 0 and at >= self.max_scroll_y):
            return False
        self.scroll_to(0, after[0], animate=False, immediate=True)
        return True

    def render_line(self, y: int) -> Strip:
        """One line of the screen."""
        number = round(self.scroll_y) + y
        row = self._rows[number] if number < len(self._rows) else ()
        return strip(row, self.inner_width, self.rich_style)

    def on_resize(self) -> None:
        """Lay the page out anew where it has another width."""
        if self.inner_width != self._laid_out:
            self._lay_out()
            self.post_message(self.Resized())

    def _lay_out(self) -> None:
        self._laid_out = self.inner_width
        rows = lay_out(self._document, self._laid_out, self._unfolded)
        self._rows = [highlighted(row, self._needle) for row in rows]
        self.virtual_size = Size(self._laid_out, len(self._rows))
        self.refresh()

    def action_scroll_down(self) -> None:
        """One row down."""
        self.scroll_relative(y=1, animate=False, immediate=True)

    def action_scroll_up(self) -> None:
        """One row up."""
        self.scroll_relative(y=-1, animate=False, immediate=True)

    def action_page_down(self) -> None:
        """A page down, one row of the old page kept."""
        self.scroll_relative(y=max(1, self.size.height - 1), animate=False, immediate=True)

    def action_page_up(self) -> None:
        """A page up."""
        self.scroll_relative(y=-max(1, self.size.height - 1), animate=False, immediate=True)

    def action_scroll_home(self) -> None:
        """To the first row."""
        self.scroll_to(0, 0, animate=False, immediate=True)

    def action_scroll_end(self) -> None:
        """To the last row."""
        self.scroll_to(0, self.max_scroll_y, animate=False, immediate=True)
