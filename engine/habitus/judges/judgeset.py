"""``judges/<id>.yaml``: a named set of judges, such as all those of a study.

for judge, variant in find_set("franz").verdicts(): ...
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from pydantic import Field

from habitus.content import ContentModel, Document, find, listing, read_yaml
from habitus.content.fields import Slug
from habitus.content.models import from_document
from habitus.content.places import workspace_of
from habitus.errors import ContentError, NotFoundError, Problem
from habitus.judges.asking import Asking
from habitus.judges.judge import Judge, find_judge


class MemberFile(ContentModel):
    """One judge of a set; ``variants`` in place of those that its file has on."""

    judge: Slug
    variants: tuple[Slug, ...] = Field(default=(), min_length=1)


class JudgeSetFile(ContentModel):
    """``judges/<id>.yaml``."""

    id: Slug
    name: str
    description: str = ""
    judges: tuple[MemberFile, ...] = Field(min_length=1)


@dataclass(frozen=True)
class JudgeSet:
    """Judges with the variants that each is asked for."""

    file: JudgeSetFile
    members: tuple[tuple[Judge, tuple[str, ...]], ...]

    def verdicts(self) -> Iterator[tuple[Judge, str]]:
        """Judge and variant of every verdict on one response, judge by judge."""
        for judge, variants in self.members:
            for variant in variants:
                yield judge, variant


def load_set(path: Path) -> JudgeSet:
    """Read a set and the judges it names, from the workspace of the file first.

    Raises:
        ContentError: an unknown judge or variant, a judge twice, or damage in a judge's files.
    """
    document = read_yaml(path)
    file = from_document(document, JudgeSetFile)
    workspace = workspace_of(path)
    members: list[tuple[Judge, tuple[str, ...]]] = []
    problems: list[Problem] = []
    for index in range(len(file.judges)):
        try:
            members.append(_member(document, file, index, workspace))
        except ContentError as error:
            problems.extend(error.problems)
    if problems:
        raise ContentError(problems)
    return JudgeSet(file, tuple(members))


def _member(
    document: Document, file: JudgeSetFile, index: int, workspace: Path
) -> tuple[Judge, tuple[str, ...]]:
    member = file.judges[index]
    at = ("judges", index)
    if member.judge in [other.judge for other in file.judges[:index]]:
        raise ContentError(
            [document.problem((*at, "judge"), f"{member.judge!r} stands here twice")]
        )
    try:
        judge = find_judge(member.judge, workspace)
    except NotFoundError as error:
        raise ContentError([document.problem((*at, "judge"), str(error))]) from None
    for number, variant in enumerate(member.variants):
        try:
            judge.check(Asking(variant))
        except NotFoundError as error:
            place = (*at, "variants", number)
            raise ContentError([document.problem(place, str(error))]) from None
    return judge, member.variants or judge.variants


def choose(
    names: Iterable[str], workspace: Path | None = None
) -> tuple[tuple[Judge, tuple[str, ...]], ...]:
    """Judges with their variants, as people name them; one that is named twice is asked once.

    Args:
        names: ids or paths of sets and judges, or ``judge.variant`` for one variant.
        workspace: where content is looked up first.

    Raises:
        NotFoundError: no set, judge or variant of that name.
        ContentError: damage in one of the files.
    """
    chosen: dict[str, tuple[Judge, dict[str, None]]] = {}
    for name in names:
        for judge, variants in _named(name, workspace):
            known = chosen.setdefault(judge.file.id, (judge, {}))
            known[1].update(dict.fromkeys(variants))
    return tuple((judge, tuple(variants)) for judge, variants in chosen.values())


def _named(name: str, workspace: Path | None) -> Sequence[tuple[Judge, tuple[str, ...]]]:
    """The judges that one name stands for."""
    path = Path(name)
    if path.suffix in {".yaml", ".yml"}:
        if path.name != "judge.yaml":
            return load_set(path).members
        judge = find_judge(name)
        return [(judge, judge.variants)]
    there = {
        path.as_posix().removesuffix(".yaml") for path in listing("judges", "*.yaml", workspace)
    }
    if name in there:
        return find_set(name, workspace).members
    first, dot, variant = name.partition(".")
    judges = {path.parent.name for path in listing("judges", "*/judge.yaml", workspace)}
    if first not in judges:
        raise NotFoundError("judge or set of judges", name, sorted(judges | there))
    judge = find_judge(first, workspace)
    if dot:
        judge.check(Asking(variant))
    return [(judge, (variant,) if dot else judge.variants)]


def find_set(name: str, workspace: Path | None = None) -> JudgeSet:
    """The set of an id (workspace first) or of a path."""
    if name.endswith((".yaml", ".yml")):
        return load_set(Path(name))
    return load_set(find("judges", f"{name}.yaml", workspace))
