"""Items from a run: the responses of a CCBench run, or the items of a run that has them.

What an analysis may group the responses of a CCBench run by is kept in their fields: setting,
persona, culture, query, topic, repeat; ``state.<norm>`` for the norms of the persona (follow,
neutral, avoid); and ``met.<norm>`` where the run has a verdict (yes, no). A response in a shared
``none`` belongs to no persona: it has no culture and no states, and is grouped by its query.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import partial
from pathlib import Path

from habitus.errors import UsageError
from habitus.experiments import read_materials
from habitus.experiments.materials import Materials
from habitus.experiments.responding import SHARED
from habitus.labelling.note import ITEMS, Labelling, read_labelling
from habitus.labelling.source import Source, looked_through
from habitus.records import Evaluation, JudgedItem, NormState, Response
from habitus.running import read_made_up
from habitus.store import RunDir

_STATES: Mapping[NormState, str] = {1: "follow", 0: "neutral", -1: "avoid"}


def run_source(path: Path) -> Source:
    """The items of a run.

    Raises:
        UsageError: it has none.
        StoreError: it cannot be read.
    """
    with RunDir.open(path, write=False) as run:
        stages = run.records.stages()
        if ITEMS in stages:
            note = read_labelling(run)
            read = partial(_kept, path)
            kind, made_up = note.kind, _made_up_among(read(), note)
        elif "responses" in stages:
            kind, made_up = "responses", _made_up_targets(run)
            read = partial(_responses, path)
        else:
            raise UsageError(
                f"{path} has no responses yet; `habitus status {path}` says what is left"
            )
    return Source(path.resolve().name, kind, *looked_through(read()), read, made_up)


def _kept(path: Path) -> Iterator[JudgedItem]:
    with RunDir.open(path, write=False) as run:
        yield from run.records.iterate(ITEMS, JudgedItem)


def _responses(path: Path) -> Iterator[JudgedItem]:
    with RunDir.open(path, write=False) as run:
        kept = read_materials(run)
        met = _met(run)
        for response in run.records.iterate("responses", Response):
            yield _item(response, kept, met.get(response.id, {}))


def _item(response: Response, kept: Materials, met: Mapping[str, str]) -> JudgedItem:
    shared = response.persona == SHARED
    query = kept.queries[response.query]
    fields = {
        "setting": response.setting,
        "persona": response.persona,
        "query": response.query,
        "topic": query.topic,
        "repeat": str(response.repeat),
    }
    if not shared:
        persona = kept.personas[response.persona]
        fields["culture"] = persona.culture
        fields |= {f"state.{norm}": _STATES[state] for norm, state in persona.states.items()}
        fields |= met
    return JudgedItem(
        id=response.id,
        outcome=response.outcome,
        reason=response.reason,
        group=f"{SHARED}/{response.query}" if shared else response.persona,
        target=response.target,
        question=query.text,
        response=response.text,
        fields=fields,
    )


def _met(run: RunDir) -> dict[str, dict[str, str]]:
    """For each response, whether it meets the recommendation for a norm, where that was read."""
    return {
        found.response: {
            f"met.{verdict.norm}": "yes" if verdict.satisfied else "no"
            for verdict in found.verdicts
            if verdict.satisfied is not None
        }
        for found in run.records.iterate("evaluations", Evaluation)
    }


def _made_up_among(items: Iterator[JudgedItem], note: Labelling) -> frozenset[str]:
    """Targets that make answers up. The judges of a run have no part in what is judged anew."""
    return frozenset(note.made_up) and frozenset(i.target for i in items) & {*note.made_up}


def _made_up_targets(run: RunDir) -> frozenset[str]:
    made_up, targets = read_made_up(run), run.config.get("targets", {})
    return frozenset(name for name, role in targets.items() if role["model"] in made_up)
