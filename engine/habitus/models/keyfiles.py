"""Where keys of servers come from: a variable of the environment, or a file outside runs and content.

    key = read_key("target", entry, opening)      # or None, where the entry names none

A key is read when a model is opened and lives in the headers of its connection.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Mapping
from pathlib import Path

from habitus.content.places import FOLDERS, is_workspace, workspace_of
from habitus.errors import ModelError
from habitus.models.entry import ModelEntry, Opening

LONGEST_FILE = 4096  # bytes
_RUN_FILES = ("manifest.json", "run.sqlite")


def read_key(name: str, entry: ModelEntry, opening: Opening) -> str | None:
    """The key of an entry; None where it names none.

    Raises:
        ModelError: the variable is not set, the file cannot be used, or what it holds is no key. What
            it holds is not said.
    """
    if entry.api_key_env is not None:
        key = opening.environ.get(entry.api_key_env, "").strip()
        if not key:
            raise ModelError(f"model {name!r}: environment variable {entry.api_key_env} is not set")
        source = entry.api_key_env
    elif entry.api_key_file is not None:
        source = entry.api_key_file
        try:
            key = _from_file(key_path(source, opening.environ), opening.base)
        except _UnusableFileError as error:
            raise ModelError(f"model {name!r}: api_key_file {source} {error}") from None
    else:
        return None
    if not key.isprintable() or not key.isascii() or " " in key:
        raise ModelError(f"model {name!r}: {source} does not hold a usable key")
    return key


def key_path(file: str, environ: Mapping[str, str]) -> Path:
    """The path of a key file, with ``~`` for the home of the environment."""
    if file.startswith("~/"):
        return Path(environ.get("HOME") or Path.home()) / file[2:]
    return Path(file)


class _UnusableFileError(Exception):
    """Why a key file is not read."""


def _from_file(path: Path, base: Path) -> str:
    """The one line of a key file.

    A file that others may read is refused where it is the user's own, as ssh does it; one that
    belongs to somebody else (a secret mounted into a container) is not his to change.
    """
    try:
        resolved = path.resolve(strict=True)
        _refuse_place(resolved, base)
        handle = os.open(resolved, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)  # no wait for a pipe
        with os.fdopen(handle, "rb") as file:
            found = os.fstat(handle)
            if not stat.S_ISREG(found.st_mode):
                raise _UnusableFileError("is no file")
            if found.st_uid == os.getuid() and found.st_mode & 0o077:
                raise _UnusableFileError("can be read by others; give it to yourself: chmod 600")
            raw = file.read(LONGEST_FILE + 1)
    except OSError as error:
        raise _UnusableFileError(f"cannot be read: {error.strerror or error}") from None
    lines = raw.decode("ascii", "replace").split()
    if len(raw) > LONGEST_FILE or len(lines) != 1:
        raise _UnusableFileError("must hold the key on one line and nothing else")
    return lines[0]


def _refuse_place(path: Path, base: Path) -> None:
    """A key must not travel with a run or with content."""
    workspace = workspace_of(base / "entry.yaml")
    for folder in path.parents:
        if all((folder / name).exists() for name in _RUN_FILES):
            raise _UnusableFileError("lies in a run, which is passed on whole; keep it elsewhere")
        content = folder.name in FOLDERS
        if content and (folder.parent == workspace or is_workspace(folder.parent)):
            raise _UnusableFileError(f"lies in {folder.name}/, which is content; keep it elsewhere")
