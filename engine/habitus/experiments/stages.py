"""The stages of an experiment, in order, and the tables of records they fill."""

from __future__ import annotations

from enum import IntEnum

from habitus.errors import UsageError
from habitus.records import (
    Attempt,
    Evaluation,
    History,
    Recommendation,
    Response,
    SafetyLabel,
    StageRecord,
)


class Stage(IntEnum):
    """How far a run goes. Histories and filter are one stage: a session is checked when held."""

    PERSONAS = 0
    HISTORIES = 1
    CHECKLISTS = 2
    RESPONSES = 3
    VERDICTS = 4


#: Tables of records by name, in the order of the stages.
TABLES: dict[str, type[StageRecord]] = {
    "attempts": Attempt,
    "histories": History,
    "recommendations": Recommendation,
    "responses": Response,
    "evaluations": Evaluation,
    "safety": SafetyLabel,
}

_NAMES = {
    "personas": Stage.PERSONAS,
    "histories": Stage.HISTORIES,
    "filter": Stage.HISTORIES,
    "checklists": Stage.CHECKLISTS,
    "responses": Stage.RESPONSES,
    "verdicts": Stage.VERDICTS,
    "results": Stage.VERDICTS,
}


def stage_named(name: str) -> Stage:
    """The stage of a name, as ``--stage`` takes it."""
    if name not in _NAMES:
        raise UsageError(f"no stage called {name!r}; stages: {', '.join(_NAMES)}")
    return _NAMES[name]


#: Stages of calls by the name ``--fresh`` takes.
_CALLS = {
    "histories": "histories",
    "filter": "filter",
    "checklists": "checklists",
    "responses": "responses",
    "verdicts": "verdicts",
    "safety": "judge/safety",
}


def call_stage(name: str) -> str:
    """The stage that calls are noted under."""
    if name not in _CALLS:
        raise UsageError(f"no stage of calls called {name!r}; stages: {', '.join(_CALLS)}")
    return _CALLS[name]
