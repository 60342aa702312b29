"""The analysis of labels counted again, with its own estimator, from the files of a run.

It knows nothing of the engine: it reads ``records/items.jsonl``, ``records/labels.jsonl`` and an
analysis file, and follows ``docs/analysis.md``.
"""

from __future__ import annotations

import json
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any

from fit_recount import NOBODY, Fit

Row = dict[str, Any]
DEFAULTS: dict[str, dict[str, Any]] = {
    "gee": {
        "correlation": "exchangeable",
        "pairs_correlation": "independence",
        "covariance": "bias_reduced",
        "distribution": "student",
        "differences": "log_odds",
    },
    "fdr": {"family": "fit", "sides": "apart", "undefined": "left_out"},
    "threshold": {"cases": 10, "rows": "subset", "clusters": 10, "cell_clusters": 2},
    "missing": {"common": False},
    "compare": {"level": "target", "cluster": "group", "rows": "item", "names": {}},
}


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
            coded = {
                c["id"]: _coded(c, row, item["id"], found) for c in analysis["characteristics"]
            }
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
