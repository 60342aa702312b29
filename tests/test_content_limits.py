"""Content files made to take time, memory or another meaning: all end at a stated limit, or are text."""

from __future__ import annotations

import math
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import orjson
import pytest

from habitus.agents.jsontext import decode_json
from habitus.content import ContentModel, find, load, read_prompt, read_yaml, yamlfile
from habitus.content.places import beside
from habitus.content.yamlfile import MAX_ALIASES, MAX_BYTES, MAX_DEPTH
from habitus.errors import ContentError, NotFoundError, StoreError
from habitus.experiments.settings import load_setting
from habitus.histories.lexical import MOST_GAPS, MOST_SLOTS, MOST_WORDS, Lexicon, load_lexicon
from habitus.models.context import listed_length
from habitus.models.quirks import Quirks
from habitus.models.reading import error_inside, read_completion
from habitus.models.rejections import read_rejection
from habitus.records import Outcome
from habitus.store import RunDir

SIZE = 2**16  # enough to show what happens; seconds at the limit stand in SECURITY.md


def of(unit: str, size: int = SIZE) -> str:
    return unit * (size // len(unit))


def lines(make: Callable[[int], str]) -> str:
    return "".join(make(number) for number in range(4000))


DEEP = f"nested deeper than {MAX_DEPTH} levels"
#: Text of a file, and what is said of it; None where it is read.
LARGE: dict[str, tuple[Callable[[], str], str | None]] = {
    "dashes": (lambda: of("- "), DEEP),
    "lines of dashes": (lambda: of("-\n"), None),
    "brackets": (lambda: of("["), DEEP),
    "braces": (lambda: of("{"), DEEP),
    "braces with keys": (lambda: of("{a: "), DEEP),
    "question marks": (lambda: of("? "), DEEP),
    "deep block": (lambda: "\n".join("  " * i + "a:" for i in range(900)), DEEP),
    "a list": (lambda: f"[{of('1,')}1]", None),
    "keys without values": (lambda: f"{{{of('a,', 2000)}}}", "duplicate key"),
    "small mappings": (lambda: f"[{of('{a: b},')}1]", None),
    "keys": (lambda: lines("k{}: 1\n".format), None),
    "anchors": (lambda: lines("- &a{} x\n".format), None),
    "one key again and again": (lambda: of("a: 1\n", 2000), "duplicate key 'a'"),
    "plain words": (lambda: f"a: {of('x ')}", None),
    "plain lines": (lambda: f"a: x\n{of(' x' + chr(10))}", None),
    "quoted words": (lambda: f'a: "{of("x ")}"', None),
    "escapes": (lambda: f'a: "{of(chr(92) + "n")}"', None),
    "quoted line breaks": (lambda: f'a: "{of(chr(10))}"', None),
    "apostrophes": (lambda: "a: '" + of("''") + "'", None),
    "literal lines": (lambda: f"a: |\n{of('  x' + chr(10))}", None),
    "folded lines": (lambda: f"a: >\n{of('  x' + chr(10) + '   y' + chr(10))}", None),
    "blank lines": (lambda: f"{of(chr(10))}a: 1", None),
    "returns": (lambda: f"{of(chr(13))}a: 1", None),
    "comments": (lambda: f"{of('#' + chr(10))}a: 1", None),
    "one comment": (lambda: f"#{of('x')}\na: 1", None),
    "a long key": (lambda: f"{of('k')}: 1", "mapping values are not allowed"),
    "a long quoted key": (lambda: f'"{of("k")}": 1', "mapping values are not allowed"),
    "digits": (lambda: f"a: {of('1')}", "is not a number that can be read"),
    "digits behind a point": (lambda: f"a: 1.{of('1')}", None),
    "digits of sixty": (lambda: f"a: 1{of(':1')}", None),
    "underscores": (lambda: f"a: 1{of('_')}", None),
    "almost a date": (lambda: f"a: 2001-12-14 {of(' ')}x", None),
    "quotes": (lambda: of('"'), "not valid YAML"),
    "aliases of nothing": (lambda: of("*a "), "undefined alias"),
    "documents": (lambda: of("---\n"), "expected a single document"),
    "directives": (lambda: of("%A\n"), "directives are not read"),
    "tags by directive": (lambda: lines("%TAG !a{}! x\n".format), "directives are not read"),
}


class TestYaml:
    @pytest.mark.parametrize("name", LARGE)
    def test_a_file_made_to_be_hard_is_read_or_told_in_one_line(
        self, tmp_path: Path, name: str
    ) -> None:
        make, said = LARGE[name]
        path = tmp_path / "large.yaml"
        path.write_text(make(), encoding="utf-8", newline="")
        if said is None:
            assert read_yaml(path).data
            return
        with pytest.raises(ContentError) as error:
            read_yaml(path)
        assert said in str(error.value.problems[0])
        assert len(str(error.value.problems[0])) < 400

    def test_reading_stops_at_the_limit_and_not_behind_it(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """A file of 8 MiB can hold four million values; they are not made first and counted then."""
        monkeypatch.setattr(yamlfile, "MAX_PARTS", 100)
        path = tmp_path / "large.yaml"
        path.write_text("-\n" * 210 + "]", encoding="utf-8")
        with pytest.raises(ContentError, match="more than"):  # and not that a bracket is astray
            read_yaml(path)

    def test_a_depth_beyond_that_of_python_is_told_with_its_place(self, tmp_path: Path) -> None:
        path = tmp_path / "deep.yaml"
        path.write_text("[\n" * 5000, encoding="utf-8")
        with pytest.raises(ContentError, match=rf":{MAX_DEPTH + 2}:1: {DEEP}"):
            read_yaml(path)

    @pytest.mark.parametrize(
        "text",
        [
            "!!python/object/apply:os.system [id]",
            "!!python/object/new:os.system [id]",
            "!!python/name:os.system",
            "!!python/module:os",
            "!!python/tuple [1]",
            "!!binary aGk=",
            "!!set {a}",
            "!!omap [a: 1]",
            "!!timestamp 2001-01-01",
            "!habitus {a: 1}",
            "!<tag:yaml.org,2002:python/name:os.system> x",
        ],
    )
    def test_tags_make_nothing(self, tmp_path: Path, text: str) -> None:
        path = tmp_path / "tagged.yaml"
        path.write_text(f"a: {text}\n")
        try:
            data = read_yaml(path).data
        except ContentError as error:
            assert "is not allowed" in str(error)  # noqa: PT017  (either is right)
        else:
            assert data == {"a": "2001-01-01"}

    @pytest.mark.parametrize(
        ("text", "said"),
        [
            ("a: &a [*a]", "nested deeper"),
            ("a: &a {b: *a}", "nested deeper"),
            ("a: &a [x]\nb: [" + "*a, " * (MAX_ALIASES + 1) + "]", "aliases"),
            ("a: &a {x: 1}\nb: {<<: *a}", "merge keys"),
            ("--- a\n--- b", "expected a single document"),
            ("a: " + "9" * 5000, "not a number"),
            ("a: 0x" + "f" * 5000, None),
            ("a: 1e400", None),
        ],
        ids=["loop", "loop of keys", "aliases", "merge", "two", "digits", "hexadecimal", "float"],
    )
    def test_other_tricks(self, tmp_path: Path, text: str, said: str | None) -> None:
        path = tmp_path / "trick.yaml"
        path.write_text(text)
        if said is None:
            assert read_yaml(path).data.keys() == {"a"}
            return
        with pytest.raises(ContentError, match=said):
            read_yaml(path)


class Numbers(ContentModel):
    whole: int = 0
    share: float = 0.0


@pytest.mark.parametrize(
    "text", ["whole: 1.5", "whole: .inf", "whole: .nan", "whole: 1e400", "whole: 2001-01-01",
             "whole: true1", "share: [1]", "share: 1:30", "whole: 0x" + "f" * 400 + "g"],
)  # fmt: skip
def test_what_is_no_number_is_told(tmp_path: Path, text: str) -> None:
    path = tmp_path / "numbers.yaml"
    path.write_text(text)
    with pytest.raises(ContentError):
        load(path, Numbers)


def lexicon(*patterns: str, words: tuple[str, ...] = ("korean",)) -> Lexicon:
    return Lexicon(
        demonyms=words, countries=("a",), religions=("a",), faiths=("a",), patterns=patterns
    )


class TestPatterns:
    """The patterns of the lexicon are words and slots, no expressions, and none takes for ever."""

    @pytest.mark.parametrize(
        ("pattern", "text"),
        [
            ("i " + "{gap} " * MOST_GAPS + "am {demonym}", "korean " + "i " * 500),
            (" ".join(["ab|AB|ab"] * (MOST_WORDS - 1)) + " {demonym}", "korean " + "ab " * 9000),
            ("{demonym}|{demonym} " * MOST_SLOTS + "z", "korean " * 500),
        ],
        ids=["gaps", "choices", "slots"],
    )
    def test_the_worst_that_is_taken_comes_to_an_end(self, pattern: str, text: str) -> None:
        """Doubled choices, and gaps without a bound, would be tried in all their ways."""
        assert lexicon(pattern, words=("korean", "korean korean")).reveals(text) == ()

    @pytest.mark.parametrize(
        "pattern",
        ["{gap} " * (MOST_GAPS + 1) + "{demonym}", "a " * (MOST_WORDS + 1), "{demonym} " * 4],
        ids=["gaps", "words", "slots"],
    )
    def test_longer_ones_are_refused(self, tmp_path: Path, pattern: str) -> None:
        path = tmp_path / "lexicon.yaml"
        plain = "demonyms: [a]\ncountries: [a]\nreligions: [a]\nfaiths: [a]\npatterns:\n"
        path.write_text(f"{plain}  - '{pattern}'\n")
        with pytest.raises(ContentError, match=f"at most {MOST_WORDS} words, {MOST_GAPS} gaps"):
            load_lexicon(path)

    def test_an_expression_is_text(self) -> None:
        found = lexicon("(a+)+$ {demonym}")
        assert found.reveals("a" * 60 + " korean") == ()
        assert found.reveals("(a+)+$ korean") == ("(a+)+$ korean",)


DEEP_JSON = [
    '{"a":' * 100_000,
    "[" * 100_000,
    '{"a":' * 3000 + "1" + "}" * 3000,
    "[" * 900 + "]" * 900,
    '{"choices":' + "[" * 5000 + "]" * 5000 + "}",
    '{"choices": [{"message": {"content": ' + "[" * 2000 + "]" * 2000 + "}}]}",
    '{"error": ' + '{"message": ' * 2000 + "1" + "}" * 2001,
    '{"a": ' + "9" * 10_000 + "}",
    '{"choices": [{"message": {"content": "x"}}], "usage": {"prompt_tokens": ' + "9" * 9000 + "}}",
    '{"a": 1e999999999}',
    '{"a": NaN}',
]


@pytest.mark.parametrize("text", DEEP_JSON, ids=range(len(DEEP_JSON)))
def test_json_of_a_model_that_is_deep_or_large_has_an_outcome(text: str) -> None:
    read = read_completion(text.encode(), Quirks())
    assert read.outcome in set(Outcome)
    assert error_inside(text.encode()) in {None, 500}
    assert read_rejection(400, text.encode()).reason
    assert listed_length(text.encode(), "m") is None
    decoded = decode_json(text)
    assert decoded.problem or decoded.value is not None
    decoded = decode_json(f"Here it is: {text}")
    assert decoded.problem or decoded.value is not None


class TestPlaces:
    @pytest.mark.parametrize(
        "name", ["../secret.md", "x/../../secret.md", "/etc/passwd", "a\0.md", "..", "x" * 5000]
    )
    def test_what_is_looked_up_stays_in_its_folder(self, tmp_path: Path, name: str) -> None:
        (tmp_path / "secret.md").write_text("s")
        (tmp_path / "personas" / "x").mkdir(parents=True)
        with pytest.raises(NotFoundError):
            find("personas", name, tmp_path)

    def test_a_link_to_a_file_elsewhere_is_not_followed(self, tmp_path: Path) -> None:
        workspace, elsewhere = tmp_path / "workspace", tmp_path / "elsewhere.md"
        elsewhere.write_text("s")
        folder = workspace / "personas"
        folder.mkdir(parents=True)
        (folder / "p.md").symlink_to(elsewhere)
        with pytest.raises(ContentError, match="link to a file outside"):
            find("personas", "p.md", workspace)
        (folder / "q.md").write_text("q")
        (folder / "r.md").symlink_to(folder / "q.md")
        assert find("personas", "r.md", workspace).read_text() == "q"

    def test_a_whole_folder_may_lie_elsewhere(self, tmp_path: Path) -> None:
        workspace, shared = tmp_path / "workspace", tmp_path / "shared"
        workspace.mkdir()
        shared.mkdir()
        (shared / "p.md").write_text("p")
        (workspace / "personas").symlink_to(shared)
        assert find("personas", "p.md", workspace).read_text() == "p"
        assert beside(workspace / "personas" / "p.md", "p.md").read_text() == "p"

    @pytest.mark.parametrize(
        "name", ["../../secret.md", "/etc/passwd", "..", "a/b.md", "a\\\\b.md", "link.md"]
    )
    def test_a_prompt_lies_beside_the_file_that_names_it(self, tmp_path: Path, name: str) -> None:
        folder = tmp_path / "experiments" / "settings"
        folder.mkdir(parents=True)
        (tmp_path.parent / "secret.md").write_text("s")
        (folder / "link.md").symlink_to(tmp_path.parent / "secret.md")
        (folder / "mine.yaml").write_text(f'id: mine\nsystem_prompt: "{name}"\n')
        with pytest.raises(ContentError):
            load_setting(folder / "mine.yaml")

    def test_a_pipe_or_a_device_is_no_content(self, tmp_path: Path) -> None:
        os.mkfifo(tmp_path / "pipe")
        with pytest.raises(NotFoundError):
            find("personas", "pipe", tmp_path)
        with pytest.raises(ContentError, match="larger than the limit"):
            read_prompt(Path("/dev/zero"), ())


def run_at(path: Path) -> Path:
    with RunDir.create(path, {"id": "x"}):
        pass
    return path


class TestRunsOfOthers:
    """A run that somebody passed on must not lead what is written, or deleted, to another place."""

    @pytest.mark.parametrize("name", ["lock", "run.sqlite", "run.sqlite-wal", "records"])
    def test_links_are_refused_before_anything_is_written(self, tmp_path: Path, name: str) -> None:
        run, mine = run_at(tmp_path / "run"), tmp_path / "mine"
        if name == "records":
            (run / name).rmdir()
            mine.mkdir()
            (mine / "notes.jsonl").write_text("mine")
        else:
            (run / name).unlink(missing_ok=True)
            mine.write_text("mine")
        (run / name).symlink_to(mine)
        with pytest.raises(StoreError, match="is a link"):
            RunDir.open(run)
        kept = mine / "notes.jsonl" if name == "records" else mine
        assert kept.read_text() == "mine"

    @pytest.mark.parametrize("name", ["results.json", ".results.json.tmp"])
    def test_a_file_is_written_in_the_place_of_a_link(self, tmp_path: Path, name: str) -> None:
        run, mine = run_at(tmp_path / "run"), tmp_path / "mine"
        mine.write_text("mine")
        (run / name).symlink_to(mine)
        with RunDir.open(run) as opened:
            opened.write("results.json", orjson.dumps({}))
        assert mine.read_text() == "mine"
        assert not (run / "results.json").is_symlink()

    def test_functions_of_a_foreign_schema_do_nothing(self, tmp_path: Path) -> None:
        with RunDir.open(run_at(tmp_path / "run")) as opened:
            assert opened.calls._reader.row("PRAGMA trusted_schema") == (0,)


def test_infinity_is_kept_as_a_number_and_refused_where_it_has_no_meaning(tmp_path: Path) -> None:
    path = tmp_path / "numbers.yaml"
    path.write_text("share: .inf")
    assert math.isinf(load(path, Numbers).share)


def test_sizes(tmp_path: Path) -> None:
    path: Any = tmp_path / "large.md"
    path.write_bytes(b"a" * (MAX_BYTES + 1))
    with pytest.raises(ContentError, match="larger than the limit"):
        read_prompt(path, ())
