"""Ids become parts of paths: each is a safe file name, is made one, or is refused with what it may be."""

from __future__ import annotations

from pathlib import Path
from typing import get_args, get_type_hints

import pytest

from habitus.browsing.saving import save
from habitus.checklists import Query, QuerySet
from habitus.content.fields import Slug, slug
from habitus.content.writing import file_stems
from habitus.experiments.config import Experiment
from habitus.experiments.settings import SettingFile
from habitus.framing.analysisfile import AnalysisFile, CharacteristicFile
from habitus.judges.judgefile import JudgeFile, VariantFile
from habitus.norms.culture import Culture, Norm
from habitus.personas.population import Persona, Population

BAD = {
    "up": "..", "out": "../x", "path": "a/b", "root": "/etc/passwd", "other slash": "a\\b", "here": ".",
    "nothing": "", "space": " ", "blank inside": "a b", "NUL": "a\0b", "line break": "a\nb",
    "line break behind": "a\n", "direction": "a\u202eb", "joiner": "a\u2060b", "dash": "-rf",
    "option": "--out", "dot behind": "a.", "suffix": "nul.txt", "stream": "a:b", "capital": "Con",
    "long": "a" * 300, "accent": "\xe9", "half pair": "a\ud800", "wildcard": "*", "home": "~",
    "escape": "a\x1b[2J", "percent": "%2e%2e", "device": "con", "numbered device": "com1", "printer": "lpt9",
    "nothing device": "nul",
}  # fmt: skip
#: Models whose ids are parts of paths or of record ids, and the fields that hold them.
IDS = [
    (Experiment, "id"), (Experiment, "domain"), (Experiment, "cultures"), (Experiment, "models"),
    (Experiment, "targets"), (Experiment, "settings"), (SettingFile, "id"), (Culture, "culture"),
    (Culture, "domain"), (Norm, "id"), (Persona, "id"), (Persona, "culture"), (Population, "population"),
    (Query, "id"), (QuerySet, "id"), (JudgeFile, "id"), (VariantFile, "id"), (AnalysisFile, "id"),
    (CharacteristicFile, "id"),
]  # fmt: skip


@pytest.mark.parametrize("name", BAD.values(), ids=BAD)
def test_what_no_file_should_be_called_is_no_id(name: str) -> None:
    with pytest.raises(ValueError, match=r"an id (has lower-case letters|cannot be)"):
        slug(name)


@pytest.mark.parametrize("name", ["a", "0", "maori_10", "a-b", "console", "com", "com10", "a" * 64])
def test_usual_ids_are_taken(name: str) -> None:
    assert slug(name) == name


@pytest.mark.parametrize(("model", "field"), IDS, ids=[f"{m.__name__}.{f}" for m, f in IDS])
def test_every_id_is_of_that_kind(model: type, field: str) -> None:
    held = [get_type_hints(model, include_extras=True)[field]]
    found = []
    while held:
        kind = held.pop()
        found.append(kind)
        held += [part for part in get_args(kind) if not isinstance(part, str)]
    assert Slug in found


NAMES = [name.encode("utf-8", "replace").decode() for name in BAD.values()]


def test_names_from_elsewhere_become_different_safe_names(tmp_path: Path) -> None:
    """Targets, tables and figures may be called anything."""
    made = list(file_stems([*NAMES, "A", "a", "\u212a", "k", *NAMES]))
    assert len({stem.casefold() for stem in made}) == len(made)
    for stem in made:
        assert not set(stem) & set("/\\\0\n:*~%\x1b\u202e")
        assert not stem.startswith((".", "-"))
        assert not stem.endswith(".")
        (tmp_path / f"{stem}.csv").touch()
    assert len(list(tmp_path.iterdir())) == len(made)


def test_items_are_saved_under_safe_names_in_the_folder(tmp_path: Path) -> None:
    folder = tmp_path / "saved"
    folder.mkdir()
    for name in BAD.values():
        path = save("x", name, "markdown", folder)
        assert path.parent == folder
        assert path.name[0] not in ".-"
    assert len(list(folder.iterdir())) == len(BAD)
    assert [path.name for path in tmp_path.iterdir()] == ["saved"]
