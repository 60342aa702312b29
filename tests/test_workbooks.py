"""Workbooks: what people and their programs put into cells is read as it is, or told with its cell."""

from __future__ import annotations

import datetime as dt
import gc
import io
import re
import sys
import tempfile
import tracemalloc
import zipfile
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import openpyxl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from openpyxl.cell.rich_text import CellRichText, TextBlock
from openpyxl.cell.text import InlineFont
from openpyxl.comments import Comment

from damage import command
from habitus.cells import safe_cell
from habitus.errors import UsageError
from habitus.labelling import open_source
from habitus.workbooks import CELL_LENGTH, WorkbookWriter, read_rows, sheet_names
from labelling_fixture import items_of

Change = Callable[[Any], object]


def made(folder: Path, rows: Sequence[Sequence[Any]], change: Change | None = None) -> Path:
    """A workbook by another writer than ours, with one sheet and then some change."""
    book = openpyxl.Workbook()
    for row in rows:
        book.worksheets[0].append(list(row))
    if change:
        change(book)
    path = folder / "a.xlsx"
    book.save(path)
    return path


def of_parts(folder: Path, parts: dict[str, str | bytes], name: str = "a.xlsx") -> Path:
    """A workbook of the parts that are given, and as little else as there can be."""
    path = folder / name
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for part, content in (MINIMAL | parts).items():
            archive.writestr(part, content)
    return path


def sheet_of(rows: str, after: str = "") -> dict[str, str | bytes]:
    """The part of a sheet with some rows of XML."""
    text = f"<sheetData>{rows}</sheetData>{after}"
    return {"xl/worksheets/sheet1.xml": f'<worksheet xmlns="{MAIN}">{text}</worksheet>'}


MAIN = "http://schemas.openxmlformats.org/spreadsheetml/2006/main"
OFFICE = "http://schemas.openxmlformats.org/officeDocument/2006/relationships"
TYPES = "http://schemas.openxmlformats.org/package/2006/content-types"
KIND = "application/vnd.openxmlformats-officedocument.spreadsheetml"
LINKS = "http://schemas.openxmlformats.org/package/2006/relationships"
HEAD = '<row r="1"><c r="A1" t="inlineStr"><is><t>response</t></is></c></row>'
MINIMAL: dict[str, str | bytes] = {
    "[Content_Types].xml": f'<Types xmlns="{TYPES}"><Override PartName="/xl/workbook.xml" '
    f'ContentType="{KIND}.sheet.main+xml"/><Override PartName="/xl/sharedStrings.xml" '
    f'ContentType="{KIND}.sharedStrings+xml"/></Types>',
    "_rels/.rels": f'<Relationships xmlns="{LINKS}"><Relationship Id="r" Target="/xl/workbook.xml" '
    f'Type="{OFFICE}/officeDocument"/></Relationships>',
    "xl/workbook.xml": f'<workbook xmlns="{MAIN}" xmlns:r="{OFFICE}"><sheets>'
    '<sheet name="One" sheetId="1" r:id="a"/></sheets></workbook>',
    "xl/_rels/workbook.xml.rels": f'<Relationships xmlns="{LINKS}"><Relationship Id="a" '
    f'Target="worksheets/sheet1.xml" Type="{OFFICE}/worksheet"/><Relationship Id="b" '
    f'Target="sharedStrings.xml" Type="{OFFICE}/sharedStrings"/></Relationships>',
    "xl/sharedStrings.xml": f'<sst xmlns="{MAIN}"/>',
    **sheet_of(HEAD + '<row r="2"><c r="A2" t="inlineStr"><is><t>So.</t></is></c></row>'),
}  # fmt: skip


def values(path: Path, sheet: str = "") -> list[Any]:
    """The values of the only column."""
    return [value for row in read_rows(path, sheet) for value in row.values()]


def rich(*parts: str) -> CellRichText:
    return CellRichText(*(TextBlock(InlineFont(b=True), part) for part in parts))


