"""Options that cap what a run may spend, and the command that goes on with a higher cap."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Annotated

import typer

from habitus.errors import UsageError

if TYPE_CHECKING:
    from habitus.models import Caps, ModelEntry
    from habitus.models.spending import Reached

CALLS, TOKENS, COST = "--max-calls", "--max-total-tokens", "--max-cost"
MOST_CAP = 2**53 - 1  # numbers up to here are kept exactly
_AMOUNT = re.compile(r"(?:(?P<currency>[A-Z]{3})=)?(?P<amount>\d{1,15}(?:\.\d{1,15})?)")

MaxCallsOption = Annotated[
    int | None,
    typer.Option(CALLS, min=0, max=MOST_CAP, metavar="N", help="Most calls of the whole run."),
]
MaxTotalTokensOption = Annotated[
    int | None,
    typer.Option(
        TOKENS,
        min=0,
        max=MOST_CAP,
        metavar="N",
        help="Most tokens of the whole run, read and written.",
    ),
]
MaxCostOption = Annotated[
    list[str] | None,
    typer.Option(COST, metavar="[CURRENCY=]N", help="Most money of the whole run; repeatable."),
]


def caps_of(
    calls: int | None,
    tokens: int | None,
    cost: Sequence[str] | None,
    entries: Mapping[str, ModelEntry],
    base: Caps | None = None,
) -> Caps:
    """Caps as options give them; what they leave out is as in ``base``.

    Raises:
        UsageError: an amount cannot be read, or its currency is not clear.
    """
    from habitus.models import Caps

    base = base or Caps()
    money = dict(_money(text, entries) for text in cost or ())
    return base.model_copy(
        update={
            "calls": base.calls if calls is None else calls,
            "tokens": base.tokens if tokens is None else tokens,
            "cost": {**base.cost, **money},
        }
    )


def _money(text: str, entries: Mapping[str, ModelEntry]) -> tuple[str, float]:
    found = _AMOUNT.fullmatch(text.strip())
    if found is None:
        raise UsageError(f"{COST} {text}: write an amount, such as 20 or EUR=20")
    known = sorted({entry.price.currency for entry in entries.values() if entry.price})
    if found["currency"] is None and len(known) > 1:
        raise UsageError(
            f"{COST} {text}: prices are in {', '.join(known)}; write {known[0]}={text}"
        )
    currency = found["currency"] or (known[0] if known else "USD")
    return currency, float(found["amount"])


def raised(command: Sequence[str], reached: Reached) -> str:
    """A command with the cap that it reached twice as high."""
    most = max(2 * reached.limit, reached.spent + reached.needed)
    option = {"calls": CALLS, "tokens": TOKENS}.get(reached.cap, COST)
    money = option == COST
    value = f"{reached.cap}={most:.12g}" if money else f"{most:.0f}"
    kept = [*_without(command, option, reached.cap if money else "")]
    return shlex.join([*kept, option, value])


def _without(command: Sequence[str], option: str, currency: str) -> Iterator[str]:
    """A command without an option; one in another currency stays."""
    words = iter(command)
    for word in words:
        name, _, value = word.partition("=")
        if name != option:
            yield word
            continue
        value = value or next(words, "")
        if value.partition("=")[0] != currency and "=" in value:
            yield f"{option}={value}"
