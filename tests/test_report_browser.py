"""The report in a browser, with texts that try to act: what is seen, heard, pressed and asked for.

Needs Chromium (Debian's package ``chromium``). Without one these tests are skipped, and say so; with
``HABITUS_BROWSER=required`` in the environment, as in CI, they fail instead.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Browser, Page, sync_playwright

from habitus.reports import ReportOptions, make_report
from report_fixture import HOSTILE, hostile_labels, hostile_run

pytestmark = pytest.mark.browser

WIDTHS = (360, 800, 1440)
SCHEMES = ("light", "dark")
#: WCAG 2.0 to 2.2, A and AA, and what axe takes for good practice.
RULES = ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa", "best-practice"]
OPEN_ALL = "() => document.querySelectorAll('details').forEach(d => { d.open = true; })"


def chromium() -> str:
    """The program, or a skipped test, or a failed one where it is required."""
    for name in ("chromium", "chromium-browser", "google-chrome"):
        found = shutil.which(name)
        if found:
            return found
    missing = "no Chromium: `apt-get install chromium` makes it possible to test the report"
    if os.environ.get("HABITUS_BROWSER") == "required":
        pytest.fail(missing)
    pytest.skip(missing)


@pytest.fixture(scope="module")
def browser(file: Path) -> Iterator[Browser]:  # the run is made first: Playwright takes the loop
    path = chromium()
    with sync_playwright() as playwright:
        found = playwright.chromium.launch(executable_path=path)
        yield found
        found.close()


@pytest.fixture(scope="module")
def file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("browser")
    made = make_report(hostile_run(folder), ReportOptions(labels=hostile_labels(folder)))
    path = folder / "report.html"
    path.write_bytes(made.html)
    return path


@dataclass
class Opened:
    """A page, and everything it asked for or complained of."""

    page: Page
    requests: list[str] = field(default_factory=list)
    answered: list[str] = field(default_factory=list)
    complaints: list[str] = field(default_factory=list)


@contextmanager
def opened(browser: Browser, file: Path, width: int = 1440, **more: Any) -> Iterator[Opened]:
    context = browser.new_context(viewport={"width": width, "height": 900}, **more)
    try:
        found = Opened(context.new_page())
        found.page.on("request", lambda request: found.requests.append(request.url))
        found.page.on("response", lambda response: found.answered.append(response.url))
        found.page.on("console", lambda message: found.complaints.append(message.text))
        found.page.on("pageerror", lambda error: found.complaints.append(str(error)))
        found.page.on("dialog", lambda dialog: found.complaints.append(dialog.message))
        found.page.goto(file.as_uri())
        yield found
    finally:
        context.close()


@pytest.mark.parametrize("scheme", SCHEMES)
@pytest.mark.parametrize("width", WIDTHS)
def test_nothing_acts_nothing_is_asked_for_and_nothing_sticks_out(
    browser: Browser, file: Path, width: int, scheme: str
) -> None:
    with opened(browser, file, width, color_scheme=scheme) as found:
        found.page.evaluate(OPEN_ALL)
        assert found.page.evaluate("() => window.acted === undefined")
        assert found.page.evaluate("() => document.documentElement.scrollWidth") <= width
        assert found.page.evaluate("() => document.title").count("<script>") == 1
        assert found.page.locator("main").is_visible()
    assert found.requests == [file.as_uri()]
    assert found.complaints == []


@pytest.mark.parametrize("scheme", SCHEMES)
@pytest.mark.parametrize("width", [360, 1440])
def test_axe_finds_nothing(browser: Browser, file: Path, width: int, scheme: str) -> None:
    with opened(browser, file, width, color_scheme=scheme) as found:
        found.page.evaluate(OPEN_ALL)
        rules = {"runOnly": {"type": "tag", "values": RULES}, "resultTypes": ["violations"]}
        done = Axe().run(found.page, options=rules)
    assert [
        (v["id"], v["help"], [node["target"] for node in v["nodes"][:5]])
        for v in done.response["violations"]
    ] == []


def column(page: Page, caption: str, number: int) -> list[str]:
    table = page.locator("table", has=page.locator("caption", has_text=caption)).first
    return table.locator(f"tbody tr > :nth-child({number})").all_inner_texts()


def test_a_table_is_sorted_by_keyboard_and_says_so(browser: Browser, file: Path) -> None:
    with opened(browser, file) as found:
        page = found.page
        before = column(page, "CCBench results", 2)
        assert before == ["none", "hist", "ccot", "norms"]
        heading = page.get_by_role("columnheader", name="Setting").first
        heading.get_by_role("button").focus()
        page.keyboard.press("Enter")
        assert column(page, "CCBench results", 2) == sorted(before)
        assert heading.get_attribute("aria-sort") == "ascending"
        page.keyboard.press("Space")
        assert column(page, "CCBench results", 2) == sorted(before, reverse=True)
        assert heading.get_attribute("aria-sort") == "descending"
        counts = page.get_by_role("columnheader", name="n of Follow").first
        counts.get_by_role("button").click()
        numbers = [float(text.replace(",", "")) for text in column(page, "CCBench results", 4)]
        assert numbers == sorted(numbers)
        assert heading.get_attribute("aria-sort") is None
    assert found.complaints == []


def test_the_first_key_leads_past_the_contents(browser: Browser, file: Path) -> None:
    with opened(browser, file) as found:
        found.page.keyboard.press("Tab")
        link = found.page.get_by_role("link", name="Skip to the report")
        box = link.bounding_box()
        assert box is not None
        assert box["x"] >= 0
        found.page.keyboard.press("Enter")
        assert found.page.evaluate("() => document.activeElement.id") == "main"


def test_all_of_it_can_be_read_without_script(browser: Browser, file: Path) -> None:
    with opened(browser, file, java_script_enabled=False) as found:
        assert column(found.page, "CCBench results", 2) == ["none", "hist", "ccot", "norms"]
        assert found.page.locator("button").count() == 0
        talk = found.page.locator("details.talk").first
        talk.locator("summary").click()
        assert talk.locator("li").first.is_visible()
    assert found.requests == [file.as_uri()]


def test_the_policy_of_the_page_stops_script_style_and_requests(
    browser: Browser, file: Path
) -> None:
    with opened(browser, file) as found:
        found.page.evaluate(
            """() => {
              const script = document.createElement('script');
              script.textContent = 'window.acted = 1';
              document.body.append(script);
              document.body.insertAdjacentHTML('beforeend', '<p id="p" style="color: red">x</p>'
                + '<img src="https://example.org/x.png" onerror="window.acted = 2">');
            }"""
        )
        found.page.wait_for_function("() => document.images[0].complete")
        assert found.page.evaluate("() => window.acted === undefined")
        style = "() => getComputedStyle(document.getElementById('p')).color"
        assert found.page.evaluate(style) != "rgb(255, 0, 0)"
    assert len([text for text in found.complaints if "Content Security Policy" in text]) >= 3
    assert found.answered == [file.as_uri()]  # the browser itself refused the other


def contrast(one: str, other: str) -> float:
    """WCAG's contrast of two colours as ``rgb(r, g, b)``."""

    def luminance(colour: str) -> float:
        parts = [float(p) / 255 for p in colour[4:-1].split(",")[:3]]
        r, g, b = (c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in parts)
        return 0.2126 * r + 0.7152 * g + 0.0722 * b

    high, low = sorted((luminance(one), luminance(other)), reverse=True)
    return (high + 0.05) / (low + 0.05)


