"""Files made to exhaust a machine: one message, exit code 2, and memory and work that have bounds."""

from __future__ import annotations

import bz2
import gzip
import json
import lzma
import struct
import tracemalloc
import zipfile
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import zstandard

from damage import command
from habitus.corpora import LineReader, read_posts
from habitus.errors import UsageError
from habitus.expansion import ALWAYS, SWITCH, Expansion
from habitus.labelling import open_source
from habitus.workbooks import read_rows
from test_workbooks import HEAD, MAIN, MINIMAL, of_parts, sheet_of

MIB = 2**20
REFUSED = f"expands to more than {ALWAYS:,} bytes"


def blocks() -> bytes:
    """A zstd frame of 8 KiB, of which each four bytes are 128 KiB."""
    header = struct.pack("<I", 128 * 1024 << 3 | 1 << 1)[:3]
    return b"\x28\xb5\x2f\xfd\x00\x38" + (header + b"x") * 2100


def repeated(pack: Callable[[bytes], bytes], content: bytes = b"x") -> bytes:
    """More than any file may expand to, in frames that are alike."""
    return pack(content * (16 * MIB)) * 17


STREAMS: dict[str, Callable[[], bytes]] = {
    "a.zst": blocks,
    "b.zst": lambda: repeated(zstandard.compress),
    "a.gz": lambda: repeated(gzip.compress),
    "a.xz": lambda: repeated(lzma.compress),
    "a.bz2": lambda: repeated(bz2.compress),
    "lines.zst": lambda: zstandard.compress(b"\n" * (5 * MIB)),
}


def peak(work: Callable[[], object]) -> int:
    """The most bytes that some work held at once."""
    tracemalloc.start()
    try:
        work()
    finally:
        _, most = tracemalloc.get_traced_memory()
        tracemalloc.stop()
    return most


def refused(work: Callable[[], Iterable[object]], what: str) -> int:
    """The most bytes that were held until some reading was refused."""

    def read() -> None:
        with pytest.raises(UsageError, match=what):
            for _ in work():
                pass

    return peak(read)


