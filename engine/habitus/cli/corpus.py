"""``habitus corpus``: posts of Reddit dumps, filtered and mapped to countries."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from habitus.cli.output import print_json, print_table, print_text, talk
from habitus.cli.root import new_app

if TYPE_CHECKING:
    from habitus.corpora import CountryMap, Counts, FileCount, Share

app = new_app("Posts of Reddit dumps, filtered and mapped to countries.")


def map_names(incomplete: str) -> list[str]:
    """Ids of country maps, for completion; no file is read."""
    from habitus.content import listing

    names = {path.stem for path in listing("experiments/corpora", "*.yaml")}
    return sorted(name for name in names if name.startswith(incomplete))


JsonOption = Annotated[bool, typer.Option("--json", help="Print JSON.")]


@app.command()
def build(
    files: Annotated[
        list[Path],
        typer.Argument(metavar="FILE...", help="Dumps: .zst, .gz, .xz, .bz2 or JSON lines."),
    ],
    out: Annotated[
        Path, typer.Option("-o", "--out", help="The Parquet file; counts are written beside it.")
    ],
    map_: Annotated[
        str,
        typer.Option("--map", help="Id or path of a country map.", autocompletion=map_names),
    ] = "square",
    as_json: JsonOption = False,
) -> int:
    """Filter submissions, drop names and duplicates, and say what became of every line.

    Exit 1 when a file is damaged or gives no submission; the others are read all the same.
    """
    from habitus.corpora import build as build_corpus
    from habitus.corpora import find_country_map

    countries = find_country_map(map_)
    counts = build_corpus(files, countries, out, progress=_tell)
    if as_json:
        print_json(counts.as_json(countries))
    else:
        _print_counts(counts, countries)
    if not counts.kept:
        talk(f"no post was kept; {out} is empty")
    return 1 if counts.damaged or not counts.kept else 0


@app.command()
def stats(
    posts: Annotated[Path, typer.Argument(help="A Parquet file of posts.")],
    as_json: JsonOption = False,
) -> None:
    """Count posts by country and, where there is a column category, by category."""
    from habitus.corpora import read_shares

    rows = read_shares(posts)
    if as_json:
        print_json([_as_json(row) for row in rows])
    else:
        _print_shares(rows)


def _tell(file: FileCount) -> None:
    talk(f"{file.name}: kept {file.kept:,} of {file.lines:,} lines")
    if file.damage:
        talk(f"{file.name}: DAMAGED: {file.damage}; get it again and build anew")


def _print_counts(counts: Counts, countries: CountryMap) -> None:
    from habitus.corpora import Reason

    rows: list[list[Any]] = [
        [str(reason), counts.reasons[reason], _share(counts.reasons[reason], counts.lines)]
        for reason in Reason
    ]
    rows.append(["kept", counts.kept, _share(counts.kept, counts.lines)])
    rows.append(["all lines", counts.lines, _share(counts.lines, counts.lines)])
    print_table(["line", "n", "share"], rows)
    print_text("")
    by_country = [
        [country, n, _share(n, counts.kept)] for country, n in counts.countries(countries).items()
    ]
    print_table(["country", "posts", "share"], by_country)
    print_text("")
    print_text(
        f"of {counts.kept:,} posts: {counts.renamed:,} with a name replaced, "
        f"{counts.crossposted:,} with the text of a crosspost's parent, {counts.undated:,} undated"
    )


def _share(n: int, of: int) -> float | None:
    return n / of if of else None


def _print_shares(rows: tuple[Share, ...]) -> None:
    for i, by in enumerate(dict.fromkeys(row.by for row in rows)):
        if i:
            print_text("")
        keys = by.split(" and ")
        table = [
            [*(getattr(row, key) for key in keys), row.n, row.of, row.share]
            for row in rows
            if row.by == by
        ]
        print_table([*keys, "n", "of", "share"], table, keys=len(keys))
    if not rows:
        print_table(["country", "n", "of", "share"], [])


def _as_json(row: Share) -> dict[str, Any]:
    return {
        "by": row.by,
        "country": row.country,
        "category": row.category,
        "n": row.n,
        "of": row.of,
        "share": row.share,
    }
