"""Every number of an analysis counted again from the files of a run in which much went wrong.

The count in ``framing_recount.py`` has an estimator of its own and knows nothing of the engine.
"""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from framing_fixture import MODELS, label, label_run
from framing_recount import TABLES, recount
from habitus.content import read_yaml, shipped_root
from habitus.framing import analyse, find_analysis, load_analysis, read_labels, write_framings
from habitus.judges import find_set
from habitus.models.scripted import ScriptedModel
from habitus.records import JudgedItem, Label, Outcome, Request
from habitus.store import RunDir
from labelling_fixture import job_of, labelled, written
from study_fixture import opening

FAILURES = [outcome for outcome in Outcome if outcome is not Outcome.OK]
COUNTRIES = ("india", "korea")
CATEGORIES = ("arts", "Other", "tourism", "food and drink")
NUMBERS = ("estimate", "difference", "delta", "low", "high", "p", "q")
#: Judge, variant and labels, the first of which counts as present.
SAID: dict[str, tuple[str, str, tuple[str, ...]]] = {
    "ins": ("positioning", "", ("Insider", "Outsider")),
    "gen": ("generalizing", "", ("Generalizing", "Non-Generalizing")),
    "emo": ("anthropomorphism", "emotions", ("Yes", "No")),
    "relation": ("maxims", "relation", ("RELEVANT", "PARTIALLY", "NOT_RELEVANT")),
}


@dataclass(frozen=True)
class Made:
    """How a run of labels is drawn: shares of what is amiss, and what models have in common."""

    posts: int = 110
    models: Sequence[str] = MODELS
    rate: float = 0.35
    gap: float = 0.12
    failed: float = 0.0
    unanswered: float = 0.0
    absent: float = 0.0
    twice: float = 0.0
    no_field: float = 0.0
    groups: int = 0
    same: bool = False
    never: str = ""

    def run(self, seed: int) -> tuple[list[JudgedItem], list[Label]]:
        """Items and labels."""
        rng = np.random.default_rng(seed)
        items: list[JudgedItem] = []
        labels: list[Label] = []
        for post in range(self.posts):
            lean = rng.normal()
            first: dict[str, str] = {}
            group = f"g{int(self.groups * rng.random() ** 2)}" if self.groups else f"p{post}"
            where = {"country": COUNTRIES[post % 2], "year": f"201{rng.integers(3)}"}
            where["category"] = CATEGORIES[min(3, int(rng.exponential()))]
            for place, model in enumerate(self.models):
                for repeat in range(1 + int(rng.random() < self.twice)):
                    if rng.random() < self.absent:
                        continue
                    given = self._said(rng, lean, place)
                    first = first or given
                    said = first if self.same and place < 2 else given
                    if model == self.never:
                        said = {**said, "ins": "Outsider"}
                    kept = {k: v for k, v in where.items() if rng.random() >= self.no_field}
                    name = f"q{post:03}/{model}/r{repeat}"
                    item = JudgedItem(id=name, group=group, target=model, fields=kept)
                    labels += self._judged(rng, item, said)
                    items.append(item)
        for i in np.flatnonzero(rng.random(len(items)) < self.unanswered):
            items[i] = items[i].model_copy(update={"outcome": FAILURES[i % len(FAILURES)]})
        answered = {item.id for item in items if item.outcome is Outcome.OK}
        return items, [found for found in labels if found.item in answered]

    def _said(self, rng: np.random.Generator, lean: float, place: int) -> dict[str, str]:
        said, before = {}, 0.0
        for name, (_, _, labels) in SAID.items():
            drawn = 1 / (1 + np.exp(-(lean + before + 1.5 * rng.normal())))
            shown = drawn < min(self.rate + self.gap * place, 0.97)
            said[name] = labels[0] if shown else labels[int(rng.integers(1, len(labels)))]
            before = -0.7 * shown
        return said

    def _judged(
        self, rng: np.random.Generator, item: JudgedItem, said: Mapping[str, str]
    ) -> list[Label]:
        found = []
        for name, (judge, variant, labels) in SAID.items():
            if rng.random() < self.failed:
                outcome = FAILURES[int(rng.integers(len(FAILURES)))]
                found.append(label(item, judge, variant, outcome=outcome, reason="so"))
                continue
            shown = said[name] == labels[0]
            text = said[name].lower() if rng.random() < 0.1 else said[name]
            found.append(label(item, judge, variant, label=text, present=shown))
        return found


