"""The five papers behind dynid: their tables and figures computed anew, each number with a verdict."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from papers import atkeson1986, gautier1990, gautier1992, izaguirre1992, lin1995
from papers.report import Part, count_verdicts, write_results
from papers.verdicts import Row, Verdict

__all__ = ["PAPERS", "Part", "Row", "Verdict", "count_verdicts", "reproduce", "write_results"]

PAPERS = {
    module.__name__.rpartition(".")[2]: module
    for module in (atkeson1986, gautier1990, gautier1992, lin1995, izaguirre1992)
}
"""Name -> module with a TITLE and its PARTS: name of a part -> function that makes it. A new paper also needs what it
prints in data/NAME.toml, its table in docs/references/ and its counts in tests/test_references.py."""


def reproduce(
    names: Mapping[str, object] | list[str], *, quick: bool = False, tell: Callable[[str], None] = lambda _: None
) -> dict[str, tuple[str, list[Part]]]:
    """Compute the parts of papers: name -> title and parts. ``quick`` takes fewer random draws, for a first look."""
    found = {}
    for name in names:
        parts = []
        for part, make in PAPERS[name].PARTS.items():
            tell(f"{name}: {part}")
            parts.append(make(quick))
        found[name] = (PAPERS[name].TITLE, parts)
    return found
