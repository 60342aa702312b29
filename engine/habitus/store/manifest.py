"""What a run says of itself: ``manifest.json``.

Versions, seeds, content hashes, when it was made, and which versions worked on it. What is known here has a
type and is checked when a run is opened; whoever makes a run may add keys of their own, which stay.
"""

from __future__ import annotations

import platform
from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from pydantic import BaseModel, ConfigDict, ValidationError

import habitus
from habitus.errors import StoreError

NAME = "manifest.json"


class _SessionNote(BaseModel):
    model_config = ConfigDict(strict=True)

    habitus: str
    sessions: int
    python: str = ""
    first: str = ""
    last: str = ""


class _Known(BaseModel):
    """The keys that are read, in any run; a run of an earlier version lacks some."""

    model_config = ConfigDict(strict=True)

    habitus: str = ""
    python: str = ""
    created: str = ""
    config: str = ""
    config_before: str = ""
    seed: int = 0
    origin: str = ""
    content: dict[str, Any] = {}
    forked_from: dict[str, Any] = {}
    inherited: dict[str, dict[str, int]] = {}
    sessions: list[_SessionNote] = []


def checked(manifest: dict[str, Any], path: Path) -> dict[str, Any]:
    """A manifest whose known keys are what they should be.

    Raises:
        StoreError: one is not.
    """
    try:
        _Known.model_validate(manifest)
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False)[0]
        where = ".".join(map(str, first["loc"]))
        what = f"{path} is damaged ({where}: {first['msg']}); restore it from a copy"
        raise StoreError(what) from None
    return manifest


def made_now(given: Mapping[str, Any], store: int, config: str) -> dict[str, Any]:
    """The manifest of a run that begins: what is given, this version, the format, the digest."""
    return {
        **given,
        "habitus": habitus.__version__,
        "store": store,
        "python": platform.python_version(),
        "config": config,
        "created": _now(),
    }


def session_notes(manifest: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Which versions worked on a run: how many sessions of each, the first and the last."""
    return [dict(note) for note in manifest.get("sessions", ())]


def with_session(manifest: Mapping[str, Any]) -> dict[str, Any]:
    """The same manifest, in which this version works on the run now."""
    who = {"habitus": habitus.__version__, "python": platform.python_version()}
    notes = session_notes(manifest)
    if not notes or any(notes[-1].get(name) != value for name, value in who.items()):
        notes.append({**who, "first": _now(), "sessions": 0})
    notes[-1] |= {"last": _now(), "sessions": notes[-1]["sessions"] + 1}
    return {**manifest, "sessions": notes}


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="seconds")
