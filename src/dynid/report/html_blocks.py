"""Blocks that a page consists of: paragraphs, figures, tables, curves; plain data, shown as HTML, Markdown or JSON."""

from __future__ import annotations

import base64
import json
import math
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, fields
from html import escape
from textwrap import indent
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike

from dynid.errors import DataError
from dynid.plain_data import build_dataclass
from dynid.report.chart import subtract_start
from dynid.tables import Cell, Table

BAR_HALF = 80.0
"""Half width of the drawing of an interval [px]."""


def pack(values: ArrayLike) -> str:
    """Encode numbers as base64 of little-endian float32, a quarter of their size as text."""
    return base64.b64encode(np.asarray(values, dtype="<f4").tobytes()).decode()


class Block(ABC):
    """A part of a section; concrete blocks are frozen dataclasses whose fields JSON can hold."""

    @abstractmethod
    def to_html(self) -> str:
        """Escaped HTML."""

    @abstractmethod
    def to_markdown(self) -> str:
        """GitHub-flavoured Markdown."""

    def to_json(self) -> dict[str, Any]:
        """The fields, with the name of the block's type in ``block``."""
        own = fields(self)  # type: ignore[arg-type]  # all are dataclasses
        return {"block": type(self).__name__, **{one.name: getattr(self, one.name) for one in own}}

    @staticmethod
    def from_json(data: Mapping[str, Any]) -> Block:
        """Turn the output of `to_json` back into the block."""
        kinds: dict[str, type[Block]] = {kind.__name__: kind for kind in Block.__subclasses__()}
        try:
            return kinds[data["block"]].from_fields({name: value for name, value in data.items() if name != "block"})
        except (DataError, KeyError, TypeError, ValueError) as error:
            raise DataError(f"not a block of a report: {error}", remedy="Run the command again.") from error

    @classmethod
    def from_fields(cls, data: dict[str, Any]) -> Self:
        """Build the block from its fields."""
        return build_dataclass(cls, {name: _tuples(value) for name, value in data.items()})


def _tuples(value: Any) -> Any:
    return tuple(_tuples(item) for item in value) if isinstance(value, list) else value


@dataclass(frozen=True, slots=True)
class Text(Block):
    """A paragraph."""

    text: str
    role: str = ""
    """``hint``, or ``verdict good``, ``verdict bad``, ``verdict open``."""

    def to_html(self) -> str:
        return f'<p class="{escape(self.role)}">{escape(self.text)}</p>' if self.role else f"<p>{escape(self.text)}</p>"

    def to_markdown(self) -> str:
        text = _plain(self.text)
        return f"**{text}**" if self.role.startswith("verdict") else text


@dataclass(frozen=True, slots=True)
class Heading(Block):
    """A heading within a section."""

    text: str

    def to_html(self) -> str:
        return f"<h3>{escape(self.text)}</h3>"

    def to_markdown(self) -> str:
        return f"### {_plain(self.text)}"


@dataclass(frozen=True, slots=True)
class Cards(Block):
    """A few numbers in large type, each with a label."""

    items: tuple[tuple[str, str], ...]
    """(label, number as text)"""

    def to_html(self) -> str:
        cards = "".join(f'<div class="card"><b>{escape(n)}</b><span>{escape(k)}</span></div>' for k, n in self.items)
        return f'<div class="cards">{cards}</div>'

    def to_markdown(self) -> str:
        return "\n".join(f"- {_plain(label)}: **{_plain(figure)}**" for label, figure in self.items)


@dataclass(frozen=True, slots=True)
class Bullets(Block):
    """A list; each item has a bold term, which may be empty, and a text."""

    items: tuple[tuple[str, str], ...]

    def to_html(self) -> str:
        lines = (f"<b>{escape(word)}</b>: {escape(text)}" if word else escape(text) for word, text in self.items)
        return f"<ul>{''.join(f'<li>{line}</li>' for line in lines)}</ul>" if self.items else ""

    def to_markdown(self) -> str:
        lines = (f"**{_plain(word)}**: {_plain(text)}" if word else _plain(text) for word, text in self.items)
        return "\n".join(f"- {line}" for line in lines)


