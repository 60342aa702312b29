"""Caps on calls, tokens and money: never overshot, and a capped run is a valid part of a whole one."""

from __future__ import annotations

import asyncio
import json
import shlex
import signal
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from random import Random
from typing import Any

import pytest

from habitus.errors import ContentError, UsageError
from habitus.experiments import RunRequest, run_experiment
from habitus.models import Budget, Caps, ModelEntry, NotAskedError, Price, Recorded
from habitus.models.prices import PriceBook, PriceList, find_prices
from habitus.models.spending import UNKNOWN_ANSWER, Amount, Purse, check_prices
from habitus.records import Outcome, Reply, Request, Sampling, Usage
from habitus.running import RunSummary, gathered, pilot_first, together
from habitus.store import RunDir
from labelling_fixture import answers, job_of, kept, labelled, written
from loopback import ask, serving
from study_fixture import (
    FAST,
    Answering,
    Terminal,
    calls_of,
    contents,
    failing,
    harbour,
    killed_run,
    opening,
    set_options,
    study_of,
    terminal_in,
)

PRICE = Price(input=1.0, output=10.0, cached_input=0.5)
API = "https://api.example.com/v1"


def entry(price: Price | None = PRICE, **more: Any) -> ModelEntry:
    return ModelEntry(backend="scripted", price=price, **more)


class NoLog:
    """A log that remembers nothing."""

    def find(self, key: bytes) -> Reply | None:
        return None

    async def add(self, key: bytes, request: Request, reply: Reply, model: str) -> None:
        """Forget it."""


class Greedy:
    """Uses up to the bound of each call, after letting go of the loop a seeded number of times.

    ``most`` is what all calls that began have used or may still use, at its highest.
    """

    name = "main"

    def __init__(self, share: float = 1.0, seed: int = 1) -> None:
        self.asked = self.used = self.in_flight = self.busiest = 0
        self.money = 0.0
        self._share = share
        self._random = Random(seed)

    async def complete(self, request: Request) -> Reply:
        self.asked += 1
        self.in_flight += 1
        self.busiest = max(self.busiest, self.in_flight)
        for _ in range(self._random.randrange(30)):
            await asyncio.sleep(0)
        self.in_flight -= 1
        size = sum(len(m.text.encode()) for m in request.all_messages)
        written = int((request.sampling.max_tokens or 0) * self._random.uniform(self._share, 1))
        usage = Usage(size, written, 0)
        self.used += size + written
        self.money += PRICE.cost(usage) or 0.0
        return Reply(Outcome.OK, "yes", usage=usage)

    async def aclose(self) -> None:
        """Nothing to give back."""


def purse_of(caps: Caps) -> Purse:
    return Budget(caps, {"main": entry()}).purse("main")


async def spend(model: Greedy, caps: Caps, calls: int = 300) -> tuple[Budget, int]:
    """Ask many times at once; the budget, and how many calls were not made."""
    budget = Budget(caps, {"main": entry()})
    recorded = Recorded(model, "main", NoLog(), purse=budget.purse("main"))
    requests = [
        ask(f"{n} " + "word " * (n % 50), seed=n, sampling=Sampling(max_tokens=20 + n % 200))
        for n in range(calls)
    ]
    ended = await asyncio.gather(
        *(recorded.complete(request) for request in requests), return_exceptions=True
    )
    assert {type(end) for end in ended} <= {Reply, NotAskedError}
    assert recorded.counters.in_flight == 0
    return budget, sum(isinstance(end, NotAskedError) for end in ended)


