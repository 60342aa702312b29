"""Analysis files: found by id or path, checked, each problem with its line and column.

    analysis = find_analysis("franz")

That a judge, a variant and its labels are there is checked against the judges' own files.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path

from habitus.agents import plain_label
from habitus.content import Found, find, load
from habitus.content.places import looks_like_path, workspace_of
from habitus.errors import ContentError, NotFoundError
from habitus.framing.analysisfile import (
    NORM_FIELDS,
    AnalysisFile,
    CharacteristicFile,
    CompareFile,
    MissingFile,
    QuestionFile,
)
from habitus.judges import JudgeFile, find_judge

FOLDER = "experiments"
PLACE = "analyses"
_OF_NORMS = ("norm", *NORM_FIELDS)
Loc = tuple[str | int, ...]


def load_analysis(path: Path) -> AnalysisFile:
    """Read and check an analysis file.

    Raises:
        ContentError: every problem of the file with its place.
    """
    return load(path, AnalysisFile, check=lambda analysis: _problems(analysis, path))


def find_analysis(name: str, workspace: Path | None = None) -> AnalysisFile:
    """An analysis by id, workspace first, or by path (a name with a slash or a suffix).

    Raises:
        NotFoundError: no such analysis, with the nearest names.
        ContentError: the file is wrong.
    """
    if looks_like_path(name):
        return load_analysis(Path(name))
    return load_analysis(find(f"{FOLDER}/{PLACE}", f"{name}.yaml", workspace))


def _problems(analysis: AnalysisFile, path: Path) -> Iterator[Found]:
    if path.stem != analysis.id:
        what = f"the id is {analysis.id!r}, but the file is called {path.name}"
        yield Found(("id",), what, f"rename the file to {analysis.id}.yaml, or change the id")
    yield from _compare_problems(analysis.compare, ("compare",))
    first: set[str] = set()
    judge_of = cache(
        lambda name: find_judge(name, workspace_of(path)).file
    )  # named again and again
    for i, characteristic in enumerate(analysis.characteristics):
        at: Loc = ("characteristics", i)
        if characteristic.id in first:
            yield Found((*at, "id"), f"there are two characteristics {characteristic.id!r}")
        first.add(characteristic.id)
        yield from _characteristic_problems(characteristic, at, judge_of)
    yield from _question_problems(analysis)
    if problem := missing_problem(analysis.missing):
        yield Found(("missing", "common"), problem, "leave one of them out")


def missing_problem(missing: MissingFile) -> str:
    """Why two choices about missing labels do not go together; empty where they do."""
    if missing.common and missing.rule != "exclude":
        return (
            "'common' leaves out clusters in which a label is missing, and the rule "
            f"{missing.rule!r} counts them"
        )
    return ""


def _compare_problems(compare: CompareFile, at: Loc) -> Iterator[Found]:
    names = list(compare.names.values())
    for level, name in compare.names.items():
        if names.count(name) > 1:
            yield Found((*at, "names", level), f"two values have the short name {name!r}")
    top = compare.subsets.top
    if top is not None:
        for key, value in (("field", top.field), ("within", top.within)):
            if value is not None and value not in compare.subsets.by:
                hint = f"add {value!r} to 'by'"
                yield Found(
                    (*at, "subsets", "top", key), f"subsets are not made by {value!r}", hint
                )
    if compare.level in compare.subsets.by:
        yield Found(
            (*at, "subsets", "by"), f"{compare.level!r} is what is compared", "leave it out"
        )
    if compare.rows != "norm":
        for name in sorted(set(compare.fields()) & set(_OF_NORMS)):
            yield Found(at, f"items have no field {name!r}", "write 'rows: norm'")


def _characteristic_problems(
    characteristic: CharacteristicFile, at: Loc, judge_of: Callable[[str], JudgeFile]
) -> Iterator[Found]:
    if (characteristic.judge is None) == (characteristic.field is None):
        yield Found(at, "a characteristic has a 'judge' or a 'field', and not both")
    elif characteristic.judge is None:
        if not characteristic.labels:
            yield Found(at, "missing key 'labels'", "which values of the field are coded 1")
        if characteristic.variant is not None:
            yield Found((*at, "variant"), "a field has no variants")
    else:
        try:
            judge = judge_of(characteristic.judge)
        except NotFoundError as error:
            yield Found((*at, "judge"), str(error))
        except ContentError as error:
            yield Found((*at, "judge"), f"the judge has problems; first: {error.problems[0]}")
        else:
            yield from _label_problems(characteristic, judge, at)


def _label_problems(
    characteristic: CharacteristicFile, judge: JudgeFile, at: Loc
) -> Iterator[Found]:
    variants = [variant.id for variant in judge.variants]
    wanted = characteristic.variant
    if variants and wanted not in variants:
        what = f"{wanted!r} is no variant" if wanted else "missing key 'variant'"
        yield Found((*at, "variant") if wanted else at, what, f"variants: {', '.join(variants)}")
        return
    if wanted and not variants:
        yield Found((*at, "variant"), f"the judge {judge.id!r} has no variants", "leave it out")
        return
    known = judge.labels_of(judge.variant(wanted) if wanted else None)
    plain = set(map(plain_label, known))
    for i, label in enumerate(characteristic.labels):
        if plain_label(label) not in plain:
            hint = f"labels: {', '.join(known)}"
            yield Found((*at, "labels", i), f"{label!r} is no label of the judge", hint)


def _question_problems(analysis: AnalysisFile) -> Iterator[Found]:
    known = {characteristic.id: characteristic for characteristic in analysis.characteristics}
    first: set[str] = set()
    for i, question in enumerate(analysis.questions):
        at: Loc = ("questions", i)
        if question.id in first:
            yield Found((*at, "id"), f"there are two questions {question.id!r}")
        first.add(question.id)
        if not question.prevalence and not question.pairs:
            yield Found(at, "the question asks nothing", "give it 'prevalence' or 'pairs'")
        if question.compare is not None:
            yield from _compare_problems(question.compare, (*at, "compare"))
        for place, name in _named(question, at):
            if name not in known:
                hint = f"there are: {', '.join(known)}"
                yield Found(place, f"no characteristic called {name!r}", hint)
            elif known[name].field in _OF_NORMS and analysis.compare_of(question).rows != "norm":
                what = f"items have no field {known[name].field!r}"
                yield Found(place, what, "write 'rows: norm' in the question's 'compare'")


def _named(question: QuestionFile, at: Loc) -> Iterator[tuple[Loc, str]]:
    for i, name in enumerate(question.prevalence):
        yield (*at, "prevalence", i), name
    for j, pairs in enumerate(question.pairs):
        for key, names in (("causes", pairs.causes), ("effects", pairs.effects)):
            for i, name in enumerate(names):
                yield (*at, "pairs", j, key, i), name
