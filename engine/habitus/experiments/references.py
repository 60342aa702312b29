"""What an experiment refers to, and whether it fits together.

Each check looks at the experiment and at what was read, and says where in the experiment file
the problem stands. Nothing here reads a file.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from habitus.checklists import QuerySet
from habitus.content import Found
from habitus.errors import ModelError
from habitus.experiments.config import Experiment
from habitus.experiments.settings import Setting
from habitus.models import open_model
from habitus.norms import Culture
from habitus.personas import Openers, Population

#: Backends whose options can be checked by opening them: they need nothing and hold nothing.
_MADE_UP = frozenset({"scripted", "planted"})


@dataclass(frozen=True, slots=True)
class References:
    """Everything an experiment names, read; ``cultures`` are those of the whole population."""

    population: Population
    cultures: Mapping[str, Culture]
    queries: QuerySet
    domain_openers: Openers
    everyday_openers: Openers
    settings: tuple[Setting, ...]


def reference_problems(experiment: Experiment, found: References) -> Iterator[Found]:
    """What does not fit."""
    yield from _domains(experiment, found)
    yield from _missing_cultures(experiment, found)
    yield from _shared_norms(experiment, found.cultures)
    yield from _personas(experiment, found.population)
    yield from _norms(experiment, found.cultures)
    yield from _query_ids(experiment, found.queries)
    yield from _openers(experiment, found)
    yield from _models(experiment)


def _domains(experiment: Experiment, found: References) -> Iterator[Found]:
    named = (
        ("population", found.population.population, found.population.domain, ("population",)),
        ("query file", found.queries.id, found.queries.domain, ("queries", "file")),
    )
    for kind, name, domain, loc in named:
        if domain != experiment.domain:
            what = f"the {kind} {name!r} has the domain {domain!r}, not {experiment.domain!r}"
            yield Found(loc, what)


def _missing_cultures(experiment: Experiment, found: References) -> Iterator[Found]:
    for index, culture in enumerate(experiment.cultures):
        if culture not in found.cultures:
            what = f"the population {found.population.population!r} has no persona of {culture!r}"
            hint = (
                f"it has {', '.join(found.cultures)}; draw personas with: "
                f"habitus personas sample {culture} -o personas/NAME.yaml, and name the file "
                "under population"
            )
            yield Found(("cultures", index), what, hint)


def _shared_norms(experiment: Experiment, cultures: Mapping[str, Culture]) -> Iterator[Found]:
    """Recommendations go by norm id: one id for two norms would mix two cultures up."""
    owner: dict[str, str] = {}
    for index, culture in enumerate(experiment.cultures):
        taken: dict[str, list[str]] = {}
        for norm in cultures[culture].norms if culture in cultures else ():
            if norm.id in owner:
                taken.setdefault(owner[norm.id], []).append(norm.id)
            owner.setdefault(norm.id, culture)
        for other, ids in taken.items():
            what = f"{culture} and {other} share the norm ids {', '.join(ids)}"
            hint = f"give the norms of one of them ids of their own, such as {culture}_1"
            yield Found(("cultures", index), what, hint)


def _personas(experiment: Experiment, population: Population) -> Iterator[Found]:
    many = {culture: population.of(culture) for culture in experiment.cultures}
    wanted = experiment.personas
    if isinstance(wanted, int):
        for culture, people in many.items():
            if people and wanted > len(people):
                what = f"{wanted} personas are asked for, but {culture} has {len(people)}"
                yield Found(("personas",), what)
        return
    if wanted is None:
        return
    known = {persona.id for people in many.values() for persona in people}
    for index, name in enumerate(wanted):
        if name not in known:
            yield Found(("personas", index), f"no persona {name!r} of these cultures")
    for culture, people in many.items():
        if people and not any(persona.id in wanted for persona in people):
            yield Found(("personas",), f"no persona of {culture} is chosen")


def _norms(experiment: Experiment, cultures: Mapping[str, Culture]) -> Iterator[Found]:
    for culture, ids in experiment.norms.items():
        known = cultures[culture].by_id if culture in cultures else dict.fromkeys(ids)
        for index, norm in enumerate(ids):
            if norm not in known:
                hint = f"it has {', '.join(known)}"
                yield Found(("norms", culture, index), f"{culture} has no norm {norm!r}", hint)


def _query_ids(experiment: Experiment, queries: QuerySet) -> Iterator[Found]:
    known = {query.id for query in queries.queries}
    for index, query in enumerate(experiment.queries.ids):
        if query not in known:
            where = f"the query file {queries.id!r} has {len(known)} others"
            yield Found(("queries", "ids", index), f"no query {query!r}", where)


def _openers(experiment: Experiment, found: References) -> Iterator[Found]:
    if not any(setting.uses_history for setting in found.settings):
        return
    history = experiment.history
    if history.domain_sessions + history.everyday_sessions == 0:
        yield Found(("history",), "no session is asked for, but a setting shows the history")
    for kind, openers, sessions in (
        ("domain", found.domain_openers, history.domain_sessions),
        ("everyday", found.everyday_openers, history.everyday_sessions),
    ):
        if openers.kind != kind:
            what = f"the openers {openers.id!r} are of the kind {openers.kind!r}, not {kind!r}"
            yield Found(("history", f"{kind}_openers"), what)
        if sessions > len(openers.openers):
            what = f"{sessions} sessions, but {openers.id!r} has {len(openers.openers)} openers"
            hint = "every session of a persona begins with another one"
            yield Found(("history", f"{kind}_sessions"), what, hint)


def _models(experiment: Experiment) -> Iterator[Found]:
    """Options of made-up models, and settings for which a planted target has no rates."""
    for name, entry in experiment.models.items():
        if entry.backend not in _MADE_UP:
            continue
        try:
            open_model(name, entry)
        except ModelError as error:
            yield Found(("models", name, "options"), str(error))
            continue
        tested = any(role.model == name for role in experiment.targets.values())
        if entry.backend == "planted" and tested:
            yield from _rates(name, entry.options["rates"], experiment.settings)


def _rates(name: str, rates: Mapping[str, Any], settings: Sequence[str]) -> Iterator[Found]:
    for setting in settings:
        if setting not in rates:
            what = f"no rates are planted for the setting {setting!r}"
            yield Found(("models", name, "options", "rates"), what)
