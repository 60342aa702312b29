"""What is chosen in the viewer, and what is shown for it, apart from the widgets that show it."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

from habitus.browsing import (
    Browsed,
    Document,
    Facts,
    Filter,
    Node,
    Page,
    View,
    Wanted,
    attempt_key,
    comparison_page,
    label_tree,
    leaves,
    message_page,
    question_tree,
    session_tree,
)
from habitus.errors import HabitusError

Pane = Literal["tree", "main", "side"]
TITLES: dict[View, str] = {
    "transcripts": "Transcripts",
    "responses": "Responses",
    "judges": "Judges",
}


@dataclass
class ViewState:
    """One view: its filter, what is searched for and found, and where the reader is.

    ``facts_at`` and ``found_at`` say after how many news of the run ``facts`` and ``found`` were read;
    they serve until they have been read again.
    """

    filter: Filter = field(default_factory=Filter)
    search: str = ""
    facts: Facts | None = None
    facts_at: int = -1
    found: frozenset[str] | None = None
    found_at: int = -1
    column: str = ""
    nodes: tuple[Node, ...] = ()
    leaves: list[Node] = field(default_factory=list)

    @property
    def narrowed(self) -> bool:
        """Whether not all is shown."""
        return bool(self.filter.as_pairs() or self.search)

    def look_for(self, text: str) -> None:
        """Search for a text; none ends the search."""
        self.search, self.found, self.found_at = text, None, -1

    def needs_found(self, news: int) -> bool:
        """Whether bodies must be read to answer the search."""
        return bool(self.search) and self.found_at < news

    def needs_facts(self, view: View, news: int) -> bool:
        """Whether bodies must be read to answer the filter."""
        if view == "transcripts" or self.facts_at >= news:
            return False
        asked = self.filter
        if asked.of_verdicts or asked.outcome:
            return True
        beyond_ids = (asked.culture, asked.topic, asked.setting, asked.target)
        return view == "judges" and any(beyond_ids)

    def says(self, total: int) -> str:
        """The filter and the search in words, with how many they leave."""
        parts = [f"{name}={value}" for name, value in self.filter.as_pairs()]
        parts += [f'"{self.search}"'] if self.search else []
        return f"{', '.join(parts)}: {len(self.leaves):,} of {total:,}" if parts else ""


@dataclass
class State:
    """The whole viewer.

    ``key`` is what the cursor of the tree is on, ``news`` how often the run has changed, ``reading``
    what is being read, and ``asks`` the view whose filter is asked for once that is done.
    """

    browsed: Browsed
    view: View
    pane: Pane = "tree"
    key: str = ""
    zoomed: bool = False
    unfolded: bool = False
    said: str = ""
    news: int = 0
    reading: dict[str, tuple[str, ...]] = field(default_factory=dict)
    asks: View | None = None
    views: dict[View, ViewState] = field(default_factory=dict)

    @property
    def now(self) -> ViewState:
        """The view that is shown."""
        return self.views[self.view]

    def rebuild(self, view: View) -> tuple[Node, ...]:
        """Make the tree of a view anew from index, filter and search."""
        held = self.views[view]
        held.nodes = self._tree(view, self._wanted(held))
        held.leaves = leaves(held.nodes)
        return held.nodes

    def go_to(self, key: str) -> None:
        """The cursor is on another item: of its answers, one that is as asked comes first."""
        if key == self.key:
            return
        self.key = key
        index = self.browsed.labels if self.view == "judges" else self.browsed.study
        names, wanted = self._names(), self._wanted(self.now)
        if not names or index is None or not self.now.filter.as_pairs():
            return
        fitting = [name for name in names if wanted.wants_member(key, name, index.failed)]
        if fitting and names[like(self.now.column, names)] not in fitting:
            self.now.column = fitting[0]

    def total(self, view: View) -> int:
        """How many items a view has, filtered or not."""
        study, labels = self.browsed.study, self.browsed.labels
        if view == "judges":
            return len(labels.groups) if labels else 0
        if study is None:
            return 0
        if view == "responses":
            return len(study.groups)
        return sum(len(keys) for s in study.sessions.values() for keys in s.values())

    def page(self, width: int) -> Page:
        """What is shown for what the cursor is on; a fault of the run is shown as its message."""
        if not self.key:
            return message_page("Nothing is as asked." if self.now.narrowed else "Nothing yet.")
        try:
            if self.view == "transcripts":
                if attempt_key(self.key):
                    return self.browsed.session(self.key)
                return self.browsed.person(self.key)
            return self._comparison(width)
        except HabitusError as error:
            return message_page(str(error))

    def current(self) -> str:
        """The id of what keys act on: the answer in its column, or what the cursor is on."""
        names = self._names()
        return names[like(self.now.column, names)] if names else self.key

    def turn(self, by: int) -> None:
        """To the next answer of a comparison."""
        names = self._names()
        if names:
            self.now.column = names[(like(self.now.column, names) + by) % len(names)]

    def alone(self) -> Page:
        """The current item by itself."""
        page = self.page(0)
        if page.comparison is None:
            return Page(page.main)
        at = page.comparison.at(self.current())
        return Page(comparison_page(page.comparison, at, None, self.browsed.notes))

    def status(self) -> str:
        """What there is to say: what was just done, else the filter, else the item."""
        return self.said or self.now.says(self.total(self.view)) or self.current()

    def top(self) -> str:
        """The views, the run, and how far it is."""
        index = self.browsed.index
        tabs = [
            f"[{n} {TITLES[view]}]" if view == self.view else f" {n} {TITLES[view]} "
            for n, view in enumerate(TITLES, start=1)
            if view in self.browsed.views
        ]
        parts = [" ".join(tabs), index.name]
        parts += ["SYNTHETIC"] if index.made_up else []
        left = [stage for stage in index.progress if stage.done < stage.expected]
        going = ", ".join(f"{stage.stage} {stage.done:,}/{stage.expected:,}" for stage in left)
        return "  ".join([*parts, f"so far: {going}"] if left else parts)

    def _comparison(self, width: int) -> Page:
        browsed = self.browsed
        if not self._names():  # a branch: nothing to compare
            known = self.view == "responses" and browsed.study is not None
            return browsed.person(self.key) if known else message_page(self.key)
        found = browsed.compare(self.view, self.key)
        at = like(self.now.column, [column.id for column in found.columns])
        main: Document = comparison_page(found, at, width, browsed.notes)
        return Page(main, browsed.side(found), found)

    def _wanted(self, held: ViewState) -> Wanted:
        return Wanted(held.filter, held.facts, self.browsed.notes.items(), held.found)

    def _names(self) -> tuple[str, ...]:
        """The ids of the answers of the group that the cursor is on."""
        index = self.browsed.labels if self.view == "judges" else self.browsed.study
        if self.view == "transcripts" or index is None or self.key not in index.groups:
            return ()
        return index.groups[self.key].members

    def _tree(self, view: View, wanted: Wanted) -> tuple[Node, ...]:
        study, labels = self.browsed.study, self.browsed.labels
        if view == "judges" and labels is not None:
            return label_tree(labels, wanted)
        if view == "responses" and study is not None:
            return question_tree(study, wanted)
        return session_tree(study, wanted) if study is not None else ()


def like(wanted: str, names: tuple[str, ...] | list[str]) -> int:
    """The place of the answer with the target, setting and repeat of another one; else the first."""
    if wanted in names:
        return list(names).index(wanted)
    kind = _kind(wanted)
    return next((n for n, name in enumerate(names) if _kind(name) == kind), 0)


def _kind(name: str) -> tuple[str, ...]:
    """Target, setting and repeat of a response; the target of an answer to a post."""
    parts = name.split("/")
    return (parts[0], parts[1], parts[4]) if len(parts) == 5 else (parts[-1],)
