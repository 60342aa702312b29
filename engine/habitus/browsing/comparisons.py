"""Answers side by side: one question, a column for each answer, a band for each thing judged.

The same shape serves the responses of a persona to a query in all settings, with a band for each
checklist item, and the answers of models to a post, with a band for each judge. Where it is too
narrow for all of them, those of one target are shown, or one, and which.
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

LEAST = 30  # cells that a column needs to be read


@dataclass(frozen=True, slots=True)
class Cell:
    """What was said of one answer: a word for it, why, and what another evaluator said."""

    word: str
    style: Style
    reasoning: str = ""
    beside: str = ""


@dataclass(frozen=True, slots=True)
class Column:
    """One answer. ``folded`` are texts with titles that are not part of it.

    Columns of one ``row`` (a target) stay together where there is no room for all.
    """

    id: str
    name: str
    fate: str
    text: str
    folded: tuple[tuple[str, str], ...] = ()
    row: str = ""


@dataclass(frozen=True, slots=True)
class Band:
    """One thing that is judged: a cell for each column, None where it was not judged.

    ``counted``: its cells are met or not.
    """

    title: str
    text: str
    cells: tuple[Cell | None, ...]
    counted: bool = False


@dataclass(frozen=True, slots=True)
class Comparison:
    """A question, its answers, and what is said of them. ``judged`` is the heading of the bands."""

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


def shown_at(found: Comparison, column: int, width: int | None) -> range:
    """Which columns stand side by side in a width: all, those of one target, or one.

    Args:
        found: what to show.
        column: the one that is among them in any case.
        width: cells; 0 is room for all of them, None for the one alone.
    """
    whole = range(len(found.columns))
    if width is None or not whole:
        return whole[column : column + 1]
    if width == 0 or _fits(len(whole), width):
        return whole
    row = [n for n in whole if found.columns[n].row == found.columns[column].row]
    return range(row[0], row[-1] + 1) if _fits(len(row), width) else whole[column : column + 1]


def _fits(count: int, width: int) -> bool:
    return count * LEAST + (count - 1) * len(BETWEEN) <= width


def comparison_page(
    found: Comparison, column: int, width: int | None, notes: Notes | None = None
) -> Document:
    """The page.

    Args:
        found: what to show.
        column: the answer that keys act on.
        width: cells that there are for columns; 0 for all of them, None for the one alone.
        notes: where marks and notes are looked up.
    """
    shown = shown_at(found, column, width)
    blocks: list[Block] = [Heading(found.title, 1), Gap()]
    blocks += [
        Heading(found.asked_by, 3, "person"),
        Paragraph(found.question, bar="\u2503 "),
        Gap(),
    ]
    blocks += _tabs(found, column, shown)
    blocks.append(_row([_answer(found, n, column, shown, notes) for n in shown]))
    blocks += [Gap(), Heading(found.judged)]
    if any(band.counted for band in found.bands):
        blocks.append(_row([(Paragraph(_count(found, n), "strong"),) for n in shown]))
    for band in found.bands:
        blocks += _band(band, shown)
    if not found.bands:
        blocks.append(Paragraph("nothing yet", "unknown"))
    return Document(found.key, tuple(blocks))


def _count(found: Comparison, column: int) -> str:
    """How much of what was judged an answer meets."""
    cells = [band.cells[column] for band in found.bands if band.counted]
    styles = [cell.style if cell else "unknown" for cell in cells]
    met, judged = styles.count("good"), len(styles) - styles.count("unknown")
    rest = f", {len(styles) - judged} not judged" if judged < len(styles) else ""
    return f"meets {met} of {judged}{rest}"


def _row(cells: Sequence[tuple[Block, ...]]) -> Block:
    return Beside(tuple(cells)) if cells else Paragraph("no answer yet", "unknown")


def _tabs(found: Comparison, column: int, shown: range) -> list[Block]:
    """Which answers there are beside those that are shown."""
    count = len(found.columns)
    if len(shown) == count:
        return []
    if len(shown) > 1:
        return [Paragraph(f"answers {shown[0] + 1} to {shown[-1] + 1} of {count}", "dim")]
    names = [f"[{c.name}]" if n == column else c.name for n, c in enumerate(found.columns)]
    return [Paragraph("  ".join(names), "strong")]


def _answer(
    found: Comparison, number: int, current: int, shown: range, notes: Notes | None
) -> tuple[Block, ...]:
    column = found.columns[number]
    name = f"> {column.name}" if number == current and len(shown) > 1 else column.name
    tabbed = len(shown) == 1 < len(found.columns)
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


def _band(band: Band, shown: Sequence[int]) -> Iterator[Block]:
    """What is judged, and below it what was said of every answer; on one row where that is enough."""
    yield Gap()
    if len(shown) == 1 and not band.text:
        yield from _cell(band.cells[shown[0]], f"{band.title}: ")
        return
    lead = f"{band.title}: " if band.text else band.title
    yield Paragraph(band.text, lead=lead)
    yield _row([tuple(_cell(band.cells[n])) for n in shown])


def _cell(cell: Cell | None, lead: str = "") -> Iterator[Block]:
    if cell is None:
        yield Paragraph("not judged yet", "unknown", lead=lead)
        return
    yield Paragraph(cell.word, cell.style, lead=lead, lead_style="plain")
    if cell.beside:
        yield Paragraph(cell.beside, "unknown", lead="beside: ")
    if cell.reasoning:
        yield Paragraph(cell.reasoning, bar="  ")
