"""``habitus demo``: the whole pipeline on the embedded model, small, before one's eyes."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from habitus.cli.output import print_text, program, talk
from habitus.cli.root import new_app
from habitus.cli.run import SetOption

if TYPE_CHECKING:
    from habitus.experiments import Study
    from habitus.labelling import LabellingJob

app = new_app("The whole pipeline on the embedded model, small.")

_BEFORE = """\
This is Habitus at work on real models: two personas talk with an assistant, a verifier reads the
sessions, the model under test answers in four settings, an evaluator checks its answers, and two
judges label how they are framed.

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
They stay in {out}, the conversations in {out}/records/attempts.jsonl, what the judges say in
{labels}/records/labels.jsonl. Try
  {program} results {out} --by persona
  {program} results {out} --filter
  {program} status {out}
  {program} report {out} --labels {labels}
and, with a model of your own, `{program} new study`."""


@app.command()
def demo(
    out: Annotated[Path, typer.Option("--out", help="Run directory.")] = Path("runs/demo"),
    changes: SetOption = None,
    quiet: Annotated[bool, typer.Option("--quiet", help="Do not show the conversations.")] = False,
) -> int:
    """Run the demo experiment and show what happens; the same command goes on with it."""
    from habitus.cli.finding import experiment_path, read_changes
    from habitus.cli.judge import print_framing
    from habitus.cli.running import command_words, interruptible, print_results, run_and_tell
    from habitus.cli.watching import Watching
    from habitus.experiments import RunRequest, Stage, resolve
    from habitus.running import JobRequest, run_job

    path = experiment_path("demo")
    print_text(_BEFORE.format(path=path, program=program()))
    study = resolve(path, read_changes(changes or []))
    observer = None if quiet else Watching(study)
    again = command_words(program(), "demo", out=out, set=changes)
    # One stage after the other, where `run` lets them overlap: a person can follow that.
    before = () if quiet else (Stage.HISTORIES, Stage.CHECKLISTS, Stage.RESPONSES)
    request = RunRequest(out=out)
    code = run_and_tell(study, request, observer, show=False, again=again, before=before)
    labels = out.parent / f"{out.name or 'demo'}-labels"
    with interruptible(shlex.join(again)):
        run_job(_framing(study, out), JobRequest(out=labels), observer)
        print_results(request)
        print_framing(labels)
    talk("")
    print_text(_AFTER.format(out=out, labels=labels, program=program()))
    return code


def _framing(study: Study, run: Path) -> LabellingJob:
    """Positioning and generalizing of every response, judged by the model that evaluates."""
    from habitus.judges import choose
    from habitus.labelling import LabellingJob, Manner, make_tasks, open_source

    name = study.experiment.roles.evaluator.model
    # So small a model never writes the sentinels of the published form.
    manner = Manner(form="json", max_tokens=100)
    tasks = make_tasks(choose(["positioning", "generalizing"]), {}, name, manner)
    models = {name: study.experiment.models[name]}
    return LabellingJob(open_source(run), tasks, models, study.experiment.seed)
