"""``habitus new``: a workspace with one commented example of each kind of file."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated

import typer

from habitus.cli.output import print_text, talk
from habitus.cli.root import new_app
from habitus.errors import UsageError

app = new_app("A workspace with one commented example of each kind of file.")

TEMPLATE = "experiments/workspace"


@app.command()
def new(
    directory: Annotated[Path, typer.Argument(help="Where to make it; new or empty.")],
) -> None:
    """Make a workspace; every file in it is an example to change or to copy."""
    if directory.exists() and (not directory.is_dir() or any(directory.iterdir())):
        raise UsageError(f"{directory} is there and not empty; choose a new folder")
    pairs = list(_pairs(directory))
    try:
        for source, target in pairs:
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(source, target)
    except OSError as error:
        raise UsageError(f"{directory} cannot be written: {error.strerror}") from None
    for _, target in pairs:
        print_text(str(target))
    talk(f"next: cd {directory} && habitus check && habitus run first")


def _pairs(directory: Path) -> Iterator[tuple[Path, Path]]:
    """What is copied where: the examples, and the schemas that their first lines name."""
    from habitus.cli.kinds import KINDS
    from habitus.content import shipped_root

    root = shipped_root() / TEMPLATE
    for source in sorted(root.rglob("*")):
        if source.is_file():
            yield source, directory / source.relative_to(root)
    for kind in KINDS:
        schema = Path(kind.folder) / kind.schema
        yield shipped_root() / schema, directory / schema
