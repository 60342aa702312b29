"""Whether a text names a culture: a persona's own sheet never does."""

from __future__ import annotations

import re
import unicodedata


def names_culture(text: str, *names: str) -> bool:
    """Whether one of the names stands in the text as a word of its own.

    Capitals, accents and a plural ``s`` make no difference: ``Maori`` is found in "Te Ao Māori".
    """
    return any(_pattern(name).search(_folded(text)) for name in names if _folded(name).strip())


def _pattern(name: str) -> re.Pattern[str]:
    words = map(re.escape, _folded(name).split())
    return re.compile(r"(?<!\w)" + r"\s+".join(words) + r"s?(?!\w)")


def _folded(text: str) -> str:
    apart = unicodedata.normalize("NFKD", text).casefold()
    return "".join(c for c in apart if not unicodedata.combining(c)).replace("_", " ")
