"""The SQLite file of a run: its tables, how it is opened, and what its errors mean.

While a process works on a run the file is in WAL mode with ``synchronous=FULL``: a commit is on
the disk when it returns, and readers see whole commits. On a clean close it goes back to one
plain file, so that a finished run can be copied, or read where nothing may be written. Readers
never write, not even to the shared-memory file.

Tables:

``packs``    ``first`` is the number of the first call in it; ``keys`` is 16 bytes for each call;
             ``body`` is a zstd frame of JSON lines. Calls are numbered in the order they came.
``calls``    for each key the number of its newest answer, and its kind.
``kinds``    (stage, model, outcome) with running totals.
``shared``   texts that many calls have in common (histories, rubrics, schemas), by digest.
``records``  the stage records, each a zstd frame.
"""

from __future__ import annotations

import sqlite3
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import Any

import zstandard

import habitus
from habitus.errors import StoreError
from habitus.records import Outcome
from habitus.store.canonical import plain

FORMAT = 1
MOST_UNPACKED = (
    2**30
)  # bytes of one pack, record or text; a writer closes packs at a thousandth of it
_LOG_HEADER = 32  # bytes of a write-ahead log before its first page
_UNFINISHED = 0  # the format of a database whose run is still being made
_APPLICATION = 0x48414249  # "HABI"
_TABLES = """
CREATE TABLE packs (
    first INTEGER PRIMARY KEY, rows INTEGER NOT NULL, keys BLOB NOT NULL, body BLOB NOT NULL);
CREATE TABLE calls (
    key BLOB PRIMARY KEY, number INTEGER NOT NULL, kind INTEGER NOT NULL) WITHOUT ROWID;
CREATE TABLE kinds (
    id INTEGER PRIMARY KEY, stage TEXT NOT NULL, model TEXT NOT NULL, outcome TEXT NOT NULL,
    calls INTEGER NOT NULL DEFAULT 0, logged INTEGER NOT NULL DEFAULT 0,
    prompt INTEGER NOT NULL DEFAULT 0, cached INTEGER NOT NULL DEFAULT 0,
    completion INTEGER NOT NULL DEFAULT 0, uncounted INTEGER NOT NULL DEFAULT 0,
    UNIQUE (stage, model, outcome));
CREATE TABLE shared (digest BLOB PRIMARY KEY, body BLOB NOT NULL);
CREATE TABLE records (
    stage TEXT NOT NULL, id TEXT NOT NULL, outcome TEXT NOT NULL, reason TEXT NOT NULL,
    body BLOB NOT NULL, PRIMARY KEY (stage, id));
CREATE INDEX records_by_outcome ON records (stage, outcome, reason);
"""
#: What a column holds, by its name. SQLite itself takes any type in any column.
_TEXT, _NUMBER, _BYTES = (str,), (int,), (bytes,)
_TYPES: Mapping[str, tuple[type, ...]] = {
    **dict.fromkeys(("stage", "model", "outcome", "reason"), _TEXT),
    **dict.fromkeys(("key", "keys", "body", "digest"), _BYTES),
    **dict.fromkeys(("first", "rows", "number", "kind", "calls", "logged"), _NUMBER),
    **dict.fromkeys(("prompt", "cached", "completion", "uncounted"), _NUMBER),
    "id": (str, int),  # a text in records, a number in kinds
}
_MEANING = {
    sqlite3.SQLITE_FULL: "the disk is full; free some space and run the same command again",
    sqlite3.SQLITE_READONLY: "it cannot be written to; mend its permissions or copy the run",
    sqlite3.SQLITE_CANTOPEN: "it cannot be opened; mend its permissions or copy the run",
    sqlite3.SQLITE_IOERR: "the disk refused to read or write; see to the disk (space, quota, "
    "hardware), then run the same command again",
    sqlite3.SQLITE_CORRUPT: "the file is damaged; restore it from a copy, or start a new run",
    sqlite3.SQLITE_NOTADB: "the file is damaged; restore it from a copy, or start a new run",
    sqlite3.SQLITE_PROTOCOL: "the run was killed at an unlucky moment; go on with it once (the same "
    "command again), then it can be read",
    sqlite3.SQLITE_BUSY: "another process keeps it locked; close what reads it and try again",
}
_MEANING[sqlite3.SQLITE_PERM] = _MEANING[sqlite3.SQLITE_CANTOPEN]


def store_error(path: Path, error: Exception) -> StoreError:
    """The one clear message for a failure of the database."""
    code = getattr(error, "sqlite_errorcode", None)
    meaning = _MEANING.get(code & 0xFF, "") if isinstance(code, int) else ""
    return StoreError(f"{path}: {error}" + (f": {meaning}" if meaning else ""))


def damaged(path: Path, what: str) -> StoreError:
    """The one clear message for a database that does not hold what it should."""
    return StoreError(f"{path} is damaged ({what}); restore it from a copy")


