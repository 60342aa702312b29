"""A conversation between two agents, turn by turn.

The engine speaks the opener for the persona, word for word; then assistant and persona
alternate. An exchange is one persona turn with the assistant turn that answers it, so a session
of ``n`` exchanges has ``2 n`` turns and ``2 n - 1`` model calls. Every session ends for one
stated reason:

    complete      all exchanges were spoken
    persona_stop  the persona ended it with the stop marker; what stands before the marker is said
    farewell      both sides only said goodbye
    repetition    one side said its last turn again, or went round in two or three
    empty_turn    a side had nothing to say, twice
    failed        a call had no usable answer; its outcome is kept

Once the persona has stopped, the reason stays ``persona_stop``, whatever words the assistant
takes its leave with.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from habitus.agents.agent import Agent
from habitus.agents.endings import Goodbyes, StopMarker, goes_round, is_blank
from habitus.records import Failure, Outcome, Reply, Turn


@dataclass(frozen=True, slots=True)
class Rules:
    """When a conversation ends.

    Args:
        exchanges: hard limit; one exchange is a persona turn and its answer.
        stop: marker by which the persona ends the session, in any case and spacing. In the
            assistant's text it is text, and in the persona's where it is quoted and more follows.
        answer_after_stop: whether the assistant still answers a last message that had words.
        goodbyes: the words of leave-taking that end talk when both sides say nothing else.
    """

    exchanges: int
    stop: str = "[END]"
    answer_after_stop: bool = True
    goodbyes: Goodbyes = field(default_factory=Goodbyes)


@dataclass(slots=True)
class Dialogue:
    """What was said, why it ended, and the keys of the calls behind it."""

    turns: list[Turn] = field(default_factory=list)
    end: str = ""
    failure: Failure | None = None
    calls: list[str] = field(default_factory=list)


class Conversation:
    """Two agents and the rules of their talk; one object holds one session."""

    def __init__(self, persona: Agent, assistant: Agent, rules: Rules) -> None:
        self.persona = persona
        self.assistant = assistant
        self.rules = rules
        self._dialogue = Dialogue()
        self._marker = StopMarker(rules.stop)
        self._stopping = False

    async def run(self, opener: str, record: str, attempt: int = 0) -> Dialogue:
        """Hold the session that begins with ``opener``; ``record`` names it in its calls."""
        self._add(self.persona, opener)
        for speaker in self._order():
            end = await self._turn(speaker, record, attempt)
            if end:
                self._dialogue.end = end
                break
        else:
            self._dialogue.end = "persona_stop" if self._stopping else "complete"
        return self._dialogue

    def _order(self) -> Iterator[Agent]:
        """The speakers after the opener; ends early once the persona has stopped."""
        yield self.assistant
        for _ in range(self.rules.exchanges - 1):
            yield self.persona
            if not self._stopping or self.rules.answer_after_stop:
                yield self.assistant
            if self._stopping:
                return

    async def _turn(self, speaker: Agent, record: str, attempt: int) -> str:
        """One turn; the reason to end after it, or an empty text."""
        name = f"{record}/t{len(self._dialogue.turns) + 1:02d}"
        for retry in (0, 1):
            reply = await speaker.speak(name, attempt, retry)
            self._dialogue.calls.append(reply.key.hex())
            text, stopped = self._visible(speaker, reply)
            empty = _may_be_empty(reply) and not text and not stopped
            if not empty:
                break
        if not reply.ok and not empty:
            self._dialogue.failure = reply.failure
            return "failed"
        return self._take(speaker, text, stopped=stopped)

    def _visible(self, speaker: Agent, reply: Reply) -> tuple[str, bool]:
        """The words of a reply, and whether the persona's stop marker stood behind them."""
        text, stopped = reply.text.strip(), False
        if speaker is self.persona:
            text, stopped = self._marker.split(text)
        return "" if is_blank(text) else text, stopped

    def _take(self, speaker: Agent, text: str, *, stopped: bool) -> str:
        self._stopping = self._stopping or stopped
        if stopped and not text:
            return "persona_stop"
        if not text:
            self._dialogue.failure = Failure(Outcome.UNPARSED, "empty turn twice")
            return "empty_turn"
        self._add(speaker, text)
        if self._stopping:
            return ""
        if goes_round(self._own_turns()):
            return "repetition"
        return "farewell" if self._only_farewells() else ""

    def _add(self, speaker: Agent, text: str) -> None:
        other = self.assistant if speaker is self.persona else self.persona
        speaker.say(text)
        other.hear(text)
        side = "persona" if speaker is self.persona else "assistant"
        self._dialogue.turns.append(Turn.model_validate({"speaker": side, "text": text}))

    def _own_turns(self) -> list[str]:
        """All turns of the side that spoke last."""
        return [turn.text for turn in self._dialogue.turns[::-1][::2]][::-1]

    def _only_farewells(self) -> bool:
        last = self._dialogue.turns[-2:]
        both = len(self._dialogue.turns) > 2 and last[-1].speaker == "assistant"
        return both and all(self.rules.goodbyes.closes(turn.text) for turn in last)


def _may_be_empty(reply: Reply) -> bool:
    """Whether a reply without visible words is an empty turn, and no failed call.

    A model that thought, stopped of itself and said nothing had nothing to say; one that was cut while
    it thought was cut.
    """
    if reply.outcome is Outcome.TRUNCATED:
        return reply.reason == "only reasoning"
    return reply.ok or (reply.outcome is Outcome.UNPARSED and reply.reason == "empty")
