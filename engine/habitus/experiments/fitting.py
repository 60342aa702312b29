"""Whether a history fits into what a target can read, and what of it is shown if it does not.

All questions that begin with the same history are one group: they are shown the same sessions, so that
settings and queries stay comparable, and the server's cache stays warm. What the group needs (the
longest query, the settings' prompts, room for the answers) is estimated from the texts; the answer to the
first question, which is asked alone, corrects the estimate by the server's own count, and a context length
that the server names corrects the entry's. Everything decided here follows from texts and stored answers,
never from time or order: a run that goes on decides as it did before.

``refuse`` asks nothing that does not fit; ``drop_oldest`` leaves whole sessions out, the oldest first and
never the last one, the query or the norms. Without a known context length everything is sent, and the server
says whether it fits.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Literal

from habitus.checklists import Query
from habitus.experiments.settings import Setting
from habitus.models.context import LEAST_ANSWER, TokenEstimate, stated_length
from habitus.records import Attempt, Message, Outcome, Prefix, Reply, Request

Overflow = Literal["refuse", "drop_oldest"]


@dataclass(frozen=True, slots=True)
class Window:
    """What is known of a target ahead.

    ``context_length`` is in tokens, None where it is not known; ``answer`` the most tokens of an
    answer, None where nothing limits it.
    """

    context_length: int | None = None
    answer: int | None = None
    overflow: Overflow = "refuse"


@dataclass
class Fitting:
    """What the questions of one group are shown. ``dropped`` counts sessions left out.

    Args:
        window: what is known of the target.
        settings: the settings of the group; they show the same before the query.
        queries: the queries of the group.
        sessions: the persona's sessions, in order.
        norms: the text of the persona's norms.
    """

    window: Window
    settings: Sequence[Setting]
    queries: Sequence[Query]
    sessions: Sequence[Attempt] = ()
    norms: str = ""
    dropped: int = 0
    refused: bool = False
    _length: int | None = field(init=False)
    _estimate: TokenEstimate = field(init=False, default=TokenEstimate())
    _settled: bool = field(init=False, default=False)
    _prefixes: dict[tuple[str, int], Prefix | None] = field(init=False, default_factory=dict)

    _last: dict[str, list[Message]] = field(init=False, default_factory=dict)

    def __post_init__(self) -> None:
        self._length = self.window.context_length
        self._decide()

    @property
    def foreseen(self) -> str:
        """The reason of a question that is not asked."""
        return f"foreseen: does not fit into {self._length:,} tokens"

    def prefix(self, setting: Setting, dropped: int) -> Prefix | None:
        """What a setting shows before the query, without the oldest sessions."""
        key = (setting.id, dropped)
        if key not in self._prefixes:
            shown = self.sessions[dropped:] if setting.uses_history else ()
            self._prefixes[key] = setting.prefix(shown, self.norms)
        return self._prefixes[key]

    def numbers(self, setting: Setting, dropped: int) -> tuple[int, ...]:
        """The numbers of the sessions that are left out."""
        return tuple(s.number for s in self.sessions[:dropped]) if setting.uses_history else ()

    def after(self, dropped: int, request: Request, reply: Reply) -> int | None:
        """What an answer says of the fit: how many sessions to leave out instead, None to take it.

        The first answer of a group decides for all others. It is asked for alone; later ones
        change nothing, so that nothing depends on their order.
        """
        over = reply.outcome is Outcome.OVERFLOW
        stated = stated_length(reply.raw) if over else None
        length = min(filter(None, (self._length, stated)), default=None)
        fewer = None
        if over and self.window.overflow == "drop_oldest":
            fewer = self._fewest(dropped + 1, length)
        if fewer is None and not self._settled:
            self._settle(dropped, request, reply, length)
        return fewer

    def _settle(self, dropped: int, request: Request, reply: Reply, length: int | None) -> None:
        self._settled = True
        self._length = length
        self.dropped = dropped
        if reply.usage.prompt is not None:
            measured = TokenEstimate.measured(request.all_messages, reply.usage.prompt)
            self._estimate = measured or self._estimate
        self._decide()

    def _decide(self) -> None:
        """Leave out what the estimate says must be; never put back what was left out."""
        if self._fits(self.dropped, self._length):
            return
        found = None
        if self.window.overflow == "drop_oldest":
            found = self._fewest(self.dropped + 1, self._length)
            if found is not None and not self._fits(found, self._length):
                found = None
        self.refused = found is None
        self.dropped = self.dropped if found is None else found

    def _fewest(self, least: int, length: int | None) -> int | None:
        """The fewest sessions to leave out, of at least so many; the last session always stays."""
        choices = range(least, len(self.sessions))
        return next((n for n in choices if self._fits(n, length)), max(choices, default=None))

    def _fits(self, dropped: int, length: int | None) -> bool:
        return length is None or all(self._need(s, dropped) <= length for s in self.settings)

    def _need(self, setting: Setting, dropped: int) -> int:
        """Tokens of the longest question of a setting with its answers."""
        prefix = self.prefix(setting, dropped)
        before = self._estimate.tokens(prefix.messages) if prefix else 0
        answers = 2 if setting.file.follow_up else 1  # the first one is shown with the follow-up
        room = answers * (self.window.answer or LEAST_ANSWER)
        return before + self._estimate.tokens(self._longest(setting)) + room

    def _longest(self, setting: Setting) -> list[Message]:
        if setting.id not in self._last:
            messages = [setting.last_message(query.text) for query in self.queries]
            size = TokenEstimate()
            self._last[setting.id] = [max(messages, key=lambda message: size.tokens([message]))]
        return self._last[setting.id]
