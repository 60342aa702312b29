"""Transcripts to read, drawn by seed, so that nobody chose them.

For every culture one persona, some of its sessions, and one query with the answers of all targets in
all settings. Long texts are cut, and say by how much: a report stays small enough to be sent.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from habitus.experiments.materials import Materials, PersonaMaterial
from habitus.experiments.responding import SHARED
from habitus.records import Attempt, Evaluation, History, Outcome, Recommendation, Response, Verdict
from habitus.reports.document.excerpts import Excerpt, excerpt
from habitus.reports.document.labelled import LabelReader, Said
from habitus.reports.document.lots import drawn
from habitus.store import RunDir

STATES = {1: "follow", 0: "neutral", -1: "avoid"}
_ROOM = 800_000  # characters of all texts together, about
_LEAST, _MOST = 300, 6_000  # characters of one text


@dataclass(frozen=True, slots=True)
class Talk:
    """One session: its turns as (who, what), and what the verifier saw."""

    name: str
    kind: str
    decision: str
    turns: tuple[tuple[str, Excerpt], ...]
    shows: tuple[str, ...]
    problem: str


@dataclass(frozen=True, slots=True)
class NormLine:
    """A norm of a persona: its statement, kind, state, and whether the history shows it."""

    id: str
    statement: str
    kind: str
    state: str
    shown: bool


@dataclass(frozen=True, slots=True)
class Judgement:
    """A verdict in one setting: ``met``, ``not met``, or the outcome of what could not be read."""

    said: str
    reason: str = ""


@dataclass(frozen=True, slots=True)
class Answer:
    """The response of a target in one setting, with how many recommendations it meets."""

    setting: str
    outcome: str
    reason: str
    text: Excerpt
    working: Excerpt
    reasoning: Excerpt
    met: int
    judged: int
    labels: tuple[Said, ...]


@dataclass(frozen=True, slots=True)
class ItemLine:
    """One recommendation and its verdict in every setting."""

    norm: str
    state: str
    recommendation: Excerpt
    verdicts: Mapping[str, Judgement]


@dataclass(frozen=True, slots=True)
class Answers:
    """What one target answered in all settings, and the checklist of it."""

    target: str
    synthetic: bool
    answers: tuple[Answer, ...]
    items: tuple[ItemLine, ...]


@dataclass(frozen=True, slots=True)
class Sample:
    """What is shown of one culture."""

    culture: str
    persona: str
    name: str
    norms: tuple[NormLine, ...]
    sessions: tuple[Talk, ...]
    query: str
    topic: str
    question: str
    targets: tuple[Answers, ...]


@dataclass(frozen=True, slots=True)
class Wanted:
    """How much is drawn: the seed, and the sessions of each persona."""

    seed: int
    sessions: int


class Sampler:
    """Draws from one run, with the labels of its responses where there are any."""

    def __init__(
        self,
        run: RunDir,
        kept: Materials,
        labels: LabelReader | None,
        synthetic: frozenset[str],
    ) -> None:
        self._run = run
        self._kept = kept
        self._labels = labels
        self._synthetic = synthetic
        texts = len({p.culture for p in kept.personas.values()})
        texts *= len(kept.targets) * len(kept.settings) * 2 + 24
        self._length = max(_LEAST, min(_MOST, _ROOM // max(1, texts)))

    def samples(self, wanted: Wanted) -> list[Sample]:
        """One sample for each culture, in the order of the experiment."""
        members: dict[str, list[str]] = {}
        for name, persona in self._kept.personas.items():
            members.setdefault(persona.culture, []).append(name)
        return [self._sample(c, names, wanted) for c, names in members.items()]

    def _sample(self, culture: str, names: Sequence[str], wanted: Wanted) -> Sample:
        name = drawn(wanted.seed, "report/persona", names)[0]
        persona = self._kept.personas[name]
        history = self._run.records.get("histories", name, History)
        query = drawn(wanted.seed, f"report/query/{name}", self._kept.queries)[0]
        return Sample(
            culture=culture,
            persona=name,
            name=persona.name,
            norms=tuple(self._norms(persona, history)),
            sessions=tuple(self._talks(history, wanted)),
            query=query,
            topic=self._topic(query),
            question=self._kept.queries[query].text,
            targets=tuple(self._answers(t, name, query) for t in self._kept.targets),
        )

    def _topic(self, query: str) -> str:
        topic = self._kept.queries[query].topic
        return self._kept.topics.get(topic, topic)

    def _norms(self, persona: PersonaMaterial, history: History | None) -> Iterator[NormLine]:
        shown = history.shown if history else ()
        for norm, state in persona.states.items():
            about = self._kept.norms[norm]
            yield NormLine(norm, about.statement, about.kind, STATES[state], norm in shown)

    def _talks(self, history: History | None, wanted: Wanted) -> Iterator[Talk]:
        if history is None:
            return
        kept = [ref.attempt for ref in history.sessions]
        names = drawn(wanted.seed, f"report/sessions/{history.persona}", kept)
        for name in sorted(names[: wanted.sessions]):
            attempt = self._run.records.get("attempts", name, Attempt)
            if attempt is not None:
                yield self._talk(attempt)

    def _talk(self, attempt: Attempt) -> Talk:
        check = attempt.check
        stances = [(norm.norm, norm.stance) for norm in check.norms] if check else []
        return Talk(
            name=f"s{attempt.number:02d}",
            kind={"domain": "on the domain", "everyday": "everyday"}[attempt.kind],
            decision=attempt.decision,
            turns=tuple((turn.speaker, self._cut(turn.text)) for turn in attempt.turns),
            shows=tuple(f"{norm}: {STATES[stance]}" for norm, stance in stances if stance),
            problem="; ".join(attempt.rejected_for),
        )

    def _answers(self, target: str, persona: str, query: str) -> Answers:
        answers = []
        verdicts: dict[str, dict[str, Judgement]] = {}
        asked: dict[str, Verdict] = {}
        for setting in self._kept.settings:
            found = self._response(target, setting, persona, query)
            if found is None:
                continue
            checked = self._run.records.get("evaluations", f"{found.id}/{persona}", Evaluation)
            known = checked.verdicts if checked else ()
            for verdict in known:
                asked.setdefault(verdict.norm, verdict)
                verdicts.setdefault(verdict.norm, {})[setting] = _judgement(verdict)
            answers.append(self._answer(found, known))
        items = (self._item(verdict, verdicts[norm]) for norm, verdict in asked.items())
        return Answers(target, target in self._synthetic, tuple(answers), tuple(items))

    def _response(self, target: str, setting: str, persona: str, query: str) -> Response | None:
        for who in (persona, SHARED):
            name = f"{target}/{setting}/{who}/{query}/r0"
            found = self._run.records.get("responses", name, Response)
            if found is not None:
                return found
        return None

    def _answer(self, found: Response, verdicts: Sequence[Verdict]) -> Answer:
        read = [v.satisfied for v in verdicts if v.satisfied is not None]
        return Answer(
            setting=found.setting,
            outcome=str(found.outcome),
            reason=found.reason[:_LEAST],
            text=self._cut(found.text),
            working=self._cut(found.working),
            reasoning=self._cut(found.reasoning),
            met=sum(read),
            judged=len(read),
            labels=tuple(self._labels.of(found.id)) if self._labels else (),
        )

    def _item(self, verdict: Verdict, by_setting: Mapping[str, Judgement]) -> ItemLine:
        name = verdict.recommendation
        found = self._run.records.get("recommendations", name, Recommendation)
        text = self._cut(found.text if found else name)
        return ItemLine(verdict.norm, STATES[verdict.state], text, by_setting)

    def _cut(self, text: str) -> Excerpt:
        return excerpt(text, self._length)


def _judgement(verdict: Verdict) -> Judgement:
    if verdict.outcome is not Outcome.OK or verdict.satisfied is None:
        failed = Outcome.UNPARSED if verdict.outcome is Outcome.OK else verdict.outcome
        return Judgement(str(failed), verdict.reason[:_LEAST])
    return Judgement("met" if verdict.satisfied else "not met", verdict.reasoning[:_MOST])