COLOURS = """(inside) => [...new Set([...document.querySelectorAll('.drawing text')]
  .filter(t => (t.closest('.own') !== null) === inside)
  .map(t => getComputedStyle(t).fill))]"""


@pytest.mark.parametrize("scheme", SCHEMES)
def test_figures_are_read_as_well_in_the_dark(browser: Browser, file: Path, scheme: str) -> None:
    with opened(browser, file, color_scheme=scheme) as found:
        paper = found.page.evaluate("() => getComputedStyle(document.body).backgroundColor")
        colours = found.page.evaluate(COLOURS, False)
        on_tiles = found.page.evaluate(COLOURS, True)
    assert (contrast(paper, "rgb(0, 0, 0)") > 10) is (scheme == "light")
    assert colours
    assert min(contrast(paper, colour) for colour in colours) >= 4.5
    assert set(on_tiles) <= {"rgb(34, 34, 34)", "rgb(255, 255, 255)"}


def test_print_shows_what_is_folded_but_the_numbers_of_figures(
    browser: Browser, file: Path
) -> None:
    with opened(browser, file) as found:
        found.page.emulate_media(media="print")
        assert found.page.locator("details.talk li").first.is_visible()
        assert found.page.locator("details.numbers").first.is_hidden()
        assert found.page.locator("nav").is_hidden()
        assert len(found.page.pdf(prefer_css_page_size=True)) > 50_000


def test_directions_of_texts_are_their_own(browser: Browser, file: Path) -> None:
    with opened(browser, file) as found:
        found.page.evaluate(OPEN_ALL)
        text = found.page.locator("div.text", has_text=HOSTILE["right to left"][:4]).first
        assert text.evaluate("e => getComputedStyle(e).direction") == "rtl"
        main = found.page.locator("main")
        assert main.evaluate("e => getComputedStyle(e).direction") == "ltr"
