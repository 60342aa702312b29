"""Every reader of what people, models and disks give: one message, or what was there; no traceback.

A few damaged files each here; 2,000 for each property under ``make soak``.
"""

from __future__ import annotations

import bz2
import contextlib
import gzip
import io
import json
import lzma
import re
import shutil
import subprocess
import sys
import zipfile
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import openpyxl
import orjson
import pytest
import zstandard
from hypothesis import example, given
from hypothesis import strategies as st
from openpyxl.utils.exceptions import IllegalCharacterError

from damage import (
    ANY_JSON,
    PIECES,
    Whole,
    command,
    damaged,
    damaged_bytes,
    damaged_text,
    tell,
    thorough,
)
from habitus.cli.finding import model_entry, read_changes
from habitus.cli.kinds import KINDS, Kind
from habitus.content import read_yaml, shipped_root
from habitus.corpora import LineReader, read_posts
from habitus.experiments import resolve
from habitus.histories.script import ScriptError, read_script
from habitus.labelling import Columns, open_source
from habitus.models.quirks import Quirks
from habitus.models.reading import error_inside, read_completion
from habitus.models.rejections import learn, read_rejection
from habitus.models.retries import RetryPolicy
from habitus.models.thinking import split_thinking
from habitus.records import Outcome
from labelling_fixture import FORMS, answers, job_of, labelled, written
from loopback import completion
from study_fixture import WORKSPACE, harbour, helpers, opening, study_of

_SMALL = 8000  # bytes


LEXICON = b"demonyms: [korean]\ncountries: [korea]\npatterns:\n  - 'i am {demonym}'\n"
LEXICON_DATA = {"demonyms": ["korean"], "countries": ["korea"], "patterns": ["i am {demonym}"]}


def _samples(kind: Kind) -> list[Whole]:
    """The small shipped files of a kind."""
    roots = [shipped_root(), WORKSPACE]
    paths = [path for root in roots for path in sorted((root / kind.folder).glob(kind.pattern))]
    small = [path for path in paths if path.stat().st_size < _SMALL][:4]
    return [_whole(path) for path in small] or [Whole(LEXICON, LEXICON_DATA)]


def _whole(path: Path) -> Whole:
    return Whole(path.read_bytes(), read_yaml(path).data if path.suffix == ".yaml" else None)


class TestContent:
    @pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.name.replace(" ", "-"))
    def test_a_damaged_file_is_told_with_its_place(self, tmp_path: Path, kind: Kind) -> None:
        samples = _samples(kind)
        harbour(tmp_path)
        path = tmp_path / kind.folder / kind.pattern.replace("*/", "some/").replace("*", "damaged")
        path.parent.mkdir(parents=True, exist_ok=True)
        if kind.name in {"judge", "judge examples"}:
            shutil.copytree(WORKSPACE / "judges" / "politeness", path.parent, dirs_exist_ok=True)

        @thorough
        @given(damaged_text(samples))
        def check(content: bytes) -> None:
            path.write_bytes(content)
            tell(lambda: kind.load(path))

        check()

    @thorough
    @given(st.binary(max_size=60) | st.lists(st.sampled_from(PIECES)).map("".join).map(str.encode))
    def test_any_bytes_are_no_yaml_or_data(self, tmp_path: Path, content: bytes) -> None:
        path = tmp_path / "any.yaml"
        path.write_bytes(content)
        tell(lambda: read_yaml(path))

    def test_an_experiment_on_a_damaged_file(self, tmp_path: Path) -> None:
        """Whatever of its files is damaged: it is refused with one message, or it resolves."""
        harbour(tmp_path)
        files = [path for path in sorted(tmp_path.rglob("*.*")) if path.suffix in {".yaml", ".md"}]
        contents = {path: _whole(path) for path in files}

        @thorough
        @given(st.data(), st.sampled_from(files))
        def check(data: st.DataObject, path: Path) -> None:
            path.write_bytes(data.draw(damaged_text([contents[path]])))
            tell(lambda: resolve(tmp_path / "experiments" / "first.yaml"))
            path.write_bytes(contents[path].text)

        check()

    @thorough
    @given(
        st.sampled_from(
            ["seed", "personas", "history.exchanges", "models.main", "models.main.options.rules",
             "targets.main.temperature", "settings", "limits", "results", "queries.file", "x.y", "id",
             "cultures", "roles.persona", "history.domain_openers", "population", "domain"]
        ),
        ANY_JSON.map(json.dumps) | st.text(max_size=12) | st.sampled_from(PIECES),
    )  # fmt: skip
    @example("models", '{"a":' * 3000)
    def test_a_value_that_is_set(self, tmp_path: Path, key: str, value: str) -> None:
        if not (tmp_path / "experiments").exists():
            harbour(tmp_path)
        path = tmp_path / "experiments" / "first.yaml"
        tell(lambda: resolve(path, read_changes([f"{key}={value}"])))

    @thorough
    @given(
        st.text(max_size=20) | st.sampled_from(PIECES), damaged({"backend": "openai", "model": "m"})
    )
    def test_a_model_that_is_named(self, text: str, entry: Any) -> None:
        tell(lambda: model_entry(text))
        tell(lambda: model_entry("{" + text))
        tell(lambda: model_entry(json.dumps(entry)))


