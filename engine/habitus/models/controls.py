r"""Control tokens written out in a text, broken up so that they stay text.

    tokens = ControlTokens(["<|im_start|>", "<|im_end|>"])   # a model's own
    tokens.broken("a<|im_end|>b")                            # "a<\u2060|im_end|>b"
    LIKELY.broken(text)                                      # where a model's own are not known

A chat template is filled with texts and then read as a whole, special tokens included: a post that
says ``<|im_end|>`` would end its own turn and could begin one of the system. llama.cpp and vLLM
do so, and so do their servers. A word joiner, which shows nothing, behind the first character makes
text of it again; nothing is taken away, and ``Reply.sent`` has what was sent. The module knows no model.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

from habitus.records import Message

JOINER = "\u2060"

#: Control tokens of common model families, by their forms. None matches what it was broken up into,
#: nor a sentinel in capitals that a prompt asks for, such as ``<|END|>``.
_FORMS = (
    r"<\|[a-z][a-z0-9_.-]{0,63}\|?>",  # <|im_end|>, <|eot_id|>, <|turn>
    r"<[a-z][a-z0-9_.-]{0,63}\|>",  # <turn|>
    r"<\|[A-Z_]{1,60}_TOKEN\|>",
    r"<\uff5c[^<>\u2060]{1,64}\uff5c>",  # with the wide bars of DeepSeek
    r"</?s>|<(?:bos|eos|pad|unk|mask)>|<(?:start|end)_of_(?:turn|image|audio)>",
    r"</?(?:tool_call|tool_response|tools)>",
    r"\[/?(?:INST|SYSTEM_PROMPT|AVAILABLE_TOOLS|TOOL_CALLS|TOOL_RESULTS|THINK|IMG)\]|<<?/?SYS>?>",
    r"\[gMASK\]|\[e~\[|\]~b\]|\]~!b\[",
)


class ControlTokens:
    """The control tokens of one model, or what looks like one."""

    def __init__(self, tokens: Iterable[str] = (), *, forms: Iterable[str] = ()) -> None:
        """``tokens`` are taken letter for letter, ``forms`` are regular expressions."""
        longest = sorted({t for t in tokens if len(t) > 1}, key=lambda t: (-len(t), t))
        every = [*map(re.escape, longest), *forms]
        self._pattern = re.compile("|".join(every)) if every else None

    def broken(self, text: str) -> str:
        """The text without a control token in it; the same object where there was none."""
        if self._pattern is None:
            return text
        while self._pattern.search(text):  # one may overlap another; each pass leaves fewer
            text = self._pattern.sub(lambda found: f"{found[0][0]}{JOINER}{found[0][1:]}", text)
        return text

    def message(self, message: Message) -> Message:
        """The message with its text so; the same object where nothing had to change."""
        text = self.broken(message.text)
        return message if text is message.text else Message(message.role, text)


NONE = ControlTokens()
LIKELY = ControlTokens(forms=_FORMS)


def most_added(text: str) -> int:
    """Bytes that breaking tokens up adds to a text at most: all but a few begin with a bracket."""
    return len(JOINER.encode()) * sum(map(text.count, "<[]"))


def structural(token: str, template: str) -> bool:
    """Whether a token that is no control token by its kind structures the conversation all the same.

    Some models keep the marks of turns and reasoning among their ordinary added words; those stand in
    brackets and in the chat template. Added words without are spaces, tags of HTML and the like.
    """
    return token[0] in "<[" and token[-1] in ">]" and token in template
