"""What the verdicts were at first, when a study could state them, and why each changed."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass

from dynid.studies.papers.data import read_printed
from dynid.studies.papers.judgement.reproduction import Reproduction
from dynid.studies.papers.judgement.verdicts import ByConstruction, Row, Verdict
from dynid.tables import Table


@dataclass(frozen=True, slots=True)
class Change:
    """A row whose verdict is another one than at first."""

    paper: str
    what: str
    before: str
    after: str
    reason: str


def _rows(reproduction: Reproduction) -> dict[tuple[str, str], Row]:
    return {(part.title.split(":")[0], row.what): row for part in reproduction.parts for row in part.rows}


def _earlier() -> dict[tuple[str, str], str]:
    data = read_printed("earlier_verdicts")
    return {(paper, what): verdict for paper in data if paper != "gone" for what, verdict in data[paper].items()}


def _reason(row: Row) -> str:
    """Why a row has its verdict, in the words of a sceptic."""
    if row.verdict is Verdict.SCAN:
        return "only the scan is at hand: it may be the scan that is wrong"
    if isinstance(row.assumption, ByConstruction) and row.verdict is Verdict.CONSTRUCTED:
        return row.assumption.why
    return row.note or "computed now"


def find_changes(reproduction: Reproduction) -> list[Change]:
    """List the rows of all papers whose verdict changed, and those that are gone."""
    rows, gone, changes = _rows(reproduction), read_printed("earlier_verdicts").get("gone", {}), []
    for (paper, what), before in _earlier().items():
        row = rows.get((paper, what))
        if row is None:
            reason = gone.get(f"{paper}: {what}", "replaced by other rows")
            changes.append(Change(paper, what, before, "no row any more", reason))
        elif str(row.verdict) != before:
            blamed = before == Verdict.REPRODUCED and row.verdict in (Verdict.SCAN, Verdict.MISPRINT)
            reason = "stated before, computed now: not all are right" if blamed else _reason(row)
            changes.append(Change(paper, what, before, str(row.verdict), reason))
    return changes


def build_changes(reproduction: Reproduction) -> str:
    """Write the section on changed verdicts: counts before and after, and every changed row with its reason."""
    rows, earlier = _rows(reproduction), _earlier()
    before = Counter(earlier.values())
    new = Counter(row.verdict for key, row in rows.items() if key not in earlier)
    counts = Table.of(
        ("verdict", "before", "now", "of these in new rows"),
        [(str(v), before[str(v)], count, new[v]) for v, count in reproduction.counts.items()]
        + [("all rows", before.total(), len(reproduction.rows), new.total())],
    )
    changes = Table.of(
        ("paper", "row", "before", "now", "reason"),
        [(c.paper, c.what, c.before, c.after, c.reason) for c in find_changes(reproduction)],
    )
    return "\n".join(
        [
            "## Verdicts before and now",
            "",
            "At first a study could state its verdicts, and tolerances differed from row to row. Now verdicts are "
            "computed from both sides and one tolerance per table. Agreement that a study's set-up forces is no "
            "reproduction, and an error in print is blamed on the scan unless the scan cannot be the cause.",
            "",
            counts.to_markdown(),
            "",
            "Rows whose verdict changed:",
            "",
            changes.to_markdown(),
            "",
        ]
    )
