"""The consensus subset: which posts are in it, what stands in its files, and what is counted."""

from __future__ import annotations

import csv
import json
import tracemalloc
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from habitus.cells import plain_cell
from habitus.cli import run as command
from habitus.errors import HabitusError, StoreError, UsageError
from habitus.exports import (
    KINDS,
    PUBLISHED,
    Agreement,
    Consensus,
    ConsensusOptions,
    Format,
    Wish,
    check_table,
    export_consensus,
    open_table,
)
from habitus.judges import find_set
from habitus.labelling import Columns, open_source
from habitus.records import JudgedItem, Label, Outcome
from habitus.store import RunDir
from habitus.workbooks import read_rows
from labels_made import EMOTIONS, GENERALIZING, POSITIONING, QUANTITY, item, label, labelled_run

TARGETS = ("llama", "gemma", "ministral")
Given = dict[str, tuple[str | None, ...]]


def posts_run(path: Path, verdict: dict[str, Any], given: Given, **more: Any) -> Path:
    """A post for each entry, with the label of each target."""
    items = [item(group, target) for group in given for target in TARGETS]
    labels = [
        label(f"{group}/{target}", verdict, one)
        for group, found in given.items()
        for target, one in zip(TARGETS, found, strict=True)
    ]
    return labelled_run(path, items, labels, [verdict], **more)


def export(path: Path, folder: Path, **options: Any) -> Consensus:
    with RunDir.open(path, write=False) as run:
        return export_consensus(run, folder, ConsensusOptions(**options))


def rows(path: Path) -> list[dict[str, str]]:
    with path.open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file, strict=True))


def sheet_rows(path: Path) -> list[dict[str, Any]]:
    """Rows as another reader than ours finds them."""
    import openpyxl

    book = openpyxl.load_workbook(path, read_only=True)
    header, *lines = book.worksheets[0].iter_rows(values_only=True)
    book.close()
    return [dict(zip(map(str, header), line, strict=True)) for line in lines]


def parquet_rows(path: Path) -> list[dict[str, Any]]:
    import pyarrow.parquet as pq

    with pq.ParquetFile(path) as file:
        return [row for batch in file.iter_batches() for row in batch.to_pylist()]


def table_of(path: Path) -> list[dict[str, Any]]:
    """Rows of a file, by the end of its name."""
    read = {".csv": rows, ".xlsx": sheet_rows, ".parquet": parquet_rows}[path.suffix]
    return list(read(path))


OUTSIDERS: Given = {
    "a": ("Outsider", "Outsider", "Outsider"),
    "b": ("Insider", "Insider", "Insider"),
    "c": ("Outsider", "Insider", "Outsider"),
    "d": ("Outsider", None, "Outsider"),
    "e": ("Outsider", "Outsider", "Outsider"),
}


def test_a_post_is_in_when_every_target_got_the_label(tmp_path: Path) -> None:
    found = export(posts_run(tmp_path / "run", POSITIONING, OUTSIDERS), tmp_path / "out")
    [table] = found.tables
    assert (table.name, table.labels, table.file) == ("outsider", ("Outsider",), "outsider.csv")
    assert rows(tmp_path / "out" / "outsider.csv") == [
        {
            "id": group, "title": "Rice?", "body": "Which?", "country": "india",
            "category": "food and drink", "subreddit": "IndianFood",
            "gemma": "Outsider", "llama": "Outsider", "ministral": "Outsider",
        }
        for group in ("a", "e")
    ]  # fmt: skip


