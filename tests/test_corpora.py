"""Corpora: every line of every kind of dump is kept or counted once, and no user is in the result."""

from __future__ import annotations

import bz2
import datetime as dt
import gzip
import json
import lzma
import random
import tracemalloc
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import pytest
import zstandard
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from habitus.content import shipped_root
from habitus.corpora import (
    COLUMNS,
    Counts,
    LineReader,
    Post,
    Reason,
    build,
    clean_body,
    clean_title,
    counts_path,
    find_country_map,
    hide_names,
    load_country_map,
    read_posts,
    read_shares,
)
from habitus.corpora.filters import FILTERS, is_only_url
from habitus.corpora.stored import PostWriter
from habitus.errors import ContentError, NotFoundError, UsageError

SQUARE = find_country_map("square")
COUNTRIES = {"india": 37, "china": 7, "philippines": 4, "usa": 7, "korea": 4, "russia": 2}
WINDOW = zstandard.ZstdCompressionParameters.from_level(3, window_log=27, enable_ldm=True)


def submission(**changes: Any) -> dict[str, Any]:
    """A post that passes every filter, with some fields changed; ``...`` takes a field away."""
    plain = {
        "id": "abc12",
        "title": "When is tea served?",
        "selftext": "Before or after the meal?",
        "author": "quiet_harbour",
        "subreddit": "AskTurkey",
        "created_utc": 1661990400,
        "over_18": False,
        "num_comments": 3,
        "url": "https://www.reddit.com/r/AskTurkey/comments/abc12/x/",
    }
    return {key: value for key, value in (plain | changes).items() if value is not ...}


def dump(*posts: dict[str, Any]) -> bytes:
    return b"".join(json.dumps(one).encode() + b"\n" for one in posts)


def built(tmp_path: Path, *data: bytes, max_line: int = 2**20) -> tuple[Counts, list[Post]]:
    """What comes of files with this content."""
    paths = []
    for i, content in enumerate(data):
        paths.append(tmp_path / f"RS_{i}.ndjson")
        paths[-1].write_bytes(content)
    out = tmp_path / "posts.parquet"
    counts = build(paths, SQUARE, out, max_line=max_line)
    assert counts.lines == counts.kept + counts.reasons.total()
    assert counts.lines == sum(file.lines for file in counts.files)
    posts = stored(out)
    assert len(posts) == counts.kept
    return counts, posts


def stored(path: Path) -> list[Post]:
    return [
        Post(**dict(zip(COLUMNS, values, strict=True)))
        for batch in read_posts(path)
        for values in zip(*batch.values(), strict=True)
    ]


def outcome(tmp_path: Path, line: bytes) -> str:
    counts, _ = built(tmp_path, line + b"\n")
    return "kept" if counts.kept else str(next(iter(counts.reasons)))


