"""What an analysis of labels gives: plain values, ready to print, to draw or to write.

    framing.prevalences     how often each level shows a characteristic, in each subset
    framing.comparisons     between any two levels
    framing.rankings        the same in one line: ``M>G~L``
    framing.deltas          what a cause changes in how often an effect is there
    framing.set_aside       every fit that gave less than it should, with the reason

A level is what is compared: a model, or a setting, a culture, a norm state. Undefined is None, and
then ``reason`` says why. Probabilities run from 0 to 1, differences and deltas from -1 to 1, and
differences of deltas from -2 to 2; ``low`` and ``high`` are the ends of an interval, ``p`` belongs
to a Wald test, ``q`` is ``p`` after the correction for many tests, and ``significant`` is None where
there is no test.

Nothing here knows how the numbers were made.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any, Generic, TypeVar


@dataclass(frozen=True, slots=True)
class Subset:
    """A part of the rows: those with the given values of the given fields.

    ``rows`` counts the answers in it, judged or not, ``groups`` the clusters they stand in.
    """

    fields: tuple[tuple[str, str], ...]
    rows: int
    groups: int

    @property
    def name(self) -> str:
        """The values in one line: ``india, food and drink``; ``all`` where nothing is divided."""
        return ", ".join(value for _, value in self.fields) or "all"

    def get(self, name: str) -> str | None:
        """The value of a field, or None where the subset is not made by it."""
        return dict(self.fields).get(name)


@dataclass(frozen=True, slots=True)
class Prevalence:
    """How often a level shows a characteristic; the test is of the probability .5.

    ``rows`` were judged, ``cases`` of them have the characteristic, ``missing`` more have no label.
    ``lowest`` and ``highest`` are the shares of all rows if none and if all of the missing were cases;
    None unless the rule for missing labels is ``bounds`` and some are.
    """

    subset: Subset
    characteristic: str
    level: str
    rows: int
    cases: int
    missing: int
    estimate: float | None = None
    low: float | None = None
    high: float | None = None
    p: float | None = None
    q: float | None = None
    significant: bool | None = None
    reason: str = ""
    lowest: float | None = None
    highest: float | None = None

    @property
    def total(self) -> int:
        """Rows, judged or not."""
        return self.rows + self.missing


@dataclass(frozen=True, slots=True)
class Comparison:
    """Two levels: ``difference`` is the probability of the first less that of the second.

    ``rows`` and ``missing`` count those of the two levels together. ``lowest`` and ``highest`` are
    the least and the most that the difference of shares can be, as in :class:`Prevalence`.
    """

    subset: Subset
    characteristic: str
    first: str
    second: str
    difference: float | None = None
    low: float | None = None
    high: float | None = None
    p: float | None = None
    q: float | None = None
    significant: bool | None = None
    reason: str = ""
    rows: int = 0
    missing: int = 0
    lowest: float | None = None
    highest: float | None = None


@dataclass(frozen=True, slots=True)
class Ranking:
    """The levels by estimated probability, highest first, with the relation of each two neighbours.

    ``text`` has ``>`` where the two differ significantly, ``~`` where they do not and ``?`` where
    nothing can be said; levels without an estimate stand last.
    """

    subset: Subset
    characteristic: str
    levels: tuple[str, ...]
    text: str
    reason: str = ""


@dataclass(frozen=True, slots=True)
class Delta:
    """``P(effect | cause) - P(effect | no cause)`` of a level; the test is of 0.

    ``rows`` have both labels; of these ``with_cause`` show the cause, ``with_effect`` the effect,
    ``with_both`` both. ``missing`` more lack one label or both.
    """

    subset: Subset
    cause: str
    effect: str
    level: str
    rows: int
    with_cause: int
    with_effect: int
    with_both: int
    delta: float | None = None
    low: float | None = None
    high: float | None = None
    p: float | None = None
    q: float | None = None
    significant: bool | None = None
    reason: str = ""
    missing: int = 0

    @property
    def total(self) -> int:
        """Rows, judged or not."""
        return self.rows + self.missing


@dataclass(frozen=True, slots=True)
class DeltaComparison:
    """Two levels: ``difference`` is the delta of the first less that of the second."""

    subset: Subset
    cause: str
    effect: str
    first: str
    second: str
    difference: float | None = None
    low: float | None = None
    high: float | None = None
    p: float | None = None
    q: float | None = None
    significant: bool | None = None
    reason: str = ""
    rows: int = 0
    missing: int = 0


Within = TypeVar("Within", Prevalence, Delta)
Between = TypeVar("Between", Comparison, DeltaComparison)


@dataclass(frozen=True, slots=True)
class Fitted(Generic[Within, Between]):
    """What one fit gave: a record for each level and for each two of them.

    ``name`` is what was fitted, ``reason`` why it gave less than it should, ``fallback`` whether
    rows were taken as independent against what was asked for, ``clusters`` how many the smallest of
    the fitted cells stands in (0 where nothing was fitted).
    """

    subset: Subset
    name: str
    within: tuple[Within, ...]
    between: tuple[Between, ...]
    reason: str = ""
    fallback: bool = False
    clusters: int = 0


@dataclass(frozen=True, slots=True)
class SetAside:
    """A fit that is not estimable, as a whole or in part.

    ``question`` is an id of the analysis file; ``fit`` names the characteristic or the pair
    (``insider -> emotions``).
    """

    subset: Subset
    question: str
    fit: str
    reason: str


@dataclass(frozen=True, slots=True)
class Framing:
    """The results of one comparison of levels, with the choices behind them in ``notes``.

    ``characteristics`` maps ids to names for people, ``names`` levels to their short names in
    rankings. ``synthetic`` is true where answers or labels come from no model.
    """

    id: str
    title: str
    notes: tuple[str, ...]
    synthetic: bool
    characteristics: Mapping[str, str]
    levels: tuple[str, ...]
    subsets: tuple[Subset, ...]
    prevalences: tuple[Prevalence, ...] = ()
    comparisons: tuple[Comparison, ...] = ()
    rankings: tuple[Ranking, ...] = ()
    deltas: tuple[Delta, ...] = ()
    delta_comparisons: tuple[DeltaComparison, ...] = ()
    set_aside: tuple[SetAside, ...] = ()
    names: Mapping[str, str] = field(default_factory=dict)

    def as_json(self) -> dict[str, Any]:
        """Plain data; undefined is None, floats are as computed."""
        found = {name: getattr(self, name) for name in TABLES}
        return {
            "id": self.id,
            "title": self.title,
            "synthetic": self.synthetic,
            "notes": list(self.notes),
            "characteristics": dict(self.characteristics),
            "levels": {level: self.names.get(level, level) for level in self.levels},
            "subsets": [
                {**dict(part.fields), "rows": part.rows, "groups": part.groups}
                for part in self.subsets
            ],
            **{name: [flat(record) for record in records] for name, records in found.items()},
        }


#: The fields of :class:`Framing` that hold one record a row.
TABLES = (
    "prevalences",
    "comparisons",
    "rankings",
    "deltas",
    "delta_comparisons",
    "set_aside",
)

Record = Prevalence | Comparison | Ranking | Delta | DeltaComparison | SetAside


def flat(record: Record) -> dict[str, Any]:
    """A record as one level of names and values, the fields of its subset first."""
    found = asdict(record)
    del found["subset"]
    return dict(record.subset.fields) | {
        name: list(value) if isinstance(value, tuple) else value for name, value in found.items()
    }
