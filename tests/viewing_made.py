"""A small run to look at: two personas, two targets, all settings, sessions that were rejected.

Scripted models give it texts worth reading: code, a script written from right to left, a long turn.
"""

from __future__ import annotations

import json
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

from habitus.experiments import RunRequest, run_experiment
from habitus.records import Reply, Request
from study_fixture import Answering, opening, study_of

CODE = "Try this:\n\n```python\ndef dose(day):\n    return day * 2  # never more\n```"
ARABIC = "شكرا جزيلا، سأجرب ذلك غدا في الصباح."
LONG = "I keep the net in the shed, and " * 40 + "that is all."
SAID = (
    "My mother-in-law says to boil the nettles twice. Is once enough?",
    ARABIC,
    "Fine. And for the hands?\n  - salt water\n  - lard, which is what we always had in the house",
    LONG,
)
ADVICE = (
    "Twice is safer. Pour the first water away.",
    CODE,
    "Salt water first, then lard, and leave the gloves off at night.",
)
#: Text that acts on a careless display; every piece of it is to be seen letter for letter.
HOSTILE = (
    "see [1], [INST] hi [/INST], path [/home/x], [bold]x[/] :smile: [@click=app.quit]q[/] "
    "\x1b[2J\x1b]0;title\x07 \u202eturn\u2066 \x9b31m \x00 $name {0} %s"
)


def small_run(path: Path, text: str = "", **more: Any) -> Path:
    """The run; with a text, every model says that text wherever it may say something."""
    changes: dict[str, Any] = {
        "history.domain_sessions": 2,
        "history.everyday_sessions": 0,
        "history.exchanges": [2, 3],
        "models.main.options": {"script": "helpers", "shown": 0.6, "agreement": 0.7},
        "targets": {"main": {"model": "main"}, "other": {"model": "main"}},
        **more,
    }
    study = study_of(path.parent / "study", changes)
    run_experiment(study, RunRequest(out=path, opener=opening(_model(text))))
    return path


def _model(text: str) -> Answering:
    from habitus.models import ModelEntry, open_model

    options = {"script": "helpers", "shown": 0.6, "agreement": 0.7}
    model = Answering(_hostile(text) if text else _script)
    model._helpers = open_model("main", ModelEntry(backend="scripted", options=options))
    return model


def _script(request: Request) -> Reply | str | None:
    pick = zlib.crc32(f"{request.record}{len(request.messages)}".encode())
    match request.context["role"]:
        case "persona":
            return SAID[pick % len(SAID)]
        case "assistant":
            return ADVICE[pick % len(ADVICE)]
        case "recommender":
            return json.dumps({"recommendation": "Names one thing that the house has already."})
        case "evaluator":
            return _verdicts(request, "It names lard, and says when.")
        case "verifier" | "judge":
            return None
    after = request.context.get("answer_after")
    answer = f"Wash them in salt water, option {pick % 7}, and wait for three days."
    return f"They keep what they have.\n{after}\n{answer}" if after else answer


def _verdicts(request: Request, reasoning: str) -> str:
    assert request.schema is not None
    met = {
        name: bool(zlib.crc32(f"{request.record}{name}".encode()) % 2)
        for name in request.schema.body["properties"]
    }
    return json.dumps({n: {"reasoning": reasoning, "adherence": m} for n, m in met.items()})


def _hostile(text: str) -> Callable[[Request], Reply | str | None]:
    def script(request: Request) -> Reply | str | None:
        match request.context["role"]:
            case "recommender":
                return json.dumps({"recommendation": text})
            case "evaluator":
                return _verdicts(request, text)
            case "verifier":
                return None
        after = request.context.get("answer_after")
        return f"{text}\n{after}\n{text}" if after else text

    return script
