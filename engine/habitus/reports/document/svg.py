"""A figure of matplotlib as SVG inside a page that allows no styles but its own.

Style attributes become attributes of the same names, ids are made the page's own, and what only a
file needs is left out. Colours of ink and paper stay as they are drawn: the page's style sheet
names them and gives them their dark forms. What has a meaning by its colour is in the class ``own``.
"""

from __future__ import annotations

import re
import xml.etree.ElementTree as ET

from markupsafe import Markup

from habitus.reports.tilemap import OWN

_SVG, _XLINK = "http://www.w3.org/2000/svg", "http://www.w3.org/1999/xlink"
_HREF = f"{{{_XLINK}}}href"
_REFERENCE = re.compile(r"#([\w.-]+)")
_LEFT_OUT = {f"{{{_SVG}}}metadata", f"{{{_SVG}}}style"}
#: Pixels for a point of the file: its smallest text is then as large as small text of the page.
_SCALE = 1.5
#: Left to the style sheet of the page.
_OF_THE_PAGE = {"font-family"}


def inline_svg(data: bytes, name: str, title: str, text: str) -> Markup:
    """The drawing as an element of a page.

    Args:
        data: what matplotlib wrote.
        name: unique on the page; ids begin with it.
        title: what it is.
        text: what can be seen in it.
    """
    root = ET.fromstring(data)  # noqa: S314  (written by matplotlib a moment ago)
    _drop(root)
    used = _used(root)
    for element in root.iter():
        _own_id(element, name, used)
        _unstyle(element)
    view = root.attrib["viewBox"]
    root.attrib.clear()
    width, height = (float(part) * _SCALE for part in view.split()[2:])
    root.attrib.update(viewBox=view, width=f"{width:.0f}", height=f"{height:.0f}", role="img")
    root.set("aria-labelledby", f"{name}-title {name}-desc")
    for place, (tag, said) in enumerate((("title", title), ("desc", text))):
        element = ET.Element(f"{{{_SVG}}}{tag}", id=f"{name}-{tag}")
        element.text = said
        root.insert(place, element)
    return Markup(_text(root))  # noqa: S704  (serialised from a tree: every text is escaped)


def _text(root: ET.Element) -> str:
    for element in root.iter():
        element.tag = element.tag.removeprefix(f"{{{_SVG}}}")
        if "text" not in element.tag and not (element.text or "").strip():
            element.text = None
        element.tail = None
    return ET.tostring(root, encoding="unicode", short_empty_elements=True)


def _drop(parent: ET.Element) -> None:
    for child in list(parent):
        if child.tag in _LEFT_OUT:
            parent.remove(child)
        else:
            _drop(child)


def _used(root: ET.Element) -> set[str]:
    """Ids that something refers to."""
    return {
        found
        for element in root.iter()
        for key, value in element.attrib.items()
        if key in {_HREF, "clip-path", "style", "fill"}
        for found in _REFERENCE.findall(value)
    }


def _own_id(element: ET.Element, name: str, used: set[str]) -> None:
    own = element.attrib.pop("id", None)
    if own is not None and own in used:
        element.set("id", f"{name}-{own}")
    if own is not None and own.startswith(OWN):
        element.set("class", "own")
    if _HREF in element.attrib:
        element.set("href", f"#{name}-{element.attrib.pop(_HREF)[1:]}")
    if "clip-path" in element.attrib:
        element.set("clip-path", element.attrib["clip-path"].replace("#", f"#{name}-"))
    if "url(#" in element.get("style", ""):
        element.set("style", element.attrib["style"].replace("url(#", f"url(#{name}-"))
    if "d" in element.attrib:
        element.set("d", " ".join(element.attrib["d"].split()))


def _unstyle(element: ET.Element) -> None:
    for part in element.attrib.pop("style", "").split(";"):
        key, _, value = part.partition(":")
        if key.strip() and key.strip() not in _OF_THE_PAGE:
            element.set(key.strip(), value.strip())
