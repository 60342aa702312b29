"""Items from a file that people have: JSON lines (compressed, too), CSV, or Parquet.

A row is one answer. Its columns are found by their usual names, or named by the user:

- ``response``: what is judged;
- ``question``: what it answers; needed by judges that look at it;
- ``target``: the model that answered; never shown to a judge;
- ``id``: of the row, or, where there is a target, of what was answered;
- ``group``: what answers have in common (a post, a person). Without it, answers of several
  targets to one id, or else to one question, are a group.

All other columns with plain values are kept as fields, for an analysis to group by. A response that
is missing or blank is an item without an answer: counted and not judged.
"""

from __future__ import annotations

import csv
import hashlib
import sys
from collections.abc import Collection, Iterator, Mapping
from dataclasses import fields
from functools import partial
from itertools import chain
from pathlib import Path
from typing import Any

from habitus.errors import UsageError
from habitus.labelling.sources import Columns, Source, looked_through
from habitus.records import JudgedItem, Outcome

Row = Mapping[str, Any]
_USUAL: Mapping[str, tuple[str, ...]] = {
    "response": ("response", "answer", "output", "completion"),
    "question": ("question", "prompt", "query", "input"),
    "target": ("target", "model"),
    "id": ("id", "item_id"),
    "group": ("group", "post_id", "question_id", "cluster"),
}
_NO_TARGET = "-"


def table_source(path: Path, columns: Columns, needs: Collection[str]) -> Source:
    """The items of a file; all of it is read and checked.

    Raises:
        UsageError: a row that cannot be read, a column that is not there or could be one of two,
            two rows with one id, or no row at all.
    """
    rows = _reader(path)
    found = _columns(path, rows(), columns, needs)
    read = partial(_items, rows, found)
    return Source(path.name, "rows", *looked_through(_unique(path, read())), read)


def _items(rows: Any, columns: Columns) -> Iterator[JudgedItem]:
    for number, row in enumerate(rows(), start=1):
        yield _item(number, row, columns)


def _item(number: int, row: Row, columns: Columns) -> JudgedItem:
    given = {f.name: _text(row.get(getattr(columns, f.name))) for f in fields(Columns)}
    target = given["target"] or _NO_TARGET
    name = given["id"] or f"row-{number:07}"
    group = given["group"] or _group(given, columns, name)
    blank = not given["response"].strip()
    used = {getattr(columns, f.name) for f in fields(Columns)}
    return JudgedItem(
        id=f"{name}/{target}" if columns.target else name,
        outcome=Outcome.UNPARSED if blank and columns.response else Outcome.OK,
        reason="the file has no response" if blank and columns.response else "",
        group=group,
        target=target,
        question=given["question"],
        response=given["response"],
        fields={k: _text(v) for k, v in row.items() if k not in used and _plain(v)},
    )


def _group(given: Mapping[str, str], columns: Columns, name: str) -> str:
    """What is grouped where no column says so: answers to one id, or to one question."""
    if columns.target and not given["id"] and given["question"]:
        return "q-" + hashlib.sha256(given["question"].encode("utf-8", "replace")).hexdigest()[:16]
    return name


def _plain(value: Any) -> bool:
    return value is not None and not isinstance(value, (dict, list, bytes))


def _text(value: Any) -> str:
    if value is None:
        return ""
    return ("yes" if value else "no") if isinstance(value, bool) else str(value)


def _unique(path: Path, items: Iterator[JudgedItem]) -> Iterator[JudgedItem]:
    """The items, or an error when there are two of one id, or none."""
    first: dict[str, int] = {}
    for number, item in enumerate(items, start=1):
        if first.setdefault(item.id, number) != number:
            raise UsageError(
                f"{path}: rows {first[item.id]} and {number} have the same id {item.id!r}; ids "
                "must tell rows apart (name the column of the model, or leave the id out, with "
                "--column target=NAME, --column id=)"
            )
        yield item
    if not first:
        raise UsageError(f"{path} has no rows")


def _columns(path: Path, rows: Iterator[Row], given: Columns, needs: Collection[str]) -> Columns:
    """The columns by what they are for, as the first row has them."""
    there = list(next(rows, {}))
    found = {f.name: _column(path, f.name, getattr(given, f.name), there) for f in fields(Columns)}
    for name in sorted(needs):
        if not found[name]:
            raise UsageError(
                f"{path} has no column for the {name}; it has {', '.join(there) or 'none'}: "
                f"say which with --column {name}=NAME"
            )
    return Columns(**found)


def _column(path: Path, purpose: str, given: str, there: Collection[str]) -> str:
    if given == "-":
        return ""
    if given:
        if given not in there:
            raise UsageError(f"{path} has no column {given!r}; it has {', '.join(there)}")
        return given
    usual = [name for name in there if name.strip().lower() in _USUAL[purpose]]
    if len(usual) > 1:
        raise UsageError(
            f"{path}: the {purpose} could be in {' or '.join(usual)}: "
            f"say which with --column {purpose}=NAME"
        )
    return usual[0] if usual else ""


def _reader(path: Path) -> Any:
    """What reads the rows of a file anew each time, by the file's name."""
    suffixes = [suffix.lower() for suffix in path.suffixes]
    if ".parquet" in suffixes:
        return partial(_parquet, path)
    if suffixes[-1:] in ([".csv"], [".tsv"]):
        return partial(_csv, path, "\t" if suffixes[-1] == ".tsv" else ",")
    if {".jsonl", ".ndjson", ".json"} & set(suffixes):
        return partial(_json_lines, path)
    raise UsageError(f"{path}: rows are read from .jsonl, .csv, .tsv and .parquet files, and runs")


def _json_lines(path: Path) -> Iterator[Row]:
    import orjson  # noqa: PLC0415

    from habitus.corpora import LineReader  # noqa: PLC0415

    lines = LineReader(path)
    for number, line in enumerate(lines, start=1):
        if line is not None and not line.strip():
            continue
        try:
            row = orjson.loads(line or b"")
        except ValueError as error:
            raise UsageError(f"{path}:{number}: no JSON: {error}") from None
        if not isinstance(row, dict):
            raise UsageError(f"{path}:{number}: each line must hold one JSON object")
        yield row
    if lines.damage:
        raise UsageError(f"{path}: {lines.damage}")


def _csv(path: Path, delimiter: str) -> Iterator[Row]:
    csv.field_size_limit(sys.maxsize)
    try:
        with path.open(encoding="utf-8-sig", newline="") as file:
            rows = csv.reader(file, delimiter=delimiter, strict=True)
            heading = next(rows, [])
            for name in heading:
                if heading.count(name) > 1:
                    raise UsageError(f"{path} has two columns {name!r}")
            for cells in rows:
                if cells and len(cells) != len(heading):
                    what = f"{len(cells)} cells under {len(heading)} headings"
                    raise UsageError(f"{path}:{rows.line_num}: {what}")
                if cells:
                    yield dict(zip(heading, cells, strict=True))
    except csv.Error as error:
        raise UsageError(f"{path}:{rows.line_num}: no CSV: {error}") from None
    except UnicodeDecodeError as error:
        raise UsageError(f"{path} is not UTF-8 (byte {error.start}); save it as UTF-8") from None


def _parquet(path: Path) -> Iterator[Row]:
    from habitus.corpora import column_names, read_posts  # noqa: PLC0415

    names = column_names(path)
    batches = (zip(*batch.values(), strict=True) for batch in read_posts(path, names))
    return (dict(zip(names, row, strict=True)) for row in chain.from_iterable(batches))
