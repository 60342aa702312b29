"""The ``habitus`` command: one sub-command a file, data on stdout, talk on stderr.

``habitus.cli.root`` holds the table of sub-commands, ``habitus.cli.entry`` turns errors into
messages and exit codes, ``habitus.cli.output`` prints. A sub-command is imported when it is
called, and heavy libraries inside it where they are used.
"""

from habitus.cli.entry import main, run

__all__ = ["main", "run"]
