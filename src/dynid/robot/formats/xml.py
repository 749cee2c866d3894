"""Robot descriptions in XML: reading untrusted files, and changing a few attributes in place.

Only the file itself is opened: no mesh, include, entity or other path named in it is followed. Size, depth and
number of elements are bounded, document types are refused before parsing, and every element remembers where its text
stands, so that a writer can replace a few characters and leave the rest of the file byte for byte as it was.
"""

from __future__ import annotations

import os
import re
import stat
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from xml.parsers import expat

import numpy as np
from numpy.typing import ArrayLike

from dynid.arrays import Floats
from dynid.errors import DescriptionError, ExportError

MAX_BYTES = 16 * 2**20
"""Size of the largest description that is read [bytes] (convention; the largest humanoids stay below 1 MB)."""
MAX_DEPTH = 64
"""Deepest nesting of elements (convention)."""
MAX_ELEMENTS = 100_000
"""Most elements in one file (convention)."""
MAX_MAGNITUDE = 1e30
"""Largest number that is taken for one: its square and cube are still far from overflow."""

_START_TAG = re.compile(rb"""<(?:[^"'>]++|"[^"]*+"|'[^']*+')*+>""")
_NUMBER = re.compile(r"[+-]?(?:\d++\.?\d*+|\.\d++)(?:[eE][+-]?\d++)?", re.ASCII)
_INFINITE = re.compile(r"[+-]?inf(?:inity)?", re.IGNORECASE)


@dataclass(slots=True, eq=False)
class Element:
    """One XML element and the place of its text in the file, in bytes."""

    tag: str
    attributes: dict[str, str]
    line: int
    """Line of the start tag, counted from 1."""
    start: int
    """Offset of the ``<`` of the start tag."""
    tag_end: int
    """Offset just behind the ``>`` of the start tag."""
    end: int
    """Offset just behind the whole element."""
    parent: Element | None = field(default=None, repr=False)
    children: list[Element] = field(default_factory=list, repr=False)

    @property
    def name(self) -> str:
        """Its attribute ``name``; empty without one."""
        return self.attributes.get("name", "")

    def all(self, tag: str) -> list[Element]:
        """The direct children with that tag."""
        return [child for child in self.children if child.tag == tag]

    def walk(self) -> Iterator[Element]:
        """The element and all below it, in the order of the text."""
        yield self
        for child in self.children:
            yield from child.walk()

    @property
    def place(self) -> str:
        """Where it is, for a person: ``link 'forearm' <mass> (line 12)``."""
        holder: Element | None = self
        while holder is not None and not holder.name:
            holder = holder.parent
        own = [] if holder is self else [f"<{_short(self.tag)}>"]
        named = [] if holder is None else [f"{_short(holder.tag)} '{_short(holder.name)}'"]
        return " ".join([*named, *own, f"(line {self.line})"])


