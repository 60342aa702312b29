"""Every kind of content file: where it lies, how it is checked, and its schema for editors.

``habitus check`` and ``habitus schemas`` go through this table; a new kind is a new line.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

from pydantic import BaseModel

from habitus.agents import Goodbyes, load_goodbyes
from habitus.checklists import QuerySet, load_queries
from habitus.content import editor_schema, listing
from habitus.corpora import CountryMap, load_country_map
from habitus.experiments import resolve
from habitus.experiments.config import Experiment
from habitus.experiments.resolving import PROMPT_FILES
from habitus.experiments.settings import SettingFile, load_setting
from habitus.framing.analysisfile import AnalysisFile
from habitus.framing.loading import load_analysis
from habitus.histories import Lexicon, load_lexicon
from habitus.judges import (
    ExamplesFile,
    JudgeFile,
    JudgeSetFile,
    load_examples,
    load_judge,
    load_set,
)
from habitus.labelling.answering import SEEN
from habitus.models.entry import ModelEntry, load_entry
from habitus.models.prices import PriceList, load_prices
from habitus.norms import Culture, load_culture
from habitus.personas import Openers, Population, load_openers, load_population


@dataclass(frozen=True, slots=True)
class Kind:
    """One kind of content file.

    ``folder`` is one of the content folders, ``pattern`` a glob in it. ``load`` reads a file,
    and what it refers to in its workspace, and raises ``ContentError`` with every problem.
    ``schema`` is the name of the schema file in the folder, written from ``model``.
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
    Kind("goodbyes", "personas", "talk/*.yaml", Goodbyes, load_goodbyes, "goodbyes.schema.json"),
    Kind("queries", "checklists", "*.yaml", QuerySet, load_queries, "queries.schema.json"),
    Kind("judge", "judges", "*/judge.yaml", JudgeFile, load_judge, "judge.schema.json"),
    Kind(
        "judge examples",
        "judges",
        "*/examples.yaml",
        ExamplesFile,
        load_examples,
        "examples.schema.json",
    ),
    Kind("judge set", "judges", "*.yaml", JudgeSetFile, load_set, "set.schema.json"),
    Kind("lexicon", "judges", "*/lexicon.yaml", Lexicon, load_lexicon, "lexicon.schema.json"),
    Kind(
        "setting",
        "experiments",
        "settings/*.yaml",
        SettingFile,
        load_setting,
        "setting.schema.json",
    ),
    Kind("model", "experiments", "models/*.yaml", ModelEntry, load_entry, "model.schema.json"),
    Kind("prices", "experiments", "prices/*.yaml", PriceList, load_prices, "prices.schema.json"),
    Kind(
        "country map",
        "experiments",
        "corpora/*.yaml",
        CountryMap,
        load_country_map,
        "corpus.schema.json",
    ),
    Kind(
        "analysis",
        "experiments",
        "analyses/*.yaml",
        AnalysisFile,
        load_analysis,
        "analysis.schema.json",
    ),
    Kind("experiment", "experiments", "*.yaml", Experiment, resolve, "experiment.schema.json"),
)


def placeholders_of(path: Path) -> frozenset[str] | None:
    """What is filled in a prompt of a helping role; None when the file is no such prompt.

    Prompts of settings and judges are checked with the file that names them.
    """
    if path.resolve().parts[-3:-1] == ("experiments", "corpora") and path.suffix == ".md":
        return SEEN
    for folder, name, placeholders in PROMPT_FILES.values():
        if path.resolve().as_posix().endswith(f"/{folder}/{name}.md"):
            return placeholders
    return None


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
