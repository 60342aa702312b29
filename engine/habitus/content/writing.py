"""Content files are written whole or not at all."""

from __future__ import annotations

import os
import re
import tempfile
import unicodedata
from collections.abc import Iterable, Iterator
from pathlib import Path

from habitus.errors import UsageError


def write_text(path: Path, text: str, *, overwrite: bool = False) -> None:
    """Write a UTF-8 file by way of a temporary one beside it; makes the folder if it must.

    Lone surrogates, which UTF-8 cannot hold, become escapes.

    Raises:
        UsageError: the file is there and ``overwrite`` is False, or it cannot be written.
    """
    if path.exists() and not overwrite:
        raise UsageError(f"{path} is there already; choose another name or overwrite it (--force)")
    try:
        _replace(path, text)
    except OSError as error:
        reason = error.strerror or type(error).__name__
        raise UsageError(f"{path} cannot be written: {reason}") from None


def _replace(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    handle, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    temporary = Path(name)
    try:
        with os.fdopen(
            handle, "w", encoding="utf-8", errors="backslashreplace", newline="\n"
        ) as file:
            file.write(text)
            file.flush()
            os.fsync(file.fileno())
        temporary.chmod(0o666 & ~_umask())
        temporary.replace(path)
    finally:
        temporary.unlink(missing_ok=True)


def _umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask


def file_stems(names: Iterable[str]) -> Iterator[str]:
    """A name for a file for each name of a thing: of letters, digits, ``.``, ``-`` and ``_``.

    No two are the same, also where capitals make no difference.
    """
    given: set[str] = set()
    for name in names:
        plain = re.sub(r"[^\w.-]+", "_", unicodedata.normalize("NFC", name).casefold())
        stem = plain.strip("_.-")[:60] or "unnamed"
        unique, number = stem, 1
        while unique in given:
            number += 1
            unique = f"{stem}_{number}"
        given.add(unique)
        yield unique
