"""The bipartite graph of values and norms, and the norms that it cannot tell apart."""

from __future__ import annotations

import json
from collections import defaultdict
from typing import TYPE_CHECKING

from habitus.norms.culture import Culture

if TYPE_CHECKING:
    import networkx as nx


def graph(culture: Culture) -> nx.Graph[str]:
    """Values and norms as nodes named by their ids, an edge from a norm to each of its values.

    Values have ``bipartite=0`` and ``label``; norms ``bipartite=1``, ``kind`` and ``statement``.
    Ids of values and norms never clash in a checked culture.
    """
    import networkx as nx  # noqa: PLC0415  (a fifth of a second, and few commands need it)

    result: nx.Graph[str] = nx.Graph(culture=culture.culture, domain=culture.domain)
    for value in culture.value_list:
        result.add_node(value.id, bipartite=0, label=value.label)
    for norm in culture.norms:
        result.add_node(norm.id, bipartite=1, kind=norm.kind, statement=norm.statement)
        result.add_edges_from((value, norm.id) for value in norm.values)
    return result


def indistinguishable(culture: Culture) -> tuple[tuple[str, ...], ...]:
    """Groups of two or more norms that share their state in every persona.

    They are exactly the norms with equal sets of values. Equal sets have equal sums. For the
    other direction let norms A and B differ, and let value ``a`` be one of A's and none of B's
    (one of the two has such a value). A's other values can be given stances that sum to 0 or +1.
    With sum 0, A is +1 or -1 as ``a`` is; with sum +1, A is +1 or 0. So changing ``a`` alone
    changes A and leaves B, and in one of the two cases they differ. The argument needs only that
    every assignment can occur, so it holds for every prior strictly between 0 and 1.
    """
    groups: dict[frozenset[str], list[str]] = defaultdict(list)
    for norm in culture.norms:
        groups[frozenset(norm.values)].append(norm.id)
    return tuple(tuple(ids) for ids in groups.values() if len(ids) > 1)


def as_dot(culture: Culture) -> str:
    """The graph in the DOT language: values as boxes, practice norms as dashed ellipses."""
    lines = [f"graph {_quoted(culture.culture)} {{", "  rankdir=LR;"]
    lines += [
        f"  {_quoted(value.id)} [shape=box, label={_quoted(value.label)}];"
        for value in culture.value_list
    ]
    for norm in culture.norms:
        style = "dashed" if norm.kind == "practice" else "solid"
        tip = _quoted(norm.statement)
        lines.append(f"  {_quoted(norm.id)} [shape=ellipse, style={style}, tooltip={tip}];")
        lines += [f"  {_quoted(value)} -- {_quoted(norm.id)};" for value in norm.values]
    return "\n".join([*lines, "}"]) + "\n"


def _quoted(text: str) -> str:
    # DOT knows the escapes of JSON that one-line text can hold: the quote and the backslash.
    return json.dumps(text, ensure_ascii=False)
