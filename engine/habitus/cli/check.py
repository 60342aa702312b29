"""``habitus check``: content and experiment files, with everything they refer to."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Annotated

import typer

from habitus.cli.output import print_json, print_text, talk
from habitus.cli.root import new_app
from habitus.errors import ContentError, HabitusError, Place, Problem, UsageError

app = new_app("Check content and experiment files.")


@app.command()
def check(
    paths: Annotated[
        list[Path] | None,
        typer.Argument(help="Files or folders; the workspace, or the shipped content, by default."),
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> int:
    """Check files: keys, types, ids, references, placeholders. Exit 1 when something is wrong.

    References are looked up in the workspace that a file lies in, then in the shipped content.
    """
    for path in paths or ():
        if not path.exists():
            raise UsageError(f"there is no {path}")
    files = list(dict.fromkeys(_files(paths or _default())))
    if not files:
        raise UsageError("no content file there; give a file or a folder with content folders")
    problems = [problem for path in files for problem in _problems(path)]
    problems = list(dict.fromkeys(problems))
    if as_json:
        print_json([_as_json(problem) for problem in problems])
    for problem in () if as_json else problems:
        print_text(str(problem))
    talk(f"{_count(len(files), 'file')} checked, {_count(len(problems), 'problem')}")
    return 1 if problems else 0


def _count(n: int, what: str) -> str:
    return f"{n} {what}" if n == 1 else f"{n} {what}s"


def _default() -> list[Path]:
    from habitus.content import FOLDERS, shipped_root

    here = [Path(folder) for folder in FOLDERS if Path(folder).is_dir()]
    return here or [shipped_root() / folder for folder in FOLDERS]


def _files(paths: Iterable[Path]) -> Iterator[Path]:
    """The files to check at or under some paths; a file that is named is always one.

    A workspace inside a folder is checked by itself, when it is named.
    """
    from habitus.content.places import is_workspace

    for path in paths:
        if not path.is_dir():
            yield path
            continue
        others = [folder for folder in path.rglob("*/") if is_workspace(folder)]
        found = [file for file in sorted(path.rglob("*.yaml")) if _is_content(path, file)]
        for prompts in ("prompts/*.md", "history_verifier/*.md", "corpora/*.md"):
            found += sorted(path.rglob(prompts))
        yield from (f for f in found if not any(folder in f.parents for folder in others))


def _is_content(under: Path, file: Path) -> bool:
    """Whether a file lies in a content folder; one that is of no kind there is a problem."""
    from habitus.cli.kinds import kind_of
    from habitus.content import FOLDERS

    within = (under.resolve().name, *file.relative_to(under).parts[:-1])
    return not set(FOLDERS).isdisjoint(within) or kind_of(file) is not None


def _problems(path: Path) -> tuple[Problem, ...]:
    from habitus.cli.kinds import kind_of, placeholders_of
    from habitus.content import read_prompt

    kind, placeholders = kind_of(path), placeholders_of(path)
    try:
        if placeholders is not None:
            read_prompt(path, placeholders)
        elif kind is None:
            what = "nothing reads a file of this name here"
            return (Problem(what, Place(path), "see the README of the folder for names that are"),)
        else:
            kind.load(path)
    except ContentError as error:
        return error.problems
    except HabitusError as error:
        return (Problem(str(error), Place(path)),)
    return ()


def _as_json(problem: Problem) -> dict[str, str | int]:
    place = problem.place
    return {
        "path": str(place.path),
        "line": place.line,
        "column": place.column,
        "problem": problem.what,
        "hint": problem.hint,
    }
