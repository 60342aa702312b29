"""Files damaged as people and disks damage them: for tests that nothing ends in a traceback.

    @thorough
    @given(damaged_text(SOME_FILES), ...)

Data is damaged in its structure (a part replaced, renamed, left out, doubled, wrapped) and text in
its letters (pieces put in, cut out, doubled; bytes that are no text). ``thorough`` gives a property
few examples in a usual test run and 2,000 under ``make soak``.
"""

from __future__ import annotations

import contextlib
import copy
import io
import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from hypothesis import HealthCheck, settings
from hypothesis import strategies as st

from habitus.cli import run
from habitus.cli.entry import DEBUG
from habitus.errors import HabitusError

SOAK = settings.get_current_profile_name() == "soak"
_CHECKS = [
    HealthCheck.function_scoped_fixture,
    HealthCheck.too_slow,
    HealthCheck.data_too_large,
    HealthCheck.large_base_example,
    HealthCheck.filter_too_much,
]
thorough = settings(
    max_examples=2000 if SOAK else 8,
    deadline=None,
    derandomize=not SOAK,
    suppress_health_check=_CHECKS,
)

#: Pieces that have a meaning to a reader of YAML, JSON, CSV, Markdown or of a terminal.
PIECES = (
    "\t", "&a ", "*a", "<<: ", "!!python/object/apply:os.system ", "!!set ", "!!binary ", "!x ",
    "%YAML 1.1\n", "%TAG ! x\n", "---\n", "...\n", "? ", "- ", ": ", ":", "#", "|\n", ">\n", "'",
    '"', "[", "]", "{", "}", ",", "\\", "\\u", "{{x}}", "{{response|fenced}}", "{{", "}}", "~~~\n",
    "<!-- system -->\n", "<!-- user -->\n", "<!-- note:", "\0", "\x1b[2J", "\x85", "\u2028", "\ufeff",
    "\u200b", "\U0001f35a", "\r", "\n", "\n\n", " ", "1e999", "0x", "0o9", "9" * 5000, ".nan", "null",
    "true", "NO", "2001-01-01", "../../x", "a/b", "=1+1", "@", "[" * 3000, '{"a":' * 3000, "id: x\n",
)  # fmt: skip
ODD: st.SearchStrategy[Any] = st.sampled_from(
    [
        None, True, False, 0, -1, 1, 1.5, 1e308, 10**30, -(10**30), float("inf"), float("nan"), "", " ",
        "x", "NO", "0", "a/b", "../../x", "..", "/", "{{x}}", "{{", "[1]", "\0", "\ud800", "\u202e",
        "\n", "a\nb", "x" * 300, "ü", "\U0001f35a", "=1+1", [], {}, [None], [[]], {"": 0}, {"x": {}},
    ]
)  # fmt: skip
ANY_JSON = st.recursive(
    ODD | st.text(max_size=6) | st.integers() | st.floats(),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3)
    ),
    max_leaves=6,
)


def places(data: Any, at: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    """The path of every part of some data, the whole first."""
    if not isinstance(data, dict | list):
        return [at]
    pairs = data.items() if isinstance(data, dict) else enumerate(data)
    return [at, *(place for key, part in pairs for place in places(part, (*at, key)))]


@dataclass(frozen=True)
class Whole:
    """A file before it is damaged: its bytes, and its data where it has some."""

    text: bytes = field(repr=False)
    data: Any = field(default=None, repr=False)


@st.composite
def damaged(draw: st.DrawFn, whole: Any, most: int = 3) -> Any:
    """Data with one to ``most`` of its parts changed."""
    data = copy.deepcopy(whole.data if isinstance(whole, Whole) else whole)
    for _ in range(draw(st.integers(1, most))):
        place = draw(st.sampled_from(places(data)))
        data = _changed(draw, data, place)
    return data


def _changed(draw: st.DrawFn, data: Any, place: tuple[Any, ...]) -> Any:
    if not place:
        return copy.deepcopy(draw(ANY_JSON)) if draw(st.integers(0, 9)) == 0 else data
    around = data
    for key in place[:-1]:
        around = around[key]
    _change_part(draw, around, place[-1])
    return data


def _change_part(draw: st.DrawFn, around: Any, key: Any) -> None:
    match draw(st.integers(0, 6)):
        case 0:
            del around[key]
        case 1 if isinstance(around, dict):
            around[draw(st.sampled_from(["id", "x", "", "a b", "../x"]) | st.text(max_size=4))] = (
                around.pop(key)
            )
        case 2 if isinstance(around, list):
            around.insert(key, copy.deepcopy(around[key]))
        case 3:
            around[key] = [around[key]]
        case 4 if isinstance(around[key], str):
            text = around[key]
            at = draw(st.integers(0, len(text)))
            around[key] = text[:at] + draw(st.sampled_from(PIECES)) + text[at:]
        case _:
            around[key] = copy.deepcopy(draw(ODD if draw(st.booleans()) else ANY_JSON))


@st.composite
def damaged_bytes(draw: st.DrawFn, file: bytes | Whole, most: int = 3) -> bytes:
    """Bytes with pieces put in, cut out, doubled or made into noise, one to ``most`` times."""
    whole = file.text if isinstance(file, Whole) else file
    for _ in range(draw(st.integers(1, most))):
        at = draw(st.integers(0, len(whole)))
        end = min(len(whole), at + draw(st.sampled_from([0, 1, 1, 2, 7, 40, 2**20])))
        piece = draw(
            st.sampled_from(PIECES).map(lambda text: text.encode())
            | st.binary(max_size=4)
            | st.just(whole[at:end] * 2)
            | st.just(b"")
        )
        whole = whole[:at] + piece + whole[end:]
    return whole


@st.composite
def damaged_text(draw: st.DrawFn, files: Sequence[Whole]) -> bytes:
    """One of some files, damaged in its data (then written as JSON) or in its bytes."""
    file = draw(st.sampled_from(files))
    if file.data is None or draw(st.booleans()):
        return draw(damaged_bytes(file))
    return json.dumps(draw(damaged(file)), ensure_ascii=draw(st.booleans())).encode(
        "utf-8", "surrogatepass"
    )


def tell(read: Callable[[], object]) -> str:
    """What a reader says of what it cannot read; "" when it reads it. Nothing else is raised."""
    try:
        read()
    except HabitusError as error:
        message = str(error)
        assert message.strip()
        assert len(message) < 200_000
        return message
    return ""


def command(*words: str) -> tuple[int, str, str]:
    """A command in this process: exit code, stdout, stderr. It ends well, or with one message."""
    out, err = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        code = run(words)
    said = err.getvalue()
    assert code in {0, 1, 2}, (code, words, said, f"set {DEBUG}=1")
    assert "Traceback" not in said
    assert said.strip() or code != 2
    return code, out.getvalue(), said
