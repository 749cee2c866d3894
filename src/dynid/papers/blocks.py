"""Blocks of the page of reproduced papers: comparisons with typeset formulas, drawings, listings side by side."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from html import escape

from dynid.papers.rows import Row, Verdict
from dynid.report.blocks import Block
from dynid.tables import Table

__all__ = ["COMPARISON", "Comparison", "Contents", "Drawing", "SideBySide", "comparison"]

COMPARISON = ("what", "paper", "ours", "verdict", "note")
_CHIPS = {
    Verdict.REPRODUCED: ("reproduced", "#2e8b57"),
    Verdict.ASSUMED: ("under an assumption", "#3b82c4"),
    Verdict.MISPRINT: ("misprint", "#c79a1e"),
    Verdict.DIFFERS: ("differs", "#c0392b"),
}
_WIDTHS = (23, 20, 22, 13, 22)
"""Of the columns of a comparison [%]."""
_SIGNS = (
    (" - ", " \N{MINUS SIGN} "),
    ("&lt;=", "\N{LESS-THAN OR EQUAL TO}"),
    ("&gt;=", "\N{GREATER-THAN OR EQUAL TO}"),
)
_POWER = re.compile(r"\^(-?\d+|[a-z]\b)")
_INDEX = re.compile(r"\b([a-z]|[A-Z]{1,3})(\d)(?=[\s^.,;:)]|$)")
_UNDERSCORE = re.compile(r"\b([A-Za-z]\w{0,7}?)_([a-z]{1,2}|\d{1,2})\b")


def typeset(text: str) -> str:
    """Escaped HTML with indices lowered and powers raised; names of programs stay as they are."""
    shown = escape(text)
    shown = _INDEX.sub(lambda m: f"{_letter(m[1])}<sub>{m[2]}</sub>", shown)
    shown = _UNDERSCORE.sub(lambda m: f"{_letter(m[1])}<sub>{m[2]}</sub>", shown)
    shown = _POWER.sub(r"<sup>\1</sup>", shown)
    for plain, sign in _SIGNS:
        shown = shown.replace(plain, sign)
    return shown


def _letter(name: str) -> str:
    return f"<i>{name}</i>" if len(name) == 1 else name


def _chip(verdict: Verdict) -> str:
    word, colour = _CHIPS[verdict]
    style = f"border-left:.3em solid {colour};padding:.05em .5em;background:{colour}22;display:inline-block"
    return f'<span title="{verdict}" style="{style}">{word}</span>'


@dataclass(frozen=True, slots=True)
class Comparison(Block):
    """Rows of a paper beside ours, each with its verdict."""

    rows: tuple[tuple[str, str, str, str, str], ...]
    """As `COMPARISON` names them."""

    def to_html(self) -> str:
        columns = "".join(f'<col style="width:{width}%">' for width in _WIDTHS)
        head = "".join(f"<th>{name}</th>" for name in COMPARISON)
        cell = '<td style="white-space:normal;overflow-wrap:anywhere;vertical-align:top">'
        body = "".join(
            "<tr>"
            + "".join(f"{cell}{c}</td>" for c in (*map(typeset, r[:3]), _chip(Verdict(r[3])), typeset(r[4])))
            + "</tr>"
            for r in self.rows
        )
        return (
            '<div class="scroll" tabindex="0" role="region" aria-label="paper and ours">'
            '<table style="table-layout:fixed;width:100%;min-width:42em"><colgroup>'
            f"{columns}</colgroup><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table></div>"
        )

    def to_markdown(self) -> str:
        return Table.of(COMPARISON, self.rows).to_markdown()


def comparison(rows: Sequence[Row]) -> Comparison:
    """Of rows."""
    return Comparison(tuple((r.what, r.paper, r.ours, str(r.verdict), r.note) for r in rows))


@dataclass(frozen=True, slots=True)
class Contents(Block):
    """Parts with their numbers of rows and verdicts, linked."""

    parts: tuple[tuple[str, int, tuple[int, ...]], ...]
    """Title, number of the section on the page, rows by verdict in the order of `Verdict`."""

    def to_html(self) -> str:
        head = "".join(f"<th>{name}</th>" for name in ("part", *(_chip(verdict) for verdict in Verdict)))
        body = "".join(
            f'<tr><td style="white-space:normal;min-width:14em"><a href="#s{section}">{escape(title)}</a></td>'
            + "".join(f'<td class="number">{count or ""}</td>' for count in counts)
            + "</tr>"
            for title, section, counts in self.parts
        )
        return (
            '<div class="scroll" tabindex="0" role="region" aria-label="contents">'
            f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table></div>"
        )

    def to_markdown(self) -> str:
        return Table.of(("part", *map(str, Verdict)), [(t, *counts) for t, _, counts in self.parts]).to_markdown()


@dataclass(frozen=True, slots=True)
class Drawing(Block):
    """An SVG with its caption."""

    svg: str
    caption: str
    name: str

    def to_html(self) -> str:
        # Inside a page the drawing needs no name space, and may shrink.
        inline = self.svg.replace(' xmlns="http://www.w3.org/2000/svg"', ' style="max-width:100%;height:auto"')
        return f"<figure>{inline}<figcaption>{escape(self.caption)}</figcaption></figure>"

    def to_markdown(self) -> str:
        return f"![{self.caption}](figures/{self.name}.svg)"


@dataclass(frozen=True, slots=True)
class SideBySide(Block):
    """Program texts or formulas beside each other, as they are."""

    items: tuple[tuple[str, str], ...]
    """(caption, text)"""

    def to_html(self) -> str:
        blocks = "".join(
            f'<figure style="flex:1 1 22em;min-width:0"><figcaption>{escape(caption)}</figcaption>'
            f'<pre tabindex="0" style="max-height:40em">{escape(text)}</pre></figure>'
            for caption, text in self.items
        )
        return f'<div style="display:flex;flex-wrap:wrap;gap:1em">{blocks}</div>'

    def to_markdown(self) -> str:
        return "\n\n".join(f"{caption}:\n\n```\n{text}\n```" for caption, text in self.items)
