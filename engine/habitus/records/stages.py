"""The records of the stages, as they are stored.

Ids follow one scheme: persona ``<culture>-NN``; attempt at a session ``<persona>/sNN/aK``;
query ``<domain>-NNN``; recommendation ``<norm>/<follow or avoid>/<query>``; response
``<target>/<setting>/<persona>/<query>/rN`` (persona ``-`` in a shared ``none``); verdict
``<response>/<persona>/<norm>``.

Records hold no time, no latency and no count of retries: two runs with the same seed and a
deterministic model give the same bytes.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Literal

from pydantic import BaseModel, ConfigDict, Field, field_validator

from habitus.records.calls import Outcome

NormState = Literal[-1, 0, 1]


class StageRecord(BaseModel):
    """Base of stored records: an id, an outcome, and the reason when the outcome is not ok."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    id: str
    outcome: Outcome = Outcome.OK
    reason: str = ""

    def line(self) -> bytes:
        """The record as one JSON line without its end; a lone surrogate becomes an escape."""
        try:
            return self.model_dump_json().encode()
        except ValueError:  # UTF-8 cannot hold a lone surrogate, and pydantic refuses to write it
            text = json.dumps(self.model_dump(), ensure_ascii=False, separators=(",", ":"))
            return text.encode("utf-8", "backslashreplace")


class Turn(BaseModel):
    """One utterance of a session."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    speaker: Literal["persona", "assistant"]
    text: str


class NormCheck(BaseModel):
    """What the verifier says of one norm in one session.

    ``inferrable_from_text``: could any text show this norm? ``implicitly_inferrable``: can the
    stance be told from this session? ``adherence``: the stance shown (None when not inferrable).
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    norm: str
    explanation: str = ""
    inferrable_from_text: bool
    implicitly_inferrable: bool
    adherence: bool | None

    @property
    def stance(self) -> NormState:
        """The stance shown: +1, -1, or 0 where none can be told."""
        if not self.implicitly_inferrable or self.adherence is None:
            return 0
        return 1 if self.adherence else -1


class SessionCheck(BaseModel):
    """What the verifier and the lexical check say of one session."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    outcome: Outcome = Outcome.OK
    reason: str = ""
    norms: tuple[NormCheck, ...] = ()
    explicit_reveal: bool | None = None
    culture_guess: str = ""
    lexical_reveals: tuple[str, ...] = ()
    contradicted: tuple[str, ...] = ()
    calls: tuple[str, ...] = ()

    @property
    def reveals(self) -> bool:
        """Whether the model or the lexical check found an outright reveal."""
        return bool(self.explicit_reveal) or bool(self.lexical_reveals)


class Attempt(StageRecord):
    """One attempt at one session, with its check and whether it was taken into the history.

    ``role_breaks`` says how the persona left its role, where it did; None where nobody looked, as in
    runs of before. Turns alternate, begin with the persona's, and none is empty.
    """

    persona: str
    number: int
    attempt: int
    kind: Literal["domain", "everyday"]
    opener: str
    turns: tuple[Turn, ...] = ()
    end: str = ""
    restatement: dict[str, NormState] | None = None
    role_breaks: tuple[str, ...] | None = None
    check: SessionCheck | None = None
    decision: Literal["accepted", "flagged", "rejected"] = "rejected"
    rejected_for: tuple[str, ...] = ()
    calls: tuple[str, ...] = ()

    @field_validator("turns")
    @classmethod
    def _in_turn(cls, turns: tuple[Turn, ...]) -> tuple[Turn, ...]:
        for place, turn in enumerate(turns):
            if turn.speaker != ("assistant" if place % 2 else "persona"):
                raise ValueError(f"turn {place + 1} is not the {turn.speaker}'s to speak")
            if not turn.text:
                raise ValueError(f"turn {place + 1} has no text")
        return turns


class SessionRef(BaseModel):
    """Which attempt stands for a session in a history."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    number: int
    attempt: str
    flagged: bool = False