VALUES: dict[str, tuple[Any, Any]] = {
    "a number is itself": (12345, 12345),
    "a whole number that is stored as another": (12345.0, 12345),
    "a fraction": (-0.25, -0.25),
    "a small one": (1e-7, 1e-7),
    "digits as text": ("00123", "00123"),
    "a number that begins with e": ("1e5", "1e5"),
    "15 digits": (999_999_999_999_999, 999_999_999_999_999),
    "yes": (True, True),
    "no": (False, False),
    "a day": (dt.date(2026, 11, 30), "2026-11-30"),
    "a day and a time": (dt.datetime(2026, 11, 30, 13, 45, 1), "2026-11-30 13:45:01"),
    "a time": (dt.time(13, 45), "13:45:00"),
    "a duration": (dt.timedelta(days=1, hours=2), "1 day, 2:00:00"),
    "rich text": (rich("We ", "never", " do"), "We never do"),
    "line breaks and blanks": (" a\n\tb ", " a\n\tb "),
    "a guarded formula": ("'=1+1", "=1+1"),
    "a guarded apostrophe": ("''=1+1", "'=1+1"),
    "an apostrophe": ("'tis", "'tis"),
    "an escape": ("a_x000D_b", "a\rb"),
    "an escape of what looks like one": ("_x005F_x000D_", "_x000D_"),
    "an escape of half a character": ("_xD83D_", "_xD83D_"),
    "markup": ("<b>&amp;", "<b>&amp;"),
    "beyond the first plane": ("\U0001f35a", "\U0001f35a"),
}  # fmt: skip


@pytest.mark.parametrize(("given", "read"), VALUES.values(), ids=VALUES)
def test_what_stands_in_a_cell(tmp_path: Path, given: Any, read: Any) -> None:
    found = values(made(tmp_path, [["response"], [given]]))
    assert found == [read]
    assert type(found[0]) is type(read)


RAW: dict[str, tuple[str, Any]] = {
    "a shared text with readings": ('<c r="A2" t="s"><v>0</v></c>', "\u6771\u4eac"),
    "a shared text of runs": ('<c r="A2" t="s"><v>1</v></c>', "one two\r"),
    "a formula with its value": ('<c r="A2"><f>1+1</f><v>2</v></c>', 2),
    "a formula that gave a text": ('<c r="A2" t="str"><f>A1</f><v>x</v></c>', "x"),
    "a number as Excel writes it": ('<c r="A2"><v>1.2345000000000001E+4</v></c>', 12345.000000000002),
    "a number of no kind": ('<c r="A2" t="n"><v>12345.0</v></c>', 12345),
    "a day as text": ('<c r="A2" t="d"><v>2026-11-30</v></c>', "2026-11-30"),
    "a cell without a place": ("<c><v>7</v></c>", 7),
    "prefixes": (f'<x:c xmlns:x="{MAIN}" r="A2"><x:v>5</x:v></x:c>', 5),
}  # fmt: skip
SHARED = (
    f'<sst xmlns="{MAIN}"><si><t>\u6771\u4eac</t><rPh sb="0" eb="2"><t>toukyou</t></rPh></si>'
    '<si><r><t xml:space="preserve">one </t></r><r><t>two_x000D_</t></r></si></sst>'
)


@pytest.mark.parametrize(("cell", "read"), RAW.values(), ids=RAW)
def test_cells_as_programs_write_them(tmp_path: Path, cell: str, read: Any) -> None:
    parts = sheet_of(f'{HEAD}<row r="2">{cell}</row>') | {"xl/sharedStrings.xml": SHARED}
    found = values(of_parts(tmp_path, parts))
    assert found == [read]
    assert type(found[0]) is type(read)


