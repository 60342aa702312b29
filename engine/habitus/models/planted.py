"""A simulated target that meets recommendations with known probabilities.

Its replies carry, for each recommendation they may be scored by, a marker drawn with the planted
probability of (setting, state). Run through the real stages, the planted rates must come back:
that is how estimators and intervals are checked. Its results are marked synthetic everywhere.

    planted: {backend: planted, options: {rates: {hist: {follow: 0.10, avoid: 0.50}}}}
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated

from pydantic import Field, ValidationError

from habitus.content import ContentModel
from habitus.errors import ModelError
from habitus.models.entry import ModelEntry, Opening
from habitus.models.scripted import ScriptedModel, first_line, marker
from habitus.records import Outcome, Reply, Request
from habitus.records.seeds import uniform

Probability = Annotated[float, Field(ge=0, le=1)]


class PlantedRates(ContentModel):
    """The probabilities of one setting."""

    follow: Probability
    avoid: Probability

    def of(self, recommendation: str) -> float:
        """The probability that belongs to a recommendation's state."""
        return self.follow if recommendation.split("/")[1] == "follow" else self.avoid


class PlantedOptions(ContentModel):
    """``options:`` of a planted entry."""

    rates: Mapping[str, PlantedRates] = Field(min_length=1, description="by setting")


def open_planted(name: str, entry: ModelEntry, _opening: Opening) -> ScriptedModel:
    """The planted target of an entry."""
    try:
        options = PlantedOptions.model_validate(entry.options)
    except ValidationError as error:
        raise ModelError(f"model {name!r}: options: {first_line(error)}") from None
    return ScriptedModel(name, lambda request: _reply(request, options))


def _reply(request: Request, options: PlantedOptions) -> Reply:
    setting = str(request.context.get("setting"))
    rates = options.rates.get(setting)
    if rates is None:
        return Reply(Outcome.ERROR, reason=f"no planted rates for setting {setting!r}")
    met = [
        marker(item)
        for item in request.context.get("recommendations", ())
        if uniform(request.seed or 0, "planted", item, request.repeat) < rates.of(item)
    ]
    text = " ".join(["A planted answer.", *met])
    after = request.context.get("answer_after")
    return Reply(Outcome.OK, f"Planted reasoning.\n{after}\n{text}" if after else text)
