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
    """Check files: keys, types, ids, references, placeholders. Exit 1 when something is wrong."""
    files = list(_files(paths or _default()))
    if not files:
        raise UsageError("no content file there; give a file or a folder with content folders")
    problems = [problem for path in files for problem in _problems(path)]
    problems = list(dict.fromkeys(problems))
    if as_json:
        print_json([_as_json(problem) for problem in problems])
    for problem in () if as_json else problems:
        print_text(str(problem))
    talk(f"{len(files)} files checked, {len(problems)} problems")
    return 1 if problems else 0


def _default() -> list[Path]:
    from habitus.content import FOLDERS, shipped_root

    here = [Path(folder) for folder in FOLDERS if Path(folder).is_dir()]
    return here or [shipped_root() / folder for folder in FOLDERS]


def _files(paths: Iterable[Path]) -> Iterator[Path]:
    """The content files at or under some paths; a file that is named is always one."""
    from habitus.cli.kinds import kind_of
    from habitus.content.places import is_workspace

    for path in paths:
        if not path.is_dir():
            yield path
            continue
        others = [folder for folder in path.rglob("*/") if is_workspace(folder)]
        found = [*sorted(path.rglob("*.yaml")), *sorted(path.rglob("prompts/*.md"))]
        for file in found:
            other = any(folder in file.parents for folder in others)
            if not other and (file.suffix == ".md" or kind_of(file) is not None):
                yield file


def _problems(path: Path) -> tuple[Problem, ...]:
    from habitus.cli.kinds import check_prompt, kind_of

    kind = kind_of(path)
    try:
        if path.suffix == ".md" and check_prompt(path):
            return ()
        if kind is None:
            what = "no kind of content lies here"
            return (Problem(what, Place(path), "put it into one of the content folders"),)
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
