"""``habitus demo``: the whole pipeline on the embedded model, small, before one's eyes."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from habitus.cli.output import print_text, talk
from habitus.cli.root import new_app
from habitus.cli.run import SetOption

app = new_app("The whole pipeline on the embedded model, small.")

_BEFORE = """\
This is Habitus at work on real models: two personas talk with an assistant, a verifier reads the
sessions, the model under test answers in four settings, an evaluator checks its answers.

The embedded model (SmolLM2, 135 million parameters) is far too small for its numbers to mean
anything: its verdicts are close to chance. It shows the machinery. For a real model change the one
line under `models:` of experiments/demo.yaml, or set it here, for example

  habitus demo --set 'models.main={backend: openai, model: NAME, base_url: "http://127.0.0.1:8000/v1"}'
"""
_AFTER = """\
The numbers above come from a model that is too small to judge: do not quote them.
They stay in {out}: try
  habitus results {out} --by persona
  habitus results {out} --filter
  habitus status {out}"""


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
    from habitus.experiments import RunRequest, resolve

    print_text(_BEFORE)
    study = resolve(experiment_path("demo"), read_changes(changes or []))
    observer = None if quiet else Watching(study)
    request = RunRequest(out=out)
    again = command_line("habitus", "demo", out=out, set=changes)
    code = run_and_tell(study, request, observer, show=True, again=again)
    talk("")
    print_text(_AFTER.format(out=out))
    return code
