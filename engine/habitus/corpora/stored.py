"""Posts as a Parquet file: written row group by row group, read batch by batch.

    with PostWriter(path) as writer:      # the file appears when the block ends well, or not at all
        writer.write(post)
    for batch in read_posts(path, ["id", "country"]):
        batch["country"]                  # a list

Further columns, such as ``category``, may be added to the file by others.
"""

from __future__ import annotations

import contextlib
import datetime as dt
import os
from array import array
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import accumulate
from operator import attrgetter
from pathlib import Path
from types import TracebackType
from typing import Any

from habitus.corpora.pages import rows_at_once
from habitus.errors import UsageError
from habitus.expansion import ROW, Expansion

COLUMNS = ("id", "title", "body", "subreddit", "country", "created", "num_comments")
_values = attrgetter(*COLUMNS)
_ROWS = 4096
_CHARACTERS = 4 * 2**20  # of bodies in a row group


@dataclass(frozen=True, slots=True)
class Post:
    """One post of a corpus. ``created`` is UTC; None where the dump gives no time."""

    id: str
    title: str
    body: str
    subreddit: str
    country: str
    created: dt.datetime | None
    num_comments: int


class PostWriter:
    """Writes posts beside the file they will be, and puts them in its place at the end."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._aside = path.with_name(f".{path.name}.{os.getpid()}.part")
        self._rows: list[Post] = []
        self._characters = 0

    def __enter__(self) -> PostWriter:
        arrow, parquet = _arrow()
        self._arrow, self._schema = arrow, _schema(arrow)
        try:
            self._file = parquet.ParquetWriter(self._aside, self._schema, compression="zstd")
        except OSError as error:
            raise UsageError(f"{self.path} cannot be written: {_reason(error)}") from None
        return self

    def write(self, post: Post) -> None:
        """Add a post; it reaches the disk with its row group."""
        self._rows.append(post)
        self._characters += len(post.body)
        if len(self._rows) >= _ROWS or self._characters >= _CHARACTERS:
            self._flush()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, _: TracebackType | None
    ) -> None:
        try:
            if kind is None:
                self._flush()
            self._file.close()
            if kind is None:
                self._aside.replace(self.path)
        finally:
            with contextlib.suppress(OSError):
                self._aside.unlink(missing_ok=True)

    def _flush(self) -> None:
        if not self._rows:
            return
        columns = zip(self._schema.types, zip(*map(_values, self._rows), strict=True), strict=True)
        arrays = [_column(self._arrow, kind, values) for kind, values in columns]
        batch = self._arrow.RecordBatch.from_arrays(arrays, schema=self._schema)
        self._file.write_batch(batch)
        self._rows.clear()
        self._characters = 0


def question_of(title: str, body: str) -> str:
    """A post as one text: its title, an empty line, its body."""
    return f"{title}\n\n{body}"


def title_and_body(question: str) -> tuple[str, str]:
    """The parts of a post's text again; a title is one line."""
    title, _, body = question.partition("\n\n")
    return title, body


def counts_path(path: Path) -> Path:
    """The file of counts beside a file of posts."""
    return path.with_suffix(".counts.json")


def read_posts(path: Path, columns: Sequence[str] = COLUMNS) -> Iterator[dict[str, list[Any]]]:
    """Columns of a file of posts, batch by batch.

    Raises:
        UsageError: no such file, not Parquet or damaged, a column is missing, or it expands to more
            than a file may.
    """
    with _opened(path) as file:
        there = file.schema_arrow.names
        missing = [name for name in columns if name not in there]
        if missing:
            raise UsageError(f"{path} has no column {missing[0]!r}; it has {', '.join(there)}")
        arrow, _ = _arrow()
        try:
            for batch in _batches(path, file, columns):
                yield batch.to_pydict()
        except (OSError, arrow.ArrowException, UnicodeDecodeError) as error:
            raise _unreadable(path, error) from None


def column_names(path: Path) -> list[str]:
    """The columns of a file of posts.

    Raises:
        UsageError: no such file, or not Parquet.
    """
    return [name for name, _ in columns_of(path)]


def columns_of(path: Path) -> list[tuple[str, type | None]]:
    """The columns of any Parquet file: each name, and None if its values are plain.

    Those of lists, structures and bytes come with what they are: one value may be of any size.

    Raises:
        UsageError: no such file, or not Parquet.
    """
    arrow, _ = _arrow()
    with _opened(path) as file:
        return [(field.name, _container(arrow.types, field.type)) for field in file.schema_arrow]


