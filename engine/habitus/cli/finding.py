"""What commands are given: experiments and runs by id or path, and values to set."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from habitus.content import find
from habitus.content.places import looks_like_path
from habitus.errors import UsageError

if TYPE_CHECKING:
    from habitus.models import ModelEntry


def experiment_path(name: str) -> Path:
    """The file of an experiment: a path as it is, an id in the workspace or among the shipped."""
    if looks_like_path(name):
        return Path(name)
    return find("experiments", f"{name}.yaml")


def run_path(name: str) -> Path:
    """The directory of a run: a path as it is, the name of one in ``runs/`` otherwise."""
    from habitus.store import is_run

    direct, named = Path(name), Path("runs") / name
    if "/" in name or is_run(direct):
        return direct
    return named if is_run(named) or not direct.exists() else direct


def labels_path(name: str) -> Path:
    """The directory of a run of labels; a file is to be judged first."""
    path = run_path(name)
    if path.is_file():
        raise UsageError(
            f"{name} is a file: `habitus judge {name} --model MODEL` labels its answers"
        )
    return path


def run_or_file(name: str) -> Path:
    """A file as it is, or the directory of a run; what is neither, as it was given."""
    path = Path(name)
    run = run_path(name)
    return run if run.is_dir() and not path.is_file() else path


def model_entries(given: Sequence[str]) -> tuple[dict[str, ModelEntry], str, dict[str, str]]:
    """Models as ``--model`` names them.

    Args:
        given: ``MODEL`` for all judges, ``JUDGE=MODEL`` for one. A model is the name of a file in
            ``experiments/models/``, a path, or an entry of YAML in braces.

    Returns:
        Entries by name, the name of the model for all judges that have none of their own, and
        names by judge.
    """
    entries: dict[str, ModelEntry] = {}
    own: dict[str, str] = {}
    default = ""
    for text in given:
        judge, equals, model = text.partition("=")
        whose, what = ("", text) if text.startswith("{") or not equals else (judge, model)
        name, entry = model_entry(what)
        if entries.setdefault(name, entry) != entry:
            raise UsageError(f"--model {text}: there is another model called {name!r}")
        if whose in own or (not whose and default):
            raise UsageError(f"--model {text}: {whose or 'all judges'} already have a model")
        if whose:
            own[whose] = name
        else:
            default = name
    if not default and not own:
        raise UsageError("name a model with --model")
    return entries, default, own


def model_entry(text: str) -> tuple[str, ModelEntry]:
    """The name and the entry of one model, with its price where a list has one."""
    from habitus.content.models import from_document
    from habitus.content.yamlfile import parse_yaml
    from habitus.models import ModelEntry
    from habitus.models.entry import load_entry
    from habitus.models.prices import find_prices

    if text.startswith("{"):
        entry = from_document(parse_yaml(text, Path("--model")), ModelEntry)
        return "model", find_prices().priced(entry)
    path = Path(text)
    if path.suffix not in {".yaml", ".yml"}:
        path = find("experiments", f"models/{text}.yaml")
    return path.stem, find_prices().priced(load_entry(path))


def read_changes(given: Iterable[str]) -> dict[str, Any]:
    """``KEY=VALUE`` pairs; a value is read as YAML, so ``3``, ``true`` and ``[a, b]`` work."""
    changes: dict[str, Any] = {}
    for text in given:
        key, equals, value = text.partition("=")
        if not equals or not all(key.split(".")):
            raise UsageError(f"--set {text}: write KEY=VALUE, such as seed=7 or none=per_persona")
        changes[key] = _value(value, text)
    return changes


def _value(value: str, text: str) -> Any:
    from habitus.content.yamlfile import parse_yaml
    from habitus.errors import ContentError

    if not value.strip():
        return None
    try:
        return json.loads(value)
    except (ValueError, RecursionError):  # the reader of YAML says what is wrong, and where
        pass
    try:
        return parse_yaml(value, Path("--set")).data
    except ContentError as error:
        raise UsageError(f"--set {text}: {error.problems[0].what}") from None
