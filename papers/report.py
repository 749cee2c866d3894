"""Parts of a reproduced paper, and the files that show them."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from io import StringIO
from pathlib import Path

from matplotlib.figure import Figure as Canvas

from dynid.array_types import Floats
from dynid.tables import Table
from papers.verdicts import Row, Verdict


@dataclass(frozen=True, slots=True)
class Figure:
    """A drawing and the name of its file."""

    name: str
    caption: str
    svg: str


Curves = Mapping[str, tuple[Floats, Floats]]
"""Label of a curve -> x and y (N,)."""


def draw(name: str, caption: str, panels: Mapping[str, Curves], x: str, y: str, columns: int = 2) -> Figure:
    """Draw one panel for each title."""
    return Figure(name, caption, draw_svg(panels, x, y, columns))


def draw_svg(panels: Mapping[str, Curves], x: str = "", y: str = "", columns: int = 2) -> str:
    """Draw one panel for each title as SVG; every second curve of a panel is dashed."""
    rows = -(-len(panels) // columns)
    canvas = Canvas(figsize=(6 * columns, 2.6 * rows), layout="constrained")
    for place, (title, curves) in enumerate(panels.items(), start=1):
        axes = canvas.add_subplot(rows, columns, place, title=title, xlabel=x, ylabel=y)
        for k, (label, xy) in enumerate(curves.items()):
            axes.plot(*xy, "--" if k % 2 else "-", label=label, linewidth=1.0)
        if any(curves):
            axes.legend(fontsize="small")
    text = StringIO()
    canvas.savefig(text, format="svg")
    return text.getvalue()


@dataclass(frozen=True, slots=True, kw_only=True)
class Part:
    """One table, figure, example or claim of a paper, computed anew."""

    title: str
    source: str
    """Place in the paper: section, table or equation."""
    rows: Sequence[Row]
    tables: Mapping[str, Table] | None = None
    """Caption -> table with all numbers."""
    figures: Sequence[Figure] = ()
    assumptions: str = ""
    """Assumptions about what the paper does not state."""

    def to_markdown(self) -> str:
        """The section of the results."""
        cells = [(one.what, one.paper, one.ours, str(one.verdict), one.note) for one in self.rows]
        lines = [f"## {self.title}", f"Source: {self.source}. {self.assumptions}".strip()]
        lines.append(Table.of(("what", "paper", "ours", "verdict", "note"), cells).to_markdown())
        lines += [f"{caption}:\n\n{table.to_markdown()}" for caption, table in (self.tables or {}).items()]
        lines += [f"![{figure.caption}](figures/{figure.name}.svg)" for figure in self.figures]
        return "\n\n".join(lines)


def count_verdicts(rows: Sequence[Row]) -> dict[str, int]:
    """Verdict -> number of rows."""
    found = Counter(one.verdict for one in rows)
    return {str(verdict): found[verdict] for verdict in Verdict}


def write_results(papers: Mapping[str, tuple[str, Sequence[Part]]], folder: Path) -> None:
    """Write results.md, verdicts.json and figures of papers: name -> title and parts."""
    (folder / "figures").mkdir(parents=True, exist_ok=True)
    counts = [
        (name, *count_verdicts([r for p in parts for r in p.rows]).values()) for name, (_, parts) in papers.items()
    ]
    text = ["# The five papers, computed anew", Table.of(("paper", *map(str, Verdict)), counts).to_markdown()]
    for title, parts in papers.values():
        text += [f"# {title}", *(part.to_markdown() for part in parts)]
    (folder / "results.md").write_text("\n\n".join(text) + "\n", encoding="utf-8")
    rows = [
        {"paper": name, "part": part.title, **asdict(one)}
        for name, (_, parts) in papers.items()
        for part in parts
        for one in part.rows
    ]
    (folder / "verdicts.json").write_text(json.dumps(rows, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
    for _, parts in papers.values():
        for figure in (figure for part in parts for figure in part.figures):
            (folder / "figures" / f"{figure.name}.svg").write_text(figure.svg, encoding="utf-8")
