"""How far a compressed file may expand: the one rule for all that is unpacked.

    expansion = Expansion(path)
    expansion.add(len(piece))     # UsageError when more came out than such a file holds

What matters first is memory: whoever unpacks does it in pieces of a bounded size, and says how long
a line, a text or a part may be. This is the second bound, on all that comes out together, so that a
small file cannot keep a machine busy for days. Up to ``ALWAYS`` bytes any file may expand; beyond,
to ``RATIO`` times its own size, or to as many times as the variable ``HABITUS_MAX_EXPANSION`` says.

No form of file is known here.
"""

from __future__ import annotations

import os
import stat
import sys
from pathlib import Path

from habitus.errors import UsageError

#: Bytes that any file may expand to.
ALWAYS = 2**28
#: Times its size: dumps of posts reach 12, repetitive lines and sheets 60 and more.
RATIO = 250
#: What a line or a row counts beside its text: work, however short it is.
ROW = 64
SWITCH = "HABITUS_MAX_EXPANSION"


class Expansion:
    """Counts what comes out of one file.

    Args:
        path: the file; its size is taken now.

    Raises:
        UsageError: the variable says no whole number above zero.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self.ratio = _switched() or RATIO
        about = path.stat()
        known = stat.S_ISREG(about.st_mode)  # a pipe has no size
        self.most = max(ALWAYS, self.ratio * about.st_size) if known else sys.maxsize
        self.size = 0

    def add(self, size: int) -> None:
        """Count bytes that came out, or that are about to.

        Raises:
            UsageError: all together are more than the file may expand to.
        """
        self.size += size
        self.check(self.size)

    def check(self, size: int) -> None:
        """Hold a number of bytes against what the file may expand to, without counting them.

        Raises:
            UsageError: it is more.
        """
        if size > self.most:
            raise UsageError(
                f"{self.path} expands to more than {self.most:,} bytes, over {self.ratio:,} times its "
                f"size, as files do that are made to exhaust a machine; if it is what you mean to "
                f"read, set {SWITCH} to more than {self.ratio}"
            )


def _switched() -> int | None:
    """The ratio that the user set, if any."""
    text = os.environ.get(SWITCH, "").strip()
    if not text:
        return None
    if not (text.isascii() and text.isdigit() and len(text) < 19 and int(text)):
        raise UsageError(f"{SWITCH} is {text[:40]!r}; it must be a whole number above zero")
    return int(text)
