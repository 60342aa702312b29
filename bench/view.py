"""CPU seconds to open a run in the viewer, to move in it, to filter and to search.

    habitus run ccbench-health-planted --out /tmp/planted
    PYTHONPATH=engine python bench/view.py /tmp/planted

The screen is a headless one of 200 x 60; keys go through the whole application.
"""

from __future__ import annotations

import asyncio
import resource
import sys
import time
from collections.abc import Callable
from pathlib import Path

_MOVES = 300


class Clock:
    """Says what passed since it was asked last."""

    def __init__(self) -> None:
        self.lap()

    def lap(self) -> tuple[float, float]:
        """CPU and wall seconds."""
        last = getattr(self, "_at", (0.0, 0.0))
        self._at = (time.process_time(), time.perf_counter())
        return self._at[0] - last[0], self._at[1] - last[1]

    def say(self, what: str, count: int = 1, unit: str = "s") -> None:
        cpu, wall = self.lap()
        scale = 1000 / count if unit == "ms" else 1
        print(f"{what:<56}{cpu * scale:8.2f} {unit} CPU {wall * scale:8.2f} {unit}")


async def in_the_viewer(path: Path, clock: Clock) -> None:
    from habitus.browsing import Browsed
    from habitus.tui import Viewer

    clock.say("import")
    browsed = Browsed(path)
    clock.say("index: ids and outcomes of everything")
    app = Viewer(browsed, poll=False)
    async with app.run_test(size=(200, 60)) as pilot:
        await pilot.pause()
        clock.say("first screen")
        for view, what in (("1", "sessions"), ("2", "queries with four responses")):
            await pilot.press(view)
            clock.lap()
            for _ in range(_MOVES):
                await pilot.press("right_square_bracket")
            clock.say(f"a move through {what}", _MOVES, "ms")


def by_hand(path: Path, clock: Clock) -> None:
    from habitus.browsing import Browsed, Filter, Wanted, question_tree

    browsed = Browsed(path)
    assert browsed.study is not None
    clock.lap()
    facts = browsed.facts("responses")
    clock.say(f"all {sum(map(len, facts.by_group.values())):,} verdicts, once, in the background")
    asked = Filter(state="avoid", verdict="met", setting="hist")
    question_tree(browsed.study, Wanted(asked, facts))
    clock.say("a filter over them")
    browsed.search("responses", "no such words")
    clock.say("a search through all texts, in the background")


def main() -> None:
    path, clock = Path(sys.argv[1]), Clock()
    steps: list[Callable[[], None]] = [
        lambda: asyncio.run(in_the_viewer(path, clock)),
        lambda: by_hand(path, clock),
    ]
    for step in steps:
        step()
    print(f"peak memory {resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024:.0f} MiB")


if __name__ == "__main__":
    main()
