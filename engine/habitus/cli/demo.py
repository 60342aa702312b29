"""``habitus demo``: the whole pipeline on the embedded model, small, before one's eyes."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from habitus.cli.output import print_text, program, talk
from habitus.cli.root import new_app
from habitus.cli.run import SetOption

app = new_app("The whole pipeline on the embedded model, small.")

_BEFORE = """\
This is Habitus at work on real models: two personas talk with an assistant, a verifier reads the
sessions, the model under test answers in four settings, an evaluator checks its answers.

The embedded model (SmolLM2, 135 million parameters) is far too small for its numbers to mean
anything: its verdicts are close to chance. It shows the machinery.

For a real model one line changes, `main:` under `models:` in
  {path}
Change it there, or for one run here:
  {program} demo --out runs/real \\
    --set 'models.main={{backend: openai, model: NAME, base_url: "http://127.0.0.1:8000/v1"}}'
"""
_AFTER = """\
The numbers above come from a model that is too small to judge: do not quote them.
They stay in {out}, the conversations in {out}/records/attempts.jsonl. Try
  {program} results {out} --by persona
  {program} results {out} --filter
  {program} status {out}
and, with a model of your own, `{program} new study`."""


@app.command()
def demo(
    out: Annotated[Path, typer.Option("--out", help="Run directory.")] = Path("runs/demo"),
    changes: SetOption = None,
    quiet: Annotated[bool, typer.Option("--quiet", help="Do not show the conversations.")] = False,
) -> int:
    """Run the demo experiment and show what happens; the same command goes on with it."""
    from habitus.cli.finding import experiment_path, read_changes
    from habitus.cli.running import command_line, run_and_tell
    from habitus.cli.watching import Watching
    from habitus.experiments import RunRequest, Stage, resolve

    path = experiment_path("demo")
    print_text(_BEFORE.format(path=path, program=program()))
    study = resolve(path, read_changes(changes or []))
    observer = None if quiet else Watching(study)
    again = command_line(program(), "demo", out=out, set=changes)
    # One stage after the other, where `run` lets them overlap: a person can follow that.
    before = () if quiet else (Stage.HISTORIES, Stage.CHECKLISTS, Stage.RESPONSES)
    request = RunRequest(out=out)
    code = run_and_tell(study, request, observer, show=True, again=again, before=before)
    talk("")
    print_text(_AFTER.format(out=out, program=program()))
    return code
