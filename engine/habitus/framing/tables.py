"""Results as tables of text cells, for a terminal."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from habitus.framing.movements import movements
from habitus.framing.results import Comparison, Framing, Prevalence, Subset
from habitus.tables import UNDEFINED, TextTable, number, with_interval, with_range

_TESTED = ("p", "q", "sig.")
_Q = "q: p corrected for many tests; *: q is significant"
_MISSING = "missing: rows without a label, of all"
_NOTES = {
    "prevalence": f"cases of the judged rows; {_MISSING}; p: of the probability .5; {_Q}",
    "differences": f"judged, missing: rows of both levels; p: of equal levels; {_Q}",
    "deltas": f"cause, effect, both: judged rows with them; {_MISSING}; p: of no change; {_Q}",
}


@dataclass(frozen=True, slots=True)
class _Ends:
    low: float
    high: float


def framing_tables(framing: Framing) -> dict[str, TextTable]:
    """Every table that has rows, by its name. The choices behind them are the framing's notes."""
    keys = tuple(dict.fromkeys(name for part in framing.subsets for name, _ in part.fields))
    made = {
        "rankings": _ranking_table(framing, keys),
        "prevalence": _prevalence_table(framing, keys),
        "differences": _comparison_table(framing, keys),
        "deltas": _delta_table(framing, keys),
        "delta-differences": _delta_comparison_table(framing, keys),
        "brief": _movement_table(framing, keys),
        "set-aside": _set_aside_table(framing, keys),
    }
    return {name: table for name, table in made.items() if table.rows}


def p_text(value: float | None) -> str:
    """``.013``, ``<.001``; ``n/a`` when undefined."""
    return "<.001" if value is not None and value < 0.0005 else number(value)


def _ranking_table(framing: Framing, keys: Sequence[str]) -> TextTable:
    """A row for each subset, a column for each characteristic."""
    names = list(dict.fromkeys(found.characteristic for found in framing.rankings))
    lines: dict[Subset, dict[str, str]] = {}
    for found in framing.rankings:
        lines.setdefault(found.subset, {})[found.characteristic] = found.text
    rows = tuple(
        (*_where(subset, keys), f"{subset.groups:,}", *(texts.get(n, "") for n in names))
        for subset, texts in lines.items()
    )
    columns = (*_heads(keys), "clusters", *(framing.characteristics[n] for n in names))
    named = ", ".join(
        f"{short}: {level}" for level, short in framing.names.items() if short != level
    )
    notes = (
        "> significantly more often than the next, ~ not significantly, ? nothing can be said",
        "pairs that are no neighbours stand in the table of differences",
        *([named] if named else []),
    )
    return TextTable(_title(framing, "rankings"), columns, rows, notes, keys=max(1, len(keys)))


def _prevalence_table(framing: Framing, keys: Sequence[str]) -> TextTable:
    ranged, heads = _ranges(framing.prevalences)
    columns = ("Characteristic", "Level", "probability", *heads, *_TESTED)
    columns = (*columns, "cases", "judged", "missing")
    return _table(
        framing,
        ("how often", keys, columns, 2),
        "prevalence",
        framing.prevalences,
        lambda found: (
            *(framing.characteristics[found.characteristic], found.level),
            *(_interval(found, found.estimate), *ranged(found), *_tested(found)),
            *(f"{found.cases:,}", f"{found.rows:,}", f"{found.missing:,} of {found.total:,}"),
            found.reason,
        ),
    )


def _comparison_table(framing: Framing, keys: Sequence[str]) -> TextTable:
    ranged, heads = _ranges(framing.comparisons, signed=True)
    columns = ("Characteristic", "Levels", "difference", *heads, *_TESTED, "judged", "missing")
    return _table(
        framing,
        ("differences between levels", keys, columns, 2),
        "differences",
        framing.comparisons,
        lambda found: (
            *(framing.characteristics[found.characteristic], f"{found.first} - {found.second}"),
            *(_interval(found, found.difference, signed=True), *ranged(found), *_tested(found)),
            *(f"{found.rows:,}", f"{found.missing:,} of {found.rows + found.missing:,}"),
            found.reason,
        ),
    )


