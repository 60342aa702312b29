"""What a run can be exported to. A new kind is a module and a line in ``KINDS``.

found = KINDS["consensus"].export(run, Wish(Path("out")))
found.rows, found.notes
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from habitus.exports.agreeing import Agreement
from habitus.exports.consensus import ConsensusOptions, Made, export_consensus
from habitus.exports.tablefiles import Format
from habitus.store import RunDir


@dataclass(frozen=True, slots=True)
class Wish:
    """Where to, and how. A kind takes of the options what it knows."""

    folder: Path
    form: Format = Format.CSV
    everything: bool = False
    agreement: Agreement = Agreement.TRAIT


@dataclass(frozen=True, slots=True)
class Exported:
    """What an export tells: a table of what was written, notes, and all of it as JSON values."""

    title: str
    columns: tuple[str, ...]
    rows: tuple[tuple[str | int, ...], ...]
    notes: tuple[str, ...]
    manifest: dict[str, Any]


@dataclass(frozen=True, slots=True)
class Kind:
    """One kind of export."""

    about: str
    export: Callable[[RunDir, Wish], Exported]


def _consensus(run: RunDir, wish: Wish) -> Exported:
    options = ConsensusOptions(wish.form, wish.everything, wish.agreement)
    made = export_consensus(run, wish.folder, options)
    columns = (
        *("table", "rows", "same label", "complete", "of", "no answer", "several answers"),
        *("no response", "no label", "file"),
    )
    rows = tuple(map(_row, made.tables))
    return Exported("Consensus of all targets", columns, rows, made.notes, made.manifest)


def _row(made: Made) -> tuple[str | int, ...]:
    found = made.tally
    left_out = (found.no_answer, found.several, found.no_response, found.no_label)
    return (made.name, found.rows, found.same, found.complete, found.units, *left_out, made.file)


KINDS = {
    "consensus": Kind("items that a judge labels alike for every target", _consensus),
}
