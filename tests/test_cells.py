"""Cells of spreadsheets: what would run does not, and every text comes back."""

from __future__ import annotations

import csv
import io
import sys
import unicodedata

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from habitus.cells import plain_cell, safe_cell

BEGINS = "=+-@\uff1d\uff0b\uff0d\uff20\ufe66\ufe62\ufe63\ufe6b\u2212"
HIDDEN = [chr(n) for n in range(sys.maxunicode + 1) if unicodedata.category(chr(n)) in
          {"Cc", "Cf", "Zs", "Zl", "Zp"}]  # fmt: skip
NASTY = st.text(st.sampled_from("'=+-@\t\r\n \u200b\ufeffa5\"") | st.characters())

RUNNING = {
    "formula": '=HYPERLINK("http://x","y")',
    "a title that begins with a minus": "-5 degrees?",
    "behind a zero-width space": "\u200b=1+1",
    "behind a byte-order mark and blanks": "\ufeff  =1+1",
    "behind a line break": "\n=1+1",
    "plus": "+1 for rice",
    "at": "@SUM(A1)",
    "tab": "\tcmd",
    "carriage return": "\rcmd",
    "tab behind an invisible character": "\u2060\tcmd",
    "as wide as an ideograph": "\uff1d1+1",
    "neutralised by its writer": "'=1+1",
    "two apostrophes and a blank": "'' -1",
}
HARMLESS = [
    "",
    "rice",
    "'tis so",
    "1-2=3",
    "a=b",
    "''",
    "'",
    "¿por qué?",
    "ñ+",
    "5",
    " rice",
    "\u200b",
]


@pytest.mark.parametrize("text", RUNNING.values(), ids=RUNNING)
def test_what_would_run_is_text_and_comes_back(text: str) -> None:
    assert safe_cell(text) == f"'{text}"
    assert plain_cell(safe_cell(text)) == text


@pytest.mark.parametrize("text", HARMLESS)
def test_other_text_stays_as_it_is(text: str) -> None:
    assert safe_cell(text) == text
    assert plain_cell(text) == text


def test_no_character_that_shows_nothing_hides_a_formula() -> None:
    assert len(HIDDEN) > 200
    assert [c for c in HIDDEN if safe_cell(f"{c}=1") == f"{c}=1"] == []
    assert [c for c in HIDDEN if safe_cell(f"a{c}=1") != f"a{c}=1"] == []


@given(NASTY)
@example("'")
@example("''=")
def test_every_text_comes_back_and_none_begins_a_formula(text: str) -> None:
    cell = safe_cell(text)
    assert plain_cell(cell) == text
    assert not cell.startswith(tuple(BEGINS + "\t\r\n"))
    assert not cell.lstrip("".join(HIDDEN)).startswith(tuple(BEGINS))


@given(st.lists(NASTY, min_size=1))
def test_cells_survive_a_csv_file(texts: list[str]) -> None:
    texts = [text.replace("\ud800", "") for text in texts]
    file = io.StringIO(newline="")
    csv.writer(file).writerow(map(safe_cell, texts))
    file.seek(0)
    assert [plain_cell(cell) for row in csv.reader(file, strict=True) for cell in row] == texts


@given(NASTY, NASTY)
def test_two_texts_never_make_the_same_cell(one: str, other: str) -> None:
    assert (safe_cell(one) == safe_cell(other)) == (one == other)
