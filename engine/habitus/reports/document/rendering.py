"""HTML of the contents of a report, and nothing of them that acts.

- Every text goes through ``safe_text`` (controls and bidirectional overrides become visible escapes) and
  then through Jinja's escaping, whatever template prints it: no template can forget it.
- The page forbids itself everything (``default-src 'none'``) but one style sheet and one script, both
  shipped with the package and named by their hashes. Style attributes, handlers, images, fonts, frames
  and requests of any kind are refused by the browser.
- No text of models or corpora becomes an address, an id, a class or a number of an attribute.
"""

from __future__ import annotations

import base64
import hashlib
from functools import cache
from importlib.resources import files
from typing import TYPE_CHECKING, Any

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

import habitus
from habitus.content.visible import safe_text

if TYPE_CHECKING:
    from habitus.reports.document.report import Contents

_TEMPLATES = "templates"


def render(contents: Contents) -> bytes:
    """The page as UTF-8."""
    style, script = _asset("report.css"), _asset("report.js")
    policy = (
        f"default-src 'none'; style-src {_hash(style)}; script-src {_hash(script)}; "
        "base-uri 'none'; form-action 'none'"
    )
    template = _environment().get_template("report.html")
    text = template.render(
        c=contents,
        style=Markup(style),  # noqa: S704  (our own file)
        script=Markup(script),  # noqa: S704  (our own file)
        policy=policy,
        version=habitus.__version__,
    )
    return text.encode("utf-8")


def shown(value: Any) -> Any:
    """What every expression of a template prints: text that nothing acts on."""
    if isinstance(value, str) and not isinstance(value, Markup):
        return safe_text(value.replace("\r\n", "\n"))
    return value


@cache
def _environment() -> Environment:
    return Environment(
        loader=PackageLoader("habitus.reports.document", _TEMPLATES),
        autoescape=True,
        undefined=StrictUndefined,
        finalize=shown,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )


@cache
def _asset(name: str) -> str:
    path = files("habitus.reports.document") / _TEMPLATES / name
    return path.read_text(encoding="utf-8").replace("\r\n", "\n")


def _hash(text: str) -> str:
    """A source of a content security policy: the text with this hash."""
    digest = hashlib.sha256(text.encode("utf-8")).digest()
    return f"'sha256-{base64.b64encode(digest).decode()}'"
