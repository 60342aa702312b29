"""What a workbook says of itself: its sheets, the texts that cells share, and its styles."""

from __future__ import annotations

import posixpath
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from habitus.errors import UsageError
from habitus.workbooks.cells import CellReader, Shown, decoded, shown_by, whole
from habitus.workbooks.limits import ESCAPED, PART, SHARED, SHARED_TEXTS, TEXT
from habitus.workbooks.parts import Attributes, Parts, XmlParser, named

_SHEET = "/worksheet"
_SHARED = "/sharedStrings"
_STYLES = "/styles"


@dataclass(frozen=True, slots=True)
class Sheet:
    """A sheet of cells, and the part that holds it."""

    name: str
    part: str
    hidden: bool


@dataclass(frozen=True, slots=True)
class Book:
    """The sheets of a workbook in their order, and what reads their cells."""

    sheets: tuple[Sheet, ...]
    reader: CellReader


def read_book(parts: Parts) -> Book:
    """What must be known before a sheet can be read.

    Raises:
        UsageError: no workbook, damaged, or larger than is read.
    """
    main = next(iter(_related(parts, "", "/officeDocument").values()), "")
    if main not in parts:
        raise UsageError(
            f"{parts.path} holds no workbook; save it as .xlsx in a spreadsheet program"
        )
    if main.endswith(".bin"):
        raise UsageError(
            f"{parts.path} is a binary workbook (.xlsb); save it as .xlsx in a spreadsheet program"
        )
    listed = _Sheets()
    _run(parts, main, listed, PART)
    lie = _related(parts, main, _SHEET)
    sheets = tuple(
        Sheet(name, lie[target], hidden) for name, target, hidden in listed.found if target in lie
    )
    if not sheets:
        raise parts.fault("it lists no sheet of cells")
    return Book(sheets, _cell_reader(parts, main, listed.from_1904))


def chosen(book: Book, parts: Parts, name: str) -> Sheet:
    """The sheet of a name, or the first one that is shown.

    Raises:
        UsageError: there is none.
    """
    if not name:
        return next((sheet for sheet in book.sheets if not sheet.hidden), book.sheets[0])
    for sheet in book.sheets:
        if sheet.name == name:
            return sheet
    names = ", ".join(repr(sheet.name) for sheet in book.sheets[:20])
    raise UsageError(f"{parts.path} has no sheet {name!r}; it has {names}")


def _cell_reader(parts: Parts, main: str, from_1904: bool) -> CellReader:
    texts, styles = _Texts(parts), _Styles()
    for part in _related(parts, main, _SHARED).values():
        _run(parts, part, texts, SHARED)
    for part in _related(parts, main, _STYLES).values():
        _run(parts, part, styles, PART)
    return CellReader(texts.found, styles.shown(), from_1904)


def _related(parts: Parts, source: str, kind: str) -> dict[str, str]:
    """The parts that a part refers to as of some kind, by the ids of its references."""
    folder, name = posixpath.split(source)
    links = _Links()
    _run(parts, posixpath.join(folder, "_rels", f"{name}.rels"), links, PART)
    return {
        key: posixpath.normpath(posixpath.join("/", folder, target.replace("\\", "/")))[1:]
        for key, target, said in links.found
        if said.endswith(kind)
    }


def _run(parts: Parts, name: str, parser: XmlParser, limit: int) -> None:
    for _ in parts.parse(name, parser, limit):
        pass


class _Links(XmlParser):
    """References: id, target and kind of each that leads to a part."""

    def __init__(self) -> None:
        super().__init__()
        self.found: list[tuple[str, str, str]] = []

    def start(self, name: str, attributes: Attributes) -> None:
        if name == "Relationship" and attributes.get("TargetMode") != "External":
            self.found.append(
                (attributes.get("Id", ""), attributes.get("Target", ""), attributes.get("Type", ""))
            )


class _Sheets(XmlParser):
    """Names of sheets, their references, and whether they are hidden."""

    def __init__(self) -> None:
        super().__init__()
        self.found: list[tuple[str, str, bool]] = []
        self.from_1904 = False

    def start(self, name: str, attributes: Attributes) -> None:
        if name == "sheet":
            hidden = attributes.get("state", "visible") != "visible"
            self.found.append((attributes.get("name", ""), named(attributes, "id"), hidden))
        elif name == "workbookPr":
            self.from_1904 = attributes.get("date1904") in {"1", "true"}


class _Texts(XmlParser):
    """The shared texts: their runs joined, without the readings of East Asian words."""

    def __init__(self, parts: Parts) -> None:
        super().__init__()
        self.found: list[str] = []
        self._parts = parts
        self._runs: list[str] = []
        self._size = 0
        self._on = False
        self._readings = False

    def start(self, name: str, _: Attributes) -> None:
        if name == "rPh":
            self._readings = True
        elif name == "t":
            self._on = not self._readings

    def end(self, name: str) -> None:
        self._on = False
        if name == "rPh":
            self._readings = False
        elif name == "si":
            self.found.append(decoded("".join(self._runs)))
            self._runs.clear()
            self._size = 0
            if len(self.found) > SHARED_TEXTS:
                raise UsageError(
                    f"{self._parts.path} has more than {SHARED_TEXTS:,} texts; give the rows as JSON "
                    "lines or CSV"
                )

    def text(self, text: str) -> None:
        if not self._on:
            return
        self._runs.append(text)
        self._size += len(text)
        if self._size > ESCAPED * TEXT:
            raise UsageError(
                f"{self._parts.path}: a text in it has more than {TEXT:,} characters; give such rows "
                "as JSON lines"
            )


class _Styles(XmlParser):
    """Formats of numbers, and which one each style has."""

    def __init__(self) -> None:
        super().__init__()
        self._codes: dict[int, str] = {}
        self._formats: list[int] = []
        self._on = False

    def start(self, name: str, attributes: Attributes) -> None:
        number = whole(attributes.get("numFmtId", "0")) or 0
        if name == "numFmt":
            self._codes[number] = attributes.get("formatCode", "")
        elif name == "cellXfs":
            self._on = True
        elif name == "xf" and self._on:
            self._formats.append(number)

    def end(self, name: str) -> None:
        if name == "cellXfs":
            self._on = False

    def shown(self) -> Sequence[Shown]:
        """What each style makes of a number."""
        codes: Mapping[int, str] = self._codes
        return [shown_by(number, codes.get(number)) for number in self._formats]