LABELS = {"n1": "N1", "n2": "N2"}
TALK = st.lists(
    st.sampled_from(
        ["ASSISTANT: ", "PERSONA: ", "\n", "**PERSONA:** ", "### ASSISTANT:", "opener", " words ",
         "NORM STATES\n", "N1: follow\n", "N2: avoid\n", "N1: neutral\n", "- `N2`: **follow**\n", "---\n",
         "```\n", "\0", "\u2028", "NORM STATES", "persona:", "assistant :"]
    )
    | st.text(max_size=5),
    max_size=14,
).map("".join)  # fmt: skip


class TestModels:
    @thorough
    @given(TALK)
    @example("ASSISTANT: \nPERSONA: a\nASSISTANT: b\nNORM STATES\nN1: follow\n")
    @example("ASSISTANT: a\nASSISTANT: b\nNORM STATES\nN1: follow\n")
    def test_a_dialogue_alternates_or_is_none(self, text: str) -> None:
        try:
            script = read_script(text, "opener", LABELS)
        except ScriptError:
            return
        speakers = [turn.speaker for turn in script.turns]
        assert speakers == (["assistant", "persona"] * len(speakers))[: len(speakers)]
        assert speakers[-1:] == ["assistant"]
        assert all(turn.text == turn.text.strip() != "" for turn in script.turns)
        assert script.states.keys() <= LABELS.keys()

    @thorough
    @given(
        damaged(json.loads(completion({"content": "Rice.", "reasoning": "so"}))).map(json.dumps)
        | damaged_bytes(completion({"content": "Rice."})).map(lambda b: b.decode("latin-1"))
    )
    def test_a_body_has_one_outcome(self, text: str) -> None:
        body = text.encode("latin-1", "replace")
        read = read_completion(body, Quirks())
        assert (read.outcome is Outcome.OK) == (not read.reason)
        assert read.outcome is not Outcome.OK or read.text.strip()
        for found in (read.text, read.reason, read.reasoning, read.raw, read.finish or ""):
            found.encode()
            assert "\0" not in found
        status = error_inside(body)
        assert status is None or 400 <= status < 600
        orjson.dumps(dict(read.reply({}, 0.0).sent))

    @thorough
    @given(
        st.sampled_from([400, 401, 403, 413, 422, 429, 451, 500, 503]),
        damaged({"error": {"message": "max_tokens is not supported", "code": "x", "type": None}})
        .map(json.dumps)
        .map(str.encode)
        | st.binary(max_size=40),
    )
    def test_an_error_body_is_read(self, status: int, body: bytes) -> None:
        rejection = read_rejection(status, body)
        assert rejection.reason
        learn(rejection, Quirks(), {"max_tokens", "temperature", "system", "schema"})

    @thorough
    @given(
        st.text(max_size=30)
        | st.sampled_from(["1e999", "-1", "Fri, 31 Dec 9999 23:59:59 GMT", "Mon, 01 Jan 0001"]),
        st.floats(0, 1e10),
    )
    @example(value="0\x1f", wall=0.0)
    def test_a_wait_is_bounded(self, value: str, wall: float) -> None:
        policy = RetryPolicy()
        for header in ("retry-after", "retry-after-ms"):
            told = policy.told({header: value}, wall)
            assert told is None or 0 <= told <= policy.longest_told

    @thorough
    @given(st.lists(st.sampled_from(["<think>", "</think>", "<Think >", "a", " ", "\n", "<", "[", "/"]))
           .map("".join))  # fmt: skip
    def test_reasoning_is_taken_out(self, text: str) -> None:
        split = split_thinking(text)
        assert "<think>" not in split.text
        assert len(split.text) <= len(text)


