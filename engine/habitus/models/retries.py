"""When a call is tried again, and after how long.

408, 409, 429, 5xx, dropped connections and bodies that cannot be read are tried again; other
answers are not. The wait grows exponentially with full jitter (a draw from zero to the bound),
so that calls that failed together do not come back together. A server that says how long to
wait is believed, up to a bound.

The module knows nothing of connections; whoever sends asks it.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from email.utils import parsedate_to_datetime

CONGESTION = frozenset({429, 503, 529})
_SECONDS = re.compile(r"\d{1,9}(?:\.\d{1,9})?")
_TOO_LONG = 1e9


@dataclass(frozen=True, slots=True)
class RetryPolicy:
    """How often and how patiently.

    ``retries`` counts tries after the first. ``first`` and ``longest`` bound the backoff,
    ``longest_told`` what a server may ask for; all in seconds.
    """

    retries: int = 6
    first: float = 0.5
    longest: float = 30.0
    longest_told: float = 120.0

    def backoff(self, tries: int, draw: float) -> float:
        """Seconds to wait after ``tries`` failed tries; ``draw`` is uniform in [0, 1)."""
        return draw * min(self.longest, self.first * 2.0 ** min(tries - 1, 30))

    def told(self, headers: Mapping[str, str], wall: float) -> float | None:
        """Seconds that a server asks to wait, bounded; None when it does not ask.

        ``wall`` is the time now, in seconds since 1970, for a Retry-After that is a date.
        """
        seconds = _milliseconds(headers.get("retry-after-ms", ""))
        if seconds is None:
            seconds = _seconds(headers.get("retry-after", ""), wall)
        return None if seconds is None else min(seconds, self.longest_told)


def retryable(status: int, headers: Mapping[str, str]) -> bool:
    """Whether an HTTP status is worth another try. ``x-should-retry`` of a server decides."""
    said = headers.get("x-should-retry")
    if said in {"true", "false"}:
        return said == "true"
    return status in {408, 409, 429} or status >= 500


def _milliseconds(value: str) -> float | None:
    return float(value) / 1000 if _SECONDS.fullmatch(value) else None


def _seconds(value: str, wall: float) -> float | None:
    """Seconds from a Retry-After header: a number or an HTTP date."""
    value = value.strip()  # float() strips less
    if _SECONDS.fullmatch(value):
        return float(value)
    try:
        return min(max(0.0, parsedate_to_datetime(value).timestamp() - wall), _TOO_LONG)
    except (ValueError, TypeError, OverflowError):
        return None
