"""What the stages need to know of a persona, and nothing of how it was drawn.

A portrait holds the norms in play (an experiment may cut them), their states, and two wordings
of each: the ``statement`` as the norm file has it, and the ``spoken`` one that never names the
culture, for sheets from which a model plays the persona.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from habitus.records import NormState


@dataclass(frozen=True, slots=True)
class Portrait:
    """A persona as simulation, checklists and settings see it; norms in the order of the file."""

    id: str
    name: str
    culture: str
    states: Mapping[str, NormState]
    statements: Mapping[str, str]
    spoken: Mapping[str, str]

    def norms(self, *states: NormState) -> tuple[str, ...]:
        """The ids of the norms in any of the given states."""
        return tuple(norm for norm, state in self.states.items() if state in states)

    @property
    def active(self) -> tuple[str, ...]:
        """The norms with a stance: those that have a checklist item."""
        return self.norms(1, -1)
