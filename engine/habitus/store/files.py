"""Files that are whole or not there, and the lock of a run directory.

A file is written beside its place, flushed to the disk and renamed, so a reader or a crash sees
the old one or the new one and nothing between. The lock is ``flock`` on a file that holds the
process id of its owner: the kernel lets go of it when the process ends, however it ends.
"""

from __future__ import annotations

import fcntl
import os
from collections.abc import Iterable
from pathlib import Path

from habitus.errors import RunLockedError, StoreError


def write_whole(path: Path, parts: Iterable[bytes]) -> None:
    """Write a file so that it is whole or untouched.

    Raises:
        StoreError: if it cannot be written.
    """
    beside = path.with_name(f".{path.name}.tmp")
    try:
        beside.unlink(missing_ok=True)  # left by a kill, or a link that somebody put there
        with beside.open("xb") as file:
            file.writelines(parts)
            file.flush()
            os.fsync(file.fileno())
        beside.replace(path)
        sync_directory(path.parent)
    except OSError as error:
        beside.unlink(missing_ok=True)
        raise StoreError(f"{path} cannot be written: {error.strerror or error}") from error


def refuse_links(folder: Path, names: Iterable[str]) -> None:
    """A run that somebody passed on must not lead what is written, or deleted, to another place.

    Raises:
        StoreError: one of the names in the folder is a symbolic link.
    """
    for name in names:
        if (folder / name).is_symlink():
            raise StoreError(f"{folder / name} is a link; a run has files of its own: copy it here")


def sync_directory(path: Path) -> None:
    """Make the names in a directory durable."""
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def left_locked(path: Path) -> bool:
    """Whether a lock names a process that is gone: it was killed before it could tidy up."""
    try:
        owner = int(path.read_bytes())
        os.kill(owner, 0)
    except ProcessLookupError:
        return True
    except (OSError, ValueError, OverflowError):
        return False
    return False


class Lock:
    """The right to write to a run directory, for one process at a time."""

    def __init__(self, path: Path) -> None:
        self._path = path
        try:
            flags = os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW
            self._handle = os.open(path, flags, 0o644)
        except OSError as error:
            raise StoreError(
                f"{path.parent} cannot be written to: {error.strerror}; "
                "choose another directory or mend its permissions"
            ) from error
        try:
            self._take()
        except BaseException:
            os.close(self._handle)
            raise

    def _take(self) -> None:
        try:
            fcntl.flock(self._handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            owner = os.pread(self._handle, 20, 0).decode("ascii", "replace").strip()
            raise RunLockedError(
                f"{self._path.parent}: process {owner or 'unknown'} is working on this run; "
                "wait for it or stop it first"
            ) from None
        except OSError as error:
            raise StoreError(
                f"{self._path} cannot be locked ({error.strerror}); "
                "a run directory needs a file system with locks"
            ) from error
        try:
            os.ftruncate(self._handle, 0)
            os.pwrite(self._handle, str(os.getpid()).encode(), 0)
        except OSError as error:
            raise StoreError(f"{self._path} cannot be written: {error.strerror}") from error

    def release(self) -> None:
        """Let others write. May be called twice."""
        if self._handle < 0:
            return
        os.ftruncate(self._handle, 0)
        os.close(self._handle)
        self._handle = -1
