"""What was run: models, roles, settings, seeds, versions, choices, hashes of every file.

Endpoints are named by their host alone, paths of this machine not at all: the report is handed on.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any
from urllib.parse import urlsplit

from habitus.experiments.materials import Materials
from habitus.labelling import Labelling
from habitus.reports.document.cells import Table, plain_table
from habitus.store import RunDir

Fact = tuple[str, str]
#: Parts of the configuration that have tables of their own, or are no choice of the run's.
_ELSEWHERE = {"models", "roles", "targets", "content", "limits", "items", "judges", "kind"}
_EMBEDDED = "SmolLM2, embedded"


def run_facts(run: RunDir, kept: Materials) -> list[Fact]:
    """A run of an experiment in a few lines."""
    cultures = list(dict.fromkeys(persona.culture for persona in kept.personas.values()))
    models, targets = run.config.get("models", {}), run.config.get("targets", {})
    under_test = [f"{name} ({_model(models, role)})" for name, role in targets.items()]
    topics = {query.topic for query in kept.queries.values()}
    return [
        ("Experiment", kept.id),
        ("Models under test", ", ".join(under_test)),
        ("Settings", ", ".join(kept.settings)),
        ("Cultures", f"{len(cultures)}: {', '.join(cultures)}"),
        ("Personas", f"{len(kept.personas):,}"),
        ("Queries", f"{len(kept.queries):,} in {len(topics):,} topics"),
        *_provenance(run),
    ]


def label_facts(run: RunDir, note: Labelling) -> list[Fact]:
    """A run of labels in a few lines."""
    verdicts = [f"{v.judge}.{v.variant}" if v.variant else v.judge for v in note.verdicts]
    return [
        ("Answers judged", f"{note.totals.get('items', 0):,} of {note.origin}"),
        ("Verdicts on each", f"{len(verdicts)}: {', '.join(verdicts)}"),
        ("Models of the judges", ", ".join(sorted({v.model for v in note.verdicts}))),
        *_provenance(run),
    ]


def _provenance(run: RunDir) -> Iterator[Fact]:
    manifest = run.manifest
    yield "Seed", str(manifest.get("seed", run.config.get("seed", "not known")))
    version, python = manifest.get("habitus", ""), manifest.get("python", "")
    yield "Made with", f"Habitus {version}, Python {python}"
    yield "Begun", str(manifest.get("created", "not known"))
    yield "Hash of the configuration", str(manifest.get("config", ""))
    if "forked_from" in manifest:
        yield "Forked from", str(manifest["forked_from"].get("name", ""))


def about_tables(run: RunDir, what: str) -> list[Table]:
    """Every table about a run; ``what`` names it in the captions."""
    found = [
        _models_table(run.config, what),
        _roles_table(run.config, what),
        _judges_table(run.config, what),
        _choices_table(run.config, what),
        _content_table(run, what),
    ]
    return [table for table in found if table.rows]


def _models_table(config: Mapping[str, Any], what: str) -> Table:
    rows = [
        (
            *(name, str(entry.get("backend", "")), _name(entry), _host(entry.get("base_url"))),
            _short({**entry.get("extra", {}), **_planted(entry)}),
        )
        for name, entry in sorted(config.get("models", {}).items())
    ]
    columns = ("Model", "backend", "asked for", "host", "further parameters")
    return plain_table(f"Models of {what}", columns, rows)


def _planted(entry: Mapping[str, Any]) -> Mapping[str, Any]:
    options: Mapping[str, Any] = entry.get("options", {})
    return options if entry.get("backend") == "planted" else {}


def _model(models: Mapping[str, Any], role: Mapping[str, Any]) -> str:
    return _name(models.get(role.get("model", ""), {}))


def _name(entry: Mapping[str, Any]) -> str:
    backend = str(entry.get("backend", ""))
    name = str(entry.get("model") or "")
    if backend == "local":
        return name.replace("\\", "/").rpartition("/")[2] or _EMBEDDED
    return name or backend


def _host(url: str | None) -> str:
    """The host of an endpoint, without user, password, path and query."""
    if not url:
        return ""
    try:
        parts = urlsplit(url)
        port = f":{parts.port}" if parts.port else ""
    except ValueError:
        return "not readable"
    return f"{parts.hostname or ''}{port}"


def _roles_table(config: Mapping[str, Any], what: str) -> Table:
    parts = [("role", config.get("roles", {})), ("target", config.get("targets", {}))]
    rows = [
        (
            *(f"{kind} {name}", str(role.get("model", ""))),
            *(_said(role.get(key)) for key in ("temperature", "top_p", "max_tokens", "stop")),
        )
        for kind, found in parts
        for name, role in sorted(found.items())
        if role
    ]
    columns = ("Part", "model", "temperature", "top_p", "max_tokens", "stop")
    return plain_table(f"Who played what in {what}", columns, rows)


def _judges_table(config: Mapping[str, Any], what: str) -> Table:
    keys = ("model", "form", "question", "batched", "temperature", "top_p", "max_tokens")
    rows = [
        (
            *(str(judge.get("judge", "")), *(_said(judge.get(key)) for key in keys)),
            *(", ".join(v for v in judge.get("variants", ()) if v), str(judge.get("content", ""))),
        )
        for judge in config.get("judges", ())
        if isinstance(judge, Mapping)
    ]
    columns = ("Judge", *keys, "variants", "hash of its texts")
    return plain_table(f"Judges of {what}", columns, rows)


def _choices_table(config: Mapping[str, Any], what: str) -> Table:
    chosen = {key: value for key, value in config.items() if key not in _ELSEWHERE}
    rows = [(key, _said(value)) for key, value in sorted(_flat(chosen))]
    return plain_table(f"Choices of {what}", ("Choice", "value"), rows)


def _flat(found: Mapping[str, Any], before: str = "") -> Iterator[tuple[str, Any]]:
    for key, value in found.items():
        if isinstance(value, Mapping):
            yield from _flat(value, f"{before}{key}.")
        else:
            yield f"{before}{key}", value


def _content_table(run: RunDir, what: str) -> Table:
    content = run.config.get("content") or run.manifest.get("content") or {}
    rows = [(name, str(value)) for name, value in sorted(content.items())]
    return plain_table(f"Files of {what}, with hashes of their contents", ("File", "hash"), rows)


def _said(value: Any) -> str:
    if value is None or value in ("", [], ()):
        return "not set"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, list):
        return ", ".join(map(_said, value))
    return str(value)


def _short(found: Mapping[str, Any]) -> str:
    text = json.dumps(found, sort_keys=True, ensure_ascii=False) if found else ""
    return f"{text[:300]} …" if len(text) > 300 else text
