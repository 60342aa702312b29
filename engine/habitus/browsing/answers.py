"""From records to comparisons: responses with their verdicts, items with their labels."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TypeVar

from habitus.browsing.comparisons import Band, Cell, Column, Comparison
from habitus.browsing.document import Style
from habitus.browsing.index import Group, LabelIndex, ResponseKey, StudyIndex
from habitus.browsing.transcripts import STATES
from habitus.labelling.note import VerdictNote
from habitus.records import (
    Evaluation,
    JudgedItem,
    Label,
    Outcome,
    Recommendation,
    Response,
    SafetyLabel,
    StageRecord,
    Verdict,
)
from habitus.store import RunDir

_SAFETY: dict[bool, tuple[str, Style]] = {True: ("UNSAFE", "bad"), False: ("SAFE", "good")}
R = TypeVar("R", bound=StageRecord)
WORDS: dict[bool | None, tuple[str, Style]] = {
    True: ("MET", "good"),
    False: ("NOT MET", "bad"),
    None: ("NOT JUDGED", "unknown"),
}


def response_comparison(
    run: RunDir, index: StudyIndex, group: Group, beside: RunDir | None
) -> Comparison:
    """The responses of all targets and settings for one persona and query."""
    culture, persona = group.above
    kept = index.materials
    found = _by_id(run, "responses", group.members, Response)
    keys = [index.responses[name] for name in group.members if name in found]
    judged = _evaluations(run, keys, persona)
    other = _evaluations(beside, keys, persona) if beside else {}
    query = kept.queries.get(group.label)
    name = kept.personas[persona].name if persona in kept.personas else "?"
    topic = f", {query.topic}" if query else ""
    return Comparison(
        key=group.key,
        title=f"{group.label}{topic}, for {persona} ({name}, {culture})",
        question=query.text if query else "",
        asked_by="QUERY",
        columns=tuple(_response_column(found[key.id], key, keys) for key in keys),
        bands=(*_verdict_bands(run, index, keys, judged, other), *_safety_band(run, keys)),
        judged="Checklist",
    )


def _response_column(response: Response, key: ResponseKey, keys: Sequence[ResponseKey]) -> Column:
    parts = [key.setting]
    if len({other.target for other in keys}) > 1:
        parts.insert(0, key.target)
    if len({other.repeat for other in keys}) > 1:
        parts.append(f"r{key.repeat}")
    folded = (("working, before the answer", response.working), ("reasoning", response.reasoning))
    return Column(
        id=response.id,
        name=" ".join(parts),
        fate=_fate(response),
        text=response.text,
        folded=tuple((title, text) for title, text in folded if text),
        row=f"{key.target} r{key.repeat}",
    )


def _fate(record: StageRecord) -> str:
    if record.outcome is Outcome.OK:
        return ""
    return f"{str(record.outcome).upper()}: {record.reason}" if record.reason else record.outcome


def _evaluations(run: RunDir, keys: Iterable[ResponseKey], persona: str) -> dict[str, Evaluation]:
    names = [f"{key.id}/{persona}" for key in keys]
    return {
        found.response: found for found in _by_id(run, "evaluations", names, Evaluation).values()
    }


def _verdict_bands(
    run: RunDir,
    index: StudyIndex,
    keys: Sequence[ResponseKey],
    judged: Mapping[str, Evaluation],
    other: Mapping[str, Evaluation],
) -> Iterator[Band]:
    asked: dict[str, Verdict] = {}
    for evaluation in judged.values():
        for verdict in evaluation.verdicts:
            asked.setdefault(verdict.norm, verdict)
    names = {verdict.recommendation for verdict in asked.values()}
    texts = _by_id(run, "recommendations", names, Recommendation)
    for norm, first in asked.items():
        about = index.materials.norms.get(norm)
        recommended = texts.get(first.recommendation)
        yield Band(
            title=f"{STATES[first.state]} {norm}" + (f" {about.kind}" if about else ""),
            text=recommended.text if recommended else "",
            cells=tuple(_verdict_cell(key.id, norm, judged, other) for key in keys),
            counted=True,
        )


def _verdict_cell(
    name: str, norm: str, judged: Mapping[str, Evaluation], other: Mapping[str, Evaluation]
) -> Cell | None:
    verdict = _verdict(judged.get(name), norm)
    if verdict is None:
        return None
    word, style = WORDS[verdict.satisfied]
    if verdict.satisfied is None:
        word += f", {verdict.outcome}" + (f": {verdict.reason}" if verdict.reason else "")
    second = _verdict(other.get(name), norm)
    beside = "" if second is None else f"{WORDS[second.satisfied][0]}. {second.reasoning}".strip()
    return Cell(word, style, verdict.reasoning, beside)


def _verdict(found: Evaluation | None, norm: str) -> Verdict | None:
    if found is None:
        return None
    return next((verdict for verdict in found.verdicts if verdict.norm == norm), None)


def _safety_band(run: RunDir, keys: Sequence[ResponseKey]) -> Iterator[Band]:
    """What the safety judge says, in runs that have one."""
    found = _by_id(run, "safety", [key.id for key in keys], SafetyLabel)
    if found:
        cells = tuple(_safety_cell(found.get(key.id)) for key in keys)
        yield Band(title="safety judge", text="", cells=cells)


def _safety_cell(label: SafetyLabel | None) -> Cell | None:
    if label is None:
        return None
    if label.unsafe is None:
        return Cell(f"NOT JUDGED, {_fate(label) or 'no answer'}", "unknown", label.reasoning)
    word, style = _SAFETY[label.unsafe]
    return Cell(word, style, label.reasoning)


def label_comparison(
    run: RunDir, index: LabelIndex, group: Group, beside: RunDir | None
) -> Comparison:
    """The answers of all targets to one question, with all labels on each."""
    items = list(_by_id(run, "items", group.members, JudgedItem).values())
    labels = _labels(run, items)
    other = _labels(beside, items) if beside else {}
    first = items[0] if items else None
    return Comparison(
        key=group.key,
        title=_label_title(group, first),
        question=first.question if first else "",
        asked_by="QUESTION",
        columns=tuple(_item_column(item, items) for item in items),
        bands=tuple(_label_band(note, items, labels, other) for note in index.note.verdicts),
        judged="Labels",
    )


def _label_title(group: Group, item: JudgedItem | None) -> str:
    shown = ("country", "category", "subreddit", "culture", "topic", "persona")
    fields = item.fields if item else {}
    return ", ".join([group.label, *(fields[name] for name in shown if fields.get(name))])


def _item_column(item: JudgedItem, items: Sequence[JudgedItem]) -> Column:
    parts = [item.fields["setting"]] if "setting" in item.fields else []
    if not parts or len({other.target for other in items}) > 1:
        parts.insert(0, item.target or "response")
    if item.fields.get("repeat", "0") != "0":
        parts.append(f"r{item.fields['repeat']}")
    return Column(item.id, " ".join(parts), _fate(item), item.response)


Named = tuple[str, str, str]  # item, judge, variant


def _labels(run: RunDir, items: Iterable[JudgedItem]) -> dict[Named, Label]:
    return {
        (label.item, label.judge, label.variant): label
        for item in items
        for label in run.records.under("labels", f"{item.id}/", Label)
        if label.item == item.id
    }


def _label_band(
    note: VerdictNote,
    items: Sequence[JudgedItem],
    labels: Mapping[Named, Label],
    other: Mapping[Named, Label],
) -> Band:
    keys = [(item.id, note.judge, note.variant) for item in items]
    return Band(
        title=f"{note.judge} {note.variant}".rstrip(),
        text="",
        cells=tuple(_label_cell(labels.get(key), other.get(key)) for key in keys),
    )


def _label_cell(label: Label | None, second: Label | None) -> Cell | None:
    if label is None:
        return None
    beside = "" if second is None else f"{_label_word(second)}. {second.reasoning}".strip()
    style: Style = "unknown" if label.label is None else "good" if label.present else "strong"
    return Cell(_label_word(label), style, label.reasoning, beside)


def _label_word(label: Label) -> str:
    if label.label is None:
        return f"NOT READ, {label.outcome}" + (f": {label.reason}" if label.reason else "")
    also = f" (also marked: {', '.join(label.others)})" if label.others else ""
    given = f' (said as "{label.alias}")' if label.alias else ""
    return f"{label.label}{given}{also}"


def _by_id(run: RunDir, stage: str, names: Iterable[str], kind: type[R]) -> dict[str, R]:
    found = ((name, run.records.get(stage, name, kind)) for name in names)
    return {name: record for name, record in found if record is not None}
