"""What the stages need to know of a persona, and nothing of how it was drawn.

A portrait holds the norms in play (an experiment may cut them), their states and statements. In
prompts a norm goes by its label (``N1`` is the first norm of the file): ids such as ``maori_1``
would name the culture to whoever reads them.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from habitus.records import NormState


@dataclass(frozen=True, slots=True)
class Portrait:
    """A persona as simulation, checklists and settings see it; norms in the order of the file.

    ``states``, ``statements`` and ``labels`` have the same keys: the ids of the norms in play.
    ``sheet`` is the text from which a model plays the persona; it never names the culture.
    """

    id: str
    culture: str
    states: Mapping[str, NormState]
    statements: Mapping[str, str]
    labels: Mapping[str, str]
    sheet: str

    def norms(self, *states: NormState) -> tuple[str, ...]:
        """The ids of the norms in any of the given states."""
        return tuple(norm for norm, state in self.states.items() if state in states)

    @property
    def active(self) -> tuple[str, ...]:
        """The norms with a stance: those that have a checklist item."""
        return self.norms(1, -1)

    @property
    def states_by_label(self) -> dict[str, NormState]:
        """The states under the labels that prompts use."""
        return {self.labels[norm]: state for norm, state in self.states.items()}
