"""The blocks of a page as plain data, and how each is written as HTML and as Markdown.

``tag=True`` lets msgspec write the name of the class into JSON, so that a list of blocks can be read back.
"""

from __future__ import annotations

import base64
import json
import math
from collections.abc import Mapping, Sequence
from textwrap import indent
from typing import Any

import numpy as np
from msgspec import Struct, to_builtins
from msgspec.structs import replace
from numpy.typing import ArrayLike

from dynid.array_types import Floats
from dynid.safe_text import html_text, markdown_text
from dynid.tables import Cell, Table

MOST_LISTED = 12
"""Most entries of a long list, and most joints of which curves are drawn (convention: a page of a few hundred
kilobytes)."""
FAR_START_LENGTHS = 100.0
"""Start of an axis, in lengths of the axis, beyond which it is subtracted (derivation: the pages store float32, whose
relative step of 6e-8 then stays below 1e-5 of the axis)."""


class Text(Struct, frozen=True, tag=True):
    """A paragraph."""

    text: str
    role: str = ""
    """Class of the style sheet: ``hint``, or ``verdict good``, ``verdict bad``, ``verdict open``; empty for none."""


class Heading(Struct, frozen=True, tag=True):
    """A heading within a section."""

    text: str


class Cards(Struct, frozen=True, tag=True):
    """A few numbers in large type: (label, number as text)."""

    items: tuple[tuple[str, str], ...]


class Bullets(Struct, frozen=True, tag=True):
    """A list; each item has a bold term, which may be empty, and a text."""

    items: tuple[tuple[str, str], ...]


class Code(Struct, frozen=True, tag=True):
    """Text to copy unchanged."""

    text: str


class Notices(Struct, frozen=True, tag=True):
    """Findings in the order of their severity: (severity, code, sentence, commands to run next, one a line)."""

    items: tuple[tuple[str, str, str, str], ...]


class Curve(Struct, frozen=True):
    """One line of a plot; numbers are encoded by `pack`."""

    label: str
    y: str
    dashed: bool = False
    half: str = ""
    """Half width of a band around the line; empty for none."""


class Plot(Struct, frozen=True, tag=True):
    """Curves over a common axis, zoomable."""

    label: str
    """Description for screen readers."""
    x_label: str
    y_label: str
    x: str
    """Ascending numbers encoded by `pack`."""
    curves: tuple[Curve, ...]
    small: bool = False
    """Whether several plots stand side by side."""

    @classmethod
    def of(
        cls, label: str, x_label: str, y_label: str, x: ArrayLike, curves: Sequence[tuple[str, ArrayLike]], *,
        dashed: Sequence[str] = (), small: bool = False, half: ArrayLike | None = None,
    ) -> Plot:  # fmt: skip
        """Make a plot from arrays; an axis that starts far from zero, such as Unix time stamps, starts from zero.

        Args:
            label: Description for screen readers.
            x_label: Label of the horizontal axis.
            y_label: Label of the vertical axis.
            x: (N,) ascending numbers of the horizontal axis.
            curves: Name and values (N,) of each curve.
            dashed: Names of the curves that are dashed.
            small: Whether several plots stand side by side.
            half: (N,) half width of a band around the first curve; None for no band.
        """
        numbers, x_label = subtract_start(x, x_label)
        band = "" if half is None else pack(half)
        lines = (Curve(name, pack(y), name in dashed, "" if k else band) for k, (name, y) in enumerate(curves))
        return cls(label, x_label, y_label, pack(numbers), tuple(lines), small)


class Player(Struct, frozen=True, tag=True):
    """A motion in three dimensions."""

    label: str
    data: dict[str, Any]
    """Data for the page's script; arrays are encoded by `pack`."""


class Shape(Struct, frozen=True):
    """A part of a drawing."""

    kind: str
    """``rect``, ``line``, ``circle`` or ``text``."""
    place: tuple[float, ...]
    """Position and size: the values of the attributes in `PLACES`."""
    role: str = ""
    """``prior``, ``plain`` or ``rich``, which decides the colour; empty for black."""
    text: str = ""
    """The text itself, or what pointing at another shape shows."""


PLACES = {"rect": "x y width height", "line": "x1 y1 x2 y2", "circle": "cx cy r", "text": "x y"}
"""Kind of shape -> names of the SVG attributes that hold its position and size."""


class Drawing(Struct, frozen=True, tag=True):
    """A still picture of shapes, as wide as there is room; x grows to the right and y downwards."""

    label: str
    width: float
    height: float
    shapes: tuple[Shape, ...]


Block = Text | Heading | Cards | Bullets | Code | Notices | Table | Plot | Player | Drawing


def pack(values: ArrayLike) -> str:
    """Encode numbers as base64 of little-endian float32: a quarter of the length that they have as text."""
    return base64.b64encode(np.asarray(values, dtype="<f4").tobytes()).decode()


def subtract_start(x: ArrayLike, label: str) -> tuple[Floats, str]:
    """Let an axis begin at zero where it begins far from zero, so that float32 is precise enough for it.

    Args:
        x: (N,) numbers of the axis.
        label: Its label.

    Returns:
        The numbers (N,) and the label; where the start was subtracted, the label names it.
    """
    numbers = np.asarray(x, dtype=np.float64)
    finite = numbers[np.isfinite(numbers)]
    if not finite.size or abs(float(finite[0])) <= FAR_START_LENGTHS * float(np.ptp(finite)):
        return numbers, label
    start = float(finite[0])
    return numbers - start, f"{label} after {start:.15g}"


