"""Blocks that a page consists of: paragraphs, figures, tables, curves; plain data, shown as HTML, Markdown or JSON."""

from __future__ import annotations

import base64
import json
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from html import escape
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike

from dynid.errors import DataError
from dynid.plain_data import build_dataclass
from dynid.report.chart import subtract_start
from dynid.tables import Cell, Table

__all__ = ["Block", "Bullets", "Cards", "Code", "Curve", "Heading", "Player", "Plot", "Rows", "Text", "pack"]


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
        return {"block": type(self).__name__, **asdict(self)}  # type: ignore[call-overload]  # all are dataclasses

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
class Curve:
    """One line of a plot."""

    label: str
    y: str
    """Numbers encoded by `pack`, as many as the x values of the plot."""
    dashed: bool = False


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
        dashed: Sequence[str] = (), small: bool = False,
    ) -> Plot:  # fmt: skip
        """Build from arrays; an axis that starts far from zero, such as Unix time stamps, starts from zero."""
        lines = tuple(Curve(name, pack(y), name in dashed) for name, y in curves)
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
            "lines": [{"label": c.label, "y": c.y, "dashed": c.dashed} for c in self.curves],
        }
        return _widget("lines", self.label, data, 170 if self.small else 230)

    def to_markdown(self) -> str:
        return f"*Plot in the HTML report: {_plain(self.label)}.*"


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
    return None if isinstance(cell, float) and not np.isfinite(cell) else cell
