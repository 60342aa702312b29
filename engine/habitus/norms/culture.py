"""What a norm file holds.

    culture: maori
    name: "Māori"
    domain: health
    source: "where the norms come from"
    confirmed: false                    # or {by: NAME, date: 2026-01-31}: who read every norm
    values:
      mana: "Mana (Dignity & Respect)"
    norms:
      - id: maori_10
        kind: practice                  # or communication
        values: [mana]
        statement: "The person regards the head as ..."

A norm may carry ``confirmed`` of its own, which then counts instead of the file's, and a
``persona_statement``: its wording for the persona's own sheet, needed where ``statement`` names
the culture, which a persona never does.
"""

from __future__ import annotations

import datetime as dt
import hashlib
import json
from functools import cached_property
from typing import Annotated, Any, Literal

from pydantic import BeforeValidator, Discriminator, Field, Tag

from habitus.content import ContentModel
from habitus.content.fields import Line, Slug

NormKind = Literal["communication", "practice"]


class Confirmation(ContentModel):
    """Who confirmed a norm, or every norm of a file."""

    by: Line
    date: dt.date | None = Field(default=None, description="day of the confirmation")


def _false_or_who(data: Any) -> Any:
    if data is False or isinstance(data, (dict, Confirmation)):
        return data
    raise ValueError("write false, or who confirmed it: {by: NAME}")


def _which(data: Any) -> str:
    return "no" if data is False else "by"


Confirmed = Annotated[
    Annotated[Literal[False], Tag("no")] | Annotated[Confirmation, Tag("by")],
    Discriminator(_which),
    BeforeValidator(_false_or_who),
]


class Value(ContentModel):
    """A value of a culture."""

    id: Slug
    label: Line


class Norm(ContentModel):
    """A norm and the values it rests on."""

    id: Slug
    kind: NormKind = Field(
        description="communication: shows in how the person talks; practice: what it does or believes"
    )
    values: Annotated[tuple[Slug, ...], Field(min_length=1, description="ids of its values")]
    statement: Line
    persona_statement: Line | None = Field(
        default=None,
        description="wording for the persona's sheet, where the statement names the culture",
    )
    confirmed: Confirmed | None = Field(
        default=None, description="counts instead of the file's own; false or who confirmed it"
    )

    @property
    def own_words(self) -> str:
        """The statement as a persona may read it."""
        return self.persona_statement or self.statement


class Culture(ContentModel):
    """One culture in one domain."""

    culture: Slug = Field(description="id; also the name of the file")
    name: Line
    domain: Slug
    source: Line = Field(description="where the norms come from")
    confirmed: Confirmed = Field(default=False, description="false or who confirmed every norm")
    values: Annotated[dict[Slug, Line], Field(min_length=1, description="id to label")]
    norms: Annotated[tuple[Norm, ...], Field(min_length=1)]

    @property
    def value_list(self) -> tuple[Value, ...]:
        """The values in the order of the file."""
        return tuple(Value(id=id_, label=label) for id_, label in self.values.items())

    @cached_property
    def by_id(self) -> dict[str, Norm]:
        """Norm id to norm, in the order of the file."""
        return {norm.id: norm for norm in self.norms}

    def confirmation(self, norm: Norm) -> Confirmation | None:
        """Who confirmed a norm: its own mark if it has one, else the file's; None for nobody."""
        mark = self.confirmed if norm.confirmed is None else norm.confirmed
        return mark or None

    def count(self, kind: NormKind) -> int:
        """How many norms are of a kind."""
        return sum(norm.kind == kind for norm in self.norms)


def norms_hash(culture: Culture) -> str:
    """16 hex digits that name what a persona depends on.

    In: the culture's id, its values, and of each norm, in order, the id, the values and both
    wordings. Out: labels, name, source, kinds, confirmations, comments and layout, which change
    neither a persona's states nor its sheet. So a file can be confirmed norm by norm, or
    commented, without breaking the personas drawn from it.
    """
    norms = [[n.id, sorted(n.values), n.statement, n.persona_statement] for n in culture.norms]
    content = [culture.culture, sorted(culture.values), norms]
    text = json.dumps(content, ensure_ascii=False, separators=(",", ":"))
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:16]