@contextmanager
def told_as_damage(path: Path, what: str) -> Iterator[None]:
    """Whatever is wrong with rows that do not hold what they should is damage of the run."""
    try:
        yield
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise damaged(path, f"{what}: {error!r:.100}") from error


def outcome_of(path: Path, text: str) -> Outcome:
    """The outcome that a column names.

    Raises:
        StoreError: there is none of that name.
    """
    try:
        return Outcome(text)
    except ValueError:
        raise damaged(path, f"no outcome is called {plain(text)!r}") from None


def unpacked(body: bytes) -> bytes:
    """What a frame of the database holds.

    Raises:
        zstandard.ZstdError: it is no frame, or would be larger than anything that is kept.
    """
    if (size := zstandard.frame_content_size(body)) > MOST_UNPACKED:
        raise zstandard.ZstdError(f"it says that it holds {size:,} bytes")
    return zstandard.ZstdDecompressor().decompress(body)


def create(path: Path, calls_of: Path | None = None) -> None:
    """Make the database of a new run, with the calls of another one when told so.

    It counts as unfinished, and may be made again, until ``finish``.

    Raises:
        StoreError: if there is the database of a run already, or it cannot be written.
    """
    _clear_unfinished(path)
    source = None if calls_of is None else Reader(calls_of)
    target = _connect(f"{path.absolute().as_uri()}?mode=rwc", path)
    try:
        target.executescript(f"BEGIN; {_TABLES} PRAGMA application_id={_APPLICATION}; COMMIT;")
        if source is not None:
            target.execute("BEGIN")
            source.copy(("packs", "calls", "kinds", "shared"), target)
            target.execute("COMMIT")
    except sqlite3.Error as error:
        raise store_error(path, error) from error
    finally:
        target.close()
        if source is not None:
            source.close()


def finish(path: Path) -> None:
    """From here on the database is that of a run, and is never made again."""
    connection = _connect(f"{path.absolute().as_uri()}?mode=rw", path)
    try:
        connection.execute(f"PRAGMA user_version={FORMAT}")
    except sqlite3.Error as error:
        raise store_error(path, error) from error
    finally:
        connection.close()


def _clear_unfinished(path: Path) -> None:
    if not path.exists():
        return
    connection = _connect(f"{path.absolute().as_uri()}?mode=rw", path)
    try:
        (version,) = connection.execute("PRAGMA user_version").fetchone()
    except sqlite3.Error as error:
        raise store_error(path, error) from error
    finally:
        connection.close()
    if version != _UNFINISHED:
        raise StoreError(
            f"{path} belongs to a run whose manifest.json is missing; "
            "restore manifest.json from a copy, or choose another directory"
        )
    for suffix in ("", "-journal", "-wal", "-shm"):
        path.with_name(path.name + suffix).unlink(missing_ok=True)


def open_writer(path: Path) -> sqlite3.Connection:
    """The connection that writes; it may be handed to another thread."""
    connection = _connect(f"{path.absolute().as_uri()}?mode=rw", path)
    try:
        if _check(connection, path) == _UNFINISHED:  # cut short after its manifest was written
            connection.execute(f"PRAGMA user_version={FORMAT}")
        connection.execute("PRAGMA journal_mode=WAL")
        connection.execute("PRAGMA synchronous=FULL")
        connection.execute("PRAGMA cache_size=-8000")
    except sqlite3.Error as error:
        connection.close()
        raise store_error(path, error) from error
    except StoreError:
        connection.close()
        raise
    return connection


def close_writer(connection: sqlite3.Connection) -> None:
    """Close, and leave one plain file unless somebody is reading just now."""
    try:
        connection.execute("PRAGMA busy_timeout=0")
        connection.execute("PRAGMA journal_mode=DELETE")
    except sqlite3.Error:
        pass  # everything is committed; the next writer will tidy up
    finally:
        connection.close()


class Reader:
    """A connection that only reads; any thread may use it."""

    def __init__(self, path: Path, *, beside_writer: bool = False, killed: bool = False) -> None:
        """``beside_writer``: this process has it open for writing. ``killed``: the last one died."""
        self.path = path
        self._lock = threading.Lock()
        self._connection = _beside(path) if beside_writer else _reader(path, killed=killed)

    def rows(self, sql: str, *values: Any) -> list[tuple[Any, ...]]:
        """All rows of a query.

        Raises:
            StoreError: it cannot be read, or a column holds what this column never does.
        """
        try:
            with self._lock:
                found = self._connection.execute(sql, values)
                rows = found.fetchall()
        except sqlite3.Error as error:
            raise store_error(self.path, error) from error
        except ValueError:  # the text of a column that is no UTF-8, in a message of SQLite
            raise damaged(self.path, "a text that is none") from None
        for place, (name, *_) in enumerate(found.description or ()):
            kinds = _TYPES.get(name, (object,))
            if not all(isinstance(row[place], kinds) for row in rows):
                raise damaged(self.path, f"{name} of another type")
        return rows

    def row(self, sql: str, *values: Any) -> tuple[Any, ...] | None:
        """The first row of a query, or None."""
        found = self.rows(sql, *values)
        return found[0] if found else None

    def copy(self, tables: Sequence[str], target: sqlite3.Connection) -> None:
        """Copy whole tables into another database, all as they are at one moment."""
        try:
            with self._lock:
                self._connection.execute("BEGIN")
                for table in tables:
                    rows = self._connection.execute(f"SELECT * FROM {table}")  # noqa: S608
                    marks = ", ".join("?" * len(rows.description))
                    target.executemany(f"INSERT INTO {table} VALUES ({marks})", rows)  # noqa: S608
                self._connection.execute("COMMIT")
        except sqlite3.Error as error:
            raise store_error(self.path, error) from error

    def close(self) -> None:
        """Let the file go."""
        self._connection.close()


