"""Kills a command again and again, and proves that nothing was lost, asked twice or counted wrong.

    with FaultServer(plan) as server:
        found = disturbed(command, server, Kill.draws(Random(seed), 50))
    assert not found.problems()

A command is started against the fault server, ended at a moment drawn from a seed, and started
again in the same directory, until it completes. What the server was asked is held against what
the store held when the command was started: an answer that was durable is never asked for again.
What the server had answered, and what no store holds since the process died first, is counted: it
is what was in flight, and after a SIGKILL the last group on its way to the disk as well.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from random import Random

from fault_server import Asked, FaultServer, name_of
from habitus.records import Outcome
from habitus.store import RunDir, StoredCall, is_run
from habitus.store.writer import GROUP

CONCURRENCY = 6
_PATIENCE = 120.0
_TRIES = 8  # sessions that may end with calls to make once more
_STARTING = 1.2  # seconds that a command may take until it asks for the first time
_SIGNALS = {
    "SIGKILL": (signal.SIGKILL,),
    "SIGTERM": (signal.SIGTERM,),
    "SIGINT": (signal.SIGINT,),
    "SIGINT twice": (signal.SIGINT, signal.SIGINT),
    "SIGTERM behind a shell": (signal.SIGTERM,),
    "SIGINT behind a shell": (signal.SIGINT,),
}
_KINDS = tuple(how for how in _SIGNALS if how != "SIGINT behind a shell")  # that one ends nothing


@dataclass(frozen=True)
class Kill:
    """How a session ends: by which signals, when the server has answered so many of its requests.

    ``requests`` 0 is a moment before the first of them. ``delay`` is in seconds after that;
    ``apart`` is between two signals.
    """

    how: str
    requests: int
    delay: float
    apart: float = 0.0

    @classmethod
    def draws(cls, random: Random, count: int, most: int = 10) -> Iterator[Kill]:
        """So many kills, all kinds in turn, at moments drawn from ``random``."""
        for number in range(count):
            early = random.random() < 0.15
            yield cls(
                how=_KINDS[number % len(_KINDS)],
                requests=0 if early else random.randint(1, most),
                delay=random.uniform(0, _STARTING if early else 0.08),
                apart=random.uniform(0, 0.05),
            )


@dataclass(frozen=True)
class Command:
    """A command that works on a run directory, and what it leaves that is to be the same."""

    words: Sequence[str]
    folder: Path
    out: Path
    leaves: Callable[[Path], dict[str, bytes]]

    def start(self, *, behind: bool = False) -> subprocess.Popen[str]:
        """The command in a process of its own; one behind a shell (``&``) ignores interrupts."""
        interrupts = "SIG_IGN" if behind else "SIG_DFL"
        first = f"import signal; signal.signal(signal.SIGINT, signal.{interrupts})"
        engine = Path(__file__).parents[1] / "engine"
        return subprocess.Popen(
            after(first, [sys.executable, "-m", "habitus", *self.words]),
            cwd=self.folder,
            env={**os.environ, "PYTHONPATH": str(engine), "KEY": "sk-of-the-kill-tests"},
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            encoding="utf-8",
        )


def after(first: str, command: Sequence[str]) -> list[str]:
    """A command whose process does something in Python before it becomes the command."""
    code = f"import os, sys\n{first}\nos.execv(sys.argv[1], sys.argv[1:])"
    return [sys.executable, "-S", "-c", code, *command]


@dataclass
class Session:
    """One process: how it was to end, how it ended, and what it did."""

    kill: Kill | None
    code: int
    err: str
    asked: list[Asked]
    before: frozenset[str]  # answers that were durable when it began
    after: frozenset[str]  # and when it had ended

    @property
    def again(self) -> set[str]:
        """Durable answers that were asked for once more. There are none."""
        return {asked.name for asked in self.asked} & self.before

    @property
    def lost(self) -> set[str]:
        """Requests that were answered, but not yet durable when the process died."""
        return {asked.name for asked in self.asked if asked.good and asked.sent} - self.after

    def problems(self) -> list[str]:
        """What a process may not do, whatever is done to it."""
        found = []
        if self.again:
            found.append(f"{len(self.again)} stored answers were asked for again")
        if self.before - self.after:
            found.append(f"{len(self.before - self.after)} stored answers are gone")
        if len(self.lost) > self._most_lost:
            found.append(f"{len(self.lost)} answers lost, more than {self._most_lost}")
        if self.code not in self._codes():
            found.append(f"exit code {self.code}")
        if "Traceback" in self.err and "writing to" in self.err:
            found.append("a traceback")
        if "fault of its own" in self.err:
            found.append("a fault of its own")
        told = "stopped; everything that was answered is kept. To go on: habitus"
        if self.code == 130 and self.asked and told not in self.err:
            found.append("nothing said of how to go on")
        return [f"{self.kill}: {problem}\n{self.err}" for problem in found]

    @property
    def _most_lost(self) -> int:
        """What is in flight; where nothing is said before the end, also what waits for its group."""
        asked_to_end = self.kill is not None and self.kill.how not in {"SIGKILL", "SIGINT twice"}
        return CONCURRENCY if asked_to_end or self.through else CONCURRENCY + GROUP

    def _codes(self) -> set[int]:
        if self.kill is None:
            return {0, 1}
        if self.kill.how == "SIGKILL":
            return {-signal.SIGKILL, 0, 1}
        early = {-signal.SIGTERM, -signal.SIGINT} if not self.asked else set()
        # A second interrupt may come when the first has been told: a shell calls both 130.
        late = {-signal.SIGINT} if self.kill.how == "SIGINT twice" else set()
        return {130, 0, 1} | early | late

    @property
    def through(self) -> bool:
        """Whether the command came to its end."""
        return self.code in {0, 1}


@dataclass
class Disturbed:
    """All sessions of one run directory."""

    command: Command
    sessions: list[Session] = field(default_factory=list)

    @property
    def kills(self) -> int:
        """How many sessions were ended before they were through."""
        return sum(s.kill is not None and not s.through for s in self.sessions)

    @property
    def lost(self) -> int:
        """Answers that had to be asked for twice, since a process died before they were durable."""
        return sum(len(session.lost) for session in self.sessions)

    def problems(self) -> list[str]:
        """Everything that is wrong with any session, and with what is stored in the end."""
        found = [problem for session in self.sessions for problem in session.problems()]
        with RunDir.open(self.command.out, write=False) as run:
            found += run.verify().problems
        return found


def durable(out: Path) -> frozenset[str]:
    """The names of the requests whose answers a run has stored."""
    if not is_run(out):
        return frozenset()
    with RunDir.open(out, write=False) as run:
        models = {name: entry["model"] for name, entry in run.config["models"].items()}
        return frozenset(
            name_of(models[call.model], _sent(call), call.request.get("seed"))
            for call in run.calls.iterate()
            if call.reply.outcome is not Outcome.ERROR
        )


def _sent(call: StoredCall) -> list[tuple[str, str]]:
    """The messages as the server got them: control tokens in their texts are broken up."""
    changed = call.reply.sent.get("messages")
    if changed is None:
        return [(role, text) for role, text in call.request["messages"]]
    return [(message["role"], message["content"]) for message in changed]


def disturbed(command: Command, server: FaultServer, kills: Iterator[Kill]) -> Disturbed:
    """Start a command and end it, again and again, until it is through or no kills are left.

    It is then run without a kill until no call is left that ended in an error, once at least.
    """
    found = Disturbed(command)
    for kill in kills:
        found.sessions.append(session(command, server, kill))
        if found.sessions[-1].through:
            break
    for _ in range(_TRIES):
        found.sessions.append(session(command, server, None))
        if not failed_calls(command.out):
            break
    return found


def failed_calls(out: Path) -> int:
    """Calls that ended in an error and have not been answered since."""
    with RunDir.open(out, write=False) as run:
        return sum(c.calls for c in run.calls.counts() if c.outcome is Outcome.ERROR)


def session(command: Command, server: FaultServer, kill: Kill | None = None) -> Session:
    """One process, from its start to its end."""
    server.session += 1
    before = durable(command.out)
    process = command.start(behind=kill is not None and kill.how.endswith("behind a shell"))
    if kill is not None:
        _end(process, server, kill)
    _, err = process.communicate(timeout=_PATIENCE)
    return Session(kill, process.returncode, err, server.of_session(), before, durable(command.out))


def _end(process: subprocess.Popen[str], server: FaultServer, kill: Kill) -> None:
    """Wait for the moment and send the signals; a process that is through is left alone."""
    until = time.monotonic() + _PATIENCE
    while not server.reached(kill.requests, 0.02) and time.monotonic() < until:
        if process.poll() is not None:
            return
    time.sleep(kill.delay)
    for number, sent in enumerate(_SIGNALS[kill.how]):
        time.sleep(kill.apart if number else 0.0)
        process.send_signal(sent)