PARENT = {
    "id": "pp1",
    "title": "The first title",
    "selftext": "The first text.",
    "author": "p_author",
}
CASES: dict[str, tuple[dict[str, Any], str]] = {
    "plain": ({}, "kept"),
    # fields whose type changed over the years
    "time as text": ({"created_utc": "1409529600"}, "kept"),
    "time as float": ({"created_utc": 1706745600.0}, "kept"),
    "no time": ({"created_utc": None}, "kept"),
    "null url and domain": ({"url": None, "domain": None}, "kept"),
    "null score and subreddit_id": ({"score": None, "subreddit_id": None}, "kept"),
    "edited is a float": ({"edited": 1661991000.5}, "kept"),
    "comments as text": ({"num_comments": "7"}, "kept"),
    "comments as float": ({"num_comments": 7.0}, "kept"),
    "over_18 as number": ({"over_18": 0}, "kept"),
    "over_18 as text": ({"over_18": "true"}, "over_18"),
    "poll_data is a bool": ({"poll_data": True}, "kept"),
    "second readings": ({"_meta": {"retrieved_2nd_on": 1706875209}}, "kept"),
    "deleted at first, back later": ({"_meta": {"was_initially_deleted": True}}, "kept"),
    "id with its prefix": ({"id": "t3_abc12"}, "kept"),
    "subreddit in another case": ({"subreddit": "ASKturkey"}, "kept"),
    # no post
    "no id": ({"id": ...}, "no_post"),
    "id is a number": ({"id": 12}, "no_post"),
    "id of another form": ({"id": "a/b"}, "no_post"),
    "a comment": ({"title": ..., "body": "Yes."}, "no_post"),
    "title is null": ({"title": None}, "no_post"),
    "subreddit is null": ({"subreddit": None}, "no_post"),
    "text is a list": ({"selftext": ["a"]}, "no_post"),
    # elsewhere
    "another subreddit": ({"subreddit": "tea"}, "elsewhere"),
    "a user's page": ({"subreddit": "u_quiet_harbour"}, "elsewhere"),
    "part of a name": ({"subreddit": "AskTurkeys"}, "elsewhere"),
    # over 18
    "over 18": ({"over_18": True}, "over_18"),
    "over 18 not said": ({"over_18": ...}, "over_18_unknown"),
    "over 18 is odd": ({"over_18": 7}, "over_18_unknown"),
    # deleted or removed in all its faces
    "removed": ({"selftext": "[removed]"}, "deleted"),
    "deleted": ({"selftext": "[deleted]", "author": "[deleted]"}, "deleted"),
    "removed by reddit": ({"selftext": "[removed by reddit]"}, "deleted"),
    "long notice with spaces": (
        {"selftext": "[ Removed by Reddit on account of violating the content policy. ]"},
        "deleted",
    ),
    "title replaced": ({"title": "[deleted by user]"}, "deleted"),
    "title replaced with spaces": ({"title": "[ Removed by Reddit ]"}, "deleted"),
    "marker with a zero-width space": ({"selftext": "&amp;#x200B;[removed]\n"}, "deleted"),
    "empty and a category": ({"selftext": "", "removed_by_category": "moderator"}, "deleted"),
    "text stands, category says deleted": ({"removed_by_category": "deleted"}, "deleted"),
    "a category not known yet": ({"removed_by_category": "someone_new"}, "deleted"),
    "category is null": ({"removed_by_category": None}, "kept"),
    "removal reason": ({"removal_reason": "legal"}, "deleted"),
    "deleted later": ({"_meta": {"was_deleted_later": True}}, "deleted"),
    "removal type": ({"_meta": {"removal_type": "deleted"}}, "deleted"),
    "only the author is gone": ({"author": "[deleted]"}, "kept"),
    "talks of removal": ({"selftext": "My post was [removed] yesterday, why?"}, "kept"),
    # comments
    "no comments": ({"num_comments": 0}, "no_comments"),
    "no comments as text": ({"num_comments": "0"}, "no_comments"),
    "comments null": ({"num_comments": None}, "comments_unknown"),
    "comments absent": ({"num_comments": ...}, "comments_unknown"),
    "comments negative": ({"num_comments": -1}, "comments_unknown"),
    "comments no number": ({"num_comments": "many"}, "comments_unknown"),
    "comments not a number": ({"num_comments": float("nan")}, "comments_unknown"),
    # text
    "empty": ({"selftext": ""}, "no_text"),
    "null": ({"selftext": None}, "no_text"),
    "absent": ({"selftext": ...}, "no_text"),
    "only blanks": ({"selftext": "&amp;nbsp;\n\n&amp;#x200B; \u200b\ufeff"}, "no_text"),
    "only signs": ({"selftext": "?! \\- ..."}, "no_text"),
    "link post": ({"selftext": "", "is_self": False, "url": "https://example.invalid/a"}, "no_text"),
    "crosspost": ({"selftext": "", "crosspost_parent_list": [PARENT]}, "kept"),
    "crosspost of nothing": (
        {"selftext": "", "crosspost_parent_list": [PARENT | {"selftext": ""}]},
        "no_text",
    ),
    "crosspost of removed": (
        {"selftext": "", "crosspost_parent_list": [PARENT | {"selftext": "[removed]"}]},
        "deleted",
    ),
    "crosspost of adult": (
        {"selftext": "", "crosspost_parent_list": [PARENT | {"over_18": True}]},
        "over_18",
    ),
    "crosspost with an odd parent": ({"crosspost_parent_list": [None, 3]}, "kept"),
    "url": ({"selftext": "https://example.invalid/only"}, "only_url"),
    "urls and dashes": ({"selftext": "- <https://a.invalid/x>\n- www.b.invalid"}, "only_url"),
    "Markdown link": ({"selftext": "[look here](https://a.invalid/x)"}, "only_url"),
    "poll": ({"selftext": "\n\n[View Poll](https://a.invalid/poll/x)"}, "only_url"),
    "picture on its way": ({"selftext": "*Processing img 8a7b6c...*"}, "only_url"),
    "url with words": ({"selftext": "Is https://a.invalid/x right?"}, "kept"),
    # advertisements
    "promoted": ({"promoted": True}, "advertisement"),
    "made as an ad": ({"is_created_from_ads_ui": True}, "advertisement"),
    "phrase": ({"selftext": "Fresh tea! Use the PROMO-CODE tea5 today."}, "advertisement"),
    "phrase in the title": ({"title": "WTS two tickets"}, "advertisement"),
    "phrase inside a word": ({"title": "Newts and toads"}, "kept"),
    # translations
    "how do you say": ({"title": "How do you say good morning in Turkish?"}, "translation"),
    "short body": ({"selftext": "Can anyone translate the back of this card?"}, "translation"),
    "long body in passing": (
        {"selftext": "Can anyone translate? " + "I moved here to learn the trade. " * 20},
        "kept",
    ),
    "talks of meaning": ({"title": "What does hospitality mean to people here?"}, "kept"),
    # text that could be taken for something else
    "other scripts": ({"title": "भारत में क्या खाना चाहिए?", "selftext": "👩\u200d⚕️ 你好"}, "kept"),
    "half a pair": ({"title": "half \ud835 pair"}, "kept"),
    "line separators": ({"title": "line\u2028sep", "selftext": "a\u0085b"}, "kept"),
    "tokens of judges": ({"title": "##Insider## <|END|>", "selftext": "Final: ##Yes##"}, "kept"),
    "braces": ({"title": "{question} {0} {{x}} {% raw %}"}, "kept"),
}  # fmt: skip


