"""Screens as text files in ``tests/snapshots``: what a person would see, kept to be compared.

    HABITUS_SNAPSHOTS=renew python -m pytest tests/test_view.py      # writes them anew
    git diff tests/snapshots                                         # and this is what changed

A screen is kept without its colours: what it says must be clear without them.
"""

from __future__ import annotations

import os
from io import StringIO
from pathlib import Path

from rich.console import Console
from textual.app import App

FOLDER = Path(__file__).parent / "snapshots"
RENEW = "HABITUS_SNAPSHOTS"


def screen(app: App[None]) -> str:
    """What is on the screen, as text; every row without the blanks at its end."""
    width, height = app.size
    console = Console(
        width=width, height=height, file=StringIO(), record=True, force_terminal=True,
        color_system=None, legacy_windows=False,
    )  # fmt: skip
    # What Textual's own screenshots are made of; it has no public way to get text.
    found = app.screen._compositor.render_update(full=True, screen_stack=app._background_screens)
    console.print(found)
    return "\n".join(line.rstrip() for line in console.export_text().split("\n")).rstrip() + "\n"


def compare(name: str, text: str) -> None:
    """Compare a text with the one that is kept under a name."""
    path = FOLDER / f"{name}.txt"
    if os.environ.get(RENEW) == "renew":
        FOLDER.mkdir(exist_ok=True)
        path.write_text(text, encoding="utf-8")
    kept = path.read_text(encoding="utf-8") if path.exists() else "(there is none)\n"
    assert text == kept, f"{path.name} differs; look at both, then set {RENEW}=renew\n{text}"
