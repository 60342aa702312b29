"""A figure of matplotlib as SVG inside a page that allows no styles but its own.

Style attributes become attributes of the same names, ids are made the page's own, and what only a
file needs is left out. Colours of ink and paper stay as they are drawn: the page's style sheet
names them and gives them their dark forms. What has a meaning by its colour is in the class ``own``.
"""

from __future__ import annotations

import re
import xml.etree.ElementTree as ET
from collections.abc import Mapping
from dataclasses import dataclass, field

from markupsafe import Markup

from habitus.reports.tilemap import OWN

_SVG, _XLINK = "http://www.w3.org/2000/svg", "http://www.w3.org/1999/xlink"
_PATTERN = f"{{{_SVG}}}pattern"
_HREF = f"{{{_XLINK}}}href"
_REFERENCE = re.compile(r"(^|url\()#([\w.-]+)")  # and no colour such as #ffffff
_LEFT_OUT = {f"{{{_SVG}}}metadata", f"{{{_SVG}}}style"}
#: Pixels for a point of the file: its smallest text is then as large as small text of the page.
_SCALE = 1.5
_CIRCLE = re.compile(r"M -?[\d.e-]+ -?[\d.e-]+(?: C(?: -?[\d.e-]+){6}){8} [Zz]", re.ASCII)
#: Left to the style sheet of the page.
_OF_THE_PAGE = {"font-family"}


@dataclass(frozen=True, slots=True)
class Hatches:
    """The hatches of a page: each is defined in the first drawing that has it. ``name`` is unique."""

    name: str
    defined: set[str] = field(default_factory=set)


def inline_svg(data: bytes, name: str, said: tuple[str, str], hatches: Hatches) -> Markup:
    """The drawing as an element of a page.

    Args:
        data: what matplotlib wrote.
        name: unique on the page; ids begin with it.
        said: what it is, and what can be seen in it.
        hatches: those that the page has already; new ones are added.
    """
    root = ET.fromstring(data)  # noqa: S314  (written by matplotlib a moment ago)
    names = _names(root, name, hatches)
    _drop(root, hatches.defined)
    hatches.defined.update(e.attrib["id"] for e in root.iter(_PATTERN))
    for element in root.iter():
        _rename(element, names)
        _unstyle(element)
    view = root.attrib["viewBox"]
    root.attrib.clear()
    width, height = (float(part) * _SCALE for part in view.split()[2:])
    root.attrib.update(viewBox=view, width=f"{width:.0f}", height=f"{height:.0f}", role="img")
    root.set("aria-labelledby", f"{name}-title {name}-desc")
    for place, (tag, words) in enumerate(zip(("title", "desc"), said, strict=True)):
        element = ET.Element(f"{{{_SVG}}}{tag}", id=f"{name}-{tag}")
        element.text = words
        root.insert(place, element)
    return Markup(_text(root))  # noqa: S704  (serialised from a tree: every text is escaped)


def _text(root: ET.Element) -> str:
    for element in root.iter():
        element.tag = element.tag.removeprefix(f"{{{_SVG}}}")
        if "text" not in element.tag and not (element.text or "").strip():
            element.text = None
        element.tail = None
    return ET.tostring(root, encoding="unicode", short_empty_elements=True)


def _drop(parent: ET.Element, defined: set[str]) -> None:
    for child in list(parent):
        again = child.tag == _PATTERN and child.get("id") in defined
        if again or child.tag in _LEFT_OUT:
            parent.remove(child)
        else:
            _drop(child, defined)


def _names(root: ET.Element, name: str, hatches: Hatches) -> dict[str, str]:
    """New names of the ids that something refers to."""
    used = {
        found
        for element in root.iter()
        for key, value in element.attrib.items()
        if key in {_HREF, "clip-path", "style"}
        for _, found in _REFERENCE.findall(value)
    }
    patterns = {element.attrib["id"] for element in root.iter(_PATTERN)}
    return {old: f"{hatches.name if old in patterns else name}-{old}" for old in used}


def _rename(element: ET.Element, names: Mapping[str, str]) -> None:
    own = element.attrib.pop("id", "")
    if own in names:
        element.set("id", names[own])
    if own.startswith(OWN):
        element.set("class", "own")
    if _HREF in element.attrib:
        element.set("href", element.attrib.pop(_HREF))
    for key in {"href", "clip-path", "style"} & element.attrib.keys():
        element.set(key, _REFERENCE.sub(lambda m: f"{m[1]}#{names[m[2]]}", element.attrib[key]))
    if "d" in element.attrib:
        element.set("d", _CIRCLE.sub(_arcs, " ".join(element.attrib["d"].split())))


def _arcs(match: re.Match[str]) -> str:
    """A circle as two arcs in place of eight curves: hatches of dots have thousands of them."""
    numbers = [float(part) for part in re.findall(r"-?[\d.]+(?:e-?\d+)?", match[0])]
    x, y = numbers[:2]
    bottom_x, bottom_y = numbers[24:26]
    middle_x, middle_y = numbers[12:14]
    radius = (y - bottom_y) / 2
    round_enough = abs(x - bottom_x) + abs(middle_x - x - radius) + abs(middle_y - y + radius)
    if abs(radius) == 0 or round_enough > 0.01 * abs(radius):
        return match[0]
    r = f"{abs(radius):.4g}"
    return f"M{x:.6g} {y:.6g}a{r} {r} 0 1 0 0 {-2 * radius:.4g}a{r} {r} 0 1 0 0 {2 * radius:.4g}z"


def _unstyle(element: ET.Element) -> None:
    for part in element.attrib.pop("style", "").split(";"):
        key, _, value = part.partition(":")
        if key.strip() and key.strip() not in _OF_THE_PAGE:
            element.set(key.strip(), value.strip())