class TestLines:
    @pytest.mark.parametrize("name", STREAMS)
    def test_a_stream_that_expands_without_end_is_refused_in_bounded_memory(
        self, tmp_path: Path, name: str
    ) -> None:
        path = tmp_path / name
        path.write_bytes(STREAMS[name]())
        assert path.stat().st_size < 300_000
        assert refused(lambda: LineReader(path), REFUSED) < 100 * MIB

    def test_what_comes_out_at_once_is_bounded(self, tmp_path: Path) -> None:
        """A stream of bzip2 and a line before: eight kilobytes would become gigabytes."""
        path = tmp_path / "a.bz2"
        path.write_bytes(bz2.compress(b"x" * (200 * MIB)))
        assert path.stat().st_size < 1000
        assert peak(lambda: list(LineReader(path))) < 30 * MIB

    @pytest.mark.parametrize("name", ["a.jsonl.zst", "a.jsonl.gz"])
    def test_lines_that_are_all_alike_are_read(self, tmp_path: Path, name: str) -> None:
        line = json.dumps({"response": "the same words", "note": "n" * 500}).encode() + b"\n"
        pack = zstandard.compress if name.endswith("zst") else gzip.compress
        path = tmp_path / name
        path.write_bytes(pack(line * 20_000))
        assert 20_000 * len(line) > 200 * path.stat().st_size
        assert open_source(path).size == 20_000

    def test_the_commands_end_with_one_message(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.chdir(tmp_path)
        (tmp_path / "a.jsonl.zst").write_bytes(STREAMS["lines.zst"]())
        for words in (
            ["corpus", "build", "a.jsonl.zst", "-o", "posts.parquet"],
            ["judge", "a.jsonl.zst", "--model", "{backend: scripted}"],
        ):
            code, _, said = command(*words)
            assert code == 2
            assert REFUSED in said
            assert SWITCH in said
        assert [path.name for path in tmp_path.iterdir()] == ["a.jsonl.zst"]

    def test_the_variable_that_the_message_names_lets_it_pass(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        path = tmp_path / "a.jsonl.zst"
        path.write_bytes(STREAMS["lines.zst"]())
        monkeypatch.setenv(SWITCH, "10000000")
        assert sum(1 for _ in LineReader(path)) == 5 * MIB
        for wrong in ("0", "-1", "many", "1e3", "9" * 30):
            monkeypatch.setenv(SWITCH, wrong)
            with pytest.raises(UsageError, match=f"{SWITCH} is .*a whole number above zero"):
                Expansion(path)

    def test_an_array_of_json_is_read_whole_and_no_longer_than_that(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setenv(SWITCH, "100000")
        path = tmp_path / "a.json.zst"
        path.write_bytes(zstandard.compress(b"[\n" + b" " * 1023 + (b"\n" + b" " * 1023) * 2**18))
        with pytest.raises(
            UsageError, match="an array of JSON is read whole, and this one is longer"
        ):
            open_source(path)


LAUGHS = (
    '<!DOCTYPE x [<!ENTITY a "ha">' + "".join(
        f'<!ENTITY {new} "{f"&{old};" * 10}">' for old, new in zip("abcdefgh", "bcdefghi", strict=True)
    ) + "]>"
)  # fmt: skip
OUTSIDE = '<!DOCTYPE x [<!ENTITY a SYSTEM "file:///etc/hostname">]>'
GIVEN = f'<!DOCTYPE x [<!ATTLIST row a CDATA "{"x" * 1000}">]>'
SHEET = "xl/worksheets/sheet1.xml"
SHARED = "xl/sharedStrings.xml"


def in_sheet(content: str, head: str = "") -> dict[str, str | bytes]:
    return {SHEET: f'{head}<worksheet xmlns="{MAIN}"><sheetData>{content}</sheetData></worksheet>'}


def in_shared(content: str, head: str = "") -> dict[str, str | bytes]:
    return {SHARED: f'{head}<sst xmlns="{MAIN}">{content}</sst>'}


def text_of(content: str) -> str:
    return f'<row r="1"><c r="A1" t="inlineStr"><is><t>{content}</t></is></c></row>'


def many_uses() -> dict[str, str | bytes]:
    """One long text that many cells share."""
    cells = "".join(f'<row r="{n}"><c r="A{n}" t="s"><v>0</v></c></row>' for n in range(2, 600))
    return sheet_of(HEAD + cells) | in_shared(f"<si><t>{'x' * 500_000}</t></si>")


PLACE = "holds more than 4,194,304 bytes at one place"
BOOKS: dict[str, tuple[Callable[[], dict[str, str | bytes]], str]] = {
    "a sheet": (lambda: in_sheet(("<row>" + " " * MIB + "</row>") * 260), REFUSED),
    "blanks in a sheet": (lambda: in_sheet(" " * (260 * MIB)), PLACE),
    "blanks of another part": (lambda: in_shared(" " * (260 * MIB)), PLACE),
    "a list of sheets": (lambda: {"xl/workbook.xml": " " * (17 * MIB)}, PLACE),
    "a shared text": (lambda: in_shared(f"<si><t>{'x' * (8 * MIB)}</t></si>"), PLACE),
    "a text": (lambda: in_sheet(text_of("x" * (8 * MIB))), PLACE),
    "a text that many cells share": (many_uses, REFUSED),
    "a tag": (lambda: in_sheet(f'<row r="{"1" * (5 * MIB)}"/>'), PLACE),
    "a comment": (lambda: in_sheet(f"<!--{'-x' * (3 * MIB)}-->"), PLACE),
    "elements in each other": (lambda: in_sheet("<a>" * MIB), "more than 100 elements stand in each"),
    "elements without rows": (lambda: in_sheet(f'<a b="{"x" * 50}"/>' * 100_000), PLACE),
    "names": (lambda: in_sheet("".join(f"<a{n}/>" for n in range(40_000))), "more than 16,384 names"),
    "names of namespaces": (
        lambda: in_sheet("".join(f'<row xmlns:a{n}="u"/>' for n in range(40_000))), "more than 16,384 names",
    ),
    "entities in a sheet": (lambda: in_sheet(text_of("&i;"), LAUGHS), "declares a document type"),
    "entities in shared texts": (lambda: in_shared("<si><t>&i;</t></si>", LAUGHS), "declares a document"),
    "a file that is fetched": (lambda: in_sheet(text_of("&a;"), OUTSIDE), "declares a document type"),
    "attributes that all elements get": (lambda: in_sheet("<row/>", GIVEN), "declares a document type"),
    "another encoding": (
        lambda: {SHEET: f"{OUTSIDE}<worksheet/>".encode("utf-16")}, "declares a document type",
    ),
    "a row that is far off": (lambda: in_sheet('<row r="999999999"/>'), "row 999999999 follows on row 0"),
    "rows without end": (lambda: in_sheet('<row r="1048576"/><row/>'), "row 1048577 follows on row 1048576"),
    "parts": (lambda: {f"p{n}": "" for n in range(10_001)}, "has more than 10,000 parts"),
}  # fmt: skip


class TestWorkbooks:
    @pytest.mark.parametrize(("make", "what"), BOOKS.values(), ids=BOOKS)
    def test_a_workbook_that_expands_without_end_is_refused_in_bounded_memory(
        self, tmp_path: Path, make: Callable[[], dict[str, str | bytes]], what: str
    ) -> None:
        path = of_parts(tmp_path, make())
        assert refused(lambda: read_rows(path), what) < 60 * MIB

    def test_texts_that_cells_share_have_a_bound_in_memory(self, tmp_path: Path) -> None:
        """One wide character makes every other of its text as wide."""
        texts = f"<si><t>{'x' * MIB}\U0001f35a</t></si>" * 65
        path = of_parts(tmp_path, in_shared(texts))
        assert refused(lambda: read_rows(path), "take more than 268,435,456 bytes") < 320 * MIB

    def test_two_parts_of_one_name_are_refused(self, tmp_path: Path) -> None:
        path = of_parts(tmp_path, {"xl/workbook.xmm": b""})
        path.write_bytes(path.read_bytes().replace(b"xl/workbook.xmm", b"xl/workbook.xml"))
        with pytest.raises(UsageError, match="two parts have one name"):
            list(read_rows(path))

    def test_the_command_ends_with_one_message(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.chdir(tmp_path)
        of_parts(tmp_path, many_uses())
        code, _, said = command("judge", "a.xlsx", "--model", "{backend: scripted}")
        assert (code, REFUSED in said, SWITCH in said) == (2, True, True)
        assert [path.name for path in tmp_path.iterdir()] == ["a.xlsx"]

    @pytest.mark.parametrize("size", [5, 2**31 - 5], ids=["too little", "too much"])
    def test_a_list_of_parts_that_lies_about_sizes(self, tmp_path: Path, size: int) -> None:
        path = of_parts(tmp_path, {})
        with zipfile.ZipFile(path) as archive:
            true = archive.getinfo(SHEET).file_size
        data = path.read_bytes()
        start = data.rindex(b"PK\1\2", 0, data.rindex(SHEET.encode()))
        data = data[: start + 24] + struct.pack("<I", size) + data[start + 28 :]
        assert size != true
        path.write_bytes(data)
        if size < true:
            with pytest.raises(UsageError, match=f"is damaged: BadZipFile: .*{SHEET}"):
                list(read_rows(path))
        else:  # what really comes out counts
            assert [row["response"] for row in read_rows(path)] == ["So."]

    def test_parts_that_lie_over_each_other_gain_nothing(self, tmp_path: Path) -> None:
        """Thousands of entries for the same bytes: the few that are read count with what they give."""
        path = of_parts(tmp_path, {})
        data = path.read_bytes()
        end = data.rindex(b"PK\5\6")
        start = data.index(b"PK\1\2")
        first = data[start : data.index(b"PK\1\2", start + 4)]
        name = first[46 : 46 + struct.unpack_from("<H", first, 28)[0]]
        more = b"".join(first.replace(name, f"{n:0{len(name)}}".encode()) for n in range(3000))
        total = 3000 + struct.unpack_from("<H", data, end + 10)[0]
        tail = struct.pack(
            "<4s4H2IH", b"PK\5\6", 0, 0, total, total, end + len(more) - start, start, 0
        )
        path.write_bytes(data[:end] + more + tail)
        assert peak(lambda: list(read_rows(path))) < 20 * MIB

    @pytest.mark.parametrize(
        "packing", [zipfile.ZIP_BZIP2, zipfile.ZIP_LZMA], ids=["bzip2", "lzma"]
    )
    def test_packings_that_have_no_bound_are_refused(self, tmp_path: Path, packing: int) -> None:
        path = tmp_path / "a.xlsx"
        with zipfile.ZipFile(path, "w", packing) as archive:
            for name, content in MINIMAL.items():
                archive.writestr(name, content)
        with pytest.raises(UsageError, match="packed in a way that workbooks are not"):
            list(read_rows(path))


def written(path: Path, table: pa.Table, **options: object) -> Path:
    pq.write_table(table, path, compression="zstd", **options)
    return path


def dictionary(folder: Path) -> Path:
    """A text of a megabyte that a thousand rows name."""
    texts = pa.DictionaryArray.from_arrays(pa.array([0] * 1000, pa.int32()), ["x" * 900_000])
    return written(folder / "a.parquet", pa.table({"response": texts}), store_schema=False)


def plain(folder: Path) -> Path:
    table = pa.table({"response": ["x" * MIB] * 260})
    return written(folder / "a.parquet", table, use_dictionary=False)


def nulls(folder: Path) -> Path:
    table = pa.table({"response": pa.nulls(2**22 + 1), "x": pa.nulls(2**22 + 1)})
    return written(folder / "a.parquet", table)


#: What makes a file, and the MiB that Arrow may hold until it is refused.
PARQUET = {
    "a text that many rows name": (dictionary, 450),
    "one page": (plain, 4),
    "rows of nothing": (nulls, 4),
}


@pytest.fixture
def pool() -> Iterator[pa.MemoryPool]:
    """A pool of Arrow that counts anew."""
    usual = pa.default_memory_pool()
    counting = pa.proxy_memory_pool(usual)
    pa.set_memory_pool(counting)
    yield counting
    pa.set_memory_pool(usual)


class TestParquet:
    @pytest.mark.parametrize(("make", "most"), PARQUET.values(), ids=PARQUET)
    def test_a_file_that_expands_without_end_is_refused_in_bounded_memory(
        self, tmp_path: Path, make: Callable[[Path], Path], most: int, pool: pa.MemoryPool
    ) -> None:
        path = make(tmp_path)
        assert path.stat().st_size < 300_000
        read = pa.proxy_memory_pool(pool)
        pa.set_memory_pool(read)
        held = refused(lambda: read_posts(path, ["response"]), REFUSED)
        assert held < 300 * MIB
        assert read.max_memory() < most * MIB
        code, _, said = command("judge", str(path), "--model", "{backend: scripted}")
        assert (code, REFUSED in said) == (2, True)

    def test_a_batch_has_as_many_rows_as_its_longest_text_allows(self, tmp_path: Path) -> None:
        path = tmp_path / "a.parquet"
        texts = [f"{n}" * 1000 for n in range(100)] * 100
        written(path, pa.table({"response": texts, "few": ["a", "b"] * 5000}))
        few = [len(batch["few"]) for batch in read_posts(path, ["few"])]
        assert few == [4096, 4096, 1808]
        batches = read_posts(dictionary(tmp_path), ["response"])
        assert len(next(batches)["response"]) == 2**27 // 900_004

    def test_values_that_hold_others_are_never_unpacked(self, tmp_path: Path) -> None:
        path = tmp_path / "a.parquet"
        rows = pa.table({"response": ["a", "b"], "list": [[0] * 10_000_000, []], "b": [b"x", b"y"]})
        written(path, rows)
        source = open_source(path)
        assert peak(lambda: list(source.read())) < 5 * MIB
        assert [item.fields for item in source.read()] == [{}, {}]