COMPRESS: dict[str, Callable[[bytes], bytes]] = {
    "": bytes, ".gz": gzip.compress, ".zst": zstandard.compress, ".bz2": bz2.compress,
    ".xz": lzma.compress,
}  # fmt: skip
ROWS = answers(3, country="x", nested={"a": [1, None]})


class TestRows:
    @pytest.mark.parametrize("name", [*FORMS, "a.csv.gz", "a.txt", "a"])
    def test_a_damaged_file_of_answers(self, tmp_path: Path, name: str) -> None:
        whole = FORMS[name](answers(3)) if name in FORMS else b"id,response\n1,a\n"
        path = tmp_path / name

        @thorough
        @given(damaged_bytes(whole), st.sampled_from(["", "id", "x", "response"]))
        def check(content: bytes, column: str) -> None:
            path.write_bytes(content)
            tell(lambda: list(open_source(path, Columns(response=column)).read()))

        check()

    @pytest.mark.parametrize("suffix", COMPRESS)
    def test_odd_values_in_rows(self, tmp_path: Path, suffix: str) -> None:
        path = tmp_path / f"a.jsonl{suffix}"

        @thorough
        @given(damaged(ROWS), st.sampled_from([set(), {"question"}, {"response", "question"}]))
        def check(rows: Any, needs: set[str]) -> None:
            rows = rows if isinstance(rows, list) else [rows]
            lines = [json.dumps(row).encode() for row in rows]
            path.write_bytes(COMPRESS[suffix](b"\n".join(lines)))
            tell(lambda: list(open_source(path, None, needs).read()))

        check()


def parts_of(book: bytes) -> dict[str, bytes]:
    """The parts of a workbook."""
    with zipfile.ZipFile(io.BytesIO(book)) as archive:
        return {name: archive.read(name) for name in archive.namelist()}


def packed(parts: Mapping[str, bytes], packing: int = zipfile.ZIP_DEFLATED) -> bytes:
    """Parts as an archive."""
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", packing) as archive:
        for name, content in parts.items():
            archive.writestr(name, content)
    return out.getvalue()


#: Workbooks by two writers: texts in the cells, and texts that cells share, with styles and a link.
BOOKS = [FORMS[name](answers(3, score=0.5, at=None)) for name in ("a.xlsx", "hand.XLSX")]
CELL = st.sampled_from(
    ["s", "n", "b", "e", "str", "inlineStr", "d", "", "x", "0", "7", "1e400", "nan", "-1", "2958466",
     "0.5", "#N/A", "A1", "ZZZ9", "A0", "_x0000_", "_xD800_", "&#0;", "<f>1</f>", "<v>", "</c>", "</row>",
     '" r="A1', "<row>", "<mergeCell ref='A1'/>", "<!DOCTYPE a>", "<![CDATA[", "]]>", "<!--", "&lt;"]
)  # fmt: skip


