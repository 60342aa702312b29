"""Items from the rows of a file.

A row is one answer. Its columns are found by their usual names, or named by the user:

- ``response``: what is judged;
- ``question``: what it answers; needed by judges that look at it;
- ``target``: the model that answered; never shown to a judge;
- ``id``: of the row, or, where there is a target, of what was answered;
- ``group``: what answers have in common (a post, a person). Without it, answers of several
  targets to one id, or else to one question, are a group.

All other columns with plain values are kept as fields, for an analysis to group by; empty cells are
not. A response that is missing or blank is an item without an answer: counted and not judged.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import fields
from functools import partial
from itertools import chain
from pathlib import Path
from typing import Any

from habitus.errors import UsageError
from habitus.labelling.rows import Row, row_reader
from habitus.labelling.source import Columns, Source, looked_through
from habitus.records import JudgedItem, Outcome
from habitus.workbooks import SheetRow

_USUAL: Mapping[str, tuple[str, ...]] = {
    "response": ("response", "answer", "output", "completion"),
    "question": ("question", "prompt", "query", "input"),
    "target": ("target", "model"),
    "id": ("id", "item_id"),
    "group": ("group", "post_id", "question_id", "cluster"),
}
_NO_TARGET = "-"
_SHOWN = 20  # columns that an error lists


def table_source(path: Path, columns: Columns, needs: Collection[str], sheet: str = "") -> Source:
    """The items of a file; all of it is read and checked.

    Raises:
        UsageError: a row that cannot be read, a column that is not there or could be one of two,
            two rows with one id, or no row at all.
    """
    rows = row_reader(path, sheet)
    found = _columns(path, _names(path, rows()), columns, needs)
    unique = _unique(path, _placed(path, rows, found))
    read = partial(_items, path, rows, found)
    return Source(path.name, "rows", *looked_through(unique), read)


def _items(path: Path, rows: Callable[[], Iterator[Row]], columns: Columns) -> Iterator[JudgedItem]:
    for _, item in _placed(path, rows, columns):
        yield item


def _placed(
    path: Path, rows: Callable[[], Iterator[Row]], columns: Columns
) -> Iterator[tuple[str, JudgedItem]]:
    """The items, each with the place of its id: a row, or the cell of a workbook."""
    used = {f.name: getattr(columns, f.name) for f in fields(Columns)}
    for number, row in enumerate(rows(), start=1):
        given = {
            what: _cell(f"{path}: row {number}", row, what, name) for what, name in used.items()
        }
        kept = {k: _text(v) for k, v in row.items() if k not in used.values() and _plain(v)}
        item = _item(number, given, columns, {k: text for k, text in kept.items() if text})
        if isinstance(row, SheetRow) and columns.id:
            yield row.cell(columns.id), item
        else:
            yield str(number), item


def _cell(place: str, row: Row, purpose: str, name: str) -> str:
    """The text in a column that is used; "" where there is no such column."""
    value = row.get(name) if name else None
    if not _plain(value):
        raise UsageError(
            f"{place} has no text in {name!r} (it is of type {type(value).__name__}): name another "
            f"column with --column {purpose}=NAME, or set it aside with --column {purpose}=-"
        )
    return _text(value)


def _item(
    number: int, given: Mapping[str, str], columns: Columns, kept: dict[str, str]
) -> JudgedItem:
    target = given["target"] or _NO_TARGET
    name = given["id"] or f"row-{number:07}"
    blank = bool(columns.response) and not given["response"].strip()
    return JudgedItem(
        id=f"{name}/{target}" if columns.target else name,
        outcome=Outcome.UNPARSED if blank else Outcome.OK,
        reason="the file has no response" if blank else "",
        group=given["group"] or _group(given, columns, name),
        target=target,
        question=given["question"],
        response=given["response"],
        fields=kept,
    )


def _group(given: Mapping[str, str], columns: Columns, name: str) -> str:
    """What is grouped where no column says so: answers to one id, or to one question."""
    if columns.target and not given["id"] and given["question"]:
        return "q-" + hashlib.sha256(given["question"].encode("utf-8", "replace")).hexdigest()[:16]
    return name


def _plain(value: Any) -> bool:
    return not isinstance(value, (dict, list, bytes))


def _text(value: Any) -> str:
    """A value as text; nothing, and what is no number, is no text."""
    if value is None or (isinstance(value, float) and math.isnan(value)):
        return ""
    return ("yes" if value else "no") if isinstance(value, bool) else str(value)


def _unique(path: Path, items: Iterator[tuple[str, JudgedItem]]) -> Iterator[JudgedItem]:
    """The items, or an error when there are two of one id."""
    first: dict[str, str] = {}
    for place, item in items:
        if first.setdefault(item.id, place) != place:
            what = "rows" if place.isdigit() else "cells"
            raise UsageError(
                f"{path}: {what} {first[item.id]} and {place} have the same id {item.id!r}; ids "
                "must tell rows apart (name the column of the model, or leave the id out, with "
                "--column target=NAME, --column id=)"
            )
        yield item


def _names(path: Path, rows: Iterator[Row]) -> list[str]:
    """The names of all columns; a line of JSON need not have all of them."""
    first = next(rows, None)
    if first is None:
        raise UsageError(f"{path} has no rows")
    return list(dict.fromkeys(chain(first, chain.from_iterable(rows))))


def _columns(path: Path, there: Collection[str], given: Columns, needs: Collection[str]) -> Columns:
    """The columns by what they are for."""
    found = {f.name: _column(path, f.name, getattr(given, f.name), there) for f in fields(Columns)}
    for name in sorted(needs):
        if not found[name]:
            raise UsageError(
                f"{path} has no column for the {name}; it has {_listed(there)}: "
                f"say which with --column {name}=NAME"
            )
    return Columns(**found)


def _column(path: Path, purpose: str, given: str, there: Collection[str]) -> str:
    if given == "-":
        return ""
    if given:
        if given not in there:
            raise UsageError(f"{path} has no column {given!r}; it has {_listed(there)}")
        return given
    usual = [name for name in there if name.strip().lower() in _USUAL[purpose]]
    if len(usual) > 1:
        raise UsageError(
            f"{path}: the {purpose} could be in {' or '.join(usual)}: "
            f"say which with --column {purpose}=NAME"
        )
    return usual[0] if usual else ""


def _listed(names: Collection[str]) -> str:
    """Names of columns for a message, or the first of many."""
    shown = ", ".join(map(repr, list(names)[:_SHOWN]))
    return f"{shown} and {len(names) - _SHOWN} more" if len(names) > _SHOWN else shown