def test_every_post_is_counted_once_and_an_unread_label_is_no_label(tmp_path: Path) -> None:
    made = [item("f", "llama"), item("f", "gemma")]
    made += [item("g", target) for target in TARGETS]
    made[-1] = item("g", "ministral", outcome=Outcome.ERROR, reason="timeout", response="")
    made += [item("h", target) for target in TARGETS]
    made.append(item("h", "llama", id="h/llama/again"))
    made += [item(group, target) for group in OUTSIDERS for target in TARGETS]
    labels = [
        label(f"{group}/{target}", POSITIONING, one)
        for group, found in OUTSIDERS.items()
        for target, one in zip(TARGETS, found, strict=True)
    ]
    labels += [label(f"f/{target}", POSITIONING, "Outsider") for target in ("llama", "gemma")]
    labels += [label(f"g/{target}", POSITIONING, "Outsider") for target in ("llama", "gemma")]
    labels += [label(f"h/{target}", POSITIONING, "Outsider") for target in TARGETS]
    labels.append(label("nobody", POSITIONING, "Outsider"))
    labels.append(label("a/llama", QUANTITY, "OVER"))
    run = labelled_run(tmp_path / "run", made, labels, [POSITIONING])
    found = export(run, tmp_path / "out")
    tally = found.tables[0].tally
    assert (tally.units, tally.complete, tally.same, tally.rows) == (8, 4, 3, 2)
    assert (tally.no_answer, tally.several, tally.no_response, tally.no_label) == (1, 1, 1, 1)
    assert found.manifest["stray_labels"] == 2
    assert any("2 labels belong to no answer" in note for note in found.notes)


OVERS: Given = {
    "a": ("OVER", "OVER", "OVER"),
    "b": ("OVER", "UNDER", "OVER"),
    "c": ("APPROPRIATE", "APPROPRIATE", "APPROPRIATE"),
    "d": ("APPROPRIATE", "OVER", "OVER"),
}


@pytest.mark.parametrize(
    ("agreement", "there"), [(Agreement.TRAIT, ["a", "b"]), (Agreement.LABEL, ["a"])]
)
def test_a_maxim_is_violated_alike_by_too_much_and_too_little_or_not(
    tmp_path: Path, agreement: Agreement, there: list[str]
) -> None:
    run = posts_run(tmp_path / "run", QUANTITY, OVERS)
    found = export(run, tmp_path / "out", agreement=agreement)
    table = rows(tmp_path / "out" / "quantity_violated.csv")
    assert [row["id"] for row in table] == there
    assert found.tables[0].tally.same == 2
    assert found.manifest["agreement"] == agreement.value


def test_all_labels_are_a_switch(tmp_path: Path) -> None:
    run = posts_run(tmp_path / "run", QUANTITY, OVERS)
    found = export(run, tmp_path / "out", everything=True)
    assert {table.name: table.tally.rows for table in found.tables} == {
        "maxims.quantity.APPROPRIATE": 1, "maxims.quantity.UNDER": 0, "maxims.quantity.OVER": 1,
    }  # fmt: skip
    assert rows(tmp_path / "out" / "maxims.quantity.under.csv") == []


def test_judges_of_ones_own_give_a_table_for_each_label(tmp_path: Path) -> None:
    own = {"judge": "tone", "labels": ["a/b", "A B", "="], "present": ["="]}
    run = posts_run(tmp_path / "run", own, {"a": ("=", "=", "="), "b": ("a/b", "a/b", "a/b")})
    found = export(run, tmp_path / "out")
    assert [table.file for table in found.tables] == ["tone.a_b.csv", "tone.a_b_2.csv", "tone.csv"]
    assert rows(tmp_path / "out" / "tone.csv")[0]["llama"] == "'="


def test_the_published_tables_are_those_of_the_shipped_judges() -> None:
    variants = {(judge.file.id, variant) for judge, variant in find_set("franz").verdicts()}
    assert {(judge, variant) for judge, variant, _, _ in PUBLISHED} <= variants
    assert len({name for *_, name in PUBLISHED}) == 9


def test_of_several_judges_each_has_its_table_and_counts(tmp_path: Path) -> None:
    verdicts = [POSITIONING, GENERALIZING, EMOTIONS]
    said = {"positioning": "Outsider", "generalizing": "Generalizing", "anthropomorphism": "Yes"}
    items = [item(group, target) for group in "ab" for target in TARGETS]
    labels = [
        label(made.id, verdict, said[verdict["judge"]])
        for made in items
        for verdict in verdicts
        if (made.id, verdict) != ("b/gemma", GENERALIZING)
    ]
    run = labelled_run(tmp_path / "run", items, labels, verdicts)
    found = export(run, tmp_path / "out")
    assert {t.name: (t.tally.rows, t.tally.no_label) for t in found.tables} == {
        "emotions": (2, 0), "outsider": (2, 0), "generalizing": (1, 1),
    }  # fmt: skip