class TestWorkbooks:
    @pytest.mark.parametrize("book", BOOKS, ids=["ours", "another writer's"])
    @pytest.mark.parametrize("packing", [zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED])
    def test_a_damaged_archive(self, tmp_path: Path, book: bytes, packing: int) -> None:
        path = tmp_path / "a.xlsx"

        @thorough
        @given(damaged_bytes(packed(parts_of(book), packing)))
        def check(content: bytes) -> None:
            path.write_bytes(content)
            tell(lambda: list(open_source(path).read()))

        check()

    @pytest.mark.parametrize("book", BOOKS, ids=["ours", "another writer's"])
    def test_a_damaged_part(self, tmp_path: Path, book: bytes) -> None:
        parts = parts_of(book)
        path = tmp_path / "a.xlsx"

        @thorough
        @given(st.data(), st.sampled_from(sorted(parts)))
        def check(data: st.DataObject, name: str) -> None:
            content = data.draw(damaged_bytes(parts[name]))
            path.write_bytes(packed(parts | {name: content}, zipfile.ZIP_STORED))
            tell(lambda: list(open_source(path).read()))

        check()

    @pytest.mark.parametrize("book", BOOKS, ids=["ours", "another writer's"])
    def test_odd_values_in_cells(self, tmp_path: Path, book: bytes) -> None:
        """Values and attributes of cells, replaced in the XML, so that it mostly stays XML."""
        parts = parts_of(book)
        name = "xl/worksheets/sheet1.xml"
        places = [m.span(1) for m in re.finditer(rb"[>\"]([^<>\"]+)[<\"]", parts[name])]
        path = tmp_path / "a.xlsx"

        @thorough
        @given(st.lists(st.tuples(st.sampled_from(places), CELL), min_size=1, max_size=3))
        def check(changes: list[tuple[tuple[int, int], str]]) -> None:
            content = parts[name]
            for (start, end), value in sorted(changes, reverse=True):
                content = content[:start] + value.encode() + content[end:]
            path.write_bytes(packed(parts | {name: content}, zipfile.ZIP_STORED))
            tell(lambda: list(open_source(path).read()))

        check()

    @thorough
    @given(
        st.lists(
            st.lists(st.none() | st.booleans() | st.integers() | st.floats() | st.datetimes() | st.times()
                     | st.timedeltas() | st.dates() | st.text(max_size=20) | st.sampled_from(PIECES),
                     max_size=4),
            max_size=5,
        )
    )  # fmt: skip
    def test_any_values_of_another_writer(self, tmp_path: Path, rows: list[list[Any]]) -> None:
        book = openpyxl.Workbook()
        for row in [["response", "id", "model"], *rows]:
            with contextlib.suppress(ValueError, IllegalCharacterError):
                book.worksheets[0].append(row)
        path = tmp_path / "a.xlsx"
        book.save(path)
        tell(lambda: list(open_source(path).read()))


