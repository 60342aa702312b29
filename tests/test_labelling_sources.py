"""Where items come from: every form of file gives the same items, and every fault costs nothing."""

from __future__ import annotations

import gzip
import json
import math
import shutil
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest
import zstandard
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from habitus.errors import UsageError
from habitus.experiments import RunRequest, Stage, read_materials, run_experiment
from habitus.labelling import Columns, open_source
from habitus.records import JudgedItem, Outcome, Request
from habitus.store import RunDir
from labelling_fixture import (
    FORMS,
    MADE_UP,
    REAL,
    Row,
    answers,
    items_of,
    job_of,
    jsonl,
    kept,
    labelled,
    parquet,
    separated,
    written,
)
from study_fixture import Answering, Terminal, failing, helpers, opening, study_of, terminal_in

ROWS: list[dict[str, Any]] = [
    {
        "id": "00123",
        "model": "llama-9",
        "question": 'Why,\n"so"?',
        "response": "We;\r\n\r\n\tthey, „you“ \u2028 \x85 \U0001f375",
        "country": "korea",
    },
    {"id": "1e5", "model": "", "question": "", "response": "=1+1", "country": ""},
    {"id": "00123", "model": "gemma", "question": "b", "response": " \n ", "country": "NO"},
]
ITEMS = [
    JudgedItem(
        id="00123/llama-9",
        group="00123",
        target="llama-9",
        question=ROWS[0]["question"],
        response=ROWS[0]["response"],
        fields={"country": "korea"},
    ),
    JudgedItem(id="1e5/-", group="1e5", target="-", response="=1+1"),
    JudgedItem(
        id="00123/gemma",
        outcome=Outcome.UNPARSED,
        reason="the file has no response",
        group="00123",
        target="gemma",
        question="b",
        response=" \n ",
        fields={"country": "NO"},
    ),
]


def opened(folder: Path, rows: Sequence[Row], columns: Columns | None = None) -> list[JudgedItem]:
    return items_of(open_source(written(folder, rows), columns))


class TestForms:
    @pytest.mark.parametrize("name", FORMS)
    def test_the_same_rows_are_the_same_items(self, tmp_path: Path, name: str) -> None:
        source = open_source(written(tmp_path, FORMS[name](ROWS), name))
        assert items_of(source) == items_of(source) == ITEMS
        assert (source.kind, source.size, source.answered) == ("rows", 3, 2)
        reference = open_source(written(tmp_path, ROWS))
        assert source.digest == reference.digest

    @given(
        st.lists(
            st.text(st.characters(codec="utf-8"), min_size=0, max_size=12),
            min_size=1,
            max_size=4,
        )
    )
    @settings(
        max_examples=30, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
    )
    def test_whatever_stands_in_them(self, tmp_path: Path, texts: list[str]) -> None:
        rows = [{"response": text, "note": text, "question": text} for text in texts]
        found = {
            name: open_source(written(tmp_path, FORMS[name](rows), name)).digest
            for name in ("a.jsonl", "pretty.json", "a.csv", "a.TSV", "a.parquet")
        }
        filled = [row for row in rows if row["response"]]  # an empty row of a sheet is no row
        for name in ("a.xlsx", "hand.XLSX") if filled else ():
            sheet = items_of(open_source(written(tmp_path, FORMS[name](rows), name)))
            assert [item.response for item in sheet] == [row["response"] for row in filled]
        assert len(set(found.values())) == 1, found
        items = items_of(open_source(tmp_path / "a.csv"))
        assert [item.response for item in items] == texts

    def test_another_text_is_another_digest(self, tmp_path: Path) -> None:
        first = open_source(written(tmp_path, answers(2))).digest
        assert open_source(written(tmp_path, answers(2, country="x"))).digest != first

    def test_a_row_may_lack_what_others_have(self, tmp_path: Path) -> None:
        rows: list[Row] = [
            {"response": "a"},
            {"response": "b", "model": "M", "x": 1},
            {"question": "q"},
        ]
        found = opened(tmp_path, rows)
        assert [item.target for item in found] == ["-", "M", "-"]
        assert [item.outcome for item in found] == [Outcome.OK, Outcome.OK, Outcome.UNPARSED]
        assert [item.fields for item in found] == [{}, {"x": "1"}, {}]

    def test_a_column_without_a_name_is_no_id(self, tmp_path: Path) -> None:
        """What data frames write before each row of CSV."""
        (item,) = items_of(open_source(written(tmp_path, b",response\n7,We.\n", "a.csv")))
        assert (item.id, item.group, item.target) == ("row-0000001", "row-0000001", "-")
        assert (item.response, item.fields) == ("We.", {})

    def test_the_last_suffix_says_what_it_is(self, tmp_path: Path) -> None:
        path = written(tmp_path, separated(answers(1)), "a.parquet.jsonl.csv")
        assert open_source(path).size == 1
        path = written(tmp_path, jsonl(answers(1)), "a.v1.jsonl")
        assert open_source(path).size == 1


