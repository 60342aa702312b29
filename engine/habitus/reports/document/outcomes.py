"""What became of everything that was asked for: a section that says so also when nothing failed."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

from habitus.analysis import OutcomeTable, cause_table, causes, outcome_tables
from habitus.reports.document.cells import Table, sortable_table
from habitus.tables import TextTable

_MOST_CAUSES = 60


@dataclass(frozen=True, slots=True)
class Outcomes:
    """The section: one line, tables of what failed and why, and all rows, to be folded."""

    said: str
    failed: tuple[Table, ...]
    whole: tuple[Table, ...]


def outcome_section(found: OutcomeTable, labels: OutcomeTable | None = None) -> Outcomes:
    """The outcomes of a run, and of a run of labels beside it."""
    parts = [(found, ""), *([(labels, " of the labels")] if labels else [])]
    return Outcomes(
        said=" ".join(_said(table, of) for table, of in parts),
        failed=tuple(t for table, of in parts for t in _failed(table, of)),
        whole=tuple(_whole(table, of) for table, of in parts),
    )


def _said(table: OutcomeTable, of: str) -> str:
    what = of.removeprefix(" of ").capitalize() or "This run"
    if not table.rows:
        return f"{what}: nothing was asked for yet."
    asked = sum(row.asked for row in table.rows)
    skipped = sum(row.not_asked for row in table.rows)
    left = f" {skipped:,} more could not be asked for." if skipped else ""
    if not table.failures:
        return f"{what}: nothing failed; all {asked:,} that were asked for are usable.{left}"
    return f"{what}: {table.failures:,} of {asked:,} that were asked for are not usable.{left}"


def _failed(table: OutcomeTable, of: str) -> Iterator[Table]:
    if table.failures:
        more = "; all rows stand in the table of all outcomes"
        shown = outcome_tables(table, more=more)
        shown.insert(1, cause_table(causes(table), most=_MOST_CAUSES))
        yield from (sortable_table(_titled(part, of)) for part in shown)


def _whole(table: OutcomeTable, of: str) -> Table:
    return sortable_table(_titled(outcome_tables(table, whole=True)[0], of))


def _titled(table: TextTable, of: str) -> TextTable:
    return replace(table, title=f"{table.title}{of}")
