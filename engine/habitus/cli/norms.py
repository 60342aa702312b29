"""``habitus norms``: cultures, their counts and their graphs."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated, Any

import typer

from habitus.cli.output import print_json, print_note, print_table, print_text
from habitus.cli.root import new_app
from habitus.norms import (
    Culture,
    Norm,
    as_dot,
    culture_paths,
    exact_counts,
    find_culture,
    graph,
    indistinguishable,
    list_cultures,
    state_shares,
)

app = new_app("Cultures: list them, show one, count its norms, print its graph.")


def culture_names(incomplete: str) -> list[str]:
    """Ids of cultures, for completion; no file is read."""
    return sorted({p.stem for p in culture_paths() if p.stem.startswith(incomplete)})


CultureArgument = Annotated[
    str,
    typer.Argument(
        metavar="CULTURE", help="Id or path of a culture.", autocompletion=culture_names
    ),
]
DomainOption = Annotated[
    str | None, typer.Option("--domain", help="Only this domain, such as health.")
]
JsonOption = Annotated[bool, typer.Option("--json", help="Print JSON.")]


class GraphFormat(StrEnum):
    """How a graph is printed."""

    TEXT = "text"
    DOT = "dot"
    JSON = "json"


@app.command("list")
def list_(domain: DomainOption = None, as_json: JsonOption = False) -> None:
    """List the cultures of the workspace and those that ship with Habitus."""
    rows = [_listed(culture) for culture in list_cultures(domain)]
    if as_json:
        print_json(rows)
    else:
        print_table(list(rows[0]) if rows else ["culture"], [list(row.values()) for row in rows])


@app.command()
def show(
    culture: CultureArgument, domain: DomainOption = None, as_json: JsonOption = False
) -> None:
    """Show a culture: its values, its norms, and the norms that always share a state."""
    found = find_culture(culture, domain)
    if as_json:
        print_json(found.model_dump(mode="json") | {"always_alike": indistinguishable(found)})
    else:
        _show(found)


@app.command()
def stats(
    culture: Annotated[
        str | None,
        typer.Argument(
            metavar="CULTURE", help="Id or path; all by default.", autocompletion=culture_names
        ),
    ] = None,
    domain: DomainOption = None,
    as_json: JsonOption = False,
) -> None:
    """Count values and norms, with the exact means of the three states over all personas."""
    cultures = [find_culture(culture, domain)] if culture else list_cultures(domain)
    rows = [_counted(one) for one in cultures]
    if as_json:
        print_json(rows)
    else:
        print_table(list(rows[0]) if rows else ["culture"], [list(row.values()) for row in rows])


@app.command("graph")
def graph_(
    culture: CultureArgument,
    format_: Annotated[
        GraphFormat, typer.Option("--format", help="text, dot (Graphviz) or json (networkx).")
    ] = GraphFormat.TEXT,
    domain: DomainOption = None,
) -> None:
    """Print the graph of values and norms."""
    found = find_culture(culture, domain)
    if format_ is GraphFormat.DOT:
        print_text(as_dot(found).rstrip("\n"))
    elif format_ is GraphFormat.JSON:
        from networkx.readwrite import node_link_data

        print_json(node_link_data(graph(found), edges="edges"))
    else:
        _draw(found)


def _listed(culture: Culture) -> dict[str, Any]:
    confirmed = sum(culture.confirmation(norm) is not None for norm in culture.norms)
    return {
        "culture": culture.culture,
        "domain": culture.domain,
        "name": culture.name,
        "values": len(culture.values),
        "norms": len(culture.norms),
        "confirmed": confirmed,
    }


def _counted(culture: Culture) -> dict[str, Any]:
    return {
        "culture": culture.culture,
        "values": len(culture.values),
        "norms": len(culture.norms),
        "communication": culture.count("communication"),
        "practice": culture.count("practice"),
        **exact_counts(culture)._asdict(),
    }


def _show(culture: Culture) -> None:
    print_text(f"{culture.name} ({culture.culture}, {culture.domain})")
    print_note(culture.source, "source: ")
    print_text("")
    print_table(["value", "label"], [[v.id, v.label] for v in culture.value_list])
    print_text("")
    columns = ["norm", "kind", "values", "follow", "avoid", "neutral", "confirmed"]
    print_table(columns, [_norm_row(culture, norm) for norm in culture.norms])
    print_note("follow, avoid, neutral: the share of all assignments of stances to the values")
    print_text("")
    for norm in culture.norms:
        print_note(norm.statement, f"{norm.id}  ")
    groups = indistinguishable(culture)
    print_text("\nnorms that always share a state, since they rest on the same values:")
    for group in groups:
        print_text(f"  {' '.join(group)}  ({', '.join(culture.by_id[group[0]].values)})")
    if not groups:
        print_text("  none")


def _norm_row(culture: Culture, norm: Norm) -> list[str | float]:
    mark = culture.confirmation(norm)
    by = mark.by if mark else "no"
    return [norm.id, norm.kind, " ".join(norm.values), *state_shares(norm), by]


def _draw(culture: Culture) -> None:
    import networkx as nx

    net = graph(culture)
    parts = nx.number_connected_components(net)
    print_text(
        f"{culture.culture}: {len(culture.values)} values, {len(culture.norms)} norms, "
        f"{net.number_of_edges()} links, {parts} connected {'part' if parts == 1 else 'parts'}"
    )
    for value in culture.value_list:
        print_text(f"\n{value.id}  {value.label}")
        for norm in culture.norms:
            if value.id in norm.values:
                others = [other for other in norm.values if other != value.id]
                print_text(f"  {norm.id}" + (f"  with {', '.join(others)}" if others else ""))