class History(StageRecord):
    """The sessions of a persona in order, and the norms that they show.

    ``digest`` names the visible turns, session by session. ``removed`` lists the numbers of
    sessions that are out because they revealed the culture (every attempt that could be held and
    checked did), ``missing`` those of which no attempt could be held and checked at all: a history
    with missing sessions is not ok and is not shown to any target.
    """

    persona: str
    sessions: tuple[SessionRef, ...]
    removed: tuple[int, ...] = ()
    missing: tuple[int, ...] = ()
    digest: str = ""
    shown: tuple[str, ...] = ()


class Recommendation(StageRecord):
    """How a good answer to a query accommodates a person who follows or avoids a norm."""

    norm: str
    state: Literal[-1, 1]
    query: str
    text: str = ""
    calls: tuple[str, ...] = ()


class Response(StageRecord):
    """The answer of a target in a setting.

    ``text`` is what is scored; ``working`` is the visible reasoning that a setting asks for and
    ``reasoning`` the model's own, both kept apart. ``history`` is the digest of the history, and
    ``dropped`` lists the numbers of its sessions that were not shown, since they did not fit.
    """

    target: str
    setting: str
    persona: str
    query: str
    repeat: int
    text: str = ""
    working: str = ""
    reasoning: str = ""
    history: str = ""
    dropped: tuple[int, ...] = ()
    calls: tuple[str, ...] = ()


class Verdict(BaseModel):
    """Whether a response meets one recommendation; ``satisfied`` is None when nothing was read."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    norm: str
    state: Literal[-1, 1]
    recommendation: str
    satisfied: bool | None
    outcome: Outcome = Outcome.OK
    reason: str = ""
    reasoning: str = ""


class Evaluation(StageRecord):
    """The verdicts on one response for one persona; id ``<response>/<persona>``.

    A verdict's own id is ``<id>/<norm>``. ``missing``, ``extra`` and ``doubled`` count
    identifiers that the evaluator left out, made up or gave twice.
    """

    response: str
    target: str
    setting: str
    persona: str
    query: str
    repeat: int
    verdicts: tuple[Verdict, ...]
    missing: int = 0
    extra: int = 0
    doubled: int = 0
    calls: tuple[str, ...] = ()


class SafetyLabel(StageRecord):
    """What the safety judge says of a response: ``unsafe`` is None when nothing was read."""

    response: str
    target: str
    setting: str
    persona: str
    query: str
    unsafe: bool | None = None
    reasoning: str = Field(default="", description="the judge's own explanation")
    calls: tuple[str, ...] = ()


class JudgedItem(StageRecord):
    """One question and the answer to it, as judges see it, and what an analysis groups it by.

    ``group`` names what answers have in common (a post, a persona): items of one group are not
    independent. ``target`` is the model that answered; judges never see it. ``fields`` holds what
    the input says beside (country, category, setting, culture, ...).
    """

    group: str
    target: str
    question: str = ""
    response: str = ""
    fields: dict[str, str] = Field(default_factory=dict)


class Label(StageRecord):
    """What one judge says of one item; id ``<item>/<judge>`` or ``<item>/<judge>.<variant>``.

    ``present`` says whether the label is one that counts as present (or as adhering); it is None,
    as ``label`` is, when nothing was read. ``others`` are labels that the answer marked elsewhere;
    ``alias`` holds the words that were given, where the judge's table of aliases made the label of
    them.
    """

    item: str
    judge: str
    variant: str = ""
    label: str | None = None
    present: bool | None = None
    reasoning: str = ""
    others: tuple[str, ...] = ()
    alias: str = ""
    calls: tuple[str, ...] = ()


#: Every table of records that a run can have, with what its records are.
TABLES: Mapping[str, type[StageRecord]] = {
    "attempts": Attempt,
    "histories": History,
    "recommendations": Recommendation,
    "responses": Response,
    "evaluations": Evaluation,
    "safety": SafetyLabel,
    "items": JudgedItem,
    "labels": Label,
}
