"""What is chosen in the viewer, apart from the widgets that show it."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

from habitus.browsing import Browsed, Facts, Filter, Node, View, Wanted
from habitus.browsing import label_tree, leaves, question_tree, session_tree

Pane = Literal["tree", "main", "side"]
TITLES: dict[View, str] = {
    "transcripts": "Transcripts",
    "responses": "Responses",
    "judges": "Judges",
}


@dataclass
class ViewState:
    """One view: its filter, what is searched for and found, and where the reader is.

    ``facts`` and ``found`` are of the index that was there when they were read; a change of the run
    makes them stale, and they are read again if they are still needed.
    """

    filter: Filter = field(default_factory=Filter)
    search: str = ""
    facts: Facts | None = None
    found: frozenset[str] | None = None
    column: str = ""
    nodes: tuple[Node, ...] = ()
    leaves: list[Node] = field(default_factory=list)

    @property
    def narrowed(self) -> bool:
        """Whether not all is shown."""
        return bool(self.filter.as_pairs() or self.search)

    def needs_facts(self, view: View) -> bool:
        """Whether bodies must be read to answer the filter."""
        if view == "transcripts" or self.facts is not None:
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
    """The whole viewer."""

    browsed: Browsed
    view: View
    pane: Pane = "tree"
    unfolded: bool = False
    views: dict[View, ViewState] = field(default_factory=dict)

    @property
    def now(self) -> ViewState:
        """The view that is shown."""
        return self.views[self.view]

    def rebuild(self, view: View) -> None:
        """Make the tree of a view anew from index, filter and search."""
        held = self.views[view]
        wanted = Wanted(held.filter, held.facts, self.browsed.notes.items(), held.found)
        held.nodes = self._tree(view, wanted)
        held.leaves = leaves(held.nodes)

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

    def _tree(self, view: View, wanted: Wanted) -> tuple[Node, ...]:
        study, labels = self.browsed.study, self.browsed.labels
        if view == "judges" and labels is not None:
            return label_tree(labels, wanted)
        if view == "responses" and study is not None:
            return question_tree(study, wanted)
        return session_tree(study, wanted) if study is not None else ()
