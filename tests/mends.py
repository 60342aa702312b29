"""Takes mends out, one at a time, and runs the tests that are said to fail then.

    python tests/mends.py                  # all of them: make mends
    python tests/mends.py --only tools     # those with this word in what they are about

What a test is worth shows when the fault is there. Each entry of ``tests/data/mends/`` names a piece of the
engine that keeps a fault away, what the piece is without that, and the tests that must fail with it. They
run on a copy of the project: first as it is, where all must pass, then with each piece taken out.
A mend that can be taken out without a failing test is a hole, and the exit code is then 1.

``tests/test_mends.py`` checks with every run of the tests that entries still fit the engine.
"""

from __future__ import annotations

import argparse
import ast
import compileall
import os
import re
import shutil
import subprocess
import sys
import time
import tomllib
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from itertools import groupby
from pathlib import Path
from py_compile import PycInvalidationMode
from queue import SimpleQueue
from tempfile import TemporaryDirectory
from typing import TypeVar
from xml.etree import ElementTree as ET

ROOT = Path(__file__).resolve().parents[1]
TESTS = ROOT / "tests"
FAILURES = ROOT / "docs" / "known-failures.md"
PROMISES = ROOT / "docs" / "reliability.md"
_COPIED = (
    *("engine", "tests", "docs", "bench"),
    *("norms", "personas", "checklists", "judges", "experiments"),
    *("pyproject.toml", "README.md", "ARCHITECTURE.md", "CHANGELOG.md", "CITATION.cff", "Makefile"),
)
_NAMED = re.compile(r"`(test_\w+\.py::test_\w+)`")
T = TypeVar("T")
_PATIENCE = 300.0  # seconds for the tests of one mend


@dataclass(frozen=True)
class Mend:
    """A piece of the engine that keeps a fault away.

    ``about`` begins a row of the documents: the number of a known failure, or the words of a promise.
    ``text`` stands in ``file`` once and becomes ``without``; each of ``tests`` must fail then.
    """

    about: str
    what: str
    file: str
    text: str
    without: str
    tests: tuple[str, ...]

    @property
    def name(self) -> str:
        """What is taken out, in words."""
        return f"{self.about[:28]}: {self.what}"

    def path(self, root: Path = ROOT) -> Path:
        """The file that holds the piece."""
        return root / "engine" / "habitus" / self.file

    def taken_out(self, root: Path = ROOT) -> str:
        """The file without the piece.

        Raises:
            ValueError: the piece does not stand there exactly once.
        """
        source = self.path(root).read_text(encoding="utf-8")
        count = source.count(self.text)
        if count != 1:
            raise ValueError(f"{self.file}: stands there {count} times: {self.text}")
        return source.replace(self.text, self.without)


@dataclass(frozen=True)
class Ended:
    """How some tests ended: names of those that failed, and of all that were run.

    ``code`` is that of pytest: 1 where tests failed, more where they could not be collected.
    """

    code: int
    failed: frozenset[str] = frozenset()
    run: frozenset[str] = frozenset()
    output: str = ""


def mends() -> list[Mend]:
    """All entries, in the order of their files."""
    found = []
    for path in sorted((TESTS / "data" / "mends").glob("*.toml")):
        for entry in tomllib.loads(path.read_text(encoding="utf-8"))["mend"]:
            entry["about"] = str(entry["about"])
            found.append(Mend(**{**entry, "tests": tuple(entry["tests"])}))
    return found


def rows() -> dict[str, frozenset[str]]:
    """The tests that the documents name: by number of a known failure, and by the words of a promise."""
    failures = _table(FAILURES)
    found = {str(number): tests for number, (_, tests) in enumerate(failures, 1)}
    return found | dict(_table(PROMISES))


def row_of(mend: Mend) -> frozenset[str]:
    """The tests of the row that a mend is about.

    Raises:
        ValueError: no row begins so, or more than one.
    """
    known = rows()
    if mend.about in known:
        return known[mend.about]
    found = [tests for words, tests in known.items() if words.startswith(mend.about)]
    if len(found) != 1:
        raise ValueError(f"{len(found)} promises begin with {mend.about!r}")
    return found[0]