def add_column(path: Path, out: Path, name: str, value: Callable[[str], str | None]) -> None:
    """Write a file of posts with one column more, or with another one in its place.

    Args:
        path: a Parquet file with a column ``id``.
        out: where it is written; appears when it is whole, and may be ``path`` itself.
        name: the column; texts, null where there is none.
        value: the text for the id of a post.

    Raises:
        UsageError: not such a file, or it cannot be written.
    """
    arrow, parquet = _arrow()
    aside = out.with_name(f".{out.name}.{os.getpid()}.part")
    with _opened(path) as file:
        kept = [field for field in file.schema_arrow if field.name != name]
        schema = arrow.schema([*kept, arrow.field(name, arrow.string())])
        try:
            with parquet.ParquetWriter(aside, schema, compression="zstd") as writer:
                for batch in _batches(path, file):
                    values = [value(row) for row in batch.column("id").to_pylist()]
                    columns = [batch.column(field.name) for field in kept]
                    columns.append(_texts(arrow, values))
                    writer.write_batch(arrow.RecordBatch.from_arrays(columns, schema=schema))
            aside.replace(out)
        except OSError as error:
            raise UsageError(f"{out} cannot be written: {_reason(error)}") from None
        finally:
            with contextlib.suppress(OSError):
                aside.unlink(missing_ok=True)


def check_output(path: Path) -> None:
    """Refuse a file that cannot be written, before there is anything to write.

    Raises:
        UsageError: a folder, or a file in a folder that is not there.
    """
    if not path.parent.is_dir() or path.is_dir():
        raise UsageError(f"{path} cannot be written; name a file in a folder that is there")


def _batches(path: Path, file: Any, columns: Sequence[str] | None = None) -> Iterator[Any]:
    """Batches of rows, each of a bounded size; all together no more than the file may hold."""
    expansion = Expansion(path)
    wanted = file.schema_arrow.names if columns is None else columns
    rows = rows_at_once(path, file, wanted, expansion)
    for batch in file.iter_batches(batch_size=rows, columns=list(wanted)):
        expansion.add(batch.nbytes + ROW * batch.num_rows)
        yield batch


def _container(types: Any, kind: Any) -> type | None:
    """What values of a type hold others in; None for plain ones."""
    if types.is_dictionary(kind):
        kind = kind.value_type
    texts = types.is_string(kind) or types.is_large_string(kind)
    if texts or types.is_primitive(kind) or types.is_decimal(kind) or types.is_null(kind):
        return None
    if types.is_binary(kind) or types.is_large_binary(kind) or types.is_fixed_size_binary(kind):
        return bytes
    return dict if types.is_struct(kind) else list


def _opened(path: Path) -> Any:
    arrow, parquet = _arrow()
    try:
        file = parquet.ParquetFile(path)
        _ = file.schema_arrow.names  # names that are no text are found when they are asked for
    except (OSError, arrow.ArrowException, UnicodeDecodeError) as error:
        raise _unreadable(path, error) from None
    return file


def _unreadable(path: Path, error: Exception) -> UsageError:
    return UsageError(f"{path} cannot be read as Parquet: {_reason(error)}")


def _schema(arrow: Any) -> Any:
    types = dict.fromkeys(COLUMNS, arrow.string())
    types |= {"created": arrow.timestamp("ms", tz="UTC"), "num_comments": arrow.int64()}
    return arrow.schema([arrow.field(name, kind) for name, kind in types.items()])


def _column(arrow: Any, kind: Any, values: Sequence[Any]) -> Any:
    """Values as a column of Arrow, put together from its buffers.

    ``pyarrow.array`` would do, but imports pandas where that is installed: 60 MB and a second.
    """
    if kind == arrow.string():
        return _texts(arrow, values)
    if kind == arrow.int64():
        return arrow.Array.from_buffers(
            kind, len(values), [None, arrow.py_buffer(array("q", values))]
        )
    numbers = array("q", (round(value.timestamp() * 1000) if value else 0 for value in values))
    buffers = [_known(arrow, values), arrow.py_buffer(numbers)]
    return arrow.Array.from_buffers(kind, len(values), buffers)


def _texts(arrow: Any, values: Sequence[str | None]) -> Any:
    """Texts as a column; None is null."""
    encoded = [(value or "").encode() for value in values]
    ends = array("i", accumulate(map(len, encoded), initial=0))
    buffers = [_known(arrow, values), arrow.py_buffer(ends), arrow.py_buffer(b"".join(encoded))]
    return arrow.Array.from_buffers(arrow.string(), len(values), buffers)


def _known(arrow: Any, values: Sequence[Any]) -> Any:
    """Which values are there: one bit each, the first one lowest; None where all are."""
    if None not in values:
        return None
    known = bytearray(-(-len(values) // 8))
    for i, value in enumerate(values):
        known[i // 8] |= (value is not None) << i % 8
    return arrow.py_buffer(bytes(known))


def _arrow() -> tuple[Any, Any]:
    try:
        import pyarrow as pa  # noqa: PLC0415  (an extra, and heavy)
        import pyarrow.parquet as pq  # noqa: PLC0415
    except ImportError:
        raise UsageError('corpora need pyarrow: pip install "habitus[corpora]"') from None
    return pa, pq


def _reason(error: Exception) -> str:
    if isinstance(error, OSError) and error.strerror:
        return error.strerror
    return str(error).splitlines()[0] if str(error) else type(error).__name__
