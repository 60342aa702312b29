"""The analysis of labels counted again, with its own estimator, from the files of a run.

It knows nothing of the engine: it reads ``records/items.jsonl``, ``records/labels.jsonl`` and an
analysis file, and follows ``docs/analysis.md``. Clusters that look alike are one pattern with a
count, and estimating equations are solved over patterns.
"""

from __future__ import annotations

import json
import math
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from itertools import combinations, pairwise
from pathlib import Path
from statistics import NormalDist
from typing import Any

import numpy as np
import numpy.typing as npt

Row = dict[str, Any]
Floats = npt.NDArray[np.float64]
Pattern = tuple[tuple[int, int], ...]  # cell and outcome of each row of a cluster
DEFAULTS: dict[str, dict[str, Any]] = {
    "gee": {
        "correlation": "exchangeable",
        "pairs_correlation": "independence",
        "covariance": "robust",
        "differences": "log_odds",
    },
    "fdr": {"family": "fit", "sides": "apart", "undefined": "left_out"},
    "threshold": {"cases": 10, "rows": "subset", "clusters": 10, "cell_clusters": 2},
    "missing": {"common": False},
    "compare": {"level": "target", "cluster": "group", "rows": "item", "names": {}},
}
IDENTICAL, FLAT = "identical labels in every cluster", "the labels do not vary between clusters"
NOBODY = "nobody asked"


# Rows


def rows_of(run: Path, analysis: Mapping[str, Any], compare: Mapping[str, Any]) -> list[Row]:
    """A row for each item, or item and norm: its fields, and 1, 0 or None by characteristic."""
    found: dict[tuple[str, str, str], tuple[str, bool]] = {}
    for label in _lines(run, "labels"):
        if label["outcome"] == "ok" and label["label"] is not None:
            key = (label["item"], label["judge"], label.get("variant", ""))
            assert key not in found
            found[key] = (label["label"], label["present"])
    rows = []
    for item in _lines(run, "items"):
        fields = {**item["fields"], "group": item["group"], "target": item["target"]}
        for row in _norms(fields) if compare["rows"] == "norm" else [fields]:
            coded = {c["id"]: _coded(c, row, item["id"], found) for c in analysis["characteristics"]}
            rows.append({"fields": row, "labels": coded})
    return rows


def _lines(run: Path, table: str) -> list[Row]:
    return [json.loads(line) for line in (run / f"records/{table}.jsonl").read_bytes().splitlines()]


def _norms(fields: Mapping[str, str]) -> list[dict[str, str]]:
    rows = []
    for key, state in fields.items():
        if key.startswith("state."):
            norm = key.removeprefix("state.")
            row = {**fields, "norm": norm, "state": state}
            rows.append(row | ({"met": fields[f"met.{norm}"]} if f"met.{norm}" in fields else {}))
    return rows


def _coded(
    rule: Mapping[str, Any],
    fields: Mapping[str, str],
    item: str,
    labels: Mapping[tuple[str, str, str], tuple[str, bool]],
) -> int | str | None:
    if "field" in rule:
        value = fields.get(rule["field"])
        if value is None:
            neutral = rule["field"] == "met" and fields.get("state") == "neutral"
            return NOBODY if neutral else None
        one = value in rule["labels"]
    else:
        given = labels.get((item, rule["judge"], rule.get("variant", "")))
        if given is None:
            return None
        wanted = {_plain(x) for x in rule.get("labels", ())}
        one = _plain(given[0]) in wanted if wanted else given[1]
    return int(one != rule.get("violates", False))


def _plain(label: str) -> str:
    return label.replace("_", " ").replace("-", " ").casefold()


# Estimating equations over patterns


