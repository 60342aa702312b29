"""What there is to choose from, as a tree: culture > persona > sessions, or > queries, or posts.

A tree is made anew from an index whenever a filter or the run changes; nodes have keys, so that
whoever shows it can find its place again. Leaves name an item of the run.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Literal

from habitus.browsing.facts import Facts
from habitus.browsing.filters import Filter
from habitus.browsing.index import SHARED, AttemptKey, Group, LabelIndex, StudyIndex, response_key
from habitus.records import Outcome

View = Literal["transcripts", "responses", "judges"]


@dataclass(frozen=True, slots=True)
class Node:
    """A line of the tree. ``items`` are the ids that a mark on it is looked up by."""

    key: str
    label: str
    children: tuple[Node, ...] = ()
    items: tuple[str, ...] = ()

    @property
    def leaves(self) -> int:
        """How many items lie under it, itself included if it is one."""
        return sum(child.leaves for child in self.children) if self.children else 1


@dataclass(frozen=True, slots=True)
class Wanted:
    """What is asked of items: a filter, what is marked, and keys that a search has found.

    ``found`` is None where nothing is searched for; ``facts`` is None as long as they are not read.
    """

    filter: Filter = field(default_factory=Filter)
    facts: Facts | None = None
    marked: Collection[str] = ()
    found: Collection[str] | None = None

    def finds(self, key: str) -> bool:
        """Whether the search has it."""
        return self.found is None or key in self.found

    def wants_member(self, group: str, name: str, failed: Mapping[str, Outcome]) -> bool:
        """Whether one answer of a group is as asked, by what was said of it or how it ended."""
        asked, key = self.filter, response_key(name)
        if key is not None and not asked.wants_answer(key.target, key.setting):
            return False
        facts = self.facts.by_group.get(group, ()) if self.facts else ()
        mine = [fact for fact in facts if fact.member == name]
        if any(asked.wants(fact, self.facts) for fact in mine if self.facts):
            return True
        if asked.of_verdicts or (key is None and asked.target not in {"", name.rpartition("/")[2]}):
            return False
        return asked.outcome in {"", str(failed.get(name, Outcome.OK))}


def session_tree(index: StudyIndex, wanted: Wanted | None = None) -> tuple[Node, ...]:
    """Cultures, their personas, and the attempts at the sessions of each."""
    wanted = wanted or Wanted()
    return _under(
        (
            (culture, persona, _session_nodes(index, persona, wanted))
            for culture, personas in index.cultures.items()
            if wanted.filter.culture in {"", culture}
            for persona in personas
        ),
        names={name: f"{name} {p.name}" for name, p in index.materials.personas.items()},
        keep_empty=not _narrows_sessions(wanted),
    )


def _narrows_sessions(wanted: Wanted) -> bool:
    asked = wanted.filter
    return bool(asked.session or asked.outcome or asked.marked or wanted.found is not None)


def _session_nodes(index: StudyIndex, persona: str, wanted: Wanted) -> tuple[Node, ...]:
    nodes = []
    for number, attempts in index.sessions.get(persona, {}).items():
        for key in attempts:
            decided = attempt_word(index, key)
            outcome = index.failed.get(key.id, Outcome.OK)
            if (
                wanted.filter.session in {"", decided}
                and wanted.filter.outcome in {"", str(outcome)}
                and wanted.filter.wants_marked((key.id,), wanted.marked)
                and wanted.finds(key.id)
            ):
                nodes.append(Node(key.id, _session_label(number, key, decided), (), (key.id,)))
    return tuple(nodes)


def attempt_word(index: StudyIndex, key: AttemptKey) -> str:
    """What became of an attempt: ``undecided`` as long as the persona has no history."""
    history = index.histories.get(key.persona)
    if history is None:
        return "undecided"
    for ref in history.sessions:
        if ref.attempt == key.id:
            return "flagged" if ref.flagged else "accepted"
    return "rejected"


def _session_label(number: int, key: AttemptKey, decided: str) -> str:
    name = f"s{number:02d}"
    if key.attempt:
        name += f" try {key.attempt + 1}"
    return name if decided == "accepted" else f"{name} {decided}"


def question_tree(index: StudyIndex, wanted: Wanted | None = None) -> tuple[Node, ...]:
    """Cultures, their personas, and the queries that were asked for each."""
    wanted = wanted or Wanted()
    kept = index.materials
    names = {name: f"{name} {p.name}" for name, p in kept.personas.items()}
    rows = (
        (*_two(group.above), (_question_node(index, group),))
        for group in index.groups.values()
        if wanted.filter.culture in {"", group.above[0]}
        and wanted.filter.topic in {"", topic_of(index, group)}
        and _wants_group(group, _keys(index, group), index.failed, wanted)
    )
    return _under(rows, names)


def topic_of(index: StudyIndex, group: Group) -> str:
    """The topic of a group's query."""
    query = index.materials.queries.get(group.label)
    return query.topic if query else ""


