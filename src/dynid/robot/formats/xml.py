"""Robot descriptions in XML: reading untrusted files, changing parts of a text in place, writing elements.

The readers and writers of URDF and MJCF use them: `read_document` parses a file to a tree of `Element`; `TextEdits`
changes the text of such a document; `element_lines` writes new elements.

Only the file itself is opened: no mesh, include, entity or other path named in it is followed. Size, depth and number
of elements are limited, and document types are refused before parsing. Every element knows the place of its text, so
that a writer can replace a few characters and leave the rest of the file byte for byte as it was.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from xml.parsers import expat
from xml.sax.saxutils import quoteattr

import numpy as np
from numpy.typing import ArrayLike

from dynid.array_types import Floats
from dynid.checks import LARGEST
from dynid.errors import DescriptionError, ExportError
from dynid.safe_files.small_files import DEEPEST, read_small

MAX_BYTES = 16 * 2**20
"""Size of the largest description that is read [bytes] (convention; the largest humanoids stay below 1 MB)."""
MAX_ELEMENTS = 100_000
"""Most elements in one file (convention)."""

# "++" and "*+" do not backtrack, so that no hostile text makes these expressions slow
_START_TAG = re.compile(rb"""<(?:[^"'>]++|"[^"]*+"|'[^']*+')*+>""")
_FORBIDDEN = re.compile(rb"\0|<!(?:DOCTYPE|ENTITY)", re.IGNORECASE)
_NUMBER = re.compile(r"[+-]?(?:\d++\.?\d*+|\.\d++)(?:[eE][+-]?\d++)?", re.ASCII)
_INFINITE = re.compile(r"[+-]?inf(?:inity)?", re.IGNORECASE)


@dataclass(slots=True, eq=False)
class Element:
    """One XML element with its place in the file, and methods to read its attributes and children.

    Each of these methods raises a `DescriptionError` if what it reads is missing, double or not a number.
    """

    tag: str
    """Name of the element, such as ``link``."""
    attributes: dict[str, str]
    """Name of an attribute -> its text."""
    path: str
    """Name of the file for messages."""
    line: int
    """Line of the start tag, counted from 1."""
    start: int
    """Offset of the ``<`` of the start tag in the file [bytes]."""
    tag_end: int
    """Offset just behind the ``>`` of the start tag [bytes]."""
    end: int
    """Offset just behind the whole element [bytes]."""
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
        """The place of the element, for messages: ``link 'forearm' <mass> (line 12)``.

        An element without a name is placed in the nearest one around it that has a name.
        """
        holder: Element | None = self
        while holder is not None and not holder.name:
            holder = holder.parent
        tag = [] if holder is self else [f"<{_short(self.tag)}>"]
        named = [] if holder is None else [f"{_short(holder.tag)} '{_short(holder.name)}'"]
        return " ".join([*named, *tag, f"(line {self.line})"])

    def error(self, reason: str, remedy: str) -> DescriptionError:
        """An error that names the file and this element."""
        return DescriptionError(reason, path=self.path, place=self.place, remedy=remedy)

    @contextmanager
    def at(self) -> Iterator[None]:
        """Add file and element to errors that are raised inside the ``with`` block without them."""
        try:
            yield
        except DescriptionError as error:
            if error.path is not None:
                raise
            remedy = error.remedy or "Correct the element."
            raise DescriptionError(
                error.reason, path=self.path, place=error.place or self.place, remedy=remedy
            ) from None

    def attribute(self, name: str) -> str:
        """The text of an attribute, which must be there and not be empty."""
        value = self.attributes.get(name, "")
        if not value:
            raise self.error(f"the attribute '{name}' is missing", f'Add {name}="...".')
        return value

    def optional_child(self, tag: str) -> Element | None:
        """The child with that tag, or None; two of them contradict each other."""
        found = self.all(tag)
        if len(found) > 1:
            raise found[1].error(f"a second <{tag}> in the same <{self.tag}>", "Keep only one of them.")
        return found[0] if found else None

    def child(self, tag: str) -> Element:
        """The child with that tag, which must be there."""
        child = self.optional_child(tag)
        if child is None:
            raise self.error(f"<{tag}> is missing", f"Add a <{tag}> to the <{self.tag}>.")
        return child

    def number_list(self, name: str, default: ArrayLike | None = None) -> Floats:
        """All finite numbers in an attribute; ``default`` (if given) when the attribute is missing."""
        if name not in self.attributes and default is not None:
            return np.array(default, dtype=float)
        return np.array([self.plain_number(f"'{name}'", word) for word in self.attribute(name).split()])

    def numbers(self, name: str, count: int, default: ArrayLike | None = None) -> Floats:
        """The ``count`` finite numbers in an attribute; ``default`` as in `number_list`."""
        values = self.number_list(name, default)
        if values.size != count:
            wanted = "one number" if count == 1 else f"{count} numbers"
            raise self.error(f"'{name}' holds {values.size} values, not {wanted}", f"Give {wanted}.")
        return values

    def number(self, name: str, default: float | None = None, *, infinite: bool = False) -> float:
        """The one number in an attribute; ``infinite`` allows ``inf``, as some limits have it."""
        text = self.attributes.get(name, "").strip()
        if infinite and _INFINITE.fullmatch(text):
            return float(text)
        return float(self.numbers(name, 1, None if default is None else [default])[0])

    def plain_number(self, what: str, word: str) -> float:
        """Read a word as a finite number; ``what`` names its place in the error."""
        if not _NUMBER.fullmatch(word) or abs(float(word)) > LARGEST:
            reason = f"{what} holds '{_short(word)}', which is not a finite number below {LARGEST:g}"
            raise self.error(reason, "Give plain SI numbers.")
        return float(word)


@dataclass(frozen=True, slots=True, eq=False)
class XmlDocument:
    """A parsed description."""

    path: str
    """Name of the file for messages."""
    data: bytes
    """The whole text, in UTF-8."""
    root: Element
    """The outermost element."""

    def text_number(self, element: Element) -> float:
        """The one number between the tags of an element."""
        inside = self.data[element.tag_end : element.end].partition(b"<")[0].decode("utf-8").strip()
        return element.plain_number(f"<{element.tag}>", inside)


def read_document(path: str | os.PathLike[str]) -> XmlDocument:
    """Read and parse an XML file.

    Raises:
        DescriptionError: The file cannot be read, is too large, or is not the XML of a robot description.
    """
    path = os.fspath(path)  # refuses numbers, which `open` would take for file descriptors
    if isinstance(path, str) and path.lstrip().startswith("<"):
        raise DescriptionError(
            f"the path is the text of a description, which begins with '{_short(' '.join(path[:200].split()))}'",
            remedy="Write the text to a file, and give the path of that file.",
        )
    remedy = "Give the path of a robot description that you may read, with meshes in files of their own."
    return parse_document(read_small(path, most=MAX_BYTES, error=DescriptionError, remedy=remedy), path)


def parse_document(data: bytes | str, path: str) -> XmlDocument:
    """Parse the text of an XML file; ``path`` is only named in messages.

    Raises:
        DescriptionError: The text is not UTF-8, not well-formed, too deep, or declares a document type.
    """
    # a text with broken characters becomes bytes that are no UTF-8, which is reported below
    data = data.encode("utf-8", "surrogatepass") if isinstance(data, str) else data
    found = _FORBIDDEN.search(data)
    try:
        data.decode("utf-8")
        fault, start = (found.group(), found.start()) if found else (b"", 0)
    except UnicodeDecodeError as error:
        fault, start = b"\0", error.start  # a zero byte stands for any text that is not UTF-8
    if fault:
        reason, remedy = "the text is not UTF-8", "Save the file as UTF-8."
        if fault != b"\0":
            reason = f"{fault.decode()} is not accepted: entities can hide files and bombs"
            remedy = "Remove the declaration and write what its entities stand for."
        line = data[:start].count(b"\n") + 1
        raise DescriptionError(reason, path=path, place=f"line {line}", remedy=remedy)
    return XmlDocument(path=path, data=data, root=_TreeBuilder(data, path).build())


class _TreeBuilder:
    """Collects elements while expat parses the text; no recursion, so that no depth overflows Python's stack."""

    def __init__(self, data: bytes, path: str) -> None:
        self._data = data
        self._path = path
        self._open: list[Element] = []  # the elements whose end tag has not come yet, outermost first
        self._count = 0
        self._root: Element | None = None
        self._parser = expat.ParserCreate("utf-8")  # the bytes are UTF-8 whatever the declaration says
        self._parser.StartElementHandler = self._on_start
        self._parser.EndElementHandler = self._on_end

    def build(self) -> Element:
        """Parse the text and return the outermost element."""
        try:
            self._parser.Parse(self._data, True)
        except expat.ExpatError as error:
            reason = f"the text is not well-formed XML: {expat.ErrorString(error.code)}"
            remedy = "The file may be cut off or edited by accident: get it again or mend that line."
            if b"<" not in self._data:
                reason = "this is no robot description: it has no XML elements"
                remedy = "Give a URDF or MJCF file; a log comes after the robot."
            place = f"line {error.lineno}, column {error.offset + 1}"
            raise DescriptionError(reason, path=self._path, place=place, remedy=remedy) from None
        assert self._root is not None  # expat reports text without an element
        return self._root

    def _on_start(self, tag: str, attributes: dict[str, str]) -> None:
        """Add an element; called by expat at its start tag."""
        self._count += 1
        line = self._parser.CurrentLineNumber
        start = self._parser.CurrentByteIndex
        for value, bound, what in ((len(self._open) + 1, DEEPEST, "levels"), (self._count, MAX_ELEMENTS, "elements")):
            if value > bound:
                raise DescriptionError(
                    f"more than {bound} {what} of XML, which no robot description needs",
                    path=self._path,
                    place=f"line {line}",
                    remedy="Check that this is a robot description.",
                )
        match = _START_TAG.match(self._data, start)
        assert match is not None  # expat has just accepted this tag
        parent = self._open[-1] if self._open else None
        element = Element(tag, attributes, self._path, line, start, match.end(), match.end(), parent)
        if parent is None:
            self._root = element
        else:
            parent.children.append(element)
        self._open.append(element)

    def _on_end(self, _tag: str) -> None:
        """Set the end of an element; called by expat at its end tag, and for ``<tag/>`` right after its start."""
        element = self._open.pop()
        if self._data[element.tag_end - 2 : element.tag_end] != b"/>":  # it has an end tag, where the parser is now
            element.end = self._data.index(b">", self._parser.CurrentByteIndex) + 1


def _short(text: str, length: int = 60) -> str:
    """A text from a file as messages may show it: printable and not too long."""
    text = text if text.isprintable() else ascii(text)[1:-1]
    return text if len(text) <= length else text[: length - 3] + "..."


# name and quoted value
_ATTRIBUTE = re.compile(rb"""\s+([^\s=/>"']+)\s*=\s*("[^"]*"|'[^']*')""")
_NOT_XML = "[\x00-\x08\x0b\x0c\x0e-\x1f\ud800-\udfff\ufffe\uffff]"
"""Characters that no XML file may hold. The ranges that it may hold are longer, and slow to compile at every import."""


class TextEdits:
    """Replacements in the text of a document; whatever is not edited stays byte for byte as it is."""

    def __init__(self, document: XmlDocument) -> None:
        """Start without any change."""
        self._data = document.data
        self._newline = "\r\n" if b"\r\n" in document.data else "\n"
        self._edits: list[tuple[int, int, str]] = []  # first byte, byte behind the last, text in their place

    def set_attribute(self, element: Element, name: str, value: str | ArrayLike) -> None:
        """Set an attribute to a text or to numbers; a new one is put behind the others."""
        for match in _ATTRIBUTE.finditer(self._data, element.start, element.tag_end):
            if match.group(1).decode("utf-8") == name:
                self._edits.append((*match.span(2), _quote(value)))
                return
        end = self._tag_close(element)
        self._edits.append((end, end, f" {name}={_quote(value)}"))

    def insert_first(self, element: Element, lines: Iterable[str]) -> None:
        """Add lines of XML as the first child, indented like its neighbours."""
        outer = self._indent(element)
        inner = self._indent(element.children[0]) if element.children else outer + "  "
        text = "".join(f"{self._newline}{inner}{line}" for line in lines)
        if self._is_empty_tag(element):
            closing = f"{self._newline}{outer}</{element.tag}>"
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

    def set_child(self, element: Element, tag: str, lines: Iterable[str]) -> None:
        """Replace the child with that tag by lines of XML; without such a child insert them as the first."""
        child = element.optional_child(tag)
        if child is None:
            self.insert_first(element, lines)
        else:
            self._edits.append((child.start, child.end, f"{self._newline}{self._indent(child)}".join(lines)))

    def remove_element(self, element: Element) -> None:
        """Take an element and the space before it away."""
        start = len(self._data[: element.start].rstrip())
        self._edits.append((start, element.end, ""))

    def apply(self) -> bytes:
        """The edited text; the same bytes when there was no edit."""
        parts = []
        position = 0  # in the old text
        for start, end, text in sorted(self._edits, key=lambda edit: edit[:2]):
            parts += [self._data[position:start], text.encode("utf-8")]
            position = end
        return b"".join([*parts, self._data[position:]])

    def _is_empty_tag(self, element: Element) -> bool:
        """Whether an element is written as ``<tag/>``."""
        return self._data[element.tag_end - 2 : element.tag_end] == b"/>"

    def _tag_close(self, element: Element) -> int:
        """Offset of the ``>`` or ``/>`` of the start tag."""
        return element.tag_end - (2 if self._is_empty_tag(element) else 1)

    def _indent(self, element: Element) -> str:
        """The blanks before an element on its line; none if other text stands before it."""
        line = self._data[self._data.rfind(b"\n", 0, element.start) + 1 : element.start]
        return line.decode("utf-8") if not line.strip() else ""


def element_lines(tag: str, attributes: Mapping[str, str | ArrayLike], inside: Iterable[str] = ()) -> list[str]:
    """The lines of an element with texts or numbers as attributes, and other lines inside it."""
    start = f"<{tag}" + "".join(f" {name}={_quote(value)}" for name, value in attributes.items())
    inner = [f"  {line}" for line in inside]
    return [f"{start}>", *inner, f"</{tag}>"] if inner else [f"{start}/>"]


def format_numbers(values: ArrayLike) -> str:
    """Numbers with all the digits it takes to read back the same bits (17 at most)."""
    numbers = np.atleast_1d(np.asarray(values, dtype=float)) + 0.0  # + 0.0 turns -0.0 into 0.0
    if not np.isfinite(numbers).all():
        raise ExportError(
            f"{numbers.tolist()} cannot be written: not a finite number",
            remedy="Estimate the parameter or keep its old value.",
        )
    return " ".join(repr(number) for number in numbers.tolist())


def _quote(value: str | ArrayLike) -> str:
    """A text, or numbers, as the quoted value of an attribute."""
    text = value if isinstance(value, str) else format_numbers(value)
    bad = re.search(_NOT_XML, text)
    if bad:
        raise ExportError(
            f"{text[:60]!a} holds a character that XML cannot hold: {bad.group()!a}", remedy="Rename the link or joint."
        )
    return quoteattr(text)
