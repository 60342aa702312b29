"""Caps on what a run may spend, kept to while many requests are in flight.

    budget = Budget(Caps(tokens=1_000_000), entries)
    model = Recorded(open_model(name, entry), identity, log, purse=budget.purse(name))
    await model.complete(request)           # NotAskedError when the cap is reached

Before a call the most that it can take is set aside, and after it what it took is charged. A call
is made only if all that is charged and set aside stays within the cap, so what is spent never
exceeds it as long as a server keeps to what the bound rests on: no more than one token a byte of
text (true of every tokenizer that falls back on bytes), and no more than ``max_tokens`` written. A
server that does not overshoots by what it wrote beyond, in the calls that were in flight.

A call that does not fit waits for those in flight, which take less than was set aside. When none is
left and it still does not fit, the cap is reached: from then on nothing is asked any more. Answers
from the store do not come here and cost nothing. The module knows neither runs nor what is asked.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Annotated

from pydantic import Field

from habitus.content import ContentModel
from habitus.errors import HabitusError, UsageError
from habitus.models.controls import most_added
from habitus.models.entry import ModelEntry, Money, Price
from habitus.records import Outcome, Reply, Request, Usage

Currency = Annotated[str, Field(pattern=r"^[A-Z]{3}$")]
Cap = Annotated[int, Field(ge=0, lt=2**53)]

MESSAGE_TOKENS = 16  # most that a chat template adds to a message
TEMPLATE_TOKENS = 256  # most that it adds to a request
UNKNOWN_ANSWER = 32_768  # tokens set aside for an answer that nothing limits
_UNIT = 10**9  # money is counted in billionths, so that sums are exact
#: Without numbers of the server, a call that ended so is charged no tokens: it brought no answer.
_NO_ANSWER = frozenset({Outcome.ERROR, Outcome.OVERFLOW, Outcome.REFUSED})
#: Backends that somebody else bills. Without a price these cannot be held to an amount of money.
_BILLED = frozenset({"openai"})


class NotAskedError(HabitusError):
    """A call that was not made, as a cap is reached; what needs its answer is left out."""

    exit_code = 1


class Caps(ContentModel):
    """The most that a run may spend, all its sessions together; what is not set has no cap."""

    calls: Cap | None = Field(default=None, description="most calls of the whole run")
    tokens: Cap | None = Field(default=None, description="most tokens, read and written")
    cost: dict[Currency, Money] = Field(
        default_factory=dict, description="most money, by currency: {USD: 20}"
    )

    @property
    def limits(self) -> dict[str, int]:
        """Each cap under the name that amounts are kept by; money in billionths."""
        counts = {"calls": self.calls, "tokens": self.tokens}
        found = {name: count for name, count in counts.items() if count is not None}
        return found | {currency: _units(most) for currency, most in self.cost.items()}


@dataclass(frozen=True, slots=True)
class Reached:
    """The cap that ended a run: what was spent of it, and what the next call could have taken.

    ``cap`` is ``calls``, ``tokens`` or a currency.
    """

    cap: str
    limit: float
    spent: float
    needed: float

    def __str__(self) -> str:
        if self.cap == "calls":
            return f"the cap of {self.limit:,.0f} calls is reached: {self.spent:,.0f} were made"
        if self.cap == "tokens":
            return (
                f"the cap of {self.limit:,.0f} tokens is reached: {self.spent:,.0f} were used, "
                f"and the next call could take {self.needed:,.0f}"
            )
        return (
            f"the cap of {self.limit:g} {self.cap} is reached: {self.spent:.6g} {self.cap} were "
            f"spent, and the next call could cost {self.needed:.6g}"
        )


@dataclass(frozen=True, slots=True)
class Amount:
    """What some calls take: ``money`` is in billionths of ``currency``."""

    calls: int = 1
    tokens: int = 0
    money: int = 0
    currency: str = ""

    def of(self, cap: str) -> int:
        """How much of it counts against a cap."""
        if cap == "calls":
            return self.calls
        if cap == "tokens":
            return self.tokens
        return self.money if cap == self.currency else 0


@dataclass(frozen=True, slots=True)
class Purse:
    """The budget as one model uses it."""

    budget: Budget
    price: Price | None
    context_length: int | None

    async def reserve(self, request: Request) -> Amount:
        """Set the most aside that a request can take, when there is room for it.

        Raises:
            NotAskedError: the cap is reached.
        """
        texts = (message.text for message in request.all_messages)
        schema = len(request.schema.canonical) if request.schema else 0
        most = self.most(texts, schema, request.sampling.max_tokens)
        await self.budget.reserve(most)
        return most

    def most(self, texts: Iterable[str], more: int, max_tokens: int | None) -> Amount:
        """The bound of one call: ``more`` are bytes beside its messages."""
        prompt = TEMPLATE_TOKENS + more
        for text in texts:
            prompt += MESSAGE_TOKENS + len(text.encode("utf-8", "surrogatepass")) + most_added(text)
        written = max_tokens or self.context_length or UNKNOWN_ANSWER
        return self.charge(Usage(prompt, written, 0), 1)

    def settle(self, held: Amount, reply: Reply | None) -> None:
        """Give back what was set aside and charge what the call took; None: it was not made."""
        self.budget.settle(held, None if reply is None else self._took(held, reply))

    def charge(self, usage: Usage, calls: int) -> Amount:
        """What calls with known numbers of tokens take together."""
        tokens = (usage.prompt or 0) + (usage.completion or 0)
        if self.price is None:
            return Amount(calls, tokens)
        money = _units(self.price.cost(usage) or 0.0)
        return Amount(calls, tokens, money, self.price.currency)

    def _took(self, held: Amount, reply: Reply) -> Amount:
        usage = reply.usage
        if usage.prompt is not None and usage.completion is not None:
            return self.charge(usage, 1)
        return Amount() if reply.outcome in _NO_ANSWER else held


class Budget:
    """What the models of a run may still spend together."""

    def __init__(self, caps: Caps, entries: Mapping[str, ModelEntry]) -> None:
        """Caps, and the models that are held to them; ``check_prices`` says whether they can be."""
        self.reached: Reached | None = None
        self._limits = caps.limits
        self._entries = entries
        self._spent = dict.fromkeys(self._limits, 0)
        self._held = dict.fromkeys(self._limits, 0)
        self._in_flight = 0
        self._queue: deque[tuple[Amount, asyncio.Future[bool]]] = deque()

    def purse(self, name: str) -> Purse:
        """The budget as a model of some name uses it."""
        entry = self._entries[name]
        return Purse(self, entry.price, entry.context_length)

    def spent(self) -> dict[str, float]:
        """What is charged, by cap; money in its currency."""
        return {cap: _shown(cap, amount) for cap, amount in self._spent.items()}

    def most(self) -> dict[str, float]:
        """The caps; money in its currency."""
        return {cap: _shown(cap, amount) for cap, amount in self._limits.items()}

    def charge(self, took: Amount) -> None:
        """Charge what was spent before."""
        for cap in self._limits:
            self._spent[cap] += took.of(cap)

    async def reserve(self, most: Amount) -> None:
        """Wait until an amount fits, first come first served, and set it aside.

        Raises:
            NotAskedError: it does not fit, and nothing is in flight that could leave room.
        """
        if self.reached is None and not self._queue and self._take(most):
            return
        if self.reached is None:
            waiting = asyncio.get_running_loop().create_future()
            self._queue.append((most, waiting))
            self._serve()
            if await self._granted(most, waiting):
                return
        raise NotAskedError(str(self.reached))

    def settle(self, held: Amount, took: Amount | None) -> None:
        """Give back what was set aside, and charge what was really taken."""
        self._in_flight -= 1
        for cap in self._limits:
            self._held[cap] -= held.of(cap)
        if took is not None:
            self.charge(took)
        self._serve()

    async def _granted(self, most: Amount, waiting: asyncio.Future[bool]) -> bool:
        try:
            return await waiting
        except asyncio.CancelledError:
            if waiting.done() and not waiting.cancelled() and waiting.result():
                self.settle(most, None)  # granted in the same moment as the cancellation
            else:
                self._serve()  # those behind it need not wait for it any more
            raise

    def _take(self, most: Amount) -> bool:
        if any(self._short(cap, most) for cap in self._limits):
            return False
        self._in_flight += 1
        for cap in self._limits:
            self._held[cap] += most.of(cap)
        return True

    def _short(self, cap: str, most: Amount) -> bool:
        """Whether an amount does not fit under a cap. What takes nothing of it always does."""
        needed = most.of(cap)
        return needed > 0 and self._spent[cap] + self._held[cap] + needed > self._limits[cap]

    def _serve(self) -> None:
        while self._queue:
            most, waiting = self._queue[0]
            if not waiting.done():
                if self.reached is None and not self._take(most):
                    if self._in_flight:
                        return
                    self._close(most)
                waiting.set_result(self.reached is None)
            self._queue.popleft()

    def _close(self, most: Amount) -> None:
        cap = next(cap for cap in self._limits if self._short(cap, most))
        numbers = (self._limits[cap], self._spent[cap], most.of(cap))
        self.reached = Reached(cap, *(_shown(cap, number) for number in numbers))


def check_prices(caps: Caps, entries: Mapping[str, ModelEntry]) -> None:
    """Refuse a cap on money that some model could not be held to.

    Raises:
        UsageError: with the models and what to do.
    """
    if not caps.cost:
        return
    unknown = [n for n, e in entries.items() if e.price is None and is_billed(e)]
    if unknown:
        raise UsageError(
            f"money is capped, but no price is known for {', '.join(unknown)}: give the entry a "
            "price, or list it in experiments/prices/ (a server of your own: "
            "price: {input: 0, output: 0}); or cap tokens instead"
        )
    for name, entry in entries.items():
        price = entry.price
        if price is not None and price.currency not in caps.cost and (price.input or price.output):
            raise UsageError(
                f"money is capped in {', '.join(caps.cost)}, but {name} is priced in "
                f"{price.currency}: cap that as well"
            )


def is_billed(entry: ModelEntry) -> bool:
    """Whether somebody else may bill for a model, so that without a price its cost is not known."""
    return entry.backend in _BILLED


def answered_unseen(reply: Reply) -> bool:
    """Whether a call brought an answer of which the server did not count the tokens."""
    counted = reply.usage.prompt is not None and reply.usage.completion is not None
    return not counted and reply.outcome not in _NO_ANSWER


def _units(money: float) -> int:
    return round(money * _UNIT)


def _shown(cap: str, amount: int) -> float:
    return amount if cap in {"calls", "tokens"} else amount / _UNIT
