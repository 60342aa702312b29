"""Figures: their numbers are those of the results, and people can read them."""

from __future__ import annotations

import itertools
import os
import re
import struct
import subprocess
import sys
import xml.etree.ElementTree as ET
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import matplotlib as mpl
import numpy as np
import pytest
from matplotlib.axes import Axes
from matplotlib.colors import to_hex, to_rgb
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.text import Text

from framing_made import CATEGORIES, CHARACTERISTICS, COUNTRIES, MODELS, made_framing, made_shares
from habitus.corpora import Share
from habitus.errors import UsageError
from habitus.framing import Framing, Subset, movements
from habitus.reports import FigureOptions, skipped_figures, write_figures
from habitus.reports.categories import category_pages
from habitus.reports.cooccurrence import cooccurrence_pages
from habitus.reports.directions import DeltaTable, franz_directions
from habitus.reports.effects import effect_pages
from habitus.reports.pages import Page, Skipped
from habitus.reports.prevalence import maxim_pages, prevalence_pages
from habitus.reports.style import PALETTE, SIZE, drawing, looks

PLACES = COUNTRIES[:2]
SMALL = made_framing(places=PLACES, categories=CATEGORIES[:2], undefined=0.1)
MAXIMS = ("quantity", "quality", "relation", "manner")
NASTY = made_framing(
    levels=("model_$x$_<b>&", "$\\frac{", "\u202eright to left", "\\alpha"),
    places=("a place with a very long name that goes on and on", "$5 & $6 <i>"),
    categories=("a_category of considerable length & 100% more", "Averyverylongwordwithoutanyspaceinit"),
    characteristics={name: CHARACTERISTICS[name] for name in ("insider", "empathy", "manner", "desires")},
    title="$One$ <b>title</b> _of_ 100% & more",
    synthetic=True,
)  # fmt: skip
MANY = made_framing(
    levels=tuple(f"provider/model-number-{n}-instruct" for n in range(9)),
    places=tuple(f"country number {n}" for n in range(12)),
    categories=CATEGORIES[:1],
    undefined=0.001,
)
ONE = made_framing(levels=("llama",), places=("india",), categories=CATEGORIES[:1], undefined=0)


def franz_pages(framing: Framing) -> list[Page | Skipped]:
    panels = franz_directions(
        framing, "insider", ("emotions", "validation", "empathy"), ("manner",)
    )
    return list(effect_pages(framing, panels))


def pages_of(framing: Framing) -> Iterator[Page]:
    """One page of each figure, or two."""
    shares = made_shares(framing_places(framing))
    for found in (
        prevalence_pages(framing),
        maxim_pages(framing, MAXIMS),
        cooccurrence_pages(framing),
        iter(franz_pages(framing)),
        category_pages(shares),
    ):
        there = [page for page in found if isinstance(page, Page)]
        yield from {page.name: page for page in (*there[:1], *there[-1:])}.values()


def framing_places(framing: Framing) -> list[str]:
    return list(dict.fromkeys(subset.fields[0][1] for subset in framing.subsets))


def draw(page: Page | Skipped) -> Figure:
    assert isinstance(page, Page)
    with drawing():
        figure = page.draw()
        figure.draw_without_rendering()
    return figure


def texts(figure: Figure) -> list[Text]:
    """Every text that is seen; an axis also has ticks beyond its ends, which are not."""
    beyond = set()
    for axes in figure.axes:
        low, high = axes.get_xlim()
        beyond |= {
            t.label1 for t in axes.xaxis.get_major_ticks() if not low <= float(t.get_loc()) <= high
        }
    return [
        found
        for found in figure.findobj(Text)
        if isinstance(found, Text) and found.get_text().strip() and found not in beyond
    ]


CASES = {
    f"{name}, {page.name}": page
    for name, framing in {"small": SMALL, "nasty": NASTY, "many": MANY, "one": ONE}.items()
    for page in pages_of(framing)
}


@pytest.mark.parametrize("page", CASES.values(), ids=CASES)
def test_no_text_is_small_or_cut_or_on_another(page: Page) -> None:
    figure = draw(page)
    assert figure.get_figwidth() <= 12
    assert figure.get_figheight() <= 10.5
    shown = [(found, found.get_window_extent()) for found in texts(figure)]
    assert len(shown) > 5
    assert {found.get_text() for found, _ in shown if float(found.get_fontsize()) < SIZE} == set()
    outside = [
        found.get_text()
        for found, box in shown
        if box.x0 < -1 or box.y0 < -1
        or box.x1 > figure.bbox.width + 1 or box.y1 > figure.bbox.height + 1
    ]  # fmt: skip
    assert outside == []
    overlapping = [
        (one.get_text(), other.get_text())
        for (one, a), (other, b) in itertools.combinations(shown, 2)
        if min(a.x1, b.x1) - max(a.x0, b.x0) > 1 and min(a.y1, b.y1) - max(a.y0, b.y0) > 1.5
    ]
    assert overlapping == []


