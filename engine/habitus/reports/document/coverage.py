"""How much of a run there is: what is done, what failed, what is left, what was asked.

Where and why something failed is told by ``outcomes``.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from habitus.experiments import read_materials
from habitus.labelling import read_labelling
from habitus.records import Outcome
from habitus.reports.document.cells import Table, plain_table
from habitus.store import RunDir
from habitus.tables import Value

FAILED = tuple(outcome for outcome in Outcome if outcome is not Outcome.OK)


@dataclass(frozen=True, slots=True)
class Progress:
    """One table of records: how many are expected, done, failed by outcome, and left."""

    stage: str
    expected: int
    done: int
    failed: Mapping[Outcome, int]
    left: int


def is_labels(run: RunDir) -> bool:
    """Whether a run is one of labels."""
    return (run.path / "labelling.json").exists()


def progress(run: RunDir) -> list[Progress]:
    """What a run is to have, table by table."""
    if is_labels(run):
        expected = dict(read_labelling(run).totals)
    else:
        counts: dict[str, int] = read_materials(run).counts.model_dump()
        expected = {table: n for table, n in counts.items() if n and table != "items"}
    return [_progress(run, table, n) for table, n in expected.items()]


def _progress(run: RunDir, table: str, expected: int) -> Progress:
    outcomes = run.records.counts(table)
    records = sum(outcomes.values())
    if table == "attempts":  # several attempts may be made at one session
        records = len({name.rpartition("/")[0] for name in run.records.ids(table)})
    failed: dict[Outcome, int] = {
        outcome: n for outcome, n in outcomes.items() if outcome is not Outcome.OK
    }
    done = outcomes.get(Outcome.OK, 0)
    return Progress(table, expected, done, failed, max(0, expected - records))


def left_over(found: Sequence[Progress]) -> list[str]:
    """What a run still lacks, in words; empty when it is complete."""
    return [
        f"{part.left:,} of {part.expected:,} {part.stage.replace('attempts', 'sessions')} left"
        for part in found
        if part.left
    ]


def stage_table(found: Sequence[Progress], what: str) -> Table:
    """Records by stage."""
    rows: list[tuple[Value, ...]] = [
        (p.stage, p.expected, p.done, *(p.failed.get(o, 0) for o in FAILED), p.left) for p in found
    ]
    columns = ("Records", "expected", "ok", *map(str, FAILED), "left")
    notes = ("attempts at sessions: expected and left count sessions, the others attempts",)
    some = notes if any(p.stage == "attempts" for p in found) else ()
    return plain_table(f"Records of {what} by stage and outcome", columns, rows, some)


def call_table(run: RunDir, what: str) -> Table:
    """Calls and tokens by stage and model; failed calls that were asked again count each time."""
    totals: dict[tuple[str, str], list[int]] = {}
    for count in run.calls.counts():
        total = totals.setdefault((count.stage, count.model), [0] * 6)
        ok = count.logged if count.outcome is Outcome.OK else 0
        parts = (count.logged, ok, count.prompt, count.cached, count.completion, count.uncounted)
        for place, number in enumerate(parts):
            total[place] += number
    rows = [
        (*key, calls, calls - ok, prompt, cached / prompt if prompt else None, completion, unknown)
        for key, (calls, ok, prompt, cached, completion, unknown) in sorted(totals.items())
    ]
    columns = ("Stage", "Model", "calls", "failed", "prompt tokens", "from cache")
    more = ("answer tokens", "without numbers")
    return plain_table(f"Calls and tokens of {what}", (*columns, *more), rows, keys=2)
