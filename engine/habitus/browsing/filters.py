"""Which items are shown: by culture, topic, setting, target, state, verdict, outcome and more.

    Filter(setting="hist", verdict="not met").as_pairs()
    Filter.parse(["culture=maori", "targets-disagree=yes"])

All that is asked of a verdict (setting, target, state, verdict, outcome, disagreement) must hold of
one and the same verdict: ``state=avoid verdict=met`` finds responses that meet an item of a norm
that the persona avoids. The filter knows what it asks for, not how that is found.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, fields, replace
from typing import Self

from habitus.browsing.facts import Fact, Facts, contested, judged
from habitus.errors import UsageError
from habitus.records import Outcome

YES = "yes"
SESSION_WORDS = ("accepted", "flagged", "rejected", "undecided")
VERDICT_WORDS = ("met", "not met", "not judged")


@dataclass(frozen=True, slots=True)
class Filter:
    """What is wanted; "" wants anything.

    ``session`` is what the filter decided of an attempt, ``label`` one of a judge as
    ``judge=label`` or ``judge.variant=label``.
    """

    culture: str = ""
    topic: str = ""
    setting: str = ""
    target: str = ""
    state: str = ""
    verdict: str = ""
    outcome: str = ""
    session: str = ""
    label: str = ""
    targets_disagree: str = ""
    evaluators_disagree: str = ""
    marked: str = ""

    @classmethod
    def parse(cls, given: Iterable[str]) -> Self:
        """A filter from ``KEY=VALUE`` pairs.

        Raises:
            UsageError: a key that there is not, or no value that the key can have.
        """
        found = cls()
        for text in given:
            key, equals, value = text.partition("=")
            name = key.strip().replace("-", "_")
            if not equals or not value.strip() or name not in NAMES:
                known = ", ".join(sorted(name.replace("_", "-") for name in NAMES))
                raise UsageError(f"--filter {text}: write KEY=VALUE; keys are {known}")
            known_values = VALUES.get(name, ())
            if known_values and value.strip() not in known_values:
                raise UsageError(f"--filter {text}: values are {', '.join(known_values)}")
            found = replace(found, **{name: value.strip()})
        return found

    def as_pairs(self) -> tuple[tuple[str, str], ...]:
        """What is asked for, as names and values."""
        given = ((name, getattr(self, name)) for name in NAMES)
        return tuple((name.replace("_", " "), value) for name, value in given if value)

    @property
    def of_verdicts(self) -> bool:
        """Whether verdicts or labels must be read to answer it."""
        asked = (self.state, self.verdict, self.label)
        return any(asked) or YES in {self.targets_disagree, self.evaluators_disagree}

    def heeded_by(self, view: str) -> bool:
        """Whether a view knows of all that is asked for."""
        return {name for name in NAMES if getattr(self, name)} <= HEEDED[view]

    def wants(self, fact: Fact, facts: Facts) -> bool:
        """Whether one verdict is as asked."""
        said = f"{fact.about}={fact.said}"
        return (
            self.wants_answer(fact.target, fact.setting)
            and self.state in {"", fact.state}
            and self.verdict in {"", fact.said or "not judged"}
            and self.outcome in {"", fact.outcome}
            and self.label in {"", said}
            and (self.targets_disagree != YES or contested(fact) in facts.targets)
            and (self.evaluators_disagree != YES or judged(fact) in facts.evaluators)
        )

    def wants_answer(self, target: str, setting: str) -> bool:
        """Whether a target and a setting are as asked."""
        return self.target in {"", target} and self.setting in {"", setting}

    def wants_marked(self, ids: Collection[str], marked: Collection[str]) -> bool:
        """Whether items are marked as asked; ``no`` finds those that are not."""
        if not self.marked:
            return True
        return any(name in marked for name in ids) == (self.marked == YES)


NAMES = tuple(field.name for field in fields(Filter))
#: The values of fields that have the same ones in every run.
VALUES: Mapping[str, tuple[str, ...]] = {
    "state": ("follow", "avoid"),
    "verdict": VERDICT_WORDS,
    "outcome": tuple(str(outcome) for outcome in Outcome),
    "session": SESSION_WORDS,
    "targets_disagree": (YES,),
    "evaluators_disagree": (YES,),
    "marked": (YES, "no"),
}
_ANSWERS = {"culture", "topic", "setting", "target", "outcome", "marked"}
_ANSWERS |= {"targets_disagree", "evaluators_disagree"}
#: The fields that each view knows.
HEEDED: Mapping[str, frozenset[str]] = {
    "transcripts": frozenset({"culture", "session", "outcome", "marked"}),
    "responses": frozenset(_ANSWERS | {"state", "verdict"}),
    "judges": frozenset(_ANSWERS | {"label"}),
}