def _connect(uri: str, path: Path) -> sqlite3.Connection:
    try:
        connection = sqlite3.connect(
            uri, uri=True, isolation_level=None, check_same_thread=False, timeout=30
        )
        # A run may come from others: what its schema defines gets no functions that act.
        connection.execute("PRAGMA trusted_schema=0")
    except sqlite3.Error as error:
        raise store_error(path, error) from error
    return connection


def _beside(path: Path) -> sqlite3.Connection:
    connection = _connect(f"{path.absolute().as_uri()}?mode=rw", path)
    connection.execute("PRAGMA query_only=1")
    return connection


def _reader(path: Path, *, killed: bool) -> sqlite3.Connection:
    uri = f"{path.absolute().as_uri()}?mode=ro"
    log = path.with_name(path.name + "-wal")
    if killed and log.exists() and log.stat().st_size <= _LOG_HEADER:
        # Killed when the log was begun and held nothing yet: to a reader it seems to change for
        # ever, and SQLite gives up after ten seconds.
        return _unchanging(uri, path)
    try:
        return _checked(_connect(f"{uri}&readonly_shm=1", path), path)
    except sqlite3.OperationalError as error:
        # In WAL mode, but without the shared-memory file that a reader must not make.
        if error.sqlite_errorcode & 0xFF != sqlite3.SQLITE_CANTOPEN or not path.exists():
            raise store_error(path, error) from error
    if log.exists() and log.stat().st_size > _LOG_HEADER:
        raise StoreError(
            f"{path}: the run was interrupted and then moved without {path.name}-shm; "
            "go on with the run once (habitus run), then it can be read again"
        )
    return _unchanging(uri, path)


def _unchanging(uri: str, path: Path) -> sqlite3.Connection:
    """A connection to a file that nobody writes to: what is in it, and no log."""
    try:
        return _checked(_connect(f"{uri}&immutable=1", path), path)
    except sqlite3.Error as error:
        raise store_error(path, error) from error


def _checked(connection: sqlite3.Connection, path: Path) -> sqlite3.Connection:
    try:
        _check(connection, path)
    except sqlite3.OperationalError:
        connection.close()
        raise
    except sqlite3.Error as error:
        connection.close()
        raise store_error(path, error) from error
    except StoreError:
        connection.close()
        raise
    return connection


def _check(connection: sqlite3.Connection, path: Path) -> int:
    connection.execute("SELECT count(*) FROM sqlite_schema").fetchone()
    if connection.execute("PRAGMA application_id").fetchone() != (_APPLICATION,):
        raise StoreError(f"{path} is not the database of a run; restore it from a copy")
    (version,) = connection.execute("PRAGMA user_version").fetchone()
    if version not in {FORMAT, _UNFINISHED}:
        raise newer_format(path, version)
    strange = sorted(_columns(connection) - _known_columns())
    if strange:
        raise StoreError(
            f"{path} has {', '.join(strange)}, which this version of habitus ({habitus.__version__}) "
            "does not know; use the version that wrote the run (manifest.json names it), or a newer one"
        )
    return int(version)


def _columns(connection: sqlite3.Connection) -> set[str]:
    """``table.column`` for all tables but SQLite's own."""
    found = connection.execute(
        "SELECT t.name || '.' || c.name FROM sqlite_schema AS t, pragma_table_info(t.name) AS c "
        "WHERE t.type = 'table' AND t.name NOT GLOB 'sqlite_*'"
    )
    return {name for (name,) in found}


@cache
def _known_columns() -> frozenset[str]:
    connection = sqlite3.connect(":memory:")
    try:
        connection.executescript(_TABLES)
        return frozenset(_columns(connection))
    finally:
        connection.close()


def newer_format(path: Path, found: object) -> StoreError:
    """The message for a store that this version cannot read."""
    return StoreError(
        f"{path}: store format {found}, but this version of habitus knows format {FORMAT}; "
        "use the version that made the run, or a newer one"
    )
