"""What the files beside the database should be, so that a changed byte in one of them is found.

    note(folder, "study.json", data)        # before the file is written
    damaged(folder)                         # ["study.json is not what was written"]

``digests.json`` holds for each name the digests of what was last written and of what stood there
before: whichever of the two a crash has left is whole. Files that were never noted are not judged.
"""

from __future__ import annotations

import hashlib
from pathlib import Path

from habitus.store.canonical import dumps, loads
from habitus.store.files import write_whole

DIGESTS = "digests.json"


def note(folder: Path, name: str, data: bytes) -> None:
    """Note what a file is about to hold.

    Raises:
        StoreError: if it cannot be written.
    """
    noted = _read(folder)
    fresh = _digest(data)
    latest = noted.get(name, [])
    if latest[:1] != [fresh]:
        noted[name] = [fresh, *latest[:1]]
        write_whole(folder / DIGESTS, [dumps(dict(sorted(noted.items())))])


def note_present(folder: Path, name: str) -> None:
    """Note what a file holds that was written before anything was noted."""
    if name not in _read(folder):
        note(folder, name, (folder / name).read_bytes())


def damaged(folder: Path) -> list[str]:
    """What is wrong with the files that were noted."""
    try:
        noted = loads((folder / DIGESTS).read_bytes())
    except FileNotFoundError:
        return []
    except (OSError, ValueError):
        return [f"{DIGESTS} cannot be read"]
    if not isinstance(noted, dict):
        return [f"{DIGESTS} is damaged"]
    return [problem for name, known in noted.items() if (problem := _compare(folder, name, known))]


def _compare(folder: Path, name: str, known: object) -> str:
    try:
        data = (folder / name).read_bytes()
    except (OSError, ValueError):
        return f"{name} cannot be read"
    whole = isinstance(known, list) and _digest(data) in known
    return "" if whole else f"{name} is not what was written"


def _read(folder: Path) -> dict[str, list[str]]:
    """What was noted; nothing when the notes are damaged: they are then begun anew."""
    try:
        noted = loads((folder / DIGESTS).read_bytes())
    except (OSError, ValueError):
        return {}
    if not isinstance(noted, dict):
        return {}
    return {name: known for name, known in noted.items() if isinstance(known, list)}


def _digest(data: bytes) -> str:
    return hashlib.blake2b(data, digest_size=16).hexdigest()
