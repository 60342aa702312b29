"""Norms as lines of a prompt: a persona's sheet, and bare statements.

    Follows:
    - N1: The person expects rapport ...
    Avoids:
    - N3: The person places family ...
    No stance:
    - N2: The person likes to learn ...

Ids such as ``maori_1`` name the culture, so the lines carry numbers by default: ``N1`` is the
first norm of the norm file, whatever else is listed. :func:`labels` leads back from number to id.
The words around the lines stand in prompt files.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import Literal

from habitus.errors import UsageError
from habitus.norms import Culture, Norm
from habitus.personas.population import Persona, states
from habitus.records import NormState

Label = Literal["number", "id", "none"]
Wording = Literal["persona", "full"]

_HEADINGS: tuple[tuple[NormState, str], ...] = ((1, "Follows:"), (-1, "Avoids:"), (0, "No stance:"))


def sheet(
    persona: Persona,
    culture: Culture,
    *,
    neutral: Literal["listed", "omit"] = "listed",
    norms: Collection[str] | None = None,
    label: Label = "number",
    wording: Wording = "persona",
) -> tuple[str, ...]:
    """A persona's norms by state, as lines for a prompt.

    Args:
        persona: whose states count.
        culture: its culture.
        neutral: list norms without a stance, or leave them out.
        norms: ids of the norms to show; all by default.
        label: what stands before a statement: its number, its id, or nothing.
        wording: ``persona`` never names the culture; ``full`` is the statement as it is.

    Raises:
        UsageError: ``norms`` holds an id that the culture has not.
    """
    state = states(persona, culture)
    chosen = _chosen(culture, norms)
    lines: list[str] = []
    for wanted, heading in _HEADINGS:
        ids = [norm.id for norm in chosen if state[norm.id] == wanted]
        if ids and (wanted or neutral == "listed"):
            lines += [heading, *statements(culture, ids, label=label, wording=wording)]
    return tuple(lines)


def statements(
    culture: Culture,
    norms: Collection[str] | None = None,
    *,
    label: Label = "number",
    wording: Wording = "persona",
) -> tuple[str, ...]:
    """Statements without states, one line each, in the order of the norm file."""
    marks = _marks(culture, label)
    return tuple(f"- {marks[norm.id]}{_words(norm, wording)}" for norm in _chosen(culture, norms))


def labels(culture: Culture) -> dict[str, str]:
    """Number to norm id: ``{"N1": "maori_1", ...}``, for answers that name norms by number."""
    return {f"N{i}": norm.id for i, norm in enumerate(culture.norms, start=1)}


def _words(norm: Norm, wording: Wording) -> str:
    return norm.own_words if wording == "persona" else norm.statement


def _marks(culture: Culture, label: Label) -> dict[str, str]:
    if label == "number":
        return {id_: f"{number}: " for number, id_ in labels(culture).items()}
    return {norm.id: f"{norm.id}: " if label == "id" else "" for norm in culture.norms}


def _chosen(culture: Culture, norms: Collection[str] | None) -> list[Norm]:
    unknown = sorted(set(norms or ()) - culture.by_id.keys())
    if unknown:
        raise UsageError(f"{culture.culture} has no norm {', '.join(unknown)}")
    return [norm for norm in culture.norms if norms is None or norm.id in norms]
