"""What takes longer than a key press: reading all bodies for a filter or a search, and news of the run.

Each is done in a thread, one of a kind at a time, and its result is given to the viewer in its own. On a
run that is going on, news do not stop what is being read (it might never be done then): its result is
shown, and it is read once more.
"""

from __future__ import annotations

from typing import Any

from textual import work
from textual.worker import Worker, get_current_worker

from habitus.browsing import Facts, View
from habitus.errors import HabitusError
from habitus.tui.inturn import InTurn
from habitus.tui.state import State


class Background(InTurn):
    """The part of the viewer that works in threads."""

    state: State

    def say(self, text: str) -> None:
        """Show a line of text."""
        raise NotImplementedError

    def rebuilt(self, view: View, *, anew: bool = True) -> None:
        """Show a view whose filter or search can now be answered, ``anew`` or with what is new."""
        raise NotImplementedError

    def have_facts(self, view: View) -> None:
        """Verdicts or labels have been read."""
        raise NotImplementedError

    def have_news(self) -> None:
        """Show the run as it is now."""
        raise NotImplementedError

    def read_what_is_needed(self) -> None:
        """Read what the filter and the search of the view need and do not have."""
        view, held, news = self.state.view, self.state.now, self.state.news
        if held.needs_found(news) and self._begins("search", (view, held.search)):
            self._read_search(view, held.search, news)
        if held.needs_facts(view, news) and self._begins("facts", (view,)):
            self._read_facts(view, news)

    def read_facts(self, view: View) -> None:
        """Read all verdicts or labels, unless that is being done."""
        if self._begins("facts", (view,)):
            self._read_facts(view, self.state.news)

    def read_news(self) -> None:
        """Look whether the run has changed, unless that is being done."""
        if self._begins("news", ()):
            self._read_news()

    def _begins(self, kind: str, what: tuple[str, ...]) -> bool:
        """Whether something is to be read that is not being read already."""
        begins = self.state.reading.get(kind) != what
        self.state.reading[kind] = what
        return begins

    @work(thread=True, exclusive=True, group="search")
    def _read_search(self, view: View, text: str, news: int) -> None:
        """Find the items that have a text."""
        worker = get_current_worker()
        if self.state.views[view].found is None:
            self._tell(worker, self.say, "searching")
        try:
            found = self.state.browsed.search(view, text)
        except HabitusError as error:
            self._tell(worker, self._failed, "search", str(error))
        else:
            self._tell(worker, self._have_found, view, text, found, news)

    @work(thread=True, exclusive=True, group="facts")
    def _read_facts(self, view: View, news: int) -> None:
        """Read all verdicts or labels."""
        worker = get_current_worker()
        first = self.state.views[view].facts is None

        def tell(share: float) -> None:
            if first:
                self._tell(worker, self.say, f"reading what was judged: {share:.0%}")

        try:
            facts = self.state.browsed.facts(view, tell)
        except HabitusError as error:
            self._tell(worker, self._failed, "facts", str(error))
        else:
            self._tell(worker, self._have_facts, view, facts, news)

    @work(thread=True, exclusive=True, group="news")
    def _read_news(self) -> None:
        """Look whether the run has changed."""
        worker = get_current_worker()
        try:
            news = self.state.browsed.refresh()
        except HabitusError as error:
            self._tell(worker, self._failed, "news", str(error))
        else:
            self._tell(worker, self._have_news, news)

    def _failed(self, kind: str, why: str) -> None:
        self.state.reading.pop(kind, None)
        self.say(why)

    def _have_found(self, view: View, text: str, found: frozenset[str], news: int) -> None:
        self.state.reading.pop("search", None)
        held = self.state.views[view]
        if held.search == text:
            anew = held.found is None
            held.found, held.found_at = found, news
            self.rebuilt(view, anew=anew)
        self.read_what_is_needed()

    def _have_facts(self, view: View, facts: Facts, news: int) -> None:
        self.state.reading.pop("facts", None)
        held = self.state.views[view]
        anew = held.facts is None
        held.facts, held.facts_at = facts, news
        self.rebuilt(view, anew=anew)
        self.have_facts(view)
        self.read_what_is_needed()

    def _have_news(self, news: bool) -> None:
        self.state.reading.pop("news", None)
        if news:
            self.state.news += 1
            self.have_news()
            self.read_what_is_needed()

    def _tell(self, worker: Worker[Any], what: Any, *given: Any) -> None:
        """Give something to the viewer, unless it is not wanted any more or the viewer has gone."""
        if not worker.is_cancelled and self.is_running:
            self.call_from_thread(what, *given)
