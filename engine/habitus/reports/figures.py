"""Every figure of an analysis, written as SVG, PDF and PNG.

    paths = write_figures(framing, folder, shares)
    for skipped in skipped_figures(framing, shares):
        skipped.name, skipped.reason

Figures are drawn from results and know nothing of runs. What is compared is called a level (a
model, a setting), a part of the rows a subset, the first field of subsets a place (a country). Many
levels, subsets or characteristics make a figure taller, and then make more pages of it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from habitus.content.writing import file_stems, write_text
from habitus.corpora.shares import Share
from habitus.framing.results import Framing
from habitus.reports.categories import category_pages
from habitus.reports.cooccurrence import cooccurrence_pages
from habitus.reports.directions import franz_directions
from habitus.reports.effects import effect_pages
from habitus.reports.pages import Page, Skipped
from habitus.reports.prevalence import maxim_pages, prevalence_pages
from habitus.reports.style import drawing, save
from habitus.tables import csv_text


@dataclass(frozen=True, slots=True)
class FigureOptions:
    """Which characteristics the figures of FRANZ are about, by their ids in the analysis."""

    insider: str = "insider"
    cues: tuple[str, ...] = ("emotions", "validation", "empathy")
    causes: tuple[str, ...] = ("manner",)
    maxims: tuple[str, ...] = ("quantity", "quality", "relation", "manner")


def write_figures(
    framing: Framing,
    folder: Path,
    shares: Sequence[Share] | None = None,
    options: FigureOptions | None = None,
) -> list[Path]:
    """Draw every figure that can be drawn.

    Args:
        framing: the results.
        folder: where to, one for each analysis; files of the same name are replaced.
        shares: posts by country and category, for the figure of categories.
        options: which characteristics are which.

    Raises:
        UsageError: matplotlib is missing, or a file cannot be written.
    """
    pages = [page for page in figure_pages(framing, shares, options) if isinstance(page, Page)]
    return write_pages(pages, folder)


def write_pages(pages: Iterable[Page], folder: Path, *, numbers: bool = False) -> list[Path]:
    """Draw figures into a folder, with the numbers of each as CSV where they are asked for.

    Raises:
        UsageError: matplotlib is missing, or a file cannot be written.
    """
    pages = list(pages)
    paths = []
    for page, stem in zip(pages, file_stems(page.name for page in pages), strict=True):
        with drawing():
            paths += save(page.draw(), folder / stem)
        if numbers:
            found = page.numbers()
            path = folder / f"{stem}.csv"
            write_text(path, csv_text(found.columns, found.rows), overwrite=True)
            paths.append(path)
    return paths


def skipped_figures(
    framing: Framing,
    shares: Sequence[Share] | None = None,
    options: FigureOptions | None = None,
) -> list[Skipped]:
    """The figures that ``write_figures`` leaves out, and why; nothing is drawn."""
    return [page for page in figure_pages(framing, shares, options) if isinstance(page, Skipped)]


def figure_pages(
    framing: Framing,
    shares: Sequence[Share] | None = None,
    options: FigureOptions | None = None,
) -> Iterator[Page | Skipped]:
    """Every figure of an analysis, to be drawn when asked for, or why there is none."""
    options = options or FigureOptions()
    yield from prevalence_pages(framing)
    yield from maxim_pages(framing, options.maxims)
    yield from cooccurrence_pages(framing)
    yield from effect_pages(
        framing, franz_directions(framing, options.insider, options.cues, options.causes)
    )
    yield from category_pages(shares)
