"""Runs and labels that are killed at random moments: nothing lost, nothing asked twice, same bytes.

The short form is part of every test run. ``make soak`` kills each command fifty times.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from random import Random
from typing import Any

import pytest

from fault_server import HANGING, PASSING, FaultServer, Plan
from kill_driver import (
    CONCURRENCY,
    Command,
    Disturbed,
    Kill,
    disturbed,
    durable,
    failed_calls,
    session,
)
from labelling_fixture import answers, kept, written
from study_fixture import FAST, contents, harbour, set_options

LONG = 50
#: Faults that cost no second of waiting each.
QUICK = Plan.all(1, lasting=0.12, rejects=("temperature",), latency=(0.0, 0.03), most=1)
QUICK = replace(QUICK, passing={f: 0.15 / len(PASSING) for f in PASSING if f != "429 date"})
SLOW = Plan.all(
    2,
    passing=0.3,
    lasting=0.1,
    noise={"tool tokens": 0.1, "lone surrogates": 0.1, "NUL": 0.1, "escapes": 0.1},
    echoing=0.05,
    latency=(0.0, 0.05),
)
SLOW = replace(SLOW, passing={**SLOW.passing, "hanging": 0.01, "stalled": 0.01})

Make = Callable[[Path, str], Command]


def _model(url: str) -> dict[str, Any]:
    return {
        "backend": "openai",
        "model": "m",
        "base_url": url,
        "api_key_env": "KEY",
        "concurrency": CONCURRENCY,
        "timeout": 5,
    }


def a_run(folder: Path, url: str) -> Command:
    """``habitus run`` of the small study."""
    harbour(folder)
    changes = {**FAST, "models.main": _model(url), "limits.failures": 1.0}
    words = ["run", "first", *set_options(changes), "--out", "run"]
    return Command(words, folder, folder / "run", contents)


def labels(folder: Path, url: str, *manner: str) -> Command:
    """``habitus judge`` of a file of answers."""
    folder.mkdir(parents=True, exist_ok=True)
    written(folder, answers(6))
    model = json.dumps(_model(url))
    words = ["judge", "answers.jsonl", "--model", model, "--judges", "positioning,generalizing"]
    words += ["--judges", "maxims", *manner, "--failures", "1", "--out", "run"]
    return Command(words, folder, folder / "run", kept)


def labels_as_json(folder: Path, url: str) -> Command:
    """The same, with labels in JSON."""
    return labels(folder, url, "--answer", "json")


def labels_together(folder: Path, url: str) -> Command:
    """The same, with all maxims in one call."""
    return labels(folder, url, "--batch-variants")


def undisturbed(make: Make, folder: Path, plan: Plan) -> tuple[dict[str, bytes], frozenset[str]]:
    """What a command leaves when nothing happens to it, and the names of what is answered."""
    with FaultServer(plan.undisturbed()) as server:
        command = make(folder / "undisturbed", server.url)
        alone = session(command, server)
    assert not alone.problems()
    assert len({asked.name for asked in alone.asked}) == len(durable(command.out))
    return command.leaves(command.out), durable(command.out)


def killed(make: Make, folder: Path, plan: Plan, kills: Iterator[Kill]) -> Disturbed:
    """Kill a command, let it end, and hold it against one that was left alone."""
    leaves, names = undisturbed(make, folder, plan)
    with FaultServer(plan) as server:
        found = disturbed(make(folder / "disturbed", server.url), server, kills)
    assert not found.problems()
    stored, asked = durable(found.command.out), {asked.name for asked in server.log}
    answered = [asked.name for asked in server.log if asked.good and asked.sent]
    assert found.command.leaves(found.command.out) == leaves
    assert names <= stored == asked == set(answered)
    # After a call that failed for good another attempt may be made, which is then forgotten.
    assert names == stored or not HANGING.keys().isdisjoint(plan.passing)
    assert len(answered) <= len(stored) + found.lost
    assert not failed_calls(found.command.out)
    return found


@pytest.mark.parametrize(("make", "kills"), [(a_run, 5), (labels, 2)], ids=["run", "judge"])
def test_a_command_that_is_killed_goes_on_and_leaves_the_same(
    tmp_path: Path, make: Make, kills: int
) -> None:
    found = killed(make, tmp_path, QUICK, Kill.draws(Random(7), kills, most=6))
    assert found.kills == kills


def test_interrupts_that_a_shell_has_ignored_stay_ignored(tmp_path: Path) -> None:
    with FaultServer(Plan()) as server:
        whole = session(a_run(tmp_path, server.url), server, Kill("SIGINT behind a shell", 3, 0.0))
    assert (whole.code, whole.problems()) == (0, [])


def test_a_request_to_end_ends_what_a_shell_has_started_in_order(tmp_path: Path) -> None:
    with FaultServer(Plan()) as server:
        ended = session(a_run(tmp_path, server.url), server, Kill("SIGTERM behind a shell", 3, 0.0))
    assert (ended.code, ended.problems()) == (130, [])


LONG_FORMS = {
    "run": (a_run, QUICK),
    "run, slow": (a_run, SLOW),
    "judge": (labels, QUICK),
    "judge, JSON, slow": (labels_as_json, SLOW),
    "judge, batched": (labels_together, QUICK),
}


@pytest.mark.soak
@pytest.mark.parametrize(("make", "plan"), LONG_FORMS.values(), ids=LONG_FORMS.keys())
def test_fifty_kills(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], make: Make, plan: Plan
) -> None:
    kills = rounds = asked = lost = 0
    while kills < LONG:
        rounds += 1
        draws = Kill.draws(Random(rounds), LONG - kills)
        seeded = replace(plan, seed=plan.seed + 10 * rounds)
        found = killed(make, tmp_path / str(rounds), seeded, draws)
        kills += found.kills
        lost += found.lost
        asked += sum(len(one.asked) for one in found.sessions)
        with capsys.disabled():
            print(f"{make.__name__}: {kills} kills, {len(found.sessions)} sessions", flush=True)
    with capsys.disabled():
        print(f"\n{make.__name__}: {kills} kills in {rounds} runs, {asked} requests, {lost} lost")
