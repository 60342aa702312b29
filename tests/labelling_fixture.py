"""Files of answers in every form, jobs that label them, and models that keep what they were asked."""

from __future__ import annotations

import bz2
import csv
import gzip
import io
import json
import lzma
import re
import tempfile
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import openpyxl
import zstandard

from habitus.cells import safe_cell
from habitus.judges import choose
from habitus.labelling import LabellingJob, Manner, Source, make_tasks, open_source
from habitus.models import ModelEntry
from habitus.records import JudgedItem, Label, StageRecord
from habitus.running import JobRequest, RunSummary, run_job
from habitus.store import RunDir
from habitus.workbooks import WorkbookWriter

Row = Mapping[str, Any]
MARK = b"\xef\xbb\xbf"
MADE_UP = ModelEntry(backend="scripted", options={"script": "helpers"}, concurrency=4)
#: Named as real by its entry; an opener of one's own puts a script behind it.
REAL = ModelEntry(backend="local", concurrency=4)


def jsonl(rows: Iterable[Row]) -> bytes:
    """JSON lines."""
    return b"".join(json.dumps(row).encode() + b"\n" for row in rows)


def separated(rows: Sequence[Row], delimiter: str = ",", end: str = "\n") -> bytes:
    """CSV or TSV as they are exported; None is an empty cell."""
    out = io.StringIO(newline="")
    names = list(dict.fromkeys(name for row in rows for name in row))
    writer = csv.DictWriter(
        out, names, delimiter=delimiter, lineterminator=end, quoting=csv.QUOTE_ALL
    )
    writer.writeheader()
    writer.writerows(
        {name: safe_cell(cell) if isinstance(cell, str) else cell for name, cell in row.items()}
        for row in rows
    )
    return out.getvalue().encode()


def workbook(rows: Sequence[Row]) -> bytes:
    """A workbook as it is exported; None is an empty cell."""
    names = list(dict.fromkeys(name for row in rows for name in row))
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "a.xlsx"
        with WorkbookWriter(path) as book:
            book.write([safe_cell(name) for name in names])
            for row in rows:
                cells = map(row.get, names)
                book.write([safe_cell(c) if isinstance(c, str) else c for c in cells])
        return path.read_bytes()


def by_hand(rows: Sequence[Row]) -> bytes:
    """A workbook as people and other programs make it, its texts shared between cells."""
    names = list(dict.fromkeys(name for row in rows for name in row))
    book = openpyxl.Workbook()
    sheet = book.worksheets[0]
    for at, row in enumerate([dict(zip(names, names, strict=True)), *rows], start=1):
        for column, name in enumerate(names, start=1):
            cell = sheet.cell(at, column)
            value = row.get(name)
            cell.value = _in_excel(value) if isinstance(value, str) else value
            if isinstance(value, str):
                cell.data_type = "s"  # a text, whatever it begins with
    out = io.BytesIO()
    book.save(out)
    return out.getvalue()


def _in_excel(text: str) -> str:
    """What XML cannot hold, as Excel writes it."""
    text = re.sub("_(?=x[0-9a-fA-F]{4}_)", "_x005F_", safe_cell(text))
    return re.sub("[\x00-\x08\x0b-\x1f\ufffe\uffff]", lambda c: f"_x{ord(c[0]):04X}_", text)


def parquet(rows: Sequence[Row], **types: Any) -> bytes:
    """Parquet; ``types`` gives a column a type of Arrow."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    names = list(dict.fromkeys(name for row in rows for name in row))
    columns = {name: pa.array([row.get(name) for row in rows], types.get(name)) for name in names}
    out = io.BytesIO()
    pq.write_table(pa.table(columns), out)
    return out.getvalue()


#: What makes a file of rows, by the name of the file.
FORMS: Mapping[str, Callable[[Sequence[Row]], bytes]] = {
    "a.jsonl": jsonl,
    "a.NDJSON": lambda rows: jsonl(rows).replace(b"\n", b"\r\n").rstrip(b"\r\n"),
    "mark.jsonl": lambda rows: MARK + b"\n".join([*jsonl(rows).splitlines(), b"", b" "]),
    "array.json": lambda rows: json.dumps(rows).encode(),
    "pretty.json": lambda rows: MARK + json.dumps(rows, indent=1, ensure_ascii=False).encode(),
    "a.jsonl.gz": lambda rows: gzip.compress(jsonl(rows)),
    "a.jsonl.zst": lambda rows: zstandard.compress(jsonl(rows[:1])) + zstandard.compress(
        jsonl(rows[1:])
    ),
    "a.json.xz": lambda rows: lzma.compress(json.dumps(rows).encode()),
    "a.ndjson.bz2": lambda rows: bz2.compress(jsonl(rows)),
    "a.csv": separated,
    "windows.csv": lambda rows: MARK + separated(rows, end="\r\n"),
    "a.TSV": lambda rows: separated(rows, "\t"),
    "a.xlsx": workbook,
    "hand.XLSX": by_hand,
    "a.parquet": parquet,
}  # fmt: skip


def written(folder: Path, content: bytes | Sequence[Row], name: str = "answers.jsonl") -> Path:
    """A file with some content, or with rows in the form that its name says."""
    path = folder / name
    if not isinstance(content, bytes):
        suffix = f"a{path.suffix}" if path.suffix != ".json" else "array.json"
        content = FORMS[suffix](content)
    path.write_bytes(content)
    return path


def items_of(source: Source) -> list[JudgedItem]:
    """The items of a source."""
    return list(source.read())


def answers(n: int, **more: Any) -> list[dict[str, Any]]:
    """Rows with a question, a response, a target and an id."""
    return [
        {
            "id": f"{i:03}",
            "model": "llama-9",
            "question": f"Why {i}?",
            "response": f"So {i}.",
            **more,
        }
        for i in range(n)
    ]


def job_of(
    path: Path | Source,
    judges: Sequence[str] = ("positioning",),
    models: Mapping[str, ModelEntry] | None = None,
    own: Mapping[str, str] | None = None,
    manner: Manner | None = None,
    **more: Any,
) -> LabellingJob:
    """A job on a file or a run; the first of the models asks all judges without one of their own."""
    models = models or {"small": REAL}
    tasks = make_tasks(choose(judges), own or {}, next(iter(models)), manner or Manner())
    needs = set().union(*(task.needs() for task in tasks))
    source = open_source(path, needs=needs) if isinstance(path, Path) else path
    return LabellingJob(source, tasks, models, **more)


def labelled(out: Path, job: LabellingJob, **request: Any) -> RunSummary:
    """Run a job into a directory."""
    return run_job(job, JobRequest(out=out, **request))


def kept(run: Path) -> dict[str, bytes]:
    """The bytes of the records of a run and of what it says of itself."""
    return {
        path.name: path.read_bytes()
        for path in [*sorted((run / "records").glob("*.jsonl")), run / "labelling.json"]
    }


def records(run: Path, table: str, kind: type[StageRecord]) -> list[Any]:
    """The records of a table."""
    with RunDir.open(run, write=False) as opened:
        return list(opened.records.iterate(table, kind))


def labels(run: Path) -> list[Label]:
    """The labels of a run."""
    return records(run, "labels", Label)
