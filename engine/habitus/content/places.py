"""Where content lies: the user's workspace first, the shipped content second.

A workspace is a folder with the same five folders as this project. An argument with a slash or
a suffix is a path; anything else is an id and is looked up.

A name that is looked up cannot leave its folder, neither by ``..`` nor by a symbolic link to a
file elsewhere: content passed on by others names files, and what it names is read and sent to models.
A whole content folder may be a link, since only its owner can have made it.
"""

from __future__ import annotations

from contextlib import suppress
from functools import cache
from pathlib import Path

from habitus.errors import ContentError, NotFoundError, Place, Problem

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
        ContentError: what is there is a link to a file elsewhere.
    """
    inside = not Path(name).is_absolute() and ".." not in Path(name).parts
    for root in content_roots(workspace) if inside else ():
        path = root / folder / name
        with suppress(OSError, ValueError):  # longer than any name can be, or with a NUL in it
            if is_file(path):
                return own_file(path, root)
    known = [str(p.with_suffix("")) for p in listing(folder, f"**/*{Path(name).suffix}", workspace)]
    raise NotFoundError(f"file in {folder}/", str(Path(name).with_suffix("")), known)


def own_file(path: Path, root: Path) -> Path:
    """The path, if the file is one of the content below a root.

    Raises:
        ContentError: it is a symbolic link to a file elsewhere.
    """
    place = path.resolve()
    roots = [root, *(root / folder for folder in FOLDERS)]
    if not any(place.is_relative_to(known.resolve()) for known in roots):
        what = "is a link to a file outside the content"
        raise ContentError([Problem(what, Place(path), "put the file itself there")])
    return path


def is_file(path: Path) -> bool:
    """Whether a file is there; a name that no file can have is none."""
    try:
        return path.is_file()
    except OSError:  # too long
        return False


def beside(path: Path, name: str) -> Path:
    """The file ``name`` that lies beside another one, which names it.

    Raises:
        ContentError: it is a symbolic link to a file elsewhere.
    """
    above = (folder.parent for folder in path.absolute().parents if folder.name in FOLDERS)
    return own_file(path.with_name(name), next(above, path.parent))


def listing(folder: str, pattern: str, workspace: Path | None = None) -> dict[Path, Path]:
    """Relative name to path of every file of a folder that matches; the workspace's wins."""
    found: dict[Path, Path] = {}
    for root in content_roots(workspace):
        base = root / folder
        for path in sorted(base.glob(pattern)):
            found.setdefault(path.relative_to(base), path)
    return dict(sorted(found.items()))
