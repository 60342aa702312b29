"""Where items come from: a file of questions and answers, or a run.

    source = open_source(Path("answers.jsonl"), Columns(response="output"), needs={"response"})
    for item in source.read(): ...

A source is read twice: once to be checked and named by its content before any call, and once to be
kept. So a fault in its last row costs nothing.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass
from pathlib import Path

from habitus.errors import UsageError
from habitus.records import JudgedItem, Outcome
from habitus.store import is_run


@dataclass(frozen=True, slots=True)
class Source:
    """Items, and what they are.

    Args:
        name: what people call it.
        kind: ``posts``, ``responses`` or ``rows``.
        digest: names the content: equal items, equal digest.
        size: how many items.
        answered: how many of them have a response.
        read: reads the items, each time anew.
        made_up: models whose answers no model gave.
    """

    name: str
    kind: str
    digest: str
    size: int
    answered: int
    read: Callable[[], Iterator[JudgedItem]]
    made_up: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class Columns:
    """Names of columns, where they are not the usual ones; "" looks for those."""

    response: str = ""
    question: str = ""
    target: str = ""
    id: str = ""
    group: str = ""


def open_source(
    path: Path,
    columns: Columns | None = None,
    needs: Collection[str] = ("response",),
    sheet: str = "",
) -> Source:
    """The items of a run, or of a file of JSON lines, CSV, Parquet or a workbook.

    Args:
        path: a run directory or a file.
        columns: what the columns of a file are called, where they are not found by themselves.
        needs: what judges will look at: ``question``, ``response``.
        sheet: the sheet of a workbook; the first that is shown where it is "".

    Raises:
        UsageError: what is there cannot be judged, with the row of a file.
        StoreError: a run that cannot be read.
    """
    from habitus.labelling.runs import run_source  # noqa: PLC0415  (each reads the other's kind)
    from habitus.labelling.tables import table_source  # noqa: PLC0415

    if not path.exists():
        raise UsageError(f"{path}: no such file or run")
    if not path.is_dir():
        return table_source(path, columns or Columns(), needs, sheet)
    if not is_run(path):
        raise UsageError(f"{path} is a folder and no run; name a file or a run directory")
    if columns not in {None, Columns()} or sheet:
        raise UsageError("columns and sheets are named for files; a run has its own")
    return run_source(path)


def looked_through(items: Iterator[JudgedItem]) -> tuple[str, int, int]:
    """Digest, size and number of answered items of a source, in its order."""
    hasher = hashlib.sha256()
    size = answered = 0
    for item in items:
        hasher.update(item.line() + b"\n")
        size += 1
        answered += item.outcome is Outcome.OK
    return hasher.hexdigest(), size, answered
