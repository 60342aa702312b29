"""How a label becomes 1 or 0: which labels of a judge's closed list count as the characteristic.

This is where three labels become two. The rule comes from the analysis file; the list is that of
the run, as the judge had it when it labelled.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from habitus.agents import plain_label
from habitus.errors import StoreError, UsageError
from habitus.framing.analysisfile import CharacteristicFile
from habitus.records import Label


@dataclass(frozen=True, slots=True)
class Coding:
    """The closed list of a characteristic, and what of it is 1.

    ``ones`` and ``zeros`` are labels as the judge spells them, ``present`` those that the judge
    itself counts.
    """

    ones: tuple[str, ...]
    zeros: tuple[str, ...]
    present: tuple[str, ...] = ()

    @classmethod
    def of(cls, rule: CharacteristicFile, labels: Sequence[str], present: Sequence[str]) -> Coding:
        """The coding of a characteristic for a judge with these labels.

        Raises:
            UsageError: the rule names a label that the judge did not have.
        """
        chosen = set(map(plain_label, rule.labels or present))
        unknown = chosen - set(map(plain_label, labels))
        if unknown:
            raise UsageError(
                f"the analysis codes {', '.join(sorted(unknown))} of {rule.id!r}; in this run the "
                f"judge had the labels {', '.join(labels)}"
            )
        ones = tuple(x for x in labels if (plain_label(x) in chosen) != rule.violates)
        return cls(ones, tuple(x for x in labels if x not in ones), tuple(present))

    def value(self, label: str) -> int | None:
        """1 or 0; None where the label is not of the list."""
        plain = plain_label(label)
        if any(plain == plain_label(one) for one in self.ones):
            return 1
        return 0 if any(plain == plain_label(zero) for zero in self.zeros) else None

    def checked(self, label: Label) -> int:
        """The value of a stored label that was read.

        Raises:
            StoreError: the label is not of the list, or says otherwise of itself than the list.
        """
        value = self.value(label.label or "")
        if value is None:
            known = ", ".join((*self.ones, *self.zeros))
            raise StoreError(
                f"label {label.id!r} is {label.label!r}; the judge's labels are {known}"
            )
        present = plain_label(label.label or "") in set(map(plain_label, self.present))
        if label.present is not None and label.present != present:
            raise StoreError(
                f"label {label.id!r} is {label.label!r} and says present: {label.present}; the "
                f"judge's list says {present}"
            )
        return value

    def __str__(self) -> str:
        ones, zeros = (", ".join(labels) or "none" for labels in (self.ones, self.zeros))
        return f"1 = {ones}; 0 = {zeros}"
