"""What the verifier found in the histories, by culture.

As published (arXiv 2607.05405, table on conversation quality): over first attempts only, and
over non-neutral norms whose stance can be told from the session. Adherence is the share of
those where the stance shown is the persona's own. It says nothing of norms that a session does
not show; how many could be told stands beside it. Later attempts are selected for adherence, so
they would flatter it.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from habitus.analysis.design import Design
from habitus.analysis.options import ResultOptions
from habitus.analysis.safety import clustered_interval
from habitus.records import Attempt, Outcome, SessionCheck
from habitus.statistics import Interval, Rate

ALL = "all"


@dataclass(frozen=True, slots=True)
class FilterRow:
    """One culture, or all of them.

    ``adherence``: agreeing norm checks of those that could be told, first attempts.
    ``inferrable``: norm checks that could be told, of all non-neutral ones. ``reveal``: first
    attempts in which the verifier saw an outright reveal; ``lexical_reveal`` in which the word
    list did. ``role_break``: first attempts in which the persona left its role, of those that are a
    dialogue. ``ends`` (why sessions ended), ``decisions`` and ``rejections`` count all attempts; an
    attempt may be rejected for more than one reason.
    """

    culture: str
    personas: int
    sessions: int
    adherence: Rate
    adherence_interval: Interval | None
    inferrable: Rate
    reveal: Rate
    lexical_reveal: Rate
    role_break: Rate
    attempts: int
    failed: Mapping[str, int]
    ends: Mapping[str, int]
    decisions: Mapping[str, int]
    rejections: Mapping[str, int]

    def as_json(self) -> dict[str, Any]:
        """As plain data; undefined is None."""
        found = self.adherence_interval
        return {
            "culture": self.culture,
            "personas": self.personas,
            "sessions": self.sessions,
            "adherence": self.adherence.value,
            "adherence_agreeing": self.adherence.satisfied,
            "adherence_judged": self.adherence.judged,
            "interval": {"adherence": [found.low, found.high] if found else None},
            "inferrable_share": self.inferrable.value,
            "inferrable_judged": self.inferrable.judged,
            **_rate_json("reveal", self.reveal),
            **_rate_json("lexical_reveal", self.lexical_reveal),
            **_rate_json("role_break", self.role_break),
            "attempts": self.attempts,
            "failed": dict(self.failed),
            "ends": dict(self.ends),
            "decisions": dict(self.decisions),
            "rejections": dict(self.rejections),
        }


@dataclass(frozen=True, slots=True)
class FilterTable:
    """Rows by culture, and one for all of them last; ``played_by`` names the model of each side."""

    rows: tuple[FilterRow, ...]
    played_by: Mapping[str, str] = field(default_factory=dict)

    def as_json(self) -> dict[str, Any]:
        """As plain data; undefined is None."""
        return {"rows": [row.as_json() for row in self.rows], "played_by": dict(self.played_by)}

    def json_bytes(self) -> bytes:
        """The table as JSON, the same bytes whatever the order of the records was."""
        return (
            json.dumps(self.as_json(), ensure_ascii=False, allow_nan=False, indent=1) + "\n"
        ).encode()


@dataclass(frozen=True, slots=True)
class _First:
    """What one attempt at a session adds to the rates; None where it was not checked."""

    attempt: int
    agreeing: int
    told: int
    checked: int
    reveal: bool | None
    lexical: bool | None
    role_break: bool | None


@dataclass
class _Tally:
    """What is counted for one persona."""

    firsts: dict[int, _First] = field(default_factory=dict)
    attempts: int = 0
    failed: Counter[str] = field(default_factory=Counter)
    ends: Counter[str] = field(default_factory=Counter)
    decisions: Counter[str] = field(default_factory=Counter)
    rejections: Counter[str] = field(default_factory=Counter)

    def add(self, attempt: Attempt, states: Mapping[str, int]) -> None:
        self.attempts += 1
        self.decisions[attempt.decision] += 1
        self.ends[attempt.end or "not said"] += 1
        self.rejections.update(attempt.rejected_for)
        if attempt.outcome is not Outcome.OK:
            self.failed[str(attempt.outcome)] += 1
        known = self.firsts.get(attempt.number)
        if known is None or attempt.attempt < known.attempt:
            self.firsts[attempt.number] = _first(attempt, states)


def filter_table(
    attempts: Iterable[Attempt],
    design: Design,
    options: ResultOptions | None = None,
    played_by: Mapping[str, str] | None = None,
) -> FilterTable:
    """The filter's table from attempts in any order; the texts are not kept."""
    options = options or ResultOptions()
    tallies: dict[str, _Tally] = {}
    for attempt in attempts:
        design.culture(attempt.persona)
        tally = tallies.setdefault(attempt.persona, _Tally())
        tally.add(attempt, design.states[attempt.persona])
    members: dict[str, list[str]] = {}
    for persona in sorted(tallies):
        members.setdefault(design.culture(persona), []).append(persona)
    rows = [_row(c, members[c], tallies, design, options) for c in sorted(members)]
    if rows:
        rows.append(_row(ALL, sorted(tallies), tallies, design, options))
    return FilterTable(tuple(rows), played_by or {})


