"""Showing a small run as it happens: who says what, what the verifier sees, how answers fare."""

from __future__ import annotations

import textwrap
from collections.abc import Mapping
from typing import Any

from habitus.cli.output import text_width
from habitus.content.visible import safe_text
from habitus.experiments import Study
from habitus.models import Recorded
from habitus.records import (
    Attempt,
    Evaluation,
    History,
    Label,
    NormState,
    Outcome,
    Recommendation,
    Response,
    StageRecord,
)
from habitus.store import RunDir

_PERSONA, _ASSISTANT, _PLAIN, _QUIET = "bold cyan", "bold green", "", "dim"
_DOES: Mapping[NormState, str] = {1: "follows", 0: "has no stance on", -1: "rejects"}
_SEEN: Mapping[NormState, str] = {1: "keeps to it", 0: "cannot tell", -1: "rejects it"}
_MET: Mapping[bool | None, str] = {True: "met", False: "not met", None: "no verdict"}
_PARTS: Mapping[type[StageRecord], tuple[str, str]] = {
    Attempt: (
        "1 of 5  Conversations",
        "Persona and assistant take turns; a verifier, not told what the persona holds, reads them.",
    ),
    Recommendation: (
        "2 of 5  Checklists",
        "For each question: what a good answer does for somebody who follows, or rejects, a norm.",
    ),
    Response: (
        "3 of 5  Answers",
        "The model under test answers each question in each setting.",
    ),
    Evaluation: (
        "4 of 5  Verdicts",
        "An evaluator reads one answer and the persona's checklist, nothing else.",
    ),
    Label: (
        "5 of 5  Framing",
        "Judges read each answer alone: from where it is written, and whether it generalizes.",
    ),
}


class Watching:
    """Prints every record of a run, once, for a person to read along."""

    def __init__(self, study: Study) -> None:
        self._study = study
        self._console = _console()
        self._queries = {query.id: query.text for query in study.queries}
        self._shown: set[tuple[str, str]] = set()
        self._show: Mapping[type[StageRecord], Any] = {
            Attempt: self._attempt,
            History: self._history,
            Recommendation: self._recommendation,
            Response: self._response,
            Evaluation: self._evaluation,
            Label: self._label,
        }

    def begin(self, run: RunDir, models: Mapping[str, Recorded]) -> None:
        """Say who takes part and where it is kept."""
        if self._first("begin", ""):
            self._text("", f"Everything is kept in {run.path}. Models: {', '.join(models)}.")
            self._cast()

    def put(self, table: str, record: StageRecord) -> None:
        """Show a record."""
        show = self._show.get(type(record))
        if show is None or not self._first(table, record.id):
            return
        if type(record) in _PARTS and self._first("part", type(record).__name__):
            self._part(*_PARTS[type(record)])
        show(record)

    def end(self) -> None:
        """Nothing to tidy up."""

    def _first(self, kind: str, name: str) -> bool:
        known = (kind, name) in self._shown
        self._shown.add((kind, name))
        return not known

    def _cast(self) -> None:
        """Whom the conversations are with, and the norms that matter in them."""
        self._head("Personas")
        for portrait in self._study.portraits:
            self._text("", f"{portrait.id} of the culture {portrait.culture}", style="bold")
            for norm, state in portrait.states.items():
                self._text(f"  {_DOES[state]} {norm}: ", portrait.statements[norm], _QUIET)
        self._console.print("")
        self._text("", "Now they talk. A session is shown when it has ended.")

    def _part(self, title: str, about: str) -> None:
        self._console.print("")
        self._line(f"── {title} ".ljust(text_width(), "─"), "bold yellow")
        self._text("", about)

    def _attempt(self, attempt: Attempt) -> None:
        self._head(f"Session {attempt.id}, {attempt.kind}")
        for turn in attempt.turns:
            style = _PERSONA if turn.speaker == "persona" else _ASSISTANT
            self._text(f"{turn.speaker:>9}: ", turn.text, style)
        check = attempt.check
        if check is None or check.outcome is not Outcome.OK:
            reason = check.reason if check else attempt.reason
            self._text(" verifier: ", f"not checked: {reason}", "yellow")
            return
        for norm in check.norms:
            told = f"{norm.norm}: {_SEEN[norm.stance]}. {norm.explanation}"
            self._text(" verifier: ", told, _QUIET)

    def _history(self, history: History) -> None:
        shown = ", ".join(history.shown) or "none"
        self._text("", f"History of {history.id} is ready. Norms it shows: {shown}", style="bold")

    def _recommendation(self, found: Recommendation) -> None:
        self._ask(found.query)
        does = "follows" if found.state > 0 else "rejects"
        label = f"  {found.query}, {does} {found.norm}: "
        self._text(label, found.text or f"({found.outcome}: {found.reason})", "magenta")

    def _response(self, response: Response) -> None:
        self._ask(response.query)
        whose = "for all" if response.persona == "-" else f"for {response.persona}"
        self._head(f"Answer to {response.query}, {response.setting}, {whose}")
        self._text("", response.text or f"({response.outcome}: {response.reason})")

    def _ask(self, query: str) -> None:
        if self._first("query", query):
            self._head(f"Question {query}")
            self._text("", self._queries[query], style="bold")

    def _evaluation(self, found: Evaluation) -> None:
        marks = [f"{_DOES[v.state]} {v.norm}: {_MET[v.satisfied]}" for v in found.verdicts]
        told = "; ".join(marks) or f"({found.outcome}: {found.reason})"
        self._text(f"  {found.setting:<6}{found.query}  {found.persona}  ", told, _QUIET)

    def _label(self, label: Label) -> None:
        """What a judge says of an answer."""
        _, setting, persona, query, _ = label.item.split("/")
        told = f"{label.label}. {label.reasoning}" if label.label else f"({label.reason})"
        who = "all" if persona == "-" else persona
        self._text(f"  {label.judge}  {setting:<6}{query}  {who}  ", told, _QUIET)

    def _head(self, text: str) -> None:
        self._console.print("")
        self._line(text, "bold underline")

    def _text(self, label: str, text: str, label_style: str = "", style: str = _PLAIN) -> None:
        """A label and a text, broken between words and set in under the label."""
        from rich.text import Text

        indent = " " * min(len(label), 11)
        lines = textwrap.wrap(label + safe_text(text), text_width(), subsequent_indent=indent)
        told = Text("\n".join(lines), style=style)
        told.stylize(label_style, 0, len(label))
        self._console.print(told)

    def _line(self, text: str, style: str) -> None:
        from rich.text import Text

        self._console.print(Text(safe_text(text), style=style))


def _console() -> Any:
    from rich.console import Console

    class Pipe(Console):
        """A console that lets a closed pipe be seen: rich itself would leave the program."""

        def on_broken_pipe(self) -> None:
            raise BrokenPipeError

    return Pipe(markup=False, emoji=False, highlight=False, soft_wrap=True)