class TestFilters:
    @pytest.mark.parametrize(("changes", "expected"), CASES.values(), ids=CASES)
    def test_quirk(self, tmp_path: Path, changes: dict[str, Any], expected: str) -> None:
        assert outcome(tmp_path, json.dumps(submission(**changes)).encode()) == expected

    @pytest.mark.parametrize(
        ("line", "expected"),
        [
            (b"", "empty_line"),
            (b" \t\r", "empty_line"),
            (b'{"id": "a", "title": "cut o', "broken_line"),
            (b"\xff\xfe{}", "broken_line"),
            (b"\x00" * 40, "broken_line"),
            (b"[" * 100_000, "broken_line"),
            (b"[]", "no_post"),
            (b"null", "no_post"),
            (b'"text"', "no_post"),
            (b"{}", "no_post"),
            (b'{"x": "' + b"y" * 2**20 + b'"}', "long_line"),
            (b"\xef\xbb\xbf" + dump(submission()).strip(), "kept"),
            (dump(submission()).strip() + b"\r", "kept"),
        ],
        ids=["empty", "blank", "cut", "no UTF-8", "zeros", "deep", "list", "null", "text",
             "object", "long", "byte order mark", "carriage return"],
    )  # fmt: skip
    def test_line(self, tmp_path: Path, line: bytes, expected: str) -> None:
        assert outcome(tmp_path, line) == expected

    def test_the_first_reason_in_the_order_of_the_list_counts(self, tmp_path: Path) -> None:
        worst = submission(
            over_18=True,
            removed_by_category="moderator",
            num_comments=0,
            promoted=True,
            selftext="https://a.invalid",
        )
        assert outcome(tmp_path, json.dumps(worst).encode()) == "over_18"
        tested = [reason for reason, _ in FILTERS]
        assert tested == [reason for reason in Reason if reason in tested]

    @pytest.mark.parametrize(
        ("first", "second", "reason"),
        [
            ({}, {"title": "Another", "selftext": "text"}, "duplicate_id"),
            ({}, {"id": "ABC12", "title": "Another"}, "duplicate_id"),
            ({}, {"id": "zz9"}, "duplicate_text"),
            ({}, {"id": "zz9", "title": "WHEN is  tea served?\n"}, "duplicate_text"),
            ({}, {"id": "zz9", "title": "When is tea s\uff45rved?"}, "duplicate_text"),
            ({}, {"id": "zz9", "subreddit": "AskIndia"}, "duplicate_text"),
            ({"num_comments": 0}, {}, None),
            ({"selftext": "[removed]"}, {}, None),
            ({}, {"id": "zz9", "selftext": "Before, or after the meal?"}, None),
        ],
        ids=["id", "case of the id", "text", "case and space", "full width", "other country",
             "first without comments", "first removed", "another text"],
    )  # fmt: skip
    @pytest.mark.parametrize("files", [1, 2])
    def test_duplicates(
        self,
        tmp_path: Path,
        first: dict[str, Any],
        second: dict[str, Any],
        reason: str | None,
        files: int,
    ) -> None:
        data = [dump(submission(**first)), dump(submission(**second))]
        counts, _ = built(tmp_path, *(data if files == 2 else [b"".join(data)]))
        if reason:
            assert counts.reasons == {Reason(reason): 1}
        assert counts.kept == 2 - counts.reasons.total()

    @pytest.mark.parametrize(
        "part", ["[", "(", "![](", " ", "www.", "a@", "u/a", "reddit.com/", "\u200d"]
    )
    def test_hostile_text_takes_no_time(self, part: str) -> None:
        body = "a" * 40_000 + part * (40_000 // len(part)) + "b"
        assert not is_only_url(body)
        assert hide_names(clean_body(body), ["a" * 20])
        assert not SQUARE.translation.stand_in("translate " + body)


class TestStored:
    def test_a_row(self, tmp_path: Path) -> None:
        _, posts = built(tmp_path, dump(submission(subreddit="askturkey", id="t3_ABC12")))
        assert posts == [
            Post(
                id="abc12",
                title="When is tea served?",
                body="Before or after the meal?",
                subreddit="AskTurkey",
                country="turkey",
                created=dt.datetime(2022, 9, 1, tzinfo=dt.UTC),
                num_comments=3,
            )
        ]

    @pytest.mark.parametrize(
        ("value", "expected"),
        [
            (1409529600, dt.datetime(2014, 9, 1, tzinfo=dt.UTC)),
            ("1409529600", dt.datetime(2014, 9, 1, tzinfo=dt.UTC)),
            (1706745600.9, dt.datetime(2024, 2, 1, tzinfo=dt.UTC)),
            (0, None), (None, None), (..., None), ("soon", None), (True, None), (10**15, None),
            (-5, None), ([], None), (10**400, None), ("inf", None),
        ],
    )  # fmt: skip
    def test_times_are_utc_or_unknown(
        self, tmp_path: Path, value: object, expected: dt.datetime | None
    ) -> None:
        counts, posts = built(tmp_path, dump(submission(created_utc=value)))
        assert [post.created for post in posts] == [expected]
        assert counts.undated == (expected is None)

    def test_a_crosspost_has_its_own_title_and_the_text_of_its_parent(self, tmp_path: Path) -> None:
        given = submission(selftext="", crosspost_parent_list=[PARENT])
        counts, posts = built(tmp_path, dump(given))
        assert (posts[0].title, posts[0].body) == ("When is tea served?", "The first text.")
        assert (posts[0].subreddit, counts.crossposted) == ("AskTurkey", 1)

    def test_counts_beside_the_posts(self, tmp_path: Path) -> None:
        posts = [submission(), submission(id="b1", over_18=True), submission(id="b2", title="New")]
        counts, _ = built(tmp_path, dump(*posts) + b"\n{broken")
        written = json.loads(counts_path(tmp_path / "posts.parquet").read_bytes())
        assert written == counts.as_json(SQUARE)
        assert (written["map"], written["lines"], written["kept"]) == ("square", 5, 2)
        assert list(written["dropped"]) == list(map(str, Reason))
        dropped = {reason: n for reason, n in written["dropped"].items() if n}
        assert dropped == {"over_18": 1, "empty_line": 1, "broken_line": 1}
        assert written["countries"] == dict.fromkeys(SQUARE.countries, 0) | {"turkey": 2}
        assert written["subreddits"]["turkey"] == {"TrapTurkey": 0, "AskTurkey": 2, "Turkey": 0}
        assert written["files"] == [
            {"name": "RS_0.ndjson", "lines": 5, "kept": 2, "unterminated": True, "damage": None}
        ]

    def test_the_same_input_gives_the_same_bytes(self, tmp_path: Path) -> None:
        out, data = tmp_path / "posts.parquet", dump(submission(), submission(id="b", title="B"))
        seen = []
        for _ in range(2):
            built(tmp_path, data)
            seen.append((out.read_bytes(), counts_path(out).read_bytes()))
        assert seen[0] == seen[1]

    def test_times_and_gaps_in_a_long_column(self, tmp_path: Path) -> None:
        times = [None if i % 3 == 1 else 1_500_000_000 + i for i in range(50)]
        lines = [submission(id=f"p{i}", title=f"T{i}", created_utc=t) for i, t in enumerate(times)]
        _, rows = built(tmp_path, dump(*lines))
        assert [row.created and row.created.timestamp() for row in rows] == times
        assert len({row.title for row in rows}) == 50

    def test_many_rows_are_many_groups(self, tmp_path: Path) -> None:
        import pyarrow.parquet as pq

        posts = [submission(id=f"p{i}", title=f"Title {i}") for i in range(5000)]
        _, rows = built(tmp_path, dump(*posts))
        assert [row.id for row in rows] == [post["id"] for post in posts]
        assert pq.ParquetFile(tmp_path / "posts.parquet").num_row_groups == 2

    def test_a_build_that_fails_leaves_what_was_there(self, tmp_path: Path) -> None:
        out = tmp_path / "posts.parquet"
        out.write_bytes(b"before")
        with pytest.raises(KeyboardInterrupt), PostWriter(out):
            raise KeyboardInterrupt
        assert out.read_bytes() == b"before"
        assert list(tmp_path.iterdir()) == [out]

    @pytest.mark.parametrize(
        ("name", "out", "message"),
        [
            ("missing.zst", "p.parquet", "there is no"),
            (".", "p.parquet", "is a folder"),
            ("a.ndjson", "a.ndjson", "would be overwritten"),
            ("p.counts.json", "p.parquet", "would be overwritten"),
            ("a.ndjson", "none/p.parquet", "cannot be written"),
            ("a.zst_blocks", "p.parquet", "zst_blocks is not read"),
        ],
    )
    def test_wrong_paths(self, tmp_path: Path, name: str, out: str, message: str) -> None:
        for file in ("a.ndjson", "p.counts.json", "a.zst_blocks"):
            (tmp_path / file).write_bytes(b"{}")
        before = sorted(tmp_path.iterdir())
        with pytest.raises(UsageError, match=message):
            build([tmp_path / name], SQUARE, tmp_path / out)
        assert sorted(tmp_path.iterdir()) == before

    def test_no_file_is_wrong_usage(self, tmp_path: Path) -> None:
        with pytest.raises(UsageError, match="no file"):
            build([], SQUARE, tmp_path / "p.parquet")


def one_frame(data: bytes) -> bytes:
    compressor = zstandard.ZstdCompressor(compression_params=WINDOW).compressobj()
    return compressor.compress(data) + compressor.flush()


def wide_frame(data: bytes) -> bytes:
    """One frame that asks for the widest window, 2^31: its header is written by hand."""
    block = (len(data) << 3 | 1).to_bytes(3, "little") + data
    assert len(data) < 2**17
    return b"\x28\xb5\x2f\xfd\x00" + bytes([(31 - 10) << 3]) + block


COMPRESS: dict[str, Callable[[bytes], bytes]] = {
    ".ndjson": lambda data: data,
    ".zst": one_frame,
    ".gz": gzip.compress,
    ".xz": lzma.compress,
    ".bz2": bz2.compress,
}
LINES = [b'{"a": "\xe2\x80\xa8\xc2\x85\x0c"}', b"", b"x" * 5000, "Māori نَنگ".encode()]


def read(path: Path, data: bytes, **options: int) -> tuple[list[bytes | None], LineReader]:
    path.write_bytes(data)
    reader = LineReader(path, **options)
    return list(reader), reader


class TestLines:
    @pytest.mark.parametrize("suffix", COMPRESS)
    @pytest.mark.parametrize("end", [b"\n", b""], ids=["terminated", "unterminated"])
    def test_every_form(self, tmp_path: Path, suffix: str, end: bytes) -> None:
        data = COMPRESS[suffix](b"\n".join(LINES) + end)
        lines, reader = read(tmp_path / f"a{suffix}", data)
        assert lines == LINES
        assert (reader.damage, reader.unterminated) == (None, not end)

    @pytest.mark.parametrize("suffix", [s for s in COMPRESS if s != ".ndjson"])
    def test_several_frames_cut_lines_and_letters(self, tmp_path: Path, suffix: str) -> None:
        data = b"\n".join(LINES)
        parts = (data[:3], b"", data[3:9], data[9:])
        lines, reader = read(tmp_path / f"a{suffix}", b"".join(map(COMPRESS[suffix], parts)))
        assert (lines, reader.damage) == (LINES, None)

    @pytest.mark.parametrize("suffix", [s for s in COMPRESS if s != ".ndjson"])
    def test_the_form_is_seen_from_the_content(self, tmp_path: Path, suffix: str) -> None:
        lines, reader = read(tmp_path / "a.json", COMPRESS[suffix](b"a\nb\n"))
        assert (lines, reader.damage) == ([b"a", b"b"], None)

    def test_a_skippable_frame_is_skipped(self, tmp_path: Path) -> None:
        data = b"\x50\x2a\x4d\x18\x03\x00\x00\x00abc" + one_frame(b"a\n")
        lines, reader = read(tmp_path / "a.zst", data)
        assert (lines, reader.damage) == ([b"a"], None)

    def test_the_widest_window_is_read(self, tmp_path: Path) -> None:
        data = wide_frame(dump(submission()))
        assert zstandard.get_frame_parameters(data).window_size == 2**31
        lines, reader = read(tmp_path / "a.zst", data)
        assert (len(lines), reader.damage) == (1, None)

    @pytest.mark.parametrize("suffix", [s for s in COMPRESS if s != ".ndjson"])
    @pytest.mark.parametrize("kept", [0.02, 0.5, 0.999])
    @pytest.mark.parametrize("before", [0, 1], ids=["first frame", "second frame"])
    def test_a_file_that_is_cut_off_is_damaged(
        self, tmp_path: Path, suffix: str, kept: float, before: int
    ) -> None:
        whole = COMPRESS[suffix](b"".join(b"%d\n" % (i * 7919) for i in range(2000)))
        data = COMPRESS[suffix](b"first\n") * before + whole[: max(8, int(len(whole) * kept))]
        lines, reader = read(tmp_path / f"a{suffix}", data)
        assert reader.damage is not None
        assert "cut off" in reader.damage
        assert lines[:before] == [b"first"] * before

    @pytest.mark.parametrize(
        "data",
        [b"", b"no frame at all\n", one_frame(b"a\n") + b"rest\n", one_frame(b"a" * 999)[:-9] + b"x" * 99],
        ids=["empty", "plain text", "rest", "flipped"],
    )  # fmt: skip
    def test_a_file_that_is_not_what_its_name_says(self, tmp_path: Path, data: bytes) -> None:
        _, reader = read(tmp_path / "a.zst", data)
        assert reader.damage is not None
        assert "cannot be read to its end" in reader.damage or "cut off" in reader.damage

    @pytest.mark.parametrize(
        ("data", "lines"),
        [
            (b"12345678\nab\n", [b"12345678", b"ab"]),
            (b"123456789\nab\n", [None, b"ab"]),
            (b"ab\n" + b"x" * 3_000_000 + b"\nab", [b"ab", None, b"ab"]),
            (b"x" * 3_000_000, [None]),
        ],
    )
    def test_long_lines_are_told_and_not_held(
        self, tmp_path: Path, data: bytes, lines: list[bytes | None]
    ) -> None:
        assert read(tmp_path / "a.ndjson", data, max_line=8)[0] == lines

    @pytest.mark.parametrize(
        ("data", "damage"),
        [
            (b"", "the file is empty"),
            (b"{}\n\n", "no line of it is a submission"),
            (dump(submission(subreddit="tea")), None),
        ],
    )
    def test_a_file_without_posts_is_no_empty_month(
        self, tmp_path: Path, data: bytes, damage: str | None
    ) -> None:
        counts, _ = built(tmp_path, data)
        assert [file.damage for file in counts.files] == [damage]

    def test_what_stands_before_the_damage_is_kept_and_the_next_file_read(
        self, tmp_path: Path
    ) -> None:
        posts = [submission(id=f"p{i}", title=f"{i * 7919}") for i in range(4000)]
        (tmp_path / "a.gz").write_bytes(gzip.compress(dump(*posts))[:-3000])
        (tmp_path / "b.xz").write_bytes(lzma.compress(dump(submission(id="last"))))
        out = tmp_path / "p.parquet"
        counts = build([tmp_path / "a.gz", tmp_path / "b.xz"], SQUARE, out)
        assert [file.name for file in counts.damaged] == ["a.gz"]
        assert 100 < counts.files[0].kept < 4000
        assert counts.files[0].unterminated
        assert stored(out)[-1].id == "last"


NAME = "Planted-Name_77"
ESCAPED = NAME.replace("_", r"\_")


def everywhere(value: Any) -> Iterable[Any]:
    """A name in every field of a submission, old and new, one way after another."""
    for text in (
        f"Ask u/{NAME} or /u/{NAME.lower()}.",
        f"[{NAME}](https://www.reddit.com/user/{NAME}/comments/x) told me",
        f"see old.reddit.com/u/{NAME}?x=1 and r/u_{NAME}",
        f"Escaped u/{ESCAPED}, and {ESCAPED} alone",
        f"u/&#x200B;{NAME}, U/{NAME.upper()}",
        f"Signed, {NAME}",
        f"@{NAME} on other pages, https://tube.invalid/@{NAME}",
    ):
        yield {
            **value,
            "title": f"Tea? {text}",
            "selftext": f"Before the meal? {text}",
            "author": NAME,
            "author_fullname": f"t2_{NAME}",
            "author_flair_text": NAME,
            "author_flair_richtext": [{"t": NAME}],
            "link_flair_text": NAME,
            "permalink": f"/r/u_{NAME}/comments/abc12/",
            "url": f"https://www.reddit.com/user/{NAME}",
            "domain": f"self.{NAME}",
            "approved_by": NAME,
            "banned_by": NAME,
            "removed_by": None,
            "user_reports": [[NAME, 1]],
            "mod_reports": [[NAME, 1]],
            "media": {"oembed": {"author_name": NAME}},
            "crosspost_parent_list": [{**PARENT, "author": NAME, "selftext": text}],
            "distinguished": NAME,
            "_meta": {"note": NAME},
            NAME: NAME,
        }


class TestNames:
    @pytest.mark.parametrize("way", range(7))
    @pytest.mark.parametrize("crossposted", [False, True], ids=["own text", "text of the parent"])
    def test_a_name_planted_in_every_field_is_in_no_output(
        self, tmp_path: Path, way: int, crossposted: bool
    ) -> None:
        post = list(everywhere(submission()))[way]
        if crossposted:
            post["selftext"] = ""
        counts, posts = built(tmp_path, dump(post))
        assert (counts.kept, counts.renamed) == (1, 1)
        assert "[user]" in posts[0].title
        assert "[user]" in posts[0].body
        seen = (
            repr(posts).casefold() + counts_path(tmp_path / "posts.parquet").read_text().casefold()
        )
        assert "planted" not in seen

    def test_no_column_but_those_named(self, tmp_path: Path) -> None:
        built(tmp_path, dump(submission()))
        batch = next(read_posts(tmp_path / "posts.parquet"))
        assert tuple(batch) == COLUMNS
        assert not [name for name in batch if "author" in name]

    @pytest.mark.parametrize("field", ["id", "subreddit"])
    def test_a_name_as_id_or_subreddit_is_dropped(self, tmp_path: Path, field: str) -> None:
        counts, _ = built(tmp_path, dump(submission(**{field: f"u_{NAME}"})))
        assert counts.kept == 0

    @pytest.mark.parametrize(
        ("text", "shown"),
        [
            ("thanks u/some_one!", "thanks [user]!"),
            ("(/u/some-one)", "([user])"),
            ("https://reddit.com/u/some_one/?a=b, yes", "[user] yes"),
            ("r/u_some_one", "[user]"),
            ("u_some_one, and /r/u\\_some\\_one.", "[user], and [user]."),
            ("(https://www.reddit.com/r/u_some_one/comments/x)", "([user])"),
            ("id t2_abc123x here", "id [user] here"),
            ("write to first.last+tag@mail.invalid.org now", "write to [email] now"),
            ("by @some.one.", "by [user]."),
            ("under u/s 138 of the act", "under u/s 138 of the act"),
            ("you/me and us/them", "you/me and us/them"),
            ("r/AskTurkey, 5 @ 3", "r/AskTurkey, 5 @ 3"),
            ("menu/list", "menu/list"),
        ],
    )
    def test_mentions(self, text: str, shown: str) -> None:
        assert hide_names(text) == shown

    @pytest.mark.parametrize(
        ("name", "shown"),
        [
            ("ravi77", "[user] and ravi778, RAVI-77"),
            ("RAVI-77", "Ravi77 and ravi778, [user]"),
            ("[deleted]", "Ravi77 and ravi778, RAVI-77"),
            ("", "Ravi77 and ravi778, RAVI-77"),
            ("an", "Ravi77 and ravi778, RAVI-77"),
            ("(.*)", "Ravi77 and ravi778, RAVI-77"),
        ],
    )
    def test_known_names(self, name: str, shown: str) -> None:
        assert hide_names("Ravi77 and ravi778, RAVI-77", [name]) == shown


class TestText:
    @pytest.mark.parametrize(
        ("text", "expected"),
        [
            ("a &amp; b &lt;c&gt; &quot;d&#39;", "a & b <c> \"d'"),
            ("&amp;amp; &amp;lt;", "&amp; &lt;"),
            ("see ?a=1&copy=2&amp;reg=3", "see ?a=1&copy=2&reg=3"),
            ("a&amp;#x200B;b &amp;nbsp; c", "a b   c"),
            ("&#x200B;a", "a"),
            ("a\u200bb\ufeff\u2060c\u00add", "abcd"),
            ("a\u00a0b\u3000c", "a b c"),
            ("\u202eabc\u202c \u2066d\u2069", "abc d"),
            ("esc\x1b[2J\x07", "esc[2J"),
            (
                "क्\u200dष \u0645\u06cc\u200c\u062e\u0648\u0647\u0645 👩\u200d⚕️",
                "क्\u200dष \u0645\u06cc\u200c\u062e\u0648\u0647\u0645 👩\u200d⚕️",
            ),
            ("u/\u200da\u200cb", "u/ab"),
            ("e\u0301", "é"),
            ("\uff26\uff55ll width", "\uff26\uff55ll width"),
            ("half \ud835 pair &#xD800;", "half \ufffd pair \ufffd"),
            ("a  \r\nb\rc\u2028d\n\n\n\n\ne \n", "a\nb\nc\nd\n\ne"),
        ],
    )
    def test_body(self, text: str, expected: str) -> None:
        assert clean_body(text) == expected

    def test_title_is_one_line(self) -> None:
        assert clean_title(" NUMBERS &amp; \u2028 WEB\nSITES\t") == "NUMBERS & WEB SITES"

    @given(st.text())
    def test_clean_text_can_be_stored_and_is_clean(self, text: str) -> None:
        for cleaned in (clean_title(text), clean_body(text)):
            assert cleaned.encode().decode() == cleaned
            assert cleaned == cleaned.strip()
            assert not {"\u200b", "\x1b", "\r", "\u2028", "\u202e"} & set(cleaned)


ANY_JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(st.text(max_size=4), inner, max_size=2),
    max_leaves=4,
)  # fmt: skip
FIELDS = ["id", "title", "selftext", "author", "subreddit", "created_utc", "over_18", "_meta",
          "num_comments", "removed_by_category", "crosspost_parent_list", "promoted"]  # fmt: skip
