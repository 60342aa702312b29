"""Results as tables of plain text cells, for a terminal or a file. Drawing them is done elsewhere.

How a number is written is said in :mod:`habitus.tables`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from habitus.analysis.common import CommonRow
from habitus.analysis.differences import Difference
from habitus.analysis.embeddedness import Embeddedness
from habitus.analysis.filtering import FilterTable
from habitus.analysis.measures import MEASURES, Bounds, Intervals, Values
from habitus.analysis.options import MissingRule, ResultOptions
from habitus.analysis.results import (
    ABOUT_DIFFERENCES,
    ABOUT_EMBEDDEDNESS,
    ABOUT_RANGES,
    Results,
    about_differences,
)
from habitus.analysis.rows import Row
from habitus.analysis.safety import SafetyRow
from habitus.statistics import Rate
from habitus.tables import UNDEFINED, TextTable, number, with_interval, with_range

HEADINGS = dict(
    zip(MEASURES, ("Follow", "Avoid", "Adaptation", "CCS", "CCS by persona"), strict=True)
)


def results_tables(found: Results) -> list[TextTable]:
    """All tables that have rows, the main one first, without that of outcomes."""
    return list(named_tables(found).values())


def named_tables(found: Results) -> dict[str, TextTable]:
    """The tables by name: ``main`` always, the others where they have rows.

    ``common``: all targets of a setting on the items that all answered; ``differences``,
    ``embeddedness``, ``safety``. Those of outcomes are made by ``outcome_tables``.
    """
    made = {"main": _main_table(found)}
    if found.common:
        made["common"] = _common_table(found.common, found.options.missing)
    if found.differences:
        made["differences"] = _difference_table(found.differences, found.options)
    if found.embeddedness:
        made["embeddedness"] = _embeddedness_table(found.embeddedness)
    if found.safety:
        rows = () if found.options.by else found.rows
        made["safety"] = _safety_table(found.safety, rows, found.options.missing)
    return made


def _main_table(found: Results) -> TextTable:
    labels = tuple(dimension.capitalize() for dimension in found.options.by)
    columns = (
        *("Target", "Setting", *labels),
        *("Follow", "n", "Avoid", "n", "Adaptation", "n", "CCS", "CCS by persona", "personas"),
        *("not judged", *([] if found.options.missing == "bounds" else ["bounds of CCS"])),
    )
    rows = tuple(_main_cells(row, found.options.missing) for row in found.rows)
    title = "CCBench results" + (" (synthetic)" if found.synthetic else "")
    elsewhere = {ABOUT_DIFFERENCES, ABOUT_RANGES, ABOUT_EMBEDDEDNESS}
    notes = tuple(note for note in found.notes if note not in elsewhere)
    return TextTable(title, columns, rows, notes, keys=2 + len(labels))


def _main_cells(row: Row, missing: MissingRule) -> tuple[str, ...]:
    numbers = _measured(row.values, row.intervals, row.bounds, missing)
    follow, avoid, adaptation, ccs, own = numbers
    n_follow, n_avoid = (
        rate.judged if missing == "exclude" else rate.total for rate in (row.follow, row.avoid)
    )
    return (
        *(_target(row.cell.target, row.synthetic), row.cell.setting),
        *(label for _, label in row.labels),
        *(follow, f"{n_follow:,}", avoid, f"{n_avoid:,}", adaptation, f"{n_follow + n_avoid:,}"),
        *(ccs, own, f"{row.personas - row.left_out} of {row.personas}"),
        *(_not_judged(row), *([] if missing == "bounds" else [_bounds(row)])),
    )


def _measured(
    values: Values,
    intervals: Intervals,
    bounds: Bounds | None,
    missing: MissingRule,
    *,
    signed: bool = False,
) -> list[str]:
    """The five numbers; a range where what is missing can change one, if that is the rule."""
    cells = []
    for name in MEASURES:
        ends = bounds[name] if bounds and missing == "bounds" else None
        if ends is not None and ends[0] != ends[1]:
            cells.append(with_range(*ends, intervals[name], signed=signed))
        else:
            cells.append(with_interval(values[name], intervals[name], signed=signed))
    return cells


def _not_judged(row: Row) -> str:
    if not row.not_judged:
        return "0"
    total = row.judged + row.not_judged
    return f"{row.not_judged:,} of {total:,} ({_counts(row.outcomes)})"


def _bounds(row: Row) -> str:
    ends = row.bounds and row.bounds["ccs"]
    return f"{number(ends[0])} to {number(ends[1])}" if ends else ""


def _common_table(common: Sequence[CommonRow], missing: MissingRule) -> TextTable:
    columns = ("Setting", "Target", *HEADINGS.values(), "common items", "lost through others")
    rows = tuple(
        (
            *(part.row.cell.setting, _target(part.row.cell.target, part.row.synthetic)),
            *_measured(part.row.values, part.row.intervals, part.row.bounds, missing),
            *(f"{part.items:,}", f"{part.lost:,}"),
        )
        for part in common
    )
    what = "answered" if missing == "exclude" else "were asked"
    notes = (
        "lost through others: items that count for this target and not for another of the setting",
    )
    return TextTable(f"Targets on the items that all of them {what}", columns, rows, notes, keys=2)


def _difference_table(differences: Sequence[Difference], options: ResultOptions) -> TextTable:
    columns = ("Difference", "of", *HEADINGS.values(), "common items", "only one side")
    rows = []
    for d in differences:
        if d.between == "settings":
            what, of = f"{d.b.setting} - {d.a.setting}", _target(d.a.target, d.synthetic)
        else:
            names = [_target(c.target, d.synthetic) for c in (d.b, d.a)]
            what, of = " - ".join(names), d.a.setting
        measured = _measured(d.values, d.intervals, d.bounds, options.missing, signed=True)
        alone = f"{d.coverage.only_a:,} / {d.coverage.only_b:,}"
        rows.append((what, of, *measured, f"{d.coverage.common:,}", alone))
    title, notes = "Paired differences on common items", (about_differences(options),)
    return TextTable(title, columns, tuple(rows), notes, keys=2)


def _embeddedness_table(parts: Sequence[Embeddedness]) -> TextTable:
    columns = ("Target", "Setting", "with", "Pearson", "Spearman", "within cultures", "personas")
    rows = []
    for part in parts:
        for name, found in (("Adaptation", part.norm_adaptation), ("CCS", part.ccs)):
            cells = [
                with_interval(value, found.intervals[key], signed=True)
                for key, value in found.values.items()
            ]
            target = _target(part.cell.target, part.synthetic)
            rows.append((target, part.cell.setting, name, *cells, str(found.personas)))
    title, notes = "Correlation with embeddedness, over personas", (ABOUT_EMBEDDEDNESS,)
    return TextTable(title, columns, tuple(rows), notes, keys=3)


def _safety_table(
    safety: Sequence[SafetyRow], rows: Sequence[Row], missing: MissingRule
) -> TextTable:
    place = MEASURES.index("ccs")
    ccs = {
        row.cell: _measured(row.values, row.intervals, row.bounds, missing)[place] for row in rows
    }
    cells = tuple(
        (
            *(_target(part.cell.target, part.synthetic), part.cell.setting),
            *(_unsafe(part, missing), f"{part.unsafe.judged:,}"),
            *(f"{part.unsafe.missing:,}", ccs.get(part.cell, UNDEFINED)),
        )
        for part in safety
    )
    columns = ("Target", "Setting", "unsafe", "responses", "not judged", "CCS")
    what = (
        "the range that those without a label allow" if missing == "bounds" else "of those labelled"
    )
    notes = (f"unsafe: {what}; responses: how many were labelled",)
    return TextTable("Responses labelled unsafe", columns, cells, notes, keys=2)


def _unsafe(part: SafetyRow, missing: MissingRule) -> str:
    """The share of what was judged; the range that is possible, if that is the rule."""
    if missing == "bounds" and part.unsafe.missing and part.unsafe.bounds:
        return with_range(*part.unsafe.bounds, None)
    return with_interval(part.unsafe.value, part.interval)


def filter_text(found: FilterTable) -> TextTable:
    """The filter's table: first attempts for the rates, all attempts for the counts."""
    columns = (
        *("Culture", "adherence", "n", "told", "of checks", "reveal", "sessions", "lexical"),
        *("out of role", "attempts", "rejected for"),
    )
    rows = tuple(
        (
            *(row.culture, with_interval(row.adherence.value, row.adherence_interval)),
            *(f"{row.adherence.judged:,}", number(row.inferrable.value)),
            *(f"{row.inferrable.judged:,}", number(row.reveal.value), _sessions(row.reveal)),
            *(number(row.lexical_reveal.value), number(row.role_break.value), f"{row.attempts:,}"),
            _counts(row.rejections) or "none",
        )
        for row in found.rows
    )
    notes = (
        "rates are over first attempts; adherence over non-neutral norms that could be told",
        "out of role, by its words: as the assistant, both sides, or about its role; counted and kept",
    )
    return TextTable("What the histories show", columns, rows, notes)


