"""Options that several commands share, so that they read and behave alike."""

from __future__ import annotations

from typing import Annotated, Literal

import typer

MODEL_HELP = "Name of a file in experiments/models/, a path, or an entry in braces"

AnswerOption = Annotated[
    Literal["sentinel", "json"] | None,
    typer.Option("--answer", help="Form of the answer; each judge's own by default."),
]
TemperatureOption = Annotated[
    float | None,
    typer.Option("--temperature", min=0, max=5, help="Each judge's own by default."),
]
MaxTokensOption = Annotated[
    int | None, typer.Option("--max-tokens", min=1, help="Each judge's own by default.")
]
LimitOption = Annotated[
    int | None, typer.Option("--limit", min=1, help="Only the first N of the input.")
]
SeedOption = Annotated[int, typer.Option("--seed", min=0, help="What all draws derive from.")]
ForkOption = Annotated[
    str | None, typer.Option("--fork", help="Start with the stored answers of this run.")
]
FailuresOption = Annotated[
    float,
    typer.Option(
        "--failures",
        min=0,
        max=1,
        help="Share without an answer above which exit is 1; with 1 nothing stops early.",
    ),
]
QuietOption = Annotated[bool, typer.Option("--quiet", help="No progress, no table.")]
JsonOption = Annotated[bool, typer.Option("--json", help="Print JSON.")]
