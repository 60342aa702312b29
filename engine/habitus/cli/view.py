"""``habitus view``: the transcripts, responses and labels of a run, to read."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from habitus.cli.output import print_json, print_table, print_text, program
from habitus.cli.root import new_app

if TYPE_CHECKING:
    from habitus.browsing import Browsed, Filter

app = new_app("The transcripts, responses and labels of a run, to read.")


@app.command()
def view(
    run: Annotated[str, typer.Argument(help="A run directory, or the name of one in runs/.")],
    item: Annotated[
        str,
        typer.Argument(
            help="What to show: PERSONA/SESSION, PERSONA/QUERY, the id of a response or an item."
        ),
    ] = "",
    plain: Annotated[
        bool, typer.Option("--plain", help="Print it; without an item, list what there is.")
    ] = False,
    labels: Annotated[
        str | None, typer.Option("--labels", help="A run of labels over the responses of this run.")
    ] = None,
    beside: Annotated[
        str | None,
        typer.Option("--beside", help="A run judged by another evaluator, to compare with."),
    ] = None,
    filter_: Annotated[
        list[str] | None,
        typer.Option("--filter", help="KEY=VALUE, such as setting=hist; repeatable."),
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """Read a run: a screen full of keys, or with --plain text for a pipe.

    It may be going on meanwhile; nothing is written to it but marks and notes (notes.jsonl).
    """
    from habitus.browsing import Browsed, Filter
    from habitus.cli.finding import run_path
    from habitus.errors import UsageError

    given = Filter.parse(filter_ or ())
    if given.evaluators_disagree and not beside:
        raise UsageError("--filter evaluators-disagree needs another run: --beside RUN")
    browsed = Browsed(
        run_path(run),
        labels=run_path(labels) if labels else None,
        beside=run_path(beside) if beside else None,
    )
    if plain or as_json:
        _print(browsed, item, given, as_json)
    else:
        _open(browsed, item, given)


def _print(browsed: Browsed, item: str, given: Filter, as_json: bool) -> None:
    from habitus.browsing import plain_text

    if not item:
        rows = [list(row) for row in browsed.listing(given)]
        columns = ["id", "kind", "outcome"]
        if as_json:
            print_json([dict(zip(columns, row, strict=True)) for row in rows])
        else:
            print_table(columns, rows)
    elif as_json:
        print_json(browsed.records(item))
    else:
        print_text(plain_text(browsed.page(item), _width()).rstrip("\n"))


def _width() -> int:
    """Text is wrapped on a terminal only: a pipe gets lines as they are."""
    import sys
    from shutil import get_terminal_size

    return get_terminal_size().columns if sys.stdout.isatty() else 0


def _open(browsed: Browsed, item: str, given: Filter) -> None:
    import sys

    from habitus.errors import UsageError

    if not all(stream.isatty() for stream in (sys.stdin, sys.stdout, sys.stderr)):
        raise UsageError(
            f"the viewer needs a terminal; `{program()} view {browsed.path} --plain` prints"
        )
    from habitus.tui import Viewer

    viewer = Viewer(browsed, item=item, given=given)
    viewer.run()
    if viewer.fault is not None:
        raise viewer.fault
