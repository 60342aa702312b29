"""Settings: what a target gets to see beside the query.

A setting is a file. ``history: messages`` gives the persona's sessions as chat messages (persona
turns as user, assistant turns as assistant, in order, a short separator at each session's
start); ``history: transcript`` gives them as one fenced text. The history is the same for all
queries and settings and stands first; what a setting adds comes after it. The query is always
in the last user message.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Literal

from pydantic import Field

from habitus.content import ContentModel, Found, Prompt, fence, load, read_prompt
from habitus.content.fields import Line, Slug
from habitus.content.places import beside, is_file
from habitus.records import Attempt, Message, Prefix

_NEW_SESSION = "(new conversation)"
PromptName = Annotated[str, Field(pattern=r"^[^/\\]+\.md$")]


class SettingFile(ContentModel):
    """``experiments/settings/<id>.yaml``."""

    id: Slug = Field(description="also the name of the file")
    description: str = ""
    history: Literal["none", "messages", "transcript"] = "none"
    norms: bool = Field(default=False, description="spell the persona's norms out")
    separator: Line = Field(default=_NEW_SESSION, description="opens each session of the history")
    system_prompt: PromptName | None = Field(
        default=None, description="a file beside this one; placeholder norms if norms"
    )
    query_prompt: PromptName | None = Field(
        default=None,
        description="a file beside this one; placeholders query, and answer_after if that is set",
    )
    answer_after: Line | None = Field(
        default=None, description="the answer begins below the last line that says this"
    )
    follow_up: Line | None = Field(
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
        if self.uses_history:
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
            texts = [_as_text(session, self.file.separator) for session in sessions]
            yield Message("user", fence("\n\n".join(texts)))


def split_answer(text: str, marker: str) -> tuple[str, str] | None:
    """(working, answer) of a reply, cut at the last line that says the marker; None without one.

    The marker may be emphasised, stand in a heading or lack its colon, and the answer may begin
    behind the colon. A marker inside a line is no marker: the model may speak of it in its
    reasoning.
    """
    words = r"[ \t]+".join(map(re.escape, marker.strip().rstrip(":").split()))
    line = re.compile(
        rf"^[ \t]*(?:#{{1,6}}[ \t]+)?(?P<mark>[*_]{{0,3}}){words}[ \t]*"
        r"(?:(?P=mark)[ \t]*(?::[ \t]*|\r?$)|:[ \t]*(?P=mark)?[ \t]*)",
        re.IGNORECASE | re.MULTILINE,
    )
    found = list(line.finditer(text))
    if not found:
        return None
    return text[: found[-1].start()].strip(), text[found[-1].end() :].strip()


def load_setting(path: Path) -> Setting:
    """Read a setting and the prompts beside it.

    Raises:
        ContentError: every problem of the file, or else of its prompts, with its place.
    """
    file = load(path, SettingFile, lambda setting: check_setting(setting, path))
    system = query = None
    if file.system_prompt:
        names = {"norms"} if file.norms else set[str]()
        place = beside(path, file.system_prompt)
        system = read_prompt(place, names, single="the system prompt")
    if file.query_prompt:
        names = {"query", "answer_after"} if file.answer_after else {"query"}
        place = beside(path, file.query_prompt)
        query = read_prompt(place, names, single="the last message")
    return Setting(file, system, query)


def check_setting(setting: SettingFile, path: Path) -> Iterator[Found]:
    """Problems that the types do not show."""
    if path.stem != setting.id:
        what = f"the id is {setting.id!r}, but the file is called {path.name}"
        yield Found(("id",), what, f"rename the file to {setting.id}.yaml, or change the id")
    if setting.norms and not setting.system_prompt:
        yield Found(("norms",), "norms: true needs a system_prompt that has {{norms}}")
    if setting.answer_after and not setting.query_prompt:
        yield Found(("answer_after",), "answer_after needs a query_prompt that asks for the line")
    if setting.follow_up and not setting.answer_after:
        yield Found(("follow_up",), "follow_up needs answer_after: without it nothing is missing")
    for key in ("system_prompt", "query_prompt"):
        name = getattr(setting, key)
        if name and not is_file(path.with_name(name)):
            yield Found((key,), f"there is no file {name} beside this one")


def _as_messages(session: Attempt, separator: str) -> Iterator[Message]:
    for index, turn in enumerate(session.turns):
        text = f"{separator}\n\n{turn.text}" if index == 0 else turn.text
        yield Message("user" if turn.speaker == "persona" else "assistant", text)


def _as_text(session: Attempt, separator: str) -> str:
    names = {"persona": "USER", "assistant": "ASSISTANT"}
    turns = "\n\n".join(f"{names[turn.speaker]}: {turn.text}" for turn in session.turns)
    return f"{separator}\n\n{turns}"
