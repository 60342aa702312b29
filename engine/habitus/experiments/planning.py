"""What an experiment will cost, as a range, before any call.

Calls are counted from the study; the upper end has every session simulated as often as the
filter allows. Tokens are estimated from the texts at four characters a token, answers between a
quarter and all of ``max_tokens`` (where none is set, up to ``ASSUMED_MAX``). Money needs a price
in the model's entry; where there is none it is unknown, not zero. Time assumes the stated speeds
for each request and as many at once as the entry allows.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import accumulate
from statistics import fmean
from typing import Literal

from habitus.experiments.config import RoleConfig
from habitus.experiments.counting import is_shared, stage_counts
from habitus.experiments.study import Study
from habitus.models import Caps, ModelEntry, Price
from habitus.models.spending import is_billed
from habitus.records import Usage

CHARACTERS_PER_TOKEN = 4
ASSUMED_MAX = 1000
READ, WRITTEN = 2000.0, 40.0  # tokens a second of one request: prompt read, answer written
LOCAL_READ, LOCAL_WRITTEN = 200.0, 70.0

Range = tuple[float, float]


@dataclass(frozen=True, slots=True)
class StagePlan:
    """The cost of one stage for one model. Ranges are (low, high).

    ``prompt`` and ``completion`` are tokens, ``reusable`` the share of prompt tokens that stand
    in a prefix that some other request has too, ``money`` is in ``currency`` and None where no
    price is known, ``seconds`` is the time if nothing else ran. ``free``: nobody bills the model.
    """

    stage: str
    model: str
    calls: tuple[int, int]
    prompt: Range
    completion: Range
    reusable: float
    money: Range | None
    currency: str
    seconds: Range
    free: bool = False


@dataclass(frozen=True, slots=True)
class _Work:
    """Calls of one kind: how many, how long their prompts are, and who answers."""

    stage: str
    role: RoleConfig
    calls: tuple[int, int]
    prompt: float
    prefix: float = 0.0
    answer: int | None = None


def plan_costs(study: Study, limit: int | None = None) -> list[StagePlan]:
    """The cost of every stage, stage by stage and model by model."""
    works = [work for work in _works(study, limit) if work.calls[1]]
    return [_stage_plan(study, work) for work in works]


@dataclass(frozen=True, slots=True)
class CapPlan:
    """A cap beside what a run is expected to take of it: ``calls``, ``tokens`` or a currency.

    ``taken`` is (low, high), None where some price is not known. ``reached`` says whether the cap ends
    the run: ``no``, ``perhaps`` (in the high case only), ``yes`` (in the low case already) or
    ``unknown``; ``stage`` is where that is, counted stage after stage.
    """

    cap: str
    most: float
    taken: Range | None
    reached: Literal["no", "perhaps", "yes", "unknown"]
    stage: str = ""


_CASES: tuple[tuple[int, Literal["yes", "perhaps"]], ...] = ((0, "yes"), (1, "perhaps"))


def plan_caps(stages: Sequence[StagePlan], caps: Caps) -> list[CapPlan]:
    """Each cap, and whether the planned calls reach it."""
    most = {"calls": caps.calls, "tokens": caps.tokens, **caps.cost}
    return [_cap_plan(stages, cap, limit) for cap, limit in most.items() if limit is not None]


def _cap_plan(stages: Sequence[StagePlan], cap: str, most: float) -> CapPlan:
    parts = [_taken(stage, cap) for stage in stages]
    known = [part for part in parts if part is not None]
    if len(known) < len(parts):
        return CapPlan(cap, most, None, "unknown")
    taken = (sum(part[0] for part in known), sum(part[1] for part in known))
    for case, reached in _CASES:
        sums = accumulate(part[case] for part in known)
        over = next((s.stage for s, so_far in zip(stages, sums, strict=True) if so_far > most), "")
        if over:
            return CapPlan(cap, most, taken, reached, over)
    return CapPlan(cap, most, taken, "no")


def _taken(stage: StagePlan, cap: str) -> Range | None:
    """What a stage takes of a cap; None where its price is not known."""
    if cap == "calls":
        return stage.calls
    if cap == "tokens":
        return (stage.prompt[0] + stage.completion[0], stage.prompt[1] + stage.completion[1])
    if stage.money is None:
        return (0.0, 0.0) if stage.free else None
    return stage.money if stage.currency == cap else (0.0, 0.0)


def _works(study: Study, limit: int | None) -> Iterator[_Work]:
    yield from _history_works(study, limit)
    counts = stage_counts(study, limit)
    people = [bool(portrait.active) for portrait in study.portraits]
    judged = counts.evaluations * sum(people) // len(people)  # without items there is no call
    roles, texts = study.experiment.roles, _Texts(study)
    yield _Work(
        "checklists",
        roles.recommender,
        (counts.recommendations, counts.recommendations),
        texts.recommend,
        texts.recommend_system,
        study.experiment.checklist.length // CHARACTERS_PER_TOKEN,
    )
    answer = 0.0
    for role in study.experiment.targets.values():
        answer = max(answer, (role.max_tokens or ASSUMED_MAX) * 0.6)
        yield from _response_works(study, role, texts, limit)
    yield _Work(
        "verdicts",
        roles.evaluator,
        (judged, judged),
        texts.evaluate + answer,
        texts.evaluate_system,
        round(texts.items * 60),
    )
    if roles.safety:
        calls = (counts.safety, counts.safety)
        yield _Work("judge/safety", roles.safety, calls, 300 + texts.query + answer, 250, 80)


def _history_works(study: Study, limit: int | None) -> Iterator[_Work]:
    sessions = stage_counts(study, limit).attempts
    history, roles = study.experiment.history, study.experiment.roles
    attempts = (
        1 if study.experiment.filter.policy == "report_only" else study.experiment.filter.attempts
    )
    low, high = history.exchanges
    texts = _Texts(study)
    if history.form == "single_call":
        calls = (sessions, sessions * attempts)
        yield _Work("histories", roles.persona, calls, texts.sheet + 300, 0, high * 120)
    else:
        persona = (sessions * (low - 1), sessions * (high - 1) * attempts)
        assistant = (sessions * low, sessions * high * attempts)
        half = (low + high) / 2 * 60
        yield _Work(
            "histories/persona", roles.persona, persona, texts.sheet + 250 + half, texts.sheet + 250
        )
        yield _Work("histories/assistant", roles.assistant, assistant, 60 + half, 60)
    verifier = (sessions, sessions * attempts)
    prompt = texts.statements + 350 + (low + high) / 2 * 120
    yield _Work(
        "filter", roles.verifier, verifier, prompt, texts.statements + 350, round(texts.norms * 60)
    )


def _response_works(
    study: Study, role: RoleConfig, texts: _Texts, limit: int | None
) -> Iterator[_Work]:
    queries = len(study.queries[:limit]) * study.experiment.repeats
    for setting in study.settings:
        people = 1 if is_shared(study, setting) else len(study.portraits)
        prefix = texts.history if setting.uses_history else 0.0
        prefix += texts.statements * 0.6 if setting.file.norms else 0.0
        calls = (queries * people, queries * people)
        yield _Work(f"responses/{setting.id}", role, calls, prefix + texts.query + 30, prefix)


class _Texts:
    """Mean lengths of the texts of a study, in tokens."""

    def __init__(self, study: Study) -> None:
        portraits = study.portraits
        self.query = _tokens([query.text for query in study.queries])
        self.sheet = _tokens([portrait.sheet for portrait in portraits])
        self.norms = fmean(len(portrait.states) for portrait in portraits)
        self.items = fmean(len(portrait.active) for portrait in portraits)
        self.statements = _tokens(["\n".join(p.statements.values()) for p in portraits])
        sessions = sum(pool.sessions for pool in study.pools)
        self.history = sessions * sum(study.experiment.history.exchanges) / 2 * 120
        self.recommend_system = _tokens([study.prompts.recommend.parts[0][1]])
        self.recommend = self.recommend_system + self.query + 60
        self.evaluate_system = _tokens([study.prompts.evaluate.parts[0][1]])
        length = study.experiment.checklist.length / CHARACTERS_PER_TOKEN
        self.evaluate = self.evaluate_system + self.items * (40 + length * 0.6)


def _tokens(texts: Sequence[str]) -> float:
    return fmean(map(len, texts)) / CHARACTERS_PER_TOKEN if texts else 0.0


def _stage_plan(study: Study, work: _Work) -> StagePlan:
    entry = study.experiment.models[work.role.model]
    most = min(work.role.max_tokens or ASSUMED_MAX, 2 * work.answer if work.answer else 10**9)
    answer = (most / 4, float(most))
    calls = work.calls
    completion = (calls[0] * answer[0], calls[1] * answer[1])
    prompt = (calls[0] * work.prompt * 0.8, calls[1] * work.prompt * 1.25)
    return StagePlan(
        stage=work.stage,
        model=work.role.model,
        calls=calls,
        prompt=prompt,
        completion=completion,
        reusable=min(1.0, work.prefix / work.prompt) if work.prompt else 0.0,
        money=_money(entry.price, prompt, completion, work),
        currency=entry.price.currency if entry.price else "",
        seconds=_seconds(entry, prompt, completion),
        free=not is_billed(entry),
    )


def _money(price: Price | None, prompt: Range, completion: Range, work: _Work) -> Range | None:
    """Low: every reusable prompt token comes from the cache. High: none does."""
    if price is None:
        return None
    share = min(1.0, work.prefix / work.prompt) if work.prompt else 0.0
    low = price.cost(Usage(round(prompt[0]), round(completion[0]), round(prompt[0] * share)))
    high = price.cost(Usage(round(prompt[1]), round(completion[1]), 0))
    return (low or 0.0, high or 0.0)


def _seconds(entry: ModelEntry, prompt: Range, completion: Range) -> Range:
    if entry.backend in {"scripted", "planted", "replay"}:
        return (0.0, 0.0)
    local = entry.backend == "local"
    read, written = (LOCAL_READ, LOCAL_WRITTEN) if local else (READ, WRITTEN)
    width = int(entry.options.get("slots", 1)) if local else entry.concurrency
    low = (prompt[0] * 0.1 / read + completion[0] / written) / width
    high = (prompt[1] / read + completion[1] / written) / width
    return (low, high)