def test_the_manifest_says_where_everything_is_from(tmp_path: Path) -> None:
    run = posts_run(tmp_path / "labels", POSITIONING, OUTSIDERS, made_up=["gemma"])
    found = export(run, tmp_path / "out")
    text = (tmp_path / "out" / "manifest.json").read_text("utf-8")
    assert json.loads(text) == json.loads(json.dumps(found.manifest))
    manifest = json.loads(text)
    assert manifest["run"]["name"] == "labels"
    assert manifest["labelling"]["verdicts"][0]["model"] == "m"
    assert manifest["tables"][0]["tally"]["rows"] == 2
    assert not any("unfinished" in note for note in manifest["notes"])
    assert any("synthetic" in note and "gemma" in note for note in manifest["notes"])


def test_a_run_that_is_not_done_says_so(tmp_path: Path) -> None:
    totals = {"items": 15, "labels": 1500}
    found = export(
        posts_run(tmp_path / "run", POSITIONING, OUTSIDERS, totals=totals), tmp_path / "o"
    )
    assert "the run is unfinished: 15 of 1,500 labels are there" in found.notes


@pytest.mark.parametrize("form", Format)
def test_no_response_and_no_reasoning_is_in_any_file(tmp_path: Path, form: Format) -> None:
    run = posts_run(tmp_path / "run", POSITIONING, OUTSIDERS)
    export(run, tmp_path / "out", form=form)
    files = list((tmp_path / "out").iterdir())
    assert len(files) == 3
    assert all(b"SECRET" not in path.read_bytes() for path in files)
    if form is not Format.CSV:
        for name in ("outsider", "outcomes"):
            assert "SECRET" not in repr(table_of(tmp_path / "out" / f"{name}.{form}"))


@pytest.mark.parametrize("form", list(Format))
def test_outcomes_stand_beside_the_tables_and_in_the_manifest(tmp_path: Path, form: Format) -> None:
    """Each refusal and each label that could not be read, by model and country."""
    refused = {"outcome": Outcome.REFUSED, "reason": "=policy", "response": ""}
    items = [
        item("a", "llama"),
        item("a", "gemma", **refused),
        item("b", "llama", fields={"country": "korea"}),
    ]
    labels = [label("a/llama", POSITIONING, "Insider"), label("b/llama", POSITIONING, None)]
    run = labelled_run(tmp_path / "run", items, labels, [POSITIONING])
    made = export(run, tmp_path / "out", form=form)
    path = tmp_path / "out" / made.manifest["outcomes"]["file"]
    found = table_of(path)
    counted = {
        (row["stage"], row["target"], row["country"]): tuple(
            int(row[name]) for name in ("total", "ok", "refused", "unparsed", "not_asked")
        )
        for row in found
    }
    assert counted == {
        ("items", "llama", "india"): (1, 1, 0, 0, 0),
        ("items", "gemma", "india"): (1, 0, 1, 0, 0),
        ("items", "llama", "korea"): (1, 1, 0, 0, 0),
        ("labels", "llama", "india"): (1, 1, 0, 0, 0),
        ("labels", "gemma", "india"): (1, 0, 0, 0, 1),
        ("labels", "llama", "korea"): (1, 0, 0, 1, 0),
    }
    whole = made.manifest["outcomes"]["rows"]
    assert [row["total"] for row in whole] == [int(row["total"]) for row in found]
    assert {reason["example"] for row in whole for reason in row["reasons"]} == {
        "a/gemma", "", "b/llama",
    }  # fmt: skip


@pytest.mark.parametrize("form", Format)
def test_the_same_run_gives_the_same_bytes(tmp_path: Path, form: Format) -> None:
    run = posts_run(tmp_path / "run", POSITIONING, OUTSIDERS)
    for name in ("one", "two"):
        export(run, tmp_path / name, form=form)
    for path in (tmp_path / "one").iterdir():
        assert path.read_bytes() == (tmp_path / "two" / path.name).read_bytes()


HOSTILE = '=HYPERLINK("http://x","y")'


