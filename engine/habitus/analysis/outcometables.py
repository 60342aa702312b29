"""Outcomes as tables of text cells: in full, those that failed, refusals by culture, causes.

    for text in outcome_tables(counted): ...            # what failed, and the rest in a line
    for text in outcome_tables(counted, whole=True): ...

A table of nothing that failed has no rows and says so in its note.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence

from habitus.analysis.outcomes import (
    FAILED,
    NOT_ASKED,
    Cause,
    OutcomeRow,
    OutcomeTable,
    in_words,
    total_of,
)
from habitus.records import Outcome
from habitus.tables import TextTable, number

NOTHING_FAILED = "nothing failed: everything that was asked for has a usable answer"
_ABOUT = (
    "not asked: what it would be about is not there (a verdict on a refused response); not the "
    "judge's failure"
)
_MOST_ROWS = 20
_MOST_CAUSES = 10
_LENGTH = 80  # characters of a reason in a cell
_ANSWERS = ("responses", "items")
_PLACES = ("culture", "country")


def outcome_tables(table: OutcomeTable, *, whole: bool = False, more: str = "") -> list[TextTable]:
    """The table of outcomes, and that of refusals where there are any.

    Args:
        table: what was counted.
        whole: all rows; otherwise those with failures, the others summarised.
        more: where all rows can be seen, for a note.
    """
    refused = refusal_table(table)
    return [outcome_table(table, whole=whole, more=more), *([refused] if refused else [])]


def outcome_table(table: OutcomeTable, *, whole: bool = False, more: str = "") -> TextTable:
    """Rows by stage and place; columns in which nothing stands are left out."""
    failing = [row for row in table.rows if row.failures]
    rows = list(table.rows) if whole else _worst(failing)
    notes = list(_summary(table, failing, whole=whole))
    if len(rows) < len(failing) and not whole:
        left = len(failing) - len(rows)
        notes.insert(0, f"{left:,} more rows with failures are left out" + more)
    if any(row.not_asked for row in rows):
        notes.append(_ABOUT)
    keys = _telling(table, rows)
    outcomes = [o for o in FAILED if any(row.failed.get(o) for row in rows)]
    skipped = any(row.not_asked for row in rows)
    columns = (
        *("Stage", *(table.keys[i].capitalize() for i in keys), "total", "ok"),
        *(*map(str, outcomes), *(["not asked"] if skipped else []), "why"),
    )
    cells = tuple(
        (
            *(row.stage, *(row.place[i] for i in keys), f"{row.total:,}", f"{row.ok:,}"),
            *(f"{row.failed.get(o, 0):,}" for o in outcomes),
            *([f"{row.not_asked:,}"] if skipped else []),
            in_words(row, 2, _LENGTH),
        )
        for row in rows
    )
    if whole and failing and len(outcomes) < len(FAILED):
        notes.append(f"none was {', '.join(str(o) for o in FAILED if o not in outcomes)}")
    title = "Outcomes of everything that was asked for" if whole else "What has no usable answer"
    return TextTable(title, columns, cells, tuple(notes), keys=1 + len(keys))


def refusal_table(table: OutcomeTable) -> TextTable | None:
    """Shares of responses refused, by target and setting, a column for each culture.

    None where nothing was refused, or where all responses are of one culture that has no name.
    """
    stage = next((s for s in _ANSWERS if s in table.stages), "")
    place = next((key for key in _PLACES if key in table.keys), "")
    rows = table.of(stage)
    if not any(row.failed.get(Outcome.REFUSED) for row in rows):
        return None
    found: dict[tuple[str, str], dict[str, list[OutcomeRow]]] = defaultdict(
        lambda: defaultdict(list)
    )
    for row in rows:
        of = (table.word(row, "target"), table.word(row, "setting"))
        found[of][table.word(row, place) if place else ""].append(row)
    places = sorted({name for parts in found.values() for name in parts})
    cells = tuple(
        (
            *of,
            *(_refused(parts.get(name, ())) for name in places),
            _refused([row for part in parts.values() for row in part]),
        )
        for of, parts in found.items()
    )
    named = [name or "none given" for name in places] if places != [""] else []
    columns = ("Target", "Setting", *named, "all")
    if not named:
        cells = tuple((*of, every) for *of, _, every in cells)
    title = f"Share of answers refused, by target and {place or 'setting'}"
    notes = ("of those that were asked for; in brackets the number refused",)
    return _without_empty(TextTable(title, columns, cells, notes, keys=2))


def cause_table(found: Sequence[Cause], more: str = "", most: int = _MOST_CAUSES) -> TextTable:
    """Why what failed, the most frequent cause first, each with the id of the first.

    Args:
        found: the causes.
        more: how to see all of it, for the note that says what is left out.
        most: rows of the table.
    """
    rows = tuple(
        (
            *(part.stage, part.who, part.model if part.model != part.who else ""),
            *(part.reason.outcome, _in_cell(part.reason.text), f"{part.reason.count:,}"),
            *(f"{part.total:,}", number(part.reason.count / part.total), part.reason.example),
        )
        for part in found[:most]
    )
    left = found[most:]
    notes = ["of: all of the stage; first: the id of the first"] if rows else [NOTHING_FAILED]
    if left:
        failures = sum(part.reason.count for part in left)
        notes.append(f"{len(left):,} rarer causes of {failures:,} failures are left out{more}")
    columns = ("Stage", "who", "model", "outcome", "reason", "n", "of", "share", "first")
    return _without_empty(TextTable("Causes of failure", columns, rows, tuple(notes), keys=1))


def _in_cell(text: str) -> str:
    return f"{text[:_LENGTH]} …" if len(text) > _LENGTH else text


def _telling(table: OutcomeTable, rows: Sequence[OutcomeRow]) -> list[int]:
    """The keys that are needed to tell rows apart; who judges is often said by the stage."""
    used = [i for i, _ in enumerate(table.keys) if any(row.place[i] for row in rows)]
    for name in ("model", "variant", "judge"):
        kept = [i for i in used if table.keys[i] != name]
        if len({(row.stage, *(row.place[i] for i in kept)) for row in rows}) == len(rows):
            used = kept
    return used


def _worst(rows: Sequence[OutcomeRow]) -> list[OutcomeRow]:
    """The rows, or those with the most failures in their order."""
    if len(rows) <= _MOST_ROWS:
        return list(rows)
    ranked = sorted(range(len(rows)), key=lambda i: (-rows[i].failures, i))
    return [rows[i] for i in sorted(ranked[:_MOST_ROWS])]


def _summary(table: OutcomeTable, failing: Sequence[OutcomeRow], *, whole: bool) -> Iterator[str]:
    """What is not in the rows, a line a stage."""
    if table.unfinished and table.rows:
        yield table.unfinished
    if not table.rows:
        yield "nothing was asked for yet"
        return
    if not failing:
        yield NOTHING_FAILED
    if whole:
        return
    parts = []
    for stage in table.stages:
        rows = table.of(stage)
        failures = sum(row.failures for row in rows)
        said = [f"{stage} {total_of(rows):,}", *([f"{failures:,} failed"] if failures else [])]
        skipped = sum(row.not_asked for row in rows)
        parts.append(", ".join([*said, *([f"{skipped:,} not asked"] if skipped else [])]))
    yield f"in all: {'; '.join(parts)}"
    reasons = Counter[str]()
    for row in table.rows:
        for reason in row.reasons:
            if reason.outcome == NOT_ASKED:
                reasons[f"{row.stage}: {reason.text}"] += reason.count
    if reasons:
        told = (f"{text} {count:,}" for text, count in reasons.most_common())
        yield f"not asked, as there was nothing to ask about: {'; '.join(told)}"


def _refused(rows: Sequence[OutcomeRow]) -> str:
    asked = sum(row.asked for row in rows)
    if not asked:
        return ""
    refused = sum(row.failed.get(Outcome.REFUSED, 0) for row in rows)
    return f"{number(refused / asked)} ({refused:,} of {asked:,})"


def _without_empty(table: TextTable) -> TextTable:
    """The table without columns in which no row has anything."""
    kept = [i for i in range(len(table.columns)) if any(row[i] for row in table.rows)]
    return TextTable(
        table.title,
        tuple(table.columns[i] for i in kept),
        tuple(tuple(row[i] for i in kept) for row in table.rows),
        table.notes,
        max(1, sum(i < table.keys for i in kept)),
    )
