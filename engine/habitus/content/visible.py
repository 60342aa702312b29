r"""Text from models, corpora and files, made safe to show.

    safe_text("clear\x1b[2J")     # 'clear\\u001b[2J', letter for letter
    safe_text("a\nb", lines=False) # 'a\\u000ab', for a cell of a table

Characters that a terminal acts on (escape sequences, C1 controls, backspace) or that change the
order in which others are shown (bidirectional embeddings, overrides and isolates) are replaced by
their JSON escapes, so that JSON text stays valid JSON. Everything else stays as it is: right-to-left
marks, joiners and all scripts. Markup of a particular display is not known here.
"""

from __future__ import annotations

import re
import unicodedata

_CONTROLS = r"\x00-\x08\x0b-\x1f\x7f-\x9f\u2028\u2029\ud800-\udfff"
_BIDI = r"\u202a-\u202e\u2066-\u2069"
_UNSAFE = re.compile(f"[{_CONTROLS}{_BIDI}]")
_UNSAFE_IN_LINE = re.compile(f"[\\t\\n{_CONTROLS}{_BIDI}]")
_INVISIBLE = {"Cc", "Cf", "Mn", "Me", "Zs", "Zl", "Zp"}
_SHAPELESS = "\u115f\u1160\u3164\uffa0\u2800"  # fillers that count as letters and signs


def safe_text(text: str, *, lines: bool = True) -> str:
    r"""The text with every character that a terminal would act on written as ``\uXXXX``.

    Args:
        text: any text, lone surrogates included.
        lines: keep line breaks and tabs; False for text that must stay in one cell.
    """
    pattern = _UNSAFE if lines else _UNSAFE_IN_LINE
    return pattern.sub(lambda match: f"\\u{ord(match[0]):04x}", text)


def has_words(text: str) -> bool:
    r"""Whether anything of a text can be seen.

    White space, controls, joiners and other characters without a shape are nothing, alone or together.

    >>> has_words("\u200b \ufeff\n"), has_words("\U0001f44d")
    (False, True)
    """
    return any(
        not character.isspace()
        and character not in _SHAPELESS
        and unicodedata.category(character) not in _INVISIBLE
        for character in text
    )