class TestColumns:
    @pytest.mark.parametrize("response", ["response", "answer", "output", "Completion", " Answer "])
    @pytest.mark.parametrize("question", ["question", "prompt", "query", "INPUT"])
    def test_usual_names(self, tmp_path: Path, response: str, question: str) -> None:
        (item,) = opened(tmp_path, [{response: "a", question: "q", "other": "o"}])
        assert (item.response, item.question, item.fields) == ("a", "q", {"other": "o"})

    @pytest.mark.parametrize(
        ("purpose", "name"),
        [
            ("target", "target"), ("target", "Model"), ("group", "group"), ("group", "post_id"),
            ("group", "question_id"), ("group", "cluster"), ("id", "id"), ("id", "item_id"),
        ],
    )  # fmt: skip
    def test_usual_names_of_the_others(self, tmp_path: Path, purpose: str, name: str) -> None:
        (item,) = opened(tmp_path, [{"response": "a", name: "x"}])
        assert getattr(item, purpose) == {"id": "x"}.get(purpose, "x")
        assert item.fields == {}

    def test_names_that_are_given(self, tmp_path: Path) -> None:
        row = {
            "response": "no",
            "text": "a",
            "ask": "q",
            "who": "m",
            "nr": "1",
            "g": "2",
            "id": "x",
        }
        columns = Columns(response="text", question="ask", target="who", id="nr", group="g")
        (item,) = opened(tmp_path, [row], columns)
        assert item == JudgedItem(
            id="1/m",
            group="2",
            target="m",
            question="q",
            response="a",
            fields={"response": "no", "id": "x"},
        )

    def test_a_column_is_set_aside(self, tmp_path: Path) -> None:
        row = {"response": "a", "model": "m", "id": "1", "group": "g", "prompt": "p", "query": "q"}
        columns = Columns(target="-", id="-", group="-", question="-")
        (item,) = opened(tmp_path, [row], columns)
        assert (item.id, item.target, item.group, item.question) == (
            "row-0000001", "-", "row-0000001", "",
        )  # fmt: skip
        assert item.fields == {"model": "m", "id": "1", "group": "g", "prompt": "p", "query": "q"}


class TestGroups:
    @pytest.mark.parametrize(
        ("rows", "groups"),
        [
            ([{"id": 1, "model": "a"}, {"id": 1, "model": "b"}, {"id": 2, "model": "a"}], "001"),
            ([{"question": "q", "model": "a"}, {"question": "q", "model": "b"}], "00"),
            ([{"question": "q", "model": "a"}, {"question": "Q", "model": "b"}], "01"),
            ([{"question": "q"}, {"question": "q"}], "01"),
            ([{"model": "a"}, {"model": "a"}], "01"),
            ([{"id": 1, "cluster": "x"}, {"id": 2, "cluster": "x"}, {"id": 3}], "001"),
            ([{"question": "q", "model": "a", "group": g} for g in ("x", "y")], "01"),
        ],
        ids=["id", "question", "other-question", "no-target", "nothing", "column", "column-first"],
    )
    def test_what_is_a_group(self, tmp_path: Path, rows: list[Row], groups: str) -> None:
        found = opened(tmp_path, [{"response": "r", **row} for row in rows])
        names = [item.group for item in found]
        assert "".join(str(names.index(name) and 1) for name in names) == groups
        assert len({item.id for item in found}) == len(rows)


