"""Setting values of an experiment file by dotted key, before it is checked.

A changed value stands nowhere in the file, so a problem with it names the key that was set.
"""

from __future__ import annotations

from pathlib import Path

from habitus.content import Document
from habitus.content.yamlfile import Loc
from habitus.errors import UsageError


def change(document: Document, key: str, value: object) -> None:
    """Set a dotted key in the data of a document.

    Raises:
        UsageError: the key cannot be a place in the file.
    """
    loc = tuple(key.split("."))
    if not all(loc):
        raise UsageError(f"--set {key}: write a dotted key, such as history.domain_sessions")
    at = document.data
    for depth, part in enumerate(loc[:-1], start=1):
        if isinstance(at, dict) and at.get(part) is None:
            at[part] = {}
            _move(document, loc[:depth], {}, key)
        at = at.get(part) if isinstance(at, dict) else None
        if not isinstance(at, dict):
            raise UsageError(f"--set {key}: {part!r} holds no keys of its own")
    if not isinstance(at, dict):
        raise UsageError(f"--set {key}: {document.path} holds no keys")
    at[loc[-1]] = value
    _move(document, loc, value, key)


def _move(document: Document, loc: Loc, value: object, key: str) -> None:
    """Forget where the old value stood; the new one stands in the option."""
    for table in (document.positions, document.keys):
        for old in [found for found in table if found[: len(loc)] == loc]:
            del table[old]
    document.elsewhere[loc] = Path(f"--set {key}")
    _place(document, loc, value)


def _place(document: Document, loc: Loc, value: object) -> None:
    document.positions[loc] = (0, 0)
    if isinstance(value, dict):
        for key, inner in value.items():
            _place(document, (*loc, str(key)), inner)
    elif isinstance(value, list):
        for index, inner in enumerate(value):
            _place(document, (*loc, index), inner)
