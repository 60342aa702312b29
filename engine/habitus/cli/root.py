"""The root command and the table of its sub-commands.

A sub-command ``name`` is the module ``habitus.cli.name`` with a ``typer.Typer`` called ``app``
(made by :func:`new_app`). To add one, write the module and a line in ``COMMANDS``. The table is
all that ``habitus --help`` reads; a module is imported when its command is called or completed.
"""

from __future__ import annotations

from importlib import import_module
from typing import Annotated, Any

import typer
from typer.core import TyperCommand, TyperGroup
from typer.main import get_command

import habitus

COMMANDS = {
    "demo": "The whole pipeline on the embedded model, small.",
    "new": "A workspace with one commented example of each kind of file.",
    "check": "Check content and experiment files.",
    "norms": "Cultures: list them, show one, count its norms, print its graph.",
    "personas": "Draw personas from cultures; talk with one.",
    "models": "What an endpoint can do.",
    "plan": "What an experiment will cost, before any call.",
    "run": "Run an experiment, or go on with it.",
    "status": "What of a run is done, failed, left and spent.",
    "results": "Follow, Avoid, adaptation and CCS of a run, with intervals.",
    "report": "A run as one HTML file to hand on, and its figures as files.",
    "corpus": "Posts of Reddit dumps: filter, sort and answer them.",
    "judge": "Judges on the answers of a file or a run.",
    "analyze": "How answers are framed: rankings, co-occurrence, maxims.",
    "view": "Transcripts, responses and labels of a run, to read.",
    "export": "A run as files for others: the consensus subset.",
}
HIDDEN = {"schemas": "Write the JSON Schemas of content files."}


def new_app(about: str) -> typer.Typer:
    """A Typer application with the settings that all commands share.

    Rich markup is off: it would read brackets in help and error texts as markup, and importing
    it costs more than the command line itself.
    """
    return typer.Typer(
        help=about,
        no_args_is_help=True,
        add_completion=False,
        rich_markup_mode=None,
        pretty_exceptions_enable=False,
    )


class LazyGroup(TyperGroup):
    """A group that knows its commands by name and help, and imports one to run it."""

    def __init__(self, **settings: Any) -> None:
        super().__init__(**settings)
        for name, about in (COMMANDS | HIDDEN).items():
            stub = TyperCommand(name, help=about, hidden=name in HIDDEN)
            self.commands[name] = stub

    def resolve_command(self, ctx: Any, args: list[str]) -> tuple[str | None, Any, list[str]]:
        """The command to run or complete; the stub gives way to the real one."""
        name, command, rest = super().resolve_command(ctx, args)
        if name is not None and command is self.commands[name]:
            command = get_command(import_module(f"habitus.cli.{name}").app)
        return name, command, rest


def root() -> Any:
    """The command that ``habitus`` runs."""
    app = typer.Typer(
        cls=LazyGroup,
        no_args_is_help=True,
        rich_markup_mode=None,
        pretty_exceptions_enable=False,
        context_settings={"help_option_names": ["-h", "--help"]},
    )
    app.callback()(_habitus)
    return get_command(app)


def _print_version(wanted: bool) -> None:
    if wanted:
        typer.echo(habitus.__version__)
        raise typer.Exit


def _habitus(
    version: Annotated[
        bool,
        typer.Option(
            "--version", help="Print the version.", callback=_print_version, is_eager=True
        ),
    ] = False,
) -> None:
    """Personas with cultures that are never named, and whether models adapt to them."""
