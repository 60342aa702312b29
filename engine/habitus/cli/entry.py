"""From arguments to an exit code: every error becomes one message.

0 success, 1 findings, 2 wrong usage or bad input, 70 a fault of the program itself,
130 interrupted, 141 the reader of a pipe went away
"""

from __future__ import annotations

import contextlib
import errno
import io
import os
import signal
import sys
from collections.abc import Sequence
from typing import NoReturn

from habitus.content.visible import safe_text
from habitus.errors import HabitusError

DEBUG = "HABITUS_DEBUG"
FAULT, INTERRUPTED, CLOSED_PIPE = 70, 130, 141


def main() -> NoReturn:
    """Run the command line and leave with its exit code."""
    _occupy_streams()
    sys.unraisablehook = _interrupt_again
    try:
        code = run()
    except KeyboardInterrupt:  # a second one, while the first was being told
        code = INTERRUPTED
    if code == INTERRUPTED:  # one more ends what is left to do at once, and without a traceback
        signal.signal(signal.SIGINT, signal.SIG_DFL)
    sys.exit(code)


def run(arguments: Sequence[str] | None = None) -> int:
    """Run one command and return its exit code; never raises.

    Args:
        arguments: what stands after ``habitus``; those of the process by default.
    """
    _show_what_cannot_be_encoded()
    try:
        code = _dispatch(arguments)
        sys.stdout.flush()
    except HabitusError as error:
        return _fail(str(error), error.exit_code)
    except KeyboardInterrupt:
        return _fail("interrupted", INTERRUPTED)
    except BrokenPipeError:
        _silence(sys.__stdout__)
        return CLOSED_PIPE
    except OSError as error:
        return _refused(error)
    except Exception as error:  # the last door: whatever else went wrong is a fault of ours
        return _fault(error)
    return code


def _interrupt_again(dropped: sys.UnraisableHookArgs) -> None:
    """Send an interrupt once more that met a destructor, where Python reports and forgets it."""
    if not issubclass(dropped.exc_type, KeyboardInterrupt):
        sys.__unraisablehook__(dropped)
        return
    from threading import Timer

    again = Timer(0.01, os.kill, (os.getpid(), signal.SIGINT))  # here it would be dropped, too
    again.daemon = True
    again.start()


def _dispatch(arguments: Sequence[str] | None) -> int:
    from typer import Abort
    from typer.exceptions import TyperException

    from habitus.cli.root import root

    try:
        given = None if arguments is None else list(arguments)
        result = root().main(given, prog_name="habitus", standalone_mode=False)
    except TyperException as error:
        show = getattr(error, "show", None)  # usage and hint, plain, on stderr
        return error.exit_code if show is None else show() or error.exit_code
    except Abort:
        raise KeyboardInterrupt from None
    except SystemExit as leaving:  # completion leaves this way
        if isinstance(leaving.__context__, BrokenPipeError):  # Typer makes 1 of it: findings
            raise leaving.__context__ from None
        return leaving.code if isinstance(leaving.code, int) else 0
    return result if isinstance(result, int) else 0


def _occupy_streams() -> None:
    """Give standard streams that were closed to nothing.

    Otherwise the first files that are opened get their numbers: what is meant for a terminal would
    be written into a run, and the event loop ends the process when it meets them.
    """
    while (handle := os.open(os.devnull, os.O_RDWR)) <= 2:
        pass
    os.close(handle)
    for name, mode in (("stdin", "r"), ("stdout", "w"), ("stderr", "w")):
        if getattr(sys, name) is None:
            stream = os.fdopen(os.open(os.devnull, os.O_RDWR), mode, encoding="utf-8")
            setattr(sys, name, stream)


def _fail(message: str, code: int) -> int:
    with contextlib.suppress(OSError):  # nobody reads it any more, or its disk is full
        print(safe_text(message), file=sys.stderr, flush=True)
    return code


def _fault(error: Exception, what: str = "") -> int:
    if os.environ.get(DEBUG):
        import traceback

        return _fail("".join(traceback.format_exception(error)), FAULT)
    if not what:
        name = type(error).__name__
        what = "habitus met a fault of its own, please report it: "
        what += f"{name}: {error}" if str(error) else name
    return _fail(f"{what}\nset {DEBUG}=1 and run again to see where it happened", FAULT)


def _refused(error: OSError) -> int:
    """What the operating system refused: a full disk and the like is no mistake at the keyboard."""
    if error.errno == errno.ENAMETOOLONG:
        return _fail(
            f"the name {str(error.filename)[:60]!r}... is too long", HabitusError.exit_code
        )
    return _fault(error, f"the operating system refused: {error}")


def _show_what_cannot_be_encoded() -> None:
    """On a terminal that knows no UTF-8, show escapes instead of failing."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")


def _silence(stream: object) -> None:
    """Point a stream whose reader is gone at nothing, so that the last flush is quiet."""
    if isinstance(stream, io.TextIOWrapper):
        with contextlib.suppress(OSError, ValueError):
            os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())