class Solved:
    """Log-odds of cells, their covariance, and the correlation within a cluster."""

    def __init__(self, rows: Sequence[tuple[str, int, int]], exchangeable: bool, bias: bool):
        clusters: dict[str, list[tuple[int, int]]] = defaultdict(list)
        for cluster, cell, outcome in rows:
            clusters[cluster].append((cell, outcome))
        self.cells = sorted({cell for _, cell, _ in rows})
        place = {cell: i for i, cell in enumerate(self.cells)}
        counts = Counter(tuple(sorted(members)) for members in clusters.values())
        self.patterns = [
            (np.array([place[c] for c, _ in p]), np.array([float(y) for _, y in p]), float(n))
            for p, n in counts.items()
        ]
        self.size = len(rows)
        self.alpha = 0.0
        sums = np.zeros((2, len(self.cells)))
        for _, cell, outcome in rows:
            sums[:, place[cell]] += 1, outcome
        share = sums[1] / sums[0]
        self.beta: Floats = np.log(share / (1 - share))
        self.fallback = exchangeable and not (self._pairs() and self._iterate())
        if self.fallback or not exchangeable:
            self.alpha, self.beta = 0.0, np.log(share / (1 - share))
        self.covariance = self._sandwich(bias)

    def _pairs(self) -> float:
        return sum(n * len(c) * (len(c) - 1) / 2 for c, _, n in self.patterns)

    def _iterate(self) -> bool:
        """To a fixed point of both; false where the correlation is none that can be."""
        longest = max(len(cell) for cell, _, _ in self.patterns)
        for _ in range(500):
            self.alpha = self._moment()
            if not -1 / (longest - 1) + 1e-8 < self.alpha < 1 - 1e-8:
                return False
            score, bread, _ = self._parts(False)
            step = np.linalg.solve(bread, score)
            self.beta = self.beta + step
            if np.abs(step).max() < 1e-13:
                return True
        raise AssertionError("no fixed point")

    def _moment(self) -> float:
        p = len(self.cells)
        squares = products = 0.0
        for cell, y, n in self.patterns:
            mean = _chance(self.beta[cell])
            residual = (y - mean) / np.sqrt(mean * (1 - mean))
            own = float(residual @ residual)
            squares += n * own
            products += n * (float(residual.sum()) ** 2 - own) / 2
        with np.errstate(divide="ignore"):
            freedom = np.float64(self._pairs() - p)
            return float(products / (squares / (self.size - p)) / freedom)

    def _parts(self, bias: bool) -> tuple[Floats, Floats, Floats]:
        """Score, bread and meat."""
        p = len(self.cells)
        score, bread, meat = np.zeros(p), np.zeros((p, p)), np.zeros((p, p))
        made = []
        for cell, y, n in self.patterns:
            mean = _chance(self.beta[cell])
            root = np.sqrt(mean * (1 - mean))
            correlation = np.full((len(cell),) * 2, self.alpha)
            np.fill_diagonal(correlation, 1.0)
            inverse = np.linalg.inv(correlation) / np.outer(root, root)
            slope = np.eye(p)[cell] * (mean * (1 - mean))[:, None]
            bread += n * slope.T @ inverse @ slope
            made.append((slope, inverse, y - mean, n))
        for slope, inverse, residual, n in made:
            own = residual
            if bias:
                leverage = slope @ np.linalg.inv(bread) @ slope.T @ inverse
                own = np.linalg.inv(np.eye(len(residual)) - leverage) @ residual
            one = slope.T @ inverse @ own
            score += n * one
            meat += n * np.outer(one, one)
        return score, bread, meat

    def _sandwich(self, bias: bool) -> Floats:
        _, bread, meat = self._parts(bias)
        inverse = np.linalg.inv(bread)
        found: Floats = inverse @ meat @ inverse
        return found

    def variance(self, slopes: Mapping[int, float]) -> float | None:
        """Of a weighted sum of log-odds; None where it is nothing but rounding."""
        weight = np.zeros(len(self.cells))
        for cell, slope in slopes.items():
            weight[self.cells.index(cell)] = slope
        value = float(weight @ self.covariance @ weight)
        parts = float(np.abs(np.outer(weight, weight) * self.covariance).sum())
        return value if value > 1e-11 * parts else None

    def chance(self, cell: int) -> float:
        return float(_chance(self.beta[self.cells.index(cell)]))

    def log_odds(self, cell: int) -> float:
        return float(self.beta[self.cells.index(cell)])


def _chance(log_odds: Any) -> Any:
    return 1 / (1 + np.exp(-log_odds))


def _p(z: float) -> float:
    return 2 * NormalDist().cdf(-abs(z))


# One fit


