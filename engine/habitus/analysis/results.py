"""Everything a reader is told about a run, with the rules by which it was computed.

    table = read_verdicts(evaluations, design)
    found = results(table, ResultOptions(seed=experiment.seed, by=("culture",)))
    found.json_bytes()

What the numbers speak of: other personas drawn in the same way from the same cultures, meeting
these norms, recommendations, judges and (unless ``queries`` is ``resampled``) these queries.
Nothing here allows for a judge that errs, or for cultures that were not chosen.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from habitus.analysis.common import CommonRow, common_rows
from habitus.analysis.counting import asked_items
from habitus.analysis.differences import Difference, make_differences
from habitus.analysis.embeddedness import Embeddedness, make_embeddedness
from habitus.analysis.measures import Resampler
from habitus.analysis.options import MissingRule, ResultOptions
from habitus.analysis.outcomes import OutcomeTable
from habitus.analysis.rows import Row, make_rows
from habitus.analysis.safety import SafetyRow
from habitus.analysis.verdicts import MISSING, VerdictTable

FEW_DF = 5
RULES: dict[MissingRule, str] = {
    "exclude": "left out of the rates and counted as not judged",
    "not_satisfied": "they count as not satisfied in every rate",
    "bounds": "where some are missing a number is the range from none of them satisfied to all of "
    "them, and its interval goes from the lower limit of the one to the upper limit of the other; "
    "correlations leave them out",
}
NOT_JUDGED = (
    "not judged, in brackets: how that ended which a verdict lacks, which may be the response, its "
    "recommendation or the evaluator's answer; whose failure it was stands in the table of outcomes"
)
ABOUT_DIFFERENCES = (
    "differences are b - a on items judged in both; their intervals are for one at a time"
)
ABOUT_RANGES = (
    "differences are b - a on items asked in both, from the lowest to the highest that missing "
    "verdicts allow; their intervals are for one at a time"
)
ABOUT_EMBEDDEDNESS = (
    "Adaptation = e * Follow + (1 - e) * Avoid, where e, the embeddedness, is the share of a "
    "persona's non-neutral norms that it follows: a slope over e is there even for a model that "
    "ignores the persona"
)


@dataclass(frozen=True, slots=True)
class Results:
    """The results of a run; ``notes`` are the rules and warnings to print with them.

    ``common`` has all targets of a setting on the items that all of them answered, ``outcomes`` what
    became of everything that was asked for, where the caller has counted that.
    """

    rows: tuple[Row, ...]
    differences: tuple[Difference, ...]
    embeddedness: tuple[Embeddedness, ...]
    safety: tuple[SafetyRow, ...]
    notes: tuple[str, ...]
    options: ResultOptions
    common: tuple[CommonRow, ...] = ()
    outcomes: OutcomeTable | None = None

    @property
    def synthetic(self) -> bool:
        """Whether any of it comes from a planted target."""
        return any(row.synthetic for row in self.rows) or any(row.synthetic for row in self.safety)

    def as_json(self) -> dict[str, Any]:
        """Plain data; undefined is None, floats are as computed."""
        return {
            "synthetic": self.synthetic,
            "rows": [row.as_json() for row in self.rows],
            "differences": [difference.as_json() for difference in self.differences],
            "common_items": [row.as_json() for row in self.common],
            "embeddedness": [part.as_json() for part in self.embeddedness],
            "safety": [row.as_json() for row in self.safety],
            "outcomes": self.outcomes.as_json() if self.outcomes else [],
            "left": dict(self.outcomes.left) if self.outcomes else {},
            "notes": list(self.notes),
            "options": {
                "seed": self.options.seed,
                "draws": self.options.draws,
                "level": self.options.rule.level,
                "interval": self.options.rule.method,
                "by": list(self.options.by),
                "missing": self.options.missing,
                "queries": self.options.queries,
                "shown": self.options.shown is not None,
            },
        }

    def json_bytes(self) -> bytes:
        """The same results as the same bytes, whatever the order of the records was."""
        text = json.dumps(self.as_json(), ensure_ascii=False, allow_nan=False, indent=1)
        return (text + "\n").encode("utf-8", "backslashreplace")


def results(
    table: VerdictTable,
    options: ResultOptions | None = None,
    safety: Sequence[SafetyRow] = (),
    outcomes: OutcomeTable | None = None,
) -> Results:
    """Compute all results of a table of verdicts."""
    options = options or ResultOptions()
    kept = table if options.shown is None else table.only_shown(options.shown)
    resampler = Resampler(
        kept.cultures, len(kept.queries), options.draws, options.seed, options.rule
    )
    return Results(
        rows=tuple(make_rows(kept, resampler, options)),
        differences=tuple(make_differences(kept, resampler, options)),
        embeddedness=tuple(make_embeddedness(kept, resampler, options)),
        safety=tuple(safety),
        notes=(*_unfinished_note(outcomes), *_notes(table, kept, options)),
        options=options,
        common=tuple(common_rows(kept, resampler, options)),
        outcomes=outcomes,
    )


def _notes(table: VerdictTable, kept: VerdictTable, options: ResultOptions) -> Iterator[str]:
    yield from _synthetic_note(kept, options)
    yield (
        "rates are pooled over items and repeats; CCS is the harmonic mean of the pooled Follow "
        "and Avoid rates, CCS by persona the mean of the personas' own CCS, over personas with "
        "both Follow and Avoid items"
    )
    yield f"missing verdicts ({options.missing}): {RULES[options.missing]}"
    if (kept.answers == MISSING).any():
        yield NOT_JUDGED
    yield _interval_note(kept, options)
    yield from _shared_note(kept, options)
    yield from _shown_note(table, kept, options)
    yield from _few_note(kept)
    yield from _coverage_note(kept)
    if len(kept.cells) > 1:
        yield about_differences(options)
    yield ABOUT_EMBEDDEDNESS


def _unfinished_note(outcomes: OutcomeTable | None) -> Iterator[str]:
    if outcomes is not None and outcomes.unfinished:
        yield f"{outcomes.unfinished}, whatever the rule for missing verdicts"


def about_differences(options: ResultOptions) -> str:
    """What a difference is under the rule for missing verdicts."""
    return ABOUT_RANGES if options.missing == "bounds" else ABOUT_DIFFERENCES


def _synthetic_note(table: VerdictTable, options: ResultOptions) -> Iterator[str]:
    planted = sorted({cell.target for cell in table.cells} & options.synthetic)
    if planted:
        yield f"SYNTHETIC: answers or verdicts were planted, no model was measured ({', '.join(planted)})"


def _interval_note(table: VerdictTable, options: ResultOptions) -> str:
    form = {
        "logit_t": "t on the log-odds scale with the draws' standard error",
        "percentile": "percentiles of the draws (too short for few personas)",
    }[options.rule.method]
    fixed = "" if options.queries == "resampled" else "queries, "
    n = len(set(table.cultures))
    cultures = "1 culture" if n == 1 else f"{n} cultures"
    people = len(table.personas)
    return (
        f"{options.rule.level:.0%} intervals: {people} {'persona' if people == 1 else 'personas'} resampled within "
        f"{cultures}, {options.draws:,} draws, {form}; they allow for other personas of these "
        f"cultures, not for other {fixed}norms or cultures, nor for errors of a judge"
    )


def _shared_note(table: VerdictTable, options: ResultOptions) -> Iterator[str]:
    shared = sorted({c.setting for c, s in zip(table.cells, table.shared, strict=True) if s})
    if shared:
        yield (
            f"in {', '.join(shared)} all personas of a query share one response: queries are "
            "resampled with personas there and in its differences (wider than needed, if anything)"
        )
    if options.queries == "resampled":
        yield "queries are resampled with personas everywhere"


def _shown_note(table: VerdictTable, kept: VerdictTable, options: ResultOptions) -> Iterator[str]:
    if options.shown is not None:
        lost = len(table.personas) - len(kept.personas)
        yield (
            f"shown norms only: {kept.pairs()} of {table.pairs()} (persona, norm) pairs, the same "
            f"in every setting; {lost} of {len(table.personas)} personas show none"
        )
        reasons = Counter(options.unseen.values())
        if reasons:
            told = ", ".join(f"{why}: {n:,}" for why, n in sorted(reasons.items()))
            yield (
                f"of {len(options.unseen):,} personas it is not known what they show ({told}): what "
                "is not known to be shown is left out, by every rule for missing verdicts"
            )


def _few_note(table: VerdictTable) -> Iterator[str]:
    cultures = table.cultures
    single = sorted(c for c in set(cultures) if cultures.count(c) == 1)
    if single:
        yield f"no intervals where a culture has one persona only: {', '.join(single)}"
    df = len(cultures) - len(set(cultures))
    if not single and 0 < df < FEW_DF:
        yield (
            f"only {len(cultures)} personas: intervals are very wide, and say little more than that"
        )


def _coverage_note(table: VerdictTable) -> Iterator[str]:
    asked = [asked_items(row) for row in table.answers]
    if len(set(asked)) > 1:
        parts = [f"{c.target} {c.setting} {n:,}" for c, n in zip(table.cells, asked, strict=True)]
        yield (
            f"rows rest on different items ({'; '.join(parts)}): compare settings and targets by "
            "the differences, which use common items only"
        )
