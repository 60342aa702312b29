"""``labelling.json``: what a run of labels, or of answers to posts, says of itself.

note = read_labelling(run)
note.verdicts, note.made_up
"""

from __future__ import annotations

from collections import Counter
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field

from habitus.errors import StoreError
from habitus.models import Caps, ModelEntry
from habitus.running import read_made_up, refuse_unknown
from habitus.store import RunDir

ITEMS, LABELS = "items", "labels"  # tables of records
_FILE = "labelling.json"


class VerdictNote(BaseModel):
    """One verdict that every item gets, and how it is asked for."""

    model_config = ConfigDict(frozen=True)

    judge: str
    variant: str
    labels: tuple[str, ...]
    present: tuple[str, ...]
    model: str
    form: str
    question: bool
    batched: bool


class Labelling(BaseModel):
    """``labelling.json``: what a reader of the run must know.

    ``kind`` says what the items are: ``posts`` (answers to posts), ``responses`` (of a CCBench
    run), ``rows`` (of a file). ``made_up`` are models, judges and targets alike, whose answers no
    model gave: what rests on them is synthetic. ``totals`` are the records of each table when all is
    done.
    """

    model_config = ConfigDict(frozen=True)

    origin: str
    kind: str
    made_up: tuple[str, ...] = ()
    totals: dict[str, int]
    verdicts: tuple[VerdictNote, ...] = ()


class LabelsConfig(BaseModel):
    """``experiment.json`` of a run of labels."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    kind: Literal["labels"]
    items: str
    seed: int
    judges: list[dict[str, Any]]
    models: dict[str, ModelEntry]
    limits: Caps = Field(default_factory=Caps)


class AnswersConfig(BaseModel):
    """``experiment.json`` of a run of answers to posts."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    kind: Literal["answers"]
    posts: str
    prompt: list[list[str]]
    seed: int
    temperature: float | None
    top_p: float | None
    max_tokens: int | None
    keep_cut: bool
    models: dict[str, ModelEntry]
    limits: Caps = Field(default_factory=Caps)


def capped(caps: Caps) -> dict[str, Any]:
    """What the configuration of a run says of its caps; nothing where it has none."""
    return {"limits": caps.model_dump(mode="json")} if caps.limits else {}


def keep_labelling(run: RunDir, note: Labelling) -> None:
    """Write the note down, with those of the run's own models that make answers up.

    A session that is asked for less than an earlier one does not make the run smaller.
    """
    made_up = tuple(sorted({*note.made_up, *read_made_up(run)}))
    totals = Counter(note.totals)
    if (run.path / _FILE).exists():
        totals |= Counter(read_labelling(run).totals)
    whole = note.model_copy(update={"made_up": made_up, "totals": dict(totals)})
    run.write(_FILE, whole.model_dump_json(indent=1).encode())


def read_labelling(run: RunDir) -> Labelling:
    """What a run of labels says of itself.

    Raises:
        StoreError: it is none, the file is damaged, or a later version made it.
    """
    path = run.path / _FILE
    try:
        note = Labelling.model_validate_json(path.read_bytes())
    except FileNotFoundError:
        raise StoreError(f"{run.path} holds no labels; `habitus judge` makes them") from None
    except ValueError as error:
        raise StoreError(f"{path} is damaged ({type(error).__name__}); judge again") from None
    refuse_later(run)
    return note


def refuse_later(run: RunDir) -> None:
    """Refuse a run of labels, or of answers, that holds what only a later version knows.

    Raises:
        StoreError: with what it is, and what to do.
    """
    kind = AnswersConfig if run.config.get("kind") == "answers" else LabelsConfig
    refuse_unknown(run, kind, run.config)