def hostile_run(path: Path) -> Path:
    fields = {"num": "-0.25", "=cmd": "@x", "country": "india", "subreddit": "+s"}
    posts = {"a": ("-5 degrees?", HOSTILE), "b": ("\u200b=1+1", 'a\r\nb, "c"\ud83d')}
    items = [
        item(group, target, title, body, fields=fields)
        for group, (title, body) in posts.items()
        for target in ("@m", "num")
    ]
    labels = [label(made.id, POSITIONING, "Outsider") for made in items]
    return labelled_run(path, items, labels, [POSITIONING])


def test_cells_that_a_spreadsheet_would_run_are_text_and_come_back(tmp_path: Path) -> None:
    export(hostile_run(tmp_path / "run"), tmp_path / "out")
    with (tmp_path / "out" / "outsider.csv").open(encoding="utf-8", newline="") as file:
        header, *lines = list(csv.reader(file, strict=True))
    assert header == [
        "id", "title", "body", "num", "'=cmd", "country", "subreddit", "'@m", "target.num",
    ]  # fmt: skip
    assert lines[0][:5] == ["a", "'-5 degrees?", f"'{HOSTILE}", "-0.25", "'@x"]
    assert lines[1][1] == "'\u200b=1+1"
    back = [[plain_cell(cell) for cell in line[:3]] for line in lines]
    assert back == [
        ["a", "-5 degrees?", HOSTILE], ["b", "\u200b=1+1", 'a\r\nb, "c"\\ud83d'],
    ]  # fmt: skip


def test_cells_of_a_workbook_are_text_come_back_and_numbers_stay(tmp_path: Path) -> None:
    """Also when the sheet is saved as CSV by others, where a text is no longer marked as one."""
    import openpyxl

    export(hostile_run(tmp_path / "run"), tmp_path / "out", form=Format.XLSX)
    path = tmp_path / "out" / "outsider.xlsx"
    header, *lines = openpyxl.load_workbook(path).worksheets[0].iter_rows()
    assert [cell.value for cell in header] == [
        "id", "title", "body", "num", "'=cmd", "country", "subreddit", "'@m", "target.num",
    ]  # fmt: skip
    assert [cell.value for cell in lines[0][:5]] == [
        "a", "'-5 degrees?", f"'{HOSTILE}", -0.25, "'@x",
    ]  # fmt: skip
    assert {cell.data_type for line in (header, *lines) for cell in line} == {"s", "n"}
    assert [cell.data_type for cell in lines[0]] == [*"sss", "n", *"sssss"]
    back = list(read_rows(path))
    assert list(back[0]) == [
        "id", "title", "body", "num", "=cmd", "country", "subreddit", "@m", "target.num",
    ]  # fmt: skip
    assert (back[0]["title"], back[0]["body"], back[0]["num"]) == ("-5 degrees?", HOSTILE, -0.25)
    assert (back[1]["title"], back[1]["body"]) == ("\u200b=1+1", 'a\r\nb, "c"\\ud83d')


@pytest.mark.parametrize("form", [Format.CSV, Format.XLSX])
def test_a_sheet_that_comes_back_has_the_texts_that_were_sent(tmp_path: Path, form: Format) -> None:
    """An export is coded by hand and judged: the texts are those of the run."""
    export(hostile_run(tmp_path / "run"), tmp_path / "out", form=form)
    source = open_source(tmp_path / "out" / f"outsider.{form}", Columns(response="body", id="id"))
    first, second = source.read()
    assert (first.response, first.fields["title"], first.fields["num"]) == (
        HOSTILE, "-5 degrees?", "-0.25",
    )  # fmt: skip
    assert (second.response, second.fields["title"]) == ('a\r\nb, "c"\\ud83d', "\u200b=1+1")
    assert first.fields["=cmd"] == "@x"


NUMBERS = ["5", "-0.25", "007", "1.0", "1e5", "+5", "-.5", "999999999999999", "1000000000000000",
           "12345678901234567890", "0.1", "-3"]  # fmt: skip


