"""Cultures: values, the norms that rest on them, and the state of a norm for given stances.

    culture = find_culture("maori")                       # workspace first, shipped second
    norm_states(culture, {"mana": 1, "whakama": -1, ...}) # {"maori_1": 0, "maori_6": 0, ...}
    exact_counts(culture)                                 # StateShares(follow=4.75, ...)

A culture is one file, ``norms/<domain>/<culture>.yaml``. The package does not know personas,
prompts or results.
"""

from habitus.norms.culture import Confirmation, Culture, Norm, NormKind, Value, norms_hash
from habitus.norms.graph import as_dot, graph, indistinguishable
from habitus.norms.loading import culture_paths, find_culture, list_cultures, load_culture
from habitus.norms.states import (
    Priors,
    Stances,
    StateShares,
    exact_counts,
    norm_state,
    norm_states,
    state_shares,
)

__all__ = [
    "Confirmation",
    "Culture",
    "Norm",
    "NormKind",
    "Priors",
    "Stances",
    "StateShares",
    "Value",
    "as_dot",
    "culture_paths",
    "exact_counts",
    "find_culture",
    "graph",
    "indistinguishable",
    "list_cultures",
    "load_culture",
    "norm_state",
    "norm_states",
    "norms_hash",
    "state_shares",
]
