"""What a run of labels says of itself in ``labelling.json``: its targets and its verdicts.

    about = read_about(run.path)
    about.verdicts[0].labels       # ("Insider", "Outsider")

Only what an export needs is read; what else stands there is passed on as it is.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from pydantic import BaseModel, ConfigDict, ValidationError

from habitus.errors import StoreError, UsageError

_FILE = "labelling.json"


class Asked(BaseModel):
    """One verdict of a run: who gives it, its labels, and which of them count as present."""

    model_config = ConfigDict(frozen=True, extra="allow")

    judge: str
    variant: str = ""
    labels: tuple[str, ...]
    present: tuple[str, ...] = ()

    @property
    def name(self) -> str:
        """``maxims.quantity``, or the judge's id alone."""
        return f"{self.judge}.{self.variant}" if self.variant else self.judge

    @property
    def absent(self) -> tuple[str, ...]:
        """The labels that do not count as present: for a maxim, those that violate it."""
        return tuple(label for label in self.labels if label not in self.present)


class About(BaseModel):
    """The part of a labelling that exports read."""

    model_config = ConfigDict(frozen=True, extra="allow")

    targets: tuple[str, ...]
    verdicts: tuple[Asked, ...]
    origin: str = ""
    made_up: tuple[str, ...] = ()

    def as_json(self) -> dict[str, Any]:
        """Everything the file says."""
        return self.model_dump(mode="json")


def read_about(run: Path) -> About:
    """What the labelling of a run says of itself.

    Raises:
        UsageError: the run has no labels.
        StoreError: the file is damaged.
    """
    path = run / _FILE
    try:
        return About.model_validate_json(path.read_bytes())
    except FileNotFoundError:
        raise UsageError(
            f"{run} has no labels ({_FILE} is missing); make them with `habitus judge`"
        ) from None
    except OSError as error:
        raise StoreError(f"{path} cannot be read: {error.strerror}") from None
    except ValidationError as error:
        first = error.errors()[0]
        where = ".".join(map(str, first["loc"])) or "the file"
        raise StoreError(
            f"{path} is damaged ({where}: {first['msg']}); restore it from a copy"
        ) from None