class TestValues:
    @pytest.mark.parametrize(
        ("value", "text"),
        [
            ("NO", "NO"), ("", None), (None, None), (0, "0"), (12, "12"), (-0.25, "-0.25"),
            (True, "yes"), (False, "no"), (math.nan, None), ([1], None), ({"a": 1}, None),
            (" ", " "), (2**63, "9223372036854775808"), ("\u0000", "\u0000"),
        ],
        ids=repr,
    )  # fmt: skip
    def test_plain_values_are_fields(self, tmp_path: Path, value: Any, text: str | None) -> None:
        (item,) = opened(tmp_path, [{"response": "a", "x": value}])
        assert item.fields.get("x") == text

    @pytest.mark.parametrize("value", ["", None, " ", "\n\t\u00a0\u2028", math.nan, ...], ids=repr)
    @pytest.mark.parametrize("name", ["a.jsonl", "a.parquet", "array.json"])
    def test_a_blank_response_is_counted_and_no_answer(
        self, tmp_path: Path, value: Any, name: str
    ) -> None:
        row = {"response": value} if value is not ... else {}
        rows = [{"id": "a", "response": "We."}, {"id": "b", **row}]
        if name == "a.parquet" and isinstance(value, float):
            rows[0]["response"] = 1.5
        source = open_source(written(tmp_path, FORMS[name](rows), name))
        assert (source.size, source.answered) == (2, 1)
        first, second = items_of(source)
        assert (first.outcome, second.outcome) == (Outcome.OK, Outcome.UNPARSED)
        assert second.reason == "the file has no response"

    @pytest.mark.parametrize(
        "text",
        [
            "\ud800 half", "a\u0000b", "one\u2028two\u0085three", "{question} {{response}} %s",
            "##Insider## <|END|>", "\ufeffmark", "=1+1", "x" * 9_000_000,
        ],
        ids=lambda text: ascii(text[:12]),
    )  # fmt: skip
    def test_texts_stay_letter_for_letter(self, tmp_path: Path, text: str) -> None:
        source = open_source(written(tmp_path, [{"id": text[:9], "response": text, "c": text[:9]}]))
        (item,) = items_of(source)
        assert (item.response, item.id, item.fields) == (text, text[:9], {"c": text[:9]})
        labelled(tmp_path / "run", job_of(source), opener=opening(helpers()))
        (found,) = items_of(open_source(tmp_path / "run"))
        assert found.response == text

    def test_ids_stay_as_they_are(self, tmp_path: Path) -> None:
        rows = [{"id": i, "response": "a"} for i in ("00123", 123, "1e5", 100000, -1, True)]
        names = [item.id for item in opened(tmp_path, rows)]
        assert names == ["00123", "123", "1e5", "100000", "-1", "yes"]

    def test_cells_of_parquet(self, tmp_path: Path) -> None:
        import pyarrow as pa

        rows: list[Row] = [
            {"id": 1, "response": 1.5, "n": 3, "b": True, "when": 0, "list": ["x"], "raw": b"x"},
            {"id": 2, "response": None, "n": None, "b": None, "when": None},
            {"id": 3, "response": math.nan, "n": 0, "b": False, "when": 1},
        ]
        content = parquet(rows, id=pa.int32(), when=pa.timestamp("s", tz="UTC"))
        found = items_of(open_source(written(tmp_path, content, "a.parquet")))
        assert [item.id for item in found] == ["1", "2", "3"]
        assert [item.response for item in found] == ["1.5", "", ""]
        assert [item.fields for item in found] == [
            {"n": "3", "b": "yes", "when": "1970-01-01 00:00:00+00:00"},
            {},
            {"n": "0", "b": "no", "when": "1970-01-01 00:00:01+00:00"},
        ]


