"""Pages about people: a session as a conversation, a persona with values and norms, a culture.

Who speaks is said in words at every turn, and by the bar beside it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from habitus.browsing.document import Block, Document, Gap, Heading, Paragraph, Style
from habitus.experiments.materials import Materials, PersonaMaterial
from habitus.records import Attempt, History, NormCheck, NormState, Outcome, SessionCheck

STATES: dict[int, str] = {1: "FOLLOW", 0: "NEUTRAL", -1: "AVOID"}
_STANCES: dict[NormState, str] = {1: "follows it", -1: "rejects it", 0: "cannot be told"}
_SPEAKERS: dict[str, tuple[str, Style, str]] = {
    "persona": ("PERSON", "person", "\u2503 "),
    "assistant": ("ASSISTANT", "assistant", "  "),
}


def session_page(attempt: Attempt, persona: PersonaMaterial | None) -> Document:
    """One attempt at a session, as a conversation."""
    name = f" ({persona.name}, {persona.culture})" if persona else ""
    title = f"{attempt.persona}{name}, session {attempt.number}, {attempt.kind}"
    blocks: list[Block] = [Heading(title, 1), *_fate(attempt), Gap()]
    for number, turn in enumerate(attempt.turns, start=1):
        speaker, style, bar = _SPEAKERS[turn.speaker]
        blocks.append(Heading(f"{speaker}  {number} of {len(attempt.turns)}", 3, style))
        blocks += [Paragraph(turn.text, bar=bar), Gap()]
    if not attempt.turns:
        blocks += [Paragraph("No turn was held.", "unknown"), Gap()]
    blocks.append(Paragraph(f"End: {attempt.end or 'not said'}", "dim"))
    return Document(attempt.id, tuple(blocks))


def _fate(attempt: Attempt) -> Iterator[Block]:
    line = f"try {attempt.attempt + 1}, opener {attempt.opener}"
    if attempt.outcome is not Outcome.OK:
        line += f", {attempt.outcome}: {attempt.reason}"
    if attempt.decision == "accepted":
        yield Paragraph(f"accepted, {line}", "dim")
        return
    lead = f"{attempt.decision.upper()}: "
    why = "; ".join(attempt.rejected_for) or "see the check"
    yield Paragraph(why, "plain", lead=lead, lead_style="bad")
    yield Paragraph(line, "dim")


def persona_page(name: str, kept: Materials, history: History | None) -> Document:
    """What a persona holds, and its norms with what the history shows."""
    persona = kept.personas[name]
    return Document(
        name,
        (
            *_about(name, persona),
            *_history(history),
            Gap(),
            *_values(persona),
            *_norms(persona, kept, history, {}),
        ),
    )


def check_page(attempt: Attempt, kept: Materials, history: History | None) -> Document:
    """The persona beside a session: values, norms, and the verifier's words on each."""
    persona = kept.personas.get(attempt.persona)
    if persona is None:
        return Document(attempt.persona, (Paragraph("unknown persona", "unknown"),))
    said = {norm.norm: norm for norm in attempt.check.norms} if attempt.check else {}
    return Document(
        attempt.persona,
        (
            *_about(attempt.persona, persona),
            Gap(),
            *_check(attempt.check),
            *(Paragraph(found, "bad", lead="the persona ") for found in attempt.role_breaks or ()),
            Gap(),
            *_values(persona),
            *_norms(persona, kept, history, said),
        ),
    )


def _about(name: str, persona: PersonaMaterial) -> Iterator[Block]:
    yield Heading(f"{name}, {persona.name}", 1)
    follow = sum(state > 0 for state in persona.states.values())
    active = sum(state != 0 for state in persona.states.values())
    yield Paragraph(f"{persona.culture}; follows {follow} of {active} norms that are not neutral")


def _history(history: History | None) -> Iterator[Block]:
    if history is None:
        yield Paragraph("no history yet", "unknown")
        return
    line = f"history: {len(history.sessions)} sessions, shows {len(history.shown)} norms"
    if history.outcome is not Outcome.OK:
        line += f"; {history.outcome}: {history.reason}"
    yield Paragraph(line)
    for word, numbers in (("removed", history.removed), ("missing", history.missing)):
        if numbers:
            yield Paragraph(f"{word} sessions: {', '.join(map(str, numbers))}", "bad")


