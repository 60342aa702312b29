"""What asks for something: a line of text, the fields of a filter, a form of file; and the help.

Values of filters come from the run, so they are drawn as safe text like everything else.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from rich.text import Text
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical, VerticalScroll
from textual.screen import ModalScreen
from textual.widgets import Input, Static

from habitus.browsing import Filter
from habitus.browsing.choices import Choices
from habitus.content.visible import safe_text

ANY = "any"
KEYS: tuple[tuple[str, str], ...] = (
    ("1 2 3", "transcripts, responses, judges"),
    ("tab, shift+tab", "the next pane, the one before: tree, page, persona"),
    ("j k, arrows", "move in the tree, or scroll the page"),
    ("h l, left right", "tree: close, open; answers: the one before, the next"),
    ("enter", "open a branch, or read the item"),
    ("space b, page keys", "a page down, up"),
    ("g G, home end", "to the top, to the end"),
    ("[ ]", "the item before, the next, from any pane"),
    ("o", "unfold or fold reasoning"),
    ("z", "the page alone, on the whole screen"),
    ("/", "search texts; n N next, previous hit"),
    ("f", "filter"),
    ("escape", "end the search, then the filter"),
    ("m", "mark, or take the mark away"),
    ("a", "write a note; an empty one is removed"),
    ("y", "copy the item as text"),
    ("e", "export the item as Markdown or JSON"),
    ("r", "look for what is new in the run"),
    ("?", "this help"),
    ("q", "quit"),
)


class Asking(ModalScreen[str | None]):
    """Asks for a line of text; None is no answer."""

    BINDINGS: ClassVar[list[BindingType]] = [Binding("escape", "cancel", show=False)]

    def __init__(self, title: str, value: str = "") -> None:
        super().__init__()
        self._title = title
        self._value = value

    def compose(self) -> ComposeResult:
        """A title and a line to write on."""
        with Vertical(classes="dialog low"):
            yield Static(Text(self._title, style="bold"))
            yield Input(safe_text(self._value, lines=False), select_on_focus=False)

    def on_input_submitted(self, event: Input.Submitted) -> None:
        """Give the text back."""
        self.dismiss(event.value)

    def action_cancel(self) -> None:
        """Give nothing back."""
        self.dismiss(None)


class Exporting(ModalScreen[str | None]):
    """Asks for the form of a file."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("m", "choose('markdown')", show=False),
        Binding("j", "choose('json')", show=False),
        Binding("escape,q", "choose('')", show=False),
    ]

    def compose(self) -> ComposeResult:
        """Two choices."""
        with Vertical(classes="dialog low"):
            yield Static(Text("Export this item here as", style="bold"))
            yield Static(Text("m Markdown   j JSON   escape not at all"))

    def action_choose(self, form: str) -> None:
        """Give the form back."""
        self.dismiss(form or None)


class Helping(ModalScreen[None]):
    """All keys."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape,q,question_mark,enter", "dismiss", show=False),
        Binding("j,down,space,pagedown", "move(1)", show=False),
        Binding("k,up,b,pageup", "move(-1)", show=False),
    ]

    def compose(self) -> ComposeResult:
        """The table of keys; it is scrolled where there is no room for all of it."""
        with VerticalScroll(classes="dialog", can_focus=False):
            lines = [f"{keys:<20}{what}" for keys, what in KEYS]
            yield Static(Text("\n".join(lines)))

    def action_move(self, by: int) -> None:
        """Some rows down or up."""
        self.query_one(VerticalScroll).scroll_relative(y=5 * by, animate=False)

    async def action_dismiss(self, result: None = None) -> None:
        """Close it."""
        self.dismiss(result)


class Filtering(ModalScreen[Filter | None]):
    """The fields of a filter, one a line; left and right go through the values of one."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("j,down,tab", "move(1)", show=False),
        Binding("k,up,shift+tab", "move(-1)", show=False),
        Binding("l,right,space", "turn(1)", show=False),
        Binding("h,left", "turn(-1)", show=False),
        Binding("x,backspace,delete", "clear", show=False),
        Binding("X", "clear_all", show=False),
        Binding("enter", "apply", show=False),
        Binding("escape,q", "cancel", show=False),
    ]

    def __init__(self, given: Filter, choices: Choices) -> None:
        super().__init__()
        self._choices = choices
        self._values = {name: getattr(given, name) for name, _ in choices}
        self._at = 0

    def compose(self) -> ComposeResult:
        """The fields, and what keys do."""
        with Vertical(classes="dialog"):
            yield Static(Text("Filter", style="bold"))
            yield Static(self._fields(), id="fields")
            yield Static(
                Text("j k field   h l value   x any   X all any   enter apply", style="dim")
            )

    def action_move(self, by: int) -> None:
        """To another field."""
        self._at = (self._at + by) % len(self._choices)
        self._show()

    def action_turn(self, by: int) -> None:
        """To another value of the field."""
        name, values = self._choices[self._at]
        ring = ("", *values)
        self._values[name] = ring[(_place(ring, self._values[name]) + by) % len(ring)]
        self._show()

    def action_clear(self) -> None:
        """Any value of this field."""
        self._values[self._choices[self._at][0]] = ""
        self._show()

    def action_clear_all(self) -> None:
        """Any value of every field."""
        self._values = dict.fromkeys(self._values, "")
        self._show()

    def action_apply(self) -> None:
        """Give the filter back."""
        self.dismiss(Filter(**self._values))

    def action_cancel(self) -> None:
        """Leave the filter as it was."""
        self.dismiss(None)

    def _show(self) -> None:
        self.query_one("#fields", Static).update(self._fields())

    def _fields(self) -> Text:
        text = Text()
        for number, (name, values) in enumerate(self._choices):
            current = number == self._at
            value = safe_text(self._values[name], lines=False) or ANY
            line = f"{'>' if current else ' '} {name.replace('_', ' '):<20}"
            line += f"< {value} >" if current else f"  {value}"
            line += self._count(name, values) if current else ""
            text.append(line + "\n", "reverse" if current else "")
        return text

    def _count(self, name: str, values: Sequence[str]) -> str:
        if not values:
            return "  needs --beside RUN" if name == "evaluators_disagree" else "  none"
        return f"  {_place(('', *values), self._values[name])}/{len(values)}"


def _place(ring: Sequence[str], value: str) -> int:
    return ring.index(value) if value in ring else 0