def ccbench(seed: int) -> tuple[list[JudgedItem], list[Label]]:
    """Answers to personas of three cultures in three settings, with norms and what was met."""
    rng = np.random.default_rng(seed)
    items, labels = [], []
    for persona in range(18):
        culture, lean = ("burmese", "maori", "zulu")[persona % 3], rng.normal()
        states = {f"n{n}": ("follow", "neutral", "avoid")[rng.integers(3)] for n in range(4)}
        for setting in ("none", "hist", "norms"):
            for query in range(3):
                if setting == "none" and persona:
                    continue
                shared = setting == "none"
                fields = {"setting": setting}
                if not shared:
                    fields |= {"culture": culture} | {f"state.{n}": s for n, s in states.items()}
                    met = {n: ("yes", "no")[rng.integers(2)] for n, s in states.items()}
                    fields |= {
                        f"met.{n}": v
                        for n, v in met.items()
                        if states[n] != "neutral" and rng.random() < 0.9
                    }
                group = f"-/q{query}" if shared else f"{culture}-{persona}"
                name = f"t/{setting}/{group}/{query}"
                item = JudgedItem(id=name, group=group, target="t", fields=fields)
                items.append(item)
                labels += Made(failed=0.05)._judged(rng, item, Made()._said(rng, lean, 0))
    return items, labels


def characteristic(name: str, **more: Any) -> dict[str, Any]:
    judge, variant, _ = SAID[name]
    return {
        "id": name,
        "name": name,
        "judge": judge,
        **({"variant": variant} if variant else {}),
    } | more


ALL = {"reference": "llama", "names": {"llama": "L", "gemma": "G"}}
BY = {
    "subsets": {
        "by": ["country", "category"],
        "top": {"field": "category", "n": 2, "within": "country", "leave_out": ["other"]},
    }
}


def asking(**more: Any) -> dict[str, Any]:
    """An analysis; keys given replace those of it."""
    return {
        "id": "own",
        "title": "Own",
        "compare": ALL,
        "characteristics": [
            *(characteristic("ins"), characteristic("gen", violates=True)),
            *(characteristic("emo"), characteristic("relation", labels=["partially"])),
        ],
        "questions": [
            {"id": "rq1", "title": "1", "prevalence": ["ins", "gen"]},
            {
                "id": "rq2",
                "title": "2",
                "prevalence": ["relation"],
                "pairs": [{"causes": ["ins"], "effects": ["emo", "gen"], "both_ways": True}],
            },
        ],
    } | more


PERSONAS = asking(
    characteristics=[
        *(characteristic("ins"), characteristic("emo")),
        {"id": "met", "name": "Met", "field": "met", "labels": ["yes"]},
    ],
    questions=[
        {"id": "setting", "title": "S", "compare": {"level": "setting"}, "prevalence": ["ins"]},
        {
            "id": "culture",
            "title": "C",
            "compare": {"level": "culture", "subsets": {"by": ["setting"]}},
            "prevalence": ["ins", "emo"],
        },
        {
            "id": "state",
            "title": "N",
            "compare": {"level": "state", "rows": "norm", "names": {"neutral": "0", "avoid": "a"}},
            "prevalence": ["ins", "met"],
            "pairs": [{"causes": ["ins"], "effects": ["met"]}],
        },
    ],
    threshold={"clusters": 5, "cell_clusters": 4},
)
PUBLISHED = {"covariance": "robust", "distribution": "normal", "pairs_correlation": "exchangeable"}
MESSY = Made(failed=0.08, unanswered=0.05, absent=0.1, twice=0.1)


@dataclass(frozen=True)
class Case:
    made: Made
    analysis: dict[str, Any] = field(default_factory=asking)