@dataclass(frozen=True, slots=True)
class Code(Block):
    """Text to copy unchanged."""

    text: str

    def to_html(self) -> str:
        return f'<pre tabindex="0">{escape(self.text)}</pre>'

    def to_markdown(self) -> str:
        return "\n".join(f"    {line}" for line in self.text.splitlines())


@dataclass(frozen=True, slots=True)
class Rows(Block):
    """A table."""

    header: tuple[str, ...]
    rows: tuple[tuple[Cell, ...], ...]
    folded: str = ""
    """If not empty, the table is folded away behind this text."""

    def _table(self) -> Table:
        return Table.of(self.header, [[_cell(cell) for cell in row] for row in self.rows])

    def to_html(self) -> str:
        table = f'<div class="scroll" tabindex="0" role="region" aria-label="table">{self._table().to_html()}</div>'
        return f"<details><summary>{escape(self.folded)}</summary>{table}</details>" if self.folded else table

    def to_markdown(self) -> str:
        return self._table().to_markdown()

    def to_json(self) -> dict[str, Any]:
        return {**Block.to_json(self), "rows": [[_cell(cell) for cell in row] for row in self.rows]}


@dataclass(frozen=True, slots=True)
class Notices(Block):
    """Findings in the order of their severity, each with the command to run next."""

    items: tuple[tuple[str, str, str, str], ...]
    """(severity, code, sentence, commands, one a line, or empty)"""

    def to_html(self) -> str:
        lines = []
        for severity, code, sentence, command in self.items:
            run = f'<pre tabindex="0">{escape(command)}</pre>' if command else ""
            label = f"<b>{escape(severity)}</b><code>{escape(code)}</code>"
            lines.append(f'<li class="{escape(severity)}">{label} {escape(sentence)}{run}</li>')
        return f'<ul class="notices">{"".join(lines)}</ul>' if lines else ""

    def to_markdown(self) -> str:
        lines = []
        for severity, code, sentence, command in self.items:
            lines.append(f"- **{_plain(severity)}** ({_plain(code)}): {_plain(sentence)}")
            lines += ["", indent(command, 6 * " "), ""] if command else []
        return "\n".join(lines).rstrip()


@dataclass(frozen=True, slots=True)
class Intervals(Block):
    """A table of parameters with a drawing in each row: prior, data alone and result with its interval."""

    header: tuple[str, ...]
    rows: tuple[tuple[Cell, ...], ...]
    bars: tuple[tuple[float | None, ...], ...]
    """For each row (prior, data alone, its half interval, result, its half interval); None where unknown."""

    def to_html(self) -> str:
        table = Table.of(self.header, [[_cell(cell) for cell in row] for row in self.rows])
        head, *lines = table.to_html().split("<tr>")[1:]
        first = head.index("</th>") + len("</th>")
        head = f"{head[:first]}<th>prior | data alone &#9675; result &#9679;</th>{head[first:]}"
        body = [head]
        for line, bar in zip(lines, self.bars, strict=True):
            cut = line.index("</td>") + len("</td>")
            body.append(f'{line[:cut]}<td class="bar">{_bar(bar)}</td>{line[cut:]}')
        text = "<table><thead><tr>" + "<tr>".join(body)
        return f'<div class="scroll" tabindex="0" role="region" aria-label="table">{text}</div>'

    def to_markdown(self) -> str:
        return Table.of(self.header, [[_cell(cell) for cell in row] for row in self.rows]).to_markdown()

    def to_json(self) -> dict[str, Any]:
        cells = {"rows": self.rows, "bars": self.bars}
        clean = {name: [[_cell(cell) for cell in row] for row in rows] for name, rows in cells.items()}
        return {**Block.to_json(self), **clean}


