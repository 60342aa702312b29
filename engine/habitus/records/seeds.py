"""Every draw has a generator of its own, derived from (seed, purpose, record id).

So adding a persona or a query changes nothing else, and the order of work changes nothing.
"""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import numpy as np

SEED_BITS = 31  # backends take a signed 32-bit seed


def derive_seed(seed: int, purpose: str, record: str, *numbers: int) -> int:
    """A seed of 31 bits for one purpose and record; ``numbers`` are repeat and attempt."""
    return _digest(seed, purpose, record, numbers) >> (64 - SEED_BITS)


def generator(seed: int, purpose: str, record: str = "", *numbers: int) -> np.random.Generator:
    """A numpy generator for one purpose and record."""
    import numpy as np  # noqa: PLC0415  (records are imported by every command)

    return np.random.Generator(np.random.PCG64(_digest(seed, purpose, record, numbers)))


def uniform(seed: int, purpose: str, record: str = "", *numbers: int) -> float:
    """One number in [0, 1), without the cost of a generator."""
    return (_digest(seed, purpose, record, numbers) >> 11) / float(1 << 53)


def _digest(seed: int, purpose: str, record: str, numbers: tuple[int, ...]) -> int:
    text = "\0".join([str(seed), purpose, record, *map(str, numbers)])
    return int.from_bytes(
        hashlib.blake2b(text.encode("utf-8", "surrogatepass"), digest_size=8).digest(), "big"
    )
