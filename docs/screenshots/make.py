"""The pictures of the README, made anew from a run.

    make screenshots                                        # from runs/demo and runs/demo-labels
    python docs/screenshots/make.py RUN [LABELS] [-o DIR]

Needs Chromium and the packages of the tests. Each picture stays below 300 kB. `make demo` makes the
run that `make screenshots` takes.
"""

from __future__ import annotations

import argparse
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Literal

from playwright.sync_api import Browser, Page, sync_playwright

from habitus.reports import ReportOptions, make_report

HERE = Path(__file__).resolve().parent
MOST_BYTES = 300_000
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
    picture_view(given.run, given.out)


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
            size = path.stat().st_size
            if size > MOST_BYTES:
                raise SystemExit(f"{path} has {size:,} bytes, more than {MOST_BYTES:,}")
            print(f"{path}: {size:,} bytes")


def unfold(page: Page) -> None:
    """Open the first session and the first answer."""
    for kind in ("talk", "answer"):
        for part in page.locator(f"details.{kind}").all()[:1]:
            part.evaluate("e => { e.open = true; }")


def picture_view(run: Path, out: Path) -> None:
    """The transcript browser, as an SVG of Textual, when there is one."""


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
