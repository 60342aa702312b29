"""The filter: which attempt at a session stands in the history.

A session that reveals the culture outright is never kept. One that contradicts the persona's
states is simulated again (switch ``contradictions``), up to a limit of attempts; after that the
attempt with the fewest contradictions is kept and flagged. Attempts whose dialogue or check
failed are simulated again too. ``report_only`` keeps the first attempt whatever is found, as
long as it is a dialogue. Every attempt is recorded with the reasons for which it was rejected.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass

from habitus.histories.sessions import SessionPlan
from habitus.histories.simulation import Simulator
from habitus.histories.verifier import Verifier
from habitus.personas.portrait import Portrait
from habitus.records import Attempt, History, Outcome, SessionRef


@dataclass(frozen=True, slots=True)
class FilterRules:
    """What the filter does with what it finds.

    Args:
        report_only: keep every first attempt that is a dialogue; findings are only recorded.
        attempts: most attempts at one session.
        contradictions: simulate again when a session contradicts the persona's states.
    """

    report_only: bool = False
    attempts: int = 3
    contradictions: bool = True


@dataclass(frozen=True, slots=True)
class SessionFilter:
    """Simulates, checks and decides, one session at a time."""

    simulator: Simulator
    verifier: Verifier
    rules: FilterRules

    async def session(self, portrait: Portrait, plan: SessionPlan) -> tuple[Attempt, ...]:
        """All attempts at one session; at most one of them is accepted or flagged."""
        attempts: list[Attempt] = []
        while len(attempts) < self.rules.attempts:
            attempts.append(await self._attempt(portrait, plan, len(attempts)))
            if self._enough(attempts[-1]):
                break
        return decide(attempts, self.rules)

    def _enough(self, attempt: Attempt) -> bool:
        """Whether no further attempt is needed: a clean one, or any dialogue if all are kept."""
        held = attempt.outcome is Outcome.OK
        return not attempt.rejected_for or (self.rules.report_only and held)

    async def _attempt(self, portrait: Portrait, plan: SessionPlan, number: int) -> Attempt:
        attempt = _as_planned(await self.simulator.simulate(portrait, plan, number), plan)
        if attempt.outcome is Outcome.OK:
            check = await self.verifier.check(portrait, attempt)
            attempt = attempt.model_copy(update={"check": check})
        reasons = tuple(_reasons(attempt, self.rules))
        return attempt.model_copy(update={"rejected_for": reasons})


def _as_planned(attempt: Attempt, plan: SessionPlan) -> Attempt:
    """An attempt as it may be kept: one that does not begin with its opener, word for word, is none."""
    said = attempt.turns[0].text if attempt.turns else plan.text
    if said == plan.text and (attempt.turns or attempt.outcome is not Outcome.OK):
        return attempt
    reason = "the session does not begin with its opener word for word"
    return attempt.model_copy(
        update={"outcome": Outcome.ERROR, "reason": reason, "turns": (), "end": "failed"}
    )


def decide(attempts: Sequence[Attempt], rules: FilterRules) -> tuple[Attempt, ...]:
    """The attempts with their decisions: the first clean one, or the least bad one, flagged."""
    clean = [a for a in attempts if not a.rejected_for]
    usable = [a for a in attempts if _usable(a, rules)]
    kept = min(clean or usable, key=_badness, default=None)
    decision = "accepted" if clean or rules.report_only else "flagged"
    return tuple(a.model_copy(update={"decision": decision}) if a is kept else a for a in attempts)


def make_history(portrait: Portrait, sessions: Sequence[tuple[Attempt, ...]]) -> History:
    """The history of a persona from the attempts at each of its sessions, in order."""
    kept = [next((a for a in group if a.decision != "rejected"), None) for group in sessions]
    chosen = [a for a in kept if a is not None]
    lost = [g for g, a in zip(sessions, kept, strict=True) if a is None]
    removed = tuple(g[0].number for g in lost if any(map(_reveals, g)))
    missing = tuple(g[0].number for g in lost if not any(map(_reveals, g)))
    problem = f"no usable attempt at sessions {missing}" if missing else ""
    if not chosen:
        problem = problem or "every session was removed for a reveal"
    return History(
        id=portrait.id,
        outcome=Outcome.ERROR if problem else Outcome.OK,
        reason=problem,
        persona=portrait.id,
        sessions=tuple(
            SessionRef(number=a.number, attempt=a.id, flagged=a.decision == "flagged")
            for a in chosen
        ),
        removed=removed,
        missing=missing,
        digest=_digest(chosen),
        shown=_shown(portrait, chosen),
    )


def _reveals(attempt: Attempt) -> bool:
    return attempt.check is not None and attempt.check.reveals


def _reasons(attempt: Attempt, rules: FilterRules) -> list[str]:
    """Why an attempt is not accepted; empty when it is clean."""
    if attempt.outcome is not Outcome.OK or attempt.check is None:
        return [f"dialogue {attempt.outcome}"]
    check = attempt.check
    reasons = []
    if check.explicit_reveal:
        reasons.append("explicit reveal (verifier)")
    if check.lexical_reveals:
        reasons.append("explicit reveal (lexical)")
    if check.outcome is not Outcome.OK:
        reasons.append(f"check {check.outcome}")
    if rules.contradictions and check.contradicted:
        reasons.append("contradicts the persona")
    return reasons


def _usable(attempt: Attempt, rules: FilterRules) -> bool:
    """Whether an attempt may be kept although it is not clean."""
    if attempt.outcome is not Outcome.OK or attempt.check is None:
        return False
    if rules.report_only:
        return True
    return attempt.check.outcome is Outcome.OK and not attempt.check.reveals


def _badness(attempt: Attempt) -> tuple[int, int]:
    contradicted = len(attempt.check.contradicted) if attempt.check else 0
    return contradicted, attempt.attempt


def _shown(portrait: Portrait, chosen: Sequence[Attempt]) -> tuple[str, ...]:
    """Norms whose stance in at least one kept session is the persona's own."""
    seen = {
        check.norm
        for attempt in chosen
        if attempt.check is not None
        for check in attempt.check.norms
        if check.stance != 0 and check.stance == portrait.states[check.norm]
    }
    return tuple(norm for norm in portrait.states if norm in seen)


def _digest(chosen: Sequence[Attempt]) -> str:
    hasher = hashlib.sha256()
    for attempt in chosen:
        hasher.update(f"session\0{len(attempt.turns)}\0".encode())
        for turn in attempt.turns:
            text = turn.text.encode("utf-8", "surrogatepass")
            hasher.update(f"{turn.speaker}\0{len(text)}\0".encode() + text)
    return hasher.hexdigest()[:32]
