"""``habitus personas``: draw a population."""

from __future__ import annotations

import shlex
import sys
from collections.abc import Iterable, Mapping, Sequence
from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from habitus.cli.norms import DomainOption, culture_names
from habitus.cli.output import print_table, talk
from habitus.cli.root import new_app
from habitus.content.fields import slug
from habitus.content.writing import write_text
from habitus.errors import UsageError
from habitus.norms import Culture, find_culture
from habitus.personas import Drawn, Population, coverage, draw, population_text, read_names
from habitus.personas.loading import SCHEMA

app = new_app("Draw personas from cultures.")


@app.callback()
def _personas() -> None:
    """Draw personas from cultures."""


class Sampler(StrEnum):
    """How stances are drawn."""

    RANDOM = "random"
    BALANCED = "balanced"


@app.command()
def sample(
    cultures: Annotated[
        list[str],
        typer.Argument(
            metavar="CULTURE", help="Ids or paths of cultures.", autocompletion=culture_names
        ),
    ],
    *,
    n: Annotated[int, typer.Option("-n", min=1, help="Personas of each culture.")] = 10,
    seed: Annotated[int, typer.Option("--seed", help="Seed of the draw.")] = 0,
    sampler: Annotated[
        Sampler,
        typer.Option("--sampler", help="random, or balanced: both states of every norm, evenly."),
    ] = Sampler.RANDOM,
    prior: Annotated[
        list[str] | None,
        typer.Option(
            "--prior", metavar="VALUE=P", help="Probability of +1 for a value; repeatable."
        ),
    ] = None,
    names: Annotated[
        Path | None, typer.Option("--names", help="File of names to give, one a line.")
    ] = None,
    output: Annotated[
        Path | None, typer.Option("-o", "--output", help="File to write; stdout by default.")
    ] = None,
    force: Annotated[bool, typer.Option("--force", help="Overwrite the file.")] = False,
    domain: DomainOption = None,
) -> None:
    """Draw a population, and print how many personas follow and avoid each norm."""
    found = [find_culture(name, domain) for name in cultures]
    drawn = Drawn(sampler=sampler.value, seed=seed, priors=_priors(prior or []))
    people = draw(found, n, drawn, read_names(names) if names else None)
    population = Population.model_validate(
        {
            "population": _id(output),
            "domain": _one_domain(found),
            "drawn": drawn,
            "personas": people,
        }
    )
    files = {"--domain": domain, "--names": _shown(names), "-o": _shown(output)}
    comment = "Drawn by: " + _command(found, n, drawn, files)
    if output is None:
        sys.stdout.write(population_text(population, comment=comment, schema=False))
    else:
        schema = (output.parent / SCHEMA).exists()
        text = population_text(population, comment=comment, schema=schema)
        write_text(output, text, overwrite=force)
        talk(f"wrote {len(people)} personas to {output}")
    _print_coverage(population, found)


@app.command()
def chat(
    persona: Annotated[str, typer.Argument(help="Id of a persona, such as maori-03.")],
    *,
    population: Annotated[
        str, typer.Option("--population", help="Id or path of the population.")
    ] = "health",
    experiment: Annotated[
        str | None,
        typer.Option("--experiment", help="Take the persona's model from here; else embedded."),
    ] = None,
    opener: Annotated[
        str | None, typer.Option("--opener", help="The persona's first message, word for word.")
    ] = None,
    seed: Annotated[int, typer.Option("--seed", help="Seed of what the persona says.")] = 0,
) -> None:
    """Talk with one persona: it opens the chat, you are the assistant. An empty line ends it."""
    from habitus.cli.chatting import hold_chat

    hold_chat(persona, population, experiment, opener, seed)


def _id(output: Path | None) -> str:
    if output is None:
        return "population"
    try:
        return slug(output.stem)
    except ValueError as error:
        raise UsageError(
            f"-o {output}: the file's name is the population's id, and {error}"
        ) from None


def _priors(given: Iterable[str]) -> dict[str, float]:
    priors = {}
    for text in given:
        value, _, number = text.partition("=")
        try:
            priors[value] = float(number)
        except ValueError:
            raise UsageError(f"--prior {text}: write VALUE=P, such as family=0.8") from None
    return priors


def _one_domain(cultures: Sequence[Culture]) -> str:
    domains = sorted({culture.domain for culture in cultures})
    if len(domains) > 1:
        raise UsageError(f"a population has one domain; these cultures have {', '.join(domains)}")
    return domains[0]


def _command(
    cultures: Sequence[Culture], n: int, drawn: Drawn, others: Mapping[str, str | None]
) -> str:
    """The command that draws the same population again."""
    words = ["habitus", "personas", "sample", *(culture.culture for culture in cultures)]
    words += ["-n", str(n), "--seed", str(drawn.seed)]
    words += [] if drawn.sampler == "random" else ["--sampler", drawn.sampler]
    for value, p in drawn.priors.items():
        words += ["--prior", f"{value}={p}"]
    for option, given in others.items():
        words += [option, given] if given else []
    return shlex.join(words)


def _shown(path: Path | None) -> str | None:
    """A path as it may stand in a file for others: as given, but no place on this machine."""
    if path is None:
        return None
    return path.name if path.is_absolute() else path.as_posix()


def _print_coverage(population: Population, cultures: Sequence[Culture]) -> None:
    rows: list[list[str | int]] = []
    for culture in cultures:
        counts = coverage(population.personas, culture)
        rows += [[culture.culture, id_, *count] for id_, count in counts.items()]
        bare = [id_ for id_, count in counts.items() if not count.covered]
        if bare:
            talk(f"{culture.culture}: not both followed and avoided: {', '.join(bare)}")
    print_table(["culture", "norm", "follow", "neutral", "avoid"], rows, to=sys.stderr)
