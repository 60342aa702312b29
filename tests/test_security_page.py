"""SECURITY.md says the limits that the code has, and is where people look for it."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

import pytest

from habitus.content import yamlfile
from habitus.content.fields import SLUG_PATTERN
from habitus.histories import lexical
from habitus.models import endpoints, keyfiles, keys, rejections
from habitus.models.retries import RetryPolicy

ROOT = Path(__file__).parents[1]
PAGE = (ROOT / "SECURITY.md").read_text(encoding="utf-8")
LIMITS = {
    "bytes of a content file or prompt": yamlfile.MAX_BYTES,
    "depth of YAML": yamlfile.MAX_DEPTH,
    "aliases in a YAML file": yamlfile.MAX_ALIASES,
    "values in a YAML file": yamlfile.MAX_PARTS,
    "words, gaps, slots of a pattern of the lexicon": (
        lexical.MOST_WORDS,
        lexical.MOST_GAPS,
        lexical.MOST_SLOTS,
    ),
    "bytes of a server's answer": endpoints.MAX_BODY,
    "characters kept of a server's error": rejections.LONGEST_TEXT,
    "seconds that a server may ask to wait": int(RetryPolicy().longest_told),
    "length of an id": int(re.findall(r"\{0,(\d+)\}", SLUG_PATTERN)[0]) + 1,
    "bytes of a key file": keyfiles.LONGEST_FILE,
}


def test_the_limits_are_those_of_the_code() -> None:
    table = PAGE.partition("## Limits")[2].partition("\n\nAt these")[0]
    rows = dict(re.findall(r"^\| ([^|]+) \| ([\d, ]+) \|$", table, re.MULTILINE))
    shown = {
        name: ", ".join(f"{part:,}" for part in (most if isinstance(most, tuple) else (most,)))
        for name, most in LIMITS.items()
    }
    assert rows == shown
    assert f"shorter than {keys.SHORTEST_KEY} characters" in PAGE


@pytest.mark.parametrize("file", ["README.md", "ARCHITECTURE.md"])
def test_it_is_linked(file: str) -> None:
    assert "](SECURITY.md)" in (ROOT / file).read_text(encoding="utf-8")


def test_links_lead_on_and_it_is_shipped() -> None:
    for link in re.findall(r"\]\(([^)#\s]+)(?:#[\w-]+)?\)", PAGE):
        assert (ROOT / link).exists()
    assert "## Security" in (ROOT / "docs" / "reliability.md").read_text(encoding="utf-8")
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    assert "SECURITY.md" in project["tool"]["hatch"]["build"]["targets"]["sdist"]["include"]