def test_a_number_in_a_workbook_reads_as_it_was_written(tmp_path: Path) -> None:
    path = tmp_path / "t.xlsx"
    with open_table(path, ["n"], Format.XLSX, numeric=["n"]) as table:
        for number in NUMBERS:
            table.write([number])
    assert [str(row["n"]) for row in read_rows(path)] == NUMBERS
    numbers = [row["n"] for row in sheet_rows(path) if not isinstance(row["n"], str)]
    assert numbers == [5, -0.25, 999_999_999_999_999, 0.1, -3]


def test_what_a_workbook_cannot_hold_is_refused_before_anything_is_written(tmp_path: Path) -> None:
    long = [item("a", target, "Rice?", "x" * 32_767) for target in TARGETS]
    labels = [label(made.id, POSITIONING, "Outsider") for made in long]
    run = labelled_run(tmp_path / "run", long, labels, [POSITIONING])
    with pytest.raises(
        UsageError,
        match=r"outsider\.xlsx, row 2 \(a\): a cell .* nothing is cut: use another format",
    ):
        export(run, tmp_path / "out", form=Format.XLSX)
    assert list((tmp_path / "out").iterdir()) == []
    with (
        pytest.raises(UsageError, match="t, heading: a cell of a workbook"),
        open_table(tmp_path / "out" / "t", ["x" * 40_000], Format.XLSX),
    ):
        pass
    assert list((tmp_path / "out").iterdir()) == []
    export(run, tmp_path / "out")
    check_table(Format.XLSX, 2**20 - 1, 5)
    for form in (Format.CSV, Format.PARQUET):
        check_table(form, 2**30, 2**15)
    with pytest.raises(UsageError, match="1,048,576 rows with its heading: use another format"):
        check_table(Format.XLSX, 2**20, 5)
    with pytest.raises(UsageError, match="16,384 columns"):
        check_table(Format.XLSX, 1, 2**14 + 1)


def test_parquet_holds_texts_as_they_are(tmp_path: Path) -> None:
    export(hostile_run(tmp_path / "run"), tmp_path / "out", form=Format.PARQUET)
    first, second = parquet_rows(tmp_path / "out" / "outsider.parquet")
    assert (first["title"], first["body"], first["=cmd"]) == ("-5 degrees?", HOSTILE, "@x")
    assert (first["num"], first["target.num"], first["@m"]) == ("-0.25", "Outsider", "Outsider")
    assert second["body"] == 'a\r\nb, "c"\\ud83d'


def test_a_field_that_differs_between_answers_is_left_out_and_named(tmp_path: Path) -> None:
    items = [
        item(group, target, fields={"country": "india", "met.x": met, "only": group})
        for group in "ab"
        for target, met in zip(TARGETS, ("yes", "no", "yes"), strict=True)
    ]
    labels = [label(made.id, POSITIONING, "Outsider") for made in items]
    found = export(labelled_run(tmp_path / "run", items, labels, [POSITIONING]), tmp_path / "out")
    assert found.manifest["fields_left_out"] == ["met.x"]
    assert "met.x" not in rows(tmp_path / "out" / "outsider.csv")[0]
    assert [row["only"] for row in rows(tmp_path / "out" / "outsider.csv")] == ["a", "b"]


@pytest.mark.parametrize("form", Format)
def test_a_field_that_an_item_lacks_is_an_empty_cell(tmp_path: Path, form: Format) -> None:
    items = [item("a", target, fields={}) for target in TARGETS]
    items += [item("b", target, fields={"country": "-3"}) for target in TARGETS]
    labels = [label(made.id, POSITIONING, "Outsider") for made in items]
    run = labelled_run(tmp_path / "run", items, labels, [POSITIONING])
    export(run, tmp_path / "out", form=form)
    found = table_of(tmp_path / "out" / f"outsider.{form}")
    number = {Format.CSV: "-3", Format.XLSX: -3, Format.PARQUET: "-3"}[form]
    assert [row["country"] for row in found] == ["" if form is Format.CSV else None, number]


def responses() -> Iterator[JudgedItem]:
    """Two queries of one persona in two settings: four units of one group."""
    for setting in ("none", "hist"):
        for query in ("q1", "q2"):
            for target in TARGETS:
                yield item(
                    "maori-01",
                    target,
                    id=f"{target}/{setting}/maori-01/{query}/r0",
                    question=f"What about {query}?\n\nReally.",
                    fields={"setting": setting, "query": query, "repeat": "0"},
                )


