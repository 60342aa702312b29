"""From an experiment file to a study: everything it refers to, read and checked.

A study holds the cultures, personas, queries, openers, settings, prompts and judges of an
experiment, and the hash of every file they came from: a run goes on only over the same content.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path

from habitus.checklists import Query, QuerySet, load_queries
from habitus.content import Document, Found, Prompt, find, read_prompt, read_yaml
from habitus.content.models import file_hash, from_document
from habitus.content.places import looks_like_path, workspace_of
from habitus.errors import ContentError
from habitus.experiments.config import Experiment, check_experiment
from habitus.experiments.settings import Setting, load_setting
from habitus.histories import Lexicon, OpenerPool, load_lexicon
from habitus.judges import Judge, load_judge
from habitus.norms import Culture
from habitus.personas import Persona, find_population, load_openers, sheet, states
from habitus.personas.portrait import Portrait
from habitus.personas.sheets import labels

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


@dataclass(frozen=True, slots=True)
class Prompts:
    """The prompts of the helping roles."""

    persona: Prompt
    assistant: Prompt
    dialogue: Prompt
    verifier: Prompt
    recommend: Prompt
    evaluate: Prompt


@dataclass(frozen=True)
class Study:
    """An experiment with all it refers to.

    ``files`` maps the name of each content file to its hash.
    """

    experiment: Experiment
    cultures: Mapping[str, Culture]
    personas: Sequence[Persona]
    query_set: QuerySet
    queries: Sequence[Query]
    pools: Sequence[OpenerPool]
    settings: Sequence[Setting]
    prompts: Prompts
    lexicon: Lexicon
    safety: Judge | None
    files: Mapping[str, str] = field(default_factory=dict)

    @cached_property
    def portraits(self) -> tuple[Portrait, ...]:
        """What the stages need of each persona, in the order of the population."""
        return tuple(self._portrait(persona) for persona in self.personas)

    @cached_property
    def norms_text(self) -> dict[str, str]:
        """For each persona the text of the setting that spells its norms out."""
        included = self.experiment.neutral_norms == "include"
        return {
            p.id: "\n".join(
                sheet(
                    p,
                    self.cultures[p.culture],
                    neutral="listed" if included else "omit",
                    norms=self._in_play(p.culture),
                    label="none",
                    wording="full",
                )
            )
            for p in self.personas
        }

    def _portrait(self, persona: Persona) -> Portrait:
        culture = self.cultures[persona.culture]
        in_play = self._in_play(culture.culture)
        label_of = {norm: label for label, norm in labels(culture).items()}
        chosen = [norm for norm in culture.norms if norm.id in in_play]
        state = states(persona, culture)
        lines = sheet(persona, culture, neutral=self.experiment.history.neutral, norms=in_play)
        return Portrait(
            id=persona.id,
            culture=culture.culture,
            states={norm.id: state[norm.id] for norm in chosen},
            statements={norm.id: norm.statement for norm in chosen},
            labels={norm.id: label_of[norm.id] for norm in chosen},
            sheet="\n".join(lines),
        )

    def _in_play(self, culture: str) -> tuple[str, ...]:
        every = tuple(norm.id for norm in self.cultures[culture].norms)
        return self.experiment.norms.get(culture) or every


def resolve(
    path: Path, changes: Mapping[str, object] | None = None, workspace: Path | None = None
) -> Study:
    """Read an experiment and everything it refers to.

    Args:
        path: the experiment file.
        changes: values to set before it is checked, by dotted key.
        workspace: where content is looked for first; by default the workspace of the file.

    Raises:
        ContentError: every problem of the first file that has any, with its places.
        NotFoundError: a reference that leads nowhere.
    """
    document = read_yaml(path)
    for key, value in (changes or {}).items():
        _set(document, key, value)
    experiment = from_document(document, Experiment, check_experiment)
    return _Reader(experiment, document, workspace or workspace_of(path)).study()


def _set(document: Document, key: str, value: object) -> None:
    """Set a dotted key in the data; places of new keys are those of the part around them."""
    at = document.data
    *parents, last = key.split(".")
    for part in parents:
        if not isinstance(at, dict) or not isinstance(at.setdefault(part, {}), dict):
            what = f"cannot set {key!r}: {part!r} holds no keys"
            raise ContentError([document.problem((), what)])
        at = at[part]
    at[last] = value


class _Reader:
    """Reads the files of an experiment and remembers their hashes."""

    def __init__(self, experiment: Experiment, document: Document, workspace: Path | None) -> None:
        self.experiment = experiment
        self.document = document
        self.workspace = workspace
        self.files: dict[str, str] = {}

    def study(self) -> Study:
        cultures, personas = self._personas()
        query_set = load_queries(
            self._find("checklists", self.experiment.queries.file or self.experiment.domain)
        )
        self._refuse(self._reference_problems(cultures, query_set))
        return Study(
            experiment=self.experiment,
            cultures=cultures,
            personas=personas,
            query_set=query_set,
            queries=_chosen(query_set, self.experiment),
            pools=self._pools(),
            settings=tuple(self._setting(name) for name in self.experiment.settings),
            prompts=self._prompts(),
            lexicon=load_lexicon(self._find("judges", "history_verifier/lexicon")),
            safety=self._safety(),
            files=dict(sorted(self.files.items())),
        )

    def _find(self, folder: str, name: str, suffix: str = ".yaml") -> Path:
        """The path of a content file, noted with its hash."""
        direct = looks_like_path(name) and Path(name).suffix != ""
        path = Path(name) if direct else find(folder, f"{name}{suffix}", self.workspace)
        self.files[str(path) if direct else f"{folder}/{name}{suffix}"] = file_hash(path)
        return path

    def _personas(self) -> tuple[dict[str, Culture], list[Persona]]:
        experiment = self.experiment
        name = experiment.population or experiment.domain
        self._find("personas", name)
        population, known = find_population(name, self.workspace)
        self._refuse(_missing_cultures(experiment, known))
        cultures = {culture: known[culture] for culture in experiment.cultures}
        for culture in cultures:
            self._find("norms", f"{population.domain}/{culture}")
        of_cultures = [p for p in population.personas if p.culture in cultures]
        self._refuse(_unknown_personas(experiment, of_cultures))
        return cultures, _chosen_personas(experiment, of_cultures)

    def _pools(self) -> tuple[OpenerPool, ...]:
        history = self.experiment.history
        sources = (
            ("domain", history.domain_openers or self.experiment.domain, history.domain_sessions),
            ("everyday", history.everyday_openers, history.everyday_sessions),
        )
        pools = []
        for kind, name, sessions in sources:
            openers = load_openers(self._find("personas", f"openers/{name}")).openers
            pairs = tuple((opener.id, opener.text) for opener in openers)
            pools.append(OpenerPool("domain" if kind == "domain" else "everyday", pairs, sessions))
        return tuple(pools)

    def _setting(self, name: str) -> Setting:
        path = self._find("experiments", f"settings/{name}")
        setting = load_setting(path)
        for prompt in (setting.file.system_prompt, setting.file.query_prompt):
            if prompt:
                self.files[f"experiments/settings/{prompt}"] = file_hash(path.with_name(prompt))
        return setting

    def _prompts(self) -> Prompts:
        read = {
            field: read_prompt(self._find(folder, name, ".md"), placeholders)
            for field, (folder, name, placeholders) in PROMPT_FILES.items()
        }
        return Prompts(**read)

    def _safety(self) -> Judge | None:
        if self.experiment.roles.safety is None:
            return None
        path = self._find("judges", "safety/judge")
        self._find("judges", "safety/prompt", ".md")
        return load_judge(path)

    def _reference_problems(
        self, cultures: Mapping[str, Culture], queries: QuerySet
    ) -> Iterator[Found]:
        for culture, ids in self.experiment.norms.items():
            known = {norm.id for norm in cultures[culture].norms}
            for index, norm in enumerate(ids):
                if norm not in known:
                    yield Found(("norms", culture, index), f"{culture} has no norm {norm!r}")
        known_queries = {query.id for query in queries.queries}
        for index, query in enumerate(self.experiment.queries.ids):
            if query not in known_queries:
                where = f"the query file {queries.id!r} has {len(known_queries)} others"
                yield Found(("queries", "ids", index), f"no query {query!r}", where)

    def _refuse(self, found: Iterator[Found]) -> None:
        problems = [self.document.problem(f.loc, f.what, f.hint) for f in found]
        if problems:
            raise ContentError(problems)


def _missing_cultures(experiment: Experiment, known: Mapping[str, Culture]) -> Iterator[Found]:
    for index, culture in enumerate(experiment.cultures):
        if culture not in known:
            hint = (
                f"it has {', '.join(known)}; add personas with: habitus personas sample {culture}"
            )
            what = f"the population has no persona of {culture!r}"
            yield Found(("cultures", index), what, hint)


def _unknown_personas(experiment: Experiment, personas: Sequence[Persona]) -> Iterator[Found]:
    known = {persona.id for persona in personas}
    if isinstance(experiment.personas, tuple):
        for index, name in enumerate(experiment.personas):
            if name not in known:
                yield Found(("personas", index), f"no persona {name!r} of these cultures")


def _chosen_personas(experiment: Experiment, personas: Sequence[Persona]) -> list[Persona]:
    if isinstance(experiment.personas, tuple):
        return [p for p in personas if p.id in experiment.personas]
    chosen = []
    for culture in experiment.cultures:
        chosen += [p for p in personas if p.culture == culture][: experiment.personas]
    return chosen


def _chosen(queries: QuerySet, experiment: Experiment) -> tuple[Query, ...]:
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
