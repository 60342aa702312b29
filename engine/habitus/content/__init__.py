"""Content files: where they lie, how they are read, and how prompts are filled.

    document = read_yaml(path)                    # data with line and column of every key
    culture = load(path, Culture, check=problems) # checked against a pydantic model
    prompt = read_prompt(path, {"norm", "query"}) # text with declared placeholders
    path = find("norms", "health/maori.yaml")     # workspace first, shipped content second

The package does not know what a culture or an experiment is; it knows files.
"""

from habitus.content.models import ContentModel, Found, load
from habitus.content.places import FOLDERS, content_roots, find, listing, shipped_root
from habitus.content.prompts import Prompt, fence, read_prompt
from habitus.content.schemas import editor_schema, schema_line
from habitus.content.yamlfile import Document, read_text, read_yaml

__all__ = [
    "FOLDERS",
    "ContentModel",
    "Document",
    "Found",
    "Prompt",
    "content_roots",
    "editor_schema",
    "fence",
    "find",
    "listing",
    "load",
    "read_prompt",
    "read_text",
    "read_yaml",
    "schema_line",
    "shipped_root",
]
