"""A small study on disk, a terminal to give commands at, and records kept in memory.

The study is the workspace that ``habitus new`` makes: one culture of five norms, four personas,
two queries, scripted models. ``FAST`` cuts it to a few calls.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from habitus.cli import run
from habitus.content import shipped_root
from habitus.experiments import Stage, Study, resolve
from habitus.experiments.casting import make_cast, make_plan
from habitus.experiments.pipeline import Pipeline
from habitus.models import ChatModel, ModelEntry, open_model
from habitus.models.scripted import ScriptedModel
from habitus.records import Outcome, Reply, Request, StageRecord

WORKSPACE = shipped_root() / "experiments" / "workspace"
FAST: dict[str, Any] = {
    "personas": 2,
    "history.domain_sessions": 1,
    "history.everyday_sessions": 0,
    "history.exchanges": [2, 2],
    "settings": ["none", "hist", "ccot", "norms"],
}
HELPERS = ModelEntry(backend="scripted", options={"script": "helpers"})


def harbour(folder: Path) -> Path:
    """The workspace of ``habitus new`` in a folder; gives its experiment file."""
    shutil.copytree(WORKSPACE, folder, dirs_exist_ok=True)
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
) -> Memory:
    """Run the pipeline of a study with one model in every role."""
    records = Memory()
    models = dict.fromkeys(study.experiment.models, model or helpers())
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