def bars_of(axes: Axes) -> dict[tuple[int, str], float]:
    """Length of each bar by its place from the top, among all that are drawn, and its level."""
    found = [
        (bar.get_y() + bar.get_height() / 2, container.get_label(), bar.get_width())
        for container in axes.containers
        for bar in container
    ]
    return {(round(-y * 100), str(level)): float(width) for y, level, width in found}


def test_bars_are_the_estimates_and_undefined_is_no_bar() -> None:
    pages = list(prevalence_pages(SMALL))
    assert [page.name for page in pages] == ["prevalence-india", "prevalence-china"]
    undefined = 0
    for page, place in zip(pages, PLACES, strict=True):
        panels = [axes for axes in draw(page).axes if axes.get_visible()]
        for axes, category in zip(panels, CATEGORIES[:2], strict=True):
            rows = [
                found
                for found in SMALL.prevalences
                if found.subset.fields == (("country", place), ("category", category))
            ]
            for level in MODELS:
                drawn = sorted(
                    (y, width) for (y, of), width in bars_of(axes).items() if of == level
                )
                known = [p.estimate for p in rows if p.level == level and p.estimate is not None]
                assert [width for _, width in drawn] == pytest.approx(known)
            missing = sum(found.estimate is None for found in rows)
            assert [t.get_text() for t in axes.texts] == ["n/a"] * missing
            undefined += missing
    assert undefined > 5


def test_intervals_are_those_of_the_results() -> None:
    figure = draw(next(iter(prevalence_pages(ONE))))
    ends = {(_ends(line)) for line in figure.axes[0].lines}
    assert ends == {(p.low, p.high) for p in ONE.prevalences}


def _ends(line: Line2D) -> tuple[float, ...]:
    return tuple(map(float, np.asarray(line.get_xdata())))


def test_a_panel_says_how_many_answers_it_is_about() -> None:
    figure = draw(next(iter(prevalence_pages(SMALL))))
    assert figure.axes[0].get_title(loc="left") == "social relations\n900 answers"


def test_maxims_are_shares_of_the_judged_answers_of_a_country() -> None:
    [page] = maxim_pages(SMALL, MAXIMS)
    figure = draw(page)
    for axes, maxim in zip(figure.axes, MAXIMS, strict=True):
        for level in MODELS:
            drawn = sorted((y, width) for (y, of), width in bars_of(axes).items() if of == level)
            assert [width for _, width in drawn] == pytest.approx(
                [_share(maxim, level, place) for place in PLACES]
            )
    assert figure.axes[0].get_title(loc="left") == "Quantity violated"


def _share(maxim: str, level: str, place: str) -> float:
    parts = [
        p
        for p in SMALL.prevalences
        if (p.characteristic, p.level) == (maxim, level) and p.subset.fields[0][1] == place
    ]
    return sum(p.cases for p in parts) / sum(p.rows for p in parts)


def test_a_share_of_nothing_is_undefined_and_a_share_of_zero_is_zero() -> None:
    from dataclasses import replace

    zero = [replace(p, cases=0, estimate=None) for p in ONE.prevalences]
    none = [replace(p, rows=0, cases=0, estimate=None) for p in ONE.prevalences]
    for prevalences, text in ((zero, "0"), (none, "n/a")):
        [page] = maxim_pages(replace(ONE, prevalences=tuple(prevalences)), MAXIMS)
        assert [t.get_text() for axes in draw(page).axes for t in axes.texts] == [text] * 4


def test_tiles_count_what_rises_falls_and_does_not_move() -> None:
    counts = Counter[str]()
    for page in cooccurrence_pages(SMALL):
        counts.update(t.get_text() for t in draw(page).axes[0].texts)
    wanted = Counter[str]()
    for found in movements(SMALL):
        text = f"{found.rise}↑ {found.fall}↓ {found.same}="
        wanted[text + (f"\n{found.undefined} n/a" if found.undefined else "")] += 1
    assert counts == wanted
    assert any("n/a" in text for text in wanted)