class TestInFlight:
    @pytest.mark.parametrize("share", [1.0, 0.0], ids=["each takes all", "each takes some"])
    @pytest.mark.parametrize("cap", [1, 500, 2_000, 7_777, 20_000])
    async def test_tokens_are_never_overshot_by_what_is_in_flight(
        self, cap: int, share: float
    ) -> None:
        model = Greedy(share)
        budget, left = await spend(model, Caps(tokens=cap))
        assert model.used <= cap
        assert budget.reached is not None
        assert (budget.reached.cap, budget.reached.limit) == ("tokens", cap)
        assert budget.reached.spent == model.used
        assert budget.reached.spent + budget.reached.needed > cap
        assert left == 300 - model.asked > 0

    async def test_long_answers_are_in_the_bound(self) -> None:
        """Answers of 5,000 tokens to prompts of a few: what is set aside is for the answers."""
        model = Greedy()
        recorded = Recorded(model, "main", NoLog(), purse=purse_of(Caps(tokens=21_000)))
        long = Sampling(max_tokens=5_000)
        asked = (recorded.complete(ask(str(n), seed=n, sampling=long)) for n in range(20))
        ended = await asyncio.gather(*asked, return_exceptions=True)
        assert sum(isinstance(end, Reply) for end in ended) == 4
        assert model.used <= 21_000

    async def test_what_was_set_aside_and_not_taken_is_spent_on_others(self) -> None:
        """Bounds are several times what is really taken, and still nearly all of it is used."""
        model = Greedy(0.0)
        cap = 15_000
        await spend(model, Caps(tokens=cap))
        assert cap - 1_000 < model.used <= cap
        assert model.busiest > 10

    @pytest.mark.parametrize("cap", [0.000_001, 0.01, 0.05])
    async def test_money_is_never_overshot(self, cap: float) -> None:
        model = Greedy()
        budget, _ = await spend(model, Caps(cost={"USD": cap}))
        assert model.money <= cap
        assert budget.reached is not None
        assert budget.reached.cap == "USD"
        assert budget.spent() == {"USD": pytest.approx(model.money)}

    @pytest.mark.parametrize("cap", [0, 1, 17, 299])
    async def test_calls_are_made_up_to_the_cap_and_no_further(self, cap: int) -> None:
        model = Greedy()
        budget, left = await spend(model, Caps(calls=cap))
        assert (model.asked, left) == (cap, 300 - cap)
        assert str(budget.reached) == f"the cap of {cap} calls is reached: {cap} were made"

    async def test_a_cap_that_is_just_enough_is_not_reached(self) -> None:
        budget, left = await spend(Greedy(), Caps(calls=300, tokens=10**6, cost={"USD": 100}))
        assert (budget.reached, left) == (None, 0)

    async def test_the_first_cap_that_is_reached_ends_it(self) -> None:
        budget, _ = await spend(Greedy(), Caps(calls=250, tokens=4_000))
        assert budget.reached is not None
        assert budget.reached.cap == "tokens"

    async def test_two_models_share_one_budget(self) -> None:
        models = {"main": Greedy(), "other": Greedy()}
        budget = Budget(Caps(calls=30), dict.fromkeys(models, entry()))
        both = [Recorded(m, n, NoLog(), purse=budget.purse(n)) for n, m in models.items()]
        calls = [model.complete(ask(seed=n)) for n in range(40) for model in both]
        await asyncio.gather(*calls, return_exceptions=True)
        assert sum(model.asked for model in models.values()) == 30

    async def test_cancelled_calls_give_back_what_they_held_and_do_not_block(self) -> None:
        budget = Budget(Caps(tokens=5_000), {"main": entry()})
        purse = budget.purse("main")
        request = ask(sampling=Sampling(max_tokens=1_500))
        held = [await purse.reserve(request) for _ in range(2)]
        waiting = [asyncio.create_task(purse.reserve(request)) for _ in range(3)]
        await asyncio.sleep(0)
        purse.settle(held[0], None)
        waiting[0].cancel()  # in the moment in which it was granted
        waiting[1].cancel()  # while it waits
        await turns_of_the_loop()
        assert isinstance(waiting[2].result(), Amount)
        assert budget.spent() == {"tokens": 0}
        purse.settle(held[1], None)
        assert budget.reached is None

    async def test_what_waits_behind_a_cancelled_call_is_served(self) -> None:
        budget = Budget(Caps(tokens=3_000), {"main": entry()})
        purse = budget.purse("main")
        held = await purse.reserve(ask(sampling=Sampling(max_tokens=100)))
        large = asyncio.create_task(purse.reserve(ask(sampling=Sampling(max_tokens=2_700))))
        small = asyncio.create_task(purse.reserve(ask(sampling=Sampling(max_tokens=100))))
        await asyncio.sleep(0)
        large.cancel()
        await turns_of_the_loop()
        assert small.result().tokens < 600
        assert held.tokens < 600


