"""The application: it carries keys to the state, and the state to the widgets."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import ClassVar

from rich.text import Text
from textual import work
from textual.app import App, ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Horizontal
from textual.widgets import Static, Tree
from textual.worker import get_current_worker

from habitus.browsing import (
    Browsed,
    Document,
    Facts,
    Filter,
    Node,
    Page,
    View,
    attempt_key,
    comparison_page,
    json_text,
    markdown,
    plain_text,
    save,
)
from habitus.browsing.choices import choices
from habitus.browsing.document import Paragraph
from habitus.content.visible import safe_text
from habitus.errors import HabitusError
from habitus.tui.dialogs import Asking, Exporting, Filtering, Helping
from habitus.tui.outline import Outline
from habitus.tui.reader import Reader
from habitus.tui.state import TITLES, Pane, State, ViewState

_WIDE = 120  # columns from which tree, page and persona stand beside each other
_WIDE_ANSWERS = 230  # the same where the page has columns itself
_VAST = 180  # columns from which the persona has more room
_POLL = 2.0  # seconds between two looks at a run that may be going on
_KEYS = (
    ("?", "help"), ("tab", "pane"), ("/", "search"), ("f", "filter"), ("m", "mark"), ("a", "note"),
    ("y", "copy"), ("e", "export"), ("q", "quit"), ("[ ]", "item"), ("o", "fold"), ("z", "zoom"),
    ("1 2 3", "view"), ("r", "refresh"),
)  # fmt: skip


class Viewer(App[None]):
    """The viewer of a run.

    Args:
        browsed: the run.
        item: the id to begin at.
        given: the filter to begin with.
        folder: where exported items are written.
        poll: look for what is new every two seconds.
    """

    CSS_PATH = "viewer.tcss"
    ENABLE_COMMAND_PALETTE = False
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("q", "quit", show=False),
        Binding("question_mark", "help", show=False),
        Binding("1", "view('transcripts')", show=False),
        Binding("2", "view('responses')", show=False),
        Binding("3", "view('judges')", show=False),
        Binding("tab", "pane(1)", show=False, priority=True),
        Binding("shift+tab", "pane(-1)", show=False, priority=True),
        Binding("right_square_bracket", "item(1)", show=False),
        Binding("left_square_bracket", "item(-1)", show=False),
        Binding("l,right", "column(1)", show=False),
        Binding("h,left", "column(-1)", show=False),
        Binding("o", "fold", show=False),
        Binding("z", "zoom", show=False),
        Binding("slash", "search", show=False),
        Binding("n", "hit(1)", show=False),
        Binding("N", "hit(-1)", show=False),
        Binding("f", "filter", show=False),
        Binding("escape", "widen", show=False),
        Binding("m", "mark", show=False),
        Binding("a", "note", show=False),
        Binding("y", "copy", show=False),
        Binding("e", "export", show=False),
        Binding("r", "refresh", show=False),
    ]

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
        first, self._item, column = browsed.find(item) if item else (browsed.views[0], "", "")
        self.state = State(browsed, first)
        self.state.views = {view: ViewState(column=column) for view in browsed.views}
        if given is not None:
            self.state.now.filter = given
        self._folder = folder or Path.cwd()
        self._poll = poll
        self._zoomed = False
        self._said = ""

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

    def on_mount(self) -> None:
        """Show the first view."""
        for view in self.state.browsed.views:
            self.state.rebuild(view)
            self._outline(view).show_nodes(self.state.views[view].nodes)
        if self._item:
            self._outline(self.state.view).go_to(self._item)
        self._arrange()
        self._ask_for_what_is_needed()
        if self._poll:
            self.set_interval(_POLL, self._look_for_news)

    # What is shown

    def on_tree_node_highlighted(self, event: Tree.NodeHighlighted[Node]) -> None:
        """Show the item that the cursor is on, once no further key is waiting."""
        self.call_later(self._show)

    def on_tree_node_selected(self, event: Tree.NodeSelected[Node]) -> None:
        """Open a branch, or go and read."""
        if event.node.allow_expand:
            event.node.toggle()
        else:
            self._focus("main")

    def on_resize(self) -> None:
        """Arrange the panes for another width."""
        self.call_after_refresh(self._arrange)

    def _outline(self, view: View) -> Outline:
        return self.query_one(f"#{view}", Outline)

    def _reader(self, name: str) -> Reader:
        return self.query_one(f"#{name}", Reader)

    @property
    def _tree(self) -> Outline:
        return self._outline(self.state.view)

    @property
    def _is_wide(self) -> bool:
        least = _WIDE if self.state.view == "transcripts" else _WIDE_ANSWERS
        return self.size.width >= least

    def _arrange(self) -> None:
        """Which panes are on the screen: beside each other, or the one that is used."""
        pane, wide = self.state.pane, self._is_wide
        self.screen.set_class(self.size.width < _WIDE, "narrow")
        self.screen.set_class(not wide, "alone")
        self.screen.set_class(self.size.width >= _VAST, "vast")
        for view in self.state.browsed.views:
            self._outline(view).display = view == self.state.view and not self._zoomed
        self._reader("side").display = pane == "side" or (wide and not self._zoomed)
        self._reader("main").display = pane != "side" or (wide and not self._zoomed)
        self._focused().focus()
        self.call_after_refresh(self._show)

    def _focused(self) -> Outline | Reader:
        return self._tree if self.state.pane == "tree" else self._reader(self.state.pane)

    def _focus(self, pane: Pane) -> None:
        self.state.pane = pane
        self._arrange()

    def _show(self) -> None:
        """Bring the pages up to what the cursor is on."""
        if not self.is_running:
            return
        page = self._page()
        unfolded = page.main.folds if self.state.unfolded else frozenset()
        needle = self.state.now.search
        self._reader("main").show(page.main, needle=needle, unfolded=unfolded)
        self._reader("side").show(page.side or Document("", ()), needle=needle)
        self._show_lines()

    def _page(self) -> Page:
        key, view = self._tree.cursor_key, self.state.view
        if not key:
            return _message("Nothing is as asked." if self.state.now.narrowed else "Nothing yet.")
        try:
            if view == "transcripts":
                browsed = self.state.browsed
                return browsed.session(key) if attempt_key(key) else browsed.person(key)
            return self._comparison(view, key)
        except HabitusError as error:
            return _message(str(error))

    def _comparison(self, view: View, key: str) -> Page:
        browsed, held = self.state.browsed, self.state.now
        index = browsed.labels if view == "judges" else browsed.study
        if index is None or key not in index.groups:  # a branch: nothing to compare
            known = view == "responses" and browsed.study is not None
            return browsed.person(key) if known else _message(key)
        found = browsed.compare(view, key)
        at = _like(held.column, [column.id for column in found.columns])
        main = comparison_page(found, at, self._reader("main").inner_width, browsed.notes)
        return Page(main, browsed.side(found), found)

    def _show_lines(self) -> None:
        self.query_one("#top", Static).update(Text(self._top(), no_wrap=True, overflow="ellipsis"))
        said = self._said or self.state.now.says(self.state.total(self.state.view))
        said = said or self._current()
        self.query_one("#status", Static).update(_line(said))
        self.query_one("#keys", Static).update(_keys(self.size.width))

    def _top(self) -> str:
        index = self.state.browsed.index
        tabs = [
            f"[{n} {TITLES[view]}]" if view == self.state.view else f" {n} {TITLES[view]} "
            for n, view in enumerate(TITLES, start=1)
            if view in self.state.browsed.views
        ]
        parts = [" ".join(tabs), safe_text(index.name, lines=False)]
        parts += ["SYNTHETIC"] if index.made_up else []
        parts += [_progress(self.state)] if index.going_on else []
        return "  ".join(parts)

    def _say(self, text: str) -> None:
        self._said = text
        self._show_lines()

    def _is_marked(self, node: Node) -> bool:
        known = self.state.browsed.notes.items()
        return any(item in known for item in node.items)

    @property
    def fault(self) -> Exception | None:
        """What ended the viewer, if it was not the person at the keyboard."""
        return self._exception

    def _fatal_error(self) -> None:
        """Only leave: whoever started the viewer tells of its fault, without texts of the run."""
        self._close_messages_no_wait()

    # Keys

    def action_help(self) -> None:
        """All keys."""
        self.push_screen(Helping())

    def action_view(self, view: View) -> None:
        """Another view."""
        if view not in self.state.browsed.views:
            hint = "; give a run of labels with --labels" if view == "judges" else ""
            self._say(f"this run has no {TITLES[view].lower()}{hint}")
            return
        self.state.view, self._said = view, ""
        self.state.pane = "tree" if self.state.pane == "side" else self.state.pane
        self._arrange()

    def action_pane(self, by: int) -> None:
        """The next pane."""
        if len(self.screen_stack) > 1:
            self.screen.focus_next()
            return
        panes: list[Pane] = ["tree", "main"]
        panes += ["side"] if self._reader("side").document.id else []
        at = panes.index(self.state.pane) if self.state.pane in panes else 0
        self._zoomed = False
        self._focus(panes[(at + by) % len(panes)])

    def action_item(self, by: int) -> None:
        """The next item, or the one before."""
        if not self._tree.step(by, self.state.now.leaves):
            self._say("no further item")

    def action_column(self, by: int) -> None:
        """The next answer of a comparison."""
        found = self._page().comparison
        if found is None or not found.columns:
            return
        names = [column.id for column in found.columns]
        at = _like(self.state.now.column, names)
        self.state.now.column = names[(at + by) % len(names)]
        self._show()

    def action_fold(self) -> None:
        """Unfold reasoning, or fold it away."""
        self.state.unfolded = not self.state.unfolded
        self._show()

    def action_zoom(self) -> None:
        """The page alone, or beside the tree again."""
        self._zoomed = not self._zoomed
        self._focus("main" if self.state.pane == "tree" else self.state.pane)

    def action_search(self) -> None:
        """Ask what to search for."""
        self.push_screen(Asking("Search texts (no text ends it)", self.state.now.search), self._search)

    def _search(self, text: str | None) -> None:
        if text is None:
            return
        held = self.state.now
        held.search, held.found = text.strip(), None
        self._narrow()

    def action_hit(self, by: int) -> None:
        """The next place that has what is searched for, in this item or the next."""
        if not self.state.now.search:
            self._say("nothing is searched for; / asks for a text")
        elif not self._reader("main").next_hit(by):
            self.action_item(by)

    def action_filter(self) -> None:
        """Ask for a filter; what is in a run of posts must be read first."""
        if self.state.view == "judges" and self.state.now.facts is None:
            self._read_facts(self.state.view, ask=True)
        else:
            self._ask_filter()

    def _ask_filter(self) -> None:
        held = self.state.now
        offered = choices(self.state.browsed, self.state.view, held.facts)
        self.push_screen(Filtering(held.filter, offered), self._filter)

    def _filter(self, given: Filter | None) -> None:
        if given is not None:
            self.state.now.filter = given
            self._narrow()

    def action_widen(self) -> None:
        """End the search, or else the filter."""
        held = self.state.now
        if held.search:
            held.search, held.found = "", None
        else:
            held.filter = Filter()
        self._narrow()

    def action_mark(self) -> None:
        """Mark the item, or take its mark away."""
        item = self._current()
        if item:
            on = not self.state.browsed.notes.of(item).marked
            self._keep(lambda: self.state.browsed.notes.mark(item, on))
            self._say(f"{'marked' if on else 'no mark any more on'} {item}")

    def action_note(self) -> None:
        """Write a note on the item, or change one's own."""
        item = self._current()
        if not item:
            return
        own = self.state.browsed.notes.own(item)

        def write(text: str | None) -> None:
            if text is not None and (text.strip() or own):
                notes = self.state.browsed.notes
                self._keep(lambda: notes.write(item, text, own.id if own else ""))

        self.push_screen(Asking(f"Note on {safe_text(item, lines=False)}", own.text if own else ""), write)

    def action_copy(self) -> None:
        """Copy the item as plain text, through the terminal."""
        text = plain_text(self._alone())
        self.copy_to_clipboard(text)
        self._say(f"copied {len(text):,} characters; the terminal must allow it (OSC 52)")

    def action_export(self) -> None:
        """Ask for a form, and write the item into the working directory."""
        if self._current():
            self.push_screen(Exporting(), self._export)

    def action_refresh(self) -> None:
        """Look for what is new."""
        self._look_for_news()

    # Work

    def _current(self) -> str:
        """The id of what keys act on: the answer in its column, or what the cursor is on."""
        found = self._page().comparison
        if found is not None and found.columns:
            names = [column.id for column in found.columns]
            return names[_like(self.state.now.column, names)]
        return self._tree.cursor_key

    def _alone(self) -> Page:
        """The current item by itself."""
        page = self._page()
        if page.comparison is None:
            return Page(page.main)
        at = page.comparison.at(self._current())
        notes = self.state.browsed.notes
        return Page(comparison_page(page.comparison, at, None, notes))

    def _keep(self, change: Callable[[], object]) -> None:
        try:
            change()
        except HabitusError as error:
            self._say(str(error))
        self._tree.redraw()
        self._show()

    def _export(self, form: str | None) -> None:
        item = self._current()
        if form is None:
            return
        try:
            if form == "json":
                path = save(json_text(self.state.browsed.records(item)), item, "json", self._folder)
            else:
                path = save(markdown(self._alone()), item, "markdown", self._folder)
        except HabitusError as error:
            self._say(str(error))
        else:
            self._say(f"wrote {path}")

    def _narrow(self) -> None:
        """Show what is as asked, once what must be read for it has been read."""
        self._said = ""
        self.state.rebuild(self.state.view)
        self._tree.show_nodes(self.state.now.nodes)
        self._show()
        self._ask_for_what_is_needed()

    def _ask_for_what_is_needed(self) -> None:
        view, held = self.state.view, self.state.now
        if held.search and held.found is None:
            self._read_search(view, held.search)
        if held.needs_facts(view):
            self._read_facts(view)

    @work(thread=True, exclusive=True, group="search")
    def _read_search(self, view: View, text: str) -> None:
        self.call_from_thread(self._say, "searching")
        try:
            found = self.state.browsed.search(view, text)
        except HabitusError as error:
            self.call_from_thread(self._say, str(error))
            return
        if not get_current_worker().is_cancelled:
            self.call_from_thread(self._have_found, view, text, found)

    def _have_found(self, view: View, text: str, found: frozenset[str]) -> None:
        held = self.state.views[view]
        if held.search == text:
            held.found = found
            self._rebuilt(view)

    @work(thread=True, exclusive=True, group="facts")
    def _read_facts(self, view: View, ask: bool = False) -> None:
        worker = get_current_worker()

        def tell(share: float) -> None:
            if not worker.is_cancelled:
                self.call_from_thread(self._say, f"reading what was judged: {share:.0%}")

        try:
            facts = self.state.browsed.facts(view, tell)
        except HabitusError as error:
            self.call_from_thread(self._say, str(error))
            return
        if not worker.is_cancelled:
            self.call_from_thread(self._have_facts, view, facts, ask)

    def _have_facts(self, view: View, facts: Facts, ask: bool) -> None:
        self.state.views[view].facts = facts
        self._rebuilt(view)
        if ask and view == self.state.view:
            self._ask_filter()

    def _rebuilt(self, view: View) -> None:
        self._said = ""
        self.state.rebuild(view)
        self._outline(view).show_nodes(self.state.views[view].nodes)
        self._show()

    @work(thread=True, exclusive=True, group="news")
    def _look_for_news(self) -> None:
        try:
            news = self.state.browsed.refresh()
        except HabitusError as error:
            self.call_from_thread(self._say, str(error))
            return
        if news:
            self.call_from_thread(self._have_news)

    def _have_news(self) -> None:
        for view, held in self.state.views.items():
            held.facts = held.found = None
            if not held.narrowed:
                self.state.rebuild(view)
                self._outline(view).show_nodes(held.nodes)
        self._show()
        self._ask_for_what_is_needed()


def _like(wanted: str, names: list[str]) -> int:
    """The place of the answer that is the same target, setting and repeat as the one before."""
    if wanted in names:
        return names.index(wanted)
    parts = wanted.split("/")
    for number, name in enumerate(names):
        other = name.split("/")
        same = len(other) == 5 and len(parts) == 5
        if same and (other[:2], other[4]) == (parts[:2], parts[4]):
            return number
        if not same and other[-1] == parts[-1]:
            return number
    return 0


def _message(text: str) -> Page:
    return Page(Document("-", (Paragraph(text, "unknown"),)))


def _line(text: str) -> Text:
    return Text(safe_text(text, lines=False), no_wrap=True, overflow="ellipsis")


def _progress(state: State) -> str:
    left = [stage for stage in state.browsed.index.progress if stage.done < stage.expected]
    return "going on: " + ", ".join(f"{s.stage} {s.done:,}/{s.expected:,}" for s in left)


def _keys(width: int) -> Text:
    """As many keys as there is room for, the most useful first."""
    text, used = Text(no_wrap=True), 0
    for key, what in _KEYS:
        used += len(key) + len(what) + 3
        if used > width:
            break
        text.append(key, "bold")
        text.append(f" {what}  ")
    return text
