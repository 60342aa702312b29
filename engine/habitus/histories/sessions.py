"""Which sessions a persona has: openers drawn without replacement, then shuffled.

Each persona draws from a generator of its own, so another persona or a longer list of personas
changes nothing. Openers may recur across personas, never within one.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from habitus.errors import UsageError
from habitus.records import generator

Kind = Literal["domain", "everyday"]


@dataclass(frozen=True, slots=True)
class OpenerPool:
    """Openers of one kind, as (id, text), and how many sessions begin with one of them."""

    kind: Kind
    openers: Sequence[tuple[str, str]]
    sessions: int


@dataclass(frozen=True, slots=True)
class SessionPlan:
    """One session before it is held. ``number`` counts from 1 in the order of the history."""

    persona: str
    number: int
    kind: Kind
    opener: str
    text: str
    exchanges: int

    @property
    def id(self) -> str:
        """``<persona>/sNN``."""
        return f"{self.persona}/s{self.number:02d}"


def plan_sessions(
    persona: str, pools: Sequence[OpenerPool], exchanges: tuple[int, int], seed: int
) -> tuple[SessionPlan, ...]:
    """The sessions of one persona, kinds mixed, each with its number of exchanges.

    Args:
        persona: id of the persona.
        pools: openers by kind with the number of sessions of each.
        exchanges: least and most exchanges of a session, drawn evenly.
        seed: the seed of the experiment.

    Raises:
        UsageError: more sessions than openers of a kind.
    """
    random = generator(seed, "sessions", persona)
    drawn: list[tuple[Kind, str, str]] = []
    for pool in pools:
        if pool.sessions > len(pool.openers):
            raise UsageError(
                f"{pool.sessions} {pool.kind} sessions are asked for, "
                f"but there are {len(pool.openers)} openers; add openers or lower the number"
            )
        chosen = random.choice(len(pool.openers), size=pool.sessions, replace=False)
        drawn += [(pool.kind, *pool.openers[int(i)]) for i in chosen]
    order = random.permutation(len(drawn))
    lengths = random.integers(exchanges[0], exchanges[1] + 1, size=len(drawn))
    return tuple(
        SessionPlan(persona, number, *drawn[int(place)], int(lengths[number - 1]))
        for number, place in enumerate(order, start=1)
    )