async def turns_of_the_loop() -> None:
    """Let tasks that can go on do so; who would wait for one that cannot waits for ever."""
    for _ in range(10):
        await asyncio.sleep(0)


class TestWhatACallTakes:
    @pytest.mark.parametrize(
        ("outcome", "usage", "tokens"),
        [
            (Outcome.OK, Usage(100, 10, 0), 110),
            (Outcome.TRUNCATED, Usage(100, 10, None), 110),
            (Outcome.ERROR, Usage(100, 10, 0), 110),
            (Outcome.ERROR, Usage(), 0),
            (Outcome.OVERFLOW, Usage(), 0),
            (Outcome.REFUSED, Usage(), 0),
            (Outcome.OK, Usage(), "the bound"),
            (Outcome.OK, Usage(prompt=100), "the bound"),
            (Outcome.UNPARSED, Usage(), "the bound"),
        ],
        ids=str,
    )
    async def test_an_answer_without_numbers_is_charged_its_bound_and_never_nothing(
        self, outcome: Outcome, usage: Usage, tokens: int | str
    ) -> None:
        budget = Budget(Caps(tokens=10_000, calls=9), {"main": entry()})
        purse = budget.purse("main")
        held = await purse.reserve(ask(sampling=Sampling(max_tokens=50)))
        purse.settle(held, Reply(outcome, usage=usage))
        expected = held.tokens if tokens == "the bound" else tokens
        assert budget.spent() == {"tokens": expected, "calls": 1}

    async def test_the_bound_holds_for_text_of_any_script(self) -> None:
        purse = Budget(Caps(tokens=10**6), {"main": entry()}).purse("main")
        burmese = await purse.reserve(ask("ကျန်းမာရေး" * 10, sampling=Sampling(max_tokens=1)))
        assert burmese.tokens > len("ကျန်းမာရေး".encode()) * 10

    @pytest.mark.parametrize(
        ("context", "room"), [(None, UNKNOWN_ANSWER), (4096, 4096)], ids=["unknown", "known"]
    )
    async def test_without_a_limit_of_the_answer_the_context_is_set_aside(
        self, context: int | None, room: int
    ) -> None:
        purse = Budget(Caps(tokens=10**6), {"main": entry(context_length=context)}).purse("main")
        one = await purse.reserve(ask(sampling=Sampling(max_tokens=1)))
        assert (await purse.reserve(ask())).tokens == one.tokens - 1 + room

    async def test_a_server_without_usage_cannot_be_asked_for_ever(self) -> None:
        step = serving(*_without_usage())
        async with step as server:
            budget = Budget(Caps(tokens=2_000), {"target": server.entry(price=PRICE)})
            model = Recorded(server.model(), "target", NoLog(), purse=budget.purse("target"))
            requests = [ask(seed=n, sampling=Sampling(max_tokens=100)) for n in range(100)]
            with pytest.raises(NotAskedError, match="the cap of 2,000 tokens is reached"):
                await asyncio.gather(*map(model.complete, requests))
        assert 2 < len(server.bodies) < 10


def _without_usage() -> list[Any]:
    from loopback import completion, raw

    return [raw(completion({"content": "Rice."}, usage=None))]


