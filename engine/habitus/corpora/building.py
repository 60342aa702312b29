"""From dumps to a corpus, one line at a time, with every line accounted for.

    counts = build(files, countries, Path("posts.parquet"))
    assert counts.lines == counts.kept + sum(counts.reasons.values())

The first copy of an id or of a text that passes the filters is kept, in the order of the files;
later ones are duplicates. What is remembered of a kept post are two 64-bit hashes, about 150 bytes
with their sets.
"""

from __future__ import annotations

import json
import os
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from hashlib import blake2b
from pathlib import Path
from typing import Any

from habitus.corpora.cleaning import text_key
from habitus.corpora.countries import CountryMap
from habitus.corpora.filters import Reason, first_reason
from habitus.corpora.lines import MAX_LINE, LineReader
from habitus.corpora.stored import Post, PostWriter, check_output, counts_path
from habitus.corpora.submissions import Submission, parse, read_submission, subreddit_of
from habitus.errors import UsageError


@dataclass(slots=True)
class FileCount:
    """What came of one file.

    ``damage`` says why it could not be read to its end, or why it gave nothing; None is good.
    """

    name: str
    lines: int = 0
    kept: int = 0
    unterminated: bool = False
    damage: str | None = None


Progress = Callable[[FileCount], None]


@dataclass(slots=True)
class Counts:
    """What came of all lines.

    ``kept`` and ``reasons`` add up to ``lines``. The notes count posts that were kept: text taken
    from the parent of a crosspost, a name replaced in title or body, no time that can be read.
    """

    lines: int = 0
    kept: int = 0
    reasons: Counter[Reason] = field(default_factory=Counter)
    places: Counter[tuple[str, str]] = field(default_factory=Counter)
    crossposted: int = 0
    renamed: int = 0
    undated: int = 0
    files: list[FileCount] = field(default_factory=list)

    @property
    def damaged(self) -> list[FileCount]:
        """The files that could not be read to their end, or gave nothing."""
        return [file for file in self.files if file.damage]

    def countries(self, known: CountryMap) -> dict[str, int]:
        """Posts kept by country, in the order of the map."""
        totals = dict.fromkeys(known.countries, 0)
        for (country, _), n in self.places.items():
            totals[country] += n
        return totals

    def as_json(self, known: CountryMap) -> dict[str, Any]:
        """What is written beside the corpus."""
        subreddits = {
            country: {name: self.places[country, name] for name in listed.subreddits}
            for country, listed in known.countries.items()
        }
        return {
            "map": known.id,
            "lines": self.lines,
            "kept": self.kept,
            "dropped": {str(reason): self.reasons[reason] for reason in Reason},
            "of_kept": {
                "crossposted": self.crossposted,
                "renamed": self.renamed,
                "undated": self.undated,
            },
            "countries": self.countries(known),
            "subreddits": subreddits,
            "files": [
                {
                    "name": file.name,
                    "lines": file.lines,
                    "kept": file.kept,
                    "unterminated": file.unterminated,
                    "damage": file.damage,
                }
                for file in self.files
            ],
        }


def build(
    files: Sequence[Path],
    countries: CountryMap,
    out: Path,
    progress: Progress | None = None,
    max_line: int = MAX_LINE,
) -> Counts:
    """Read dumps and write the posts to keep as Parquet, and the counts as JSON beside it.

    A damaged file gives what it holds before the damage, and is named in the counts; the other
    files are read. Memory does not grow with the files, but with the posts that are kept.

    Args:
        files: dumps, in the order in which first copies count.
        countries: the subreddits to keep and the phrases to drop.
        out: the Parquet file; it appears, or is replaced, when all is read.
        progress: told of each file when it is read.
        max_line: bytes of a line; longer ones are counted and skipped.

    Raises:
        UsageError: a file is missing or is to be overwritten, pyarrow is missing, or ``out``
            cannot be written.
    """
    _check(files, out)
    with PostWriter(out) as writer:
        sieve = _Sieve(countries, writer)
        for path in files:
            counted = sieve.read(LineReader(path, max_line))
            if progress:
                progress(counted)
        counts_path(out).unlink(missing_ok=True)  # never counts of another corpus beside this one
    _write_json(counts_path(out), sieve.counts.as_json(countries))
    return sieve.counts