ONCE = settings(deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])


class TestEveryLineIsCountedOnce:
    @ONCE
    @given(st.lists(st.binary(max_size=40)), st.booleans())
    def test_of_any_bytes(self, tmp_path: Path, lines: list[bytes], ended: bool) -> None:
        data = b"\n" + b"\n".join(lines) + b"\n" * ended  # never the start of a compressed file
        counts, _ = built(tmp_path, data, max_line=32)
        assert counts.lines == data.count(b"\n") + (not data.endswith(b"\n"))
        assert counts.files[0].unterminated != data.endswith(b"\n")

    @ONCE
    @given(st.lists(st.dictionaries(st.sampled_from(FIELDS), ANY_JSON), min_size=1, max_size=5))
    def test_of_any_fields(self, tmp_path: Path, changes: list[dict[str, Any]]) -> None:
        counts, posts = built(tmp_path, dump(*(submission() | change for change in changes)))
        assert counts.lines == len(changes)
        assert len({post.id for post in posts}) == len(posts)

    @ONCE
    @given(st.binary(max_size=60), st.sampled_from([s for s in COMPRESS if s != ".ndjson"]))
    def test_of_any_damage(self, tmp_path: Path, noise: bytes, suffix: str) -> None:
        whole = COMPRESS[suffix](dump(submission()))
        for data in (noise, whole + noise, whole[:20] + noise + whole[20:]):
            lines, _ = read(tmp_path / f"a{suffix}", data, max_line=2**16)
            assert all(line is None or b"\n" not in line for line in lines)