GOOD = jsonl(answers(3))
QUESTIONS = ("maxims.relation",)
BAD: list[tuple[str, str, bytes, Sequence[str], str]] = [
    ("no-such-file", "none.jsonl", b"", (), "none.jsonl: no such file or run"),
    ("suffix", "a.txt", GOOD, (), "a.txt: rows are read from .jsonl, .json, .csv, .tsv, .xlsx and"),
    ("no-suffix", "answers", GOOD, (), "answers: rows are read from"),
    ("compressed-csv", "a.csv.gz", gzip.compress(b"response\na\n"), (), "a.csv.gz: rows are read"),
    ("empty", "a.jsonl", b"", (), "a.jsonl has no rows"),
    ("blank-lines", "a.jsonl", b"\n \n", (), "a.jsonl has no rows"),
    ("empty-array", "a.json", b"[]", (), "a.json has no rows"),
    ("empty-csv", "a.csv", b"", (), "a.csv has no rows"),
    ("heading-alone", "a.csv", b"id,response\r\n", (), "a.csv has no rows"),
    ("ragged-long", "a.csv", b"id,response\n1,a\n2,b,c\n", (), "a.csv:3: 3 cells under 2 headings"),
    ("ragged-short", "a.csv", b'id,response\n1,"a\nb"\n2\n', (), "a.csv:4: 1 cells under 2 head"),
    ("open-quote", "a.csv", b'id,response\n1,"a\n', (), "a.csv:2: no CSV: unexpected end of data"),
    ("stray-quote", "a.csv", b'id,response\n1,"a"b\n', (), "a.csv:2: no CSV: "),
    ("two-columns", "a.csv", b"response,response\na,b\n", (), "a.csv has two columns 'response'"),
    ("semicolons", "a.csv", b"id;response\n1;a\n", (), "response; it has 'id;response': say which"),
    ("latin-csv", "a.csv", b"response\ncaf\xe9\n", (), "a.csv is not UTF-8 (byte 12); save it as"),
    ("latin-json", "a.jsonl", GOOD + b'{"response":"caf\xe9"}\n', (), "a.jsonl:4: not UTF-8; save"),
    ("utf-16", "a.csv", "response\na\n".encode("utf-16"), (), "a.csv is not UTF-8 (byte 0)"),
    ("broken-line", "a.jsonl", GOOD + b'{"response": "a\n', (), "a.jsonl:4: no JSON: "),
    ("array-line", "a.jsonl", GOOD + b'["a"]\n', (), "a.jsonl:4: each line must hold one JSON obj"),
    ("text-line", "a.jsonl", b'"a"\n', (), "a.jsonl:1: each line must hold one JSON object"),
    ("deep", "a.jsonl", b"[" * 10**5, (), "a.jsonl: no JSON: "),
    ("deep-line", "a.jsonl", GOOD + b'{"a":' + b"[" * 10**5, (), "a.jsonl:4: no JSON: "),
    ("array-of-texts", "a.json", b'[{"response":"a"},"b"]', (), "a.json: row 2 of the array is no"),
    ("cut-array", "a.json", b'[{"response":"a"},\n{"resp', (), "a.json: no JSON: "),
    ("one-object", "a.json", b'{\n "response": "a"\n}', (), "no JSON: "),
    (
        "one-object-hint",
        "a.json",
        b'{\n "a": []\n}',
        (),
        "(write one object a line, or one array of",
    ),
    ("two-of-one-id", "a.jsonl", GOOD + GOOD, (), "rows 1 and 4 have the same id '000/llama-9'"),
    (
        "ids-alike",
        "a.csv",
        b"id,response\n1,a\n2,b\n1,c\n",
        (),
        "rows 1 and 3 have the same id '1'",
    ),
    (
        "ambiguous",
        "a.csv",
        b"response,output\na,b\n",
        (),
        "response could be in response or output",
    ),
    ("no-question", "a.csv", b"response\na\n", QUESTIONS, "a.csv has no column for the question;"),
    (
        "no-response",
        "a.csv",
        b"x,y\na,b\n",
        (),
        "for the response; it has 'x', 'y': say which with",
    ),
    (
        "many-columns",
        "a.csv",
        ",".join(f"c{i}" for i in range(90)).encode() + b"\n" + b"," * 89 + b"\n",
        (),
        "'c19' and 70 more: say which with --column response=NAME",
    ),
    (
        "list",
        "a.jsonl",
        GOOD + b'{"response": ["a"]}\n',
        (),
        "row 4 has no text in 'response' (it is",
    ),
    (
        "object",
        "a.json",
        b'[{"response":"a","question":[{"role":"user"}]}]',
        (),
        "row 1 has no text in 'question' (it is of type list): name another column with --column question=NAME, or ",
    ),
    ("bytes", "a.parquet", parquet([{"response": b"a"}]), (), "row 1 has no text in 'response'"),
    ("no-parquet", "a.parquet", GOOD, (), "a.parquet cannot be read as Parquet: "),
    ("cut-parquet", "a.parquet", parquet(answers(3))[:400], (), "a.parquet cannot be read as Parq"),
    (
        "damaged-parquet",
        "a.parquet",
        parquet(answers(3))[:20] + b"\xff" * 30 + parquet(answers(3))[50:],
        (),
        "a.parquet cannot be read as Parquet: ",
    ),
    (
        "cut-zst",
        "a.jsonl.zst",
        zstandard.compress(jsonl(answers(3000)))[:-9],
        (),
        "a.jsonl.zst: the file is cut off: its compressed data has no end",
    ),
    (
        "cut-gz-in-a-line",
        "a.jsonl.gz",
        gzip.compress(jsonl(answers(3000)))[:9000],
        (),
        "a.jsonl.gz: the file is cut off: its compressed data has no end",
    ),
    ("not-zst", "a.jsonl.zst", GOOD, (), "a.jsonl.zst: cannot be read to its end: it does not be"),
]


