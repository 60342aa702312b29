"""A small study on disk, a terminal to give commands at, and records kept in memory.

The study is the workspace that ``habitus new`` makes: one culture of five norms, four personas,
two queries, scripted models. ``FAST`` cuts it to a few calls.
"""

from __future__ import annotations

import asyncio
import json
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from random import Random
from typing import Any

import pytest

from habitus.cli import run
from habitus.content import shipped_root
from habitus.experiments import RunRequest, Stage, Study, resolve, run_experiment
from habitus.experiments.casting import make_cast, make_plan
from habitus.experiments.pipeline import Pipeline
from habitus.models import ChatModel, ModelEntry, open_model
from habitus.models.entry import Factory
from habitus.models.scripted import ScriptedModel
from habitus.records import Outcome, Reply, Request, StageRecord
from habitus.store import RunDir

WORKSPACE = shipped_root() / "experiments" / "workspace"
FAST: dict[str, Any] = {
    "personas": 2,
    "history.domain_sessions": 1,
    "history.everyday_sessions": 0,
    "history.exchanges": [2, 2],
    "settings": ["none", "hist", "ccot", "norms"],
    "results.draws": 100,
}
HELPERS = ModelEntry(backend="scripted", options={"script": "helpers"})


EVERYDAY = """\
id: everyday
kind: everyday
openers:
  - {id: everyday-1, area: home, text: "how do i get candle wax off a table"}
  - {id: everyday-2, area: food, text: "What can I do with stale bread?"}
"""
LEXICON = """\
demonyms: [korean, korean american]
countries: [korea]
religions: [buddhism]
faiths: [buddhist]
not_before: [food]
patterns:
  - "i am {demonym}"
  - "as a|an {demonym}"
"""


def harbour(folder: Path) -> Path:
    """The workspace of ``habitus new`` in a folder; gives its experiment file.

    Its everyday openers and its lexicon are a few lines, so that they are read quickly.
    """
    shutil.copytree(WORKSPACE, folder, dirs_exist_ok=True)
    (folder / "personas" / "openers" / "everyday.yaml").write_text(EVERYDAY, encoding="utf-8")
    lexicon = folder / "judges" / "history_verifier" / "lexicon.yaml"
    lexicon.parent.mkdir(parents=True, exist_ok=True)
    lexicon.write_text(LEXICON, encoding="utf-8")
    return folder / "experiments" / "first.yaml"


def study_of(folder: Path, changes: Mapping[str, Any] | None = None) -> Study:
    """The small study, with FAST and then some changes made to it."""
    path = folder / "experiments" / "first.yaml"
    return resolve(path if path.exists() else harbour(folder), {**FAST, **(changes or {})})


def set_options(changes: Mapping[str, Any]) -> list[str]:
    """Changes as options of a command."""
    return [f"--set={key}={json.dumps(value)}" for key, value in changes.items()]


def helpers() -> ChatModel:
    """The scripted model that plays every role."""
    return open_model("main", HELPERS)


class Answering:
    """A model that answers by a function, and by the helpers where that gives None.

    ``asked`` holds every request in the order in which they came.
    """

    def __init__(self, script: Callable[[Request], Reply | str | None] | None = None) -> None:
        self.name = "main"
        self.asked: list[Request] = []
        self._script = script
        self._helpers = helpers()

    async def complete(self, request: Request) -> Reply:
        self.asked.append(request)
        answer = self._script(request) if self._script else None
        if answer is None:
            return await self._helpers.complete(request)
        return await ScriptedModel(self.name, lambda _: answer).complete(request)

    async def aclose(self) -> None:
        """Nothing to give back."""

    def of(self, role: str) -> list[Request]:
        """The requests of one role."""
        return [request for request in self.asked if request.context.get("role") == role]


def failing(outcome: Outcome, reason: str = "by script", text: str = "") -> Reply:
    """A reply that did not work."""
    return Reply(outcome, text, reason=reason)