@pytest.mark.parametrize(("date1904", "day"), [("0", "1900-01-31"), ("1", "1904-02-01")])
def test_the_first_day_of_a_workbook(tmp_path: Path, date1904: str, day: str) -> None:
    styles = f'<styleSheet xmlns="{MAIN}"><cellXfs><xf numFmtId="14"/></cellXfs></styleSheet>'
    links = str(MINIMAL["xl/_rels/workbook.xml.rels"]).replace("sharedStrings", "styles")
    book = str(MINIMAL["xl/workbook.xml"]).replace("<sheets>", f'<workbookPr date1904="{date1904}"/><sheets>')  # fmt: skip
    parts = {
        "xl/styles.xml": styles, "xl/_rels/workbook.xml.rels": links, "xl/workbook.xml": book,
        "xl/sharedStrings.xml": f'<sst xmlns="{MAIN}"/>',
    **sheet_of(HEAD + '<row r="2"><c r="A2" s="0"><v>31</v></c></row>'),
    }  # fmt: skip
    assert values(of_parts(tmp_path, parts)) == [day]


FORMATS = {
    "0.00": 45000.5, '"days" 0': 45000.5, "General": 45000.5, '#,##0 "m"': 45000.5, "[Red]0.0": 45000.5,
    "0.00E+00": 45000.5, "\\d0": 45000.5, "yyyy-mm-dd": "2023-03-15 12:00:00", "d. mmm": "2023-03-15 12:00:00",
    "[$-409]h:mm AM/PM;@": "2023-03-15 12:00:00", "[h]:mm": "45000 days, 12:00:00",
    '#,##0 "h";[Red]-0': 45000.5,
}  # fmt: skip


@pytest.mark.parametrize(("code", "read"), FORMATS.items(), ids=FORMATS)
def test_only_formats_of_days_and_times_make_them(tmp_path: Path, code: str, read: Any) -> None:
    def shown(book: Any) -> None:
        book.worksheets[0]["A2"].number_format = code

    assert values(made(tmp_path, [["response"], [45000.5]], shown)) == [read]


CELLS: dict[str, tuple[str, str]] = {
    "an error": ('<c r="A2" t="e"><v>#N/A</v></c>', "cell A2 holds the error #N/A"),
    "a formula without a value": ('<c r="A2"><f>1+1</f></c>', "cell A2 is a formula whose value is not"),
    "a formula with an empty value": ('<c r="A2"><f>1+1</f><v></v></c>', "cell A2 is a formula whose"),
    "16 digits": ('<c r="A2"><v>1234567890123456</v></c>', "A2 holds the number 1234567890123456, of"),
    "a rounded number": ('<c r="A2"><v>1.23456789012345E+18</v></c>', "keeps 15 digits"),
    "no number": ('<c r="A2"><v>x</v></c>', "cell A2 holds 'x', which cannot be read"),
    "a number that is none": ('<c r="A2"><v>NaN</v></c>', "cell A2 holds 'NaN', which cannot be read"),
    "underscores": ('<c r="A2"><v>1_0</v></c>', "cell A2 holds '1_0', which cannot be read"),
    "no truth value": ('<c r="A2" t="b"><v>x</v></c>', "cell A2 holds 'x', which cannot be read"),
    "another kind": ('<c r="A2" t="z"><v>1</v></c>', "cell A2 is of no kind that cells have"),
    "no such text": ('<c r="A2" t="s"><v>9</v></c>', "cell A2 holds '9', which cannot be read"),
    "no such style": ('<c r="A2" s="9"><v>9</v></c>', "cell A2 holds '9', which cannot be read"),
    "another row": ('<c r="A7"><v>9</v></c>', "cell A7 is out of place in row 2"),
    "twice": ('<c r="A2"><v>9</v></c><c r="A2"><v>8</v></c>', "cell A2 is out of place"),
    "beyond the last column": ('<c r="XFE2"><v>9</v></c>', "cell XFE2 is out of place"),
    "no heading": ('<c r="C2"><v>9</v></c>', "cell C2 stands under no heading"),
    "cut": (
        f'<c r="A2" t="inlineStr"><is><t>{"x" * CELL_LENGTH}</t></is></c>',
        "cell A2 holds 32,767 characters, the most that a spreadsheet keeps: the text was most likely cut",
    ),
    "cut, as UTF-16 counts": (
        f'<c r="A2" t="inlineStr"><is><t>{"x" + chr(0x1F35A) * (CELL_LENGTH // 2)}</t></is></c>',
        "cell A2 holds 32,767 characters",
    ),
    "endless": (
        f'<c r="A2" t="inlineStr"><is><t>{"x" * (2**20 + 1)}</t></is></c>',
        "cell A2 holds more than 1,048,576 characters",
    ),
}  # fmt: skip


