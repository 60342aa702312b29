"""What an analysis must know of an experiment, and nothing more: who, which norms, which topics.

A :class:`Design` is made by the caller from a population and a query set. It lists, for each
persona, the norms that are scored: one verdict is expected for each of them whose state is not
zero, on every response. What is expected and does not come is counted as missing.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Literal

from habitus.errors import StoreError
from habitus.records import History, Outcome

Dimension = Literal["culture", "topic", "kind", "persona", "query"]
DIMENSIONS: tuple[Dimension, ...] = ("culture", "topic", "kind", "persona", "query")

SETTING_ORDER = ("none", "hist", "ccot", "norms")


@dataclass(frozen=True)
class Design:
    """Personas, norms and queries of an experiment.

    ``cultures``: persona to culture. ``states``: persona to norm to state (+1, 0, -1), scored
    norms only. ``kinds``: norm to ``communication`` or ``practice``. ``topics``: query to topic.
    """

    cultures: Mapping[str, str]
    states: Mapping[str, Mapping[str, int]]
    kinds: Mapping[str, str]
    topics: Mapping[str, str]

    def __post_init__(self) -> None:
        scored = {norm for states in self.states.values() for norm in states}
        if set(self.cultures) != set(self.states) or not scored <= set(self.kinds):
            raise ValueError("a design needs states for every persona and a kind for every norm")

    @cached_property
    def items(self) -> dict[str, tuple[str, ...]]:
        """For each persona the norms with a verdict, sorted."""
        return {
            persona: tuple(sorted(norm for norm, state in states.items() if state))
            for persona, states in self.states.items()
        }

    def embeddedness(self, persona: str) -> float | None:
        """Share of a persona's non-neutral norms that it follows; None when all are neutral."""
        states = [state for state in self.states[persona].values() if state]
        return states.count(1) / len(states) if states else None

    def culture(self, persona: str) -> str:
        """The culture of a persona.

        Raises:
            StoreError: For a persona that the experiment does not have.
        """
        try:
            return self.cultures[persona]
        except KeyError:
            raise StoreError(
                f"a record names persona {persona!r}, which the experiment does not have; was the population changed after the run?"
            ) from None


def setting_rank(setting: str) -> tuple[int, str]:
    """Sort key: none, hist, ccot, norms, then any others by name."""
    if setting in SETTING_ORDER:
        return SETTING_ORDER.index(setting), setting
    return len(SETTING_ORDER), setting


def shown_norms(histories: Iterable[History]) -> dict[str, frozenset[str]]:
    """For each persona the norms that its history shows.

    A norm that no session shows cannot be inferred by any model. A persona without a usable
    history shows nothing.
    """
    return {
        history.persona: frozenset(history.shown if history.outcome is Outcome.OK else ())
        for history in histories
    }