@dataclass
class Memory:
    """Records by table and id."""

    tables: dict[str, dict[str, StageRecord]] = field(default_factory=dict)

    async def put(self, table: str, record: StageRecord) -> None:
        self.tables.setdefault(table, {})[record.id] = record

    async def drop(self, table: str, name: str) -> None:
        self.tables.get(table, {}).pop(name, None)

    def count(self, table: str) -> int:
        """How many records a table has."""
        return len(self.tables.get(table, {}))

    def all(self, table: str) -> list[Any]:
        """The records of a table by id."""
        return [record for _, record in sorted(self.tables.get(table, {}).items())]


async def pipe(
    study: Study,
    model: ChatModel | None = None,
    until: Stage = Stage.VERDICTS,
    limit: int | None = None,
    models: Mapping[str, ChatModel] | None = None,
) -> Memory:
    """Run the pipeline of a study, with one model in every role unless ``models`` are given."""
    records = Memory()
    models = models or dict.fromkeys(study.experiment.models, model or helpers())
    await Pipeline(make_plan(study, limit), make_cast(study, models), records, until).run()
    return records


@dataclass
class Terminal:
    """Gives commands in a folder: exit code, stdout, stderr."""

    folder: Path
    capsys: pytest.CaptureFixture[str]

    def __call__(self, *arguments: str) -> tuple[int, str, str]:
        code = run(arguments)
        printed = self.capsys.readouterr()
        return code, printed.out, printed.err

    def json(self, *arguments: str) -> Any:
        """What a command that succeeds prints, as data."""
        code, out, err = self(*arguments)
        assert code == 0, err
        return json.loads(out)


def terminal_in(
    folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Terminal:
    """A terminal in a folder."""
    monkeypatch.chdir(folder)
    monkeypatch.delenv("HABITUS_DEBUG", raising=False)
    return Terminal(folder, capsys)


class Shuffled:
    """The helpers, who let go of the loop a seeded number of times before they answer."""

    def __init__(self, seed: int) -> None:
        self.name = "main"
        self._random = Random(seed)
        self._helpers = helpers()

    async def complete(self, request: Request) -> Reply:
        for _ in range(self._random.randrange(40)):
            await asyncio.sleep(0)
        return await self._helpers.complete(request)

    async def aclose(self) -> None:
        """Nothing to give back."""


def opening(model: ChatModel) -> Factory:
    """Opens the same model for every entry."""
    return lambda _name, _entry, _opening: model


def contents(run: Path) -> dict[str, bytes]:
    """The bytes of the records and results of a run."""
    files = [*sorted((run / "records").glob("*.jsonl")), run / "results.json"]
    return {path.name: path.read_bytes() for path in files}


def calls_of(run: Path) -> tuple[int, int]:
    """Calls that are stored, and calls that were made for them."""
    with RunDir.open(run, write=False) as opened:
        counts = opened.calls.counts()
    return sum(c.calls for c in counts), sum(c.logged for c in counts)


class Dying:
    """An observer or a model that kills its process at the n-th record or call."""

    def __init__(self, at: int, where: str) -> None:
        self.name = "main"
        self._left = at
        self._where = where
        self._helpers = helpers()

    def _count(self, where: str) -> None:
        self._left -= where == self._where
        if self._left <= 0:
            os.kill(os.getpid(), signal.SIGKILL)

    async def complete(self, request: Request) -> Reply:
        self._count("call")
        return await self._helpers.complete(request)

    async def aclose(self) -> None:
        """Nothing to give back."""

    def begin(self, run: RunDir, models: Mapping[str, Any]) -> None:
        """Nothing to do."""

    def put(self, table: str, record: StageRecord) -> None:
        self._count("record")

    def end(self) -> None:
        self._count("end")


def dying_run(folder: Path, at: int, where: str) -> None:
    """Begin or go on with the small run in a folder, and be killed in the middle of it."""
    dying = Dying(at, where)
    request = RunRequest(out=folder / "run", opener=opening(dying))
    run_experiment(study_of(folder), request, dying)


def killed_run(folder: Path, at: int, where: str) -> int:
    """``dying_run`` in a process of its own; its exit code."""
    code = f"from study_fixture import *; dying_run(Path({str(folder)!r}), {at}, {where!r})"
    here = Path(__file__).parent
    path = os.pathsep.join([str(here.parent / "engine"), str(here)])
    environment = {**os.environ, "PYTHONPATH": path}
    return subprocess.run([sys.executable, "-c", code], env=environment, check=False).returncode