@pytest.mark.parametrize(("cell", "said"), CELLS.values(), ids=CELLS)
def test_a_cell_that_cannot_be_read_is_told_with_its_place(
    tmp_path: Path, cell: str, said: str
) -> None:
    path = of_parts(tmp_path, sheet_of(f'{HEAD}<row r="2">{cell}</row>'))
    with pytest.raises(UsageError) as caught:
        values(path)
    assert said in str(caught.value)
    assert str(path) in str(caught.value)


def test_a_shared_text_is_not_counted_from_the_end(tmp_path: Path) -> None:
    cell = '<c r="A2" t="s"><v>-1</v></c>'
    parts = sheet_of(f'{HEAD}<row r="2">{cell}</row>') | {"xl/sharedStrings.xml": SHARED}
    with pytest.raises(UsageError, match="cell A2 holds '-1', which cannot be read"):
        values(of_parts(tmp_path, parts))


def test_a_text_that_is_longer_than_spreadsheets_keep_is_read_whole(tmp_path: Path) -> None:
    long = "x" * 40_000
    parts = sheet_of(HEAD + f'<row r="2"><c r="A2" t="str"><v>{long}</v></c></row>')
    assert values(of_parts(tmp_path, parts)) == [long]


class TestSheets:
    def test_the_first_that_is_shown_or_the_one_that_is_named(self, tmp_path: Path) -> None:
        def more(book: Any) -> None:
            book.worksheets[0].sheet_state = "hidden"
            for name in ("Round 2", "x"):
                sheet = book.create_sheet(name)
                sheet.append(["response"])
                sheet.append([name])

        path = made(tmp_path, [["response"], ["hidden"]], more)
        assert sheet_names(path) == ("Sheet", "Round 2", "x")
        assert values(path) == ["Round 2"]
        assert values(path, "x") == ["x"]
        assert values(path, "Sheet") == ["hidden"]
        with pytest.raises(UsageError, match="has no sheet 'y'; it has 'Sheet', 'Round 2', 'x'"):
            values(path, "y")
        assert [item.response for item in items_of(open_source(path, sheet="x"))] == ["x"]

    def test_only_workbooks_have_sheets(self, tmp_path: Path) -> None:
        path = tmp_path / "a.csv"
        path.write_text("response\na\n", encoding="utf-8")
        with pytest.raises(UsageError, match=r"a\.csv is no workbook and has no sheet 'x'"):
            open_source(path, sheet="x")

    def test_empty_rows_are_passed_over_and_hidden_ones_are_not(self, tmp_path: Path) -> None:
        def hide(book: Any) -> None:
            book.worksheets[0].row_dimensions[4].hidden = True

        rows: list[list[Any]] = [[], ["id", "response"], [], ["a", "x"], [None, ""], ["b", "y"]]
        path = made(tmp_path, rows, hide)
        found = list(read_rows(path))
        assert found == [{"id": "a", "response": "x"}, {"id": "b", "response": "y"}]
        assert [(row.number, row.cell("response")) for row in found] == [(4, "B4"), (6, "B6")]

    def test_links_and_notes_change_nothing(self, tmp_path: Path) -> None:
        def decorate(book: Any) -> None:
            cell = book.worksheets[0]["A2"]
            cell.hyperlink = "http://x/"
            cell.comment = Comment("a note", "someone")

        assert values(made(tmp_path, [["response"], ["So."]], decorate)) == ["So."]

    def test_merged_cells_are_refused(self, tmp_path: Path) -> None:
        def merge(book: Any) -> None:
            book.worksheets[0].merge_cells("A2:A3")

        path = made(tmp_path, [["id", "response"], ["a", "x"], ["b", "y"]], merge)
        with pytest.raises(UsageError, match="the cells A2:A3 are merged"):
            open_source(path)

    def test_two_headings_of_one_name_are_told_with_both_cells(self, tmp_path: Path) -> None:
        path = made(tmp_path, [["id", "x", "id"], ["a", "b", "c"]])
        with pytest.raises(UsageError, match=r"has two columns 'id' \(A1 and C1\)"):
            list(read_rows(path))


