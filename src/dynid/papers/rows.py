"""One number of a paper beside ours, and the verdict on it."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

__all__ = ["Row", "Verdict", "checked", "close", "equal", "in_kind", "shown"]


class Verdict(StrEnum):
    """How a paper's number and ours stand to each other."""

    REPRODUCED = "reproduced"
    ASSUMED = "reproduced under a stated assumption"
    MISPRINT = "misprint in the paper"
    DIFFERS = "differs"


@dataclass(frozen=True, slots=True)
class Row:
    """A number, a list or a claim of a paper, and what we find."""

    what: str
    paper: str
    ours: str
    verdict: Verdict
    note: str = ""
    """The assumption, the right value or the reason for a difference."""


def shown(value: object, digits: int = 4) -> str:
    """A number as a person writes it, a list as words; anything else as it is."""
    if isinstance(value, list | tuple):
        return " ".join(str(item) for item in value)
    return f"{value:.{digits}g}" if isinstance(value, float) else str(value)


def equal(what: str, paper: object, ours: object, *, note: str = "", assumption: str = "") -> Row:
    """Exact results: counts, names, formulas. A difference is a difference."""
    good = Verdict.ASSUMED if assumption else Verdict.REPRODUCED
    verdict = good if paper == ours else Verdict.DIFFERS
    return Row(what, shown(paper, 10), shown(ours, 10), verdict, assumption or note)


def close(
    what: str,
    paper: float,
    ours: float,
    *,
    factor: float,
    assumption: str = "",
    reason: str = "",
    unit: str = "",
    digits: int = 4,
) -> Row:
    """Numbers that agree if neither is more than ``factor`` times the other.

    Args:
        what: What they are.
        paper: As printed.
        ours: As computed.
        factor: Largest ratio that counts as agreement.
        assumption: What the paper leaves open and we assumed; makes agreement conditional.
        reason: Why they differ, where they do.
        unit: Of both.
        digits: Significant digits shown.
    """
    low, high = sorted((abs(paper), abs(ours)))
    agree = (paper * ours > 0 and high <= factor * low) or paper == ours
    good = Verdict.ASSUMED if assumption else Verdict.REPRODUCED
    width = f"within {100 * (factor - 1):.3g} %" if factor < 2 else f"within a factor {factor:g}"
    band = f"agreement: {width}" if agree else f"needed for agreement: {width}"
    note = "; ".join(text for text in (assumption if agree else reason or assumption, band) if text)
    was, found = (f"{shown(float(value), digits)} {unit}".strip() for value in (paper, ours))
    return Row(what, was, found, good if agree else Verdict.DIFFERS, note)


def checked(what: str, printed: object, right: object, *, note: str = "", same: bool | None = None) -> Row:
    """A printed value that must follow from others: reproduced if it does, else a misprint with the right value."""
    agree = printed == right if same is None else same
    verdict = Verdict.REPRODUCED if agree else Verdict.MISPRINT
    return Row(
        what, shown(printed, 7), shown(right, 7), verdict, note if agree else f"right: {shown(right, 7)}. {note}"
    )


def in_kind(what: str, paper: str, ours: str, holds: bool, *, assumption: str = "", reason: str = "") -> Row:
    """A claim without a number, or about an apparatus we only simulate: it holds or not."""
    good = Verdict.ASSUMED if assumption else Verdict.REPRODUCED
    return Row(what, paper, ours, good if holds else Verdict.DIFFERS, assumption if holds else reason or assumption)
