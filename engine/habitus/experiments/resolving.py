"""From an experiment file to a study: everything it refers to, found, read and checked.

    study = resolve(Path("experiments/demo.yaml"), {"seed": 7})

Problems are reported together as far as they can be seen together: all of the file itself, then
all references that lead nowhere, then all references that do not fit each other.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path

from habitus.agents import load_goodbyes
from habitus.checklists import Query, QuerySet, load_queries
from habitus.content import Document, Found, find, read_prompt, read_yaml
from habitus.content.models import file_hash, from_document
from habitus.content.places import looks_like_path, workspace_of
from habitus.content.yamlfile import Loc
from habitus.errors import ContentError, NotFoundError, Problem
from habitus.experiments.changing import change
from habitus.experiments.config import Experiment, check_experiment
from habitus.experiments.references import References, reference_problems
from habitus.experiments.settings import Setting, load_setting
from habitus.experiments.study import Prompts, Study
from habitus.histories import OpenerPool, load_lexicon
from habitus.judges import Judge, load_judge
from habitus.models.prices import find_prices
from habitus.personas import Openers, Persona, load_openers, load_population

#: Prompt files of the helping roles: field of ``Prompts`` to folder, name and placeholders.
PROMPT_FILES: Mapping[str, tuple[str, str, frozenset[str]]] = {
    "persona": ("personas", "prompts/persona", frozenset({"sheet", "stop"})),
    "assistant": ("personas", "prompts/assistant", frozenset()),
    "dialogue": (
        "personas",
        "prompts/dialogue",
        frozenset({"sheet", "opener", "exchanges", "norm_ids"}),
    ),
    "verifier": ("judges", "history_verifier/prompt", frozenset({"norms", "session"})),
    "recommend": (
        "checklists",
        "prompts/recommend",
        frozenset({"statement", "meaning", "query"}),
    ),
    "evaluate": ("checklists", "prompts/evaluate", frozenset({"items", "response"})),
}


def resolve(
    path: Path, changes: Mapping[str, object] | None = None, workspace: Path | None = None
) -> Study:
    """Read an experiment and everything it refers to.

    Args:
        path: the experiment file.
        changes: values to set before it is checked, by dotted key.
        workspace: where content is looked for first; by default the workspace of the file.

    Raises:
        ContentError: the problems of the first file that has any, each with its place; for the
            experiment file itself also references that lead nowhere or do not fit.
    """
    document = read_yaml(path)
    for key, value in (changes or {}).items():
        change(document, key, value)
    experiment = from_document(document, Experiment, check_experiment)
    workspace = workspace or workspace_of(path)
    models = find_prices(workspace).all_priced(experiment.models)
    experiment = experiment.model_copy(update={"models": models})
    return _Reader(experiment, document, workspace).study()


class _Reader:
    """Reads the files of an experiment and remembers their hashes."""

    def __init__(self, experiment: Experiment, document: Document, workspace: Path) -> None:
        self.experiment = experiment
        self.document = document
        self.workspace = workspace
        self.files: dict[str, str] = {}
        self.problems: list[Problem] = []

    def study(self) -> Study:
        found = self._references()
        self._refuse(reference_problems(self.experiment, found))
        return Study(
            experiment=self.experiment,
            cultures={name: found.cultures[name] for name in self.experiment.cultures},
            personas=_chosen_personas(self.experiment, found.population.personas),
            query_set=found.queries,
            queries=_chosen_queries(self.experiment, found.queries),
            pools=self._pools(found),
            settings=found.settings,
            prompts=self._prompts(),
            lexicon=load_lexicon(self._find("judges", "history_verifier/lexicon", ())),
            goodbyes=load_goodbyes(self._find("personas", "talk/goodbyes", ())),
            safety=self._safety(),
            files=dict(sorted(self.files.items())),
        )

    def _references(self) -> References:
        """What the experiment names. Names that lead nowhere are reported together."""
        experiment = self.experiment
        people = self._named("personas", experiment.population, ("population",))
        queries = self._named("checklists", experiment.queries.file, ("queries", "file"))
        openers = self._openers()
        settings = [
            self._find("experiments", f"settings/{name}", ("settings", index))
            for index, name in enumerate(experiment.settings)
        ]
        self._refuse(())
        population, cultures = load_population(people, self.workspace)
        for culture in experiment.cultures:
            if culture in cultures:
                self._find("norms", f"{population.domain}/{culture}", ("cultures",))
        return References(
            population=population,
            cultures=cultures,
            queries=load_queries(queries),
            domain_openers=load_openers(openers[0]),
            everyday_openers=load_openers(openers[1]),
            settings=tuple(map(self._setting, settings)),
        )

    def _find(self, folder: str, name: str, at: Loc, suffix: str = ".yaml") -> Path:
        """The path of a content file, noted with its hash; ``at`` is the key that names it."""
        direct = looks_like_path(name) and Path(name).suffix in {".yaml", ".yml"}
        try:
            path = Path(name) if direct else find(folder, f"{name}{suffix}", self.workspace)
            self.files[str(path) if direct else f"{folder}/{name}{suffix}"] = file_hash(path)
        except NotFoundError as error:
            self.problems.append(self.document.problem(at, str(error)))
        except OSError as error:
            what = f"{name} cannot be read: {error.strerror or error}"
            self.problems.append(self.document.problem(at, what))
        else:
            return path
        return Path(name)

    def _named(self, folder: str, name: str | None, at: Loc) -> Path:
        """A file that goes by the domain's name where the experiment gives none."""
        return self._find(folder, name or self.experiment.domain, at if name else ("domain",))

    def _openers(self) -> tuple[Path, Path]:
        history = self.experiment.history
        domain = history.domain_openers or self.experiment.domain
        at: Loc = ("history", "domain_openers") if history.domain_openers else ("domain",)
        return (
            self._find("personas", f"openers/{domain}", at),
            self._find(
                "personas", f"openers/{history.everyday_openers}", ("history", "everyday_openers")
            ),
        )

    def _pools(self, found: References) -> tuple[OpenerPool, ...]:
        history = self.experiment.history
        return (
            OpenerPool("domain", _texts(found.domain_openers), history.domain_sessions),
            OpenerPool("everyday", _texts(found.everyday_openers), history.everyday_sessions),
        )

    def _setting(self, path: Path) -> Setting:
        setting = load_setting(path)
        for prompt in (setting.file.system_prompt, setting.file.query_prompt):
            if prompt:
                self.files[f"experiments/settings/{prompt}"] = file_hash(path.with_name(prompt))
        return setting

    def _prompts(self) -> Prompts:
        paths = {
            field: (self._find(folder, name, (), ".md"), placeholders)
            for field, (folder, name, placeholders) in PROMPT_FILES.items()
        }
        self._refuse(())
        return Prompts(**{field: read_prompt(*found) for field, found in paths.items()})

    def _safety(self) -> Judge | None:
        if self.experiment.roles.safety is None:
            return None
        path = self._find("judges", "safety/judge", ("roles", "safety"))
        self._find("judges", "safety/prompt", ("roles", "safety"), ".md")
        self._refuse(())
        return load_judge(path)

    def _refuse(self, found: Iterable[Found]) -> None:
        """Stop if anything is wrong so far."""
        self.problems += [self.document.problem(f.loc, f.what, f.hint) for f in found]
        if self.problems:
            raise ContentError(
                sorted(self.problems, key=lambda p: (str(p.place.path), p.place.line))
            )


def _texts(openers: Openers) -> tuple[tuple[str, str], ...]:
    return tuple((opener.id, opener.text) for opener in openers.openers)


def _chosen_personas(experiment: Experiment, personas: Iterable[Persona]) -> list[Persona]:
    """The personas of an experiment, in the order of their file within each culture."""
    chosen: list[Persona] = []
    for culture in experiment.cultures:
        people = [p for p in personas if p.culture == culture]
        if isinstance(experiment.personas, tuple):
            chosen += [p for p in people if p.id in experiment.personas]
        else:
            chosen += people[: experiment.personas]
    return chosen


def _chosen_queries(experiment: Experiment, queries: QuerySet) -> tuple[Query, ...]:
    """The queries of an experiment, in the order of their file."""
    wanted = experiment.queries
    taken: dict[str, int] = {}
    chosen = []
    for query in queries.queries:
        if wanted.ids and query.id not in wanted.ids:
            continue
        taken[query.topic] = taken.get(query.topic, 0) + 1
        if wanted.per_topic is None or taken[query.topic] <= wanted.per_topic:
            chosen.append(query)
    return tuple(chosen)