def _check(files: Sequence[Path], out: Path) -> None:
    if not files:
        raise UsageError("no file to read")
    for path in files:
        if not path.exists():
            raise UsageError(f"there is no {path}")
        if path.is_dir():
            raise UsageError(f"{path} is a folder; name the files in it")
        if path.suffix == ".zst_blocks":
            raise UsageError(f"{path}: .zst_blocks is not read; convert it to .zst or JSON lines")
        if path.resolve() in {out.resolve(), counts_path(out).resolve()}:
            raise UsageError(f"{path} would be overwritten; choose another output")
    check_output(out)


def _write_json(path: Path, data: dict[str, Any]) -> None:
    aside = path.with_name(f".{path.name}.{os.getpid()}.part")
    aside.write_text(json.dumps(data, indent=2, ensure_ascii=False) + "\n", encoding="utf-8")
    aside.replace(path)


class _Sieve:
    """Lines in, posts out; remembers what was kept."""

    def __init__(self, countries: CountryMap, writer: PostWriter) -> None:
        self.counts = Counts()
        self._countries = countries
        self._writer = writer
        self._ids: set[int] = set()
        self._texts: set[int] = set()

    def read(self, reader: LineReader) -> FileCount:
        """Pass all lines of a file."""
        file = FileCount(reader.path.name)
        seen = Counter[Reason | None]()
        for line in reader:
            seen[self._line(line)] += 1
        file.lines, file.kept = seen.total(), seen.pop(None, 0)
        file.unterminated = reader.unterminated
        file.damage = reader.damage or _nothing_in(seen, file)
        self.counts.reasons.update({reason: n for reason, n in seen.items() if reason})
        self.counts.lines += file.lines
        self.counts.kept += file.kept
        self.counts.files.append(file)
        return file

    def _line(self, line: bytes | None) -> Reason | None:
        """Keep the post of a line (None), or say why not."""
        if line is None:
            return Reason.LONG_LINE
        if not line.strip():
            return Reason.EMPTY_LINE
        try:
            data = parse(line)
        except ValueError:
            return Reason.BROKEN_LINE
        subreddit = subreddit_of(data)
        if subreddit is None or not isinstance(data, dict):
            return Reason.NO_POST
        place = self._countries.by_subreddit.get(subreddit.lower())
        if place is None:
            return Reason.ELSEWHERE
        post = read_submission(data)
        return self._post(post, place) if post else Reason.NO_POST

    def _post(self, post: Submission, place: tuple[str, str]) -> Reason | None:
        reason = first_reason(post, self._countries) or self._seen_before(post)
        if reason or post.num_comments is None:
            return reason
        country, subreddit = place
        self._writer.write(
            Post(
                id=post.id,
                title=post.title,
                body=post.body,
                subreddit=subreddit,
                country=country,
                created=post.created,
                num_comments=post.num_comments,
            )
        )
        self.counts.places[place] += 1
        self.counts.crossposted += post.crossposted
        self.counts.renamed += post.renamed
        self.counts.undated += post.created is None
        return None

    def _seen_before(self, post: Submission) -> Reason | None:
        by_id, by_text = _hash(post.id), _hash(text_key(post.title, post.body))
        if by_id in self._ids:
            return Reason.DUPLICATE_ID
        if by_text in self._texts:
            return Reason.DUPLICATE_TEXT
        self._ids.add(by_id)
        self._texts.add(by_text)
        return None


def _nothing_in(seen: Counter[Reason | None], file: FileCount) -> str | None:
    """What to tell of a file of which no line is a post: it is no month without posts."""
    if not file.lines:
        return "the file is empty"
    unread = (Reason.EMPTY_LINE, Reason.LONG_LINE, Reason.BROKEN_LINE, Reason.NO_POST)
    if sum(seen[reason] for reason in unread) == file.lines:
        return "no line of it is a submission"
    return None


def _hash(text: str) -> int:
    return int.from_bytes(blake2b(text.encode(), digest_size=8).digest())
