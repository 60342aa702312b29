"""The keys of the viewer, and the lines above and below its panes."""

from __future__ import annotations

from typing import ClassVar

from rich.text import Text
from textual.binding import Binding, BindingType
from textual.screen import Screen

from habitus.content.visible import safe_text

_KEYS = (
    ("?", "help"), ("tab", "pane"), ("/", "search"), ("f", "filter"), ("m", "mark"), ("a", "note"),
    ("y", "copy"), ("e", "export"), ("q", "quit"), ("[ ]", "item"), ("o", "fold"), ("z", "zoom"),
    ("1 2 3", "view"), ("r", "refresh"),
)  # fmt: skip


class Views(Screen[None]):
    """The screen behind all dialogs: its keys do not act while one is open."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("q", "app.quit", show=False),
        Binding("question_mark", "app.help", show=False),
        Binding("1", "app.view('transcripts')", show=False),
        Binding("2", "app.view('responses')", show=False),
        Binding("3", "app.view('judges')", show=False),
        Binding("tab", "app.pane(1)", show=False),
        Binding("shift+tab", "app.pane(-1)", show=False),
        Binding("right_square_bracket", "app.item(1)", show=False),
        Binding("left_square_bracket", "app.item(-1)", show=False),
        Binding("l,right", "app.column(1)", show=False),
        Binding("h,left", "app.column(-1)", show=False),
        Binding("o", "app.fold", show=False),
        Binding("z", "app.zoom", show=False),
        Binding("slash", "app.search", show=False),
        Binding("n", "app.hit(1)", show=False),
        Binding("N", "app.hit(-1)", show=False),
        Binding("f", "app.filter", show=False),
        Binding("escape", "app.widen", show=False),
        Binding("m", "app.mark", show=False),
        Binding("a", "app.note", show=False),
        Binding("y", "app.copy", show=False),
        Binding("e", "app.export", show=False),
        Binding("r", "app.refresh", show=False),
    ]


def line(text: str) -> Text:
    """A text of a run or of ours, as what a line of the screen shows."""
    return Text(safe_text(text, lines=False))


def rows(text: Text | None, width: int) -> int:
    """How many rows a text takes, about."""
    return -(-text.cell_len // max(1, width)) if text else 1


def keys(width: int) -> Text:
    """As many keys as there is room for, the most useful first."""
    text, used = Text(no_wrap=True), 0
    for key, what in _KEYS:
        used += len(key) + len(what) + 3
        if used > width:
            break
        text.append(key, "bold")
        text.append(f" {what}  ")
    return text
