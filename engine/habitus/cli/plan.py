"""``habitus plan``: calls, tokens, money and time of an experiment, before any call."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated

import typer

from habitus.cli.caps import MaxCallsOption, MaxCostOption, MaxTotalTokensOption, caps_of
from habitus.cli.output import print_json, print_note, print_table, print_text
from habitus.cli.root import new_app
from habitus.cli.run import ExperimentArgument, LimitOption, SetOption

if TYPE_CHECKING:
    from habitus.experiments.planning import CapPlan, Range, StagePlan

app = new_app("What an experiment will cost, before any call.")


@app.command()
def plan(
    experiment: ExperimentArgument,
    changes: SetOption = None,
    limit: LimitOption = None,
    max_calls: MaxCallsOption = None,
    max_total_tokens: MaxTotalTokensOption = None,
    max_cost: MaxCostOption = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """Print calls, tokens, money and time by stage, each as a range.

    Caps, of the experiment's limits or given here as to `habitus run`, are compared with it.
    """
    from habitus.cli.finding import experiment_path, read_changes
    from habitus.experiments import plan_caps, plan_costs, resolve

    study = resolve(experiment_path(experiment), read_changes(changes or []))
    stages = plan_costs(study, limit)
    asked = {name: study.experiment.models[name] for name in {stage.model for stage in stages}}
    limits = study.experiment.limits
    caps = plan_caps(stages, caps_of(max_calls, max_total_tokens, max_cost, asked, limits))
    if as_json:
        print_json({"stages": list(map(asdict, stages)), "caps": list(map(asdict, caps))})
        return
    rows = [_row(stage) for stage in stages] + [_total(stages)]
    columns = ["stage", "model", "calls", "prompt tokens", "reusable", "answer tokens"]
    print_table([*columns, "money", "time"], rows)
    for cap in caps:
        print_text(_cap(cap))
    _notes(stages)


def _row(stage: StagePlan) -> list[str]:
    return [
        stage.stage,
        stage.model,
        _range(stage.calls),
        _range(stage.prompt),
        f"{stage.reusable:.0%}",
        _range(stage.completion),
        _money(stage.money, stage.currency),
        _time(stage.seconds),
    ]


def _total(stages: list[StagePlan]) -> list[str]:
    def total(name: str) -> Range:
        pairs = [getattr(stage, name) for stage in stages]
        return (sum(p[0] for p in pairs), sum(p[1] for p in pairs))

    known = all(stage.money is not None for stage in stages)
    currencies = {stage.currency for stage in stages}
    money = total("money") if known and len(currencies) == 1 else None
    return [
        "total", "", _range(total("calls")), _range(total("prompt")), "",
        _range(total("completion")), _money(money, "".join(currencies)), _time(total("seconds")),
    ]  # fmt: skip


_REACHED = {
    "no": "not reached",
    "perhaps": "reached in the high case only, at about {stage}",
    "yes": "reached in the low case already, at about {stage}",
    "unknown": "not known whether it is reached, as some price is unknown",
}


def _cap(cap: CapPlan) -> str:
    """Whether a cap ends the run; what is left then stays to be asked."""
    money = cap.cap not in {"calls", "tokens"}
    most = f"{cap.most:,.12g} {cap.cap}" if money else f"{cap.most:,.0f} {cap.cap}"
    taken = ""
    if cap.taken is not None:
        taken = _money(cap.taken, cap.cap) if money else _range(cap.taken)
        taken = f" ({taken} expected)"
    return f"cap of {most}: {_REACHED[cap.reached].format(stage=cap.stage)}{taken}"


def _notes(stages: list[StagePlan]) -> None:
    from habitus.experiments.planning import CHARACTERS_PER_TOKEN, READ, WRITTEN

    print_note(
        f"estimates: {CHARACTERS_PER_TOKEN} characters a token; {READ:,.0f} prompt and "
        f"{WRITTEN:,.0f} answer tokens a second for each request, as many at once as the entry "
        "allows; times of stages overlap; reusable is the share of prompt tokens that stand in a "
        "prefix of another request too"
    )
    unpriced = sorted({stage.model for stage in stages if stage.money is None})
    if unpriced:
        print_note(f"no price is given for {', '.join(unpriced)}: money is unknown, not zero")


def _range(pair: Range) -> str:
    low, high = (f"{value:,.0f}" for value in pair)
    return low if low == high else f"{low} to {high}"


def _money(pair: Range | None, currency: str) -> str:
    return "unknown" if pair is None else f"{pair[0]:,.2f} to {pair[1]:,.2f} {currency}"


def _time(pair: Range) -> str:
    return " to ".join(dict.fromkeys(map(_duration, pair)))


def _duration(seconds: float) -> str:
    if seconds < 90:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 5400 else f"{seconds / 3600:.1f} h"
