"""``habitus status``: what of a run is done, failed, left and spent."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Annotated, Any

import typer

from habitus.cli.output import print_json, print_table, print_text
from habitus.cli.root import new_app

if TYPE_CHECKING:
    from habitus.store import CallCount, RunDir

app = new_app("What of a run is done, failed, left and spent.")


@app.command()
def status(
    run: Annotated[str, typer.Argument(help="A run directory, or the name of one in runs/.")],
    verify: Annotated[
        bool, typer.Option("--verify", help="Check everything that is stored as well.")
    ] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> int:
    """Say how far a run is; it may be going on meanwhile."""
    from habitus.cli.finding import run_path
    from habitus.experiments import strange_sessions
    from habitus.store import RunDir

    with RunDir.open(run_path(run), write=False) as opened:
        found = _status(opened)
        checked = opened.verify() if verify else None
        strange = strange_sessions(opened) if verify else []
    if checked is not None:
        found["damage"] = [*checked.problems, *strange]
    if as_json:
        print_json(found)
    else:
        _print(found)
    return 1 if found.get("damage") else 0


def _status(run: RunDir) -> dict[str, Any]:
    from habitus.experiments import session_ends
    from habitus.running import read_learned, versions

    expected = _expected(run)
    counts = run.calls.counts()
    return {
        "run": str(run.path),
        "experiment": run.config.get("id") or run.manifest.get("origin", ""),
        "stages": [_stage(run, table, expected[table]) for table in expected],
        "sessions": session_ends(run),
        "calls": [_call(count) for count in counts],
        **_money(run, counts),
        "learned": read_learned(run),
        "versions": versions(run),
    }


def _money(run: RunDir, counts: list[CallCount]) -> dict[str, Any]:
    from habitus.store.database import told_as_damage

    with told_as_damage(run.path, "a model or a cap of its configuration"):
        return {"spent": _spent(run.config, counts), "caps": _caps(run)}


def _expected(run: RunDir) -> dict[str, int]:
    from habitus.experiments import read_materials

    if (run.path / "labelling.json").exists():
        from habitus.labelling import read_labelling

        return read_labelling(run).totals
    if not (run.path / "study.json").exists():
        return {}
    counts = read_materials(run).counts.model_dump()
    return {table: n for table, n in counts.items() if n and table != "items"}


def _stage(run: RunDir, table: str, expected: int) -> dict[str, Any]:
    outcomes = {str(outcome): n for outcome, n in run.records.counts(table).items()}
    records = sum(outcomes.values())
    if table == "attempts":  # several attempts may be made at one session
        records = len({name.rpartition("/")[0] for name in run.records.ids(table)})
    return {
        "stage": table,
        "done": outcomes.get("ok", 0),
        "failed": {name: n for name, n in outcomes.items() if name != "ok"},
        "left": max(0, expected - records),
        "expected": expected,
    }


def _call(count: CallCount) -> dict[str, Any]:
    return {
        "stage": count.stage,
        "model": count.model,
        "outcome": str(count.outcome),
        "calls": count.calls,
        "asked": count.logged,
        "prompt_tokens": count.prompt,
        "cached_tokens": count.cached,
        "completion_tokens": count.completion,
        "without_usage": count.uncounted,
    }


def _spent(config: dict[str, Any], counts: list[CallCount]) -> list[dict[str, Any]]:
    """Money by model; unknown (null) where the entry has no price."""
    totals: dict[str, list[int]] = {}
    for count in counts:
        total = totals.setdefault(count.model, [0, 0, 0, 0])
        parts = (count.prompt, count.completion, count.cached, count.uncounted)
        totals[count.model] = [a + b for a, b in zip(total, parts, strict=True)]
    return [
        {"model": model, **_cost(config, model, tokens)} for model, tokens in sorted(totals.items())
    ]


def _cost(config: dict[str, Any], model: str, tokens: list[int]) -> dict[str, Any]:
    from habitus.models import Price
    from habitus.records import Usage

    prompt, completion, cached, uncounted = tokens
    entry = config.get("models", {}).get(model, {})
    if not entry.get("price"):
        return {"money": None, "currency": "", "without_usage": uncounted}
    price = Price.model_validate(entry["price"])
    money = price.cost(Usage(prompt, completion, cached))
    return {"money": money, "currency": price.currency, "without_usage": uncounted}


def _caps(run: RunDir) -> list[dict[str, Any]]:
    """What the run may spend and has spent; a fork does not count what it took over."""
    from habitus.models import ModelEntry
    from habitus.running import caps_in, open_budget

    entries = {
        name: ModelEntry.model_validate(e) for name, e in run.config.get("models", {}).items()
    }
    caps = caps_in(run.config)
    spent = open_budget(run, caps, entries).spent()
    most = {"calls": caps.calls, "tokens": caps.tokens, **caps.cost}
    return [{"cap": cap, "most": most[cap], "spent": amount} for cap, amount in spent.items()]


def _print(found: dict[str, Any]) -> None:
    print_text(f"{found['experiment']}  {found['run']}")
    rows = [
        [s["stage"], s["done"], _failures(s["failed"]), s["left"], s["expected"]]
        for s in found["stages"]
    ]
    print_table(["stage", "done", "failed", "left", "of"], rows)
    if found["sessions"]["ends"]:
        print_text(_sessions(found["sessions"]))
    columns = ["stage", "model", "outcome", "calls", "asked"]
    columns += ["prompt_tokens", "cached_tokens", "completion_tokens"]
    print_table(columns, [[call[name] for name in columns] for call in found["calls"]])
    for spent in found["spent"]:
        money = spent["money"]
        known = f"{money:.2f} {spent['currency']}" if money is not None else "price unknown"
        print_text(f"{spent['model']}: {known}")
    for cap in found["caps"]:
        print_text(f"cap of {cap['cap']}: {cap['spent']:,.12g} of {cap['most']:,.12g} spent")
    for model, quirks in found["learned"].items():
        told = ", ".join(f"{name}: {json.dumps(value)}" for name, value in quirks.items())
        print_text(f"{model} rejected what it was sent; since then {told}")
    if len(found["versions"]) > 1:
        print_text(f"worked on by habitus {', then '.join(found['versions'])}")
    for problem in found.get("damage", []):
        print_text(f"damaged: {problem}")


def _sessions(found: dict[str, Any]) -> str:
    """Why sessions ended: all attempts at them."""
    told = f"sessions ended: {_failures(found['ends'])}"
    out = found["out_of_role"]
    return told if out is None else f"{told}; {out:,} with a persona out of its role"


def _failures(failed: dict[str, int]) -> str:
    return ", ".join(f"{name} {n}" for name, n in failed.items()) or "0"
