"""An agent: a role, a system prompt, a model, and a memory of its own side only.

What the agent said stands in its memory as ``assistant``, what it heard as ``user``. Reasoning
and markers of the other side never get in: only the visible text is heard.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from habitus.models import ChatModel
from habitus.records import Message, Prefix, Reply, Request, Sampling, derive_seed


@dataclass(slots=True)
class Agent:
    """One side of a conversation.

    Args:
        role: what the agent is called in records and in the context of its calls.
        model: who speaks for it.
        system: what stands before everything it says and hears; shared between sessions.
        sampling: how its turns are drawn.
        seed: the seed of the experiment, from which the seed of each turn is derived.
    """

    role: str
    model: ChatModel
    system: Prefix
    sampling: Sampling
    seed: int = 0
    memory: list[Message] = field(default_factory=list)

    def hear(self, text: str) -> None:
        """Remember what the other side said."""
        self.memory.append(Message("user", text))

    def say(self, text: str) -> None:
        """Remember an own turn, whoever chose its words."""
        self.memory.append(Message("assistant", text))

    async def speak(self, record: str, attempt: int = 0, retry: int = 0, **context: Any) -> Reply:
        """Ask the model for the next turn; the caller decides what of it is said.

        ``record`` names the turn; ``attempt`` is the attempt at the session and ``retry`` the
        attempt at this turn. All three enter the seed.
        """
        request = Request(
            messages=tuple(self.memory),
            prefix=self.system,
            sampling=self.sampling,
            seed=derive_seed(self.seed, f"turn/{self.role}", record, attempt, retry),
            attempt=attempt,
            stage="histories",
            record=record,
            context={"role": self.role, **context},
        )
        return await self.model.complete(request)