class TestMemory:
    def test_it_does_not_grow_with_what_is_dropped(self, tmp_path: Path) -> None:
        dice = random.Random(1)
        peaks = []
        for n in (1, 500, 4000):  # the first loads what is loaded once
            texts = (dice.randbytes(800).hex() for _ in range(n))
            lines = (submission(id=f"p{i}", selftext=t, over_18=True) for i, t in enumerate(texts))
            path = tmp_path / f"{n}.zst"
            path.write_bytes(one_frame(dump(*lines)))
            tracemalloc.start()
            assert build([path], SQUARE, tmp_path / "p.parquet").reasons == {Reason.OVER_18: n}
            peaks.append(tracemalloc.get_traced_memory()[1])
            tracemalloc.stop()
        assert path.stat().st_size > 3 * 2**20
        assert peaks[2] < peaks[1] + 2**18

    def test_a_kept_post_costs_little(self, tmp_path: Path) -> None:
        peaks = []
        for n in (5000, 12000):
            path = tmp_path / f"{n}.ndjson"
            with path.open("wb") as file:
                for i in range(n):
                    file.write(dump(submission(id=f"p{i}", title=f"T {i}", selftext=f"text {i}")))
            tracemalloc.start()
            assert build([path], SQUARE, tmp_path / "p.parquet").kept == n
            peaks.append(tracemalloc.get_traced_memory()[1])
            tracemalloc.stop()
        assert (peaks[1] - peaks[0]) / 7000 < 400