class TestLeavingOut:
    """What is not asked is left out; what is there goes on."""

    async def ask(self, item: int) -> int:
        if item in self.refused:
            raise NotAskedError("no")
        self.done.append(item)
        return item

    @pytest.fixture(autouse=True)
    def fresh(self) -> None:
        self.done: list[int] = []
        self.refused = {0, 3}

    async def test_of_many_items(self) -> None:
        await together(range(5), self.ask)
        assert self.done == [1, 2, 4]

    async def test_a_pilot_that_is_not_asked_keeps_nobody_else_back(self) -> None:
        used: list[int] = []

        async def use(item: int, answer: int) -> None:
            used.append(answer)

        await pilot_first(range(5), self.ask, use)
        assert used == [1, 2, 4]

    async def test_what_needs_all_of_them_is_left_out_when_all_were_worked_on(self) -> None:
        with pytest.raises(NotAskedError):
            await gathered(range(5), self.ask)
        assert self.done == [1, 2, 4]
        self.refused = set()
        assert await gathered(range(5), self.ask) == [0, 1, 2, 3, 4]

    async def test_another_fault_ends_all(self) -> None:
        async def fail(item: int) -> int:
            raise ValueError(item)

        with pytest.raises(ValueError, match="0"):
            await gathered(range(3), fail)


def run(folder: Path, changes: Mapping[str, Any] | None = None, **request: Any) -> RunSummary:
    request.setdefault("out", folder / "run")
    return run_experiment(study_of(folder, changes), RunRequest(**request))


def outcomes(path: Path) -> set[Outcome]:
    with RunDir.open(path, write=False) as opened:
        stages = opened.records.stages()
        return {o for stage in stages for o in opened.records.counts(stage)}


