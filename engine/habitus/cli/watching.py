"""Showing a small run as it happens: who says what, what the verifier sees, how answers fare."""

from __future__ import annotations

import textwrap
from collections.abc import Mapping
from typing import Any

from habitus.content.visible import safe_text
from habitus.experiments import Study
from habitus.models import Recorded
from habitus.records import (
    Attempt,
    Evaluation,
    History,
    Outcome,
    Recommendation,
    Response,
    StageRecord,
)
from habitus.store import RunDir

_WIDTH = 96


class Watching:
    """Prints every record of a run for a person to read along."""

    def __init__(self, study: Study) -> None:
        from rich.console import Console

        self._study = study
        self._console = Console(markup=False, emoji=False, highlight=False, soft_wrap=True)
        self._queries = {query.id: query.text for query in study.queries}
        self._asked: set[str] = set()
        self._show: Mapping[type[StageRecord], Any] = {
            Attempt: self._attempt,
            History: self._history,
            Recommendation: self._recommendation,
            Response: self._response,
            Evaluation: self._evaluation,
        }

    def begin(self, run: RunDir, models: Mapping[str, Recorded]) -> None:
        """Say where it is kept."""
        self._line(f"writing to {run.path}; models: {', '.join(models)}", "dim")

    def put(self, table: str, record: StageRecord) -> None:  # noqa: ARG002  (an observer's door)
        """Show a record."""
        show = self._show.get(type(record))
        if show is not None:
            show(record)

    def end(self) -> None:
        """Leave a blank line before the table."""
        self._console.print("")

    def _attempt(self, attempt: Attempt) -> None:
        self._head(f"Session {attempt.id} ({attempt.kind}, {attempt.end})")
        for turn in attempt.turns:
            style = "bold cyan" if turn.speaker == "persona" else "bold green"
            self._text(f"{turn.speaker:>9}: ", turn.text, style)
        check = attempt.check
        if check is None or check.outcome is not Outcome.OK:
            self._line(f"  not checked: {check.reason if check else attempt.reason}", "yellow")
            return
        words = {1: "keeps to it", -1: "rejects it", 0: "cannot tell"}
        for norm in check.norms:
            self._line(
                f"  verifier on {norm.norm}: {words[norm.stance]}. {norm.explanation}", "dim"
            )

    def _history(self, history: History) -> None:
        shown = ", ".join(history.shown) or "none"
        self._line(f"History of {history.id} is ready; norms it shows: {shown}", "bold")

    def _recommendation(self, found: Recommendation) -> None:
        self._text(f"Item {found.id}: ", found.text or f"({found.outcome})", "magenta")

    def _response(self, response: Response) -> None:
        if response.query not in self._asked:
            self._asked.add(response.query)
            self._text(f"Query {response.query}: ", self._queries[response.query], "bold")
        self._head(f"Answer {response.id}")
        self._text("", response.text or f"({response.outcome}: {response.reason})", "")

    def _evaluation(self, found: Evaluation) -> None:
        words = {True: "met", False: "not met", None: "no verdict"}
        marks = ", ".join(
            f"{v.norm} {'follow' if v.state > 0 else 'avoid'}: {words[v.satisfied]}"
            for v in found.verdicts
        )
        self._line(f"  {found.id}: {marks}", "dim")

    def _head(self, text: str) -> None:
        self._console.print("")
        self._line(text, "bold underline")

    def _text(self, label: str, text: str, style: str) -> None:
        from rich.text import Text

        body = textwrap.fill(safe_text(text), _WIDTH, initial_indent="", subsequent_indent="    ")
        self._console.print(Text(label, style=style) + Text(body))

    def _line(self, text: str, style: str) -> None:
        from rich.text import Text

        self._console.print(Text(safe_text(text), style=style))
