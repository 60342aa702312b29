"""What commands are given: experiments and runs by id or path, and values to set."""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from habitus.content import find
from habitus.content.places import looks_like_path
from habitus.errors import UsageError


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
    except ValueError:
        pass
    try:
        return parse_yaml(value, Path("--set")).data
    except ContentError as error:
        raise UsageError(f"--set {text}: {error.problems[0].what}") from None
