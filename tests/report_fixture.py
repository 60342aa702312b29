"""Runs to report on, with texts that try to be more than texts, and a reader of HTML."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from html.parser import HTMLParser
from itertools import count
from pathlib import Path
from typing import Any

from habitus.experiments import RunRequest, run_experiment
from habitus.records import Reply, Request
from labels_made import EMOTIONS, POSITIONING, item, label, labelled_run
from study_fixture import Answering, harbour, opening, study_of

HOSTILE = {
    "script": "<script>window.acted=1</script>",
    "attribute": "\"><img src=x onerror=\"window.acted=1\">' onmouseover='window.acted=1",
    "style": "</style><style>body{display:none}</style>",
    "script end": "</script><script>window.acted=1</script>",
    "svg": '<svg onload="window.acted=1"><a xlink:href="javascript:window.acted=1">x</a></svg>',
    "address": '<a href="javascript:window.acted=1">x</a> javascript:window.acted=1',
    "request": '<iframe src="https://example.org"></iframe><link rel=stylesheet href=//x.org/x.css>',
    "refresh": '<meta http-equiv="refresh" content="0;url=https://example.org">',
    "closing": "</div></td></table></details></article></main></body></html>",
    "template": "{{ 7 * 7 }} {% raw %} ${7*7}",
    "entities": "&lt;b&gt; &amp;quot; &#60;script&#62; <!-- ]]> <![CDATA[",
    "bidi": "left \u202eright\u2066 end",
    "controls": "nul \x00 escape \x1b[2J bell \x07 c1 \x9b2J",
    "surrogate": "lone \ud800 and \udfff",
    "noncharacters": "\ufffe\uffff",
    "right to left": "שלום עולם, مرحبا",
    "returns": "one\r\ntwo\rthree\u2028four",
    "long": "x" * 100_000,
}  # fmt: skip


def hostile_text(request: Request, number: int) -> str:
    """One text after the other."""
    texts = list(HOSTILE.values())
    return texts[number % len(texts)] or request.messages[-1].text


def hostile_model(kinds: tuple[str, ...] = ("target", "persona", "assistant")) -> Answering:
    """A model that says hostile things, and whose verdicts have hostile reasons."""
    numbers = count()

    def script(request: Request) -> Reply | str | None:
        if request.context.get("role") in kinds:
            return hostile_text(request, next(numbers))
        return None

    return Answering(script)


#: Enough sessions and queries that every hostile text is said.
HOSTILE_STUDY: dict[str, Any] = {
    "title": f"Study {HOSTILE['script']} {HOSTILE['attribute']} \u202e",
    "filter.policy": "report_only",
    "history.exchanges": [6, 6],
    "history.everyday_sessions": 1,
    "none": "per_persona",
}


def made_run(
    folder: Path, changes: Mapping[str, Any] | None = None, model: Answering | None = None
) -> Path:
    """A run of the small study, with changes, whose answers a model gives."""
    harbour(folder)
    study = study_of(folder, changes)
    request = RunRequest(out=folder / "run", base=folder, opener=opening(model or Answering()))
    run_experiment(study, request)
    return folder / "run"


def hostile_run(folder: Path) -> Path:
    """A run in which every text of a model is hostile."""
    return made_run(folder, HOSTILE_STUDY, hostile_model())


def hostile_labels(folder: Path) -> Path:
    """A run of labels of posts; everything that a file can bring is hostile."""
    texts = list(HOSTILE.values())[:-1]
    places = [*texts[:3], HOSTILE["noncharacters"], HOSTILE["surrogate"]]
    items = [
        item(
            f"post {n}",
            f"model {texts[n % 3]}",
            title=texts[n % len(texts)],
            response=texts[(n + 1) % len(texts)],
            fields={"country": places[n % 5], "category": texts[0], "subreddit": texts[1]},
        )
        for n in range(40)
    ]
    labels = [
        label(one.id, verdict, verdict["labels"][(n + k) % 2])
        for n, one in enumerate(items)
        for k, verdict in enumerate((POSITIONING, EMOTIONS))
    ]
    return labelled_run(folder / "labels", items, labels, [POSITIONING, EMOTIONS])


@dataclass
class Element:
    """An element of a page."""

    tag: str
    attributes: dict[str, str]
    children: list[Element | str] = field(default_factory=list)

    def all(self, tag: str = "") -> Iterator[Element]:
        """Elements below it, in their order; of one tag if it is given."""
        for child in self.children:
            if isinstance(child, Element):
                if tag in {"", child.tag}:
                    yield child
                yield from child.all(tag)

    def text(self) -> str:
        """All text below it."""
        return "".join(c if isinstance(c, str) else c.text() for c in self.children)

    def named(self, name: str) -> Element:
        """The element of an id."""
        return next(found for found in self.all() if found.attributes.get("id") == name)


_VOID = {"meta", "link", "br", "img", "input", "hr"}


class _Reader(HTMLParser):
    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self.root = Element("", {})
        self.open = [self.root]

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        found = Element(tag, {name: value or "" for name, value in attrs})
        assert len(found.attributes) == len(attrs), "an attribute stands twice"
        self.open[-1].children.append(found)
        if tag not in _VOID:
            self.open.append(found)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.open[-1].children.append(Element(tag, {n: v or "" for n, v in attrs}))

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop().tag == tag, f"</{tag}> closes nothing"

    def handle_data(self, data: str) -> None:
        self.open[-1].children.append(data)

    def handle_comment(self, data: str) -> None:
        raise AssertionError(f"a comment: {data}")


def read_page(html: bytes) -> Element:
    """The elements of a page; every one must be closed where it was opened."""
    reader = _Reader()
    reader.feed(html.decode())
    reader.close()
    assert reader.open == [reader.root], "something is left open"
    return reader.root


def table_rows(table: Element) -> list[list[str]]:
    """The cells of a table's body, as they are shown."""
    (body,) = table.all("tbody")
    cells = [
        [c for c in row.children if isinstance(c, Element) and c.tag in {"td", "th"}]
        for row in body.all("tr")
    ]
    return [[" ".join(cell.text().split()) for cell in row] for row in cells]


def heads(table: Element) -> list[str]:
    """The headings of a table's columns."""
    (head,) = table.all("thead")
    return [" ".join(cell.text().split()) for cell in head.all("th")]


def results_of(run: Path) -> Any:
    """``results.json`` of a run."""
    return json.loads((run / "results.json").read_bytes())
