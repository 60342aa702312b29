"""Which pairs of characteristics stand in which panel, and where every fit of them converges."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from habitus.framing.results import Delta, Framing, Subset

Pair = tuple[str, str]


@dataclass(frozen=True, slots=True)
class Direction:
    """One panel: its title, and the pair of each row by the characteristic that names the row."""

    title: str
    pairs: Mapping[str, Pair]


def franz_directions(
    framing: Framing, insider: str, cues: Sequence[str], causes: Sequence[str]
) -> list[Direction]:
    """Insider to cues, cues to insider, and each of the causes to cues: those with deltas."""
    there = {(found.cause, found.effect) for found in framing.deltas}
    wanted = [
        (f"{_name(framing, insider)} → cue", {cue: (insider, cue) for cue in cues}),
        (f"cue → {_name(framing, insider)}", {cue: (cue, insider) for cue in cues}),
        *((f"{_name(framing, c)} → cue", {cue: (c, cue) for cue in cues}) for c in causes),
    ]
    panels = [
        Direction(heading, {end: pair for end, pair in pairs.items() if pair in there})
        for heading, pairs in wanted
    ]
    return [panel for panel in panels if panel.pairs]


def directions_by_cause(framing: Framing) -> list[Direction]:
    """A panel for each cause, for analyses of other characteristics."""
    effects: dict[str, dict[str, Pair]] = {}
    for found in framing.deltas:
        effects.setdefault(found.cause, {})[found.effect] = (found.cause, found.effect)
    return [Direction(f"{_name(framing, c)} → effect", pairs) for c, pairs in effects.items()]


class DeltaTable:
    """The deltas of an analysis by subset and pair."""

    def __init__(self, framing: Framing) -> None:
        self.framing = framing
        self._deltas = {(d.subset, d.cause, d.effect, d.level): d for d in framing.deltas}
        self._tests: dict[tuple[Subset, Pair], list[bool | None]] = {}
        for found in framing.delta_comparisons:
            key = (found.subset, (found.cause, found.effect))
            self._tests.setdefault(key, []).append(found.significant)

    def delta(self, subset: Subset, pair: Pair, level: str) -> Delta | None:
        """The delta of a level, or None where there is no such row."""
        return self._deltas.get((subset, *pair, level))

    def differs(self, subset: Subset, pair: Pair) -> bool:
        """Whether any two levels differ significantly."""
        return True in self._tests.get((subset, pair), [])

    def converges(self, subset: Subset, panels: Iterable[Direction]) -> bool:
        """Whether every delta and every comparison of these panels is defined."""
        pairs = [pair for panel in panels for pair in panel.pairs.values()]
        deltas = [self.delta(subset, p, level) for p in pairs for level in self.framing.levels]
        tests = [test for pair in pairs for test in self._tests.get((subset, pair), [])]
        return None not in tests and all(found is not None and _whole(found) for found in deltas)


def _whole(found: Delta) -> bool:
    return None not in (found.delta, found.low, found.high, found.significant)


def _name(framing: Framing, characteristic: str) -> str:
    return framing.characteristics.get(characteristic, characteristic)
