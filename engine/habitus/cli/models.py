"""``habitus models``: what an endpoint can do."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from habitus.cli.output import print_json, print_table, talk
from habitus.cli.root import new_app
from habitus.content import find
from habitus.content.places import looks_like_path
from habitus.errors import UsageError

if TYPE_CHECKING:
    from habitus.models import ModelEntry
    from habitus.models.checking import Finding

app = new_app("What an endpoint can do.")


@app.callback()
def _models() -> None:
    """What an endpoint can do."""


@app.command()
def check(
    name: Annotated[str, typer.Argument(help="Name of the model's entry.")] = "model",
    *,
    experiment: Annotated[
        str | None, typer.Option("--experiment", "-e", help="Experiment that has the entry.")
    ] = None,
    backend: Annotated[str | None, typer.Option("--backend", help="openai, local ...")] = None,
    model: Annotated[str | None, typer.Option("--model", help="The server's name of it.")] = None,
    base_url: Annotated[str | None, typer.Option("--base-url", help="http://host/v1")] = None,
    api_key_env: Annotated[
        str | None, typer.Option("--api-key-env", help="Environment variable with the key.")
    ] = None,
    api_key_file: Annotated[
        str | None, typer.Option("--api-key-file", help="File with the key: ~/... or /...")
    ] = None,
    longest: Annotated[
        int, typer.Option("--max-tokens", min=16, help="Most tokens of an answer.")
    ] = 400,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """Ask a model some twenty short questions and say what it can do.

    The entry comes from an experiment file (NAME with --experiment), or from --backend, --model,
    --base-url and --api-key-env or --api-key-file. Exit code 1 when a check could not be made.
    """
    given = {"backend": backend, "model": model, "base_url": base_url}
    given |= {"api_key_env": api_key_env, "api_key_file": api_key_file}
    given = {key: value for key, value in given.items() if value is not None}
    base = Path.cwd()
    if experiment is not None:
        if given:
            raise UsageError("give either --experiment or the parts of an entry, not both")
        path = _experiment_file(experiment)
        entry, base = _entry_of(path, name), path.parent
    else:
        entry = _entry_from(given)
    findings = _findings(name, entry, base, longest)
    _print(findings, as_json=as_json)
    if any(finding.status == "failed" for finding in findings):
        raise typer.Exit(1)


def _experiment_file(experiment: str) -> Path:
    if looks_like_path(experiment):
        return Path(experiment)
    return find("experiments", f"{experiment}.yaml")


def _entry_of(path: Path, name: str) -> ModelEntry:
    from habitus.models import read_entry

    return read_entry(path, name)


def _entry_from(given: dict[str, Any]) -> ModelEntry:
    from pydantic import ValidationError

    from habitus.models import ModelEntry

    if not given:
        raise UsageError("name a model: NAME with --experiment FILE, or --base-url with --model")
    try:
        return ModelEntry.model_validate({"backend": "openai"} | given)
    except ValidationError as error:
        raise UsageError("; ".join(_problem(problem) for problem in error.errors())) from None


def _problem(problem: Any) -> str:
    option = "".join(f"--{part}: ".replace("_", "-") for part in problem["loc"][:1])
    return option + str(problem["msg"]).removeprefix("Value error, ")


def _findings(name: str, entry: ModelEntry, base: Path, longest: int) -> list[Finding]:
    import asyncio

    from habitus.models import Opening, open_model
    from habitus.models.checking import check_model

    async def ask(tell: Callable[[str], object]) -> list[Finding]:
        model = open_model(name, entry, Opening(base=base))
        try:
            return await check_model(model, longest=longest, tell=tell)
        finally:
            await model.aclose()

    with _under_way() as tell:
        return asyncio.run(ask(tell))


@contextmanager
def _under_way() -> Iterator[Callable[[str], object]]:
    """On a terminal, a line that says what is being checked: a slow model takes minutes."""
    if not sys.stderr.isatty():
        yield lambda _: None
        return
    from rich.console import Console

    with Console(stderr=True).status("checking") as status:
        yield lambda name: status.update(f"checking: {name}")


def _print(findings: list[Finding], *, as_json: bool) -> None:
    rows = [(f.check, str(f.status), f.detail) for f in findings]
    if as_json:
        print_json([dict(zip(("check", "status", "detail"), row, strict=True)) for row in rows])
        return
    print_table(["check", "status", "detail"], rows)
    failed = sum(status == "failed" for _, status, _ in rows)
    if failed:
        talk(f"{failed} of {len(rows)} checks could not be made")