def test_what_is_no_post_has_its_question_and_is_told_apart_by_setting(tmp_path: Path) -> None:
    items = list(responses())
    labels = [label(made.id, POSITIONING, "Outsider") for made in items]
    run = labelled_run(tmp_path / "run", items, labels, [POSITIONING], kind="responses")
    found = export(run, tmp_path / "out")
    assert found.tables[0].tally.rows == 4
    table = rows(tmp_path / "out" / "outsider.csv")
    assert list(table[0])[:2] == ["id", "question"]
    assert {(row["id"], row["question"], row["setting"]) for row in table} == {
        ("maori-01", f"What about {query}?\n\nReally.", setting)
        for query in ("q1", "q2")
        for setting in ("none", "hist")
    }


def test_ids_that_begin_alike_are_not_mixed_up(tmp_path: Path) -> None:
    """``m`` and ``m-2``: their labels sort in another order than their items."""
    given = {("a", "m"): "Outsider", ("a", "m-2"): "Outsider", ("a-b", "m"): "Insider",
             ("a-b", "m-2"): "Outsider", ("a/b", "m"): "Outsider", ("a/b", "m-2"): "Outsider"}  # fmt: skip
    items = [item(group, target) for group, target in given]
    labels = [label(f"{g}/{t}", POSITIONING, said) for (g, t), said in given.items()]
    export(labelled_run(tmp_path / "run", items, labels, [POSITIONING]), tmp_path / "out")
    assert {row["id"] for row in rows(tmp_path / "out" / "outsider.csv")} == {"a", "a/b"}


Mistake = tuple[Callable[[Path], Path], type[HabitusError], str]


def _no_labels(path: Path) -> Path:
    with RunDir.create(path, {}):
        return path


def _one_target(path: Path) -> Path:
    items = [item("a", "llama")]
    return labelled_run(path, items, [label("a/llama", POSITIONING, "Outsider")], [POSITIONING])


def _no_items(path: Path) -> Path:
    return labelled_run(path, [], [], [POSITIONING])


def _answers_alone(path: Path) -> Path:
    return labelled_run(path, [item("a", "llama"), item("a", "gemma")], [], [])


def _damaged(path: Path) -> Path:
    run = _one_target(path)
    (run / "labelling.json").write_text('{"verdicts": 3}', encoding="utf-8")
    return run


MISTAKES: dict[str, Mistake] = {
    "no labels": (_no_labels, StoreError, "habitus judge"),
    "answers alone": (_answers_alone, UsageError, "no labels: `habitus judge` labels them"),
    "one target": (_one_target, UsageError, "two or more"),
    "no items": (_no_items, UsageError, "no answers"),
    "damaged": (_damaged, StoreError, "damaged"),
}


@pytest.mark.parametrize(("make", "kind", "what"), MISTAKES.values(), ids=MISTAKES)
def test_mistakes_are_told(
    tmp_path: Path, make: Callable[[Path], Path], kind: type[HabitusError], what: str
) -> None:
    run = make(tmp_path / "run")
    with pytest.raises(kind, match=what):
        export(run, tmp_path / "out")


def test_a_folder_with_other_things_is_left_alone(tmp_path: Path) -> None:
    run = posts_run(tmp_path / "run", POSITIONING, OUTSIDERS)
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "mine.txt").touch()
    with pytest.raises(UsageError, match=r"holds other things \(mine.txt\)"):
        export(run, tmp_path / "out")
    (tmp_path / "file").touch()
    with pytest.raises(UsageError, match="cannot be made"):
        export(run, tmp_path / "file")


def test_a_run_that_changes_meanwhile_is_refused(tmp_path: Path) -> None:
    path = posts_run(tmp_path / "run", POSITIONING, OUTSIDERS)
    with RunDir.open(path, write=False) as run:
        from habitus.exports.answers import read_answers
        from habitus.labelling import read_labelling

        answers = read_answers(run, read_labelling(run))
    other = posts_run(tmp_path / "other", POSITIONING, {**OUTSIDERS, "aa": ("Insider",) * 3})
    with RunDir.open(other, write=False) as run, pytest.raises(StoreError, match="changed"):
        list(answers.items(run))


