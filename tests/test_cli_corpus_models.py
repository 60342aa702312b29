"""``habitus corpus label`` and ``corpus answer``: models over posts, and what is left of it."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from habitus.corpora import add_column, question_of, title_and_body
from habitus.errors import UsageError
from habitus.labelling import AnsweringJob, PostSource, find_answer_prompt
from habitus.records import JudgedItem, Outcome, Sampling
from habitus.running import JobRequest, run_job
from habitus.store import RunDir
from labelling_fixture import REAL, kept, records
from study_fixture import Answering, Terminal, opening, terminal_in
from test_cli_judge import AGAIN, model_file

POSTS: Sequence[Mapping[str, Any]] = (
    {"id": "p1", "title": "Tea?", "body": "Body one.", "subreddit": "AskThere", "country": "there"},
    {"id": "p2", "title": "Nets", "body": "Body two.", "subreddit": "AskThere", "country": "there"},
    {"id": "p3", "title": "Rain", "body": "Body three.", "subreddit": "Elsewhere", "country": "here"},
    {"id": "p4", "title": "Salt", "body": "{{title}} {0}", "subreddit": "Elsewhere", "country": "here"},
)  # fmt: skip
RULES = [
    {"when": "Tea", "reply": "##Food & Drinks## It is about tea. <|END|>"},
    {"when": "Nets", "reply": "##kinship## Of a family."},
    {"when": "Rain", "reply": "##Weather## It rains."},
    {"when": f"##Weather|{AGAIN}: ##Weather", "reply": "##Weather## It rains."},
    {"when": AGAIN, "reply": "##Weather## It rains."},
    {"reply": "##Cuisine## Salt."},
]
AS_JSON = [
    {"when": rule.get("when", ""), "reply": json.dumps({"Reasoning": "", "Label": label})}
    for rule, label in zip(
        RULES, ["Food & Drinks", "kinship", "Weather", "Weather", "Weather", "Cuisine"], strict=True
    )
]


def posts_file(rows: Sequence[Mapping[str, Any]] = POSTS, name: str = "posts.parquet") -> Path:
    names = list(dict.fromkeys(key for row in rows for key in row))
    pq.write_table(pa.table({key: [row.get(key) for row in rows] for key in names}), name)
    return Path(name)


def read(name: str) -> dict[str, list[Any]]:
    found: dict[str, list[Any]] = pq.read_table(name).to_pydict()
    return found


@pytest.fixture
def terminal(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Terminal:
    """A folder with four posts and a model that sorts them."""
    at = terminal_in(tmp_path, monkeypatch, capsys)
    posts_file()
    model_file("sorter", RULES)
    model_file("fake")
    return at


def label(terminal: Terminal, *more: str) -> tuple[int, str, str]:
    arguments = ("corpus", "label", "posts.parquet", "--model", "sorter", "-o", "labelled.parquet")
    return terminal(*arguments, *more)


CATEGORIES = ["Food and Drink", "Kinship", None, "Food and Drink"]


class TestLabel:
    def test_categories_are_a_column_more(self, terminal: Terminal) -> None:
        code, out, err = label(terminal)
        assert code == 1
        assert "25.0% of all labels have no usable answer" in err
        assert "Causes of failure, the most frequent first" in err
        assert "\nlabels\tpost_categories\tsorter\tunparsed\t" in err
        found = read("labelled.parquet")
        assert found.pop("category") == CATEGORIES
        assert found == read("posts.parquet")
        table, mapped, unmapped = out.split("\n\n")
        lines = table.splitlines()
        assert lines[:2] == ["category\tn\tof\tshare", "Food and Drink\t2\t4\t0.5"]
        assert (len(lines), lines[-1]) == (1 + 19 + 1, "(none)\t1\t4\t0.25")
        assert "Kinship\t1\t4\t0.25" in lines
        assert mapped.splitlines() == [
            "words given\tread as\tposts",
            "Food & Drinks\tFood and Drink\t1",
            "Cuisine\tFood and Drink\t1",
        ]
        assert unmapped == "words that are no category\tposts\nWeather\t1\n"
        assert "add it to the aliases of the judge post_categories and label anew" in err
        assert "--fork labelled.run" in err
        rows = terminal.json("corpus", "stats", "labelled.parquet", "--json")
        told = {r["category"]: r["n"] for r in rows if r["by"] == "category"}
        assert told == {None: 1, "Food and Drink": 2, "Kinship": 1}

    @pytest.mark.parametrize("form", ["sentinel", "json"])
    def test_both_forms_tell_the_same(self, terminal: Terminal, form: str) -> None:
        model_file("sorter", RULES if form == "sentinel" else AS_JSON)
        code, out, _ = label(terminal, "--answer", form, "--json", "--failures", "1")
        assert code == 0
        found = json.loads(out)
        counts = {name: n for name, n in found.pop("categories").items() if n}
        assert counts == {"Food and Drink": 2, "Kinship": 1}
        assert found == {
            "without_category": 1,
            "mapped": [
                {"words": "Food & Drinks", "category": "Food and Drink", "posts": 1},
                {"words": "Cuisine", "category": "Food and Drink", "posts": 1},
            ],
            "unmapped": [{"words": "Weather", "posts": 1}],
        }
        assert read("labelled.parquet")["category"] == CATEGORIES

    def test_a_word_that_is_added_to_the_table_costs_no_call(self, terminal: Terminal) -> None:
        label(terminal)
        from habitus.content import shipped_root

        shipped = shipped_root() / "judges" / "post_categories"
        own = Path("judges/post_categories")
        own.mkdir(parents=True)
        (own / "prompt.md").write_bytes((shipped / "prompt.md").read_bytes())
        text = (shipped / "judge.yaml").read_text("utf-8")
        (own / "judge.yaml").write_text(text.replace("[Others,", "[Weather, Others,"), "utf-8")
        code, _, err = label(terminal)
        assert (code, "judges.0.content: " in err) == (2, True)
        code, out, err = label(terminal, "--run", "again.run", "--fork", "labelled.run")
        assert code == 0
        assert "0 calls made, 4 answers were stored already" in err
        assert "Weather\tOther\t1" in out
        assert read("labelled.parquet")["category"][2] == "Other"

    def test_a_category_that_is_there_is_replaced(self, terminal: Terminal) -> None:
        posts_file([{**row, "category": "Old", "more": i} for i, row in enumerate(POSTS)])
        label(terminal)
        found = read("labelled.parquet")
        assert found["category"] == CATEGORIES
        assert found["more"] == [0, 1, 2, 3]
        items = records(Path("labelled.run"), "items", JudgedItem)
        assert items[0].fields == {"country": "there", "subreddit": "AskThere"}

    def test_onto_the_file_itself_and_once_more(self, terminal: Terminal) -> None:
        arguments = ("corpus", "label", "posts.parquet", "--model", "sorter", "-o", "posts.parquet")
        assert "5 calls made" in terminal(*arguments)[2]
        first = Path("posts.parquet").read_bytes()
        assert read("posts.parquet")["category"] == CATEGORIES
        assert "nothing left to do" in terminal(*arguments)[2]
        assert Path("posts.parquet").read_bytes() == first

    def test_only_the_first(self, terminal: Terminal) -> None:
        assert label(terminal, "--limit", "2")[0] == 0
        assert read("labelled.parquet")["category"] == [*CATEGORIES[:2], None, None]
        assert "3 calls made, 2 answers were stored already" in label(terminal)[2]
        assert read("labelled.parquet")["category"] == CATEGORIES

    def test_the_post_alone_is_shown(self, terminal: Terminal) -> None:
        label(terminal)
        with RunDir.open(Path("labelled.run"), write=False) as run:
            sent = {c.record: json.dumps(c.request["messages"]) for c in run.calls.iterate()}
        assert "Tea?\\n\\nBody one." in sent["p1"]
        assert "{{title}} {0}" in sent["p4"]
        for text in sent.values():
            assert "AskThere" not in text
            assert "Elsewhere" not in text

    @pytest.mark.parametrize("kind", [pa.int64(), pa.large_string(), pa.string()])
    def test_ids_of_any_kind(self, terminal: Terminal, kind: Any) -> None:
        table = pq.read_table("posts.parquet").set_column(
            0, "id", pa.array([11, 12, 13, 14]).cast(kind)
        )
        pq.write_table(table, "posts.parquet")
        label(terminal)
        found = pq.read_table("labelled.parquet")
        assert found.schema.field("id").type == kind
        assert found["category"].to_pylist() == CATEGORIES

    def test_a_title_or_body_that_is_null_is_no_text(self, terminal: Terminal) -> None:
        nulls = [{**POSTS[0], "body": None}, {**POSTS[1], "title": None, "body": None}]
        posts_file(nulls)
        err = label(terminal)[2]
        assert read("labelled.parquet")["category"] == ["Food and Drink", None]
        items = records(Path("labelled.run"), "items", JudgedItem)
        assert [item.question for item in items] == ["Tea?\n\n", "\n\n"]
        assert "1 calls made" in err

    @pytest.mark.parametrize(
        ("arguments", "message"),
        [
            (
                ["--judge", "positioning"],
                "posts are sorted by one judge that sees the question and",
            ),
            (["--judge", "franz"], "posts are sorted by one judge that sees the question and"),
            (["--judge", "post_categorie"], "did you mean 'post_categories'"),
            (
                ["-o", "no/such.parquet"],
                "no/such.parquet cannot be written; name a file in a folder",
            ),
            (["-o", "."], ". cannot be written; name a file in a folder that is there"),
            (["--run", "posts.parquet"], "posts.parquet is a file; a run needs a directory"),
            (["--fork", "none"], "there is no run at "),
        ],
        ids=" ".join,
    )
    def test_what_cannot_be_costs_no_call(
        self, terminal: Terminal, arguments: list[str], message: str
    ) -> None:
        code, out, err = label(terminal, *arguments)
        assert (code, out) == (2, "")
        assert message in err
        assert "Traceback" not in err
        assert not Path("labelled.run").exists()
        assert not Path("labelled.parquet").exists()

    @pytest.mark.parametrize(
        ("rows", "message"),
        [
            (
                [{"id": "a", "title": "t", "body": "b"}],
                "has no column 'subreddit'; it has id, title",
            ),
            ([POSTS[0], POSTS[1], POSTS[0]], "posts.parquet: row 3 has the id 'p1' of another row"),
            ([POSTS[0], {**POSTS[1], "id": None}], "posts.parquet: row 2 has no id"),
            ([POSTS[0], {**POSTS[1], "id": ""}], "posts.parquet: row 2 has no id"),
        ],
        ids=["column", "twice", "null", "empty"],
    )
    @pytest.mark.parametrize("command", ["label", "answer"])
    def test_what_are_no_posts(
        self, terminal: Terminal, command: str, rows: Sequence[Mapping[str, Any]], message: str
    ) -> None:
        posts_file(rows)
        code, _, err = terminal(
            "corpus", command, "posts.parquet", "--model", "fake", "-o", "out.parquet"
        )
        assert (code, message in err, err.count("\n")) == (2, True, 1)
        assert not Path("out.run").exists()
        assert not Path("out.parquet").exists()


def answer(terminal: Terminal, *more: str, models: str = "fake sorter") -> tuple[int, str, str]:
    options = [f"--model={name}" for name in models.split()]
    return terminal("corpus", "answer", "posts.parquet", *options, "-o", "answers", *more)


class TestAnswer:
    def test_one_item_for_each_post_and_model(self, terminal: Terminal) -> None:
        rules = [
            {"when": "Tea", "outcome": "refused", "reason": "filter"},
            {"when": "Nets", "outcome": "truncated", "reason": "length", "reply": "Cut of"},
            {"when": "Rain", "reply": " "},
        ]
        model_file("sorter", rules)
        code, out, err = answer(terminal, "--cut", "fail")
        assert code == 1
        assert out == "model\tanswered\tcut\tfailed\tof\nfake\t4\t0\t0\t4\nsorter\t1\t1\t3\t4\n"
        assert "37.5% of all items have no usable answer" in err
        assert "Causes of failure, the most frequent first" in err
        assert "`habitus judge answers --model MODEL` labels them" in err
        items = {item.id: item for item in records(Path("answers"), "items", JudgedItem)}
        assert set(items) == {f"p{i}/{name}" for i in range(1, 5) for name in ("fake", "sorter")}
        first = items["p1/fake"]
        assert (first.group, first.target, first.outcome) == ("p1", "fake", Outcome.OK)
        assert first.question == "Tea?\n\nBody one."
        assert first.fields == {"country": "there", "subreddit": "AskThere", "cut": "no"}
        assert {
            name: (i.outcome, i.reason) for name, i in items.items() if i.target == "sorter"
        } == {
            "p1/sorter": (Outcome.REFUSED, "filter"),
            "p2/sorter": (Outcome.TRUNCATED, "length"),
            "p3/sorter": (Outcome.UNPARSED, "empty"),
            "p4/sorter": (Outcome.OK, ""),
        }

    def test_an_answer_that_is_cut_is_an_answer_and_says_so(self, terminal: Terminal) -> None:
        """The published limit is low, and every answer was judged."""
        rules = [
            {"when": "Nets", "outcome": "truncated", "reason": "length", "reply": "Cut of"},
            {"when": "Rain", "outcome": "truncated", "reason": "length", "reply": ""},
            {"reply": "Whole."},
        ]
        model_file("sorter", rules)
        out = answer(terminal, models="sorter")[1]
        assert out.splitlines()[1] == "sorter\t3\t1\t1\t4"
        items = {item.id: item for item in records(Path("answers"), "items", JudgedItem)}
        cut, empty = items["p2/sorter"], items["p3/sorter"]
        assert (cut.outcome, cut.reason, cut.response) == (Outcome.OK, "", "Cut of")
        assert (cut.fields["cut"], items["p1/sorter"].fields["cut"]) == ("yes", "no")
        assert (empty.outcome, empty.reason) == (Outcome.TRUNCATED, "length")

    def test_a_target_sees_title_body_and_subreddit_and_nothing_else(
        self, terminal: Terminal
    ) -> None:
        answer(terminal, models="fake")
        with RunDir.open(Path("answers"), write=False) as run:
            calls = {call.record: call.request for call in run.calls.iterate()}
        request = calls["p4/fake"]
        assert [role for role, _ in request["messages"]] == ["system", "user"]
        assert request["messages"][0][1] == (
            "You are a helpful assistant. Answer the user's question directly."
        )
        assert request["messages"][1][1] == "Posted in r/Elsewhere\n\nSalt\n\n{{title}} {0}"
        assert request["sampling"] == {"temperature": 0.7, "top_p": 0.95, "max_tokens": 512}
        assert "schema" not in request
        assert len({call["seed"] for call in calls.values()}) == 4

    def test_sampling_and_prompt_of_ones_own(self, terminal: Terminal) -> None:
        Path("mine.md").write_text("{{title}}|{{body}}|{{subreddit}}", encoding="utf-8")
        more = ["--prompt", "mine.md", "--temperature", "0", "--top-p", "1", "--max-tokens", "9"]
        assert answer(terminal, *more, models="fake")[0] == 0
        with RunDir.open(Path("answers"), write=False) as run:
            request = next(iter(run.calls.iterate())).request
        assert request["sampling"] == {"temperature": 0, "top_p": 1, "max_tokens": 9}
        assert request["messages"] == [["user", "Tea?|Body one.|AskThere"]]

    def test_the_categories_go_with_the_answers(self, terminal: Terminal) -> None:
        label(terminal)
        terminal("corpus", "answer", "labelled.parquet", "--model", "fake", "-o", "answers")
        items = records(Path("answers"), "items", JudgedItem)
        assert [item.fields.get("category") for item in items] == CATEGORIES

    def test_the_answers_are_judged(self, terminal: Terminal) -> None:
        model_file("sorter", [{"when": "Tea", "outcome": "refused", "reason": "filter"}])
        answer(terminal)
        arguments = ("judge", "answers", "--model", "fake", "--judges", "maxims.manner")
        found = terminal.json(*arguments, "--json", "--failures", "1")
        assert (found["kind"], found["origin"]) == ("posts", "answers")
        assert found["made_up"] == ["fake", "sorter"]
        (verdict,) = found["verdicts"]
        assert (verdict["items"], verdict["unanswered"], verdict["judged"]) == (8, 1, 7)
        with RunDir.open(Path("runs/answers-labels"), write=False) as run:
            sent = json.dumps([call.request for call in run.calls.iterate()])
        assert "Body one." in sent
        assert "sorter" not in sent
        items = [
            path / "records" / "items.jsonl"
            for path in (Path("answers"), Path("runs/answers-labels"))
        ]
        assert items[0].read_bytes() == items[1].read_bytes()

    def test_going_on(self, terminal: Terminal) -> None:
        assert answer(terminal, "--limit", "1")[0] == 0
        assert "6 calls made, 2 answers were stored already" in answer(terminal)[2]
        before = kept(Path("answers"))
        assert "nothing left to do" in answer(terminal)[2]
        assert "nothing left to do" in answer(terminal, "--limit", "1")[2]
        assert kept(Path("answers")) == before
        assert json.loads(before["labelling.json"])["totals"] == {"items": 8}

    @pytest.mark.parametrize(
        ("more", "models", "field"),
        [
            (["--seed", "4"], "fake sorter", "seed: 0 -> 4"),
            (["--temperature", "0"], "fake sorter", "temperature: 0.7 -> 0"),
            (["--max-tokens", "600"], "fake sorter", "max_tokens: 512 -> 600"),
            (["--prompt", "mine.md"], "fake sorter", "prompt.0.0: "),
            ([], "fake", "models.sorter."),
        ],
        ids=str,
    )
    def test_a_change_is_refused_with_its_field(
        self, terminal: Terminal, more: list[str], models: str, field: str
    ) -> None:
        Path("mine.md").write_text("{{title}}|{{body}}|{{subreddit}}", encoding="utf-8")
        answer(terminal)
        before = kept(Path("answers"))
        code, _, err = answer(terminal, *more, models=models)
        assert (code, f"\n  {field}" in err) == (2, True)
        assert kept(Path("answers")) == before

    @pytest.mark.parametrize(
        ("more", "models", "message"),
        [
            ([], "fake fake", "two of the models have the same name; give each a file of its own"),
            ([], "fake ./fake.yaml", "two of the models have the same name"),
            (["--prompt", "asnwer"], "fake", "did you mean 'corpora/answer'"),
            (["--prompt", "short.md"], "fake", "short.md:1:1: missing placeholder {{body}}"),
            (["--prompt", "more.md"], "fake", "more.md:1:40: unknown placeholder {{country}}"),
            (["--top-p", "0"], "fake", "'--top-p'"),
        ],
        ids=str,
    )
    def test_what_cannot_be_costs_no_call(
        self, terminal: Terminal, more: list[str], models: str, message: str
    ) -> None:
        Path("fake.yaml").write_text("backend: local\n", encoding="utf-8")
        Path("short.md").write_text("{{title}} {{subreddit}}", encoding="utf-8")
        Path("more.md").write_text("{{title}} {{subreddit}} {{body}} again {{country}}", "utf-8")
        code, out, err = answer(terminal, *more, models=models)
        assert (code, out) == (2, "")
        assert message in err
        assert not Path("answers").exists()

    def test_targets_run_side_by_side_over_posts_in_their_order(self, terminal: Terminal) -> None:
        model = Answering()
        source = PostSource.open(Path("posts.parquet"))
        job = AnsweringJob(
            source, find_answer_prompt(), {"a": REAL, "b": REAL}, Sampling(0.7, 0.95, 512)
        )
        run_job(job, JobRequest(out=Path("answers"), opener=opening(model)))
        asked = [request.record for request in model.asked]
        assert [name for name in asked if name.endswith("/a")] == [f"p{i}/a" for i in range(1, 5)]
        assert [name for name in asked if name.endswith("/b")] == [f"p{i}/b" for i in range(1, 5)]


class TestColumns:
    def test_a_question_is_taken_apart_again(self) -> None:
        for title, body in (("t", "b"), ("t", ""), ("", "b\n\nc"), ("", "")):
            assert title_and_body(question_of(title, body)) == (title, body)

    def test_a_column_that_cannot_be_written(self, terminal: Terminal) -> None:
        with pytest.raises(UsageError, match=r"no/x\.parquet cannot be written"):
            add_column(Path("posts.parquet"), Path("no/x.parquet"), "category", lambda _: None)
        with pytest.raises(UsageError, match="cannot be read as Parquet"):
            add_column(Path("none.parquet"), Path("x.parquet"), "category", lambda _: None)
        assert sorted(path.name for path in Path().iterdir() if "part" in path.name) == []

    def test_values_across_batches(self, terminal: Terminal) -> None:
        n = 10_000
        pq.write_table(pa.table({"id": [str(i) for i in range(n)], "x": range(n)}), "many.parquet")
        add_column(
            Path("many.parquet"), Path("out.parquet"), "c",
            lambda name: None if int(name) % 3 else f"\u00e9{name}",
        )  # fmt: skip
        found = read("out.parquet")
        assert found["x"] == list(range(n))
        assert found["c"] == [None if i % 3 else f"\u00e9{i}" for i in range(n)]


@pytest.mark.parametrize(
    "words",
    [
        ("label", "posts.parquet", "--model", "sorter", "-o", "out.parquet"),
        ("answer", "posts.parquet", "--model", "fake", "-o", "out"),
    ],
    ids=["label", "answer"],
)
def test_a_cap_ends_it_and_the_rest_is_asked_later(
    terminal: Terminal, words: tuple[str, ...]
) -> None:
    code, _, err = terminal("corpus", *words, "--max-calls", "2")
    assert code == 1
    assert "the cap of 2 calls is reached: 2 were made" in err
    assert "2 calls made, 0 answers were stored already" in err
    code, _, err = terminal("corpus", *words, "--failures", "1", "--max-calls", "20")
    assert code == 0
    assert ", 2 answers were stored already" in err