def _first(attempt: Attempt, states: Mapping[str, int]) -> _First:
    check = attempt.check
    known = attempt.outcome is Outcome.OK and attempt.role_breaks is not None
    broken = bool(attempt.role_breaks) if known else None
    if check is None or check.outcome is not Outcome.OK:
        lexical = bool(check.lexical_reveals) if check is not None else None
        return _First(attempt.attempt, 0, 0, 0, None, lexical, broken)
    agreeing, told, checked = _norm_checks(check, states)
    return _First(
        attempt.attempt,
        agreeing,
        told,
        checked,
        check.explicit_reveal,
        bool(check.lexical_reveals),
        broken,
    )


def _norm_checks(check: SessionCheck, states: Mapping[str, int]) -> tuple[int, int, int]:
    scored = [norm for norm in check.norms if states.get(norm.norm)]
    told = [norm for norm in scored if norm.stance]
    agreeing = sum(norm.stance == states[norm.norm] for norm in told)
    return agreeing, len(told), len(scored)


def _row(
    culture: str,
    personas: Sequence[str],
    tallies: Mapping[str, _Tally],
    design: Design,
    options: ResultOptions,
) -> FilterRow:
    parts = [tallies[p] for p in personas]
    firsts = [first for part in parts for first in part.firsts.values()]
    sums = [
        np.array([sum(getattr(f, name) for f in part.firsts.values()) for part in parts], float)
        for name in ("agreeing", "told")
    ]
    adherence = Rate(int(sums[0].sum()), int(sums[1].sum()))
    strata = [design.culture(p) for p in personas]
    return FilterRow(
        culture=culture,
        personas=len(personas),
        sessions=len(firsts),
        adherence=adherence,
        adherence_interval=clustered_interval(adherence, (sums[0], sums[1]), strata, options),
        inferrable=Rate(adherence.judged, sum(first.checked for first in firsts)),
        reveal=_flags([first.reveal for first in firsts]),
        lexical_reveal=_flags([first.lexical for first in firsts]),
        role_break=_flags([first.role_break for first in firsts]),
        attempts=sum(part.attempts for part in parts),
        failed=_total([part.failed for part in parts]),
        ends=_total([part.ends for part in parts]),
        decisions=_total([part.decisions for part in parts]),
        rejections=_total([part.rejections for part in parts]),
    )


def _flags(flags: Sequence[bool | None]) -> Rate:
    known = [flag for flag in flags if flag is not None]
    return Rate(sum(known), len(known), len(flags) - len(known))


def _total(counters: Iterable[Counter[str]]) -> dict[str, int]:
    return dict(sorted(sum(counters, Counter[str]()).items()))


def _rate_json(name: str, rate: Rate) -> dict[str, Any]:
    return {
        name: rate.value,
        f"{name}_count": rate.satisfied,
        f"{name}_judged": rate.judged,
        f"{name}_not_judged": rate.missing,
    }
