"""Where content lies: the user's workspace first, the shipped content second.

A workspace is a folder with the same five folders as this project. An argument with a slash or
a suffix is a path; anything else is an id and is looked up.
"""

from __future__ import annotations

from contextlib import suppress
from functools import cache
from pathlib import Path

from habitus.errors import NotFoundError

FOLDERS = ("norms", "personas", "checklists", "judges", "experiments")


@cache
def shipped_root() -> Path:
    """The folder that holds the shipped content: inside the package, or beside ``engine/``."""
    package = Path(__file__).resolve().parents[1]
    packaged = package / "_content"
    return packaged if packaged.is_dir() else package.parents[1]


def content_roots(workspace: Path | None = None) -> tuple[Path, ...]:
    """Roots in the order of search, without repeats."""
    first = (workspace or Path.cwd()).resolve()
    return tuple(dict.fromkeys((first, shipped_root())))


def workspace_of(path: Path) -> Path:
    """The workspace a file belongs to: the folder around its content folder.

    A shipped file, or one outside any content folder, belongs to the current folder.
    """
    for folder in path.resolve().parents:
        if folder.name in FOLDERS and folder.parent != shipped_root():
            return folder.parent
    return Path.cwd()


def is_workspace(folder: Path) -> bool:
    """Whether a folder is a workspace of its own: it has two or more content folders."""
    return sum((folder / name).is_dir() for name in FOLDERS) > 1


def looks_like_path(name: str) -> bool:
    """Whether an argument is a path and not an id."""
    return "/" in name or Path(name).suffix != ""


def find(folder: str, name: str, workspace: Path | None = None) -> Path:
    """The file ``name`` of a content folder, workspace first.

    Raises:
        NotFoundError: nothing of that name, with the nearest names there are.
    """
    for root in content_roots(workspace):
        path = root / folder / name
        with suppress(OSError):  # longer than any name can be
            if path.is_file():
                return path
    known = [str(p.with_suffix("")) for p in listing(folder, f"**/*{Path(name).suffix}", workspace)]
    raise NotFoundError(f"file in {folder}/", str(Path(name).with_suffix("")), known)


def listing(folder: str, pattern: str, workspace: Path | None = None) -> dict[Path, Path]:
    """Relative name to path of every file of a folder that matches; the workspace's wins."""
    found: dict[Path, Path] = {}
    for root in content_roots(workspace):
        base = root / folder
        for path in sorted(base.glob(pattern)):
            found.setdefault(path.relative_to(base), path)
    return dict(sorted(found.items()))