def _question_node(index: StudyIndex, group: Group) -> Node:
    failed = sum(name in index.failed for name in group.members)
    label = f"{group.label} {topic_of(index, group)}".rstrip()
    label += f" ({failed} failed)" if failed else ""
    return Node(group.key, label, (), (group.key, *group.members))


def label_tree(index: LabelIndex, wanted: Wanted | None = None) -> tuple[Node, ...]:
    """What was judged: by culture, persona and query, or post by post."""
    wanted = wanted or Wanted()
    topics = wanted.facts.topics if wanted.facts else {}
    rows = (
        (*_two(group.above), (Node(group.key, group.label, (), (group.key, *group.members)),))
        for group in index.groups.values()
        if _wants_topic(group, topics, wanted.filter)
        and _wants_group(group, _no_keys(group), index.failed, wanted, named=False)
    )
    return _under(rows, {SHARED: "no persona"})


def _wants_topic(group: Group, topics: Mapping[str, tuple[str, str]], asked: Filter) -> bool:
    if not asked.culture and not asked.topic:
        return True
    culture, topic = topics.get(group.key, (group.above[0], ""))
    return asked.culture in {"", culture} and asked.topic in {"", topic}


def _two(above: tuple[str, ...]) -> tuple[str, str]:
    return (above[0], above[1] if len(above) > 1 else "")


def _keys(index: StudyIndex, group: Group) -> list[tuple[str, str, str]]:
    """Id, target and setting of the responses of a group."""
    found = (index.responses[name] for name in group.members)
    return [(key.id, key.target, key.setting) for key in found]


def _no_keys(group: Group) -> list[tuple[str, str, str]]:
    return [(name, "", "") for name in group.members]


def _wants_group(
    group: Group,
    members: Iterable[tuple[str, str, str]],
    failed: Mapping[str, Outcome],
    wanted: Wanted,
    named: bool = True,
) -> bool:
    """Whether a group is wanted; ``named``: its members have their targets and settings."""
    asked = wanted.filter
    if not wanted.finds(group.key):
        return False
    if not asked.wants_marked((group.key, *group.members), wanted.marked):
        return False
    facts = wanted.facts.by_group.get(group.key, ()) if wanted.facts else ()
    if any(asked.wants(fact, wanted.facts) for fact in facts if wanted.facts):
        return True
    if asked.of_verdicts or (not named and (asked.target or asked.setting)):
        return False
    return any(
        asked.wants_answer(target or asked.target, setting or asked.setting)
        and asked.outcome in {"", str(failed.get(name, Outcome.OK))}
        for name, target, setting in members
    )


def _under(
    rows: Iterable[tuple[str, str, tuple[Node, ...]]],
    names: Mapping[str, str],
    keep_empty: bool = False,
) -> tuple[Node, ...]:
    """Two levels above the nodes; an empty name of the second level leaves it out."""
    tree: dict[str, dict[str, list[Node]]] = {}
    for first, second, nodes in rows:
        if nodes or keep_empty:
            tree.setdefault(first, {}).setdefault(second, []).extend(nodes)
    return tuple(_first_node(first, seconds, names) for first, seconds in tree.items())


def _first_node(first: str, seconds: Mapping[str, list[Node]], names: Mapping[str, str]) -> Node:
    children: list[Node] = []
    for second, nodes in seconds.items():
        if second:
            name = names.get(second, second)
            children.append(Node(second, f"{name} ({len(nodes)})", tuple(nodes)))
        else:
            children += nodes
    return Node(first, f"{first} ({len(children)})", tuple(children))


def leaves(nodes: Iterable[Node]) -> list[Node]:
    """All items of a tree, in order."""
    found: list[Node] = []
    for node in nodes:
        found += leaves(node.children) if node.children else [node]
    return found
