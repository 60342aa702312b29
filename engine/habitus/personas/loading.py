"""Reading and writing population files.

A population is checked against the norm files it was drawn from: stances for exactly the values
of the culture, and the hash of the norms. A changed norm file makes a clear error, never personas
that silently mean something else.
"""

from __future__ import annotations

import io
import re
from collections.abc import Iterator, Mapping
from difflib import get_close_matches
from pathlib import Path

from habitus.content import Found, find, load
from habitus.content.places import looks_like_path, workspace_of
from habitus.errors import NotFoundError
from habitus.norms import Culture, find_culture, norms_hash
from habitus.personas.population import Persona, Population

FOLDER = "personas"
SCHEMA = "population.schema.json"


def load_population(
    path: Path, workspace: Path | None = None
) -> tuple[Population, dict[str, Culture]]:
    """Read and check a population file, with the cultures it names.

    Returns:
        The population, and culture id to culture in the order of the file.

    Raises:
        ContentError: every problem of the file with its place, or those of a norm file.
    """
    cultures: dict[str, Culture] = {}
    workspace = workspace or workspace_of(path)

    def check(population: Population) -> Iterator[Found]:
        yield from _find_cultures(population, cultures, workspace)
        yield from population_problems(population, path, cultures)

    return load(path, Population, check=check), cultures


def find_population(
    name: str, workspace: Path | None = None
) -> tuple[Population, dict[str, Culture]]:
    """A population by id, workspace first, or by path (a name with a slash or a suffix)."""
    if looks_like_path(name):
        return load_population(Path(name), workspace)
    return load_population(find(FOLDER, f"{name}.yaml", workspace), workspace)


def population_problems(
    population: Population, path: Path, cultures: Mapping[str, Culture]
) -> Iterator[Found]:
    """What the fields of a population file alone cannot show."""
    if path.stem != population.population:
        what = f"the population is {population.population!r}, but the file is called {path.name}"
        hint = f"rename the file to {population.population}.yaml, or change the id"
        yield Found(("population",), what, hint)
    first: dict[str, int] = {}
    stale: set[str] = set()
    for i, persona in enumerate(population.personas):
        yield from _id_problems(persona, i, first)
        culture = cultures.get(persona.culture)
        if culture is not None:
            yield from _stance_problems(persona, culture, i)
            if culture.culture not in stale and persona.norms_hash != norms_hash(culture):
                stale.add(culture.culture)
                yield _stale(population, culture, i)


def population_text(population: Population, *, comment: str = "", schema: bool = True) -> str:
    """The text of a population file, a line of its schema and a comment first."""
    head = [f"# yaml-language-server: $schema={SCHEMA}"] if schema else []
    head += [f"# {line}" for line in comment.splitlines()]
    return "\n".join([*head, _yaml(population)])


def _yaml(population: Population) -> str:
    from ruamel.yaml import YAML  # noqa: PLC0415
    from ruamel.yaml.comments import CommentedMap  # noqa: PLC0415

    data = population.model_dump(exclude_none=True, exclude_defaults=True)
    for persona in data["personas"]:
        persona["stances"] = CommentedMap(persona["stances"])
        persona["stances"].fa.set_flow_style()
    yaml = YAML()
    yaml.indent(mapping=2, sequence=4, offset=2)
    yaml.width = 4096  # one line a persona's stances, so that changes show line by line
    out = io.StringIO()
    yaml.dump({**data, "personas": list(data["personas"])}, out)
    return out.getvalue()


def _find_cultures(
    population: Population, cultures: dict[str, Culture], workspace: Path | None
) -> Iterator[Found]:
    seen: set[str] = set()
    for i, persona in enumerate(population.personas):
        if persona.culture in seen:
            continue
        seen.add(persona.culture)
        try:
            cultures[persona.culture] = find_culture(persona.culture, population.domain, workspace)
        except NotFoundError as error:
            yield Found(("personas", i, "culture"), str(error))


def _id_problems(persona: Persona, i: int, first: dict[str, int]) -> Iterator[Found]:
    loc = ("personas", i, "id")
    if not re.fullmatch(re.escape(persona.culture) + r"-\d{2,}", persona.id):
        hint = f"write {persona.culture}-01 and so on"
        yield Found(
            loc, f"the id {persona.id!r} does not fit the culture {persona.culture!r}", hint
        )
    if persona.id in first:
        what = (
            f"the persona id {persona.id!r} is used twice; first by persona {first[persona.id] + 1}"
        )
        yield Found(loc, what, "give every persona an id of its own")
    first.setdefault(persona.id, i)


def _stance_problems(persona: Persona, culture: Culture, i: int) -> Iterator[Found]:
    for value in persona.stances:
        if value not in culture.values:
            near = get_close_matches(value, culture.values, n=1)
            hint = f"did you mean {near[0]!r}?" if near else f"values: {', '.join(culture.values)}"
            what = f"{persona.id} has a stance on {value!r}, which is no value of {culture.culture}"
            yield Found(("personas", i, "stances", value), what, hint)
    missing = [value for value in culture.values if value not in persona.stances]
    if missing:
        what = f"{persona.id} has no stance on {', '.join(missing)}"
        yield Found(("personas", i, "stances"), what, "write 1 or -1 for every value")


def _stale(population: Population, culture: Culture, i: int) -> Found:
    now = norms_hash(culture)
    many = sum(p.norms_hash != now for p in population.of(culture.culture))
    what = (
        f"the norms of {culture.culture} have changed since {many} of its personas were drawn: "
        f"norms_hash is {population.personas[i].norms_hash}, the norm file has {now}"
    )
    hint = (
        "restore the norm file, draw the personas again, or, if their stances are still meant, "
        f"write {now}"
    )
    return Found(("personas", i, "norms_hash"), what, hint)
