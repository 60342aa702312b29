"""What a filter can be set to, view by view, from what the run holds."""

from __future__ import annotations

from habitus.browsing.facts import Facts
from habitus.browsing.filters import VALUES
from habitus.browsing.index import LabelIndex, StudyIndex
from habitus.browsing.outline import View
from habitus.browsing.run import Browsed

Choices = tuple[tuple[str, tuple[str, ...]], ...]


def choices(browsed: Browsed, view: View, facts: Facts | None) -> Choices:
    """Names of the fields of a filter that a view heeds, and their values."""
    study, labels = browsed.study, browsed.labels
    found: dict[str, tuple[str, ...]] = {}
    if view == "judges" and labels is not None:
        found = _of_labels(labels, facts)
    elif view == "responses" and study is not None:
        found = _of_responses(study)
    elif study is not None:
        found = {"culture": tuple(study.cultures), **_fixed("session", "outcome")}
    if view != "transcripts":
        found |= _fixed("targets_disagree", "evaluators_disagree")
        if not browsed.compared:
            found["evaluators_disagree"] = ()
    return (*found.items(), ("marked", VALUES["marked"]))


def _fixed(*names: str) -> dict[str, tuple[str, ...]]:
    return {name: VALUES[name] for name in names}


def _of_responses(study: StudyIndex) -> dict[str, tuple[str, ...]]:
    kept = study.materials
    return {
        "culture": tuple(study.cultures),
        "topic": tuple(sorted({query.topic for query in kept.queries.values()})),
        "setting": kept.settings,
        "target": kept.targets,
        **_fixed("state", "verdict", "outcome"),
    }


def _of_labels(labels: LabelIndex, facts: Facts | None) -> dict[str, tuple[str, ...]]:
    topics = facts.topics.values() if facts else ()
    held = [fact for group in facts.by_group.values() for fact in group] if facts else []
    said = tuple(
        f"{note.judge}.{note.variant}={label}" if note.variant else f"{note.judge}={label}"
        for note in labels.note.verdicts
        for label in note.labels
    )
    return {
        "culture": tuple(sorted({culture for culture, _ in topics if culture})),
        "topic": tuple(sorted({topic for _, topic in topics if topic})),
        "setting": tuple(sorted({fact.setting for fact in held if fact.setting})),
        "target": tuple(sorted({fact.target for fact in held if fact.target})),
        "label": said,
        **_fixed("outcome"),
    }
