"""Changing a few attributes of an XML text in place."""

from __future__ import annotations

import html
import re
from collections.abc import Iterable, Mapping

import numpy as np

from dynid.errors import ExportError
from dynid.robot.xml_document import Element, XmlDocument

__all__ = ["TextEdits", "format_numbers", "start_tag"]

_ATTRIBUTE = re.compile(rb"""\s+([^\s=/>"']+)\s*=\s*("[^"]*"|'[^']*')""")
_NOT_XML = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


class TextEdits:
    """Replacements in the text of a document; whatever is not edited stays byte for byte as it is."""

    def __init__(self, document: XmlDocument) -> None:
        """Start without any change."""
        self._data = document.data
        self._newline = "\r\n" if b"\r\n" in document.data else "\n"
        self._edits: list[tuple[int, int, str]] = []

    def set_attribute(self, element: Element, name: str, value: str) -> None:
        """Give an attribute a value, in its place or, if it is new, behind the others."""
        span = self._attribute_span(element, name)
        if span is None:
            end = self._tag_close(element)
            self._edits.append((end, end, f' {name}="{_escape(value)}"'))
        else:
            self._edits.append((span[1], span[2], f'"{_escape(value)}"'))

    def set_numbers(self, element: Element, name: str, values: Iterable[float], present: Iterable[float]) -> None:
        """Give an attribute numbers, unless the ``present`` ones are the same."""
        values = [float(value) for value in values]
        if values != [float(value) for value in present]:
            self.set_attribute(element, name, format_numbers(values))

    def remove_attribute(self, element: Element, name: str) -> None:
        """Take an attribute and the space before it away; nothing happens when it is not there."""
        span = self._attribute_span(element, name)
        if span is not None:
            self._edits.append((span[0], span[2], ""))

    def insert_first(self, element: Element, lines: Iterable[str]) -> None:
        """Add lines of XML as the first child, indented like its neighbours."""
        own = self._indent(element)
        inner = self._indent(element.children[0]) if element.children else own + "  "
        text = "".join(f"{self._newline}{inner}{line}" for line in lines)
        if self._is_empty_tag(element):
            closing = f"{self._newline}{own}</{element.tag}>"
            self._edits.append((self._tag_close(element), element.tag_end, f">{text}{closing}"))
        else:
            self._edits.append((element.tag_end, element.tag_end, text))

    def apply(self) -> bytes:
        """The edited text; the same bytes when there was no edit."""
        parts, position = [], 0
        for start, end, text in sorted(self._edits, key=lambda edit: edit[:2]):
            parts += [self._data[position:start], text.encode("utf-8")]
            position = end
        return b"".join([*parts, self._data[position:]])

    def _attribute_span(self, element: Element, name: str) -> tuple[int, int, int] | None:
        """Offsets of the space before the attribute, of its quoted value and of its end."""
        for match in _ATTRIBUTE.finditer(self._data, element.start, element.tag_end):
            if match.group(1).decode("utf-8") == name:
                return match.start(), match.start(2), match.end(2)
        return None

    def _is_empty_tag(self, element: Element) -> bool:
        return self._data[element.tag_end - 2 : element.tag_end] == b"/>"

    def _tag_close(self, element: Element) -> int:
        return element.tag_end - (2 if self._is_empty_tag(element) else 1)

    def _indent(self, element: Element) -> str:
        line = self._data[self._data.rfind(b"\n", 0, element.start) + 1 : element.start]
        return line.decode("utf-8") if not line.strip() else ""


def start_tag(tag: str, attributes: Mapping[str, str]) -> str:
    """``<tag name="value" ...`` without its end, names and values escaped."""
    return f"<{tag}" + "".join(f' {name}="{_escape(value)}"' for name, value in attributes.items())


def format_numbers(values: Iterable[float]) -> str:
    """Numbers with all the digits it takes to read back the same bits (17 at most)."""
    numbers = [float(value) + 0.0 for value in values]  # + 0.0 turns -0.0 into 0.0
    if not np.isfinite(numbers).all():
        raise ExportError(
            f"{numbers} cannot be written: not a finite number", remedy="Estimate the parameter or keep its old value."
        )
    return " ".join(repr(number) for number in numbers)


def _escape(value: str) -> str:
    bad = _NOT_XML.search(value)
    if bad:
        raise ExportError(
            f"{value[:60]!a} holds a character that XML cannot hold: {bad.group()!a}",
            remedy="Rename the link or joint.",
        )
    escaped = html.escape(value, quote=True)
    for character in "\t\n\r":
        escaped = escaped.replace(character, f"&#{ord(character)};")
    return escaped
