"""Every kind of content file: where it lies, how it is checked, and its schema for editors.

``habitus check`` and ``habitus schemas`` go through this table; a new kind is a new line.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

from pydantic import BaseModel

from habitus.content import editor_schema, listing
from habitus.norms import Culture, load_culture
from habitus.personas import Openers, Population, load_openers, load_population


@dataclass(frozen=True, slots=True)
class Kind:
    """One kind of content file.

    ``folder`` is one of the content folders, ``pattern`` a glob in it. ``load`` reads a file and
    raises ``ContentError`` with every problem. ``schema`` is the name of the schema file in the
    folder, written from ``model``.
    """

    name: str
    folder: str
    pattern: str
    model: type[BaseModel]
    load: Callable[[Path], object]
    schema: str

    def schema_text(self) -> str:
        """The text of the schema file."""
        return editor_schema(self.model, f"Habitus: {self.name}")

    def files(self, workspace: Path | None = None) -> list[Path]:
        """The files of this kind, workspace first."""
        return list(listing(self.folder, self.pattern, workspace).values())


KINDS = (
    Kind("culture", "norms", "*/*.yaml", Culture, load_culture, "culture.schema.json"),
    Kind("population", "personas", "*.yaml", Population, load_population, "population.schema.json"),
    Kind("openers", "personas", "openers/*.yaml", Openers, load_openers, "openers.schema.json"),
)


def kind_of(path: Path) -> Kind | None:
    """The kind of a file by its place in a content folder, or None."""
    parts = path.resolve().parts
    for kind in KINDS:
        depth = kind.pattern.count("/") + 2
        if len(parts) >= depth and parts[-depth] == kind.folder and path.match(kind.pattern):
            return kind
    return None


def schema_files(root: Path) -> Iterator[tuple[Path, str]]:
    """Path and text of every schema file under a root of content."""
    for kind in KINDS:
        yield root / kind.folder / kind.schema, kind.schema_text()
