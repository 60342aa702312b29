"""What is shown, as text, Markdown or JSON, for a pipe, a file or the clipboard.

Texts are data in all of them: plain text has its control characters spelled out; in Markdown every
text of a model stands in a fence that it cannot close; JSON escapes what a terminal would act on.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from habitus.browsing.document import (
    Beside,
    Block,
    Document,
    Folded,
    Gap,
    Heading,
    Paragraph,
)
from habitus.browsing.index import attempt_key
from habitus.browsing.layout import lay_out, row_text
from habitus.content.visible import safe_text
from habitus.errors import StoreError
from habitus.records import (
    Attempt,
    Evaluation,
    History,
    JudgedItem,
    Label,
    Recommendation,
    Response,
    SafetyLabel,
    StageRecord,
)
from habitus.store import RunDir

if TYPE_CHECKING:
    from habitus.browsing.run import Browsed, Page

Form = Literal["markdown", "json"]
_SUFFIX = {"markdown": ".md", "json": ".json"}
_NAME = re.compile(r"[^\w.-]+")
_TICKS = re.compile(r"`+")


def plain_text(page: Page, width: int = 0) -> str:
    """The page and the one beside it, unfolded; wrapped only if a width is given."""
    parts = [page.main] + ([page.side] if page.side else [])
    texts = ["\n".join(map(row_text, lay_out(part, width))).strip("\n") for part in parts]
    return "\n\n----\n\n".join(texts) + "\n"


def markdown(page: Page) -> str:
    """The page and the one beside it as Markdown."""
    parts = [page.main] + ([page.side] if page.side else [])
    return "\n".join(line for part in parts for line in _markdown(part)) + "\n"


def json_text(data: dict[str, Any]) -> str:
    """Records as JSON that no terminal acts on."""
    return safe_text(json.dumps(data, indent=2, ensure_ascii=False, allow_nan=False)) + "\n"


def save(text: str, name: str, form: Form, folder: Path) -> Path:
    """Write an item into a folder, under a name of its own; nothing is overwritten.

    Raises:
        StoreError: it cannot be written.
    """
    stem = _NAME.sub("-", name).strip("-.")[:120] or "item"
    for number in range(1, 1000):
        path = folder / f"{stem}{f'-{number}' if number > 1 else ''}{_SUFFIX[form]}"
        try:
            with path.open("x", encoding="utf-8", errors="backslashreplace") as file:
                file.write(text)
        except FileExistsError:
            continue
        except OSError as error:
            raise StoreError(f"{path} cannot be written: {error.strerror}") from error
        return path
    raise StoreError(f"{folder} has a thousand files called {stem} already")


def item_json(browsed: Browsed, name: str) -> dict[str, Any]:
    """The records behind an id."""
    view, key, item = browsed.find(name)
    with browsed.look(view) as (run, _):
        if view == "transcripts":
            found = _session_records(run, key) if attempt_key(key) else _persona_records(run, key)
        elif view == "responses":
            found = _response_records(run, key, item)
        else:
            group = browsed.group(view, key)
            members = group.members if item == key else (item,)
            found = {"items": [_item_records(run, member) for member in members]}
    remarks = browsed.notes.of(item)
    notes = [{"text": n.text, "by": n.by, "at": n.at} for n in remarks.notes]
    return {"id": item, **found, "marked": remarks.marked, "notes": notes}


def _session_records(run: RunDir, name: str) -> dict[str, Any]:
    return {"attempt": _dump(run.records.get("attempts", name, Attempt))}


def _persona_records(run: RunDir, name: str) -> dict[str, Any]:
    attempts = run.records.under("attempts", f"{name}/", Attempt)
    history = run.records.get("histories", name, History)
    return {"history": _dump(history), "attempts": [_dump(attempt) for attempt in attempts]}


def _response_records(run: RunDir, key: str, item: str) -> dict[str, Any]:
    persona = key.partition("/")[0]
    names = [item]
    if item == key:
        query = key.partition("/")[2]
        names = [n for n in run.records.ids("responses") if _belongs(n, persona, query)]
    return {"responses": [_one_response(run, name, persona) for name in names]}


def _belongs(name: str, persona: str, query: str) -> bool:
    parts = name.split("/")
    return len(parts) == 5 and parts[2] in {persona, "-"} and parts[3] == query


def _one_response(run: RunDir, name: str, persona: str) -> dict[str, Any]:
    evaluation = run.records.get("evaluations", f"{name}/{persona}", Evaluation)
    verdicts = evaluation.verdicts if evaluation else ()
    wanted = (
        run.records.get("recommendations", v.recommendation, Recommendation) for v in verdicts
    )
    return {
        "response": _dump(run.records.get("responses", name, Response)),
        "evaluation": _dump(evaluation),
        "safety": _dump(run.records.get("safety", name, SafetyLabel)),
        "recommendations": [_dump(found) for found in wanted if found is not None],
    }


def _item_records(run: RunDir, name: str) -> dict[str, Any]:
    labels = run.records.under("labels", f"{name}/", Label)
    return {
        "item": _dump(run.records.get("items", name, JudgedItem)),
        "labels": [_dump(label) for label in labels if label.item == name],
    }


def _dump(record: StageRecord | None) -> dict[str, Any] | None:
    return None if record is None else record.model_dump(mode="json")


def _markdown(document: Document) -> Iterator[str]:
    for block in document.blocks:
        yield from _markdown_block(block)


def _markdown_block(block: Block) -> Iterator[str]:
    match block:
        case Heading():
            yield f"\n{'#' * block.level} {_inline(block.text)}\n"
        case Gap():
            yield ""
        case Folded():
            yield f"\n**{_inline(block.title)}**\n"
            for inner in block.blocks:
                yield from _markdown_block(inner)
        case Beside():
            for cell in block.cells:
                for inner in cell:
                    yield from _markdown_block(inner)
        case Paragraph():
            if block.lead:
                yield f"**{_inline(block.lead.strip())}**"
            yield from _fence(block.text)


def _fence(text: str) -> Iterator[str]:
    """A text between fences that are longer than any within it."""
    text = safe_text(text)
    longest = max((len(ticks) for ticks in _TICKS.findall(text)), default=0)
    ticks = "`" * max(3, longest + 1)
    yield f"{ticks}text\n{text}\n{ticks}"


def _inline(text: str) -> str:
    """A text on one line of Markdown, as it stands."""
    return re.sub(r"([\\`*_\[\]<>#|~!&])", r"\\\1", safe_text(text, lines=False))