def _check(check: SessionCheck | None) -> Iterator[Block]:
    yield Heading("Check of this session")
    if check is None:
        yield Paragraph("not checked", "unknown")
        return
    if check.outcome is not Outcome.OK:
        yield Paragraph(f"{check.outcome}: {check.reason}", "unknown")
    reveal = {True: "yes", False: "no", None: "not read"}[check.explicit_reveal]
    yield Paragraph(
        reveal, "bad" if check.explicit_reveal else "plain", lead="reveals the culture: "
    )
    for phrase in check.lexical_reveals:
        yield Paragraph(phrase, "bad", lead="in these words: ")
    yield Paragraph(check.culture_guess or "none", lead="culture guessed: ")
    if check.contradicted:
        yield Paragraph(", ".join(check.contradicted), "bad", lead="contradicts: ")


def _values(persona: PersonaMaterial) -> Iterator[Block]:
    yield Heading("Values")
    for word, sign in (("holds", 1), ("rejects", -1)):
        named = [value for value, stance in persona.stances.items() if stance == sign]
        yield Paragraph(", ".join(named) or "none", lead=f"{word}: ")


def _norms(
    persona: PersonaMaterial,
    kept: Materials,
    history: History | None,
    said: dict[str, NormCheck],
) -> Iterator[Block]:
    """Norms that the session shows first, then the others; neutral ones last."""
    told = [norm for norm, check in said.items() if norm in persona.states and check.stance]
    rest = [norm for norm in persona.states if norm not in told]
    parts = [("Norms that this session shows", told), ("Other norms", rest)]
    for title, names in parts if told else [("Norms", rest)]:
        yield from (Gap(), Heading(title))
        for norm in sorted(names, key=lambda name: persona.states[name] == 0):
            yield from _norm(norm, persona.states[norm], kept, history, said.get(norm))


def _norm(
    norm: str,
    state: NormState,
    kept: Materials,
    history: History | None,
    check: NormCheck | None,
) -> Iterator[Block]:
    about = kept.norms.get(norm)
    shown = "not known yet" if history is None else "yes" if norm in history.shown else "no"
    kind = f" {about.kind}" if about else ""
    yield Gap()
    yield Paragraph(f"{norm}{kind}", "strong", lead=f"{STATES[state]} ")
    if about:
        yield Paragraph(about.statement, bar="  ")
    yield Paragraph(shown, bar="  ", lead="shown by the history: ", lead_style="dim")
    if check is not None:
        opposed = state != 0 and check.stance == -state
        words = _STANCES[check.stance] + (", CONTRADICTS" if opposed else "")
        style: Style = "bad" if opposed else "good" if check.stance else "dim"
        yield Paragraph(words, style, bar="  ", lead="verifier: ", lead_style="dim")
        if check.explanation:
            yield Paragraph(f'"{check.explanation}"', bar="    ")


def culture_page(culture: str, kept: Materials, personas: Sequence[str]) -> Document:
    """The personas and norms of a culture."""
    blocks: list[Block] = [Heading(culture, 1), Gap(), Heading("Personas")]
    for name in personas:
        states = list(kept.personas[name].states.values())
        counts = ", ".join(f"{states.count(s)} {STATES[s].lower()}" for s in (1, -1, 0))
        blocks.append(Paragraph(f"{kept.personas[name].name}: {counts}", lead=f"{name}  "))
    blocks += [Gap(), Heading("Norms")]
    for norm, about in kept.norms.items():
        if about.culture == culture:
            blocks.append(Paragraph(about.statement, lead=f"{norm} {about.kind}: "))
    return Document(culture, tuple(blocks))


def sessions_block(attempts: Iterable[Attempt]) -> Iterator[Block]:
    """A line for each attempt of a persona."""
    yield Heading("Sessions")
    for attempt in attempts:
        shown = sum(c.stance != 0 for c in attempt.check.norms) if attempt.check else 0
        words = f"{attempt.kind}, {len(attempt.turns)} turns, shows {shown} norms"
        if attempt.decision != "accepted":
            words += f", {attempt.decision.upper()}: {'; '.join(attempt.rejected_for)}"
        lead = f"s{attempt.number:02d} try {attempt.attempt + 1}  "
        yield Paragraph(
            words, "plain" if attempt.decision == "accepted" else "bad", lead=lead, lead_style="dim"
        )