def test_a_tile_of_undefined_deltas_is_hatched_and_says_so() -> None:
    from dataclasses import replace

    deltas = tuple(replace(d, delta=None, significant=None) for d in ONE.deltas)
    page = next(iter(cooccurrence_pages(replace(ONE, deltas=deltas))))
    axes = draw(page).axes[0]
    assert {t.get_text() for t in axes.texts} == {"1 n/a"}
    assert {patch.get_hatch() for patch in axes.patches} == {"////"}


def test_deltas_are_those_of_the_results_and_filled_where_significant() -> None:
    pages = franz_pages(SMALL)
    drawn = [page for page in pages if isinstance(page, Page)]
    panels = franz_directions(SMALL, "insider", ("emotions", "validation", "empathy"), ("manner",))
    table = DeltaTable(SMALL)
    assert drawn
    for page in drawn:
        place = page.name.removeprefix("deltas-")
        subsets = [s for s in SMALL.subsets if s.fields[0][1] == place]
        whole = [s for s in subsets if table.converges(s, panels)]
        for axes, panel in zip(draw(page).axes, panels, strict=True):
            pairs = list(itertools.product(whole, panel.pairs.values()))
            wanted = [table.delta(s, pair, level) for s, pair in pairs for level in MODELS]
            marks = [line for line in axes.lines if line.get_marker() not in {"None", None, ""}]
            assert [_x(line) for line in marks] == [d.delta for d in wanted if d]
            assert [to_hex(str(line.get_markerfacecolor())) != "#ffffff" for line in marks] == [
                d.significant for d in wanted if d
            ]
            differing = [t.get_text() for t in axes.texts].count("≠")
            assert differing == sum(table.differs(s, pair) for s, pair in pairs)


def _x(line: Line2D) -> float:
    return float(np.asarray(line.get_xdata())[0])


def test_a_category_in_which_a_fit_does_not_converge_is_named_and_not_drawn() -> None:
    from dataclasses import replace

    framing = made_framing(places=("india",), categories=CATEGORIES, undefined=0)
    bad = framing.subsets[1]
    broken = [
        replace(d, low=None, reason="no standard error")
        if (d.subset, d.cause, d.effect, d.level) == (bad, "insider", "empathy", MODELS[2])
        else d
        for d in framing.deltas
    ]
    [page] = franz_pages(replace(framing, deltas=tuple(broken)))
    axes = draw(page).axes[0]
    assert [t.get_text() for t in axes.texts].count("a fit does not converge") == 1
    assert len([line for line in axes.lines if line.get_marker() == "o"]) == 2 * 3
    unsure = [replace(c, significant=None) for c in framing.delta_comparisons]
    [skipped] = franz_pages(replace(framing, delta_comparisons=tuple(unsure)))
    assert isinstance(skipped, Skipped)
    assert "social relations; education and career; food and drink" in skipped.reason


def test_other_characteristics_have_a_panel_for_each_cause() -> None:
    [page] = [p for p in effect_pages(ONE, ()) if isinstance(p, Page) and p.name == "deltas-1"]
    titles = [axes.get_title(loc="left") for axes in draw(page).axes]
    assert titles == ["Insider → effect", "Generalizing → effect", "Emotions → effect"]


def test_shares_of_categories_are_per_cent_of_the_country() -> None:
    shares = [
        Share("country and category", "india", "Arts", 30, 40),
        Share("country and category", "india", None, 10, 40),
        Share("country and category", "usa", "Tourism", 9_999, 10_000),
        Share("country and category", "usa", "Arts", 1, 10_000),
        Share("category", None, "Arts", 31, 10_040),
    ]
    [page] = category_pages(shares)
    axes = draw(page).axes[0]
    assert [t.get_text() for t in axes.get_xticklabels()] == ["india\n40", "usa\n10,000"]
    assert [t.get_text() for t in axes.get_yticklabels()] == ["Tourism", "Arts", "(none)"]
    assert [t.get_text() for t in axes.texts] == ["0", "100.0", "75.0", "<0.1", "25.0", "0"]


CCBENCH = made_framing(
    levels=("none", "hist", "ccot", "norms"), places=("a", "b"), categories=("x",)
)


