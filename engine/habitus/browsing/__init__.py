"""Looking at a run: what there is, pages to read, filters, searches, marks and notes.

    browsed = Browsed(Path("runs/first"))
    page = browsed.page("maori-01/s03")
    print(plain_text(page))

An index of ids and outcomes is read at once; bodies of records are read when they are shown. Pages are
documents of blocks; what shows them (a terminal, a pipe, a file) lays them out. Nothing is written but
``notes.jsonl``. The package knows no terminal library and no keys.
"""

from habitus.browsing.comparisons import Comparison, comparison_page
from habitus.browsing.document import Document, Span, Style
from habitus.browsing.facts import Facts
from habitus.browsing.filters import Filter
from habitus.browsing.index import RunIndex, attempt_key, read_index
from habitus.browsing.layout import Row, highlighted, lay_out, row_text
from habitus.browsing.notes import Notes, Remarks
from habitus.browsing.outline import (
    Node,
    View,
    Wanted,
    label_tree,
    leaves,
    question_tree,
    session_tree,
)
from habitus.browsing.run import Browsed, Page, message_page
from habitus.browsing.saving import json_text, markdown, plain_text, save

__all__ = [
    "Browsed",
    "Comparison",
    "Document",
    "Facts",
    "Filter",
    "Node",
    "Notes",
    "Page",
    "Remarks",
    "Row",
    "RunIndex",
    "Span",
    "Style",
    "View",
    "Wanted",
    "attempt_key",
    "comparison_page",
    "highlighted",
    "json_text",
    "label_tree",
    "lay_out",
    "leaves",
    "markdown",
    "message_page",
    "plain_text",
    "question_tree",
    "read_index",
    "row_text",
    "save",
    "session_tree",
]