CASES = {
    "messy": Case(MESSY),
    "by country and category": Case(Made(posts=220, failed=0.05, no_field=0.05), asking(compare=ALL | BY)),
    "as published": Case(MESSY, asking(gee=PUBLISHED)),
    "exchangeable pairs": Case(MESSY, asking(gee={"pairs_correlation": "exchangeable"})),
    "independence": Case(MESSY, asking(gee={"correlation": "independence"})),
    "probabilities": Case(MESSY, asking(gee={"differences": "probability"}, significance=0.2)),
    "families of subsets": Case(MESSY, asking(fdr={"family": "subset", "sides": "together"})),
    "families of questions": Case(
        Made(rate=0.03, gap=0.01),
        asking(fdr={"family": "question", "undefined": "counted"}, threshold={"cases": 1}),
    ),
    "thresholds of levels": Case(MESSY, asking(threshold={"rows": "level", "cases": 9})),
    "common clusters": Case(MESSY, asking(missing={"common": True})),
    "rare": Case(Made(rate=0.02, gap=0.02), asking(threshold={"cases": 1, "clusters": 2})),
    "one never does": Case(Made(never="gemma", failed=0.05)),
    "two are the same": Case(Made(same=True)),
    "two are nearly the same": Case(Made(same=True, failed=0.03)),
    "one model": Case(Made(models=("solo",), twice=0.2)),
    "two models": Case(Made(models=("gemma", "aya"))),
    "five models": Case(Made(models=("e", "d", "llama", "c", "b"), absent=0.1)),
    "clusters of many sizes": Case(Made(groups=24, absent=0.1)),
    "few clusters": Case(Made(posts=40, groups=7), asking(threshold={"clusters": 3})),
    "levels are years": Case(MESSY, asking(compare={"level": "year", "subsets": {"by": ["target"]}})),
}  # fmt: skip


def close(found: Any, wanted: Any) -> bool:
    if found is None or wanted is None:
        return found is wanted
    return bool(abs(found - wanted) < 1e-8)


def differing(found: Sequence[Mapping[str, Any]], wanted: Sequence[Mapping[str, Any]]) -> list[Any]:
    """Places where two tables differ."""
    assert len(found) == len(wanted)
    return [
        (key, value, other.get(key), record)
        for record, other in zip(found, wanted, strict=True)
        for key, value in record.items()
        if not (close(value, other.get(key)) if key in NUMBERS else value == other.get(key))
    ]


def check(found: Mapping[str, Any], wanted: Mapping[str, Any]) -> None:
    """All of one result."""
    assert found["levels"] == wanted["levels"]
    assert found["subsets"] == wanted["subsets"]
    for table in ("prevalences", "comparisons", "deltas", "delta_comparisons"):
        assert differing(found[table], wanted[table]) == []
    assert [{**r, "reason": ""} for r in found["rankings"]] == [
        {**r, "reason": ""} for r in wanted["rankings"]
    ]
    assert found["movements"] == wanted["movements"]
    assert [{**r, "reason": ""} for r in found["set_aside"]] == [
        {**r, "reason": ""} for r in wanted["set_aside"]
    ]
    for given, reasons in zip(found["set_aside"], wanted["set_aside"], strict=True):
        for reason in reasons["reason"]:
            assert reason.split(": ", 1)[-1] in given["reason"]
    told = [note.split()[1] for note in found["notes"] if "weighed as independent" in note]
    assert told == ([str(wanted["fallbacks"])] if wanted["fallbacks"] else [])


def check_csv(folder: Path, found: Mapping[str, Any]) -> None:
    """Every cell of every CSV file."""
    for table in (*TABLES, "movements"):
        path = folder / found["id"] / f"{table}.csv"
        text = path.read_text(encoding="utf-8") if path.exists() else ""
        rows = list(csv.DictReader(io.StringIO(text)))
        assert len(rows) == len(found[table])
        for row, record in zip(rows, found[table], strict=True):
            assert row == {key: cell(value) for key, value in record.items()}


def cell(value: Any) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, list):
        return ", ".join(value)
    return "" if value is None else str(value)


