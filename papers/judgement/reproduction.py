"""The pages of a comparison of a paper with our results.

A `Part` regenerates one table, figure or section; its rows carry their verdicts.
A `Reproduction` collects the parts and writes them as text, Markdown, SVG, JSON and one HTML page. The blocks of that
page (comparisons with typeset formulas, drawings, listings side by side) are defined here too.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from html import escape
from os import PathLike
from pathlib import Path
from typing import ClassVar

from dynid.errors import ExportError
from dynid.files import write_atomically
from dynid.report.html_blocks import Block, Cards, Rows, Text
from dynid.report.page import Page, Section
from dynid.tables import Table
from papers.judgement.verdicts import Near, Row, Verdict, check_tolerances

COMPARISON = ("what", "paper", "ours", "verdict", "note")
_CHIPS = {
    Verdict.REPRODUCED: ("reproduced", "#2e8b57"),
    Verdict.ASSUMED: ("under an assumption", "#3b82c4"),
    Verdict.CONSTRUCTED: ("by construction", "#7f8c8d"),
    Verdict.SCAN: ("misprint or scan", "#d9b44a"),
    Verdict.MISPRINT: ("misprint", "#c79a1e"),
    Verdict.DIFFERS: ("differs", "#c0392b"),
    Verdict.ABSENT: ("not compared", "#95a5a6"),
}
_WIDTHS = (23, 20, 22, 13, 22)
"""Widths of the columns of a comparison [%]."""
_SIGNS = (
    (" - ", " \N{MINUS SIGN} "),
    ("&lt;=", "\N{LESS-THAN OR EQUAL TO}"),
    ("&gt;=", "\N{GREATER-THAN OR EQUAL TO}"),
)
_POWER = re.compile(r"\^(-?\d+|[a-z]\b)")
_INDEX = re.compile(r"\b([a-z]|[A-Z]{1,3})(\d)(?=[\s^.,;:)]|$)")
_UNDERSCORE = re.compile(r"\b([A-Za-z]\w{0,7}?)_([a-z]{1,2}|\d{1,2})\b")


def typeset(text: str) -> str:
    """Escape text for HTML and typeset its indices and powers; names of program variables stay unchanged."""
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
    """A table of rows, each with its verdict."""

    rows: tuple[tuple[str, str, str, str, str], ...]
    """Cells of the rows, in the order of `COMPARISON`."""

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


def build_comparison(rows: Sequence[Row]) -> Comparison:
    """Make the table of rows."""
    return Comparison(tuple((r.what, r.paper, r.ours, str(r.verdict), r.note) for r in rows))


@dataclass(frozen=True, slots=True)
class Contents(Block):
    """A linked list of the parts with their numbers of verdicts."""

    parts: tuple[tuple[str, int, tuple[int, ...]], ...]
    """Title of each part, number of its section, and number of rows per verdict in the order of `Verdict`."""

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
        # Inside a page the drawing needs no name space and must shrink with the window.
        inline = self.svg.replace(' xmlns="http://www.w3.org/2000/svg"', ' style="max-width:100%;height:auto"')
        return f"<figure>{inline}<figcaption>{escape(self.caption)}</figcaption></figure>"

    def to_markdown(self) -> str:
        return f"![{self.caption}](figures/{self.name}.svg)"


@dataclass(frozen=True, slots=True)
class SideBySide(Block):
    """Program texts or formulas side by side, unchanged."""

    items: tuple[tuple[str, str], ...]
    """Caption and text of each."""

    def to_html(self) -> str:
        blocks = "".join(
            f'<figure style="flex:1 1 22em;min-width:0"><figcaption>{escape(caption)}</figcaption>'
            f'<pre tabindex="0" style="max-height:40em">{escape(text)}</pre></figure>'
            for caption, text in self.items
        )
        return f'<div style="display:flex;flex-wrap:wrap;gap:1em">{blocks}</div>'

    def to_markdown(self) -> str:
        return "\n\n".join(f"{caption}:\n\n```\n{text}\n```" for caption, text in self.items)


@dataclass(frozen=True, slots=True)
class Figure:
    """A drawing and the name of its file."""

    name: str
    """Name of the file without its ending."""
    caption: str
    svg: str


@dataclass(frozen=True, slots=True)
class Listing:
    """Program text or formulas, shown unchanged; several listings stand side by side."""

    caption: str
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Part:
    """One table, figure, example or claim of a paper, regenerated."""

    title: str
    source: str
    """Place in the paper: section, table or equation."""
    rows: tuple[Row, ...]
    tables: tuple[tuple[str, Table], ...] = ()
    """Captions, and tables with all numbers."""
    figures: tuple[Figure, ...] = ()
    listings: tuple[Listing, ...] = ()
    assumptions: str = ""
    """Assumptions about what the paper does not state."""

    def __post_init__(self) -> None:
        check_tolerances(self.rows)

    @property
    def tolerances(self) -> str:
        """The tolerance of each table of numbers, with its reason, in a sentence."""
        known = {row.table: row.test.tolerance for row in self.rows if isinstance(row.test, Near)}
        widths = dict.fromkeys(f"{tolerance.width} ({tolerance.basis})" for tolerance in known.values())
        return f"Numbers agree {'; '.join(widths)}." if widths else ""

    def comparison(self) -> Table:
        """The rows as a table."""
        return Table.of(COMPARISON, [(r.what, r.paper, r.ours, str(r.verdict), r.note) for r in self.rows])


@dataclass(frozen=True, slots=True)
class Reproduction:
    """The regenerated parts of one paper or of all papers."""

    name: str
    title: str
    parts: tuple[Part, ...]

    @property
    def rows(self) -> tuple[Row, ...]:
        """All rows of all parts."""
        return tuple(row for part in self.parts for row in part.rows)

    @property
    def counts(self) -> dict[Verdict, int]:
        """Number of rows per verdict."""
        found = Counter(row.verdict for row in self.rows)
        return {verdict: found[verdict] for verdict in Verdict}

    def summary(self) -> str:
        """Summarise the verdicts in one line."""
        return f"{self.title}: " + ", ".join(f"{count} {verdict}" for verdict, count in self.counts.items())

    def to_text(self) -> str:
        """Write everything as plain text."""
        lines = [self.title, "=" * len(self.title), "", self.summary(), ""]
        for part in self.parts:
            lines += [part.title, "-" * len(part.title), f"Source: {part.source}.", *_paragraph(part.assumptions)]
            lines += _paragraph(part.tolerances)
            lines += ["", part.comparison().to_text(), ""]
            for caption, table in part.tables:
                lines += [caption, "", table.to_text(), ""]
            for listing in part.listings:
                lines += [listing.caption, "", listing.text, ""]
        return "\n".join(lines)

    def to_markdown(self, level: int = 1) -> str:
        """Write everything as Markdown; figures are linked from the folder ``figures``."""
        lines = [f"{'#' * level} {self.title}", "", self.summary() + ".", ""]
        for part in self.parts:
            lines += [f"{'#' * (level + 1)} {part.title}", "", f"Source: {part.source}.", *_paragraph(part.assumptions)]
            lines += [*_paragraph(part.tolerances), "", part.comparison().to_markdown(), ""]
            for caption, table in part.tables:
                lines += [f"{caption}:", "", table.to_markdown(), ""]
            lines += [f"![{figure.caption}](figures/{figure.name}.svg)\n" for figure in part.figures]
            for listing in part.listings:
                lines += [f"{listing.caption}:", "", "```", listing.text, "```", ""]
        return "\n".join(lines)

    def to_json(self) -> str:
        """Write the rows and their verdicts as JSON."""
        data = {
            "name": self.name,
            "title": self.title,
            "counts": {str(verdict): count for verdict, count in self.counts.items()},
            "rows": [
                {"part": part.title, "source": part.source}
                | {"what": r.what, "paper": r.paper, "ours": r.ours, "verdict": str(r.verdict), "note": r.note}
                for part in self.parts
                for r in part.rows
            ],
        }
        return json.dumps(data, indent=1, ensure_ascii=False) + "\n"

    def to_html(self) -> str:
        """Write one self-contained HTML page."""
        return Page.of(self.title, [_Summary(self), *map(_PartSection, self.parts)]).to_html()

    def write(self, folder: str | PathLike[str]) -> Path:
        """Write everything into a folder, and replace the files of an earlier run.

        Raises:
            ExportError: The folder cannot be created or written.
        """
        target = Path(folder)
        try:
            (target / "figures").mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise ExportError(f"the folder cannot be created: {error.strerror}", path=target) from error
        texts = {"index.html": self.to_html(), "tables.md": self.to_markdown(), "tables.txt": self.to_text()}
        texts["verdicts.json"] = self.to_json()
        texts |= {f"figures/{figure.name}.svg": figure.svg for part in self.parts for figure in part.figures}
        for name, text in texts.items():
            write_atomically(target / name, text, force=True)
        return target


def _paragraph(text: str) -> list[str]:
    return ["", text] if text else []


class _Summary(Section):
    title: ClassVar[str] = "Summary"

    def __init__(self, reproduction: Reproduction) -> None:
        self._reproduction = reproduction

    def blocks(self) -> Sequence[Block]:
        found = self._reproduction
        cards = [(str(verdict), str(count)) for verdict, count in found.counts.items()]
        parts = [
            (part.title, number, tuple(sum(r.verdict is v for r in part.rows) for v in Verdict))
            for number, part in enumerate(found.parts, 1)
        ]
        return Text(f"{len(found.rows)} comparisons."), Cards(tuple(cards)), Contents(tuple(parts))


class _PartSection(Section):
    listed = False

    def __init__(self, part: Part) -> None:
        self._part = part

    @property
    def title(self) -> str:
        return self._part.title

    def blocks(self) -> Sequence[Block]:
        part = self._part
        listings = tuple((item.caption, item.text) for item in part.listings)
        return (
            Text(f"Source: {part.source}.", "hint"),
            *([Text(part.assumptions)] if part.assumptions else []),
            *([Text(part.tolerances, "hint")] if part.tolerances else []),
            build_comparison(part.rows),
            *(Drawing(figure.svg, figure.caption, figure.name) for figure in part.figures),
            *(Rows(tuple(table.header), tuple(table.rows), folded=caption) for caption, table in part.tables),
            *([SideBySide(listings)] if listings else []),
        )
