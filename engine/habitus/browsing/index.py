"""What a run holds, by ids and outcomes alone: no text of it is read.

A run of the whole benchmark has its index in some hundredths of a second. Sessions are grouped by
persona, responses by what is asked of whom (a ``Group``: one persona and one query, or one post),
with the answers of all targets and settings as its members. What has an id that cannot be read is
counted, not guessed at.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from habitus.errors import StoreError
from habitus.experiments import read_materials
from habitus.experiments.materials import Materials
from habitus.labelling import Labelling, read_labelling
from habitus.records import History, Outcome
from habitus.running import read_made_up
from habitus.store import RunDir

SHARED = "-"  # the persona of responses that serve all personas
_ATTEMPT = re.compile(r"(.+)/s(\d+)/a(\d+)")
_REPEAT = re.compile(r"r(\d+)")


@dataclass(frozen=True, slots=True)
class ResponseKey:
    """The parts of a response's id."""

    id: str
    target: str
    setting: str
    persona: str
    query: str
    repeat: int


@dataclass(frozen=True, slots=True)
class AttemptKey:
    """The parts of an attempt's id; ``attempt`` counts from 0."""

    id: str
    persona: str
    number: int
    attempt: int


@dataclass(frozen=True, slots=True)
class Group:
    """Answers to one question: of a persona and a query, or to a post.

    ``above`` are the names of what it lies under in the tree, outermost first.
    """

    key: str
    label: str
    above: tuple[str, ...]
    members: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Progress:
    """How many records of a stage there are, of how many."""

    stage: str
    done: int
    expected: int
    failed: int


@dataclass(frozen=True, slots=True)
class StudyIndex:
    """A CCBench run: ``sessions`` by persona and number, in order."""

    materials: Materials
    sessions: Mapping[str, Mapping[int, tuple[AttemptKey, ...]]]
    histories: Mapping[str, History]
    responses: Mapping[str, ResponseKey]
    failed: Mapping[str, Outcome]
    groups: Mapping[str, Group]

    @property
    def cultures(self) -> dict[str, tuple[str, ...]]:
        """The personas of each culture, sorted."""
        found: dict[str, list[str]] = {}
        for name, persona in sorted(self.materials.personas.items()):
            found.setdefault(persona.culture, []).append(name)
        return {culture: tuple(found[culture]) for culture in sorted(found)}

    def standing(self, persona: str, number: int) -> str | None:
        """The attempt that stands for a session in the history, as far as there is one."""
        history = self.histories.get(persona)
        refs = history.sessions if history else ()
        return next((ref.attempt for ref in refs if ref.number == number), None)


@dataclass(frozen=True, slots=True)
class LabelIndex:
    """A run of labels: what it says of itself, and its items in groups."""

    note: Labelling
    items: tuple[str, ...]
    failed: Mapping[str, Outcome]
    groups: Mapping[str, Group]


@dataclass(frozen=True, slots=True)
class RunIndex:
    """What there is in a run; ``study`` or ``labels`` is None where it has none."""

    name: str
    title: str
    made_up: tuple[str, ...]
    progress: tuple[Progress, ...]
    study: StudyIndex | None = None
    labels: LabelIndex | None = None
    strange: int = field(default=0)

    @property
    def going_on(self) -> bool:
        """Whether records are still missing."""
        return any(stage.done < stage.expected for stage in self.progress)


def read_index(run: RunDir) -> RunIndex:
    """The index of a run, also of one that is still going on.

    Raises:
        StoreError: it is neither a CCBench run nor one of labels, or cannot be read.
    """
    if (run.path / "labelling.json").exists():
        return _label_run(run)
    if (run.path / "study.json").exists():
        return _study_run(run)
    raise StoreError(f"{run.path} has nothing to view yet: nothing was run in it")


def response_key(name: str) -> ResponseKey | None:
    """The parts of a response's id, or None if it is none."""
    parts = name.split("/")
    repeat = _REPEAT.fullmatch(parts[-1])
    if len(parts) != 5 or repeat is None:
        return None
    return ResponseKey(name, parts[0], parts[1], parts[2], parts[3], int(repeat[1]))


def attempt_key(name: str) -> AttemptKey | None:
    """The parts of an attempt's id, or None if it is none."""
    found = _ATTEMPT.fullmatch(name)
    return AttemptKey(name, found[1], int(found[2]), int(found[3])) if found else None


