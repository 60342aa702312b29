"""Small runs for the tests of results: a design, and evaluations drawn with planted chances."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Literal

import numpy as np

from habitus.analysis import Design
from habitus.records import Evaluation, Outcome, Verdict

TOPICS = ("disease", "mental health", "relationships")


def design(cultures: int = 2, personas: int = 4, queries: int = 3, norms: int = 6) -> Design:
    """Personas with states drawn at random, every one with a Follow and an Avoid norm."""
    rng = np.random.default_rng(11)
    names = [f"c{c}" for c in range(cultures)]
    states: dict[str, dict[str, int]] = {}
    for culture in names:
        for p in range(1, personas + 1):
            drawn = [1, -1, *rng.integers(-1, 2, norms - 2).tolist()]
            states[f"{culture}-{p:02d}"] = {f"{culture}_{n}": s for n, s in enumerate(drawn, 1)}
    return Design(
        cultures={persona: persona.split("-")[0] for persona in states},
        states=states,
        kinds={
            f"{c}_{n}": "communication" if n % 2 else "practice"
            for c in names
            for n in range(1, norms + 1)
        },
        topics={f"health-{q:03d}": TOPICS[q % 3] for q in range(1, queries + 1)},
    )


Answer = Callable[[str, str, str, str, int], bool | None]


def evaluation(
    plan: Design,
    place: tuple[str, str, str, str, int],
    answer: Answer,
    *,
    shared: bool = False,
) -> Evaluation:
    """One evaluation; ``answer`` takes target, setting, persona, norm, state."""
    target, setting, persona, query, repeat = place
    response = f"{target}/{setting}/{'-' if shared else persona}/{query}/r{repeat}"
    verdicts = []
    for norm in plan.items[persona]:
        state: Literal[-1, 1] = 1 if plan.states[persona][norm] > 0 else -1
        satisfied = answer(target, setting, persona, norm, state)
        verdicts.append(
            Verdict(
                norm=norm,
                state=state,
                recommendation=f"{norm}/{'follow' if state > 0 else 'avoid'}/{query}",
                satisfied=satisfied,
                outcome=Outcome.OK if satisfied is not None else Outcome.UNPARSED,
            )
        )
    return Evaluation(
        id=f"{response}/{persona}",
        response=response,
        target=target,
        setting=setting,
        persona=persona,
        query=query,
        repeat=repeat,
        verdicts=tuple(verdicts),
    )


def evaluations(
    plan: Design,
    answer: Answer,
    *,
    targets: tuple[str, ...] = ("one",),
    settings: tuple[str, ...] = ("none", "hist"),
    repeats: int = 1,
    shared: tuple[str, ...] = (),
) -> Iterator[Evaluation]:
    """All evaluations of a plan; settings named in ``shared`` have one response for all."""
    for target in targets:
        for setting in settings:
            for persona in plan.states:
                for query in plan.topics:
                    for repeat in range(repeats):
                        place = (target, setting, persona, query, repeat)
                        yield evaluation(plan, place, answer, shared=setting in shared)


def drawn(seed: int, follow: float = 0.3, avoid: float = 0.6, missing: float = 0.0) -> Answer:
    """Answers drawn with planted chances, hist above none."""
    rng = np.random.default_rng(seed)

    def answer(target: str, setting: str, persona: str, norm: str, state: int) -> bool | None:
        if rng.random() < missing:
            return None
        chance = follow if state > 0 else avoid
        return bool(rng.random() < (chance if setting == "hist" else chance / 2))

    return answer