def _bar(bar: Sequence[float | None]) -> str:
    """An SVG with zero in the middle; the largest magnitude of the three values is three quarters of the half width."""
    prior, data, data_half, result, half = (None if x is None or not math.isfinite(x) else x for x in bar)
    largest = max((abs(x) for x in (prior, data, result) if x is not None), default=0.0) or 1.0

    def at(value: float) -> float:
        return BAR_HALF * (1.0 + min(max(0.75 * value / largest, -1.0), 1.0))

    parts = [f'<line class="zero" x1="{BAR_HALF:g}" x2="{BAR_HALF:g}" y1="0" y2="18"/>']
    for value, width, y, kind in ((data, data_half, 5, "data"), (result, half, 12, "result")):
        if value is None:
            continue
        if width is not None:
            ends = f'x1="{at(value - width):.1f}" x2="{at(value + width):.1f}" y1="{y}" y2="{y}"'
            parts.append(f'<line class="{kind}" {ends}/>')
        parts.append(f'<circle class="{kind}" cx="{at(value):.1f}" cy="{y}" r="3"/>')
    if prior is not None:
        parts.append(f'<line class="prior" x1="{at(prior):.1f}" x2="{at(prior):.1f}" y1="1" y2="17"/>')
    words = []
    for name, value, width in (("prior", prior, None), ("data alone", data, data_half), ("result", result, half)):
        if value is not None:
            words.append(f"{name} {value:.4g}" + ("" if width is None else f" ± {width:.2g}"))
    title = f"<title>{escape('; '.join(words))}</title>"
    return f'<svg width="{2 * BAR_HALF:g}" height="18" role="img">{title}{"".join(parts)}</svg>'


@dataclass(frozen=True, slots=True)
class Curve:
    """One line of a plot."""

    label: str
    y: str
    """Numbers encoded by `pack`, as many as the x values of the plot."""
    dashed: bool = False
    half: str = ""
    """Half width of a band around the line, encoded by `pack`; empty for none."""


@dataclass(frozen=True, slots=True)
class Plot(Block):
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
        """Build from arrays; an axis that starts far from zero, such as Unix time stamps, starts from zero.

        ``half`` is the half width of a band around the first curve.
        """
        bands = ["" if half is None else pack(half), *[""] * len(curves)]
        lines = tuple(
            Curve(name, pack(y), name in dashed, band) for (name, y), band in zip(curves, bands, strict=False)
        )
        numbers, shown = subtract_start(x, x_label)
        return cls(label, shown, y_label, pack(numbers), lines, small)

    @classmethod
    def from_fields(cls, data: dict[str, Any]) -> Plot:
        curves = tuple(build_dataclass(Curve, curve) for curve in data["curves"])
        return build_dataclass(cls, {**data, "curves": curves})

    def to_html(self) -> str:
        data = {
            "x": self.x,
            "xlabel": self.x_label,
            "ylabel": self.y_label,
            "lines": [{"label": c.label, "y": c.y, "dashed": c.dashed, "half": c.half} for c in self.curves],
        }
        return _widget("lines", self.label, data, 170 if self.small else 230)

    def to_markdown(self) -> str:
        return f"*Plot in the HTML report: {_plain(self.label)}.*"

    def to_json(self) -> dict[str, Any]:
        return {**Block.to_json(self), "curves": [asdict(curve) for curve in self.curves]}


@dataclass(frozen=True, slots=True)
class Player(Block):
    """A motion in three dimensions."""

    label: str
    data: Mapping[str, Any] = field(default_factory=dict)
    """Data for the page's script; arrays are encoded by `pack`."""

    @classmethod
    def from_fields(cls, data: dict[str, Any]) -> Player:
        return build_dataclass(cls, data)

    def to_html(self) -> str:
        return _widget("robot", self.label, self.data, 380)

    def to_markdown(self) -> str:
        return f"*Player in the HTML report: {_plain(self.label)}.*"


def _widget(kind: str, label: str, data: Mapping[str, Any], height: int) -> str:
    """HTML of a canvas that the page's script draws on, with its data."""
    text = json.dumps(data, separators=(",", ":")).replace("<", "\\u003c")
    return (
        f'<figure class="{kind}"><canvas tabindex="0" role="img" aria-label="{escape(label)}" height="{height}">'
        f'</canvas><script type="application/json">{text}</script></figure>'
    )


def _plain(text: str) -> str:
    """Escape text for Markdown, in one line."""
    cleaned = " ".join(text.split())
    for sign in "\\`*_<>[]|":
        cleaned = cleaned.replace(sign, f"\\{sign}")
    return cleaned


def _cell(cell: Cell) -> Cell:
    """Replace numbers that are not finite by None."""
    return None if isinstance(cell, float) and not math.isfinite(cell) else cell
