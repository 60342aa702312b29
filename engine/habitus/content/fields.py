"""Types of fields that many content files share, with messages a person can act on.

``Slug`` names things: it is part of file names and record ids, so it holds no slash, no space and
no capital letter. ``Line`` is text for a person or a prompt on one line: a line break inside it
could pass for another line of the prompt it is put into.
"""

from __future__ import annotations

import re
import unicodedata
from typing import Annotated

from pydantic import AfterValidator, WithJsonSchema

SLUG_PATTERN = r"^[a-z0-9][a-z0-9_-]{0,63}$"
_SLUG = re.compile(SLUG_PATTERN)
#: Names of devices: no file can be called so on Windows, whatever its suffix.
_DEVICES = re.compile(r"con|prn|aux|nul|com\d|lpt\d")
_BREAKS = {"Cc", "Zl", "Zp", "Cs"}  # control characters, line and paragraph breaks, half pairs


def slug(text: str) -> str:
    """The text itself, if it can be an id.

    Raises:
        ValueError: it cannot, with what an id is made of.
    """
    if not _SLUG.fullmatch(text):
        raise ValueError(
            "an id has lower-case letters, digits, '_' and '-' only, begins with a letter or "
            "digit, and is at most 64 long"
        )
    if _DEVICES.fullmatch(text):
        raise ValueError(f"an id cannot be {text!r}, which no file can be called on Windows")
    return text


def _line(text: str) -> str:
    if not text.strip():
        raise ValueError("the text is empty")
    if any(unicodedata.category(c) in _BREAKS for c in text):
        raise ValueError("the text must stand on one line, without control characters")
    return text


Slug = Annotated[
    str, AfterValidator(slug), WithJsonSchema({"type": "string", "pattern": SLUG_PATTERN})
]
Line = Annotated[
    str,
    AfterValidator(_line),
    WithJsonSchema({"type": "string", "pattern": r"^[^\r\n]*\S[^\r\n]*$"}),
]