def counted_twice(
    folder: Path, items: Sequence[JudgedItem], labels: Sequence[Label], analysis: dict[str, Any]
) -> list[dict[str, Any]]:
    """What the engine finds, after it was compared with the other count."""
    run = label_run(folder / "run", items, labels)
    with RunDir.open(run) as opened:
        opened.records.export()
    path = folder / "own.yaml"
    path.write_text(json.dumps(analysis), encoding="utf-8")
    with RunDir.open(run, write=False) as opened:
        framings = analyse(read_labels(opened, load_analysis(path)), load_analysis(path))
    write_framings(framings, folder / "out")
    results: list[dict[str, Any]] = json.loads((folder / "out/results.json").read_bytes())[
        "results"
    ]
    for found, wanted in zip(results, recount(run, read_yaml(path).data), strict=True):
        check(found, wanted)
        check_csv(folder / "out", found)
    return results


@pytest.mark.parametrize("case", CASES.values(), ids=CASES)
def test_results_are_what_the_records_say(tmp_path: Path, case: Case) -> None:
    items, labels = case.made.run(3)
    (found,) = counted_twice(tmp_path, items, labels, case.analysis)
    assert any(record["p"] is not None for record in found["prevalences"])


@pytest.mark.parametrize("gee", [{}, {"covariance": "robust", "pairs_correlation": "exchangeable"}])
def test_so_they_are_of_personas_and_norms(tmp_path: Path, gee: dict[str, str]) -> None:
    found = counted_twice(tmp_path, *ccbench(2), {**PERSONAS, "gee": gee})
    assert [result["id"] for result in found] == ["own-setting", "own-culture", "own-state"]
    assert any(record["p"] is not None for record in found[2]["deltas"])


#: What is 1 in the analysis of FRANZ, written down by hand.
ONES = {
    "positioning": {"Insider"},
    "generalizing": {"Generalizing"},
    "anthropomorphism": {"Yes"},
    "maxims.quantity": {"UNDER", "OVER"},
    "maxims.quality": {"VIOLATES"},
    "maxims.relation": {"PARTIALLY", "NOT_RELEVANT"},
    "maxims.manner": {"UNCLEAR"},
}


def test_labels_given_to_judges_come_back_as_shares_of_all_15_verdicts(tmp_path: Path) -> None:
    """Replies in many spellings, through the real prompts, readers and records, to the rankings."""
    posts, rng = 10, np.random.default_rng(7)
    rows = [
        {
            "id": f"p{i:02}",
            "model": model,
            "question": f"Why {i}?",
            "response": f"{model} says {i}.",
        }
        for i in range(posts)
        for model in MODELS
    ]
    given: dict[tuple[str, str, str], str] = {}

    def script(request: Request) -> str:
        judge, variant = request.context["judge"], request.context.get("variant", "")
        names = tuple(request.context["labels"])
        chosen = names[int(rng.integers(len(names)))]
        assert given.setdefault((request.record, judge, variant), chosen) == chosen
        spelled = (chosen, chosen.lower(), chosen.upper(), chosen.replace("_", " "))
        text = spelled[int(rng.integers(len(spelled)))]
        if request.schema is not None or judge == "generalizing":
            return json.dumps({"Reasoning": f"Other labels are {names}.", "Label": text})
        return f"It could be one of {names}.\nFinal: ##{text}## <|END|>"

    model = ScriptedModel("small", script)
    run = tmp_path / "run"
    labelled(run, job_of(written(tmp_path, rows), ("franz",)), opener=opening(model))
    assert len(given) == 15 * len(rows)
    assert {(judge, variant) for _, judge, variant in given} == {
        (judge.file.id, variant) for judge, variant in find_set("franz").verdicts()
    }
    analysis = find_analysis("answers", shipped_root())
    with RunDir.open(run, write=False) as opened:
        (found,) = analyse(read_labels(opened, analysis), analysis)
    assert len(found.prevalences) == 15 * len(MODELS)
    by_id = {c.id: (c.judge, c.variant or "") for c in analysis.characteristics}
    for record in found.prevalences:
        judge, variant = by_id[record.characteristic]
        ones = ONES.get(f"{judge}.{variant}") or ONES[str(judge)]
        said = [
            label
            for (item, *verdict), label in given.items()
            if verdict == [judge, variant] and f"/{record.level}" in item
        ]
        assert (record.rows, record.missing) == (posts, 0)
        assert record.cases == sum(label in ones for label in said)
        share = record.cases / posts
        assert record.estimate == (pytest.approx(share) if 0 < share < 1 else None)
