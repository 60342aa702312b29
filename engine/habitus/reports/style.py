"""How every figure looks, and how it is written: the same bytes for the same numbers.

    with drawing():
        figure = new_figure(WIDE, 3.0)
        ...
            save(figure, folder / "prevalence")  # prevalence.svg, prevalence.pdf and prevalence.png

Colours are those of Okabe and Ito, which people tell apart with any kind of colour vision; each has
a hatch and a marker beside it, so that print without colour says the same. Shares are coloured with
its blue, from white. Text is never below 7 pt at the width that a figure is made for, and is drawn letter for
letter, with the font that comes with matplotlib: ``$`` begins no formula. SVG holds text as text.

Nothing of matplotlib's settings is left changed, and those of the user play no part.
"""

from __future__ import annotations

import io
import re
import textwrap
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from habitus.content.visible import safe_text
from habitus.errors import UsageError

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

#: Inches: a column of a page, one and a half, both.
NARROW, MIDDLE, WIDE = 3.35, 5.0, 7.0
TALLEST = 9.0
SIZE = 7.0  # points
UNDEFINED = "n/a"
GREY, DARK, PALE = "#767676", "#222222", "#d9d9d9"
LINE = 0.125  # inches of a line of text
#: Okabe and Ito without yellow, of which lines are not seen on white. The first four are the four
#: that lie farthest apart for whichever colour vision tells them apart least.
PALETTE = ("#0072B2", "#D55E00", "#56B4E9", "#CC79A7", "#E69F00", "#009E73", "#000000")
_NO_XML = re.compile("[\ufffe\uffff]")  # an SVG file cannot hold them
_HATCHES = ("", "////", "....", "\\\\\\\\", "xxxx", "----", "||||", "oooo", "++++")
_MARKERS = ("o", "s", "^", "D", "v", "P", "X", "<", ">")
_SETTINGS: dict[str, Any] = {
    "font.family": ["DejaVu Sans"],
    "font.size": SIZE,
    "axes.titlesize": SIZE + 0.5,
    "axes.labelsize": SIZE,
    "xtick.labelsize": SIZE,
    "ytick.labelsize": SIZE,
    "legend.fontsize": SIZE,
    "figure.titlesize": SIZE + 2,
    "axes.linewidth": 0.6,
    "axes.edgecolor": DARK,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.axisbelow": True,
    "grid.color": PALE,
    "grid.linewidth": 0.5,
    "xtick.major.width": 0.6,
    "ytick.major.width": 0.6,
    "xtick.major.size": 2.5,
    "ytick.major.size": 0,
    "hatch.linewidth": 0.5,
    "legend.frameon": False,
    "text.parse_math": False,
    "text.usetex": False,
    "axes.formatter.use_mathtext": False,
    "axes.unicode_minus": True,
    "svg.fonttype": "none",
    "svg.hashsalt": "habitus",
    "pdf.fonttype": 42,  # text that can be searched, and fonts that journals take
    "savefig.dpi": 300,
}


@dataclass(frozen=True, slots=True)
class Look:
    """How one level is drawn, wherever it appears."""

    colour: str
    hatch: str
    marker: str


def looks(levels: Sequence[str]) -> dict[str, Look]:
    """A look for each level; 63 of them before two are the same."""
    return {
        level: Look(
            PALETTE[i % len(PALETTE)],
            _HATCHES[i % len(_HATCHES)],
            _MARKERS[i % len(_MARKERS)],
        )
        for i, level in enumerate(levels)
    }


@contextmanager
def drawing() -> Iterator[None]:
    """The settings of figures while the block runs, and the old ones after it.

    Raises:
        UsageError: matplotlib is not installed.
    """
    try:
        import matplotlib as mpl  # noqa: PLC0415  (an extra, and heavy)
    except ImportError:
        raise UsageError('figures need matplotlib: pip install "habitus[analysis]"') from None
    with mpl.rc_context():
        mpl.rcdefaults()
        settings: Any = mpl.rcParams
        settings.update(_SETTINGS)
        yield


def new_figure(width: float, height: float) -> Figure:
    """An empty figure, in inches; what is put into it makes room for what stands beside it."""
    from matplotlib.figure import Figure  # noqa: PLC0415

    figure = Figure(figsize=(width, height), layout="constrained")
    engine: Any = figure.get_layout_engine()
    engine.set(w_pad=0.03, h_pad=0.03, wspace=0.02, hspace=0.02)
    return figure


#: What is left out of each kind of file: dates, and the version of what drew it.
_METADATA: dict[str, dict[str, None]] = {
    "svg": {"Date": None, "Creator": None},
    "pdf": {"CreationDate": None, "Creator": None, "Producer": None},
    "png": {"Software": None},
}


def save(figure: Figure, stem: Path) -> list[Path]:
    """Write a figure as SVG, PDF and PNG, without a date in them.

    Raises:
        UsageError: the files cannot be written.
    """
    paths = [stem.with_name(f"{stem.name}.{kind}") for kind in _METADATA]
    try:
        stem.parent.mkdir(parents=True, exist_ok=True)
        for path, (kind, without) in zip(paths, _METADATA.items(), strict=True):
            _save(figure, path, kind, without)
    except OSError as error:
        raise UsageError(f"{stem} cannot be written: {error.strerror}") from None
    return paths


def svg_bytes(figure: Figure) -> bytes:
    """A figure as the bytes of its SVG file."""
    out = io.BytesIO()
    _save(figure, out, "svg", _METADATA["svg"])
    return out.getvalue()


def _save(figure: Figure, to: Path | io.BytesIO, kind: str, without: dict[str, None]) -> None:
    with warnings.catch_warnings():
        # PNG and PDF show a box for a script that the font lacks; SVG holds the text itself.
        warnings.filterwarnings("ignore", r"Glyph \d+ .* missing from font")
        figure.savefig(to, format=kind, metadata=without)


def label(text: str, width: int = 24) -> str:
    """A name as it is drawn: safe to show, in lines of about so many letters."""
    safe = _NO_XML.sub("\ufffd", safe_text(text, lines=False))
    return "\n".join(textwrap.wrap(safe, width, break_on_hyphens=True)) or safe


def line_count(*texts: str) -> int:
    """The most lines of any of the texts."""
    return max((text.count("\n") + 1 for text in texts), default=1)


def decimal(value: float) -> str:
    """``.31``, ``1.00``, ``-.05`` with two decimals."""
    text = f"{abs(value):.2f}".removeprefix("0")
    return f"\N{MINUS SIGN}{text}" if value < 0 and float(text) else text


def light(colour: Sequence[float]) -> bool:
    """Whether dark text is read better than white on a colour (WCAG's relative luminance)."""
    parts = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in colour[:3]]
    return 0.2126 * parts[0] + 0.7152 * parts[1] + 0.0722 * parts[2] > 0.179


def title(figure: Figure, text: str) -> None:
    """A heading at the left."""
    wrapped = _heading(text, figure.get_figwidth())
    figure.suptitle(wrapped, x=0.01, ha="left", fontweight="bold")


def title_height(text: str, width: float) -> float:
    """Inches of a heading above a figure of so many inches."""
    return 1.35 * LINE * line_count(_heading(text, width)) + 0.08


def _heading(text: str, width: float) -> str:
    return label(text, round(width * 12))


def bare(axes: Axes) -> None:
    """Take lines and ticks off, as around a table."""
    for spine in axes.spines.values():
        spine.set_visible(False)
    axes.tick_params(length=0)
