"""Results as files: a CSV file for each table, and everything as JSON.

    write_framings(framings, folder)

Numbers are written in full, undefined as empty cells; no text of a cell runs as a formula in a
spreadsheet. The choices behind the numbers stand in ``notes.txt`` and in ``results.json``.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from habitus.content.writing import write_text
from habitus.framing.movements import movements
from habitus.framing.results import TABLES, Framing, flat
from habitus.tables import Value, csv_text


def framings_json(
    framings: Sequence[Framing], beside: Mapping[str, Sequence[Mapping[str, Any]]] | None = None
) -> dict[str, Any]:
    """All results as plain data; undefined is None.

    ``beside`` holds tables of the whole run by name, a mapping a row: what became of all labels.
    """
    return {
        "synthetic": any(f.synthetic for f in framings),
        "results": [_json(f) for f in framings],
        **{name: [dict(row) for row in rows] for name, rows in (beside or {}).items()},
    }


def write_framings(
    framings: Sequence[Framing],
    folder: Path,
    beside: Mapping[str, Sequence[Mapping[str, Any]]] | None = None,
) -> list[Path]:
    """Write ``results.json``, for each result its tables in a folder of its id, and what is beside.

    Raises:
        UsageError: a file cannot be written.
    """
    found = framings_json(framings, beside)
    text = json.dumps(found, ensure_ascii=False, allow_nan=False, indent=1)
    files = {folder / "results.json": text + "\n"}
    files |= {folder / f"{name}.csv": _csv(rows) for name, rows in (beside or {}).items() if rows}
    for framing in framings:
        for name, content in _files(framing).items():
            files[folder / framing.id / name] = content
    for path, content in files.items():
        write_text(path, content, overwrite=True)
    return list(files)


def _json(framing: Framing) -> dict[str, Any]:
    return {**framing.as_json(), "movements": [asdict(found) for found in movements(framing)]}


def _files(framing: Framing) -> dict[str, str]:
    tables = {name: [flat(record) for record in getattr(framing, name)] for name in TABLES}
    tables["movements"] = [asdict(found) for found in movements(framing)]
    found = {f"{name}.csv": _csv(rows) for name, rows in tables.items() if rows}
    return {**found, "notes.txt": "".join(f"{note}\n" for note in framing.notes)}


def _csv(rows: Sequence[Mapping[str, Any]]) -> str:
    columns = list(rows[0])
    return csv_text(columns, [[_cell(row[column]) for column in columns] for row in rows])


def _cell(value: Any) -> Value:
    found: Value = ", ".join(value) if isinstance(value, list) else value
    return found
