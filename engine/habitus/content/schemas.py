"""JSON Schemas for editors, written from the models that read the files."""

from __future__ import annotations

import json
import re
from pathlib import Path

from pydantic import BaseModel

_LINE = re.compile(r"^# yaml-language-server: \$schema=(\S+)\s*$")


def editor_schema(model: type[BaseModel], title: str) -> str:
    """The JSON Schema of a content file, as the text of a schema file."""
    schema = {"$schema": "https://json-schema.org/draft/2020-12/schema"}
    schema |= model.model_json_schema(by_alias=True) | {"title": title}
    return json.dumps(schema, indent=2, ensure_ascii=False) + "\n"


def schema_line(path: Path) -> str | None:
    """The schema that a file names in its first line, or None."""
    with path.open(encoding="utf-8", errors="replace") as file:
        match = _LINE.match(file.readline())
    return match[1] if match else None