@dataclass(frozen=True, slots=True, eq=False)
class XmlDocument:
    """A parsed description: its name for messages, its bytes, its elements."""

    path: str
    data: bytes
    root: Element

    def error(self, element: Element, reason: str, remedy: str) -> DescriptionError:
        """An error that names this file and that element."""
        return DescriptionError(reason, path=self.path, place=element.place, remedy=remedy)

    @contextmanager
    def at(self, element: Element) -> Iterator[None]:
        """Give errors raised inside, which know neither file nor element, both."""
        try:
            yield
        except DescriptionError as error:
            if error.path is not None:
                raise
            place = element.place if error.place is None else error.place
            remedy = error.remedy or "Correct the element."
            raise DescriptionError(error.reason, path=self.path, place=place, remedy=remedy) from None

    def attribute(self, element: Element, attribute: str) -> str:
        """The attribute's text, which must be there and not be empty."""
        value = element.attributes.get(attribute, "")
        if not value:
            raise self.error(element, f"the attribute '{attribute}' is missing", f'Add {attribute}="...".')
        return value

    def optional_child(self, element: Element, tag: str) -> Element | None:
        """The child with that tag, or None; two of them contradict each other."""
        found = element.all(tag)
        if len(found) > 1:
            raise self.error(found[1], f"a second <{tag}> in the same <{element.tag}>", "Keep only one of them.")
        return found[0] if found else None

    def child(self, element: Element, tag: str) -> Element:
        """The child with that tag, which must be there."""
        child = self.optional_child(element, tag)
        if child is None:
            raise self.error(element, f"<{tag}> is missing", f"Add a <{tag}> to the <{element.tag}>.")
        return child

    def numbers(self, element: Element, attribute: str, count: int, default: ArrayLike | None = None) -> Floats:
        """The ``count`` finite numbers in an attribute; ``default`` (if given) when the attribute is missing."""
        if attribute not in element.attributes and default is not None:
            return np.array(default, dtype=float)
        values = self.number_list(element, attribute)
        if values.size != count:
            wanted = "one number" if count == 1 else f"{count} numbers"
            raise self.error(element, f"'{attribute}' holds {values.size} values, not {wanted}", f"Give {wanted}.")
        return values

    def number_list(self, element: Element, attribute: str) -> Floats:
        """All finite numbers in an attribute that must be there."""
        words = self.attribute(element, attribute).split()
        return np.array([self._plain_number(element, f"'{attribute}'", word) for word in words])

    def text_number(self, element: Element) -> float:
        """The one number between the tags of an element."""
        inside = self.data[element.tag_end : element.end].partition(b"<")[0].decode("utf-8").strip()
        return self._plain_number(element, f"<{element.tag}>", inside)

    def _plain_number(self, element: Element, what: str, word: str) -> float:
        if not _NUMBER.fullmatch(word) or abs(float(word)) > MAX_MAGNITUDE:
            reason = f"{what} holds '{_short(word)}', which is not a finite number below {MAX_MAGNITUDE:g}"
            raise self.error(element, reason, "Give plain SI numbers.")
        return float(word)

    def number(
        self, element: Element, attribute: str, default: float | None = None, *, infinite: bool = False
    ) -> float:
        """The one number in an attribute; ``infinite`` allows ``inf``, as some limits have it."""
        text = element.attributes.get(attribute, "").strip()
        if infinite and _INFINITE.fullmatch(text):
            return float(text)
        return float(self.numbers(element, attribute, 1, None if default is None else [default])[0])


def read_document(path: str | os.PathLike[str]) -> XmlDocument:
    """Read and parse an XML file.

    Raises:
        DescriptionError: The file cannot be read, is too large, or is not the XML of a robot description.
    """
    path = os.fspath(path)  # a number would be taken for an open file
    if isinstance(path, str) and path.lstrip().startswith("<"):
        raise DescriptionError(
            f"the path is the text of a description, which begins with '{_short(' '.join(path[:200].split()))}'",
            remedy="Write the text to a file, and give the path of that file.",
        )
    try:
        with open(path, "rb", opener=_open_without_waiting) as file:
            status = os.fstat(file.fileno())
            if not stat.S_ISREG(status.st_mode):
                raise DescriptionError("not a regular file", path=path, remedy="Give the path of a description file.")
            if status.st_size > MAX_BYTES:
                raise _too_large(os.fspath(path), status.st_size)
            data = file.read(MAX_BYTES + 1)
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
        raise DescriptionError(
            f"the file cannot be read: {reason}", path=path, remedy="Check the path and its permissions."
        ) from None
    return parse_document(data, os.fspath(path))


def parse_document(data: bytes | str, path: str) -> XmlDocument:
    """Parse the text of an XML file; ``path`` is only named in messages.

    Raises:
        DescriptionError: The text is too large, not UTF-8, not well-formed, too deep, or declares a document type.
    """
    if isinstance(data, str):
        try:
            data = data.encode("utf-8")
        except UnicodeEncodeError as error:
            raise DescriptionError(
                "the text holds half a character", path=path, place=f"character {error.start}", remedy="Remove it."
            ) from None
    if len(data) > MAX_BYTES:
        raise _too_large(path, len(data))
    _check_text(data, path)
    return XmlDocument(path=path, data=data, root=_TreeBuilder(data, path).build())


def _open_without_waiting(path: str, flags: int) -> int:
    return os.open(path, flags | getattr(os, "O_NONBLOCK", 0))  # a pipe without a writer would block for ever


def _too_large(path: str, size: int) -> DescriptionError:
    return DescriptionError(
        f"the file has {size} bytes, more than the {MAX_BYTES} a robot description may have",
        path=path,
        remedy="Give the description itself, with meshes in files of their own.",
    )


def _check_text(data: bytes, path: str) -> None:
    if b"\0" in data:
        line = data[: data.index(b"\0")].count(b"\n") + 1
        raise DescriptionError(
            "the file holds a NUL byte", path=path, place=f"line {line}", remedy="Save it as UTF-8 text."
        )
    try:
        data.decode("utf-8")
    except UnicodeDecodeError as error:
        line = data[: error.start].count(b"\n") + 1
        raise DescriptionError(
            "the text is not UTF-8", path=path, place=f"line {line}", remedy="Save the file as UTF-8."
        ) from None
    declaration = re.search(rb"<!(?:DOCTYPE|ENTITY)", data, re.IGNORECASE)
    if declaration:
        line = data[: declaration.start()].count(b"\n") + 1
        raise DescriptionError(
            f"{declaration.group().decode()} is not accepted: entities can hide files and bombs",
            path=path,
            place=f"line {line}",
            remedy="Remove the declaration and write what its entities stand for.",
        )


