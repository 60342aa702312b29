"""Content files: what is read, where each problem is said to be, how prompts are filled."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any, Literal

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from pydantic import Field, field_validator

from habitus.content import (
    FOLDERS,
    ContentModel,
    Found,
    Prompt,
    fence,
    find,
    listing,
    load,
    read_prompt,
    read_yaml,
)
from habitus.content.models import file_hash
from habitus.content.places import shipped_root
from habitus.content.yamlfile import MAX_ALIASES, MAX_BYTES, MAX_DEPTH, MAX_PARTS
from habitus.errors import ContentError, NotFoundError


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "file.yaml"


def data(file: Path, text: str) -> Any:
    file.write_text(text, encoding="utf-8")
    return read_yaml(file).data


def problems(file: Path, text: str | bytes) -> list[str]:
    """What is said of a damaged file, without its name."""
    file.write_bytes(text.encode() if isinstance(text, str) else text)
    with pytest.raises(ContentError) as error:
        read_yaml(file)
    return said(error.value, file)


def said(error: ContentError, file: Path) -> list[str]:
    assert all(p.place.path == file for p in error.problems)
    return [str(p).removeprefix(f"{file}:").strip() for p in error.problems]


DAMAGED_YAML: dict[str, tuple[str | bytes, str]] = {
    "empty": ("", "1:1: the file is empty"),
    "only a comment": ("# nothing\n", "1:1: the file is empty"),
    "only a marker": ("---\n", "1:1: the file is empty"),
    "not UTF-8": (b"a: 1\nb: \xc3\xa9\xe9\n", "2:5: byte 0xe9 is not UTF-8 (save the"),
    "not UTF-8 behind a BOM": (b"\xef\xbb\xbfa: \xff\n", "1:4: byte 0xff is not UTF-8"),
    "UTF-16": ("a: 1".encode("utf-16"), "1:1: byte 0xff is not UTF-8"),
    "tab as indentation": ("a:\n\tb: 1\n", "2:1: a tab is used for indentation (use spaces)"),
    "tab behind a key": ("a:\tb\n", "1:3: a tab stands where YAML takes spaces only"),
    "NUL": ("a: x\nb: y\x00\n", "2:5: character U+0000 is not allowed in YAML"),
    "duplicate key": ("a: 1\nb: 2\na: 3\n", "3:1: duplicate key 'a'; first on line 1"),
    "same key quoted": ("a: 1\n'a': 3\n", "2:1: duplicate key 'a'; first on line 1"),
    "duplicate in a list": ("- {x: 1, y: 2, x: 3}\n", "1:16: duplicate key 'x'; first on line"),
    "complex key": ("? [a, b]\n: 1\n", "1:3: a key must be a plain word"),
    "merge key": ("a: &a {x: 1}\nb:\n  <<: *a\n", "3:3: merge keys (<<) are not read (write"),
    "foreign tag": ("a: !thing x\n", "1:4: the tag !thing is not allowed"),
    "tag of a mapping": ("a: !!set {x, y}\n", "1:4: the tag !!set is not allowed"),
    "python tag": ("a: !!python/name:os.system\n", "1:4: the tag !!python/name:os.system is"),
    "tag like text": ("a: !!python/object:str x\n", "1:4: the tag !!python/object:str is not"),
    "word that is no bool": ("a: !!bool maybe\n", "1:4: 'maybe' is not bool"),
    "word that is no null": ("a: !!null nil\n", "1:4: 'nil' is not null"),
    "word that is no number": ("a: !!int seven\n", "1:4: 'seven' is not a number that can"),
    "number too long": (f"a: {'9' * 5000}\n", "1:4: '9999"),
    "YAML 1.1": ("# x\n%YAML 1.1\n---\na: NO\n", "2:1: the file asks for another YAML: '%YAML"),
    "two documents": ("a: 1\n---\nb: 2\n", "2:1: not valid YAML: expected a single document"),
    "colon in a text": ("a: b: c\n", "1:5: not valid YAML: mapping values are not allowed"),
    "open quote": ("a: 'x\n", "2:1: not valid YAML: while scanning a quoted scalar found"),
    "open bracket": ("a: [1,\n", "2:1: not valid YAML: while parsing a flow"),
    "unknown alias": ("a: *b\n", "1:4: not valid YAML: found undefined alias 'b'"),
}


class TestYaml:
    def test_every_part_has_its_place(self, file: Path) -> None:
        file.write_text("a: 1\nlist:\n  - x: yes\n  - - deep\n", encoding="utf-8")
        document = read_yaml(file)
        assert document.data == {"a": 1, "list": [{"x": "yes"}, ["deep"]]}
        assert str(document.place(("list", 0, "x"))) == f"{file}:3:8"
        assert str(document.place(("list", 0, "x"), of_key=True)) == f"{file}:3:5"
        assert str(document.place(("list", 1, 0))) == f"{file}:4:7"

    def test_a_part_that_is_not_there_has_the_place_of_what_is_around_it(self, file: Path) -> None:
        file.write_text("a:\n  b: 1\n", encoding="utf-8")
        assert str(read_yaml(file).place(("a", "c", 3))) == f"{file}:2:3"

    @pytest.mark.parametrize(
        ("text", "value"),
        [
            ("NO", "NO"),
            ("yes", "yes"),
            ("on", "on"),
            ("Off", "Off"),
            ("true", True),
            ("False", False),
            ("null", None),
            ("~", None),
            ("", None),
            ("'null'", "null"),
            ("2026-01-31", "2026-01-31"),
            ("1:30", "1:30"),
            ("=", "="),
            ("!!str 12", "12"),
            ("017", 17),
            ("0o17", 15),
            ("0x1F", 31),
            ("-12", -12),
            ("1.50", 1.5),
            ("-.5", -0.5),
            ("1e3", 1000.0),
            ("-.inf", float("-inf")),
            (">-\n  two\n  lines", "two lines"),
            (r'"\u00e9\ud800"', "é\ud800"),
        ],
        ids=repr,
    )
    def test_scalars_are_those_of_yaml_1_2(self, file: Path, text: str, value: object) -> None:
        read = data(file, f"a: {text}\n")["a"]
        assert (read, type(read)) == (value, type(value))

    def test_words_that_older_yaml_takes_for_booleans_are_keys_too(self, file: Path) -> None:
        assert data(file, "NO: Norway\nyes: y\n1: one\n") == {
            "NO": "Norway",
            "yes": "y",
            "1": "one",
        }

    def test_an_alias_repeats_its_anchor_and_the_last_anchor_of_a_name_counts(
        self, file: Path
    ) -> None:
        text = "a: &x [1, 2]\nb: *x\nc: &x 3\nd: *x\n"
        assert data(file, text) == {"a": [1, 2], "b": [1, 2], "c": 3, "d": 3}

    def test_a_bom_and_windows_line_ends_are_read_over(self, file: Path) -> None:
        file.write_bytes(b"\xef\xbb\xbfa: 1\r\nb: x\r\n")
        assert read_yaml(file).data == {"a": 1, "b": "x"}

    @pytest.mark.parametrize("name", DAMAGED_YAML)
    def test_damage_is_told_with_line_and_column(self, file: Path, name: str) -> None:
        text, message = DAMAGED_YAML[name]
        (problem,) = problems(file, text)
        assert problem.startswith(message)
        assert len(problem) < 200

    def test_every_problem_is_told_once(self, file: Path) -> None:
        text = "a: &a {x: 1, x: 2}\nb: *a\nc: *a\nd: !t 1\n"
        assert [p.partition(":")[0] for p in problems(file, text)] == ["1", "4"]

    @pytest.mark.parametrize("kind", ["missing", "folder"])
    def test_what_cannot_be_opened_is_told(self, tmp_path: Path, kind: str) -> None:
        path = tmp_path if kind == "folder" else tmp_path / "none.yaml"
        with pytest.raises(ContentError, match=r"cannot be read: (No such file|Is a dir)"):
            read_yaml(path)

    def test_depth_is_bounded(self, file: Path) -> None:
        assert data(file, "[" * (MAX_DEPTH + 1) + "]" * (MAX_DEPTH + 1))
        for depth in (MAX_DEPTH + 2, 600):
            (problem,) = problems(file, "[" * depth + "]" * depth)
            assert f"nested deeper than {MAX_DEPTH} levels" in problem

    def test_a_part_that_holds_itself_is_refused(self, file: Path) -> None:
        assert problems(file, "a: &a [*a]\n") == ["1:4: nested deeper than 40 levels"]

    def test_billion_laughs_are_refused_at_once(self, file: Path) -> None:
        lines = ["a0: &a0 [ha, ha, ha, ha, ha, ha, ha, ha, ha, ha]"]
        lines += [f"a{i}: &a{i} [{', '.join([f'*a{i - 1}'] * 10)}]" for i in range(1, 10)]
        (problem,) = problems(file, "\n".join(lines))
        assert f"more than {MAX_ALIASES} aliases" in problem

    def test_few_aliases_of_something_large_are_refused(self, file: Path) -> None:
        parts = MAX_PARTS // 90
        text = f"a: &a [{','.join('1' * parts)}]\nb: [{','.join(['*a'] * 95)}]\n"
        (problem,) = problems(file, text)
        assert re.match(r"1:\d+: more than [\d,]+ values", problem)

    def test_size_is_bounded(self, file: Path) -> None:
        file.write_bytes(b"#" * (MAX_BYTES + 1))
        with pytest.raises(ContentError, match="larger than the limit of 8,388,608 bytes"):
            read_yaml(file)


class Part(ContentModel):
    name: str
    weight: float = 1.0
    kind: Literal["small", "large"] = "small"


class Thing(ContentModel):
    title: str
    parts: tuple[Part, ...] = Field(default=(), max_length=3)
    by_name: dict[str, Part] = Field(default_factory=dict)
    best: Part | None = None
    tag: str | int = ""

    @field_validator("title")
    @classmethod
    def _short(cls, title: str) -> str:
        if len(title) > 100:
            raise ValueError("a title has at most 100 characters")
        return title


def model_problems(file: Path, text: str) -> list[str]:
    file.write_text(text, encoding="utf-8")
    with pytest.raises(ContentError) as error:
        load(file, Thing)
    return said(error.value, file)


WRONG = {
    "unknown key, near one": (
        "title: x\nprts: []\n",
        "2:1: unknown key 'prts' (did you mean 'p",
    ),
    "unknown key, near none": (
        "title: x\nzzz: 1\n",
        "2:1: unknown key 'zzz' (known keys: title, parts, by_name, best, tag)",
    ),
    "unknown key in a list": (
        "title: x\nparts:\n  - name: a\n    wieght: 2\n",
        "4:5: unknown key 'wieght' (did you mean 'weight'?)",
    ),
    "unknown key in a mapping": (
        "title: x\nby_name:\n  one: {nam: a, name: b}\n",
        "3:9: unknown key 'nam' (did you mean 'name'?)",
    ),
    "unknown key behind a choice of types": (
        "title: x\nbest: {name: b, kimd: small}\n",
        "2:17: unknown key 'kimd' (did you mean 'kind'?)",
    ),
    "missing key": ("parts: []\n", "1:1: missing key 'title'"),
    "missing key in a list": (
        "title: x\nparts:\n  - name: a\n  - weight: 1\n",
        "4:5: missing key 'name' in parts.2",
    ),
    "wrong type": ("title: [a]\n", "1:8: title: Input should be a valid string (found a list)"),
    "number for a text": (
        "title: 12\n",
        "1:8: title: Input should be a valid string (found 12; put it in quotes)",
    ),
    "nothing": ("title:\n", "1:1: title: Input should be a valid string (found nothing)"),
    "wrong type in a list": (
        "title: x\nparts:\n  - name: a\n    weight: heavy\n",
        "4:13: parts.1.weight: Input should be a valid number, unable to parse string as a",
    ),
    "no word of the list": (
        "title: x\nbest: {name: b, kind: middling}\n",
        "2:23: best.kind: Input should be 'small' or 'large' (found 'middling')",
    ),
    "text for keys": (
        "title: x\nparts: [a]\n",
        "2:9: parts.1: must hold keys of its own (found 'a')",
    ),
    "a model's own check": (
        f"title: {'x' * 101}\n",
        f"1:8: title: a title has at most 100 characters (found '{'x' * 60}'...)",
    ),
    "too many": (
        "title: x\nparts: [{name: a}, {name: a}, {name: a}, {name: a}]\n",
        "2:8: parts: takes at most 3 items (found a list)",
    ),
    "a list for the whole": (
        "- a\n",
        "1:1: expected keys such as title, parts, by_name, found a l",
    ),
    "text for the whole": (
        "hello\n",
        "1:1: expected keys such as title, parts, by_name, found t",
    ),
    "a number for the whole": (
        "12\n",
        "1:1: expected keys such as title, parts, by_name, found 12",
    ),
}


class TestModels:
    def test_a_good_file_is_a_frozen_model(self, file: Path) -> None:
        file.write_text("title: NO\nparts:\n  - {name: yes, weight: 2}\n", encoding="utf-8")
        thing = load(file, Thing)
        assert thing == Thing(title="NO", parts=(Part(name="yes", weight=2.0),))
        with pytest.raises(ValueError, match="frozen"):
            thing.title = "x"  # type: ignore[misc]

    @pytest.mark.parametrize("name", WRONG)
    def test_what_is_wrong_is_told_with_line_and_column(self, file: Path, name: str) -> None:
        text, message = WRONG[name]
        (problem,) = model_problems(file, text)
        assert problem.startswith(message)

    def test_all_problems_are_told_in_the_order_of_lines(self, file: Path) -> None:
        text = "parts:\n  - weight: x\n    nme: a\nbest: 1\n"
        lines = [int(p.partition(":")[0]) for p in model_problems(file, text)]
        assert lines == sorted(lines)
        assert len(lines) == 5  # title; name, weight, nme; best

    def test_what_one_field_cannot_show_has_its_place_too(self, file: Path) -> None:
        def check(thing: Thing) -> list[Found]:
            return [
                Found(("parts", 1, "name"), "later", "say something else"),
                Found(("title",), "earlier"),
            ]

        file.write_text("title: x\nparts:\n  - name: a\n  - name: b\n", encoding="utf-8")
        with pytest.raises(ContentError) as error:
            load(file, Thing, check)
        assert said(error.value, file) == ["1:8: earlier", "4:11: later (say something else)"]

    def test_a_file_hash_does_not_hang_on_line_ends(self, tmp_path: Path) -> None:
        one, other = tmp_path / "one", tmp_path / "other"
        one.write_bytes(b"a: 1\nb: 2\n")
        other.write_bytes(b"a: 1\r\nb: 2\r\n")
        assert file_hash(one) == file_hash(other)
        other.write_bytes(b"a: 1\nb: 3\n")
        assert file_hash(one) != file_hash(other)


def prompt(tmp_path: Path, text: str, *names: str, single: str | None = None) -> Prompt:
    path = tmp_path / "prompt.md"
    path.write_text(text, encoding="utf-8")
    return read_prompt(path, names, single=single)


#: Texts that a second pass over a filled prompt would fill.
PLACEHOLDERS = st.text() | st.lists(
    st.sampled_from(["{{a}}", "{{ b }}", "{{b|fenced}}", "{{", "}}", "{", "a", "b", "|", "~~~"])
).map("".join)

DAMAGED_PROMPTS: dict[str, tuple[str, list[str]]] = {
    "unknown": (
        "Hi\n  {{nrom}} {{norm}}",
        ["2:3: unknown placeholder {{nrom}} (known here: n"],
    ),
    "capital": ("{{Norm}}{{norm}}", ["1:1: unknown placeholder {{Norm}} (known here: norm)"]),
    "hyphen": ("{{norm-id}}{{norm}}", ["1:1: unknown placeholder {{norm-id}} (known here: n"]),
    "missing": ("Hello", ["1:1: missing placeholder {{norm}}"]),
    "only in a note": ("<!-- note: {{norm}} -->\nHi", ["1:1: missing placeholder {{norm}}"]),
    "filter": (
        "{{norm|upper}}",
        ["1:1: unknown filter in {{norm|upper}} (the one filter is |f"],
    ),
    "empty": (
        "<!-- note: x -->\n",
        ["1:1: missing placeholder {{norm}}", "1:1: the prompt is e"],
    ),
    "text before a part": (
        "x\n<!-- user -->\n{{norm}}",
        ["1:1: text before the first part (m"],
    ),
    "empty part": (
        "<!-- system -->\n<!-- user -->\n{{norm}}",
        ["1:1: the system part is empty"],
    ),
    "two parts for one": (
        "<!-- system -->\nx\n<!-- user -->\n{{norm}}",
        ["3:1: the file has 2 parts, but it is the last message and can have one only"],
    ),
}


class TestPrompts:
    def test_parts_and_placeholders(self, tmp_path: Path) -> None:
        text = (
            "<!-- note: for people; {{not_filled}} -->\n<!-- system -->\nYou judge.\n\n"
            "<!-- user -->\nNorm: {{norm}}\n{{ norm }} again\n<!-- assistant -->\nI see {{x}}\n"
        )
        assert prompt(tmp_path, text, "norm", "x").fill({"norm": "N", "x": "1"}) == [
            ("system", "You judge."),
            ("user", "Norm: N\nN again"),
            ("assistant", "I see 1"),
        ]

    def test_text_without_parts_is_a_user_message(self, tmp_path: Path) -> None:
        plain = prompt(tmp_path, "\nSay {{x}}.\n", "x")
        assert plain.fill({"x": "a"}) == [("user", "Say a.")]
        assert plain.text({"x": "a"}) == "Say a."

    def test_json_in_a_prompt_and_braces_in_a_text_stay_as_they_are(self, tmp_path: Path) -> None:
        template = 'Answer as { "Reasoning": "...", "n": {} } {x} <<item>> %s.\n{{query}}{{other}}'
        filled = prompt(tmp_path, template, "query", "other")
        inserted = "{{query}} {norm} {{ other }} {} {{{ \\1 \\g<0> $x {{other|fenced}}"
        assert filled.text({"query": inserted, "other": "{{query}}"}) == (
            f'Answer as {{ "Reasoning": "...", "n": {{}} }} {{x}} <<item>> %s.\n'
            f"{inserted}{{{{query}}}}"
        )

    @given(PLACEHOLDERS, PLACEHOLDERS)
    def test_whatever_is_inserted_stands_there_letter_for_letter(self, one: str, two: str) -> None:
        filled = Prompt("p", (("user", "<{{a}}|{{b}}|{{a}}>"),), frozenset({"a", "b"}))
        assert filled.text({"a": one, "b": two}) == f"<{one}|{two}|{one}>"

    def test_other_names_than_declared_are_a_bug_of_the_caller(self, tmp_path: Path) -> None:
        filled = prompt(tmp_path, "{{a}}", "a")
        for values in ({}, {"b": ""}, {"a": "", "b": ""}):
            with pytest.raises(KeyError, match=r"prompt\.md"):
                filled.fill(values)

    @pytest.mark.parametrize("name", DAMAGED_PROMPTS)
    def test_a_damaged_prompt_is_told_with_its_place(self, tmp_path: Path, name: str) -> None:
        text, messages = DAMAGED_PROMPTS[name]
        single = "the last message" if name == "two parts for one" else None
        with pytest.raises(ContentError) as error:
            prompt(tmp_path, text, "norm", single=single)
        found = said(error.value, tmp_path / "prompt.md")
        assert len(found) == len(messages)
        assert all(a.startswith(b) for a, b in zip(found, messages, strict=True))

    @given(st.text(st.sampled_from("~`ab\n\r \u2028")) | st.text())
    @example("~~~\nThe answer to check:\n~~~")
    @example("~~~~")
    @example("")
    def test_a_text_cannot_close_its_own_fence(self, text: str) -> None:
        line, body = fence(text).split("\n", 1)
        assert re.fullmatch("~{3,}", line)
        assert body == f"{text}\n{line}"
        assert line not in text

    def test_a_fence_is_put_where_the_file_asks_for_it(self, tmp_path: Path) -> None:
        filled = prompt(tmp_path, "Q:\n{{q|fenced}}\nend", "q")
        assert filled.text({"q": "a ~~~ b"}) == "Q:\n~~~~\na ~~~ b\n~~~~\nend"


class TestFinding:
    @pytest.fixture
    def workspace(self, tmp_path: Path) -> Path:
        for name in ("health/maori.yaml", "health/harbour.yaml"):
            path = tmp_path / "norms" / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text("x: 1\n", encoding="utf-8")
        return tmp_path

    def test_the_workspace_comes_before_what_is_shipped(self, workspace: Path) -> None:
        assert find("norms", "health/maori.yaml", workspace).is_relative_to(workspace)
        assert find("norms", "health/nepali.yaml", workspace).is_relative_to(shipped_root())

    def test_a_listing_has_both_and_each_name_once(self, workspace: Path) -> None:
        found = listing("norms", "health/*.yaml", workspace)
        assert list(found) == sorted(found)
        assert {"maori", "harbour", "nepali"} <= {path.stem for path in found}
        assert found[Path("health/maori.yaml")].is_relative_to(workspace)

    @pytest.mark.parametrize(
        ("name", "message"),
        [
            ("health/mauri.yaml", "no file in norms/ called 'health/mauri'; did you mean 'health/"),
            ("zzzz.yaml", "no file in norms/ called 'zzzz'; there are: health/afghan, health/bur"),
            ("health", "no file in norms/ called 'health'"),  # a folder is no file
        ],
    )
    def test_a_name_that_leads_nowhere_gets_the_nearest(
        self, workspace: Path, name: str, message: str
    ) -> None:
        with pytest.raises(NotFoundError) as error:
            find("norms", name, workspace)
        assert str(error.value).startswith(message)

    def test_every_content_folder_is_shipped(self) -> None:
        assert all((shipped_root() / folder).is_dir() for folder in FOLDERS)
