"""Rows of a file that people have: JSON lines or an array of JSON, CSV, TSV, a workbook, or Parquet.

    rows = row_reader(Path("answers.jsonl.zst"))
    for row in rows(): ...            # names to values; each call reads the file anew

JSON lines may be compressed, and a file that was cut off is told. Whatever cannot be read is one
error with the file and, where there is one, the line or the cell. In cells of CSV and of workbooks
the apostrophe that keeps a text from running is taken off (``habitus.cells``). What a row means is
not known here.
"""

from __future__ import annotations

import csv
import sys
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from pathlib import Path
from typing import Any

from habitus.cells import plain_cell
from habitus.errors import UsageError
from habitus.store.canonical import loads
from habitus.workbooks import read_rows

Row = Mapping[str, Any]
_LONGEST_LINE = 2**28  # bytes; an array of JSON may be all on one line
_SAVE_AS = {
    ".xls": "Excel 97",
    ".xlsb": "binary workbooks",
    ".ods": "LibreOffice",
    ".numbers": "Numbers",
}
_MARK = b"\xef\xbb\xbf"


def row_reader(path: Path, sheet: str = "") -> Callable[[], Iterator[Row]]:
    """What reads the rows of a file, by its name.

    Args:
        path: the file.
        sheet: of a workbook; the first that is shown where it is "".

    Raises:
        UsageError: rows of such files cannot be read. What is returned raises it for a file that
            is not what its name says, or damaged.
    """
    suffixes = [suffix.lower() for suffix in path.suffixes]
    last = suffixes[-1] if suffixes else ""
    if last in {".xlsx", ".xlsm"}:
        return partial(read_rows, path, sheet)
    if sheet:
        raise UsageError(f"{path} is no workbook and has no sheet {sheet!r}")
    if last == ".parquet":
        return partial(_parquet, path)
    if last in {".csv", ".tsv"}:
        return partial(_csv, path, "\t" if last == ".tsv" else ",")
    if {".jsonl", ".ndjson", ".json"} & set(suffixes):
        return partial(_json, path)
    if last in _SAVE_AS:
        raise UsageError(
            f"{path}: save it as .xlsx or CSV; the form of {_SAVE_AS[last]} is not read"
        )
    raise UsageError(
        f"{path}: rows are read from .jsonl, .json, .csv, .tsv, .xlsx and .parquet files, and from runs"
    )


def _json(path: Path) -> Iterator[Row]:
    """Objects, one a line, or those of an array."""
    from habitus.corpora import LineReader  # noqa: PLC0415

    reader = LineReader(path, _LONGEST_LINE)
    lines = _numbered(path, reader)
    try:
        for number, line in lines:
            if number == 1 and line.lstrip()[:1] == b"[":
                yield from _array(path, _whole(path, [line], lines))
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


def _whole(path: Path, parts: list[bytes], lines: Iterator[tuple[int, bytes]]) -> bytes:
    """An array, which must be read at once."""
    size = len(parts[0])
    for _, line in lines:
        size += len(line) + 1
        parts.append(line)
        if size > _LONGEST_LINE:
            raise UsageError(
                f"{path}: an array of JSON is read whole, and this one is longer than "
                f"{_LONGEST_LINE:,} bytes: write one object a line (.jsonl)"
            )
    return b"\n".join(parts)


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
            heading = [plain_cell(name) for name in next(rows, [])]
            for name in heading:
                if heading.count(name) > 1:
                    raise UsageError(f"{path} has two columns {name!r}")
            for cells in rows:
                if cells and len(cells) != len(heading):
                    what = f"{len(cells)} cells under {len(heading)} headings"
                    raise UsageError(f"{path}:{rows.line_num}: {what}")
                if cells:
                    yield dict(zip(heading, map(plain_cell, cells), strict=True))
    except csv.Error as error:
        raise UsageError(f"{path}:{rows.line_num}: no CSV: {error}") from None
    except UnicodeDecodeError as error:
        raise UsageError(f"{path} is not UTF-8 (byte {error.start}); save it as UTF-8") from None
    except OSError as error:
        raise UsageError(f"{path} cannot be read: {error.strerror}") from None


def _parquet(path: Path) -> Iterator[Row]:
    """Rows; of what is no plain value, only that it is there."""
    from habitus.corpora import columns_of, read_posts  # noqa: PLC0415

    there = columns_of(path)
    names = [name for name, _ in there]
    for name in names:
        if names.count(name) > 1:
            raise UsageError(f"{path} has two columns {name!r}")
    plain = [name for name, container in there if container is None]
    rest: Row = {name: container() for name, container in there if container}
    if rest and not plain:
        yield rest  # enough to say that nothing in it is a text
        return
    for batch in read_posts(path, plain):
        for row in zip(*batch.values(), strict=True):
            found = {**rest, **dict(zip(plain, row, strict=True))}
            yield {name: found[name] for name in names} if rest else found
