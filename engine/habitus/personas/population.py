"""What a population file holds, and what follows from a persona's stances.

population: health
domain: health
drawn: {sampler: random, seed: 1}      # left out in a file made by hand
personas:
  - id: maori-01
    name: Robin
    culture: maori
    norms_hash: "a09109624af79d57"     # of the norms the stances were drawn for
    stances: {mana: 1, whakama: -1}
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Annotated, Any, Literal, NamedTuple

from pydantic import BeforeValidator, Field

from habitus.content import ContentModel
from habitus.content.fields import Line, Slug
from habitus.norms import Culture, norm_states
from habitus.records import NormState


def _whole(data: Any) -> Any:
    if type(data) is not int:  # true and 1.0 equal 1, but nobody means a stance by them
        raise ValueError("a stance is 1 or -1")
    return data


Stance = Annotated[Literal[-1, 1], BeforeValidator(_whole)]


class Persona(ContentModel):
    """A person with a stance on every value of a culture."""

    id: Slug = Field(description="<culture>-NN")
    name: Line = Field(description="a name that gives no culture away")
    culture: Slug
    norms_hash: Annotated[
        str, Field(pattern=r"^[0-9a-f]{16}$", description="names the norms the stances are for")
    ]
    stances: Annotated[dict[Slug, Stance], Field(min_length=1, description="value id to +1 or -1")]


class Drawn(ContentModel):
    """How the personas were drawn."""

    sampler: Literal["random", "balanced"]
    seed: int
    priors: dict[Slug, float] = Field(
        default_factory=dict, description="probability of +1 by value; 1/2 where not named"
    )


class Population(ContentModel):
    """Pinned personas of one domain, so that everyone evaluates the same ones."""

    population: Slug = Field(description="id; also the name of the file")
    domain: Slug
    drawn: Drawn | None = Field(default=None, description="left out when made by hand")
    personas: Annotated[tuple[Persona, ...], Field(min_length=1)]

    def of(self, culture: str) -> tuple[Persona, ...]:
        """The personas of one culture, in the order of the file."""
        return tuple(p for p in self.personas if p.culture == culture)


class StateCounts(NamedTuple):
    """How many personas follow a norm, are neutral to it, and avoid it."""

    follow: int
    neutral: int
    avoid: int

    @property
    def covered(self) -> bool:
        """Whether some persona follows the norm and some other avoids it."""
        return self.follow > 0 and self.avoid > 0


def states(persona: Persona, culture: Culture) -> dict[str, NormState]:
    """Norm id to state, in the order of the norm file."""
    return norm_states(culture, persona.stances)


def embeddedness(persona: Persona, culture: Culture) -> float | None:
    """The share of its non-neutral norms that a persona follows; None where it has none."""
    decided = [state for state in states(persona, culture).values() if state]
    return decided.count(1) / len(decided) if decided else None


def coverage(personas: Iterable[Persona], culture: Culture) -> dict[str, StateCounts]:
    """Norm id to the number of personas in each state; personas of other cultures do not count."""
    rows = [states(p, culture) for p in personas if p.culture == culture.culture]
    by_norm = {norm.id: [row[norm.id] for row in rows] for norm in culture.norms}
    return {id_: StateCounts(s.count(1), s.count(0), s.count(-1)) for id_, s in by_norm.items()}
