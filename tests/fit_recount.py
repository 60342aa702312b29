"""One fit of the analysis counted again: who is judged, what stands against a number, and the number.

It knows nothing of the engine, and follows ``docs/analysis.md``.
"""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import combinations
from typing import Any

from gee_recount import Solved, chance, combined, quantile, two_sided

Row = dict[str, Any]
Labelled = tuple[str, str, tuple[int, ...]]  # cluster, level, labels
IDENTICAL, FLAT = "identical labels in every cluster", "the labels do not vary between clusters"
NOBODY = "nobody asked"


class Fit:
    """The records of one characteristic or pair in one subset."""

    def __init__(
        self, file: Mapping[str, Any], levels: Sequence[str], compare: Mapping[str, Any]
    ) -> None:
        self.file, self.levels, self.compare = file, levels, compare

    def records(
        self, rows: Sequence[Row], names: tuple[str, ...]
    ) -> tuple[list[Row], list[Row], bool]:
        """Within levels, between them, and whether rows were taken as independent."""
        used, missing = self._used(rows, names)
        reasons = {
            x: next(self._reasons([r for r in used if r[1] == x], len(names)), "")
            for x in self.levels
        }
        if len(names) > 1 and self.file["threshold"]["rows"] == "subset" and used:
            few = self._few([r[2] for r in used])
            reasons = {x: few or reason for x, reason in reasons.items()}
        good = [i for i, x in enumerate(self.levels) if not reasons[x]]
        solved = self._solve([r for r in used if self.levels.index(r[1]) in good], names)
        within = []
        for i, level in enumerate(self.levels):
            own = [r[2] for r in used if r[1] == level]
            record: Row = {"level": level, "rows": len(own), "missing": missing[level]}
            record |= _counts(own, names)
            if not reasons[level] and solved is not None:
                record |= self._within(solved, i, paired=len(names) > 1)
                reasons[level] = record.get("reason", "")
            within.append({**record, "reason": reasons[level]})
        between = []
        for a, b in combinations(range(len(self.levels)), 2):
            first, second = self.levels[b], self.levels[a]
            sizes = {
                "rows": within[a]["rows"] + within[b]["rows"],
                "missing": missing[first] + missing[second],
            }
            record = self._between(solved, (b, a), used, reasons, paired=len(names) > 1)
            between.append({"first": first, "second": second, **sizes, **record})
        return within, between, solved is not None and solved.fallback

    def _used(
        self, rows: Sequence[Row], names: tuple[str, ...]
    ) -> tuple[list[Labelled], Counter[str]]:
        """Cluster, level and labels of rows that have all labels; how many have not, by level."""
        asked = [(r, [r["labels"][n] for n in names]) for r in rows]
        asked = [(r, values) for r, values in asked if NOBODY not in values]
        level, cluster = self.compare["level"], self.compare["cluster"]
        judged = [(r["fields"], v) for r, v in asked if None not in v]
        if self.file["missing"]["common"]:
            wanted = {r["fields"][level] for r, _ in asked}
            seen: dict[str, set[str]] = defaultdict(set)
            for fields, _ in judged:
                seen[fields[cluster]].add(fields[level])
            judged = [(f, v) for f, v in judged if seen[f[cluster]] == wanted]
        missing = Counter(r["fields"][level] for r, _ in asked)
        missing.subtract(f[level] for f, _ in judged)
        return [(f[cluster], f[level], tuple(v)) for f, v in judged], missing

    def _reasons(self, rows: Sequence[Labelled], width: int) -> Iterator[str]:
        """What stands against a level, the first thing first."""
        least, values = self.file["threshold"], [v for _, _, v in rows]
        clusters = len({cluster for cluster, _, _ in rows})
        if not rows:
            yield "no rows with both labels" if width > 1 else "no rows with a label"
        if clusters < least["clusters"]:
            yield f"{_clusters(clusters)}; at least {least['clusters']} are needed"
        share = _share([v[0] for v in values])
        if width == 1:
            if share:
                yield f"{share} rows {'are cases' if share[0] == 'a' else 'is a case'}"
            return
        if share:
            yield f"the cause is in {share} rows"
        if least["rows"] == "level" and (few := self._few(values)):
            yield few
        for with_cause, word in ((0, "without"), (1, "with")):
            there = [(c, v[1]) for c, _, v in rows if v[0] == with_cause]
            if share := _share([effect for _, effect in there]):
                yield f"the effect is in {share} rows {word} the cause"
            n = len({c for c, _ in there})
            if n < least["cell_clusters"]:
                yield f"{_clusters(n)} {word} the cause; at least {least['cell_clusters']} are needed"

    def _few(self, values: Sequence[tuple[int, ...]]) -> str:
        least = self.file["threshold"]["cases"]
        counts = (
            (sum(v[0] for v in values), "the cause"),
            (sum(v[1] for v in values), "the effect"),
            (sum(v[0] * v[1] for v in values), "both together"),
        )
        short = ", ".join(f"{n} of {what}" for n, what in counts if n < least)
        return f"fewer than {least} cases: {short}" if short else ""

    def _solve(self, rows: Sequence[Labelled], names: tuple[str, ...]) -> Solved | None:
        if not rows:
            return None
        gee, paired = self.file["gee"], len(names) > 1
        correlation = gee["pairs_correlation"] if paired else gee["correlation"]
        celled = [(c, self._cell(level, v), v[-1]) for c, level, v in rows]
        return Solved(
            celled,
            exchangeable=correlation == "exchangeable",
            bias=gee["covariance"] == "bias_reduced",
        )

    def _cell(self, level: str, values: tuple[int, ...]) -> int:
        place = self.levels.index(level)
        return 2 * place + values[0] if len(values) > 1 else place

    def _law(self, solved: Solved, cells: Iterable[int]) -> tuple[float, float]:
        """Degrees of freedom, and how many errors an interval reaches."""
        df = math.inf
        if self.file["gee"]["distribution"] == "student":
            df = min(solved.clusters[cell] for cell in cells) - 1
        return df, quantile(1 - self.file["significance"], df)

    def _within(self, solved: Solved, place: int, *, paired: bool) -> Row:
        weights = {2 * place + 1: 1.0, 2 * place: -1.0} if paired else {place: 1.0}
        df, reach = self._law(solved, weights)
        if paired:
            value, error = combined(solved, weights)
            if error is None:
                return {"reason": FLAT}
            low, high = max(value - reach * error, -1), min(value + reach * error, 1)
            return {"delta": value, "low": low, "high": high, "p": two_sided(value / error, df)}
        variance, odds = solved.variance(weights), solved.log_odds(place)
        if variance is None:
            return {"reason": FLAT}
        error = math.sqrt(variance)
        low, high = (float(chance(odds + sign * reach * error)) for sign in (-1, 1))
        p = two_sided(odds / error, df)
        return {"estimate": solved.chance(place), "low": low, "high": high, "p": p}

    def _between(
        self,
        solved: Solved | None,
        pair: tuple[int, int],
        used: Sequence[Labelled],
        reasons: Mapping[str, str],
        *,
        paired: bool,
    ) -> Row:
        for place in reversed(pair):
            if reasons[self.levels[place]]:
                return {"reason": f"{self.levels[place]}: {reasons[self.levels[place]]}"}
        own = [
            Counter((c, v) for c, level, v in used if level == self.levels[place]) for place in pair
        ]
        if own[0] == own[1]:
            return {"reason": IDENTICAL}
        assert solved is not None
        a, b = pair
        weights = {a: 1.0, b: -1.0}
        if paired:
            weights = {2 * a + 1: 1.0, 2 * a: -1.0, 2 * b + 1: -1.0, 2 * b: 1.0}
        value, error = combined(solved, weights)
        if error is None:
            return {"reason": FLAT}
        most, (df, reach) = (2 if paired else 1), self._law(solved, weights)
        found: Row = {
            "difference": value,
            "low": max(value - reach * error, -most),
            "high": min(value + reach * error, most),
        }
        if paired or self.file["gee"]["differences"] == "probability":
            return {**found, "p": two_sided(value / error, df), "reason": ""}
        variance = solved.variance({a: 1.0, b: -1.0})
        if variance is None:
            return {"reason": FLAT}
        z = (solved.log_odds(a) - solved.log_odds(b)) / math.sqrt(variance)
        return {**found, "p": two_sided(z, df), "reason": ""}


def _counts(values: Sequence[tuple[int, ...]], names: tuple[str, ...]) -> Row:
    if len(names) == 1:
        return {"cases": sum(v[0] for v in values)}
    return {
        "with_cause": sum(v[0] for v in values),
        "with_effect": sum(v[1] for v in values),
        "with_both": sum(v[0] and v[1] for v in values),
    }


def _clusters(count: int) -> str:
    return f"{count} cluster" + ("" if count == 1 else "s")


def _share(values: Sequence[int]) -> str:
    """``all 12`` or ``none of 12``; nothing where some are 1 and some 0."""
    if 0 < sum(values) < len(values):
        return ""
    return f"all {len(values)}" if sum(values) else f"none of {len(values)}"
