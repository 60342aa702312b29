"""Rows of a file that people have: JSON lines or an array of JSON, CSV, TSV, or Parquet.

    rows = row_reader(Path("answers.jsonl.zst"))
    for row in rows(): ...            # names to values; each call reads the file anew

JSON lines may be compressed, and a file that was cut off is told. Whatever cannot be read is one
error with the file and, where there is one, the line. What a row means is not known here.
"""

from __future__ import annotations

import csv
import sys
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from itertools import chain
from pathlib import Path
from typing import Any

from habitus.errors import UsageError
from habitus.store.canonical import loads

Row = Mapping[str, Any]
_LONGEST_LINE = 2**30  # bytes; an array of JSON may be all on one line
_MARK = b"\xef\xbb\xbf"


def row_reader(path: Path) -> Callable[[], Iterator[Row]]:
    """What reads the rows of a file, by its name.

    Raises:
        UsageError: rows of such files cannot be read. What is returned raises it for a file that
            is not what its name says, or damaged.
    """
    suffixes = [suffix.lower() for suffix in path.suffixes]
    last = suffixes[-1] if suffixes else ""
    if last == ".parquet":
        return partial(_parquet, path)
    if last in {".csv", ".tsv"}:
        return partial(_csv, path, "\t" if last == ".tsv" else ",")
    if {".jsonl", ".ndjson", ".json"} & set(suffixes):
        return partial(_json, path)
    raise UsageError(
        f"{path}: rows are read from .jsonl, .json, .csv, .tsv and .parquet files, and from runs"
    )


def _json(path: Path) -> Iterator[Row]:
    """Objects, one a line, or those of an array."""
    from habitus.corpora import LineReader  # noqa: PLC0415

    reader = LineReader(path, _LONGEST_LINE)
    lines = _numbered(path, reader)
    try:
        for number, line in lines:
            if number == 1 and line.lstrip()[:1] == b"[":
                yield from _array(path, b"\n".join([line, *(more for _, more in lines)]))
            elif line.strip():
                yield _object(f"{path}:{number}", line)
    except UsageError:  # the last line of a file that was cut off is seldom whole
        _tell_damage(path, reader.damage)
        raise
    _tell_damage(path, reader.damage)


def _numbered(path: Path, lines: Any) -> Iterator[tuple[int, bytes]]:
    for number, line in enumerate(lines, start=1):
        if line is None:
            raise UsageError(f"{path}:{number}: the line is longer than {_LONGEST_LINE:,} bytes")
        yield number, line.removeprefix(_MARK) if number == 1 else line


def _tell_damage(path: Path, damage: str | None) -> None:
    if damage:
        raise UsageError(f"{path}: {damage}") from None


def _array(path: Path, text: bytes) -> Iterator[Row]:
    for number, row in enumerate(_parsed(str(path), text), start=1):
        if not isinstance(row, dict):
            raise UsageError(f"{path}: row {number} of the array is no JSON object")
        yield row


def _object(place: str, line: bytes) -> Row:
    row = _parsed(place, line)
    if not isinstance(row, dict):
        raise UsageError(f"{place}: each line must hold one JSON object")
    return row


def _parsed(place: str, text: bytes) -> Any:
    try:
        return loads(text)
    except UnicodeDecodeError:
        raise UsageError(f"{place}: not UTF-8; save it as UTF-8") from None
    except (ValueError, RecursionError) as error:
        hint = "write one object a line, or one array of objects"
        raise UsageError(f"{place}: no JSON: {error} ({hint})") from None


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
    except OSError as error:
        raise UsageError(f"{path} cannot be read: {error.strerror}") from None


def _parquet(path: Path) -> Iterator[Row]:
    from habitus.corpora import column_names, read_posts  # noqa: PLC0415

    names = column_names(path)
    for name in names:
        if names.count(name) > 1:
            raise UsageError(f"{path} has two columns {name!r}")
    batches = (zip(*batch.values(), strict=True) for batch in read_posts(path, names))
    yield from (dict(zip(names, row, strict=True)) for row in chain.from_iterable(batches))