def _study_run(run: RunDir) -> RunIndex:
    kept = read_materials(run)
    names = run.records.ids("responses")
    responses = {name: key for name in names if (key := response_key(name)) is not None}
    attempts = [held for name in run.records.ids("attempts") if (held := attempt_key(name))]
    study = StudyIndex(
        materials=kept,
        sessions=_sessions(attempts),
        histories={h.persona: h for h in run.records.iterate("histories", History)},
        responses=responses,
        failed=run.records.failed("responses") | run.records.failed("attempts"),
        groups=_questions(responses.values(), kept),
    )
    expected = kept.counts.model_dump(exclude={"items"})
    sessions = sum(map(len, study.sessions.values()))
    return RunIndex(
        name=run.path.resolve().name,
        title=kept.title or kept.id,
        made_up=tuple(sorted(read_made_up(run))),
        progress=_progress(run, expected, {"attempts": sessions}),
        study=study,
        strange=len(names) - len(responses),
    )


def _sessions(
    attempts: Iterable[AttemptKey],
) -> dict[str, dict[int, tuple[AttemptKey, ...]]]:
    found: dict[str, dict[int, list[AttemptKey]]] = {}
    for key in attempts:
        found.setdefault(key.persona, {}).setdefault(key.number, []).append(key)
    return {
        persona: {
            number: tuple(sorted(keys, key=lambda key: key.attempt))
            for number, keys in sorted(numbers.items())
        }
        for persona, numbers in found.items()
    }


def _questions(responses: Iterable[ResponseKey], kept: Materials) -> dict[str, Group]:
    """A group for every persona and query that has a response; a shared one is in all of them."""
    own: dict[tuple[str, str], list[ResponseKey]] = {}
    shared: dict[str, list[ResponseKey]] = {}
    for key in responses:
        if key.persona == SHARED:
            shared.setdefault(key.query, []).append(key)
        else:
            own.setdefault((key.persona, key.query), []).append(key)
    for query in shared:
        for persona in kept.personas:
            own.setdefault((persona, query), [])
    order = {
        name: n for n, name in enumerate((*kept.settings, *kept.targets))
    }  # two lists, no name twice where it matters: each is looked up for its own part
    groups = {}
    for (persona, query), keys in sorted(own.items()):
        together = sorted(
            (*keys, *shared.get(query, ())),
            key=lambda k: (order.get(k.target, 0), k.target, k.repeat, order.get(k.setting, 0)),
        )
        culture = kept.personas[persona].culture if persona in kept.personas else "?"
        name = f"{persona}/{query}"
        groups[name] = Group(name, query, (culture, persona), tuple(k.id for k in together))
    return groups


def _label_run(run: RunDir) -> RunIndex:
    note = read_labelling(run)
    labels = read_labels(run, note)
    return RunIndex(
        name=run.path.resolve().name,
        title=note.origin,
        made_up=tuple(note.made_up),
        progress=_progress(run, note.totals, {}),
        labels=labels,
    )


def read_labels(run: RunDir, note: Labelling | None = None) -> LabelIndex:
    """The items of a run of labels."""
    note = note or read_labelling(run)
    names = tuple(run.records.ids("items"))
    failed = run.records.failed("items") | run.records.failed("labels")
    groups = _of_responses(names) if note.kind == "responses" else _of_posts(names, note.kind)
    return LabelIndex(note, names, failed, groups)


def _of_responses(names: tuple[str, ...]) -> dict[str, Group]:
    found: dict[tuple[str, str], list[str]] = {}
    for name in names:
        key = response_key(name)
        found.setdefault((key.persona, key.query) if key else ("?", name), []).append(name)
    return {
        f"{persona}/{query}": Group(
            f"{persona}/{query}", query, (_culture(persona), persona), tuple(members)
        )
        for (persona, query), members in sorted(found.items())
    }


def _culture(persona: str) -> str:
    """The culture in a persona's id."""
    return "shared" if persona == SHARED else persona.rpartition("-")[0] or persona


_BUCKET = 100


def _of_posts(names: tuple[str, ...], kind: str) -> dict[str, Group]:
    """Posts with the answers of all targets; many are put into drawers of a hundred."""
    found: dict[str, list[str]] = {}
    for name in names:
        group = name.rpartition("/")[0] if kind == "posts" else name
        found.setdefault(group or name, []).append(name)
    groups = {}
    for number, (group, members) in enumerate(found.items()):
        first = number // _BUCKET * _BUCKET
        above = f"{kind} {first + 1:,} to {min(first + _BUCKET, len(found)):,}"
        groups[group] = Group(group, group, (above,), tuple(members))
    return groups


def _progress(
    run: RunDir, expected: Mapping[str, int], known: Mapping[str, int]
) -> tuple[Progress, ...]:
    out = []
    for stage, count in expected.items():
        found = run.records.counts(stage)
        total = sum(found.values())
        failed = total - found.get(Outcome.OK, 0)
        if count or total:
            out.append(Progress(stage, known.get(stage, total), count, failed))
    return tuple(out)
