"""What comes out: parts with rows, tables and figures, written as text, Markdown, SVG, JSON and one HTML page."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from os import PathLike
from pathlib import Path

from dynid.errors import ExportError
from dynid.files import write_atomically
from dynid.papers.blocks import COMPARISON, Contents, Drawing, SideBySide, comparison
from dynid.papers.rows import Row, Verdict
from dynid.report.blocks import Block, Cards, Rows, Text
from dynid.report.page import Page, Section
from dynid.tables import Table

__all__ = ["Figure", "Listing", "Part", "Reproduction"]


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
        return Table.of(COMPARISON, [(r.what, r.paper, r.ours, str(r.verdict), r.note) for r in self.rows])


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
        return Page.of(self.title, [_Summary(self), *map(_PartSection, self.parts)]).to_html()

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
            comparison(part.rows),
            *(Drawing(figure.svg, figure.caption, figure.name) for figure in part.figures),
            *(Rows(tuple(table.header), tuple(table.rows), folded=caption) for caption, table in part.tables),
            *([SideBySide(listings)] if listings else []),
        )
