"""How fast a run goes, what it has cost, and what is likely still to come.

Rates are those of the last minute. What is to come is told from calls: how many are expected, and
what those that were made have taken. It is a forecast ("about"), since stages differ.
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass

from habitus.models import ModelEntry, Recorded
from habitus.models.spending import is_billed
from habitus.records import Usage

_WINDOW = 60.0  # seconds that rates are taken over
_LEAST = 2.0  # seconds before there is a rate


@dataclass(frozen=True, slots=True)
class _Sample:
    at: float
    calls: int
    tokens: int


class Pace:
    """Reads the counters of models and says how it goes.

    Args:
        models: the models with their counters.
        entries: their entries, for prices.
        expected: calls that the whole run needs, as far as is known; 0 if not.
        clock: seconds.
    """

    def __init__(
        self,
        models: Mapping[str, Recorded],
        entries: Mapping[str, ModelEntry],
        expected: int,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._models = models
        self._entries = entries
        self._expected = expected
        self._clock = clock
        self._samples: deque[_Sample] = deque([_Sample(clock(), 0, 0)])

    def told(self) -> str:
        """All of it in one line."""
        self._sample()
        return "; ".join(self._parts())

    def _parts(self) -> Iterator[str]:
        first, last = self._samples[0], self._samples[-1]
        seconds = last.at - first.at
        calls = (last.calls - first.calls) / seconds if seconds >= _LEAST else 0.0
        tokens = (last.tokens - first.tokens) / seconds if seconds >= _LEAST else 0.0
        yield f"{last.calls:,} calls" + (f", {calls:,.1f} a second" if calls else "")
        if tokens:
            yield f"{tokens:,.0f} tokens written a second"
        counters = [model.counters for model in self._models.values()]
        prompt = sum(c.prompt for c in counters)
        if prompt:
            yield f"{sum(c.cached for c in counters) / prompt:.0%} of prompt tokens from cache"
        yield from self._money()
        yield from self._caps()
        left = self._left()
        if calls and left:
            yield f"about {span(left / calls)} left"

    def _left(self) -> int:
        """Calls that are still to be made."""
        there = sum(m.counters.calls + m.counters.hits for m in self._models.values())
        return max(0, self._expected - there)

    def _money(self) -> Iterator[str]:
        """What was spent in each currency, and what it may come to."""
        spent: dict[str, float] = {}
        unknown: list[str] = []
        for name, model in self._models.items():
            entry, count = self._entries.get(name), model.counters
            price = entry.price if entry else None
            if price is None:
                unknown += [name] if entry and is_billed(entry) and count.calls else []
                continue
            cost = price.cost(Usage(count.prompt, count.completion, count.cached)) or 0.0
            spent[price.currency] = spent.get(price.currency, 0.0) + cost
        made = sum(model.counters.calls for model in self._models.values())
        for currency, money in spent.items():
            told = f"{money:,.2f} {currency} spent"
            if made and self._left():
                told += f", about {money * (1 + self._left() / made):,.2f} in all"
            yield told
        if unknown:
            yield f"price unknown: {', '.join(unknown)}"

    def _caps(self) -> Iterator[str]:
        """What is spent of each cap, by all sessions of the run together."""
        budget = next((m.budget for m in self._models.values() if m.budget), None)
        if budget is None:
            return
        most = budget.most()
        told = [cap_told(cap, spent, most[cap]) for cap, spent in budget.spent().items()]
        yield f"cap: {', '.join(told)}"

    def _sample(self) -> None:
        counters = [model.counters for model in self._models.values()]
        calls = sum(c.calls for c in counters)
        written = sum(c.completion for c in counters)
        self._samples.append(_Sample(self._clock(), calls, written))
        while len(self._samples) > 2 and self._samples[1].at <= self._samples[-1].at - _WINDOW:
            self._samples.popleft()


def cap_told(cap: str, spent: float, most: float) -> str:
    """``54 of 100 calls``, ``1.20 of 20 USD``; small caps on money with more digits."""
    if cap in {"calls", "tokens"}:
        return f"{spent:,.0f} of {most:,.0f} {cap}"
    return f"{spent:,.{2 if most >= 1 else 4}f} of {most:,.12g} {cap}"


def span(seconds: float) -> str:
    """``40 s``, ``12 min``, ``3 h 20 min``."""
    if seconds < 90:
        return f"{seconds:.0f} s"
    minutes = round(seconds / 60)
    return f"{minutes} min" if minutes < 90 else f"{minutes // 60} h {minutes % 60} min"