# --- HTML -------------------------------------------------------------------------------------------------------------


def block_html(block: Block) -> str:
    """Write a block as HTML, with all its texts escaped."""
    match block:
        case Text(text, role):
            return f'<p class="{html_text(role)}">{html_text(text)}</p>' if role else f"<p>{html_text(text)}</p>"
        case Heading(text):
            return f"<h3>{html_text(text)}</h3>"
        case Code(text):
            return f'<pre tabindex="0">{html_text(text)}</pre>'
        case Cards(items):
            cards = (
                f'<div class="card"><b>{html_text(number)}</b><span>{html_text(name)}</span></div>'
                for name, number in items
            )
            return f'<div class="cards">{"".join(cards)}</div>'
        case Bullets(items):
            lines = (
                f"<b>{html_text(word)}</b>: {html_text(text)}" if word else html_text(text) for word, text in items
            )
            return f"<ul>{''.join(f'<li>{line}</li>' for line in lines)}</ul>" if items else ""
        case Notices(items):
            return f'<ul class="notices">{"".join(map(_notice_html, items))}</ul>' if items else ""
        case Table():
            return _table_html(block)
        case Plot():
            data = {"x": block.x, "xlabel": block.x_label, "ylabel": block.y_label, "lines": to_builtins(block.curves)}
            return _widget("lines", block.label, data, 170 if block.small else 230)
        case Player(label, data):
            return _widget("robot", label, data, 380)
        case Drawing(label, width, height, shapes):
            box = f"0 0 {width:g} {height:g}"
            parts = "".join(map(_shape_svg, shapes))
            svg = f'<svg class="drawing" viewBox="{box}" role="img" aria-label="{html_text(label)}">{parts}</svg>'
            return f"<figure>{svg}<figcaption>{html_text(label)}</figcaption></figure>"


def _shape_svg(shape: Shape) -> str:
    numbers = zip(PLACES[shape.kind].split(), shape.place, strict=True)
    attributes = " ".join(f'{name}="{number:.1f}"' for name, number in numbers)
    words = html_text(shape.text) if shape.kind == "text" else f"<title>{html_text(shape.text)}</title>"
    return f'<{shape.kind} class="{html_text(shape.role)}" {attributes}>{words}</{shape.kind}>'


def _notice_html(item: tuple[str, str, str, str]) -> str:
    severity, code, sentence, command = map(html_text, item)
    run = f'<pre tabindex="0">{command}</pre>' if command else ""
    return f'<li class="{severity}"><b>{severity}</b><code>{code}</code> {sentence}{run}</li>'


def _without_infinite(block: Table) -> Table:
    """Copy a table with empty cells in place of numbers that are not finite."""
    return replace(block, rows=tuple(tuple(map(_finite, row)) for row in block.rows))


def _finite(cell: Cell) -> Cell:
    return None if isinstance(cell, float) and not math.isfinite(cell) else cell


def _table_html(block: Table) -> str:
    text = _without_infinite(block).to_html()
    text = f'<div class="scroll" tabindex="0" role="region" aria-label="table">{text}</div>'
    return f"<details><summary>{html_text(block.folded)}</summary>{text}</details>" if block.folded else text


def _widget(kind: str, label: str, data: Mapping[str, Any], height: int) -> str:
    """Write a canvas with its data, which the page's script (report.js) draws.

    Args:
        kind: ``lines`` or ``robot``: which function of the script draws it.
        label: Description for screen readers.
        data: Data as the script reads them.
        height: Height on the page [px].
    """
    text = json.dumps(data, separators=(",", ":")).replace("<", "\\u003c")  # no tag can end the script element
    return (
        f'<figure class="{kind}"><canvas tabindex="0" role="img" aria-label="{html_text(label)}" height="{height}">'
        f'</canvas><script type="application/json">{text}</script></figure>'
    )


# --- Markdown ---------------------------------------------------------------------------------------------------------


def block_markdown(block: Block) -> str:
    """Write a block as GitHub-flavoured Markdown without HTML."""
    match block:
        case Text(text, role):
            return f"**{markdown_text(text)}**" if role.startswith("verdict") else markdown_text(text)
        case Heading(text):
            return f"### {markdown_text(text)}"
        case Code(text):
            return indent(text, "    ")
        case Cards(items):
            return "\n".join(f"- {markdown_text(label)}: **{markdown_text(figure)}**" for label, figure in items)
        case Bullets(items):
            return "\n".join(
                f"- **{markdown_text(word)}**: {markdown_text(text)}" if word else f"- {markdown_text(text)}"
                for word, text in items
            )
        case Notices(items):
            lines = []
            for severity, code, sentence, command in items:
                lines.append(f"- **{markdown_text(severity)}** ({markdown_text(code)}): {markdown_text(sentence)}")
                lines += ["", indent(command, 6 * " "), ""] if command else []
            return "\n".join(lines).rstrip()
        case Table():
            return _without_infinite(block).to_markdown()
        case Plot(label) | Player(label) | Drawing(label):
            return f"*In the HTML report: {markdown_text(label)}.*"
