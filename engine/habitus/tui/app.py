"""The application: it carries keys to the state, and the state to the widgets."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from rich.text import Text
from textual.app import ComposeResult
from textual.containers import Horizontal
from textual.screen import Screen
from textual.widget import AwaitMount
from textual.widgets import Static, Tree

from habitus.browsing import (
    Browsed,
    Document,
    Filter,
    Node,
    View,
    json_text,
    markdown,
    plain_text,
    save,
)
from habitus.browsing.choices import choices
from habitus.content.visible import safe_text
from habitus.errors import HabitusError
from habitus.tui.background import Background
from habitus.tui.dialogs import Asking, Exporting, Filtering, Helping
from habitus.tui.keys import Views, keys, line, rows
from habitus.tui.outline import Outline
from habitus.tui.reader import Reader
from habitus.tui.state import TITLES, Pane, State, ViewState

_WIDE = 120  # columns from which tree, page and persona stand beside each other
_WIDE_ANSWERS = 230  # the same where the page has columns itself
_VAST = 180  # columns from which tree and persona have more room
_POLL = 2.0  # seconds between two looks at a run that may be going on


class Viewer(Background):
    """The viewer of a run.

    Args:
        browsed: the run.
        item: the id to begin at.
        given: the filter to begin with.
        folder: where exported items are written; the working directory by default.
        poll: look for what is new every two seconds.
    """

    CSS_PATH = "viewer.tcss"
    ENABLE_COMMAND_PALETTE = False

    def __init__(
        self,
        browsed: Browsed,
        *,
        item: str = "",
        given: Filter | None = None,
        folder: Path | None = None,
        poll: bool = True,
    ) -> None:
        super().__init__(ansi_color=True)
        self.theme = "ansi-dark"
        first, self._begin, column = browsed.find(item) if item else (browsed.views[0], "", "")
        self.state = State(browsed, first)
        self.state.views = {view: ViewState(column=column) for view in browsed.views}
        self.state.now.filter = given or Filter()
        self._folder = folder or Path.cwd()
        self._poll = poll
        self._shown: dict[str, Text] = {}

    @property
    def fault(self) -> Exception | None:
        """What ended the viewer, if it was not the person at the keyboard."""
        return self._exception

    def _fatal_error(self) -> None:
        """Only leave: whoever started the viewer tells of its fault, without texts of the run."""
        self._close_messages_no_wait()

    # What is shown

    def compose(self) -> ComposeResult:
        """A line above, tree and pages, two lines below."""
        yield Static(id="top")
        with Horizontal(id="body"):
            for view in self.state.browsed.views:
                yield Outline(view, self._is_marked)
            yield Reader("main")
            yield Reader("side")
        yield Static(id="status")
        yield Static(id="keys")

    def get_default_screen(self) -> Views:
        """The screen with the keys."""
        return Views(id="_default")

    def on_mount(self) -> None:
        """Show the first view."""
        for view in self.state.browsed.views:
            self._outline(view).show_nodes(self.state.rebuild(view))
        if self._begin:
            self._outline(self.state.view).go_to(self._begin)
        self._arrange()
        self.read_what_is_needed()
        if self._poll:
            self.set_interval(_POLL, self.read_news)

    def on_tree_node_highlighted(self) -> None:
        """Show the item that the cursor is on, once no further key is waiting."""
        self.call_later(self._show)

    def on_tree_node_selected(self, event: Tree.NodeSelected[Node]) -> None:
        """Open a branch, or go and read."""
        if event.node.allow_expand:
            event.node.toggle()
        else:
            self._focus("main")

    def on_reader_resized(self) -> None:
        """Choose anew between columns and tabs."""
        self.call_later(self._show)

    def on_resize(self) -> None:
        """Arrange the panes for another width."""
        self.call_after_refresh(self._arrange)

    def _outline(self, view: View) -> Outline:
        return self._main_screen.query_one(f"#{view}", Outline)

    def _reader(self, name: str) -> Reader:
        return self._main_screen.query_one(f"#{name}", Reader)

    @property
    def _main_screen(self) -> Screen[object]:
        """The screen of the viewer, whatever dialog stands before it."""
        return self.screen_stack[0]

    @property
    def _tree(self) -> Outline:
        return self._outline(self.state.view)

    def _arrange(self) -> None:
        """Which panes are on the screen: beside each other, or the one that is used."""
        state, width = self.state, self.size.width
        wide = width >= (_WIDE if state.view == "transcripts" else _WIDE_ANSWERS)
        together = wide and not state.zoomed
        self._main_screen.set_class(width < _WIDE, "narrow")
        self._main_screen.set_class(width >= _VAST, "vast")
        self._main_screen.set_class(not wide, "alone")
        for view in state.browsed.views:
            self._outline(view).display = view == state.view and not state.zoomed
        self._reader("side").display = together or state.pane == "side"
        self._reader("main").display = together or state.pane != "side"
        used = self._tree if state.pane == "tree" else self._reader(state.pane)
        self._main_screen.set_focus(used)  # at once: the next key is for it
        self.call_after_refresh(self._show)

    def _focus(self, pane: Pane) -> None:
        self.state.pane = pane
        self._arrange()

    def _show(self) -> None:
        """Bring the pages up to what the cursor is on."""
        if not self.is_running:
            return
        state, main = self.state, self._reader("main")
        state.go_to(self._tree.cursor_key)
        page = state.page(main.inner_width)
        unfolded = page.main.folds if state.unfolded else frozenset()
        main.show(page.main, needle=state.now.search, unfolded=unfolded)
        self._reader("side").show(page.side or Document("", ()), needle=state.now.search)
        self._show_lines()

    def _show_lines(self) -> None:
        top = self.state.top().ljust(self.size.width)
        lines = {"top": line(top), "status": line(self.state.status())}
        for name, text in {**lines, "keys": keys(self.size.width)}.items():
            before = self._shown.get(name)
            if before != text:
                self._shown[name] = text
                taller = rows(text, self.size.width) != rows(before, self.size.width)
                self._main_screen.query_one(f"#{name}", Static).update(text, layout=taller)

    def say(self, text: str) -> None:
        """Show a line of text."""
        self.state.said = text
        self._show_lines()

    def _is_marked(self, node: Node) -> bool:
        known = self.state.browsed.notes.items()
        return any(item in known for item in node.items)

    # Moving

    async def action_help(self) -> None:
        """All keys."""
        await self.push_screen(Helping())

    def action_view(self, view: View) -> None:
        """Another view."""
        if view not in self.state.browsed.views:
            hint = "; give a run of labels with --labels" if view == "judges" else ""
            self.say(f"this run has no {TITLES[view].lower()}{hint}")
            return
        self.state.view, self.state.said = view, ""
        self.state.pane = "tree" if self.state.pane == "side" else self.state.pane
        self._arrange()
        self.read_what_is_needed()

    def action_pane(self, by: int) -> None:
        """The next pane."""
        panes: list[Pane] = ["tree", "main"]
        panes += ["side"] if self._reader("side").document.id else []
        at = panes.index(self.state.pane) if self.state.pane in panes else 0
        self.state.zoomed = False
        self._focus(panes[(at + by) % len(panes)])

    def action_item(self, by: int) -> None:
        """The next item, or the one before."""
        self.state.said = ""
        if not self._tree.step(by, self.state.now.leaves):
            self.say("no further item")

    def action_column(self, by: int) -> None:
        """The next answer of a comparison."""
        self.state.turn(by)
        self._show()

    def action_fold(self) -> None:
        """Unfold reasoning, or fold it away."""
        self.state.unfolded = not self.state.unfolded
        self._show()

    def action_zoom(self) -> None:
        """The page alone, or beside the tree again."""
        self.state.zoomed = not self.state.zoomed
        self._focus("main" if self.state.pane == "tree" else self.state.pane)

    def action_refresh(self) -> None:
        """Look for what is new."""
        self.read_news()

    # Finding

    async def action_search(self) -> None:
        """Ask what to search for."""
        asking = Asking("Search texts (no text ends it)", self.state.now.search)
        await self.push_screen(asking, self._search)

    def _search(self, text: str | None) -> None:
        if text is not None:
            self.state.now.look_for(text.strip())
            self._narrow()

    def action_hit(self, by: int) -> None:
        """The next place that has what is searched for, in this item or the next."""
        if not self.state.now.search:
            self.say("nothing is searched for; / asks for a text")
        elif not self._reader("main").next_hit(by):
            self.action_item(by)

    async def action_filter(self) -> None:
        """Ask for a filter; what is in a run of labels must be read first."""
        if self.state.view == "judges" and self.state.now.facts is None:
            self.state.asks = self.state.view
            self.read_facts(self.state.view)
        else:
            await self._ask_filter()

    def _ask_filter(self) -> AwaitMount:
        held = self.state.now
        offered = choices(self.state.browsed, self.state.view, held.facts)
        return self.push_screen(Filtering(held.filter, offered), self._filter)

    def _filter(self, given: Filter | None) -> None:
        if given is not None:
            self.state.now.filter = given
            self._narrow()

    def action_widen(self) -> None:
        """End the search, or else the filter."""
        held = self.state.now
        if held.search:
            held.look_for("")
        else:
            held.filter = Filter()
        self._narrow()

    def _narrow(self) -> None:
        """Show what is as asked, once what must be read for it has been read."""
        self.rebuilt(self.state.view)
        self.read_what_is_needed()

    def rebuilt(self, view: View, *, anew: bool = True) -> None:
        """Show a view whose filter or search can now be answered, ``anew`` or with what is new."""
        if anew:
            self.state.said = self.state.key = ""
        self._outline(view).show_nodes(self.state.rebuild(view))
        self._show()

    def have_facts(self, view: View) -> None:
        """Ask for the filter that waited for them."""
        asks, self.state.asks = self.state.asks, None
        if asks == view == self.state.view:
            self._ask_filter()

    def have_news(self) -> None:
        """Show the run as it is now."""
        for view in self.state.views:
            self._outline(view).show_nodes(self.state.rebuild(view))
        self._show()

    # Keeping

    def action_mark(self) -> None:
        """Mark the item, or take its mark away."""
        item = self.state.current()
        if item:
            notes = self.state.browsed.notes
            on = not notes.of(item).marked
            self._keep(lambda: notes.mark(item, on), "marked" if on else "mark taken away")

    async def action_note(self) -> None:
        """Write a note on the item, or change one's own."""
        item, notes = self.state.current(), self.state.browsed.notes
        if not item:
            return
        own = notes.own(item)

        def write(text: str | None) -> None:
            if text is not None and (text.strip() or own):
                self._keep(lambda: notes.write(item, text, own.id if own else ""), "noted")

        title = f"Note on {safe_text(item, lines=False)}"
        await self.push_screen(Asking(title, own.text if own else ""), write)

    def _keep(self, change: Callable[[], object], done: str) -> None:
        try:
            change()
            self.state.said = done
        except HabitusError as error:
            self.state.said = str(error)
        self._tree.redraw()
        self._show()

    def action_copy(self) -> None:
        """Copy the item as plain text, through the terminal."""
        text = plain_text(self.state.alone())
        self.copy_to_clipboard(text)
        self.say(f"copied {len(text):,} characters, if the terminal allows it (OSC 52)")

    async def action_export(self) -> None:
        """Ask for a form, and write the item into the working directory."""
        if self.state.current():
            await self.push_screen(Exporting(), self._export)

    def _export(self, form: str | None) -> None:
        item, state = self.state.current(), self.state
        try:
            if form == "json":
                path = save(json_text(state.browsed.records(item)), item, "json", self._folder)
            elif form == "markdown":
                path = save(markdown(state.alone()), item, "markdown", self._folder)
            else:
                return
        except HabitusError as error:
            self.say(str(error))
        else:
            self.say(f"wrote {path}")