@pytest.fixture(scope="module")
def uncapped(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("uncapped")
    run(folder)
    return folder / "run"


PRICED = {"models.main.price": {"input": 1, "output": 2}}
CAPS: dict[str, list[dict[str, Any]]] = {
    "calls": [{"limits.calls": n} for n in (0, 1, 9, 30, 53)],
    "tokens": [{"limits.tokens": n} for n in (10, 5_000, 7_500, 10_000)],
    "money": [PRICED | {"limits.cost": {"USD": n}} for n in (1e-6, 0.007, 0.01, 0.016)],
}


class TestRuns:
    @pytest.mark.parametrize("caps", CAPS.values(), ids=CAPS.keys())
    def test_going_on_with_a_higher_cap_asks_only_what_is_missing_and_gives_the_same_bytes(
        self, tmp_path: Path, uncapped: Path, caps: list[dict[str, Any]]
    ) -> None:
        made = []
        for change in caps:
            summary = run(tmp_path, change)
            assert summary.reached is not None
            made.append(summary.calls)
            assert outcomes(tmp_path / "run") <= {Outcome.OK}
            assert not (tmp_path / "run" / "done.json").exists()
            stored, logged = calls_of(tmp_path / "run")
            assert stored == logged == sum(made)
        assert 0 < sum(made) < calls_of(uncapped)[0]
        assert sorted(made) != [0] * (len(made) - 1) + [sum(made)]  # several of them made calls
        assert run(tmp_path, dict.fromkeys(("limits.calls", "limits.tokens"))).reached is None
        assert contents(tmp_path / "run") == contents(uncapped)
        assert calls_of(tmp_path / "run") == calls_of(uncapped)

    def test_the_same_cap_again_asks_nothing(self, tmp_path: Path) -> None:
        run(tmp_path, {"limits.calls": 20})
        model = Answering()
        summary = run(tmp_path, {"limits.calls": 20}, opener=opening(model))
        assert (summary.calls, model.asked) == (0, [])
        assert summary.reached is not None

    def test_stored_answers_cost_nothing(self, tmp_path: Path, uncapped: Path) -> None:
        """A finished run is finished under any cap, and so is a fork that has every answer."""
        stored = calls_of(uncapped)[0]
        summary = run(tmp_path, {"limits.calls": 0}, fork=uncapped)
        assert (summary.reached, summary.calls, summary.hits >= stored) == (None, 0, True)
        assert contents(tmp_path / "run") == contents(uncapped)

    def test_a_fork_pays_for_its_own_calls_only(self, tmp_path: Path, uncapped: Path) -> None:
        changes = {"personas": 3, "limits.calls": 7}
        summary = run(tmp_path, changes, fork=uncapped)
        assert summary.calls == 7
        assert summary.reached is not None
        assert summary.reached.spent == 7
        assert run(tmp_path, {**changes, "limits.calls": 11}).calls == 4

    def test_what_is_stored_is_made_into_records_although_nothing_is_asked(
        self, tmp_path: Path, uncapped: Path
    ) -> None:
        run(tmp_path, {"personas": 3, "limits.calls": 0}, fork=uncapped)
        lines = (tmp_path / "run" / "records" / "evaluations.jsonl").read_bytes().splitlines()
        assert lines == contents(uncapped)["evaluations.jsonl"].splitlines()

    def test_killed_and_gone_on_with_under_a_cap(self, tmp_path: Path, uncapped: Path) -> None:
        harbour(tmp_path)
        assert killed_run(tmp_path, 30, "call") == -signal.SIGKILL
        before = calls_of(tmp_path / "run")[1]
        summary = run(tmp_path, {"limits.calls": before + 5})
        assert summary.calls == 5
        assert run(tmp_path).reached is None
        assert contents(tmp_path / "run") == contents(uncapped)
        assert calls_of(tmp_path / "run") == calls_of(uncapped)

    def test_failed_calls_count_and_are_asked_again_under_a_higher_cap(
        self, tmp_path: Path
    ) -> None:
        def script(request: Request) -> Reply | None:
            role = request.context.get("role")
            return failing(Outcome.ERROR, "http 500") if role == "recommender" else None

        run(tmp_path, {"limits.calls": 30}, opener=opening(Answering(script)))
        assert calls_of(tmp_path / "run")[1] == 30
        assert run(tmp_path, {"limits.calls": 31}).calls == 1

    def test_answers_without_numbers_count_in_later_sessions_too(self, tmp_path: Path) -> None:
        uncounted = Uncounted()
        job = job_of(
            written(tmp_path, answers(20)), models={"main": FAKE}, caps=Caps(tokens=20_000)
        )
        first = labelled(tmp_path / "run", job, opener=opening(uncounted)).reached
        asked = uncounted.asked
        second = labelled(tmp_path / "run", job, opener=opening(uncounted)).reached
        assert first is not None
        assert second is not None
        assert 0 < asked == uncounted.asked < 20
        assert second.spent == first.spent
        assert second.spent > 10_000

    def test_an_unknown_price_is_refused_before_the_first_call(self, tmp_path: Path) -> None:
        remote = {"backend": "openai", "model": "m", "base_url": API}
        model = Answering()
        changes = {"models.main": remote, "limits.cost": {"USD": 5}}
        with pytest.raises(UsageError, match="no price is known for main"):
            run(tmp_path, changes, opener=opening(model))
        assert model.asked == []
        assert not (tmp_path / "run").exists()

    def test_labels_are_capped_as_well(self, tmp_path: Path) -> None:
        path = written(tmp_path, answers(20))
        whole = labelled(tmp_path / "whole", job_of(path, models={"m": FAKE}))
        part = labelled(tmp_path / "part", job_of(path, models={"m": FAKE}, caps=Caps(calls=6)))
        assert (whole.reached, part.calls) == (None, 6)
        assert part.records["labels"] == {Outcome.OK: 6}
        labelled(tmp_path / "part", job_of(path, models={"m": FAKE}, caps=Caps(calls=20)))
        assert kept(tmp_path / "part") == kept(tmp_path / "whole")


class Uncounted:
    """Judges, and does not say how many tokens that took."""

    name = "main"
    asked = 0

    async def complete(self, request: Request) -> Reply:
        self.asked += 1
        return Reply(Outcome.OK, "By script. ##Insider##")

    async def aclose(self) -> None:
        """Nothing to give back."""


FAKE = ModelEntry(backend="scripted", options={"script": "helpers"}, concurrency=4)


@pytest.fixture
def terminal(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Terminal:
    harbour(tmp_path)
    return terminal_in(tmp_path, monkeypatch, capsys)


def on(err: str) -> list[str]:
    """The words of the command that goes on, without the name of the program."""
    words = shlex.split(err.splitlines()[-1].partition("To go on: ")[2])
    return words[words.index("habitus") + 1 :] if "habitus" in words else words[1:]


class TestCommands:
    @pytest.mark.parametrize(
        "option",
        [
            "--max-calls=9007199254740992",
            f"--max-total-tokens={10**30}",
            f"--max-cost=EUR={10**400}",
        ],
    )
    def test_a_cap_that_no_number_can_keep_is_refused_before_the_run(
        self, terminal: Terminal, option: str
    ) -> None:
        code, _, err = terminal("run", "first", option)
        assert code == 2
        assert option.partition("=")[0] in err
        assert not Path("runs").exists()

    @pytest.mark.parametrize(
        ("options", "words", "again"),
        [
            (["--max-calls", "12"], "the cap of 12 calls is reached: 12 were made", "--max-calls 24"),
            (
                ["--max-total-tokens=7000"],
                "the cap of 7,000 tokens is reached: ",
                "--max-total-tokens 14000",
            ),
            (["--max-cost", "0.01"], "the cap of 0.01 EUR is reached: ", "--max-cost EUR=0.02"),
            (
                ["--max-cost=EUR=0.01", "--max-cost", "USD=5"],
                "the cap of 0.01 EUR is reached: ",
                "--max-cost=USD=5 --max-cost EUR=0.02",
            ),
        ],
        ids=lambda value: " ".join(value) if isinstance(value, list) else "",
    )  # fmt: skip
    def test_a_capped_run_says_so_once_and_how_to_go_on(
        self, terminal: Terminal, uncapped: Path, options: list[str], words: str, again: str
    ) -> None:
        price = {"models.main.price": {"input": 1, "output": 2, "currency": "EUR"}}
        code, _, err = terminal("run", "first", *options, *set_options(FAST | price))
        assert code == 1
        assert err.count(words) == 1
        assert "every answer is kept, and what was not asked is left" in err
        assert err.rstrip().replace("'", "").endswith(again)
        assert "Traceback" not in err
        for _ in range(9):
            code, _, err = terminal(*on(err))
            if code == 0:
                break
        assert code == 0
        assert contents(terminal.folder / "runs" / "first") == contents(uncapped)

    def test_results_of_what_is_there_are_shown(self, terminal: Terminal) -> None:
        code, out, _ = terminal("run", "first", "--max-calls", "50", *set_options(FAST))
        assert code == 1
        assert "CCBench results" in out

    def test_status_shows_what_is_left_and_what_of_the_cap_is_spent(
        self, terminal: Terminal
    ) -> None:
        options = ["--max-calls", "50", "--max-total-tokens", "1000000"]
        terminal("run", "first", *options, *set_options(FAST))
        found = terminal.json("status", "first", "--json")
        assert found["caps"][0] == {"cap": "calls", "most": 50, "spent": 50}
        assert found["caps"][1]["cap"] == "tokens"
        assert sum(stage["left"] for stage in found["stages"]) > 0
        assert all(stage["failed"] == {} for stage in found["stages"])
        assert "cap of calls: 50 of 50 spent" in terminal("status", "first")[1]

    def test_an_option_goes_before_the_file(self, terminal: Terminal) -> None:
        changes = set_options(FAST | {"limits.calls": 3, "limits.tokens": 10**9})
        assert "the cap of 5 calls" in terminal("run", "first", "--max-calls", "5", *changes)[2]

    @pytest.mark.parametrize(
        ("options", "words"),
        [
            (["--max-cost", "five"], "--max-cost five: write an amount, such as 20 or EUR=20"),
            (["--max-cost", "-3"], "write an amount"),
            (["--max-calls", "-1"], "greater than or equal to 0"),
            (["--max-calls", "many"], "should be a valid integer"),
            (["--set", "limits.cost={usd: 3}"], "limits.cost"),
            (["--set", "limits.tokens=1.5"], "limits.tokens"),
        ],
        ids=lambda value: " ".join(value) if isinstance(value, list) else "",
    )
    def test_wrong_usage(self, terminal: Terminal, options: list[str], words: str) -> None:
        code, out, err = terminal("run", "first", *options, *set_options(FAST))
        assert (code, out) == (2, "")
        assert words in err
        assert "Traceback" not in err
        assert not (terminal.folder / "runs").exists()

    def test_an_amount_without_currency_where_there_are_two(self, terminal: Terminal) -> None:
        priced = {"backend": "scripted", "price": {"input": 1, "output": 1, "currency": "EUR"}}
        changes = {"models.other": priced, "roles.verifier.model": "other"} | PRICED
        code, _, err = terminal("run", "first", "--max-cost", "1", *set_options(FAST | changes))
        assert code == 2
        assert "prices are in EUR, USD; write EUR=1" in err
        code, _, err = terminal("run", "first", "--max-cost=USD=1", *set_options(FAST | changes))
        assert code == 2
        assert "money is capped in USD, but other is priced in EUR: cap that as well" in err

    def test_of_judges_and_the_command_that_it_names(self, tmp_path: Path) -> None:
        written(tmp_path, answers(8))
        model = json.dumps(FAKE.model_dump(mode="json", exclude_defaults=True))
        words = ["judge", "answers.jsonl", "--model", model, "--judges", "positioning"]
        ended = habitus(tmp_path, *words, "--max-calls", "3")
        assert ended.returncode == 1
        assert "the cap of 3 calls is reached: 3 were made" in ended.stderr
        assert "Traceback" not in ended.stderr
        code = 1
        for _ in range(3):
            line = next(x for x in ended.stderr.splitlines() if "To go on: " in x)
            again = shlex.split(line.partition("To go on: ")[2])
            ended = habitus(tmp_path, *again[again.index("judge") :])
            code = ended.returncode
            if code == 0:
                break
        assert code == 0, ended.stderr
        assert habitus(tmp_path, *words, "--out", "whole").returncode == 0
        assert kept(tmp_path / "runs" / "answers-labels") == kept(tmp_path / "whole")


def habitus(folder: Path, *words: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "habitus", *words],
        cwd=folder, capture_output=True, encoding="utf-8", check=False, timeout=120,
    )  # fmt: skip


LIST = """\
host: api.example.com
currency: EUR
date: 2026-10-01
source: "https://example.com/pricing"
models:
  m: {input: 3, output: 12, cached_input: 0.3}
"""


def book(*lists: dict[str, Any]) -> PriceBook:
    plain = {"host": "api.example.com", "date": "2026-10-01", "source": "a page"}
    return PriceBook(tuple(PriceList.model_validate(plain | given) for given in lists))


def remote(url: str = API, **more: Any) -> ModelEntry:
    return ModelEntry(backend="openai", model="m", base_url=url, **more)


M = {"m": {"input": 3, "output": 12}}
LOOKED_UP: dict[str, tuple[PriceBook, ModelEntry, float | None]] = {
    "listed": (book({"models": M}), remote(), 3),
    "another model": (book({"models": {"n": M["m"]}}), remote(), None),
    "another host": (book({"models": M}), remote("http://127.0.0.1:8000/v1"), None),
    "a port": (
        book({"host": "127.0.0.1:8000", "models": M}), remote("http://127.0.0.1:8000/v1"), 3,
    ),
    "its own first": (book({"models": M}), remote(price=PRICE), 1),
    "the newest": (
        book({"models": M}, {"date": "2026-11-01", "models": {"m": {"input": 2, "output": 1}}}),
        remote(), 2,
    ),
    "no lists": (book(), remote(), None),
    "no server": (book({"models": M}), ModelEntry(backend="local", model="m"), None),
}  # fmt: skip


class TestPrices:
    @pytest.mark.parametrize(("lists", "given", "price"), LOOKED_UP.values(), ids=LOOKED_UP.keys())
    def test_are_looked_up_by_host_and_model(
        self, lists: PriceBook, given: ModelEntry, price: float | None
    ) -> None:
        found = lists.priced(given).price
        assert (found.input if found else None) == price

    def test_a_listed_price_is_kept_by_the_run_with_date_and_source(
        self, terminal: Terminal
    ) -> None:
        folder = terminal.folder / "experiments" / "prices"
        folder.mkdir()
        (folder / "mine.yaml").write_text(LIST)
        changes = set_options(
            FAST | {"models.far": {"backend": "openai", "model": "m", "base_url": API}}
        )
        assert terminal("run", "first", "--stage", "personas", *changes)[0] == 0
        with RunDir.open(terminal.folder / "runs" / "first", write=False) as opened:
            price = opened.config["models"]["far"]["price"]
        assert price == {
            "input": 3, "output": 12, "cached_input": 0.3, "currency": "EUR",
            "date": "2026-10-01", "source": "https://example.com/pricing",
        }  # fmt: skip
        (folder / "mine.yaml").write_text(LIST.replace("input: 3,", "input: 4,"))
        assert terminal("run", "first", "--stage", "personas", *changes)[0] == 0

    def test_a_plan_uses_them(self, terminal: Terminal) -> None:
        folder = terminal.folder / "experiments" / "prices"
        folder.mkdir()
        (folder / "mine.yaml").write_text(LIST)
        far = {"models.main": {"backend": "openai", "model": "m", "base_url": API}}
        stages = terminal.json("plan", "first", "--json", *set_options(far))["stages"]
        assert {stage["currency"] for stage in stages} == {"EUR"}

    @pytest.mark.parametrize(
        ("change", "words"),
        [
            (("date: 2026-10-01", "date: someday"), "mine.yaml:3:7"),
            (("host: api", "host: https://api"), "mine.yaml:1:7"),
            (("output: 12", "output: -12"), "mine.yaml:6:"),
            (("source:", "sauce:"), "unknown key 'sauce'"),
        ],
        ids=lambda value: value[1] if isinstance(value, tuple) else "",
    )
    def test_a_damaged_list_is_told_with_its_place(
        self, terminal: Terminal, change: tuple[str, str], words: str
    ) -> None:
        folder = terminal.folder / "experiments" / "prices"
        folder.mkdir()
        (folder / "mine.yaml").write_text(LIST.replace(*change))
        code, out, err = terminal("run", "first", *set_options(FAST))
        assert (code, out) == (2, "")
        assert words in err
        assert terminal("check", "experiments")[0] == 1
        with pytest.raises(ContentError):
            find_prices(terminal.folder)

    @pytest.mark.parametrize(
        ("caps", "entries", "words"),
        [
            ({"USD": 1}, {"a": remote()}, "no price is known for a:"),
            ({"EUR": 1}, {"a": remote(price=PRICE)}, "capped in EUR, but a is priced in USD"),
            ({"USD": 1}, {"a": remote(price=PRICE), "b": ModelEntry(backend="local")}, None),
            ({"EUR": 1}, {"a": remote(price=Price(input=0, output=0))}, None),
            ({}, {"a": remote()}, None),
        ],
        ids=["unknown", "another currency", "nobody bills", "free", "no cap"],
    )
    def test_money_is_capped_only_where_it_can_be_counted(
        self, caps: dict[str, float], entries: dict[str, ModelEntry], words: str | None
    ) -> None:
        if words is None:
            check_prices(Caps(cost=caps), entries)
        else:
            with pytest.raises(UsageError, match=words):
                check_prices(Caps(cost=caps), entries)

    def test_what_ships_says_no_price_that_nobody_has_checked(self) -> None:
        assert all(not prices.models for prices in find_prices().lists)