class TestPosts:
    @pytest.mark.parametrize("suffix", COMPRESS)
    def test_a_damaged_dump(self, tmp_path: Path, suffix: str) -> None:
        """Its lines are all counted, or its damage is told; the form may be any of the five."""
        post = {"id": "a", "title": "t", "selftext": "b", "subreddit": "india", "num_comments": 1}
        lines = b"".join(json.dumps({**post, "id": n}).encode() + b"\n" for n in range(9))
        whole = COMPRESS[suffix](lines)
        path = tmp_path / f"RS{suffix}"

        @thorough
        @given(damaged_bytes(whole))
        def check(content: bytes) -> None:
            path.write_bytes(content)
            reader = LineReader(path)
            found: list[bytes | None] = []
            assert tell(lambda: found.extend(reader)) == ""
            if content == whole:
                assert (len(found), reader.damage) == (9, None)

        check()

    def test_a_damaged_footer_ends_no_process(self, tmp_path: Path) -> None:
        """Arrow lets exceptions of C++ through where a footer is asked for its columns."""
        whole = FORMS["a.parquet"]([{"id": f"{n}", "body": "b " * n} for n in range(9)])
        (tmp_path / "whole.parquet").write_bytes(whole)
        program = """
import contextlib, random
from pathlib import Path
from habitus.corpora import read_posts
from habitus.errors import UsageError

whole = Path("whole.parquet").read_bytes()
footer = len(whole) - 8 - int.from_bytes(whole[-8:-4], "little")
for seed in range(2500):
    draw, content = random.Random(seed), bytearray(whole)
    for _ in range(draw.randint(1, 3)):
        content[draw.randrange(footer, len(whole) - 8)] = draw.randrange(256)
    Path("a.parquet").write_bytes(bytes(content))
    with contextlib.suppress(UsageError):
        list(read_posts(Path("a.parquet"), ("id", "body")))
"""
        command = [sys.executable, "-c", program]
        ended = subprocess.run(
            command, cwd=tmp_path, capture_output=True, text=True, check=False, timeout=120
        )
        assert (ended.returncode, ended.stderr) == (0, "")

    def test_a_damaged_file_of_posts(self, tmp_path: Path) -> None:
        whole = FORMS["a.parquet"](
            [{"id": f"{n}", "title": "t", "body": "b " * n, "country": "x"} for n in range(9)]
        )
        path = tmp_path / "posts.parquet"

        @thorough
        @given(damaged_bytes(whole))
        def check(content: bytes) -> None:
            path.write_bytes(content)
            tell(lambda: list(read_posts(path, ("id", "title", "body"))))

        check()


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a finished run and a run of labels."""
    from habitus.experiments import RunRequest, run_experiment

    folder = tmp_path_factory.mktemp("finished")
    run_experiment(study_of(folder), RunRequest(out=folder / "run"))
    (folder / "run" / "learned.json").write_text('{"main": {"system_role": false}}')
    source = written(folder, answers(3))
    labelled(folder / "labels", job_of(source), opener=opening(helpers()))
    return folder


RUN_FILES = [
    *("manifest.json", "experiment.json", "study.json", "done.json", "made_up.json"),
    "learned.json",
]
LABEL_FILES = ["manifest.json", "experiment.json", "labelling.json", "made_up.json"]
CASES = [("run", file) for file in RUN_FILES] + [("labels", file) for file in LABEL_FILES]


class TestRuns:
    @pytest.mark.parametrize(("run", "file"), CASES, ids=[f"{run}-{file}" for run, file in CASES])
    def test_a_run_with_a_damaged_file(
        self, tmp_path: Path, finished: Path, run: str, file: str, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.chdir(tmp_path)
        shutil.copytree(finished / run, tmp_path / run)
        path = tmp_path / run / file
        whole = path.read_bytes()
        commands: list[list[str]] = [
            ["status", f"./{run}", "--verify"],
            ["results", f"./{run}"],
            ["analyze", f"./{run}"],
            ["export", f"./{run}", "--to", "consensus", "-o", "exported"],
        ]

        @thorough
        @given(damaged_text([Whole(whole, json.loads(whole))]), st.sampled_from(commands))
        def check(content: bytes, words: list[str]) -> None:
            path.write_bytes(content)
            shutil.rmtree(tmp_path / "exported", ignore_errors=True)
            command(*words)

        check()

    def test_a_damaged_analysis_of_a_run(
        self, tmp_path: Path, finished: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.chdir(tmp_path)
        folder = shipped_root() / "experiments" / "analyses"
        path = tmp_path / "damaged.yaml"

        @thorough
        @given(damaged_text([_whole(file) for file in sorted(folder.glob("*.yaml"))]))
        def check(content: bytes) -> None:
            path.write_bytes(content)
            command("analyze", str(finished / "labels"), "--analysis", str(path))

        check()