#: Why a session ended, in the order in which they are shown; others follow.
_ENDS = ("complete", "persona_stop", "farewell", "repetition", "empty_turn", "failed")


_ABOUT_ENDS = (
    "all attempts at sessions; complete: the planned number of turns; empty_turn: nothing said, "
    "twice; failed: a call without a usable answer"
)


def ends_text(found: FilterTable) -> TextTable:
    """Why the attempts at sessions ended, by culture."""
    seen = {end for row in found.rows for end in row.ends}
    ends = (*_ENDS, *sorted(seen.difference(_ENDS)))
    rows = tuple(
        (row.culture, *(f"{row.ends.get(end, 0):,}" for end in ends), f"{row.attempts:,}")
        for row in found.rows
    )
    played = ", ".join(f"{side} by {model}" for side, model in found.played_by.items())
    notes = (
        _ABOUT_ENDS,
        *([f"played: {played}"] if played else []),
    )
    return TextTable("How sessions end", ("Culture", *ends, "attempts"), rows, notes)


def _sessions(rate: Rate) -> str:
    return f"{rate.judged:,}" + (f" ({rate.missing:,} not checked)" if rate.missing else "")


def _counts(counts: Mapping[str, int]) -> str:
    return ", ".join(f"{name} {n:,}" for name, n in counts.items())


def _target(name: str, synthetic: bool) -> str:
    return f"{name} (synthetic)" if synthetic else name
