"""Writes docs/references.md from the tables in docs/references/: one per paper, a row for every place of the paper.

Run: ``PYTHONPATH=tests python tests/support/references_page.py``
"""

from __future__ import annotations

import re
import tomllib
from dataclasses import dataclass
from pathlib import Path

DOCS = Path(__file__).parents[2] / "docs"
PAGE = DOCS / "references.md"
PAPERS = ("atkeson1986", "gautier1990", "gautier1992", "lin1995", "izaguirre1992")
KINDS = ("sections", "equations", "tables", "figures", "statements")
"""Kinds of places in a paper, in the order in which a row names them."""
RANGE = re.compile(r"^([A-Z]?)(\d+)-\1(\d+)$")
OTHERS = """## Others

| key | work | used in |
|---|---|---|
| [LeeWensingPark2020] | T. Lee, P. M. Wensing, F. C. Park, *Geometric Robot Dynamic Identification: A Convex \
Programming Approach*, IEEE T-RO 36(2), 2020 | priors and physical consistency: `dynid.FeasibleWLS` |
| [Janot2014] | A. Janot, P.-O. Vandanjon, M. Gautier, *A Generic Instrumental Variable Approach for Industrial Robot \
Identification*, IEEE T-CST 22(1), 2014 | instruments from the simulated control loop: \
`dynid.estimators.InstrumentalVariables` |
| [Gautier2013] | M. Gautier, A. Janot, P.-O. Vandanjon, *A New Closed-Loop Output Error Method for Parameter \
Identification of Robot Dynamics*, IEEE T-CST 21(2), 2013 | torques from the simulated control loop: \
`dynid.estimators.DIDIM` |
"""


def expand(text: str) -> list[str]:
    """The single places of a list such as ``1-3, A2, 7``."""
    places: list[str] = []
    for item in filter(None, (item.strip() for item in text.split(","))):
        found = RANGE.match(item)
        places += [f"{found[1]}{k}" for k in range(int(found[2]), int(found[3]) + 1)] if found else [item]
    return places


@dataclass(frozen=True, slots=True)
class Row:
    """Some places of a paper, and what dynid has of them."""

    places: dict[str, str]
    """Text of the places by their kind."""
    what: str
    names: tuple[str, ...]
    """Public names and commands."""
    tests: tuple[str, ...]
    """Tests, as a path below ``tests/`` and a function."""
    not_built: str
    """What is missing and why; empty if nothing is."""

    def covered(self, kind: str) -> list[str]:
        """The single places of one kind."""
        return expand(self.places.get(kind, ""))

    def place(self) -> str:
        """The places in words."""
        parts = []
        for kind, text in self.places.items():
            if kind == "equations":
                parts.append(
                    ", ".join("-".join(f"({end})" for end in item.strip().split("-")) for item in text.split(","))
                )
            elif kind == "statements":
                parts.append(text)
            else:
                several = len(expand(text)) > 1
                word = {"sections": "section", "tables": "Table", "figures": "Fig."}[kind]
                plural = {"section": "sections", "Table": "Tables", "Fig.": "Figs."}[word]
                appendix = kind == "sections" and text.startswith("Appendix")
                parts.append(text if appendix else f"{plural if several else word} {text}")
        return "; ".join(parts)

    def cells(self) -> tuple[str, str, str, str]:
        """The row of the page."""
        names = ", ".join(f"`{name}`" for name in self.names)
        missing = f"not built: {self.not_built}" if self.not_built else ""
        tests = ", ".join(f"`tests/{test}`" for test in self.tests)
        return self.place(), self.what, "; ".join(filter(None, (names, missing))), tests or "none"


@dataclass(frozen=True, slots=True)
class PaperTable:
    """All places of a paper."""

    key: str
    citation: str
    robot: str
    places: dict[str, list[str]]
    """Every place that the paper has, by its kind."""
    rows: tuple[Row, ...]

    def section(self) -> str:
        """The section of the page."""
        counts = (sum(bool(row.names) and not row.not_built for row in self.rows), len(self.rows))
        lines = [f"## [{self.key}]", "", f"{self.citation}. Robot: `{self.robot}`.", ""]
        lines += [f"{counts[0]} of {counts[1]} rows are built completely.", ""]
        lines += ["| place | what | public name | test |", "|---|---|---|---|"]
        return "\n".join([*lines, *("| " + " | ".join(row.cells()) + " |" for row in self.rows)]) + "\n"


def read(paper: str) -> PaperTable:
    """Read the table of a paper."""
    data = tomllib.loads((DOCS / "references" / f"{paper}.toml").read_text(encoding="utf-8"))
    rows = tuple(
        Row(
            {kind: row[kind] for kind in KINDS if kind in row},
            row["what"],
            tuple(row.get("names", ())),
            tuple(row.get("tests", ())),
            row.get("not_built", ""),
        )
        for row in data["row"]
    )
    places = {kind: expand(data.get(kind, "")) for kind in KINDS}
    return PaperTable(data["key"], data["citation"], data["robot"], places, rows)


def page() -> str:
    """The text of the page."""
    head = (
        "# References\n\n"
        "Written by `tests/support/references_page.py` from the tables in `docs/references/`. Every section, equation, "
        "table and figure of the five papers stands here with the public name that does it and a test, or with the "
        "reason why it is not built. Equation numbers stand at the lines of the source that use them, with the keys of "
        "this page. `make papers` compares results and formulas with the printed "
        "ones ([papers.md](papers.md)); files of `papers/` are not part of the package.\n\n"
        "A public name comes from a paper if it computes, or holds the result of, something that the paper describes: "
        "an equation, an algorithm, a criterion, an experiment. Names that carry a paper's key in the source must "
        "stand here (tested). Not listed are names that only serve them, such as readers and settings.\n"
    )
    return "\n".join([head, *(read(paper).section() for paper in PAPERS), OTHERS])


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
