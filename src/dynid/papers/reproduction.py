"""What comes out: parts with rows, tables and figures, written as text, Markdown, SVG, JSON and one HTML page."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from html import escape
from os import PathLike
from pathlib import Path

from dynid.errors import ExportError
from dynid.files import write_atomically
from dynid.papers.rows import Row, Verdict
from dynid.report.page import Section, page
from dynid.tables import Table

__all__ = ["Figure", "Listing", "Part", "Reproduction"]

_COLOURS = {
    Verdict.REPRODUCED: "#2e8b57",
    Verdict.ASSUMED: "#2f6fb0",
    Verdict.MISPRINT: "#b58a1b",
    Verdict.DIFFERS: "#c0392b",
}
_HEADER = ("what", "paper", "ours", "verdict", "note")


@dataclass(frozen=True, slots=True)
class Figure:
    """A drawing."""

    name: str
    """Of its file, without ending."""
    caption: str
    svg: str


@dataclass(frozen=True, slots=True)
class Listing:
    """Program text or formulas, shown as they are; several stand side by side."""

    caption: str
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Part:
    """One table, figure, example or claim of a paper, regenerated."""

    title: str
    source: str
    """Where in the paper: section, table, page."""
    rows: tuple[Row, ...]
    tables: tuple[tuple[str, Table], ...] = ()
    """Captions and tables with all numbers."""
    figures: tuple[Figure, ...] = ()
    listings: tuple[Listing, ...] = ()
    assumptions: str = ""
    """What the paper does not state, and what was taken instead."""

    def comparison(self) -> Table:
        """The rows as a table."""
        return Table.of(_HEADER, [(r.what, r.paper, r.ours, str(r.verdict), r.note) for r in self.rows])


@dataclass(frozen=True, slots=True)
class Reproduction:
    """A paper, or all of them, regenerated."""

    name: str
    title: str
    parts: tuple[Part, ...]

    @property
    def rows(self) -> tuple[Row, ...]:
        """All rows of all parts."""
        return tuple(row for part in self.parts for row in part.rows)

    @property
    def counts(self) -> dict[Verdict, int]:
        """How many rows have each verdict."""
        found = Counter(row.verdict for row in self.rows)
        return {verdict: found[verdict] for verdict in Verdict}

    def summary(self) -> str:
        """One line."""
        return f"{self.title}: " + ", ".join(f"{count} {verdict}" for verdict, count in self.counts.items())

    def to_text(self) -> str:
        """Plain text."""
        lines = [self.title, "=" * len(self.title), "", self.summary(), ""]
        for part in self.parts:
            lines += [part.title, "-" * len(part.title), f"Source: {part.source}.", *_paragraph(part.assumptions)]
            lines += ["", part.comparison().to_text(), ""]
            for caption, table in part.tables:
                lines += [caption, "", table.to_text(), ""]
            for listing in part.listings:
                lines += [listing.caption, "", listing.text, ""]
        return "\n".join(lines)

    def to_markdown(self, level: int = 1) -> str:
        """Markdown; figures are linked from the folder ``figures``."""
        lines = [f"{'#' * level} {self.title}", "", self.summary() + ".", ""]
        for part in self.parts:
            lines += [f"{'#' * (level + 1)} {part.title}", "", f"Source: {part.source}.", *_paragraph(part.assumptions)]
            lines += ["", part.comparison().to_markdown(), ""]
            for caption, table in part.tables:
                lines += [f"{caption}:", "", table.to_markdown(), ""]
            lines += [f"![{figure.caption}](figures/{figure.name}.svg)\n" for figure in part.figures]
            for listing in part.listings:
                lines += [f"{listing.caption}:", "", "```", listing.text, "```", ""]
        return "\n".join(lines)

    def to_json(self) -> str:
        """The verdicts."""
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
        """One page that needs nothing from elsewhere."""
        return page(self.title, [_Summary(self), *(_PartSection(part) for part in self.parts)])

    def write(self, folder: str | PathLike[str]) -> Path:
        """Write everything into a folder, over what a run before left there.

        Raises:
            ExportError: The folder cannot be made or written.
        """
        target = Path(folder)
        try:
            (target / "figures").mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise ExportError(f"the folder cannot be made: {error.strerror}", path=target) from error
        texts = {"index.html": self.to_html(), "tables.md": self.to_markdown(), "tables.txt": self.to_text()}
        texts["verdicts.json"] = self.to_json()
        texts |= {f"figures/{figure.name}.svg": figure.svg for part in self.parts for figure in part.figures}
        for name, text in texts.items():
            write_atomically(target / name, text, force=True)
        return target


def _paragraph(text: str) -> list[str]:
    return ["", text] if text else []


class _Summary(Section):
    def __init__(self, reproduction: Reproduction) -> None:
        self._reproduction = reproduction

    @property
    def title(self) -> str:
        return "Summary"

    def body(self) -> str:
        found = self._reproduction
        cells = "".join(f"<li>{_badge(verdict)}: {count}</li>" for verdict, count in found.counts.items())
        rows: list[tuple[str | int, ...]] = [
            (part.title, len(part.rows), *(sum(r.verdict is v for r in part.rows) for v in Verdict))
            for part in found.parts
        ]
        table = Table.of(("part", "rows", "reproduced", "assumption", "misprint", "differs"), rows)
        return f"<p>{len(found.rows)} comparisons.</p><ul>{cells}</ul>{_scrolling(table.to_html())}"


class _PartSection(Section):
    def __init__(self, part: Part) -> None:
        self._part = part

    @property
    def title(self) -> str:
        return self._part.title

    def body(self) -> str:
        part = self._part
        pieces = [f"<p>Source: {escape(part.source)}.</p>"]
        pieces += [f"<p>{escape(part.assumptions)}</p>"] if part.assumptions else []
        pieces.append(_scrolling(_comparison(part.rows)))
        pieces += [
            f"<figure>{_inline(f.svg)}<figcaption>{escape(f.caption)}</figcaption></figure>" for f in part.figures
        ]
        pieces += [
            f"<details open><summary>{escape(c)}</summary>{_scrolling(t.to_html())}</details>" for c, t in part.tables
        ]
        pieces.append(_side_by_side(part.listings))
        return "".join(pieces)


_WIDTHS = (24, 18, 22, 15, 21)
"""Of the columns of a comparison [%]."""
_CELL = '<td style="white-space:normal;overflow-wrap:anywhere;vertical-align:top">'


def _comparison(rows: Sequence[Row]) -> str:
    columns = "".join(f'<col style="width:{width}%">' for width in _WIDTHS)
    head = "".join(f"<th>{name}</th>" for name in _HEADER)
    body = "".join(
        "<tr>"
        + "".join(
            f"{_CELL}{cell}</td>"
            for cell in (escape(r.what), escape(r.paper), escape(r.ours), _badge(r.verdict), escape(r.note))
        )
        + "</tr>"
        for r in rows
    )
    return (
        '<table style="table-layout:fixed;width:100%;min-width:40em"><colgroup>'
        f"{columns}</colgroup><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"
    )


def _scrolling(text: str) -> str:
    return f'<div style="overflow-x:auto">{text}</div>'


def _badge(verdict: Verdict) -> str:
    return f'<strong style="color:{_COLOURS[verdict]}">{verdict}</strong>'


def _inline(svg: str) -> str:
    """Inside a page the drawing needs no name space, and may shrink."""
    return svg.replace(' xmlns="http://www.w3.org/2000/svg"', ' style="max-width:100%;height:auto"')


def _side_by_side(listings: Sequence[Listing]) -> str:
    if not listings:
        return ""
    blocks = "".join(
        f'<figure style="flex:1 1 22em;min-width:0"><figcaption>{escape(item.caption)}</figcaption>'
        f'<pre style="overflow:auto;max-height:40em;font-size:85%">{escape(item.text)}</pre></figure>'
        for item in listings
    )
    return f'<div style="display:flex;flex-wrap:wrap;gap:1em">{blocks}</div>'