def _ranges(
    records: Iterable[Prevalence | Comparison], *, signed: bool = False
) -> tuple[Callable[[Prevalence | Comparison], tuple[str, ...]], tuple[str, ...]]:
    """The cells and headings of the ranges that missing labels allow, where there are any."""
    if all(found.lowest is None for found in records):
        return lambda _: (), ()

    def cells(found: Prevalence | Comparison) -> tuple[str, ...]:
        if found.lowest is None or found.highest is None:
            return ("",)
        return (with_range(found.lowest, found.highest, None, signed=signed),)

    return cells, ("range",)


def _delta_table(framing: Framing, keys: Sequence[str]) -> TextTable:
    columns = ("Cause", "Effect", "Level", "delta", *_TESTED, "cause", "effect", "both")
    return _table(
        framing,
        ("P(effect | cause) - P(effect | no cause)", keys, (*columns, "judged", "missing"), 3),
        "deltas",
        framing.deltas,
        lambda found: (
            *(framing.characteristics[found.cause], framing.characteristics[found.effect]),
            *(found.level, _interval(found, found.delta, signed=True), *_tested(found)),
            *(f"{found.with_cause:,}", f"{found.with_effect:,}", f"{found.with_both:,}"),
            *(f"{found.rows:,}", f"{found.missing:,} of {found.total:,}"),
            found.reason,
        ),
    )


def _delta_comparison_table(framing: Framing, keys: Sequence[str]) -> TextTable:
    columns = ("Cause", "Effect", "Levels", "difference", *_TESTED, "judged", "missing")
    return _table(
        framing,
        ("differences of deltas between levels", keys, columns, 3),
        "differences",
        framing.delta_comparisons,
        lambda found: (
            *(framing.characteristics[found.cause], framing.characteristics[found.effect]),
            f"{found.first} - {found.second}",
            *(_interval(found, found.difference, signed=True), *_tested(found)),
            *(f"{found.rows:,}", f"{found.missing:,} of {found.rows + found.missing:,}"),
            found.reason,
        ),
    )


def _movement_table(framing: Framing, keys: Sequence[str]) -> TextTable:
    rows = tuple(
        (
            *(found.where, framing.characteristics[found.cause]),
            framing.characteristics[found.effect],
            *(f"{n:,}" for n in (found.rise, found.fall, found.same, found.undefined)),
            f"{found.total:,}",
        )
        for found in movements(framing)
    )
    first = _heads(keys)[0]
    columns = (first, "Cause", "Effect", "rise", "fall", "do not move", "undefined", "of")
    notes = ("deltas of all its subsets and levels; rise and fall are significant",)
    return TextTable(_title(framing, "deltas in brief"), columns, rows, notes, keys=3)


def _set_aside_table(framing: Framing, keys: Sequence[str]) -> TextTable:
    return _table(
        framing,
        ("not estimable", keys, ("Question", "Fit"), 2),
        "set-aside",
        framing.set_aside,
        lambda found: (found.question, found.fit, found.reason),
    )


def _table(
    framing: Framing,
    shape: tuple[str, Sequence[str], tuple[str, ...], int],
    notes: str,
    records: Iterable[Any],
    cells: Callable[[Any], tuple[str, ...]],
) -> TextTable:
    """A table with the fields of subsets in front and the reason behind."""
    what, keys, columns, more = shape
    rows = tuple((*_where(record.subset, keys), *cells(record)) for record in records)
    heads = (*_heads(keys), *columns, "why not")
    title, told = _title(framing, what), (_NOTES[notes],) if notes in _NOTES else ()
    return TextTable(title, heads, rows, told, keys=max(1, len(keys)) + more)


def _title(framing: Framing, what: str) -> str:
    return f"{framing.title}: {what}" + (" (synthetic)" if framing.synthetic else "")


def _heads(keys: Sequence[str]) -> tuple[str, ...]:
    return tuple(key.capitalize() for key in keys) or ("Subset",)


def _where(subset: Subset, keys: Sequence[str]) -> tuple[str, ...]:
    return tuple(subset.get(key) or UNDEFINED for key in keys) or (subset.name,)


def _interval(record: Any, value: float | None, *, signed: bool = False) -> str:
    if value is None:
        return UNDEFINED
    return with_interval(value, _Ends(record.low, record.high), signed=signed)


def _tested(record: Any) -> tuple[str, str, str]:
    mark = UNDEFINED if record.significant is None else "*" if record.significant else ""
    return p_text(record.p), p_text(record.q), mark
