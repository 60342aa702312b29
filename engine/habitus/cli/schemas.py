"""``habitus schemas``: write the JSON Schemas that editors read, from the models."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from habitus.cli.kinds import schema_files
from habitus.cli.output import print_text, talk
from habitus.cli.root import new_app
from habitus.content.writing import write_text

app = new_app("Write the JSON Schemas of content files.")


@app.command()
def schemas(
    root: Annotated[Path, typer.Argument(help="A folder with content folders in it.")],
    check: Annotated[
        bool, typer.Option("--check", help="Write nothing; exit 1 if a file is out of date.")
    ] = False,
) -> None:
    """Write the schema file of every kind of content that the folder has."""
    stale = [(path, text) for path, text in schema_files(root) if _is_stale(path, text)]
    for path, text in stale:
        if not check:
            write_text(path, text, overwrite=True)
        print_text(str(path))
    if not stale:
        talk("all schema files are up to date")
    elif check:
        raise typer.Exit(1)


def _is_stale(path: Path, text: str) -> bool:
    if not path.parent.is_dir():
        return False
    return not path.exists() or path.read_text(encoding="utf-8") != text