@pytest.fixture
def terminal(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Terminal:
    return terminal_in(tmp_path, monkeypatch, capsys)


class TestFaults:
    @pytest.mark.parametrize(
        ("name", "content", "judges", "message"), [row[1:] for row in BAD], ids=[r[0] for r in BAD]
    )
    def test_a_fault_is_one_message_and_costs_no_call(
        self, terminal: Terminal, name: str, content: bytes, judges: Sequence[str], message: str
    ) -> None:
        if name != "none.jsonl":
            written(terminal.folder, content, name)
        model = "{backend: scripted, options: {script: helpers}}"
        wanted = ",".join(judges or ["positioning"])
        code, out, err = terminal("judge", name, "--model", model, "--judges", wanted)
        assert (code, out) == (2, "")
        assert message in err
        assert err.count("\n") == 1
        assert not (terminal.folder / "runs").exists()

    def test_a_folder_is_no_run(self, tmp_path: Path) -> None:
        with pytest.raises(UsageError, match="is a folder and no run; name a file or a run"):
            open_source(tmp_path)

    def test_columns_of_a_run_have_their_names(self, small: Path) -> None:
        with pytest.raises(UsageError, match="columns and sheets are named for files"):
            open_source(small, Columns(response="text"))

    @pytest.mark.parametrize("given", ["text", "who"])
    def test_a_column_that_is_not_there(self, tmp_path: Path, given: str) -> None:
        with pytest.raises(UsageError, match=f"no column '{given}'; it has 'id', 'model', 'qu"):
            opened(tmp_path, answers(1), Columns(target=given))

    def test_what_is_set_aside_may_be_nested(self, tmp_path: Path) -> None:
        rows = [{"response": "a", "prompt": [{"role": "user", "content": "q"}]}]
        (item,) = opened(tmp_path, rows, Columns(question="-"))
        assert (item.question, item.fields) == ("", {})


def target_fails(request: Request) -> Any:
    """Targets refuse under ``hist`` and give nothing under ``ccot``."""
    if request.context.get("role") != "target":
        return None
    setting = request.context["setting"]
    if setting == "hist":
        return failing(Outcome.REFUSED, "filter")
    return "" if setting == "ccot" else None


def study(folder: Path, script: Callable[[Request], Any] | None = None, **request: Any) -> Path:
    """A run of the small study."""
    request = {"out": folder / "run", **request}
    run_experiment(study_of(folder), RunRequest(**request, opener=opening(Answering(script))))
    return folder / "run"


@pytest.fixture(scope="module")
def small(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return study(tmp_path_factory.mktemp("small"))


class TestRuns:
    def test_every_response_is_an_item(self, small: Path) -> None:
        source = open_source(small)
        assert (source.name, source.kind, source.size, source.answered) == (
            "run",
            "responses",
            14,
            14,
        )
        items = {item.id: item for item in source.read()}
        shared = items["main/none/-/harbour-001/r0"]
        assert shared.fields == {
            "setting": "none", "persona": "-", "query": "harbour-001", "topic": "skin",
            "repeat": "0",
        }  # fmt: skip
        assert shared.group == "-/harbour-001"
        own = items["main/hist/harbour-01/harbour-002/r0"]
        assert (own.group, own.target) == ("harbour-01", "main")
        assert own.question.startswith("since they changed my shift")
        assert own.response.startswith("Here is what I would do")
        plain = {key: value for key, value in own.fields.items() if "." not in key}
        assert plain == {
            "setting": "hist", "persona": "harbour-01", "query": "harbour-002", "topic": "sleep",
            "repeat": "0", "culture": "harbour",
        }  # fmt: skip
        with RunDir.open(small, write=False) as run:
            states = read_materials(run).personas["harbour-01"].states
        words = {1: "follow", 0: "neutral", -1: "avoid"}
        assert set(states.values()) == set(words)
        told = {key: value for key, value in own.fields.items() if key.startswith("state.")}
        assert told == {f"state.{norm}": words[state] for norm, state in states.items()}
        met = {key: value for key, value in own.fields.items() if key.startswith("met.")}
        assert set(met) == {f"met.{norm}" for norm, state in states.items() if state}
        assert set(met.values()) <= {"yes", "no"}

    def test_the_fields_are_what_the_records_say(self, small: Path) -> None:
        lines = (small / "records" / "evaluations.jsonl").read_text("utf-8").splitlines()
        said = {
            (found["response"], f"met.{verdict['norm']}"): "yes" if verdict["satisfied"] else "no"
            for found in map(json.loads, lines)
            for verdict in found["verdicts"]
            if "/-/" not in found["response"]
        }
        items = items_of(open_source(small))
        read = {
            (item.id, name): value
            for item in items
            for name, value in item.fields.items()
            if name.startswith("met.")
        }
        assert read == said
        assert len(read) > 20

    def test_failed_responses_are_counted_and_not_judged(self, tmp_path: Path) -> None:
        source = open_source(study(tmp_path, target_fails))
        assert (source.size, source.answered) == (14, 6)
        found = {item.fields["setting"]: (item.outcome, item.reason) for item in source.read()}
        assert found["hist"] == (Outcome.REFUSED, "filter")
        assert found["ccot"] == (Outcome.UNPARSED, "empty")
        assert found["none"] == found["norms"] == (Outcome.OK, "")

    def test_what_was_not_read_is_neither_met_nor_not_met(self, tmp_path: Path) -> None:
        model = lambda r: "Fine." if r.context.get("role") == "evaluator" else None  # noqa: E731
        items = items_of(open_source(study(tmp_path, model)))
        assert not any(name.startswith("met.") for item in items for name in item.fields)

    def test_a_run_without_responses(self, tmp_path: Path) -> None:
        path = study(tmp_path, until=Stage.HISTORIES)
        with pytest.raises(UsageError, match=r"has no responses yet; `habitus status .*run` says"):
            open_source(path)

    def test_a_run_in_which_nothing_was_run(self, tmp_path: Path, small: Path) -> None:
        with RunDir.open(small, write=False) as run:
            RunDir.create(tmp_path / "empty", run.config).close()
        with pytest.raises(UsageError, match="has no responses yet"):
            open_source(tmp_path / "empty")

    def test_a_run_from_before_it_said_who_makes_answers_up(
        self, tmp_path: Path, small: Path
    ) -> None:
        shutil.copytree(small, tmp_path / "run")
        (tmp_path / "run" / "made_up.json").unlink()
        assert open_source(tmp_path / "run").made_up == {"main"}

    def test_targets_that_make_their_answers_up(self, small: Path) -> None:
        assert open_source(small).made_up == {"main"}

    def test_the_run_is_not_touched(self, small: Path, tmp_path: Path) -> None:
        before = {path.name: path.stat().st_mtime_ns for path in small.rglob("*")}
        labelled(tmp_path / "labels", job_of(small), opener=opening(helpers()))
        assert {path.name: path.stat().st_mtime_ns for path in small.rglob("*")} == before

    def test_labels_of_a_run_are_the_same_judged_anew(self, small: Path, tmp_path: Path) -> None:
        labelled(tmp_path / "first", job_of(small), opener=opening(helpers()))
        again = open_source(tmp_path / "first")
        assert again.kind == "responses"
        assert items_of(again) == sorted(items_of(open_source(small)), key=lambda item: item.id)
        labelled(tmp_path / "second", job_of(again), opener=opening(helpers()))
        first, second = kept(tmp_path / "first"), kept(tmp_path / "second")
        for name in ("items.jsonl", "labels.jsonl"):
            assert first[name] == second[name]

    def test_judges_that_made_their_labels_up_do_not_make_the_items_synthetic(
        self, tmp_path: Path
    ) -> None:
        path = written(tmp_path, answers(2, model="fake"))
        for target, made_up in (("small", set[str]()), ("fake", {"fake"})):
            job = job_of(path, models={target: MADE_UP})
            labelled(tmp_path / target, job)
            assert open_source(tmp_path / target).made_up == made_up
        job = job_of(tmp_path / "small", models={"real": REAL})
        labelled(tmp_path / "again", job, opener=opening(helpers()))
        assert json.loads(kept(tmp_path / "again")["labelling.json"])["made_up"] == []
