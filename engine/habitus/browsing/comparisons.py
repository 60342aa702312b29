"""Answers side by side: one question, a column for each answer, a band for each thing judged.

The same shape serves the responses of a persona to a query in all settings, with a band for each
checklist item, and the answers of models to a post, with a band for each judge. Where it is too
narrow for columns, one of them is shown, and which.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from habitus.browsing.document import (
    Beside,
    Block,
    Document,
    Folded,
    Gap,
    Heading,
    Paragraph,
    Style,
)
from habitus.browsing.layout import BETWEEN
from habitus.browsing.notes import Notes

LEAST = 34  # cells that a column needs to be read


@dataclass(frozen=True, slots=True)
class Cell:
    """What was said of one answer: a word for it, why, and what another evaluator said."""

    word: str
    style: Style
    reasoning: str = ""
    beside: str = ""


@dataclass(frozen=True, slots=True)
class Column:
    """One answer. ``folded`` are texts with titles that are not part of it."""

    id: str
    name: str
    fate: str
    text: str
    folded: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True, slots=True)
class Band:
    """One thing that is judged: a cell for each column, None where it was not judged."""

    title: str
    text: str
    cells: tuple[Cell | None, ...]


@dataclass(frozen=True, slots=True)
class Comparison:
    """A question, its answers, and what is said of them."""

    key: str
    title: str
    question: str
    asked_by: str
    columns: tuple[Column, ...]
    bands: tuple[Band, ...]
    judged: str

    def at(self, name: str) -> int:
        """The place of a column by its id; 0 if there is none."""
        return next((n for n, column in enumerate(self.columns) if column.id == name), 0)


def fits(count: int, width: int) -> bool:
    """Whether so many columns can stand side by side."""
    return count * LEAST + (count - 1) * len(BETWEEN) <= width


def comparison_page(
    found: Comparison, column: int, *, beside: bool, notes: Notes | None = None
) -> Document:
    """The page.

    Args:
        found: what to show.
        column: the answer that keys act on, and the only one shown unless ``beside``.
        beside: all columns, side by side.
        notes: where marks and notes are looked up.
    """
    shown = range(len(found.columns)) if beside else range(column, column + 1)
    shown = range(0) if not found.columns else shown
    blocks: list[Block] = [Heading(found.title, 1), Gap()]
    blocks += [Heading(found.asked_by, 3, "person"), Paragraph(found.question, bar="\u2503 "), Gap()]
    blocks += _tabs(found, column) if not beside else []
    blocks.append(_row([_answer(found, n, n == column, beside, notes) for n in shown]))
    blocks += [Gap(), Heading(found.judged)]
    for band in found.bands:
        blocks.append(Gap())
        blocks += _band_title(band)
        blocks.append(_row([_cell(band.cells[n]) for n in shown]))
    if not found.bands:
        blocks.append(Paragraph("nothing yet", "unknown"))
    return Document(found.key, tuple(blocks))


def _row(cells: Sequence[tuple[Block, ...]]) -> Block:
    return Beside(tuple(cells)) if cells else Paragraph("no answer yet", "unknown")


def _tabs(found: Comparison, column: int) -> list[Block]:
    names = [
        f"[{c.name}]" if n == column else f" {c.name} " for n, c in enumerate(found.columns)
    ]
    return [Paragraph(" ".join(names), "strong")] if len(names) > 1 else []


def _answer(
    found: Comparison, number: int, current: bool, beside: bool, notes: Notes | None
) -> tuple[Block, ...]:
    column = found.columns[number]
    name = f"> {column.name}" if current and beside else column.name
    tabbed = len(found.columns) > 1 and not beside
    blocks: list[Block] = [] if tabbed else [Heading(name, 3, "assistant")]
    if column.fate:
        blocks.append(Paragraph(column.fate, "bad"))
    blocks += remarks(column.id, notes)
    blocks.append(Paragraph(column.text))
    for title, text in column.folded:
        key = f"{column.id} {title}"
        blocks.append(Folded(key, title, (Paragraph(text, "dim", bar="  "),)))
    return tuple(blocks)


def remarks(item: str, notes: Notes | None) -> Iterator[Block]:
    """The mark and the notes on an item."""
    found = notes.of(item) if notes else None
    if found and found.marked:
        yield Paragraph("* marked", "strong")
    for note in found.notes if found else ():
        yield Paragraph(note.text, lead=f"note {note.by}: " if note.by else "note: ")


def _band_title(band: Band) -> list[Block]:
    lead = f"{band.title}: " if band.text else band.title
    return [Paragraph(band.text, lead=lead)] if band.text else [Paragraph(lead, "strong")]


def _cell(cell: Cell | None) -> tuple[Block, ...]:
    if cell is None:
        return (Paragraph("not judged yet", "unknown"),)
    blocks: list[Block] = [Paragraph(cell.word, cell.style)]
    if cell.beside:
        blocks.append(Paragraph(cell.beside, "unknown", lead="beside: "))
    if cell.reasoning:
        blocks.append(Paragraph(cell.reasoning, "plain", bar="  "))
    return tuple(blocks)
