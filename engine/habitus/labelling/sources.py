"""Where items come from: a file of questions and answers, or a run.

source = open_source(Path("answers.jsonl"), Columns(response="output"), needs={"response"})
for item in source.read(): ...
"""

from __future__ import annotations

from collections.abc import Collection
from pathlib import Path

from habitus.errors import UsageError
from habitus.labelling.runs import run_source
from habitus.labelling.source import Columns, Source
from habitus.labelling.tables import table_source
from habitus.store import is_run


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
    if not path.exists():
        raise UsageError(f"{path}: no such file or run")
    if not path.is_dir():
        return table_source(path, columns or Columns(), needs, sheet)
    if not is_run(path):
        raise UsageError(f"{path} is a folder and no run; name a file or a run directory")
    if columns not in {None, Columns()} or sheet:
        raise UsageError("columns and sheets are named for files; a run has its own")
    return run_source(path)