@pytest.mark.parametrize("form", Format)
def test_a_table_that_fails_leaves_no_file(tmp_path: Path, form: Format) -> None:
    with (
        pytest.raises(ValueError, match="2 cells for 1 columns"),
        open_table(tmp_path / "t", ["a"], form) as table,
    ):
        table.write(["x", "one too many"])
    assert list(tmp_path.iterdir()) == []
    with (
        pytest.raises(UsageError, match="cannot be written"),
        open_table(tmp_path / "no" / "t", ["a"], form),
    ):
        pass


TEXT = st.none() | st.text(st.characters(codec="utf-8"))


@given(st.lists(st.tuples(TEXT, TEXT), max_size=4), st.sampled_from(Format))
def test_what_is_written_is_read_back(
    tmp_path_factory: pytest.TempPathFactory,
    given: list[tuple[str | None, str | None]],
    form: Format,
) -> None:
    path = tmp_path_factory.mktemp("table") / f"t.{form}"
    with open_table(path, ["a", "=b"], form) as table:
        for row in given:
            table.write(row)
    if form is Format.PARQUET:
        assert [tuple(row.values()) for row in parquet_rows(path)] == given
        return
    if form is Format.XLSX:
        filled = [tuple(cell or None for cell in row) for row in given if any(row)]
        assert [tuple(row.values()) for row in read_rows(path)] == filled
        return
    with path.open(encoding="utf-8", newline="") as file:
        header, *lines = list(csv.reader(file, strict=True))
    assert header == ["a", "'=b"]
    assert [[plain_cell(cell) for cell in line] for line in lines] == [
        [cell or "" for cell in row] for row in given
    ]


def many(count: int) -> Iterator[tuple[JudgedItem, Label]]:
    for number in range(count):
        for target in ("llama", "gemma"):
            made = item(f"p{number:05d}", target, body="word " * 1000)
            yield made, label(made.id, POSITIONING, ("Outsider", "Insider")[number % 2])


@pytest.mark.parametrize("form", [Format.CSV, Format.XLSX])
def test_memory_does_not_grow_with_the_texts(tmp_path: Path, form: Format) -> None:
    made = list(many(600))
    size = sum(len(found.question) for found, _ in made)
    run = labelled_run(
        tmp_path / "run", [m for m, _ in made], [one for _, one in made], [POSITIONING]
    )
    del made
    tracemalloc.start()
    found = export(run, tmp_path / "out", form=form)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert found.tables[0].tally.rows == 300
    assert peak < size / 3


def test_the_command_prints_counts_and_leaves_the_files(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run = posts_run(tmp_path / "run", POSITIONING, OUTSIDERS)
    arguments = ["export", str(run), "--to", "consensus", "-o", str(tmp_path / "out")]
    assert command(arguments) == 0
    out = capsys.readouterr().out
    assert "outsider\t2\t3\t4\t5\t0\t0\t0\t1\toutsider.csv" in out
    assert "- labels agree when" in out
    assert command(arguments) == 2
    assert "choose an empty directory" in capsys.readouterr().err
    more = ["--all", "--agree", "label", "--format", "parquet", "--json"]
    assert command([*arguments[:-1], str(tmp_path / "all"), *more]) == 0
    manifest = json.loads(capsys.readouterr().out)
    assert [table["file"] for table in manifest["tables"]] == [
        "positioning.insider.parquet", "positioning.outsider.parquet",
    ]  # fmt: skip
    assert sorted(path.name for path in (tmp_path / "all").iterdir()) == [
        "manifest.json", "outcomes.parquet", "positioning.insider.parquet", "positioning.outsider.parquet",
    ]  # fmt: skip


def test_the_options_of_the_command_are_those_of_the_exports() -> None:
    from habitus.cli.export import Agree, As, To

    assert [kind.value for kind in To] == list(KINDS)
    assert [kind.value for kind in As] == [kind.value for kind in Format]
    assert [kind.value for kind in Agree] == [kind.value for kind in Agreement]
    assert Wish(Path("x")).form is Format.CSV
