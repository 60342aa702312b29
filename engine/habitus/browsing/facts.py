"""What the verdicts and labels of a run say, one fact for each, so that items can be found by them.

Facts are read from the bodies of records, all of them, once and in the background: those of a whole
benchmark take well under a second. A fact knows where it belongs (group, member), what it is about
(a norm, or a judge) and what was said; a verdict that could not be read says nothing, and agrees or
disagrees with nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from habitus.browsing.index import SHARED, LabelIndex, StudyIndex, response_key
from habitus.store import RunDir
from habitus.store.canonical import loads

Tell = Callable[[float], None]
_STATES = {1: "follow", -1: "avoid"}
_TELL_EVERY = 500


class Fact(NamedTuple):
    """One verdict or label. ``said`` is None where nothing could be read."""

    group: str
    member: str
    target: str
    setting: str
    repeat: str
    about: str
    state: str
    said: str | None
    outcome: str


@dataclass(frozen=True, slots=True)
class Facts:
    """The facts of each group, and which of them disagree.

    ``targets`` are those on which two targets differ, all else equal; ``evaluators`` those on which
    this run and the one beside it differ over the same text.
    """

    by_group: Mapping[str, tuple[Fact, ...]] = field(default_factory=dict)
    topics: Mapping[str, tuple[str, str]] = field(default_factory=dict)
    targets: frozenset[tuple[str, ...]] = frozenset()
    evaluators: frozenset[tuple[str, str, str]] = frozenset()
    beside: Mapping[tuple[str, str, str], str] = field(default_factory=dict)


def contested(fact: Fact) -> tuple[str, ...]:
    """What two targets can differ on."""
    return (fact.group, fact.setting, fact.repeat, fact.about)


def judged(fact: Fact) -> tuple[str, str, str]:
    """What two evaluators can differ on."""
    return (fact.group, fact.member, fact.about)


def study_facts(run: RunDir, tell: Tell, total: int) -> Iterator[Fact]:
    """The verdicts of a CCBench run."""
    for number, line in enumerate(run.records.lines("evaluations")):
        if number % _TELL_EVERY == 0:
            tell(number / max(1, total))
        row = loads(line)
        group = f"{row['persona']}/{row['query']}"
        where = (group, row["response"], row["target"], row["setting"], str(row["repeat"]))
        for verdict in row["verdicts"]:
            yield Fact(
                *where,
                verdict["norm"],
                _STATES.get(verdict["state"], ""),
                _said(verdict["satisfied"]),
                verdict["outcome"],
            )


def label_facts(
    run: RunDir, groups: Mapping[str, str], items: Mapping[str, Mapping[str, Any]], tell: Tell
) -> Iterator[Fact]:
    """The labels of a run of labels; ``groups`` says where each item belongs."""
    total = max(1, len(items))
    for number, line in enumerate(run.records.lines("labels")):
        if number % _TELL_EVERY == 0:
            tell(min(1.0, number / total / 15))
        row = loads(line)
        item = items.get(row["item"], {})
        judge = f"{row['judge']}.{row['variant']}" if row["variant"] else row["judge"]
        yield Fact(
            groups.get(row["item"], ""),
            row["item"],
            item.get("target", ""),
            item.get("fields", {}).get("setting", ""),
            item.get("fields", {}).get("repeat", "0"),
            judge,
            "",
            row["label"],
            row["outcome"],
        )


def gather_study(run: RunDir, index: StudyIndex, tell: Tell, beside: RunDir | None) -> Facts:
    """All facts of a CCBench run, compared with those of another run over the same responses."""
    found = _grouped(study_facts(run, tell, len(index.responses)))
    other: dict[tuple[str, str, str], str] = {}
    if beside is not None:
        same = _same_texts(run, beside, "responses", "text")
        given = study_facts(beside, tell, len(index.responses))
        other = {judged(f): f.said for f in given if f.said is not None and f.member in same}
    return _compared(found, {}, other)


def gather_labels(run: RunDir, index: LabelIndex, tell: Tell, beside: RunDir | None) -> Facts:
    """All facts of a run of labels, compared with those of another run over the same items."""
    groups = {name: group.key for group in index.groups.values() for name in group.members}
    items = {row["id"]: row for row in _items(run)}
    found = _grouped(label_facts(run, groups, items, tell))
    topics = {groups[name]: _topics(items[name]) for name in index.items if name in items}
    other: dict[tuple[str, str, str], str] = {}
    if beside is not None:
        same = _same_texts(run, beside, "items", "response")
        given = label_facts(beside, groups, items, tell)
        other = {judged(f): f.said for f in given if f.said is not None and f.member in same}
    return _compared(found, topics, other)


def _items(run: RunDir) -> Iterator[dict[str, Any]]:
    """Items without their texts, which are long."""
    for line in run.records.lines("items"):
        row = loads(line)
        yield {"id": row["id"], "target": row["target"], "fields": row["fields"]}


def _topics(item: Mapping[str, Any]) -> tuple[str, str]:
    """Culture and topic of an item, by what its fields call them."""
    fields = item["fields"]
    culture = fields.get("culture") or fields.get("country") or ""
    return culture, fields.get("topic") or fields.get("category") or ""


def _grouped(facts: Iterable[Fact]) -> dict[str, tuple[Fact, ...]]:
    found: dict[str, list[Fact]] = {}
    for fact in facts:
        found.setdefault(fact.group, []).append(fact)
    return {group: tuple(held) for group, held in found.items()}


def _compared(
    found: Mapping[str, tuple[Fact, ...]],
    topics: Mapping[str, tuple[str, str]],
    other: Mapping[tuple[str, str, str], str],
) -> Facts:
    said: dict[tuple[str, ...], str] = {}
    differ: set[tuple[str, ...]] = set()
    evaluators = set()
    for facts in found.values():
        for fact in facts:
            if fact.said is None:
                continue
            if said.setdefault(contested(fact), fact.said) != fact.said:
                differ.add(contested(fact))
            if other and other.get(judged(fact), fact.said) != fact.said:
                evaluators.add(judged(fact))
    return Facts(found, topics, frozenset(differ), frozenset(evaluators), other)


def _same_texts(run: RunDir, beside: RunDir, stage: str, text: str) -> set[str]:
    """The ids under which both runs hold the same text."""
    ours = dict(_hashes(run, stage, text))
    return {name for name, found in _hashes(beside, stage, text) if ours.get(name) == found}


def _hashes(run: RunDir, stage: str, text: str) -> Iterator[tuple[str, int]]:
    for line in run.records.lines(stage):
        row = loads(line)
        yield row["id"], hash(row[text])


def _said(satisfied: bool | None) -> str | None:
    return None if satisfied is None else ("met" if satisfied else "not met")


def texts_with(run: RunDir, index: StudyIndex, needle: str) -> set[str]:
    """Ids of attempts and keys of groups in whose texts something stands, whatever its case."""
    wanted = needle.casefold()
    found = set()
    for line in run.records.lines("attempts"):
        row = loads(line)
        if any(wanted in turn["text"].casefold() for turn in row["turns"]):
            found.add(row["id"])
    queries = {q for q, asked in index.materials.queries.items() if wanted in asked.text.casefold()}
    found |= {key for key, group in index.groups.items() if group.label in queries}
    for line in run.records.lines("responses"):
        row = loads(line)
        if any(wanted in row[part].casefold() for part in ("text", "working", "reasoning")):
            found |= _groups_of(row["id"], index)
    for line in run.records.lines("evaluations"):
        row = loads(line)
        if any(wanted in verdict["reasoning"].casefold() for verdict in row["verdicts"]):
            found.add(f"{row['persona']}/{row['query']}")
    return found


def _groups_of(name: str, index: StudyIndex) -> set[str]:
    key = response_key(name)
    if key is None:
        return set()
    personas = index.materials.personas if key.persona == SHARED else (key.persona,)
    return {f"{persona}/{key.query}" for persona in personas}


def labelled_texts_with(run: RunDir, index: LabelIndex, needle: str) -> set[str]:
    """Keys of groups in whose questions, responses or reasons something stands."""
    wanted = needle.casefold()
    groups = {name: group.key for group in index.groups.values() for name in group.members}
    found = set()
    for line in run.records.lines("items"):
        row = loads(line)
        if wanted in row["question"].casefold() or wanted in row["response"].casefold():
            found.add(groups.get(row["id"], ""))
    for line in run.records.lines("labels"):
        row = loads(line)
        if wanted in row["reasoning"].casefold():
            found.add(groups.get(row["item"], ""))
    return found
