"""What takes longer than a key press: reading all bodies for a filter or a search, and news of the run.

Each is done in a thread, one of a kind at a time, and its result is given to the viewer in its own.
"""

from __future__ import annotations

from typing import Any

from textual import work
from textual.app import App
from textual.worker import Worker, get_current_worker

from habitus.browsing import Facts, View
from habitus.errors import HabitusError
from habitus.tui.state import State


class Background(App[None]):
    """The part of the viewer that works in threads."""

    state: State

    def say(self, text: str) -> None:
        """Show a line of text."""
        raise NotImplementedError

    def rebuilt(self, view: View) -> None:
        """Show a view whose filter or search can now be answered."""
        raise NotImplementedError

    def have_facts(self, view: View, facts: Facts, ask: bool) -> None:
        """Take what was read; ``ask`` for a filter then."""
        raise NotImplementedError

    def have_news(self) -> None:
        """Show the run as it is now."""
        raise NotImplementedError

    def read_what_is_needed(self) -> None:
        """Read what the filter and the search of the view need and do not have."""
        view, held = self.state.view, self.state.now
        if held.search and held.found is None:
            self.read_search(view, held.search)
        if held.needs_facts(view):
            self.read_facts(view)

    @work(thread=True, exclusive=True, group="search")
    def read_search(self, view: View, text: str) -> None:
        """Find the items that have a text."""
        worker = get_current_worker()
        self._tell(worker, self.say, "searching")
        try:
            found = self.state.browsed.search(view, text)
        except HabitusError as error:
            self._tell(worker, self.say, str(error))
        else:
            self._tell(worker, self._have_found, view, text, found)

    @work(thread=True, exclusive=True, group="facts")
    def read_facts(self, view: View, ask: bool = False) -> None:
        """Read all verdicts or labels."""
        worker = get_current_worker()

        def tell(share: float) -> None:
            self._tell(worker, self.say, f"reading what was judged: {share:.0%}")

        try:
            facts = self.state.browsed.facts(view, tell)
        except HabitusError as error:
            self._tell(worker, self.say, str(error))
        else:
            self._tell(worker, self.have_facts, view, facts, ask)

    @work(thread=True, exclusive=True, group="news")
    def read_news(self) -> None:
        """Look whether the run has changed."""
        worker = get_current_worker()
        try:
            news = self.state.browsed.refresh()
        except HabitusError as error:
            self._tell(worker, self.say, str(error))
        else:
            if news:
                self._tell(worker, self.have_news)

    def _have_found(self, view: View, text: str, found: frozenset[str]) -> None:
        held = self.state.views[view]
        if held.search == text:
            held.found = found
            self.rebuilt(view)

    def _tell(self, worker: Worker[Any], what: Any, *given: Any) -> None:
        """Give something to the viewer, unless it is not wanted any more or the viewer has gone."""
        if not worker.is_cancelled and self.is_running:
            self.call_from_thread(what, *given)
