"""A persona that does not stay one: it speaks as the assistant, writes both sides, or steps out.

    role_breaks(turns)      # ("speaks as the assistant: as an ai language model",)

Found by words, in the persona's turns after the opener, which is the engine's. It is counted and
shown, and rejects no attempt: words can mislead ("as an AI teacher, I ..."), and the published filter
knows no such rule. The module knows no model and no persona.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping

from habitus.records import Turn

ASSISTANT, BOTH_SIDES, OUT_OF_ROLE = (
    "speaks as the assistant",
    "writes both sides",
    "steps out of the role",
)
_MODEL = r"(?:an? )?(?:ai|a\.i\.|artificial intelligence|(?:large )?language model|chatbot)\b"
_WORDS: Mapping[str, re.Pattern[str]] = {
    ASSISTANT: re.compile(
        rf"\b(?:as|i am|i'm) {_MODEL}"
        r"|\b(?:as|i am|i'm) your (?:(?:ai|virtual|digital) )?assistant\b"
        r"|\bhow (?:can|may) i (?:help|assist) you\b"
        r"|\bis there anything else (?:i can|you(?:'d| would) like)\b"
        r"|\bi(?:'m| am) (?:here|happy|glad) to (?:help|assist) you\b",
        re.IGNORECASE,
    ),
    BOTH_SIDES: re.compile(
        r"^[ \t]*(?:\*\*|#{1,4}[ \t]*|\[)?(?:persona|user|human|assistant|ai|ai assistant|chatbot)"
        r"(?:\*\*|\])?[ \t]*:",
        re.IGNORECASE | re.MULTILINE,
    ),
    OUT_OF_ROLE: re.compile(
        r"\b(?:stay(?:ing)?|keep(?:ing)?|remain(?:ing)?|break(?:ing)?) (?:in |out of )?character\b"
        r"|\b(?:the|this|my) persona\b|\brole-?play(?:ing)?\b|\bthe character i(?:'m| am)\b"
        r"|[(\[]\s*(?:ooc|out of character)\b",
        re.IGNORECASE,
    ),
}
_LONGEST = 60


def role_breaks(turns: Iterable[Turn]) -> tuple[str, ...]:
    """How the persona left its role, each kind once with the words that show it first."""
    spoken = [turn.text.replace("\u2019", "'") for turn in turns if turn.speaker == "persona"][1:]
    found = []
    for kind, words in _WORDS.items():
        match = next((m for text in spoken if (m := words.search(text))), None)
        if match is not None:
            found.append(f"{kind}: {' '.join(match[0].lower().split())[:_LONGEST]}")
    return tuple(found)