class _TreeBuilder:
    """Collects elements while expat walks the text; holds its own stack, so that no depth overflows Python's."""

    def __init__(self, data: bytes, path: str) -> None:
        self._data, self._path = data, path
        self._open: list[Element] = []
        self._count = 0
        self._root: Element | None = None
        self._parser = expat.ParserCreate("utf-8")  # the bytes are UTF-8 whatever the declaration says
        self._parser.StartElementHandler = self._on_start
        self._parser.EndElementHandler = self._on_end

    def build(self) -> Element:
        try:
            self._parser.Parse(self._data, True)
        except expat.ExpatError as error:
            if b"<" not in self._data:
                raise DescriptionError(
                    "this is no robot description: it has no XML elements",
                    path=self._path,
                    place="line 1",
                    remedy="Give a URDF or MJCF file; a log comes after the robot.",
                ) from None
            raise DescriptionError(
                f"the text is not well-formed XML: {expat.ErrorString(error.code)}",
                path=self._path,
                place=f"line {error.lineno}, column {error.offset + 1}",
                remedy="The file may be cut off or edited by accident: get it again or mend that line.",
            ) from None
        assert self._root is not None  # expat reports text without an element
        return self._root

    def _on_start(self, tag: str, attributes: dict[str, str]) -> None:
        self._count += 1
        self._check_bounds()
        start = self._parser.CurrentByteIndex
        match = _START_TAG.match(self._data, start)
        assert match is not None  # expat has just accepted this tag
        parent = self._open[-1] if self._open else None
        element = Element(tag, attributes, self._parser.CurrentLineNumber, start, match.end(), match.end(), parent)
        if parent is None:
            self._root = element
        else:
            parent.children.append(element)
        self._open.append(element)

    def _on_end(self, _tag: str) -> None:
        element = self._open.pop()
        if self._data[element.tag_end - 2 : element.tag_end] != b"/>":
            element.end = self._data.index(b">", self._parser.CurrentByteIndex) + 1

    def _check_bounds(self) -> None:
        for value, bound, what in ((len(self._open) + 1, MAX_DEPTH, "levels"), (self._count, MAX_ELEMENTS, "elements")):
            if value > bound:
                raise DescriptionError(
                    f"more than {bound} {what} of XML, which no robot description needs",
                    path=self._path,
                    place=f"line {self._parser.CurrentLineNumber}",
                    remedy="Check that this is a robot description.",
                )


def _short(text: str, length: int = 60) -> str:
    text = text if text.isprintable() else ascii(text)[1:-1]
    return text if len(text) <= length else text[: length - 3] + "..."


_ATTRIBUTE = re.compile(rb"""\s+([^\s=/>"']+)\s*=\s*("[^"]*"|'[^']*')""")
_ESCAPES = str.maketrans(
    {"&": "&amp;", "<": "&lt;", ">": "&gt;", '"': "&quot;", "'": "&#x27;", "\t": "&#9;", "\n": "&#10;", "\r": "&#13;"}
)
"""Characters that attributes hold in another way."""
_NOT_XML = "[\x00-\x08\x0b\x0c\x0e-\x1f\ud800-\udfff\ufffe\uffff]"
"""What no XML file may hold: to compile the much longer ranges that it may hold takes as long as a small package."""


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

    def insert_last(self, element: Element, lines: Iterable[str]) -> None:
        """Add lines of XML as the last child, indented like its neighbours."""
        if not element.children:
            self.insert_first(element, lines)
            return
        end = element.children[-1].end
        text = "".join(f"{self._newline}{self._indent(element.children[-1])}{line}" for line in lines)
        self._edits.append((end, end, text))

    def remove_element(self, element: Element) -> None:
        """Take an element and the space before it away."""
        start = len(self._data[: element.start].rstrip())
        self._edits.append((start, element.end, ""))

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
    bad = re.search(_NOT_XML, value)
    if bad:
        raise ExportError(
            f"{value[:60]!a} holds a character that XML cannot hold: {bad.group()!a}",
            remedy="Rename the link or joint.",
        )
    return value.translate(_ESCAPES)
