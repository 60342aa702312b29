"""Results of a run, computed again whenever they are asked for: nothing is asked of a model.

found = run_results(run, View(by=("culture",)))
write_results(run)              # results.json, as the experiment's own options say
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from habitus.analysis import (
    Dimension,
    FilterTable,
    MissingRule,
    OutcomeTable,
    ResultOptions,
    Results,
    filter_table,
    read_verdicts,
    results,
    safety_rows,
    shown_norms,
)
from habitus.errors import StoreError
from habitus.experiments.config import ResultsConfig
from habitus.experiments.materials import Materials, RunConfig
from habitus.experiments.outcomes import RunOutcomes
from habitus.records import Attempt, History, Outcome
from habitus.running import read_made_up, refuse_unknown
from habitus.statistics import IntervalRule
from habitus.store import RunDir
from habitus.store.canonical import loads
from habitus.store.database import told_as_damage

STUDY = "study.json"


@dataclass(frozen=True, slots=True)
class View:
    """How results are looked at: broken down, and over all norms or those the history shows."""

    by: tuple[Dimension, ...] = ()
    shown: bool = False
    missing: MissingRule | None = None
    queries: Literal["fixed", "resampled"] = "fixed"


def read_materials(run: RunDir) -> Materials:
    """What the run keeps of its study.

    Raises:
        StoreError: the run was never begun, the file is damaged, or a later version made it.
    """
    path = run.path / STUDY
    try:
        kept = Materials.model_validate_json(path.read_bytes())
    except FileNotFoundError:
        raise StoreError(f"{run.path} has no {STUDY}: {_what_it_is(run)}") from None
    except ValueError as error:
        raise StoreError(f"{path} is damaged ({type(error).__name__}); run again") from None
    refuse_unknown(run, RunConfig, run.config)
    return kept


def _what_it_is(run: RunDir) -> str:
    """A run that was not begun, or one of answers and their labels."""
    if "items" in run.records.stages():
        return (
            "it is no run of an experiment but of answers or labels; `habitus analyze` reads labels"
        )
    return "nothing was run yet; give the run command again"


def run_results(run: RunDir, view: View | None = None) -> Results:
    """The results of a run as they stand."""
    return run_breakdowns(run, [view or View()])[0]


def run_breakdowns(run: RunDir, views: Sequence[View]) -> list[Results]:
    """The results of a run in several views; its verdicts are read once."""
    kept = read_materials(run)
    design = kept.design()
    counted = RunOutcomes(run, kept)
    table = read_verdicts(counted.evaluations(), design)
    options = [_options(run, kept, view) for view in views]
    safety = safety_rows(counted.safety(), design, options[0])
    outcomes = counted.table()
    return [results(table, chosen, safety, outcomes) for chosen in options]


def run_outcomes(run: RunDir) -> OutcomeTable:
    """What became of everything in a run, stage by stage, as it stands.

    Raises:
        StoreError: the run was never begun, or is damaged.
    """
    counted = RunOutcomes(run, read_materials(run))
    for passing in (counted.evaluations(), counted.safety()):
        for _ in passing:
            pass
    return counted.table()


def run_filter(run: RunDir) -> FilterTable:
    """What the filter found in the histories of a run, by culture."""
    kept = read_materials(run)
    options = _options(run, kept, View())
    roles: Mapping[str, Mapping[str, str]] = run.config.get("roles", {})
    sides = {side: roles[side]["model"] for side in ("persona", "assistant") if side in roles}
    if run.config.get("history", {}).get("form") == "single_call":
        sides.pop("assistant", None)  # one call writes both
    attempts = run.records.iterate("attempts", Attempt)
    return filter_table(attempts, kept.design(), options, sides)


def strange_sessions(run: RunDir) -> list[str]:
    """What is wrong with stored sessions: turns that do not alternate, an opener in other words."""
    if not (run.path / STUDY).exists():
        return []
    openers = read_materials(run).openers
    problems: list[str] = []
    try:
        for attempt in run.records.iterate("attempts", Attempt):
            text = openers.get(attempt.opener)
            if text is not None and attempt.turns and attempt.turns[0].text != text:
                problems.append(
                    f"attempts {attempt.id} does not begin with its opener word for word"
                )
    except StoreError as error:
        problems.append(str(error))
    return problems


def session_ends(run: RunDir) -> dict[str, Any]:
    """Why sessions ended, and how many personas left their role; None where nobody looked."""
    ends: Counter[str] = Counter()
    looked = breaks = 0
    with told_as_damage(run.path, "attempts"):
        for line in run.records.lines("attempts"):
            attempt = loads(line)
            ends[str(attempt.get("end") or "not said")] += 1
            looked += attempt.get("role_breaks") is not None
            breaks += bool(attempt.get("role_breaks"))
    return {"ends": dict(sorted(ends.items())), "out_of_role": breaks if looked else None}


def kept_checks(run: RunDir) -> dict[Outcome, int]:
    """How the checks of the sessions that were kept ended."""
    found = Counter(outcome for _, outcome in _checked(run))
    return dict(found)


def _checked(run: RunDir) -> Iterator[tuple[str, Outcome]]:
    """Persona, and outcome of the check, of every session that was kept."""
    if "attempts" not in run.records.stages():
        return
    for line in run.records.lines("attempts"):
        attempt = loads(line)
        if attempt["decision"] != "rejected" and attempt.get("check"):
            yield attempt["persona"], Outcome(attempt["check"]["outcome"])


def write_results(run: RunDir) -> None:
    """Write ``results.json`` for a run that has verdicts."""
    if "evaluations" in run.records.stages():
        run.write("results.json", run_results(run).json_bytes())


def _options(run: RunDir, kept: Materials, view: View) -> ResultOptions:
    config = ResultsConfig.model_validate(run.config.get("results", {}))
    shown: Mapping[str, frozenset[str]] | None = None
    unseen: dict[str, str] = {}
    if view.shown:
        shown = shown_norms(run.records.iterate("histories", History))
        unseen = _unseen(run)
    return ResultOptions(
        seed=kept.seed,
        draws=config.draws,
        rule=IntervalRule(method=config.interval, level=config.level),
        by=view.by,
        missing=view.missing or config.missing,
        queries=view.queries,
        shown=shown,
        unseen=unseen,
        synthetic=frozenset(_synthetic(run, kept)),
    )


def _unseen(run: RunDir) -> dict[str, str]:
    """Personas of whom it is not known, or not wholly, what their history shows, and why."""
    found = {persona: "a session was not checked" for persona, o in _checked(run) if o != "ok"}
    return found | dict.fromkeys(run.records.failed("histories"), "history not whole")


def _synthetic(run: RunDir, kept: Materials) -> list[str]:
    """Targets whose numbers are made up: by themselves, or by whoever writes or scores the items."""
    made_up = read_made_up(run)
    roles, targets = run.config.get("roles", {}), run.config.get("targets", {})
    scoring = {roles.get(role, {}).get("model") for role in ("recommender", "evaluator")}
    return [t for t in kept.targets if {targets[t]["model"], *scoring} & made_up]
