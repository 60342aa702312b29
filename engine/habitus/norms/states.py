"""The state of a norm: follow, avoid or neutral, and how often each is to be expected.

A person takes a stance on every value, +1 or -1. A norm's state is the sign of the mean of the
stances on its values (CCBench, arXiv 2607.05405): +1 follow, -1 avoid, 0 neutral. The mean is 0
exactly when the sum is, so integers are summed and nothing is rounded.

When stances are independent, the state of a norm depends on its own values only. The mean number
of norms in a state is the sum over norms of its probability, whatever values they share, so no
assignment has to be enumerated.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal, NamedTuple

from habitus.errors import UsageError
from habitus.norms.culture import Culture, Norm
from habitus.records import NormState

Stances = Mapping[str, Literal[-1, 1]]
Priors = Mapping[str, float]


class StateShares(NamedTuple):
    """Probabilities of the three states of a norm, or mean counts over the norms of a culture."""

    follow: float
    avoid: float
    neutral: float


def norm_state(norm: Norm, stances: Stances) -> NormState:
    """The state of a norm: the sign of the sum of the stances on its values."""
    total = sum(stances[value] for value in norm.values)
    if total == 0:
        return 0
    return 1 if total > 0 else -1


def norm_states(culture: Culture, stances: Stances) -> dict[str, NormState]:
    """Norm id to state for every norm, in the order of the file."""
    return {norm.id: norm_state(norm, stances) for norm in culture.norms}


def state_shares(norm: Norm, priors: Priors | None = None) -> StateShares:
    """The probability of each state of a norm, with independent stances.

    Args:
        norm: the norm.
        priors: probability of +1 by value id; 1/2 for a value that is not named.
    """
    sums = {0: 1.0}
    for value in norm.values:
        sums = _one_more(sums, (priors or {}).get(value, 0.5))
    return StateShares(
        follow=sum(p for total, p in sums.items() if total > 0),
        avoid=sum(p for total, p in sums.items() if total < 0),
        neutral=sums.get(0, 0.0),
    )


def exact_counts(culture: Culture, priors: Priors | None = None) -> StateShares:
    """The exact mean number of norms in each state over all assignments of stances.

    Without priors every assignment is equally likely, and the result is exact to the last bit
    for norms with up to 50 values. The time is linear in the number of norms.

    Raises:
        UsageError: a prior for an unknown value or outside [0, 1].
    """
    check_priors(culture, priors or {})
    shares = [state_shares(norm, priors) for norm in culture.norms]
    return StateShares(*map(sum, zip(*shares, strict=True)))


def check_priors(culture: Culture, priors: Priors) -> None:
    """Refuse priors that name no value of the culture or are no probability.

    Raises:
        UsageError: with the values there are.
    """
    for value, p in priors.items():
        if value not in culture.values:
            known = ", ".join(culture.values)
            raise UsageError(f"{culture.culture} has no value {value!r}; it has {known}")
        if not 0 <= p <= 1:
            raise UsageError(f"the prior of {value} is {p}, and a probability lies between 0 and 1")


def _one_more(sums: Mapping[int, float], p: float) -> dict[int, float]:
    """The distribution of a sum after one more stance, +1 with probability ``p``."""
    after: dict[int, float] = {}
    for total, share in sums.items():
        after[total + 1] = after.get(total + 1, 0.0) + share * p
        after[total - 1] = after.get(total - 1, 0.0) + share * (1 - p)
    return after
