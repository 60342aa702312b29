"""Sessions with a fault: rejected, or kept although something is wrong or the persona left its role."""

from __future__ import annotations

from habitus.experiments.materials import Materials
from habitus.records import Attempt
from habitus.reports.document.cells import Table, plain_table
from habitus.store import RunDir
from habitus.tables import Value

_MOST = 1500
_MOST_WORDS = 200  # characters
_ABOUT = (
    "rejected: not part of the history; flagged: kept, since every attempt had a fault; accepted: "
    "kept, since the fault is only counted (a persona out of its role; a run that only reports)"
)


def rejected_table(run: RunDir, kept: Materials) -> Table:
    """Every attempt at a session that has a fault, with the reasons; the first 1,500."""
    rows: list[tuple[Value, ...]] = []
    others = 0
    for attempt in run.records.iterate("attempts", Attempt):
        reasons = [*attempt.rejected_for, *(["out of role"] if attempt.role_breaks else [])]
        if not reasons:
            continue
        if len(rows) == _MOST:
            others += 1
            continue
        rows.append(
            (
                *(kept.personas[attempt.persona].culture, attempt.persona),
                *(f"s{attempt.number:02d}", attempt.attempt + 1, attempt.kind, attempt.decision),
                *("; ".join(reasons), _what(attempt)),
            )
        )
    notes = [
        _ABOUT,
        *([f"{others:,} more stand in records/attempts.jsonl of the run"] if others else []),
    ]
    columns = ("Culture", "Persona", "session", "attempt", "opener", "decision", "reasons", "found")
    return plain_table("Sessions with a fault", columns, rows, notes, keys=2)


def _what(attempt: Attempt) -> str:
    """Words that revealed something, and norms that were contradicted."""
    check = attempt.check
    if check is None:
        text = "; ".join(filter(None, [attempt.reason, *(attempt.role_breaks or ())]))
    else:
        parts = [*check.lexical_reveals, *(attempt.role_breaks or ())]
        parts += [f"contradicts {norm}" for norm in check.contradicted]
        text = "; ".join(parts) or check.reason
    return f"{text[:_MOST_WORDS]} …" if len(text) > _MOST_WORDS else text