def test_settings_in_place_of_models_and_subsets_of_one_field() -> None:
    from dataclasses import replace

    new = {s: Subset((("target", s.fields[0][1]),), s.rows, s.groups) for s in CCBENCH.subsets}
    framing = replace(
        CCBENCH,
        subsets=tuple(new.values()),
        prevalences=tuple(replace(p, subset=new[p.subset]) for p in CCBENCH.prevalences),
        deltas=(),
        delta_comparisons=(),
    )
    [page] = prevalence_pages(framing)
    assert page.name == "prevalence"
    assert [axes.get_title(loc="left") for axes in draw(page).axes] == [
        "a\n900 answers", "b\n900 answers",
    ]  # fmt: skip
    [maxims] = maxim_pages(framing, MAXIMS)
    assert "FRANZ: maxims by target" in [t.get_text() for t in texts(draw(maxims))]
    assert [s.name for s in skipped_figures(framing)] == ["cooccurrence", "deltas", "categories"]


def test_figures_that_cannot_be_drawn_say_why() -> None:
    from dataclasses import replace

    whole = Subset((), 100, 50)
    framing = replace(
        ONE,
        subsets=(whole,),
        prevalences=tuple(replace(p, subset=whole) for p in ONE.prevalences),
        deltas=tuple(replace(d, subset=whole) for d in ONE.deltas),
        delta_comparisons=(),
    )
    reasons = {found.name: found.reason for found in skipped_figures(framing)}
    assert set(reasons) == {"maxims", "cooccurrence", "categories"}
    assert "made by no field" in reasons["maxims"]
    empty = Framing("x", "X", (), False, {}, (), ())
    assert {found.name for found in skipped_figures(empty, [])} == {
        "prevalence", "maxims", "cooccurrence", "deltas", "categories",
    }  # fmt: skip
    own = FigureOptions(maxims=("insider",))
    assert "maxims" not in {found.name for found in skipped_figures(ONE, options=own)}


def write(folder: Path) -> dict[str, bytes]:
    paths = write_figures(ONE, folder, made_shares(PLACES))
    return {path.name: path.read_bytes() for path in paths}


@pytest.fixture(scope="module")
def written(tmp_path_factory: pytest.TempPathFactory) -> dict[str, bytes]:
    return write(tmp_path_factory.mktemp("figures"))


def test_each_figure_is_an_svg_a_pdf_and_a_png_of_its_size(written: dict[str, bytes]) -> None:
    assert list(written) == [
        f"{name}.{kind}"
        for name in (
            "prevalence", "maxims", "cooccurrence-1", "cooccurrence-2", "deltas", "categories",
        )
        for kind in ("svg", "pdf", "png")
    ]  # fmt: skip
    for name, data in written.items():
        if name.endswith(".png"):
            assert data[:8] == b"\x89PNG\r\n\x1a\n"
            inches = [n / 300 for n in struct.unpack(">II", data[16:24])]
        elif name.endswith(".pdf"):
            box = re.search(rb"/MediaBox \[ ?0 0 ([\d.]+) ([\d.]+) ?\]", data)
            assert box
            inches = [float(side) / 72 for side in box.groups()]
            assert b"CreationDate" not in data
        else:
            root = ET.fromstring(data)
            assert root.tag == "{http://www.w3.org/2000/svg}svg"
            inches = [
                float(root.attrib[side].removesuffix("pt")) / 72 for side in ("width", "height")
            ]
        assert 3 < inches[0] <= 7.1
        assert 1 < inches[1] < 9.5
        if name.startswith(("prevalence", "maxims", "deltas")):
            assert inches[0] == pytest.approx(7, abs=0.01)


PROGRAM = """
import sys, pathlib
from test_figures import write
import hashlib
print(hashlib.sha256(repr(sorted(write(pathlib.Path(sys.argv[1])).items())).encode()).hexdigest())
"""


def test_the_same_results_give_the_same_bytes_in_any_process_and_with_any_settings(
    written: dict[str, bytes], tmp_path: Path
) -> None:
    import hashlib

    settings = (
        "font.size: 30\ntext.usetex: True\nsvg.fonttype: path\nsavefig.bbox: tight\nbackend: svg\n"
    )
    (tmp_path / "matplotlibrc").write_text(settings, encoding="utf-8")
    told = {"PYTHONHASHSEED": "7", "MATPLOTLIBRC": str(tmp_path), "TZ": "Asia/Tokyo"}
    path = os.pathsep.join((str(Path(__file__).parent), os.environ["PYTHONPATH"]))
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, str(tmp_path / "out")],
        env={**os.environ, **told, "PYTHONPATH": path},
        check=True,
        capture_output=True,
        text=True,
    )
    wanted = hashlib.sha256(repr(sorted(written.items())).encode()).hexdigest()
    assert done.stdout.strip() == wanted


