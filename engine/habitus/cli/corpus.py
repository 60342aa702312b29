"""``habitus corpus``: posts of Reddit dumps, filtered and mapped to countries."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from habitus.cli.caps import MaxCallsOption, MaxCostOption, MaxTotalTokensOption, caps_of
from habitus.cli.options import (
    MODEL_HELP,
    AnswerOption,
    FailuresOption,
    ForkOption,
    JsonOption,
    LimitOption,
    MaxTokensOption,
    SeedOption,
    TemperatureOption,
)
from habitus.cli.output import print_json, print_table, print_text, program, talk
from habitus.cli.root import new_app
from habitus.errors import UsageError

if TYPE_CHECKING:
    from habitus.corpora import CountryMap, Counts, FileCount, Share
    from habitus.judges import Judge
    from habitus.labelling import Categories
    from habitus.store import RunDir

app = new_app("Posts of Reddit dumps, filtered and mapped to countries.")

_NONE = "(none)"  # the posts without a category, as in the figure


def map_names(incomplete: str) -> list[str]:
    """Ids of country maps, for completion; no file is read."""
    from habitus.content import listing

    names = {path.stem for path in listing("experiments/corpora", "*.yaml")}
    return sorted(name for name in names if name.startswith(incomplete))


PostsArgument = Annotated[Path, typer.Argument(help="A Parquet file of posts.")]


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
    """Make a corpus of posts from dumps.

    Submissions are filtered, names and duplicates dropped; what became of every line is said. Exit 1 when a file is damaged or gives no submission; the others are read all the same.
    """
    from habitus.corpora import build as build_corpus
    from habitus.corpora import counts_path, find_country_map

    countries = find_country_map(map_)
    counts = build_corpus(files, countries, out, progress=_tell)
    if as_json:
        print_json(counts.as_json(countries))
    else:
        _print_counts(counts, countries)
    if counts.kept:
        talk(f"{counts.kept:,} posts in {out}, the counts beside it in {counts_path(out).name}")
        talk(f"`{program()} corpus label {out} --model MODEL -o FILE` gives each a category")
    else:
        talk(f"no post was kept; {out} is empty")
    return 1 if counts.damaged or not counts.kept else 0


@app.command()
def stats(
    posts: PostsArgument,
    as_json: JsonOption = False,
) -> None:
    """Count posts by country and by category.

    Categories are those of `habitus corpus label`.
    """
    from habitus.corpora import read_shares

    rows = read_shares(posts)
    if as_json:
        print_json([_as_json(row) for row in rows])
    else:
        _print_shares(rows)


@app.command()
def label(
    posts: PostsArgument,
    *,
    model: Annotated[str, typer.Option("--model", help=MODEL_HELP)],
    out: Annotated[Path, typer.Option("-o", "--out", help="The Parquet file with categories.")],
    judge: Annotated[
        str,
        typer.Option("--judge", help="A judge that sees the question alone: your own categories."),
    ] = "post_categories",
    run: Annotated[
        Path | None, typer.Option("--run", help="Run directory; beside the file by default.")
    ] = None,
    answer: AnswerOption = None,
    temperature: TemperatureOption = None,
    max_tokens: MaxTokensOption = None,
    limit: LimitOption = None,
    seed: SeedOption = 0,
    fork: ForkOption = None,
    failures: FailuresOption = 0.05,
    max_calls: MaxCallsOption = None,
    max_total_tokens: MaxTotalTokensOption = None,
    max_cost: MaxCostOption = None,
    as_json: JsonOption = False,
) -> int:
    """Give each post a category.

    The same command goes on where it stopped. What a model calls by another name is mapped by the judge's table of aliases; what that lacks is
    listed, and the post has no category.
    """
    from habitus.cli.finding import model_entry
    from habitus.cli.jobs import JobOptions, run_and_count
    from habitus.corpora import check_output
    from habitus.judges import choose
    from habitus.labelling import LabellingJob, Manner, PostSource, make_tasks, write_categories

    check_output(out)
    source = PostSource.open(posts)
    name, entry = model_entry(model)
    manner = Manner(form=answer, temperature=temperature, max_tokens=max_tokens)
    tasks = make_tasks(_categorizer(choose([judge])), {}, name, manner)
    caps = caps_of(max_calls, max_total_tokens, max_cost, {name: entry})
    job = LabellingJob(source.questions(), tasks, {name: entry}, seed, limit, caps)
    options = JobOptions(out=run or out.with_suffix(".run"), fork=fork, failures=failures)

    def finish(labels: RunDir) -> None:
        found = write_categories(labels, posts, out)
        _print_categories(labels, tasks[0].judge, found, as_json=as_json)
        talk(f"{out} has them; `{program()} corpus answer {out} --model MODEL -o RUN` goes on")

    return run_and_count(job, options, finish)


@app.command()
def answer(
    posts: PostsArgument,
    *,
    model: Annotated[list[str], typer.Option("--model", help=MODEL_HELP + "; repeatable.")],
    out: Annotated[Path, typer.Option("-o", "--out", help="Run directory of the answers.")],
    prompt: Annotated[
        str, typer.Option("--prompt", help="Id in experiments/corpora/, or path of a prompt.")
    ] = "answer",
    temperature: Annotated[float, typer.Option("--temperature", min=0, max=5)] = 0.7,
    top_p: Annotated[float, typer.Option("--top-p", min=0.001, max=1)] = 0.95,
    max_tokens: Annotated[int, typer.Option("--max-tokens", min=1)] = 512,
    cut: Annotated[
        Literal["keep", "fail"],
        typer.Option("--cut", help="Whether an answer cut at --max-tokens is an answer."),
    ] = "keep",
    limit: LimitOption = None,
    seed: SeedOption = 0,
    fork: ForkOption = None,
    failures: FailuresOption = 0.05,
    max_calls: MaxCallsOption = None,
    max_total_tokens: MaxTotalTokensOption = None,
    max_cost: MaxCostOption = None,
) -> int:
    """Have models answer the posts.

    One response for each post and model; `habitus judge` labels the answers. The same command goes on where it stopped.
    """
    from habitus.cli.finding import model_entry
    from habitus.cli.jobs import JobOptions, run_and_count
    from habitus.labelling import AnsweringJob, PostSource, find_answer_prompt
    from habitus.records import Sampling

    entries = dict(map(model_entry, model))
    if len(entries) < len(model):
        raise UsageError("two of the models have the same name; give each a file of its own")
    sampling = Sampling(temperature, top_p, max_tokens)
    job = AnsweringJob(
        posts=PostSource.open(posts),
        prompt=find_answer_prompt(prompt),
        models=entries,
        sampling=sampling,
        seed=seed,
        limit=limit,
        keep_cut=cut == "keep",
        caps=caps_of(max_calls, max_total_tokens, max_cost, entries),
    )
    options = JobOptions(out=out, fork=fork, failures=failures)
    return run_and_count(job, options, _print_answers)


def _categorizer(members: Sequence[tuple[Judge, tuple[str, ...]]]) -> Sequence[Any]:
    """The one judge of posts."""
    ((judge, variants), *others) = members
    if others or len(variants) != 1 or judge.file.sees != ("question",):
        raise UsageError("posts are sorted by one judge that sees the question and nothing else")
    return members


def _print_categories(run: RunDir, judge: Judge, found: Categories, *, as_json: bool) -> None:
    counts = [(name, found.posts[name]) for name in (*judge.file.labels, None)]
    mapped, unmapped = found.mapped.most_common(), found.unmapped.most_common()
    if as_json:
        print_json(
            {
                "categories": dict(counts[:-1]),
                "without_category": found.posts[None],
                "mapped": [{"words": w, "category": c, "posts": n} for (w, c), n in mapped],
                "unmapped": [{"words": words, "posts": n} for words, n in unmapped],
            }
        )
        return
    total = found.posts.total()
    rows: list[list[Any]] = [[name or _NONE, n, total, _share(n, total)] for name, n in counts]
    print_table(["category", "n", "of", "share"], rows)
    if mapped:
        print_text("")
        read: list[list[Any]] = [[words, category, n] for (words, category), n in mapped]
        print_table(["words given", "read as", "posts"], read, keys=2)
    if unmapped:
        print_text("")
        print_table(["words that are no category", "posts"], [[w, n] for w, n in unmapped])
        talk(
            f"to map one, add it to the aliases of the judge {judge.file.id} and label anew with "
            f"another --run and --fork {run.path}: nothing is asked again"
        )


def _print_answers(run: RunDir) -> None:
    from habitus.labelling import count_answers

    rows: list[list[Any]] = [
        [a.target, a.answered, a.cut, a.failed, a.posts] for a in count_answers(run)
    ]
    print_table(["model", "answered", "cut", "failed", "of"], rows)
    talk(f"`{program()} judge {run.path} --model MODEL` labels them")


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
    print_table(["line", "n", "share of lines"], rows)
    print_text("")
    by_country = [
        [country, n, _share(n, counts.kept)] for country, n in counts.countries(countries).items()
    ]
    print_table(["country", "n", "share of posts"], by_country)
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
            [*(getattr(row, key) or _NONE for key in keys), row.n, row.of, row.share]
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
