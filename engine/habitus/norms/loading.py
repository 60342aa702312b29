"""Reading norm files: every problem with its line and column, and cultures by id.

culture = load_culture(Path("norms/health/maori.yaml"))
culture = find_culture("maori", domain="health")
"""

from __future__ import annotations

from collections.abc import Iterator
from difflib import get_close_matches
from pathlib import Path

from habitus.content import Found, listing, load
from habitus.content.places import looks_like_path
from habitus.errors import ContentError, NotFoundError, Problem, UsageError
from habitus.norms.culture import Culture, Norm
from habitus.norms.naming import names_culture

FOLDER = "norms"


def load_culture(path: Path) -> Culture:
    """Read and check one norm file.

    Raises:
        ContentError: every problem of the file with its place.
    """
    return load(path, Culture, check=lambda culture: culture_problems(culture, path))


def find_culture(name: str, domain: str | None = None, workspace: Path | None = None) -> Culture:
    """A culture by id, workspace first, or by path (a name with a slash or a suffix).

    Raises:
        NotFoundError: no such culture, with the nearest names.
        UsageError: the id stands in several domains and none was given.
        ContentError: the file is wrong.
    """
    if looks_like_path(name):
        return load_culture(Path(name))
    paths = culture_paths(domain, workspace)
    found = [path for path in paths if path.stem == name]
    if not found:
        kind = f"culture in the domain {domain}" if domain else "culture"
        raise NotFoundError(kind, name, sorted({path.stem for path in paths}))
    if len(found) > 1:
        domains = ", ".join(path.parent.name for path in found)
        raise UsageError(
            f"the culture {name} is in several domains ({domains}); name one (--domain)"
        )
    return load_culture(found[0])


def list_cultures(domain: str | None = None, workspace: Path | None = None) -> tuple[Culture, ...]:
    """All cultures of the workspace and of the shipped content, by domain and id.

    Raises:
        NotFoundError: no culture in the domain.
        ContentError: the problems of every file that has any.
    """
    cultures: list[Culture] = []
    problems: list[Problem] = []
    paths = culture_paths(domain, workspace)
    if domain and not paths:
        domains = sorted({path.parent.name for path in culture_paths(None, workspace)})
        raise NotFoundError("domain", domain, domains)
    for path in paths:
        try:
            cultures.append(load_culture(path))
        except ContentError as error:
            problems += error.problems
    if problems:
        raise ContentError(problems)
    return tuple(cultures)


def culture_paths(domain: str | None = None, workspace: Path | None = None) -> list[Path]:
    """The norm files there are; a workspace's file hides a shipped one of the same name."""
    return list(listing(FOLDER, f"{domain or '*'}/*.yaml", workspace).values())


def culture_problems(culture: Culture, path: Path) -> Iterator[Found]:
    """What the fields of a norm file alone cannot show."""
    if path.stem != culture.culture:
        what = f"the culture is {culture.culture!r}, but the file is called {path.name}"
        yield Found(
            ("culture",), what, f"rename the file to {culture.culture}.yaml, or change the id"
        )
    folder = path.resolve().parent
    if folder.parent.name == FOLDER and folder.name != culture.domain:
        what = f"the domain is {culture.domain!r}, but the file lies in {FOLDER}/{folder.name}"
        yield Found(("domain",), what, f"move the file to {FOLDER}/{culture.domain}")
    yield from _id_problems(culture)
    for i, norm in enumerate(culture.norms):
        yield from _link_problems(culture, norm, i)
        yield from _naming_problems(culture, norm, i)
    used = {value for norm in culture.norms for value in norm.values}
    for value in culture.values:
        if value not in used:
            yield Found(
                ("values", value), f"no norm rests on the value {value!r}", "link or remove it"
            )


def _id_problems(culture: Culture) -> Iterator[Found]:
    first: dict[str, int] = {}
    for i, norm in enumerate(culture.norms):
        loc = ("norms", i, "id")
        if norm.id in first:
            what = f"the norm id {norm.id!r} is used twice; first by norm {first[norm.id] + 1}"
            yield Found(loc, what, "give every norm an id of its own")
        if norm.id in culture.values:
            yield Found(loc, f"the id {norm.id!r} is also the id of a value", "rename one of them")
        first.setdefault(norm.id, i)


def _link_problems(culture: Culture, norm: Norm, i: int) -> Iterator[Found]:
    for j, value in enumerate(norm.values):
        loc = ("norms", i, "values", j)
        if value not in culture.values:
            near = get_close_matches(value, culture.values, n=1)
            hint = f"did you mean {near[0]!r}?" if near else f"values: {', '.join(culture.values)}"
            yield Found(loc, f"{norm.id} rests on {value!r}, which is no value of the file", hint)
        elif value in norm.values[:j]:
            yield Found(loc, f"{norm.id} names the value {value!r} twice", "name each value once")


def _naming_problems(culture: Culture, norm: Norm, i: int) -> Iterator[Found]:
    names = (culture.name, culture.culture)
    if norm.persona_statement is not None and names_culture(norm.persona_statement, *names):
        what = f"the persona_statement of {norm.id} names the culture"
        yield Found(("norms", i, "persona_statement"), what, "a persona never does: reword it")
    elif names_culture(norm.own_words, *names):
        what = f"the statement of {norm.id} names the culture, which a persona never does"
        hint = "add a persona_statement that says the same without the name"
        yield Found(("norms", i, "statement"), what, hint)