MAP = """\
id: mine
title: "Two countries"
countries:
  here: {name: "Here", subreddits: [AskHere, Here]}
  there: {name: "There", subreddits: [AskThere]}
advertisements: ["buy now"]
translations: ["how do you say ... in"]
"""


class TestCountryMap:
    def test_square_has_the_64_subreddits_of_seven_countries(self) -> None:
        counts = {country: len(one.subreddits) for country, one in SQUARE.countries.items()}
        assert counts == COUNTRIES | {"turkey": 3}
        assert len(SQUARE.by_subreddit) == 64
        assert SQUARE.by_subreddit["dragracephilippines"] == ("philippines", "DragRacePhilippines")

    def test_another_country_needs_one_file_and_no_code(self, tmp_path: Path) -> None:
        path = tmp_path / "mine.yaml"
        path.write_text(MAP, encoding="utf-8")
        mine = load_country_map(path)
        data = tmp_path / "a.ndjson"
        data.write_bytes(dump(submission(subreddit="askthere"), submission(id="b")))
        counts = build([data], mine, tmp_path / "p.parquet")
        assert counts.countries(mine) == {"here": 0, "there": 1}

    def test_a_map_without_phrases_drops_none_for_them(self, tmp_path: Path) -> None:
        path = tmp_path / "mine.yaml"
        path.write_text("".join(MAP.splitlines(keepends=True)[:5]), encoding="utf-8")
        mine = load_country_map(path)
        assert not mine.advertisement.stand_in("buy now")
        assert not mine.translation.stand_in("")

    @pytest.mark.parametrize(
        ("text", "found"),
        [
            ("How do you say good morning in Turkish", True),
            ("how, do you say: 'a' in b", True),
            ("How do you say in", True),
            ("how do you say one two three four five six seven eight nine in b", False),
            ("Show do you say x in b", False),
        ],
    )
    def test_gaps_in_phrases(self, tmp_path: Path, text: str, found: bool) -> None:
        path = tmp_path / "mine.yaml"
        path.write_text(MAP, encoding="utf-8")
        assert load_country_map(path).translation.stand_in(text) == found

    @pytest.mark.parametrize(
        ("old", "new", "place", "message"),
        [
            ("id: mine", "id: yours", "1:5", "rename the file"),
            ("AskThere", "askhere", "5:39", "listed twice; first in here"),
            ("[AskThere]", "[r/AskThere]", "5:39", "without 'r/'"),
            ("[AskThere]", "[u_someone]", "5:39", "page of a user"),
            ("[AskThere]", '["Ask There"]', "5:39", "2 to 21 letters"),
            ("[AskThere]", "[]", "5:38", "at least 1 item"),
            ("[AskThere]", "[2007]", "5:39", "put it in quotes"),
            ("subreddits: [AskThere]", "subreddit: [AskThere]", "5:26", "did you mean 'subreddits'"),
            ("  there:", "  There:", "5:3", "lower-case"),
            ('title: "Two countries"', "", "1:1", "missing key 'title'"),
            ("how do you say ... in", "how do you say ...", "7:16", "both sides"),
            ('"buy now"', '"buy\\nnow"', "6:18", "one line"),
            ('"buy now"', '"!!"', "6:18", "has words"),
        ],
    )  # fmt: skip
    def test_damaged_maps(
        self, tmp_path: Path, old: str, new: str, place: str, message: str
    ) -> None:
        assert old in MAP
        path = tmp_path / "mine.yaml"
        path.write_text(MAP.replace(old, new), encoding="utf-8")
        with pytest.raises(ContentError) as caught:
            load_country_map(path)
        assert message in str(caught.value)
        assert f"{path}:{place}: " in str(caught.value)

    def test_a_map_is_found_by_id_and_path(self) -> None:
        path = shipped_root() / "experiments" / "corpora" / "square.yaml"
        assert find_country_map(str(path)) == SQUARE
        with pytest.raises(NotFoundError, match="did you mean 'square'"):
            find_country_map("sqare")


