"""Personas: a stance on every value of a culture, how they are drawn, and what they are told.

    personas = draw([culture], 10, Drawn(sampler="random", seed=1))
    population, cultures = find_population("health")   # pinned personas, checked
    states(personas[0], culture)                       # {"maori_1": 0, "maori_6": -1, ...}
    sheet(personas[0], culture)                        # lines for a prompt

The package knows norms; it does not know prompts, models or histories.
"""

from habitus.personas.drawing import draw, read_names
from habitus.personas.loading import find_population, load_population, population_text
from habitus.personas.openers import Opener, Openers, load_openers
from habitus.personas.population import (
    Drawn,
    Persona,
    Population,
    StateCounts,
    coverage,
    embeddedness,
    states,
)
from habitus.personas.samplers import SAMPLERS, balanced, random
from habitus.personas.sheets import labels, sheet, statements

__all__ = [
    "SAMPLERS",
    "Drawn",
    "Opener",
    "Openers",
    "Persona",
    "Population",
    "StateCounts",
    "balanced",
    "coverage",
    "draw",
    "embeddedness",
    "find_population",
    "labels",
    "load_openers",
    "load_population",
    "population_text",
    "random",
    "read_names",
    "sheet",
    "statements",
    "states",
]