class Fit:
    """The records of one characteristic or pair in one subset."""

    def __init__(self, file: Mapping[str, Any], levels: Sequence[str], compare: Mapping[str, Any]):
        self.file, self.levels, self.compare = file, levels, compare
        self.z = NormalDist().inv_cdf(1 - file["significance"] / 2)

    def records(
        self, rows: Sequence[Row], names: tuple[str, ...]
    ) -> tuple[list[Row], list[Row], bool]:
        """Within levels, between them, and whether rows were taken as independent."""
        used, missing = self._used(rows, names)
        reasons = {x: self._reason([r for r in used if r[1] == x], len(names)) for x in self.levels}
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
    ) -> tuple[list[tuple[str, str, tuple[int, ...]]], Counter[str]]:
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

    def _reason(self, rows: Sequence[tuple[str, str, tuple[int, ...]]], width: int) -> str:
        least, values = self.file["threshold"], [v for _, _, v in rows]
        clusters = len({cluster for cluster, _, _ in rows})
        if not rows:
            return "no rows with both labels" if width > 1 else "no rows with a label"
        if clusters < least["clusters"]:
            return f"{_clusters(clusters)}; at least {least['clusters']} are needed"
        ones = sum(v[0] for v in values)
        if width == 1:
            if ones in {0, len(rows)}:
                all_of = f"all {ones} rows are cases"
                return all_of if ones else f"none of {len(rows)} rows is a case"
            return ""
        if ones in {0, len(rows)}:
            return f"the cause is in {f'all {ones}' if ones else f'none of {len(rows)}'} rows"
        if least["rows"] == "level" and (few := self._few(values)):
            return few
        for with_cause, word in ((0, "without"), (1, "with")):
            there = [(c, v[1]) for c, _, v in rows if v[0] == with_cause]
            effects, n = sum(e for _, e in there), len({c for c, _ in there})
            if effects in {0, len(there)}:
                share = f"all {effects}" if effects else f"none of {len(there)}"
                return f"the effect is in {share} rows {word} the cause"
            if n < least["cell_clusters"]:
                return f"{_clusters(n)} {word} the cause; at least {least['cell_clusters']} are needed"
        return ""

    def _few(self, values: Sequence[tuple[int, ...]]) -> str:
        least = self.file["threshold"]["cases"]
        counts = (
            (sum(v[0] for v in values), "the cause"),
            (sum(v[1] for v in values), "the effect"),
            (sum(v[0] * v[1] for v in values), "both together"),
        )
        short = ", ".join(f"{n} of {what}" for n, what in counts if n < least)
        return f"fewer than {least} cases: {short}" if short else ""

    def _solve(
        self, rows: Sequence[tuple[str, str, tuple[int, ...]]], names: tuple[str, ...]
    ) -> Solved | None:
        if not rows:
            return None
        gee, paired = self.file["gee"], len(names) > 1
        correlation = gee["pairs_correlation"] if paired else gee["correlation"]
        celled = [(c, self._cell(level, v), v[-1]) for c, level, v in rows]
        return Solved(celled, correlation == "exchangeable", gee["covariance"] == "bias_reduced")

    def _cell(self, level: str, values: tuple[int, ...]) -> int:
        place = self.levels.index(level)
        return 2 * place + values[0] if len(values) > 1 else place

    def _within(self, solved: Solved, place: int, *, paired: bool) -> Row:
        if paired:
            value, error = _combined(solved, {2 * place + 1: 1.0, 2 * place: -1.0})
            if error is None:
                return {"reason": FLAT}
            low, high = value - self.z * error, value + self.z * error
            return {"delta": value, "low": max(low, -1), "high": min(high, 1), "p": _p(value / error)}
        variance, odds = solved.variance({place: 1.0}), solved.log_odds(place)
        if variance is None:
            return {"reason": FLAT}
        error = math.sqrt(variance)
        low, high = (float(_chance(odds + sign * self.z * error)) for sign in (-1, 1))
        return {"estimate": solved.chance(place), "low": low, "high": high, "p": _p(odds / error)}

    def _between(
        self,
        solved: Solved | None,
        pair: tuple[int, int],
        used: Sequence[tuple[str, str, tuple[int, ...]]],
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
        value, error = _combined(solved, weights)
        if error is None:
            return {"reason": FLAT}
        most = 2 if paired else 1
        reach = self.z * error
        found = {"difference": value, "low": max(value - reach, -most), "high": min(value + reach, most)}
        if paired or self.file["gee"]["differences"] == "probability":
            return {**found, "p": _p(value / error), "reason": ""}
        variance = solved.variance({a: 1.0, b: -1.0})
        if variance is None:
            return {"reason": FLAT}
        z = (solved.log_odds(a) - solved.log_odds(b)) / math.sqrt(variance)
        return {**found, "p": _p(z), "reason": ""}


def _combined(solved: Solved, weights: Mapping[int, float]) -> tuple[float, float | None]:
    """A weighted sum of probabilities and its error by the delta method."""
    chance = {cell: solved.chance(cell) for cell in weights}
    variance = solved.variance({c: w * chance[c] * (1 - chance[c]) for c, w in weights.items()})
    value = sum(w * chance[c] for c, w in weights.items())
    return value, None if variance is None else math.sqrt(variance)


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


# The whole analysis


def recount(run: Path, analysis: Mapping[str, Any]) -> list[dict[str, Any]]:
    """What ``results.json`` should hold, in order; undefined is left out of a record."""
    file = {**analysis, "significance": analysis.get("significance", 0.05)}
    for key in ("gee", "fdr", "threshold", "missing"):
        file[key] = DEFAULTS[key] | analysis.get(key, {})
    there = {(x["judge"], x.get("variant", "")) for x in _lines(run, "labels")}
    known = {
        c["id"]
        for c in file["characteristics"]
        if "field" in c or (c["judge"], c.get("variant", "")) in there
    }
    groups: list[tuple[dict[str, Any], list[Any]]] = []
    for question in file["questions"]:
        if not any(True for _ in _fits(question, known)):
            continue
        compare = DEFAULTS["compare"] | question.get("compare", file.get("compare", {}))
        same = next((asked for other, asked in groups if other == compare), None)
        if same is None:
            groups.append((compare, [question]))
        else:
            same.append(question)
    return [_result(run, file, compare, asked, known) for compare, asked in groups]


def _fits(question: Mapping[str, Any], known: set[str]) -> Iterable[tuple[str, ...]]:
    yield from ((name,) for name in question.get("prevalence", ()) if name in known)
    pairs: dict[tuple[str, str], None] = {}
    for block in question.get("pairs", ()):
        ahead = [(c, e) for c in block["causes"] for e in block["effects"] if c != e]
        back = [(e, c) for c, e in ahead] if block.get("both_ways") else []
        pairs |= dict.fromkeys(ahead + back)
    yield from (pair for pair in pairs if set(pair) <= known)


def _result(
    run: Path,
    file: Mapping[str, Any],
    compare: Mapping[str, Any],
    questions: Sequence[Mapping[str, Any]],
    known: set[str],
) -> dict[str, Any]:
    subsets = compare.get("subsets", {})
    by, top = subsets.get("by", []), subsets.get("top")
    wanted = {compare["level"], compare["cluster"], *by}
    rows = [r for r in rows_of(run, file, compare) if wanted <= r["fields"].keys()]
    there = {r["fields"][compare["level"]] for r in rows}
    named = [x for x in (compare.get("reference"), *compare["names"]) if x in there]
    levels = [*dict.fromkeys(named), *sorted(there - set(named))]
    if top:
        rows = _commonest(rows, top, compare["cluster"])
    parts: dict[tuple[str, ...], list[Row]] = defaultdict(list)
    for row in rows:
        parts[tuple(row["fields"][name] for name in by)].append(row)
    made: dict[str, list[Row]] = defaultdict(list)
    fallbacks = 0
    for question in questions:
        found = []
        for names in _fits(question, known):
            for values, members in sorted(parts.items()):
                fit = Fit(file, levels, compare)
                within, between, fell = fit.records(members, names)
                fallbacks += fell
                found.append((dict(zip(by, values, strict=True)), names, within, between))
        _correct(found, file)
        for where, names, within, between in found:
            _keep(made, question["id"], where, names, within, between, compare["names"])
    clusters = {v: {r["fields"][compare["cluster"]] for r in m} for v, m in parts.items()}
    return {
        **{name: made[name] for name in TABLES},
        "levels": {level: compare["names"].get(level, level) for level in levels},
        "subsets": [
            {**dict(zip(by, v, strict=True)), "rows": len(m), "groups": len(clusters[v])}
            for v, m in sorted(parts.items())
        ],
        "movements": _movements(made["deltas"], by),
        "fallbacks": fallbacks,
    }


TABLES = ("prevalences", "comparisons", "rankings", "deltas", "delta_comparisons", "set_aside")


def _commonest(rows: Sequence[Row], top: Mapping[str, Any], cluster: str) -> list[Row]:
    seen: dict[str, dict[str, set[str]]] = defaultdict(lambda: defaultdict(set))
    within = top.get("within")
    for row in rows:
        fields = row["fields"]
        seen[fields[within] if within else ""][fields[top["field"]]].add(fields[cluster])
    out = {name.casefold() for name in top.get("leave_out", ())}
    kept = {
        where: sorted((v for v in own if v.casefold() not in out), key=lambda v: (-len(own[v]), v))
        for where, own in seen.items()
    }
    n = top.get("n", 3)
    return [
        row
        for row in rows
        if row["fields"][top["field"]] in kept[row["fields"][within] if within else ""][:n]
    ]


def _correct(fits: Sequence[tuple[Any, ...]], file: Mapping[str, Any]) -> None:
    """Benjamini and Hochberg, by the definition: the least level at which a test is rejected."""
    rules = file["fdr"]
    families: dict[Any, list[Row]] = defaultdict(list)
    for where, names, *sides in fits:
        for side, records in enumerate(sides):
            key = (
                tuple(where.items()) if rules["family"] != "question" else 0,
                names if rules["family"] == "fit" else 0,
                side if rules["sides"] == "apart" else 0,
            )
            families[key] += records
    for records in families.values():
        tests = sorted(r["p"] for r in records if "p" in r)
        m = len(records) if rules["undefined"] == "counted" else len(tests)
        for record in records:
            if "p" in record:
                levels = [p * m / (k + 1) for k, p in enumerate(tests) if p >= record["p"]]
                record["q"] = min(1.0, *levels)
                record["significant"] = record["q"] < file["significance"]


def _keep(
    made: dict[str, list[Row]],
    question: str,
    where: dict[str, str],
    names: tuple[str, ...],
    within: list[Row],
    between: list[Row],
    short: Mapping[str, str],
) -> None:
    if len(names) == 1:
        of: Row = {**where, "characteristic": names[0]}
        made["rankings"].append({**of, **_ranking(within, between, short)})
        tables = ("prevalences", "comparisons")
    else:
        of = {**where, "cause": names[0], "effect": names[1]}
        tables = ("deltas", "delta_comparisons")
    made[tables[0]] += [of | record for record in within]
    made[tables[1]] += [of | record for record in between]
    reasons = [r["reason"] for r in (*within, *between) if r["reason"]]
    if reasons:
        name = " -> ".join(names)
        made["set_aside"].append({**where, "question": question, "fit": name, "reason": reasons})


def _ranking(within: list[Row], between: list[Row], short: Mapping[str, str]) -> Row:
    known = [r for r in within if "estimate" in r]
    known.sort(key=lambda r: -round(r["estimate"], 9))
    order = [r["level"] for r in known] + [r["level"] for r in within if "estimate" not in r]
    found = {frozenset((r["first"], r["second"])): r.get("significant") for r in between}
    signs = [{True: ">", False: "~", None: "?"}[found[frozenset(p)]] for p in pairwise(order)]
    words = [short.get(x, x) for x in order]
    return {"levels": order, "text": "".join(map("".join, zip(words, [*signs, ""], strict=True)))}


def _movements(deltas: Iterable[Row], by: Sequence[str]) -> list[Row]:
    counts: dict[tuple[str, str, str], Counter[str]] = defaultdict(Counter)
    for delta in deltas:
        key = (delta[by[0]] if by else "all", delta["cause"], delta["effect"])
        moved = delta.get("significant")
        kind = "undefined" if moved is None else "same" if not moved else ""
        counts[key][kind or ("rise" if delta["delta"] > 0 else "fall")] += 1
    return [
        dict(zip(("where", "cause", "effect"), key, strict=True))
        | {kind: found[kind] for kind in ("rise", "fall", "same", "undefined")}
        for key, found in sorted(counts.items())
    ]
