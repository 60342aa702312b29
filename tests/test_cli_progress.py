"""What a run shows while it goes on: counts by outcome, pace, money, and time left."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import pytest

from habitus.cli.pace import Pace, span
from habitus.cli.progress import Ahead, Progress, study_ahead
from habitus.cli.watching import Watching
from habitus.experiments import RunRequest, Stage
from habitus.models import Budget, Caps, ModelEntry, Price, Recorded
from habitus.models.scripted import ScriptedModel
from habitus.records import Label, Message, Outcome, Reply, Request, Response, Sampling, Usage
from habitus.store import RunDir
from study_fixture import study_of
from test_filter import session


class NoLog:
    """A log that remembers nothing."""

    def find(self, key: bytes) -> Reply | None:
        return None

    async def add(self, key: bytes, request: Request, reply: Reply, model: str) -> None:
        """Forget it."""


@dataclass
class Clock:
    """Seconds that pass when told to."""

    now: float = 100.0

    def __call__(self) -> float:
        return self.now


def recorded(name: str = "main") -> Recorded:
    return Recorded(ScriptedModel(name, lambda _: "yes"), name, NoLog())


def entry(price: Price | None = None) -> ModelEntry:
    return ModelEntry(backend="scripted", price=price)


class TestPace:
    def test_before_anything_happened_nothing_is_forecast(self) -> None:
        pace = Pace({"main": recorded()}, {"main": entry()}, 100, Clock())
        assert pace.told() == "0 calls"

    def test_rates_cache_money_and_time_left(self) -> None:
        clock, model = Clock(), recorded()
        price = Price(input=10, output=20, cached_input=1, currency="EUR")
        pace = Pace({"main": model}, {"main": entry(price)}, 400, clock)
        pace.told()
        clock.now += 10
        counters = model.counters
        counters.calls, counters.completion = 100, 50_000
        counters.prompt, counters.cached = 200_000, 150_000
        told = pace.told().split("; ")
        assert told == [
            "100 calls, 10.0 a second",
            "5,000 tokens written a second",
            "75% of prompt tokens from cache",
            "1.65 EUR spent, about 6.60 in all",
            "about 30 s left",
        ]

    def test_stored_answers_are_not_to_come_and_cost_nothing(self) -> None:
        clock, model = Clock(), recorded()
        pace = Pace({"main": model}, {"main": entry()}, 400, clock)
        clock.now += 10
        model.counters.calls, model.counters.hits = 100, 280
        assert pace.told() == "100 calls, 10.0 a second; about 2 s left"

    def test_rates_are_those_of_the_last_minute(self) -> None:
        clock, model = Clock(), recorded()
        pace = Pace({"main": model}, {"main": entry()}, 0, clock)
        for calls in (1000, 1000, 1000, 1030, 1060):
            clock.now += 30
            model.counters.calls = calls
            told = pace.told()
        assert told == "1,060 calls, 1.0 a second"

    def test_an_unknown_price_is_no_price_of_zero(self) -> None:
        clock, model = Clock(), recorded()
        pace = Pace({"main": model}, {"main": entry()}, 0, clock)
        clock.now += 10
        model.counters.calls = 100
        assert "spent" not in pace.told()

    def test_an_unknown_price_beside_a_known_one_is_said(self) -> None:
        far = ModelEntry(backend="openai", model="m", base_url="http://127.0.0.1:9/v1")
        dear = far.model_copy(update={"price": Price(input=10, output=20)})
        models = {name: recorded(name) for name in ("a", "b", "own")}
        entries = {"a": dear, "b": far, "own": entry()}
        pace = Pace(models, entries, 0, Clock())
        models["a"].counters.calls = models["own"].counters.calls = 3
        assert "unknown" not in pace.told()  # nothing was asked of b
        models["b"].counters.calls = 2
        assert pace.told() == "8 calls; 0.00 USD spent; price unknown: b"

    async def test_what_is_spent_of_a_cap_is_shown_for_the_whole_run(self) -> None:
        price = Price(input=1e6, output=0, currency="EUR")
        caps = Caps(calls=100, tokens=50_000, cost={"EUR": 2000})
        budget = Budget(caps, {"main": entry(price)})
        budget.charge(budget.purse("main").charge(Usage(900, 100, 0), 50))  # earlier sessions
        yes = Reply(Outcome.OK, "yes", usage=Usage(10, 5, 0))
        model = Recorded(
            ScriptedModel("main", lambda _: yes), "main", NoLog(), purse=budget.purse("main")
        )
        pace = Pace({"main": model}, {"main": entry(price)}, 0, Clock())
        asked = Request(messages=(Message("user", "a"),), sampling=Sampling(max_tokens=5))
        await model.complete(asked)
        told = pace.told().split("; ")
        assert told[-1] == "cap: 51 of 100 calls, 1,015 of 50,000 tokens, 910.00 of 2,000 EUR"


@pytest.mark.parametrize(
    ("seconds", "told"),
    [(0.4, "0 s"), (89, "89 s"), (90, "2 min"), (3600, "60 min"), (12_000, "3 h 20 min")],
)
def test_spans(seconds: float, told: str) -> None:
    assert span(seconds) == told


def label(name: str, outcome: Outcome) -> Label:
    return Label(id=name, outcome=outcome, item="i", judge="j")


def test_a_log_has_one_line_with_failures_by_outcome(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    progress = Progress(Ahead({"items": 2, "labels": 4}))
    with RunDir.create(tmp_path / "run", {}) as run:
        progress.begin(run, {"main": recorded()})
        for number, outcome in enumerate(("ok", "unparsed", "refused", "unparsed")):
            progress.put("labels", label(str(number), Outcome(outcome)))
        progress.end()
    err = capsys.readouterr().err
    assert err == "items 0/2; labels 4/4 (refused 1, unparsed 2); 0 calls\n"


def test_a_session_that_is_held_again_is_one_session(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    progress = Progress(Ahead({"attempts": 3}))
    with RunDir.create(tmp_path / "run", {}) as run:
        progress.begin(run, {"main": recorded()})
        for number, attempt in ((1, 0), (1, 1), (1, 2), (2, 0)):
            progress.put("attempts", session(number=number, attempt=attempt))
        progress.end()
    assert capsys.readouterr().err == "attempts 2/3 (2 more tries); 0 calls\n"


HOSTILE = "see [1], [INST] hi [/INST], path [/home/x], [bold]x :smile: \x1b[2J"
SHOWN = r"see [1], [INST] hi [/INST], path [/home/x], [bold]x :smile: \u001b[2J"


def test_what_is_watched_is_shown_letter_for_letter(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("COLUMNS", "100")
    study = study_of(tmp_path)
    watching = Watching(study)
    watching.put("attempts", session(HOSTILE))
    asked = {"target": "t", "setting": "hist", "persona": "p", "repeat": 0, "text": HOSTILE}
    asked["query"] = study.queries[0].id
    watching.put("responses", Response.model_validate({"id": "r", **asked}))
    judged = label("l", Outcome.OK).model_copy(
        update={"item": "t/hist/p/q/r0", "label": "[b]", "reasoning": HOSTILE}
    )
    watching.put("labels", judged)
    out = capsys.readouterr().out
    assert "".join(out.split()).count("".join(SHOWN.split())) == 3
    assert "\x1b" not in out
    assert "[b]. see [1]" in out


def test_a_study_says_what_it_has_before_it(tmp_path: Path) -> None:
    study = study_of(tmp_path)
    whole = study_ahead(study, RunRequest(out=tmp_path / "run"))
    assert whole.calls >= sum(whole.records.values()) - whole.records["histories"]
    assert whole.entries == study.experiment.models
    part = study_ahead(study, RunRequest(out=tmp_path / "run", until=Stage.HISTORIES))
    assert set(part.records) == {"attempts", "histories"}
    assert part.calls == 0
