"""``habitus corpus``: what it prints, what it leaves, and how it ends."""

from __future__ import annotations

import gzip
import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from habitus.cli import run
from habitus.corpora import Reason
from test_corpora import MAP, dump, one_frame, submission

Run = Callable[..., tuple[int, str, str]]


@pytest.fixture
def habitus(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Run:
    """Run a command in a folder with two dumps: exit code, stdout, stderr."""
    monkeypatch.chdir(tmp_path)
    first = [submission(), submission(id="b", over_18=True), submission(id="c", subreddit="tea")]
    Path("RS_1.zst").write_bytes(one_frame(dump(*first)))
    second = [submission(), submission(id="d", title="Rice?", subreddit="Chinese")]
    Path("RS_2.gz").write_bytes(gzip.compress(dump(*second)))

    def one(*arguments: str) -> tuple[int, str, str]:
        code = run(arguments)
        printed = capsys.readouterr()
        return code, printed.out, printed.err

    return one


def build(habitus: Run, *more: str) -> tuple[int, str, str]:
    return habitus("corpus", "build", "RS_1.zst", "RS_2.gz", "-o", "posts.parquet", *more)


def test_build_says_what_became_of_every_line(habitus: Run, tmp_path: Path) -> None:
    code, out, err = build(habitus, "--map", "square")
    assert code == 0
    rows = [line.split("\t") for line in out.splitlines()]
    table = {row[0]: row[1:] for row in rows if len(row) == 3}
    assert rows[0] == ["line", "n", "share of lines"]
    assert [row[0] for row in rows[1:17]] == list(map(str, Reason))
    assert table["over_18"] == ["1", "0.2"]
    assert table["elsewhere"] == table["duplicate_id"] == ["1", "0.2"]
    assert table["kept"] == ["2", "0.4"]
    assert table["all lines"] == ["5", "1"]
    assert table["china"] == table["turkey"] == ["1", "0.5"]
    assert table["india"] == ["0", "0"]
    assert err.splitlines() == [
        "RS_1.zst: kept 1 of 3 lines",
        "RS_2.gz: kept 1 of 2 lines",
        "2 posts in posts.parquet, the counts beside it in posts.counts.json",
        "`habitus corpus label posts.parquet --model MODEL -o FILE` gives each a category",
    ]
    assert sorted(path.name for path in tmp_path.iterdir()) == [
        "RS_1.zst", "RS_2.gz", "posts.counts.json", "posts.parquet",
    ]  # fmt: skip


def test_build_as_json_is_the_file_of_counts(habitus: Run) -> None:
    code, out, _ = build(habitus, "--json")
    assert code == 0
    assert json.loads(out) == json.loads(Path("posts.counts.json").read_text(encoding="utf-8"))


def test_a_damaged_dump_is_told_and_ends_with_1(habitus: Run) -> None:
    Path("RS_2.gz").write_bytes(Path("RS_2.gz").read_bytes()[:40])
    code, out, err = build(habitus)
    assert code == 1
    assert "RS_2.gz: DAMAGED: the file is cut off" in err
    assert "kept\t1\t" in out
    files: list[Any] = json.loads(Path("posts.counts.json").read_text(encoding="utf-8"))["files"]
    assert [bool(file["damage"]) for file in files] == [False, True]


def test_a_corpus_of_nothing_ends_with_1(habitus: Run) -> None:
    Path("a.ndjson").write_bytes(dump(submission(over_18=True)))
    code, _, err = habitus("corpus", "build", "a.ndjson", "-o", "p.parquet")
    assert code == 1
    assert "no post was kept" in err
    assert habitus("corpus", "stats", "p.parquet") == (0, "country\tn\tof\tshare\n", "")


def test_a_map_of_ones_own(habitus: Run) -> None:
    folder = Path("experiments/corpora")
    folder.mkdir(parents=True)
    (folder / "mine.yaml").write_text(MAP.replace("AskThere", "tea"), encoding="utf-8")
    code, out, _ = build(habitus, "--map", "mine")
    assert code == 0
    assert "there\t1\t1\n" in out
    assert habitus("check", "experiments")[0] == 0


def test_stats(habitus: Run) -> None:
    build(habitus)
    code, out, err = habitus("corpus", "stats", "posts.parquet")
    assert (code, err) == (0, "")
    assert out == "country\tn\tof\tshare\nchina\t1\t2\t0.5\nturkey\t1\t2\t0.5\n"
    rows = json.loads(habitus("corpus", "stats", "posts.parquet", "--json")[1])
    assert rows[0] == {
        "by": "country", "country": "china", "category": None, "n": 1, "of": 2, "share": 0.5,
    }  # fmt: skip


def test_stats_of_labelled_posts(habitus: Run) -> None:
    import pyarrow as pa
    import pyarrow.parquet as pq

    columns = {"country": ["a", "a"], "category": ["arts", None]}
    pq.write_table(pa.table(columns), "p.parquet")
    out = habitus("corpus", "stats", "p.parquet")[1]
    assert out.split("\n\n") == [
        "country\tn\tof\tshare\na\t2\t2\t1",
        "category\tn\tof\tshare\n(none)\t1\t2\t0.5\narts\t1\t2\t0.5",
        "country\tcategory\tn\tof\tshare\na\t(none)\t1\t2\t0.5\na\tarts\t1\t2\t0.5\n",
    ]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("build", "none.zst", "-o", "p.parquet"), "there is no none.zst"),
        (("build", "RS_1.zst"), "Missing option '-o'"),
        (("build", "-o", "p.parquet"), "Missing argument"),
        (("build", "RS_1.zst", "-o", "no/p.parquet"), "cannot be written"),
        (("build", "RS_1.zst", "-o", "RS_1.zst"), "would be overwritten"),
        (("build", "RS_1.zst", "-o", "p.parquet", "--map", "sqare"), "did you mean 'square'"),
        (("build", "RS_1.zst", "-o", "p.parquet", "--map", "a.yaml"), "cannot be read"),
        (("stats", "none.parquet"), "cannot be read as Parquet"),
        (("stats", "RS_1.zst"), "cannot be read as Parquet"),
        (("stats", "other.parquet"), "no column 'country'"),
    ],
)
def test_wrong_usage_is_one_message_and_2(
    habitus: Run, arguments: tuple[str, ...], message: str
) -> None:
    import pyarrow as pa
    import pyarrow.parquet as pq

    pq.write_table(pa.table({"land": ["a"]}), "other.parquet")
    code, out, err = habitus("corpus", *arguments)
    assert (code, out) == (2, "")
    assert message in err
    assert "Traceback" not in err
    assert not Path("p.parquet").exists()


def test_without_pyarrow_the_extra_is_named(habitus: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    code, _, err = build(habitus)
    assert (code, err) == (2, 'corpora need pyarrow: pip install "habitus[corpora]"\n')