OLD = b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1" + bytes(600)


def without(name: str) -> bytes:
    """The least of workbooks, without one of its parts."""
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w") as archive:
        for part, content in MINIMAL.items():
            if part != name:
                archive.writestr(part, content)
    return out.getvalue()


def locked() -> bytes:
    """An archive of which an entry is encrypted."""
    data = bytearray(without(""))
    data[data.index(b"PK\1\2") + 8] |= 1
    return bytes(data)


FILES: dict[str, tuple[str, bytes, str]] = {
    "a password, or Excel 97": ("a.xlsx", OLD, "protected by a password, or in the form of Excel 97"),
    "an archive with a password": ("a.xlsx", locked(), "protected by a password"),
    "xls": ("a.xls", OLD, "a.xls: save it as .xlsx or CSV; the form of Excel 97 is not read"),
    "ods": ("a.ods", without(""), "a.ods: save it as .xlsx or CSV; the form of LibreOffice is not"),
    "numbers": ("a.numbers", without(""), "save it as .xlsx or CSV"),
    "xlsb": ("a.xlsb", without(""), "save it as .xlsx or CSV"),
    "text": ("a.xlsx", b"response\na\n", "is no workbook, whatever its name says: save it as .xlsx"),
    "nothing": ("a.xlsx", b"", "is no workbook, whatever its name says"),
    "cut off": ("a.xlsx", without("")[:-30], "is damaged: BadZipFile: File is not a zip file"),
    "another archive": ("a.xlsx", without("[Content_Types].xml"), "holds no workbook; save it as .xlsx"),
    "no list of sheets": ("a.xlsx", without("xl/_rels/workbook.xml.rels"), "no item named 'xl/_rels/workbook.xml.rels' in"),
    "no sheet": ("a.xlsx", without("xl/worksheets/sheet1.xml"), "no item named 'xl/worksheets/sheet1.xml' in"),
}  # fmt: skip


@pytest.mark.parametrize(("name", "content", "said"), FILES.values(), ids=FILES)
def test_a_file_that_is_no_workbook_says_what_to_do(
    tmp_path: Path, name: str, content: bytes, said: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / name).write_bytes(content)
    code, _, told = command("judge", name, "--model", "{backend: scripted}")
    assert code == 2
    assert said in told
    assert [path.name for path in tmp_path.iterdir()] == [name]