@cache
def node_of(test: str) -> str:
    """The name by which pytest knows a test of the documents, with the class that holds it.

    Raises:
        ValueError: there is no such test, or there are two.
    """
    file, name = test.split("::")
    tree = ast.parse((TESTS / file).read_text(encoding="utf-8"))
    found = list(_functions(tree, name))
    if len(found) != 1:
        raise ValueError(f"{test} is there {len(found)} times")
    return f"tests/{file}::{found[0]}"


def _functions(tree: ast.Module | ast.ClassDef, name: str) -> Iterator[str]:
    for node in tree.body:
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and node.name == name:
            yield name
        if isinstance(node, ast.ClassDef):
            yield from (f"{node.name}::{found}" for found in _functions(node, name))


def _table(path: Path) -> list[tuple[str, frozenset[str]]]:
    """First cell and named tests of each row of a document's tables."""
    lines = [line for line in path.read_text(encoding="utf-8").splitlines() if line[:2] == "| "]
    cells = [line.strip("| ").split(" | ") for line in lines]
    named = [(row[0], frozenset(_NAMED.findall(row[-1]))) for row in cells]
    return [(words, tests) for words, tests in named if tests]


@contextmanager
def copies(count: int) -> Iterator[SimpleQueue[Path]]:
    """Copies of the project, to be taken and put back."""
    with TemporaryDirectory(prefix="habitus-mends-") as folder:
        free: SimpleQueue[Path] = SimpleQueue()
        for number in range(count):
            free.put(_copy(Path(folder) / str(number)))
        yield free


def _copy(to: Path) -> Path:
    ignored = shutil.ignore_patterns("__pycache__", ".*_cache", ".hypothesis")
    for name in _COPIED:
        source, target = ROOT / name, to / name
        if source.is_dir():
            shutil.copytree(source, target, ignore=ignored)
        else:
            to.mkdir(parents=True, exist_ok=True)
            shutil.copy(source, target)
    # Held against the source itself: a file may change twice in a second without its size.
    checked = PycInvalidationMode.CHECKED_HASH
    compileall.compile_dir(to / "engine", quiet=1, invalidation_mode=checked)
    return to


def run(copy: Path, tests: Iterable[str], *options: str) -> Ended:
    """Run tests on a copy."""
    report = copy / "report.xml"
    report.unlink(missing_ok=True)
    command = [sys.executable, "-m", "pytest", "-q", "--tb=line", "-p", "no:cacheprovider"]
    command += ["--hypothesis-profile=mends"]
    command += [f"--basetemp={copy / 'tmp'}", f"--junitxml={report}", *options]
    environ = {**os.environ, "PYTHONPATH": str(copy / "engine"), "PYTHONDONTWRITEBYTECODE": "1"}
    try:
        done = subprocess.run(
            [*command, *map(node_of, tests)], cwd=copy, env=environ, timeout=_PATIENCE,
            capture_output=True, text=True, errors="replace", check=False,
        )  # fmt: skip
    except subprocess.TimeoutExpired:
        return Ended(-1, output="they did not end")
    if not report.exists():
        return Ended(done.returncode, output=done.stdout + done.stderr)
    cases = list(ET.parse(report).iter("testcase"))
    return Ended(
        code=done.returncode,
        failed=_names(case for case in cases if {"failure", "error"} & {part.tag for part in case}),
        run=_names(case for case in cases if case.find("skipped") is None),
        output=done.stdout,
    )


def _names(cases: Iterable[ET.Element]) -> frozenset[str]:
    return frozenset(map(_name, cases))


def _name(case: ET.Element) -> str:
    """The name that the documents use: the file and the function."""
    where = case.get("classname", "").split(".")
    file = next(part for part in where if part.startswith("test_"))
    return f"{file}.py::{case.get('name', '').split('[')[0]}"


