"""The pictures of the README, made anew from a run.

    make screenshots                                        # from runs/demo and runs/demo-labels
    python docs/screenshots/make.py RUN [LABELS] [-o DIR]

Needs Chromium and the packages of the tests. Each picture stays below 300 kB. `make demo` makes the
run that `make screenshots` takes.
"""

from __future__ import annotations

import argparse
import asyncio
import re
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Literal

from playwright.sync_api import Browser, Page, sync_playwright

from habitus.browsing import Browsed
from habitus.reports import ReportOptions, make_report
from habitus.tui import Viewer

HERE = Path(__file__).resolve().parent
MOST_BYTES = 300_000
REMOTE_FONT = re.compile(r"@font-face \{.*?\}", re.DOTALL)
#: Where each picture begins, how wide and how high the window is, and its colours.
SHOTS: dict[str, tuple[str, int, int, Literal["light", "dark"]]] = {
    "report": ("body", 1100, 960, "light"),
    "report-figures": ("#figures", 1100, 900, "light"),
    "report-transcripts": ("#transcripts", 1100, 760, "light"),
    "report-phone-dark": ("#results", 390, 760, "dark"),
}


def main() -> None:
    """Make all pictures."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("run", type=Path)
    parser.add_argument("labels", type=Path, nargs="?")
    parser.add_argument("-o", "--out", type=Path, default=HERE)
    given = parser.parse_args()
    labels = given.labels if given.labels and given.labels.exists() else None
    made = make_report(given.run, ReportOptions(labels=labels))
    with tempfile.TemporaryDirectory() as folder:
        page = Path(folder) / "report.html"
        page.write_bytes(made.html)
        picture_report(page, given.out)
    picture_view(given.run, labels, given.out)


def picture_report(page: Path, out: Path) -> None:
    """The report in Chromium."""
    out.mkdir(parents=True, exist_ok=True)
    with chromium() as browser:
        for name, (where, width, height, scheme) in SHOTS.items():
            path = out / f"{name}.png"
            opened = browser.new_page(
                viewport={"width": width, "height": height}, color_scheme=scheme
            )
            opened.goto(page.as_uri())
            unfold(opened)
            opened.locator(where).evaluate("e => e.scrollIntoView({block: 'start'})")
            opened.screenshot(path=path)
            opened.close()
            weigh(path)


def unfold(page: Page) -> None:
    """Open the first session and the first answer."""
    for kind in ("talk", "answer"):
        for part in page.locator(f"details.{kind}").all()[:1]:
            part.evaluate("e => { e.open = true; }")


def picture_view(run: Path, labels: Path | None, out: Path) -> None:
    """The viewer: its transcripts and its responses, drawn by Textual and opened in Chromium."""
    drawn = asyncio.run(views(run, labels))
    with chromium() as browser:
        for name, svg in drawn.items():
            opened = browser.new_page(viewport={"width": 1240, "height": 760})
            opened.set_content(f"<body style='margin: 0'>{REMOTE_FONT.sub('', svg)}")
            path = out / f"{name}.png"
            opened.locator("svg").first.screenshot(path=path)
            opened.close()
            weigh(path)


async def views(run: Path, labels: Path | None) -> dict[str, str]:
    """The screens of the viewer by the names of their pictures, as SVG."""
    viewer = Viewer(Browsed(run, labels=labels), poll=False)
    drawn = {}
    async with viewer.run_test(size=(132, 38)) as pilot:
        for key, name in (("1", "view-transcripts"), ("2", "view-responses")):
            await pilot.press(key)
            await pilot.pause(2)
            drawn[name] = viewer.export_screenshot(title="habitus view")
    return drawn


def weigh(path: Path) -> None:
    """Refuse a picture that is too large to keep."""
    size = path.stat().st_size
    if size > MOST_BYTES:
        raise SystemExit(f"{path} has {size:,} bytes, more than {MOST_BYTES:,}")
    print(f"{path}: {size:,} bytes")


@contextmanager
def chromium() -> Iterator[Browser]:
    """Debian's Chromium, or another that is there."""
    names = ("chromium", "chromium-browser", "google-chrome")
    found = next(filter(None, map(shutil.which, names)), None)
    if found is None:
        raise SystemExit("no Chromium: apt-get install chromium")
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=found)
        yield browser
        browser.close()


if __name__ == "__main__":
    main()
