"""Numbered equations, tables and figures of the papers: which of them a row names, and why the others have none."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

from papers.data import read_printed
from papers.judgement.reproduction import Part
from papers.judgement.verdicts import refrain

NO_REASON = "no row names it yet"
"""Reason of a place that neither a row nor the data speak of."""
_RANGE = re.compile(r"^([A-Z]?)(\d+)(?:-| to )\1(\d+)$")
_NUMBER = r"[A-Z]?\d+|[IVX]+"
_LIST = rf"((?:{_NUMBER})\b(?:(?:, | and | to |-)(?:{_NUMBER})\b)*)"
_EQUATION = re.compile(r"\(([A-Z]?\d+)[a-z]?\)(?:(?: to |-)\(([A-Z]?\d+)[a-z]?\))?")
_KINDS = {
    "tables": re.compile(rf"\bTables? {_LIST}"),
    "figures": re.compile(rf"\bFig(?:s?\.|ures?) {_LIST}"),
}
_WORDS = {"equations": "({})", "tables": "Table {}", "figures": "Fig. {}"}


def expand(text: str) -> list[str]:
    """List the single numbers of a list such as ``1-3, A2 and 7``."""
    found: list[str] = []
    for item in filter(None, (item.strip() for item in re.split(r",| and ", text))):
        span = _RANGE.match(item)
        found += [f"{span[1]}{k}" for k in range(int(span[2]), int(span[3]) + 1)] if span else [item]
    return found


def find_places(text: str) -> set[str]:
    """Find the equations, tables and figures that a text names, as ``(8)``, ``Table 3`` and ``Fig. 4``."""
    spans = ["-".join(filter(None, match.groups())) for match in _EQUATION.finditer(text)]
    found = {_WORDS["equations"].format(number) for span in spans for number in expand(span)}
    for kind, pattern in _KINDS.items():
        found |= {_WORDS[kind].format(n) for match in pattern.finditer(text) for n in expand(match[1])}
    return found


def list_places(paper: str) -> list[str]:
    """List every numbered equation, table and figure of a paper."""
    about = read_printed("places")[paper]
    return [_WORDS[kind].format(number) for kind in _WORDS for number in expand(about[kind])]


def compared_places(parts: Iterable[Part]) -> set[str]:
    """Find the places that the titles of parts or the rows name."""
    return {
        place
        for part in parts
        for text in (part.title, *(row.what for row in part.rows))
        for place in find_places(text)
    }


def build_not_compared(paper: str, parts: Sequence[Part]) -> Part:
    """Make the rows of the places that no part names, each with the reason that the data give."""
    compared, rows = compared_places(parts), []
    for text, reason in read_printed("places")[paper]["not_compared"].items():
        open_places = sorted(find_places(text) - compared, key=list_places(paper).index)
        if open_places:
            rows.append(refrain(", ".join(open_places), reason))
    known = {place for text in read_printed("places")[paper]["not_compared"] for place in find_places(text)}
    rows += [refrain(place, NO_REASON) for place in list_places(paper) if place not in compared | known]
    return Part(title="Without a comparison", source="numbered places that no row above names", rows=tuple(rows))