def try_out(mend: Mend, copy: Path) -> tuple[bool, str]:
    """Take a mend out and run its tests: whether they fail as they should, and what is to be told."""
    before = mend.path(copy).read_text(encoding="utf-8")
    mend.path(copy).write_text(mend.taken_out(copy), encoding="utf-8")
    try:
        ended = run(copy, mend.tests, *(["-x"] if len(mend.tests) == 1 else []))
    finally:
        mend.path(copy).write_text(before, encoding="utf-8")
    return judge(mend, ended)


def judge(mend: Mend, ended: Ended) -> tuple[bool, str]:
    """Whether the tests of a mend failed as they should, and what is to be told."""
    if ended.code not in {0, 1}:
        last = "\n".join(ended.output.strip().splitlines()[-3:])
        return False, f"exit {ended.code}: {last}"
    alive = [test for test in mend.tests if test not in ended.failed]
    return (False, f"SURVIVES {', '.join(alive)}") if alive else (True, "fails")


def main(arguments: Sequence[str] | None = None) -> int:
    """Try all out, two at a time."""
    parser = argparse.ArgumentParser(description="Take mends out; their tests must fail.")
    parser.add_argument("--only", default="", help="those with this in their file, row or words")
    parser.add_argument("--jobs", type=int, default=2, help="how many at a time (2)")
    asked = parser.parse_args(arguments)
    chosen = [m for m in mends() if asked.only in f"{m.file} {m.name}" or asked.only == m.about]
    with copies(max(1, min(asked.jobs, len(chosen)))) as free:
        return _all(chosen, free, asked.jobs)


def _all(chosen: Sequence[Mend], free: SimpleQueue[Path], jobs: int) -> int:
    passing, failing = _as_it_is(chosen, free, jobs)
    there = [mend for mend in chosen if passing.issuperset(mend.tests)]
    broken = sum(not failing.isdisjoint(mend.tests) for mend in chosen)
    survivors = 0
    with ThreadPoolExecutor(max(1, jobs)) as threads:
        for mend, (fails, told, seconds) in zip(
            there, threads.map(lambda mend: _timed(mend, free), there), strict=True
        ):
            survivors += not fails
            print(f"{seconds:5.1f} s  {told:8}  {mend.file:26}  {mend.name}", flush=True)
    skipped = len(chosen) - len(there) - broken
    told = f"; {skipped} have a test that is skipped here" if skipped else ""
    told += f"; {broken} have one that fails without that: {', '.join(failing)}" if broken else ""
    print(f"{len(there)} mends taken out, {survivors} without the tests that should fail{told}")
    return 1 if survivors or broken else 0


def _as_it_is(
    chosen: Sequence[Mend], free: SimpleQueue[Path], jobs: int
) -> tuple[frozenset[str], frozenset[str]]:
    """The tests that pass with all mends in place, and those that fail.

    File by file: all together would take longer than one mend may.
    """
    tests = sorted({test for mend in chosen for test in mend.tests})
    files = [list(group) for _, group in groupby(tests, lambda test: test.split("::")[0])]
    passing, failing = set[str](), set[str]()
    with ThreadPoolExecutor(max(1, jobs)) as threads:
        works = threads.map(lambda part: _with_copy(free, lambda copy: run(copy, part)), files)
        for part, ended in zip(files, works, strict=True):
            failed = ended.failed if ended.code in {0, 1} else part
            if failed:
                print(
                    f"{ended.output}\nwith all mends in place the tests must pass", file=sys.stderr
                )
            passing |= ended.run.difference(failed)
            failing.update(failed)
    return frozenset(passing), frozenset(failing)


def _timed(mend: Mend, free: SimpleQueue[Path]) -> tuple[bool, str, float]:
    began = time.monotonic()
    fails, told = _with_copy(free, lambda copy: try_out(mend, copy))
    return fails, told, time.monotonic() - began


def _with_copy(free: SimpleQueue[Path], work: Callable[[Path], T]) -> T:
    copy = free.get()
    try:
        return work(copy)
    finally:
        free.put(copy)


if __name__ == "__main__":
    sys.exit(main())
