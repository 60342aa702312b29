"""The viewer in a terminal: three views on a run, keys, and nothing else.

    Viewer(Browsed(Path("runs/first"))).run()

What is shown and what is chosen is kept apart from the widgets that show it (``state``). No text of a
run ever reaches a function that reads markup: texts become rows of safe spans in ``browsing``, and rows
become strips here.
"""

from habitus.tui.app import Viewer

__all__ = ["Viewer"]
