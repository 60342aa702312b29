"""Settings: what a target gets to see beside the query.

A setting is a file. ``history: messages`` gives the persona's sessions as chat messages (persona
turns as user, assistant turns as assistant, in order, a short separator at each session's
start); ``history: transcript`` gives them as one fenced text. The history is the same for all
queries and settings and stands first; what a setting adds comes after it. The query is always
in the last user message.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Literal

from pydantic import Field

from habitus.content import ContentModel, Found, Prompt, fence, find, load, read_prompt
from habitus.records import Attempt, Message, Prefix

_NEW_SESSION = "(new conversation)"


class SettingFile(ContentModel):
    """``experiments/settings/<id>.yaml``."""

    id: Annotated[str, Field(pattern=r"^[a-z0-9][a-z0-9_-]*$")]
    description: str = ""
    history: Literal["none", "messages", "transcript"] = "none"
    norms: bool = Field(default=False, description="spell the persona's norms out")
    separator: str = Field(default=_NEW_SESSION, description="opens each session of the history")
    system_prompt: str | None = Field(default=None, description="file; placeholder norms if norms")
    query_prompt: str | None = Field(
        default=None, description="file; placeholders query, and answer_after if that is set"
    )
    answer_after: str | None = Field(
        default=None, description="the answer begins below the last line that says this"
    )
    follow_up: str | None = Field(
        default=None,
        description="asked in a further turn when that line is missing; its reply is the answer",
    )


@dataclass(frozen=True, slots=True)
class Setting:
    """A setting with its prompts."""

    file: SettingFile
    system: Prompt | None
    query: Prompt | None

    @property
    def id(self) -> str:
        """Name of the setting."""
        return self.file.id

    @property
    def uses_history(self) -> bool:
        """Whether the persona's sessions are shown."""
        return self.file.history != "none"

    @property
    def uses_persona(self) -> bool:
        """Whether a response can depend on the persona at all."""
        return self.uses_history or self.file.norms

    def prefix(self, sessions: Sequence[Attempt], norms: str) -> Prefix | None:
        """What stands before the query for every query of a persona."""
        parts = [*self._system(norms), *self._history(sessions)]
        return Prefix(tuple(parts)) if parts else None

    def last_message(self, query: str) -> Message:
        """The message with the query."""
        text = query
        if self.query:
            values = {"query": query}
            if self.file.answer_after:
                values["answer_after"] = self.file.answer_after
            text = self.query.text(values)
        if self.file.history == "messages":
            text = f"{self.file.separator}\n\n{text}"
        return Message("user", text)

    def _system(self, norms: str) -> Iterator[Message]:
        if self.system:
            yield Message("system", self.system.text({"norms": norms} if self.file.norms else {}))

    def _history(self, sessions: Sequence[Attempt]) -> Iterator[Message]:
        if self.file.history == "messages":
            for session in sessions:
                yield from _as_messages(session, self.file.separator)
        elif self.file.history == "transcript":
            yield Message("user", fence("\n\n".join(map(_as_text, sessions))))


def split_answer(text: str, marker: str) -> tuple[str, str] | None:
    """(working, answer) of a reply, cut at the last line that says the marker; None without one.

    A marker inside a line is no marker: the model may speak of it in its reasoning.
    """
    lines = text.splitlines(keepends=True)
    plain = marker.strip().rstrip(":").casefold()
    for index in range(len(lines) - 1, -1, -1):
        head, _, tail = lines[index].partition(":")
        if head.strip(" \t*#_").casefold() == plain:
            answer = (tail.strip(" \t*_\r\n") + "\n" + "".join(lines[index + 1 :])).strip()
            return "".join(lines[:index]).strip(), answer
    return None


def load_setting(path: Path) -> Setting:
    """Read a setting and the prompts beside it."""
    file = load(path, SettingFile, check_setting)
    system = query = None
    if file.system_prompt:
        names = {"norms"} if file.norms else set[str]()
        place = path.with_name(file.system_prompt)
        system = read_prompt(place, names, single="the system prompt")
    if file.query_prompt:
        names = {"query", "answer_after"} if file.answer_after else {"query"}
        place = path.with_name(file.query_prompt)
        query = read_prompt(place, names, single="the last message")
    return Setting(file, system, query)


def find_setting(name: str, workspace: Path | None = None) -> Setting:
    """The setting of an id, workspace first."""
    return load_setting(find("experiments", f"settings/{name}.yaml", workspace))


def check_setting(setting: SettingFile) -> Iterator[Found]:
    """Problems that the types do not show."""
    if setting.norms and not setting.system_prompt:
        yield Found(("norms",), "norms: true needs a system_prompt that has {{norms}}")
    if setting.answer_after and not setting.query_prompt:
        yield Found(("answer_after",), "answer_after needs a query_prompt that asks for the line")
    if setting.follow_up and not setting.answer_after:
        yield Found(("follow_up",), "follow_up needs answer_after: without it nothing is missing")


def _as_messages(session: Attempt, separator: str) -> Iterator[Message]:
    for index, turn in enumerate(session.turns):
        text = f"{separator}\n\n{turn.text}" if index == 0 else turn.text
        yield Message("user" if turn.speaker == "persona" else "assistant", text)


def _as_text(session: Attempt) -> str:
    names = {"persona": "USER", "assistant": "ASSISTANT"}
    return "\n".join(f"{names[turn.speaker]}: {turn.text}" for turn in session.turns)
