"""A run that is looked at: its index, the pages of its items, its facts and notes.

    browsed = Browsed(Path("runs/first"))
    browsed.index.study.groups
    browsed.page("maori-01/s03")
    if browsed.refresh(): ...                    # on a run that is going on

The run is opened for every look and let go at once, which takes a third of a millisecond: so an open
viewer never keeps a writer from tidying its database up, and always sees what is there now. Bodies of
records are read when they are shown, or all of them, in another thread, when a filter or a search
asks for what only they know.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from habitus.browsing.answers import label_comparison, response_comparison
from habitus.browsing.comparisons import Comparison, comparison_page, remarks
from habitus.browsing.document import Block, Document, Gap, Paragraph
from habitus.browsing.facts import (
    Facts,
    Tell,
    gather_labels,
    gather_study,
    labelled_texts_with,
    texts_with,
)
from habitus.browsing.filters import Filter
from habitus.browsing.index import (
    Group,
    LabelIndex,
    RunIndex,
    StudyIndex,
    attempt_key,
    read_index,
    read_labels,
    response_key,
)
from habitus.browsing.notes import FILE, Notes
from habitus.browsing.outline import (
    View,
    Wanted,
    attempt_word,
    label_tree,
    leaves,
    question_tree,
    session_tree,
)
from habitus.browsing.transcripts import (
    check_page,
    culture_page,
    persona_page,
    session_page,
    sessions_block,
)
from habitus.errors import NotFoundError, StoreError, UsageError
from habitus.records import Attempt, Outcome
from habitus.store import RunDir

_ANSWERS: tuple[tuple[View, str], ...] = (("responses", "response"), ("judges", "item"))
_WATCHED = ("run.sqlite", "run.sqlite-wal", "study.json", "labelling.json", FILE)


@dataclass(frozen=True, slots=True)
class Page:
    """What is shown of one thing: a page, the one beside it, and the records it was made of."""

    main: Document
    side: Document | None = None
    comparison: Comparison | None = None


def message_page(text: str) -> Page:
    """A page that only says something."""
    return Page(Document("-", (Paragraph(text, "unknown"),)))


class Browsed:
    """A run, with a run of labels over its responses and another run to compare it with.

    Args:
        path: a CCBench run or a run of labels.
        labels: a run of labels over the responses of ``path``.
        beside: another run over the same responses or items, judged by another evaluator.

    Raises:
        StoreError: one of them cannot be read.
        UsageError: they do not belong together.
    """

    def __init__(
        self, path: Path, *, labels: Path | None = None, beside: Path | None = None
    ) -> None:
        self.path = path
        self._labels = labels
        self._beside = beside
        self.notes = Notes(path)
        self._seen = self._signature()
        self.index = self._read()

    @property
    def study(self) -> StudyIndex | None:
        """What there is of a CCBench run."""
        return self.index.study

    @property
    def labels(self) -> LabelIndex | None:
        """What there is of labels."""
        return self.index.labels

    @property
    def compared(self) -> bool:
        """Whether there is a run beside."""
        return self._beside is not None

    @property
    def views(self) -> tuple[View, ...]:
        """What can be looked at."""
        views: list[View] = []
        if self.study is not None:
            views += ["transcripts", "responses"]
        if self.labels is not None:
            views.append("judges")
        return tuple(views)

    def refresh(self) -> bool:
        """Read the index again if anything changed; whether it did."""
        seen = self._signature()
        if seen == self._seen:
            return False
        self.notes.refresh()
        self.index = self._read()
        self._seen = seen
        return True

    def facts(self, view: View, tell: Tell = lambda _: None) -> Facts:
        """What the verdicts or labels say; all bodies are read.

        Raises:
            StoreError: one cannot be read.
        """
        with self.look(view) as (run, beside), _of_this_version(run):
            if view == "judges" and self.labels is not None:
                return gather_labels(run, self.labels, tell, beside)
            if view == "responses" and self.study is not None:
                return gather_study(run, self.study, tell, beside)
        return Facts()

    def search(self, view: View, text: str) -> frozenset[str]:
        """Keys of the leaves of a view whose texts hold a text; all bodies are read.

        Raises:
            StoreError: one cannot be read.
        """
        with self.look(view) as (run, _), _of_this_version(run):
            if view == "judges" and self.labels is not None:
                return frozenset(labelled_texts_with(run, self.labels, text))
            if self.study is not None:
                return frozenset(texts_with(run, self.study, text))
        return frozenset()

    def session(self, name: str) -> Page:
        """One attempt at a session, with its persona beside it."""
        with RunDir.open(self.path, write=False) as run:
            attempt = run.records.get("attempts", name, Attempt)
        if attempt is None or self.study is None:
            raise NotFoundError("session", name)
        kept = self.study.materials
        history = self.study.histories.get(attempt.persona)
        main = session_page(attempt, kept.personas.get(attempt.persona))
        return Page(self._remarked(main), check_page(attempt, kept, history))

    def person(self, name: str) -> Page:
        """A persona, or a culture, with what there is of it."""
        study = self.study
        if study is None or (name not in study.materials.personas and name not in study.cultures):
            raise NotFoundError("persona or culture", name)
        if name in study.cultures:
            main = culture_page(name, study.materials, study.cultures[name])
            return Page(self._remarked(main))
        with RunDir.open(self.path, write=False) as run:
            attempts = run.records.under("attempts", f"{name}/", Attempt)
        side = persona_page(name, study.materials, study.histories.get(name))
        lines = (*side.blocks[:2], Gap(), *sessions_block(attempts))
        return Page(self._remarked(Document(name, lines)), side)

    def compare(self, view: View, key: str) -> Comparison:
        """The answers of a group, with what was said of them."""
        group = self.group(view, key)
        with self.look(view) as (run, beside):
            if view == "judges" and self.labels is not None:
                return label_comparison(run, self.labels, group, beside)
            if self.study is not None:
                return response_comparison(run, self.study, group, beside)
        raise NotFoundError("item", key)

    def side(self, comparison: Comparison) -> Document | None:
        """The persona that a comparison is about."""
        study, persona = self.study, comparison.key.partition("/")[0]
        if study is None or persona not in study.materials.personas:
            return None
        return persona_page(persona, study.materials, study.histories.get(persona))

    def group(self, view: View, key: str) -> Group:
        """A group by its key.

        Raises:
            NotFoundError: there is none.
        """
        index = self.labels if view == "judges" else self.study
        if index is None or key not in index.groups:
            raise NotFoundError("item", key)
        return index.groups[key]

    def find(self, name: str) -> tuple[View, str, str]:
        """The view, the leaf and the item that an id names.

        A session is named by ``persona/session`` (then the attempt that stands) or by its attempt, a
        question by ``persona/query``, responses and items by their ids; one that all personas share
        may have a persona behind its id.

        Raises:
            NotFoundError: there is nothing of that name.
        """
        found = self._find_person(name) or self._find_answer(name)
        if found is None:
            what = "`--plain` without an id lists what there is"
            raise NotFoundError(
                "session, response or item in this run", name, self._near(name), what
            )
        return found

    def _find_person(self, name: str) -> tuple[View, str, str] | None:
        study = self.study
        if study is None:
            return None
        if name in study.materials.personas or name in study.cultures:
            return "transcripts", name, name
        persona, _, session = name.partition("/")
        for number, keys in study.sessions.get(persona, {}).items():
            if session == f"s{number:02d}":
                chosen = study.standing(persona, number) or keys[-1].id
                return "transcripts", chosen, chosen
        key = attempt_key(name)
        known = study.sessions.get(key.persona, {}).get(key.number, ()) if key else ()
        return ("transcripts", name, name) if key in known else None

    def _find_answer(self, name: str) -> tuple[View, str, str] | None:
        if self.study is not None:
            if name in self.study.groups:
                return "responses", name, name
            response, _, persona = name.rpartition("/")  # one response, for one of the personas
            key = response_key(response)
            if key is not None and response in self.study.responses:
                group = f"{persona}/{key.query}"
                return ("responses", group, response) if group in self.study.groups else None
            key = response_key(name)
            if key is not None and name in self.study.responses:
                mine = (g.key for g in self.study.groups.values() if name in g.members)
                return "responses", next(mine, name), name
        if self.labels is not None:
            for found in self.labels.groups.values():
                if name == found.key or name in found.members:
                    return "judges", found.key, name
        return None

    def _near(self, name: str) -> list[str]:
        """Ids that begin alike, so that a message can name near ones."""
        start = name.partition("/")[0]
        return [known for known in self.ids() if known.startswith(start)][:500]

    def ids(self) -> Iterator[str]:
        """All that can be looked at by its id."""
        if self.study is not None:
            yield from self.study.materials.personas
            for sessions in self.study.sessions.values():
                yield from (key.id for keys in sessions.values() for key in keys)
            yield from self.study.responses
        if self.labels is not None:
            yield from self.labels.items

    def listing(self, asked: Filter | None = None) -> Iterator[tuple[str, str, str]]:
        """Id, kind and fate of what can be looked at: all of it, or what a filter finds.

        A view that does not heed all that is asked for gives nothing.
        """
        asked = asked or Filter()
        if "transcripts" in self.views and asked.heeded_by("transcripts"):
            yield from self._sessions(asked)
        for view, kind in _ANSWERS:
            if view in self.views and asked.heeded_by(view):
                yield from self._answers(view, kind, asked)

    def _sessions(self, asked: Filter) -> Iterator[tuple[str, str, str]]:
        study = self.study
        wanted = Wanted(asked, marked=self.notes.items())
        for leaf in leaves(session_tree(study, wanted)) if study else ():
            key = attempt_key(leaf.key)
            if key is not None and study is not None:
                yield key.id, "session", attempt_word(study, key)

    def _answers(self, view: View, kind: str, asked: Filter) -> Iterator[tuple[str, str, str]]:
        index = self.labels if view == "judges" else self.study
        if index is None:
            return
        facts = self.facts(view) if asked.as_pairs() else None
        wanted = Wanted(asked, facts, self.notes.items())
        make = (
            label_tree(index, wanted)
            if isinstance(index, LabelIndex)
            else question_tree(index, wanted)
        )
        told = set()  # what all personas share is in many groups
        for leaf in leaves(make):
            for name in index.groups[leaf.key].members if leaf.items else ():
                wants = facts is None or wanted.wants_member(leaf.key, name, index.failed)
                if wants and name not in told:
                    told.add(name)
                    yield name, kind, str(index.failed.get(name, Outcome.OK))

    def page(self, name: str) -> Page:
        """The page of anything that has an id; of a response or item, that one alone.

        Raises:
            NotFoundError: there is nothing of that name.
        """
        view, key, item = self.find(name)
        if view == "transcripts":
            return self.session(key) if attempt_key(key) else self.person(key)
        found = self.compare(view, key)
        main = comparison_page(found, found.at(item), 0 if item == key else None, self.notes)
        return Page(main, None, found)

    def records(self, name: str) -> dict[str, Any]:
        """The records behind an id, as JSON values, with marks and notes."""
        from habitus.browsing.saving import item_json  # noqa: PLC0415  (it reads this class)

        return item_json(self, name)

    def _remarked(self, document: Document) -> Document:
        """The page with the marks and notes on what it shows below its title."""
        found: tuple[Block, ...] = tuple(remarks(document.id, self.notes))
        blocks = (document.blocks[0], *found, *document.blocks[1:])
        return Document(document.id, blocks)

    @contextlib.contextmanager
    def look(self, view: View) -> Iterator[tuple[RunDir, RunDir | None]]:
        """The run that holds what a view shows, and the one beside it where that is of its kind."""
        apart = view == "judges" and self._labels is not None
        path = self._labels if apart and self._labels is not None else self.path
        with contextlib.ExitStack() as runs:
            run = runs.enter_context(RunDir.open(path, write=False))
            beside = None
            if self._beside is not None and _holds(self._beside, view):
                beside = runs.enter_context(RunDir.open(self._beside, write=False))
            yield run, beside

    def _read(self) -> RunIndex:
        with RunDir.open(self.path, write=False) as run:
            index = read_index(run)
        if self._beside is not None and not any(
            _holds(self._beside, view) for view in ("responses", "judges")
        ):
            raise UsageError(f"--beside {self._beside}: this run has neither verdicts nor labels")
        if self._labels is None:
            return index
        if index.labels is not None:
            raise UsageError(f"{self.path} is a run of labels itself; leave --labels out")
        with RunDir.open(self._labels, write=False) as run:
            return replace(index, labels=read_labels(run))

    def _signature(self) -> tuple[tuple[int, int] | None, ...]:
        folders = [path for path in (self.path, self._labels) if path is not None]
        return tuple(_stat(folder / name) for folder in folders for name in _WATCHED)


@contextlib.contextmanager
def _of_this_version(run: RunDir) -> Iterator[None]:
    """Facts and searches read rows as they are stored, which is fast: here that may go wrong."""
    try:
        yield
    except (LookupError, TypeError, AttributeError, ValueError) as error:
        what = f"{type(error).__name__}: {error}"
        raise StoreError(
            f"{run.path} has records of another form ({what}); was it made by another version?"
        ) from error


def _holds(path: Path, view: str) -> bool:
    file = "labelling.json" if view == "judges" else "study.json"
    return (path / file).exists()


def _stat(path: Path) -> tuple[int, int] | None:
    try:
        found = path.stat()
    except OSError:
        return None
    return found.st_mtime_ns, found.st_size
