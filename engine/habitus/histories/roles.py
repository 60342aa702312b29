"""A persona that does not stay one: it speaks as the assistant, writes both sides, or steps out.

    role_breaks(turns)      # ("speaks as the assistant: as an ai language model",)

Found by words, in the persona's turns after the opener, which is the engine's. It is counted and
shown, and rejects no attempt: words can mislead ("as an AI teacher, I ..."), and the published filter
knows no such rule. The module knows no model and no persona.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping

from habitus.agents import SIDES
from habitus.records import Turn

ASSISTANT, BOTH_SIDES, OUT_OF_ROLE = (
    "speaks as the assistant",
    "writes both sides",
    "steps out of the role",
)
_MODEL = r"(?:ai|a\.i\.|artificial intelligence|(?:large )?language model|chat ?bot)"
#: Words behind it that make a person or a thing of it: "as an AI teacher, I ..."
_NOT_A_MODEL = (
    r"(?![\w'-]|[\s-]+(?!assistant\b)\w+"
    r"(?:er|or|ist|ian|ant|ent|ing|ination|lead|expert|nurse|intern|nerd|fan|geek|company|startup)\b)"
)
_KIND = r"(?:(?:just|only|simply|actually|merely|helpful|virtual|digital|personal|friendly) )*"
_WORDS: Mapping[str, re.Pattern[str]] = {
    ASSISTANT: re.compile(
        rf"\b(?:as|i am|i'm) {_KIND}(?:an? )?{_KIND}{_MODEL}{_NOT_A_MODEL}"
        r"|\b(?:as|i am|i'm) (?:your|an?) (?:helpful |virtual |digital |friendly |ai )+assistant\b(?! \w+er\b)"
        r"|\b(?:as|i am|i'm) your (?:ai )?assistant\b"
        r"|\bhow (?:can|may) i (?:help|assist) you\b"
        r"|\bis there anything else (?:i can|you(?:'d| would) like)\b"
        r"|\bi(?:'m| am) (?:here|happy|glad) to (?:help|assist) you\b(?! (?:mum|mom|dad|move|out)\b)"
        r"|\bi (?:was|am|'m) (?:trained|created|developed) by (?:openai|anthropic|google|meta|alibaba|mistral|microsoft)\b"
        r"|\bi (?:don't|do not) have (?:(?:a )?(?:physical )?body|personal (?:experiences?|feelings|opinions|beliefs)|(?:human )?feelings or)\b"
        r"|\bi(?:'m| am) (?:sorry,? )?(?:but )?(?:unable|not able) to (?:provide|offer|give) (?:you )?(?:medical|legal|financial) advice\b"
        r"|\bmy (?:training data|knowledge cutoff|programming)\b",
        re.IGNORECASE,
    ),
    BOTH_SIDES: re.compile(
        rf"^[ \t>]*(?:\*\*|__|#{{1,4}}[ \t]*|\[)?{SIDES}(?:'s (?:reply|response|answer|turn))?"
        r"(?: \([^)\n]{0,20}\))?(?:\*\*|__|\])?[ \t]*[:\uff1a]"
        r"|^[ \t]*[*_(\[]?the (?:ai |virtual )?(?:assistant|chat ?bot|ai) (?:then )?(?:replies|responds|answers|nods|says|asks|suggests)\b"
        r"|^[ \t]*[*_(\[]?you (?:reply|respond|answer)[:,] *[\"\u201c]",
        re.IGNORECASE | re.MULTILINE,
    ),
    OUT_OF_ROLE: re.compile(
        r"\b(?:i(?:'ll| will|'m| am| must| should| need to| have to| can't| cannot)? (?:\w+ )?|to |let me |please )"
        r"(?:stay(?:ing)?|keep(?:ing)?|remain(?:ing)?|break(?:ing)?|be(?:ing)?|get(?:ting)? (?:back )?) ?(?:in(?:to)? |out of |back in )?character\b"
        r"|\b(?:breaking|stepping out of|staying in|out of) character\b(?! (?:for|with) (?:him|her|them|my))"
        r"|\b(?:the|this|my) persona(?:'s)? (?:sheet|description|profile|would|should|is|does|has|i'm|i am|you)\b"
        r"|\b(?:this|our|the|continue (?:the|this)|in a) role-?\s?play(?:ing)?\b(?! (?:game|group|club|session)s?)"
        r"|\b(?:the character|the role) (?:i(?:'m| am)|you (?:gave|assigned)|i was (?:given|assigned))\b"
        r"|\bi(?:'m| am) (?:playing|pretending to be|portraying|simulating) (?:a|an|the) (?:persona|user|character|person|role)\b"
        r"|\bas (?:the|this|my) (?:persona|character|user)\b"
        r"|\b(?:end of|ending) (?:the )?(?:simulation|role-?play|dialogue|scenario)\b"
        r"|[(\[]\s*(?:ooc|out of character|note to)\b"
        r"|^[ \t]*(?:here is|here's) (?:my next|the persona's|the user's|the next) (?:reply|response|message|turn)\b",
        re.IGNORECASE | re.MULTILINE,
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