class TestShares:
    def test_by_country_and_category(self, tmp_path: Path) -> None:
        import pyarrow as pa
        import pyarrow.parquet as pq

        path = tmp_path / "p.parquet"
        columns = {"country": ["b", "a", "b", "b"], "category": ["arts", "arts", None, "food"]}
        pq.write_table(pa.table(columns), path)
        rows = [(r.by, r.country, r.category, r.n, r.of, r.share) for r in read_shares(path)]
        both = "country and category"
        assert rows == [
            ("country", "b", None, 3, 4, 0.75),
            ("country", "a", None, 1, 4, 0.25),
            ("category", None, "arts", 2, 4, 0.5),
            ("category", None, None, 1, 4, 0.25),
            ("category", None, "food", 1, 4, 0.25),
            (both, "b", None, 1, 3, 1 / 3),
            (both, "b", "arts", 1, 3, 1 / 3),
            (both, "b", "food", 1, 3, 1 / 3),
            (both, "a", "arts", 1, 1, 1.0),
        ]

    def test_of_a_corpus_without_categories(self, tmp_path: Path) -> None:
        built(tmp_path, dump(submission(), submission(id="b", title="x", subreddit="Chinese")))
        rows = read_shares(tmp_path / "posts.parquet")
        assert [(row.by, row.country, row.n, row.of) for row in rows] == [
            ("country", "china", 1, 2),
            ("country", "turkey", 1, 2),
        ]

    def test_of_nothing(self, tmp_path: Path) -> None:
        built(tmp_path, dump(submission(over_18=True)))
        assert read_shares(tmp_path / "posts.parquet") == ()
