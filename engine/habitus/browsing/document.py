"""A page to read, as blocks of text with styles that are names.

    Document("maori-01/s03/a0", (Heading("Session 3"), Paragraph("Kia ora.", bar="| ")))

The same document becomes rows for a terminal of any width, plain text for a pipe, and Markdown. It
holds texts as they are stored: what shows them makes them safe. It knows no colour and no terminal.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

Style = Literal[
    "plain", "strong", "dim", "heading", "person", "assistant", "good", "bad", "unknown", "hit"
]


@dataclass(frozen=True, slots=True)
class Span:
    """Some text in one style."""

    text: str
    style: Style = "plain"


@dataclass(frozen=True, slots=True)
class Heading:
    """A line that says what follows; ``level`` 1 is the title of the page."""

    text: str
    level: int = 2
    style: Style = "heading"


@dataclass(frozen=True, slots=True)
class Paragraph:
    """Text that is wrapped; its line breaks and the indentation of its lines are kept.

    ``bar`` stands before every row, ``lead`` before the first one only (the others are set in as
    far).
    """

    text: str
    style: Style = "plain"
    bar: str = ""
    lead: str = ""
    lead_style: Style = "strong"


@dataclass(frozen=True, slots=True)
class Gap:
    """An empty row."""


@dataclass(frozen=True, slots=True)
class Folded:
    """Blocks that are hidden until they are asked for; ``key`` names them within the page."""

    key: str
    title: str
    blocks: tuple[Block, ...]


@dataclass(frozen=True, slots=True)
class Beside:
    """Cells side by side, each of them blocks, all equally wide."""

    cells: tuple[tuple[Block, ...], ...]


Block = Heading | Paragraph | Gap | Folded | Beside


@dataclass(frozen=True, slots=True)
class Document:
    """A page: the id of what it shows, and its blocks."""

    id: str
    blocks: tuple[Block, ...]

    @property
    def folds(self) -> frozenset[str]:
        """The keys of all that can be folded."""
        return frozenset(_folds(self.blocks))


def _folds(blocks: tuple[Block, ...]) -> list[str]:
    found: list[str] = []
    for block in blocks:
        if isinstance(block, Folded):
            found += [block.key, *_folds(block.blocks)]
        elif isinstance(block, Beside):
            found += [key for cell in block.cells for key in _folds(cell)]
    return found