def test_settings_of_matplotlib_stay_as_they_were(tmp_path: Path) -> None:
    before = dict(mpl.rcParams)
    write_figures(ONE, tmp_path)
    assert dict(mpl.rcParams) == before
    with pytest.raises(ZeroDivisionError), drawing():
        raise ZeroDivisionError
    assert dict(mpl.rcParams) == before


def svg_texts(data: bytes) -> str:
    found = ET.fromstring(data).iter("{http://www.w3.org/2000/svg}text")
    return " ".join("".join(text.itertext()) for text in found)


def test_names_are_shown_letter_for_letter_and_can_be_searched(tmp_path: Path) -> None:
    paths = [path for path in write_figures(NASTY, tmp_path) if path.suffix == ".svg"]
    shown = {path.name: svg_texts(path.read_bytes()) for path in paths}
    assert len(shown) == 6
    for name, text in shown.items():
        assert "$One$ <b>title</b> _of_ 100% & more" in text, name
        assert "(synthetic)" in text, name
    for level in ("model_$x$_<b>&", "$\\frac{", "\\u202eright to left", "\\alpha"):
        assert level in shown["maxims.svg"]
    assert "$5 & $6 <i>" in shown["maxims.svg"]


def test_a_script_that_the_font_lacks_is_text_in_svg_and_no_error(tmp_path: Path) -> None:
    few = {"insider": "Insider"}
    framing = made_framing(("모델", "मॉडल"), ("日本",), ("食べ物",), few, undefined=0)
    for path in write_figures(framing, tmp_path):
        if path.name.startswith("prevalence") and path.suffix == ".svg":
            assert "日本" in svg_texts(path.read_bytes())
            assert "모델" in svg_texts(path.read_bytes())


def test_a_folder_that_cannot_be_made_is_told(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(UsageError, match="cannot be written"):
        write_figures(ONE, tmp_path / "file")


# Machado, Oliveira and Fernandes (2009), full loss of one kind of cone, on linear RGB.
VISION = {
    "any": np.eye(3),
    "protanopia": np.array([[0.152286, 1.052583, -0.204868], [0.114503, 0.786281, 0.099216],
                            [-0.003882, -0.048116, 1.051998]]),
    "deuteranopia": np.array([[0.367322, 0.860646, -0.227968], [0.280085, 0.672501, 0.047413],
                              [-0.011820, 0.042940, 0.968881]]),
    "tritanopia": np.array([[1.255528, -0.076749, -0.178779], [-0.078411, 0.930809, 0.147602],
                            [0.004733, 0.691367, 0.303900]]),
}  # fmt: skip


def lab(colour: str, vision: Any) -> Any:
    """CIE Lab of a colour as it is seen."""
    rgb = np.array(to_rgb(colour))
    linear = np.where(rgb <= 0.04045, rgb / 12.92, ((rgb + 0.055) / 1.055) ** 2.4)
    seen = np.clip(vision @ linear, 0, 1)
    to_xyz = np.array([[0.4124564, 0.3575761, 0.1804375], [0.2126729, 0.7151522, 0.0721750],
                       [0.0193339, 0.1191920, 0.9503041]])  # fmt: skip
    x, y, z = (to_xyz @ seen) / np.array([0.95047, 1.0, 1.08883])

    def f(t: float) -> float:
        return t ** (1 / 3) if t > 0.008856 else 7.787 * t + 16 / 116

    return np.array([116 * f(y) - 16, 500 * (f(x) - f(y)), 200 * (f(y) - f(z))])


@pytest.mark.parametrize("vision", VISION.values(), ids=VISION)
def test_colours_are_told_apart_with_any_colour_vision(vision: Any) -> None:
    seen = [lab(colour, vision) for colour in PALETTE]
    far = [np.linalg.norm(a - b) for a, b in itertools.combinations(seen, 2)]
    assert min(far) > 15  # about 2 is just noticed
    first = [np.linalg.norm(a - b) for a, b in itertools.combinations(seen[:4], 2)]
    assert min(first) > 20
    white = lab("white", vision)
    assert min(np.linalg.norm(white - one) for one in seen) > 25


def test_levels_differ_without_colour() -> None:
    found = looks([str(n) for n in range(63)])
    assert len({(look.colour, look.hatch, look.marker) for look in found.values()}) == 63
    nine = list(found.values())[:9]
    assert len({look.hatch for look in nine}) == len({look.marker for look in nine}) == 9