def test_a_sheet_is_judged_with_the_command(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def more(book: Any) -> None:
        sheet = book.create_sheet("Round 2")
        for row in (["model", "response"], ["m", "We do."], ["n", "They do."]):
            sheet.append(row)

    monkeypatch.chdir(tmp_path)
    made(tmp_path, [["nothing"]], more)
    model = "{backend: scripted, options: {script: helpers}}"
    words = ["judge", "a.xlsx", "--model", model, "--judges", "positioning", "--quiet"]
    code, _, _ = command(*words, "--sheet", "Round 2", "--out", "labels")
    assert code == 0
    assert {item.response for item in items_of(open_source(tmp_path / "labels"))} == {
        "We do.", "They do.",
    }  # fmt: skip
    code, _, told = command(*words)
    assert (code, "a.xlsx has no rows" in told) == (2, True)


def test_two_rows_of_one_id_are_refused_with_both_cells(tmp_path: Path) -> None:
    rows: list[list[Any]] = [
        ["note", "id", "response"],
        [1, 12345, "a"],
        [2, "q2", "b"],
        [],
        [3, "12345", "c"],
    ]
    with pytest.raises(UsageError, match="cells B2 and B5 have the same id '12345'"):
        open_source(made(tmp_path, rows))


class TestWritten:
    @given(
        st.lists(
            st.lists(
                st.none()
                | st.floats(-1e14, 1e14)
                | st.text(st.characters(codec="utf-8"), max_size=8),
                min_size=2,
                max_size=2,
            ),
            max_size=4,
        )
    )
    @settings(max_examples=60, deadline=None)
    def test_what_is_written_is_read_back(
        self, tmp_path_factory: pytest.TempPathFactory, rows: list[list[str | float | None]]
    ) -> None:
        path = tmp_path_factory.mktemp("book") / "a.xlsx"
        with WorkbookWriter(path) as book:
            book.write(["a", safe_cell("=b")])
            for row in rows:
                book.write([safe_cell(c) if isinstance(c, str) else c for c in row])
        kept = [[None if cell == "" else cell for cell in row] for row in rows]
        kept = [row for row in kept if row != [None, None]]
        found = list(read_rows(path))
        assert [list(row.values()) for row in found] == kept
        assert all(list(row) == ["a", "=b"] for row in found)

    def test_every_text_is_a_string_and_every_number_a_number_to_another_reader(
        self, tmp_path: Path
    ) -> None:
        path = tmp_path / "a.xlsx"
        texts = ["=1+1", "'=1+1", "-5", "@x", "#N/A", "TRUE", " a\n ", "1e5", "\u200b=1"]
        with WorkbookWriter(path) as book:
            book.write(texts)
            book.write([0.5, 12, -3, *[None] * 6])
        sheet = openpyxl.load_workbook(path).worksheets[0]
        heading, numbers = [list(row) for row in sheet.iter_rows()]
        assert [(cell.value, cell.data_type) for cell in heading] == [(text, "s") for text in texts]
        assert [cell.value for cell in numbers[:4]] == [0.5, 12, -3, None]
        assert {cell.data_type for cell in numbers[:3]} == {"n"}
        assert sheet.freeze_panes == "A2"
        assert heading[0].font.b
        assert not numbers[0].font.b

    def test_equal_rows_are_equal_bytes_with_nothing_of_when_they_were_written(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        for name in ("a", "b"):
            (tmp_path / name).mkdir()
            monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / name))
            with WorkbookWriter(tmp_path / f"{name}.xlsx") as book:
                book.write(["a", 0.5])
            assert list((tmp_path / name).iterdir()) == []
        assert (tmp_path / "a.xlsx").read_bytes() == (tmp_path / "b.xlsx").read_bytes()
        with zipfile.ZipFile(tmp_path / "a.xlsx") as archive:
            assert {entry.date_time[0] for entry in archive.infolist()} == {1980}
            text = archive.read("docProps/core.xml").decode()
        assert set(re.findall(r"\d{4}-[^<]*", text)) == {"1980-01-01T00:00:00Z"}

    def test_texts_that_a_writer_may_take_for_something_else_come_back(
        self, tmp_path: Path
    ) -> None:
        texts = [
            "<r>x</r>",
            "<r><t>x</t></r>\r",
            "_x0041_x0042_",
            "_x000D_",
            "\ufffe\r\x00",
            "http://x/",
        ]
        path = tmp_path / "a.xlsx"
        with WorkbookWriter(path) as book:
            book.write(["response"])
            for text in texts:
                book.write([text])
        assert values(path) == texts

    def test_numbers_keep_all_of_their_digits(self, tmp_path: Path) -> None:
        numbers = [0.1 + 0.2, 1e-7, -5, 123_456_789_012_345.6, 2.0]
        path = tmp_path / "a.xlsx"
        with WorkbookWriter(path) as book:
            book.write(["response"])
            for number in numbers:
                book.write([number])
        assert values(path) == numbers

    def test_a_file_that_cannot_be_written_says_so_and_leaves_nothing(self, tmp_path: Path) -> None:
        with (
            pytest.raises(OSError, match="No such file"),
            WorkbookWriter(tmp_path / "x" / "a.xlsx"),
        ):
            pass
        assert list(tmp_path.iterdir()) == []

    @pytest.mark.skipif(not Path("/dev/full").exists(), reason="no disk that is always full")
    def test_a_full_disk_is_one_error_and_no_complaint_after_it(self) -> None:
        with (
            pytest.raises(OSError, match="No space left"),
            WorkbookWriter(Path("/dev/full")) as book,
        ):
            book.write(["x"])
        gc.collect()  # what complains while it is dropped fails the test

    def test_more_than_two_gibibytes_are_refused(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(zipfile, "ZIP64_LIMIT", 100_000)
        path = tmp_path / "a.xlsx"
        book = WorkbookWriter(path).__enter__()
        for _ in range(100):
            book.write(["x" * 2000])
        with pytest.raises(UsageError, match="would hold more than 2 GiB"):
            book.close()
        gc.collect()

    def test_more_than_a_sheet_holds_is_refused_and_not_cut(self, tmp_path: Path) -> None:
        with WorkbookWriter(tmp_path / "a.xlsx") as book:
            book.write(["x" * (CELL_LENGTH - 1)])
            with pytest.raises(UsageError, match=r"'xxx.*has 32,767; nothing is cut: use another"):
                book.write(["x" * CELL_LENGTH])
            with pytest.raises(UsageError, match="fewer than 32,767"):
                book.write(["\U0001f35a" * (CELL_LENGTH // 2 + 1)])
            with pytest.raises(UsageError, match="16,384 columns"):
                book.write([None] * (2**14 + 1))
            with pytest.raises(ValueError, match="no number"):
                book.write([float("nan")])
            book.rows = 2**20
            with pytest.raises(UsageError, match="1,048,576 rows with its heading"):
                book.write(["x"])


@pytest.mark.parametrize("package", ["openpyxl", "xlsxwriter"])
def test_without_the_libraries_the_extra_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, package: str
) -> None:
    path = made(tmp_path, [["response"], ["So."]])
    for name in [name for name in sys.modules if name.split(".")[0] == package]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.delitem(sys.modules, "habitus.workbooks.book", raising=False)
    monkeypatch.setitem(sys.modules, package, None)
    wanted = r'workbooks need \w+: pip install "habitus\[sheets\]"'
    use = {"openpyxl": lambda: values(path), "xlsxwriter": WorkbookWriter(path).__enter__}
    with pytest.raises(UsageError, match=wanted):
        use[package]()


def measured(work: Callable[[], object]) -> int:
    """The most bytes that some work held at once."""
    tracemalloc.start()
    work()
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    return peak


@pytest.mark.parametrize("form", ["written", "read"])
def test_memory_does_not_grow_with_the_rows(tmp_path: Path, form: str) -> None:
    def write(count: int) -> None:
        with WorkbookWriter(tmp_path / f"{count}.xlsx") as book:
            book.write(["id", "response"])
            for number in range(count):
                book.write([f"a{number}", f"{number} words " * 40])

    def read(count: int) -> None:
        assert sum(1 for _ in read_rows(tmp_path / f"{count}.xlsx")) == count

    peaks = []
    for count in (1_000, 4_000):
        if form == "read":
            write(count)
        peaks.append(measured(lambda n=count: read(n) if form == "read" else write(n)))  # type: ignore[misc]
    assert peaks[1] < 1.3 * peaks[0]
