"""Drawing distinct stances on the values of a culture.

``random`` draws each stance on its own, as in CCBench (arXiv 2607.05405). ``balanced`` makes a
fold-over design: personas come in mirror pairs that differ in every stance, so each norm is
followed as often as it is avoided; the pairs are chosen so that stances on different values are
as uncorrelated as their number allows, and that every norm is followed by somebody.

Both are deterministic for a seed, and depend on the culture's own seed only (the caller derives
it). The first personas of a random draw do not change when more are asked for.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from habitus.errors import UsageError
from habitus.norms import Culture, Priors
from habitus.norms.states import check_priors

if TYPE_CHECKING:
    import numpy as np

    Signs = np.ndarray[Any, np.dtype[np.int8]]
    Draw = Callable[[Culture, int, np.random.Generator, Priors | None], Signs]

_BATCH = 4096
_MOST_DRAWS = 200_000
_LINKED = 4  # weight of a norm that rests on both values of a pair; any pair has 1
_UNCOVERED = 1_000_000_000  # weighs more than all correlations of a design together
_SWEEPS = 12
_MOST_FLIPS = 200_000


def random(
    culture: Culture, n: int, rng: np.random.Generator, priors: Priors | None = None
) -> Signs:
    """Distinct assignments, each drawn from the priors and kept if it is new.

    Args:
        culture: its values are the columns, in the order of the file.
        n: number of assignments.
        rng: the generator to draw from.
        priors: probability of +1 by value; 1/2 where not named.

    Returns:
        Array of shape (n, values) with entries +1 and -1; no two rows are equal.

    Raises:
        UsageError: there are fewer than ``n`` assignments, or the priors make too few likely.
    """
    import numpy as np  # noqa: PLC0415  (not on the way of commands that draw nothing)

    check_priors(culture, priors or {})
    _enough(culture, n)
    chance = np.array([(priors or {}).get(value, 0.5) for value in culture.values])
    found: dict[bytes, Signs] = {}
    most = max(_MOST_DRAWS, 50 * n)  # without priors, 50 n draws miss none of 2**k assignments
    for _ in range(0, most, _BATCH):
        rows = np.where(rng.random((_BATCH, len(chance))) < chance, 1, -1).astype(np.int8)
        for row in rows:
            found.setdefault(row.tobytes(), row)
            if len(found) >= n:
                return np.array(list(found.values())[:n])
    raise UsageError(
        f"{culture.culture}: {most:,} draws from these priors gave only {len(found):,} different "
        f"personas of {n:,}; ask for fewer, or choose priors nearer to 1/2"
    )


def balanced(
    culture: Culture, n: int, rng: np.random.Generator, priors: Priors | None = None
) -> Signs:
    """Mirror pairs: every norm is followed and avoided equally often, up to one for odd ``n``.

    Arguments, result and errors are those of :func:`random`, but priors are refused: they ask
    for an imbalance. Row 2i+1 is the mirror of row 2i.
    """
    import numpy as np  # noqa: PLC0415

    if priors:
        raise UsageError("the balanced sampler takes no priors; use --sampler random")
    _enough(culture, n)
    half = (n + 1) // 2
    design = _Design(culture, _half_space(len(culture.values), half, rng), n // 2)
    design.improve()
    pairs = np.stack([design.signs, -design.signs], axis=1)
    return np.asarray(pairs.reshape(2 * half, -1)[:n], dtype=np.int8)


SAMPLERS: dict[str, Draw] = {"random": random, "balanced": balanced}


def _enough(culture: Culture, n: int) -> None:
    k = len(culture.values)
    if n < 1:
        raise UsageError(f"{n} personas asked for; at least 1 is needed")
    if n > 2**k:
        raise UsageError(
            f"{culture.culture} has {k} values and so {2**k:,} different personas; {n:,} are asked for"
        )


def _half_space(k: int, rows: int, rng: np.random.Generator) -> Signs:
    """Distinct rows of signs that begin with +1, so that none is the mirror of another."""
    import numpy as np  # noqa: PLC0415

    found: dict[bytes, Signs] = {}
    while len(found) < rows:
        row = np.where(rng.random(k) < 0.5, 1, -1).astype(np.int8)
        row *= row[0]
        found.setdefault(row.tobytes(), row)
    return np.array(list(found.values()))


class _Design:
    """Half a fold-over design, improved one stance at a time.

    The cost is a weighted sum of the squared inner products of its columns (a pair of values
    counts more for every norm that rests on both), plus a heavy charge for every norm that is
    neutral in all rows with a mirror: such a norm would not be both followed and avoided.
    """

    def __init__(self, culture: Culture, signs: Signs, mirrored: int) -> None:
        import numpy as np  # noqa: PLC0415

        self.signs = signs
        self.mirrored = mirrored
        index = {value: j for j, value in enumerate(culture.values)}
        self.members = np.zeros((len(culture.norms), len(index)), dtype=np.int64)
        for i, norm in enumerate(culture.norms):
            self.members[i, [index[value] for value in norm.values]] = 1
        wide = signs.astype(np.int64)
        self.inner = wide.T @ wide
        self.sums = wide @ self.members.T
        self.engaged = (self.sums[:mirrored] != 0).sum(axis=0)
        self.weights = 1 + _LINKED * (self.members.T @ self.members)
        self.rows = {row.tobytes() for row in signs}

    def improve(self) -> None:
        """Flip stances as long as the cost falls, within a bound on the work."""
        left = _MOST_FLIPS
        for _ in range(_SWEEPS):
            flips = [self._try(i, j) for i, j in self._cells(left)]
            left -= len(flips)
            if not any(flips):
                return

    def _cells(self, most: int) -> list[tuple[int, int]]:
        rows, columns = self.signs.shape
        # Column 0 stays +1: it keeps rows from being each other's mirrors.
        return [(i, j) for i in range(rows) for j in range(1, columns)][:most]

    def _try(self, i: int, j: int) -> bool:
        """Flip one stance if that lowers the cost and repeats no row."""
        row = self.signs[i].astype(int)
        inner = self.inner[j] - 2 * row[j] * row
        inner[j] = self.inner[j, j]
        sums = self.sums[i] - 2 * row[j] * self.members[:, j]
        engaged = self.engaged
        if i < self.mirrored:
            engaged = engaged - (self.sums[i] != 0) + (sums != 0)
        gain = int((self.weights[j] * (inner**2 - self.inner[j] ** 2)).sum())
        gain += _UNCOVERED * int((engaged == 0).sum() - (self.engaged == 0).sum())
        return gain < 0 and self._flip(i, j, inner, sums, engaged)

    def _flip(self, i: int, j: int, inner: Any, sums: Any, engaged: Any) -> bool:
        flipped = self.signs[i].copy()
        flipped[j] *= -1
        if flipped.tobytes() in self.rows:
            return False
        self.rows ^= {self.signs[i].tobytes(), flipped.tobytes()}
        self.signs[i] = flipped
        self.inner[j, :] = inner
        self.inner[:, j] = inner
        self.sums[i], self.engaged = sums, engaged
        return True
