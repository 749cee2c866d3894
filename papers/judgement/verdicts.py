"""Verdicts on a paper's numbers and claims, computed from what is printed and what we found.

A `Row` holds both sides and the test between them. Its verdict is a property: no study can state one. A `Tolerance`
belongs to a table and is chosen before its numbers are compared. A result that follows from how the study was set up
is marked by `ByConstruction` and never counts as reproduced.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum

import numpy as np

from dynid.errors import ArgumentError


class Verdict(StrEnum):
    """Whether our result agrees with the paper's, and under which condition."""

    REPRODUCED = "reproduced"
    ASSUMED = "reproduced under a stated assumption"
    CONSTRUCTED = "consistent by construction"
    SCAN = "misprint or scan"
    MISPRINT = "misprint in the paper"
    DIFFERS = "differs"
    ABSENT = "not compared"


@dataclass(frozen=True, slots=True, kw_only=True)
class Tolerance:
    """How far our number may be from the printed one; one for a whole table, chosen before its numbers are compared."""

    factor: float = 1.0
    """Largest ratio of the two numbers, either way."""
    absolute: float = 0.0
    """Largest difference, in the unit of the numbers."""
    basis: str
    """Why it is this wide: the printed digits, or what the paper does not state."""

    def holds(self, printed: float, ours: float) -> bool:
        """Whether two numbers agree."""
        low, high = sorted((abs(printed), abs(ours)))
        similar = printed * ours > 0 and high <= self.factor * low
        return bool(printed == ours or similar or abs(printed - ours) <= self.absolute)

    @property
    def width(self) -> str:
        """The width in words."""
        if self.absolute:
            return f"within {self.absolute:.3g}"
        return f"within {100 * (self.factor - 1):.3g} %" if self.factor < 2 else f"within a factor {self.factor:g}"


ROUNDED = Tolerance(factor=1.0005, basis="four printed digits")
"""For numbers that follow from printed data without a choice of ours: half a unit of the fourth digit is 5e-4."""
UNSTATED = Tolerance(factor=1.5, basis="the paper does not state motion, limits or noise completely")
"""For numbers that depend on what the paper does not state; 50 % is a convention, the same for all papers."""
SHARE = 0.95
"""Share of our own draws that must enclose a single printed draw; a convention."""
_DISTINCT = re.compile(r"^((?:Tables?|Figs?\.) [IVX\d]+)")
"""The table or figure at the beginning of what a row compares."""


@dataclass(frozen=True, slots=True)
class ByConstruction:
    """The reason why a result had to agree, whatever the paper prints."""

    why: str
    """What in the set-up of the study forces the agreement."""
    evidence: str
    """What would be evidence instead."""

    def __str__(self) -> str:
        return f"{self.why}. Evidence would be {self.evidence}"


@dataclass(frozen=True, slots=True)
class Equal:
    """Agreement of counts, names and formulas."""

    printed: object
    ours: object

    @property
    def agrees(self) -> bool:
        """Whether both are the same."""
        return bool(self.printed == self.ours)


@dataclass(frozen=True, slots=True)
class Near:
    """Agreement of numbers within a tolerance."""

    printed: float
    ours: float
    tolerance: Tolerance

    @property
    def agrees(self) -> bool:
        """Whether the numbers agree within the tolerance."""
        return self.tolerance.holds(self.printed, self.ours)


@dataclass(frozen=True, slots=True)
class Drawn:
    """Agreement of one printed draw with the spread of ours."""

    printed: float
    low: float
    high: float

    @property
    def agrees(self) -> bool:
        """Whether our draws enclose the printed one."""
        return self.low <= self.printed <= self.high


@dataclass(frozen=True, slots=True)
class Claim:
    """Agreement with a statement, decided by a computed condition."""

    holds: bool

    @property
    def agrees(self) -> bool:
        """Whether the condition holds."""
        return self.holds


@dataclass(frozen=True, slots=True)
class Nothing:
    """No comparison."""

    @property
    def agrees(self) -> bool:
        """What is not compared does not agree."""
        return False


Test = Equal | Near | Drawn | Claim | Nothing


@dataclass(frozen=True, slots=True)
class Row:
    """A number, a list or a claim of a paper beside our result; the functions ``compare_*`` make it."""

    what: str
    paper: str
    ours: str
    test: Test
    note: str = ""
    """The assumption, the right value of a misprint, or the reason for a difference."""
    assumption: str | ByConstruction = ""
    """What the agreement depends on."""
    derived: bool = False
    """Whether ours follows from other printed values, so that a difference is an error in print."""
    not_scan: str = ""
    """Why a damaged scan cannot be the cause of a difference from a derived value; empty if it can."""

    @property
    def verdict(self) -> Verdict:
        """The verdict that follows from the two sides, the tolerance and the assumption."""
        if isinstance(self.test, Nothing):
            return Verdict.ABSENT
        if not self.test.agrees:
            if not self.derived:
                return Verdict.DIFFERS
            return Verdict.MISPRINT if self.not_scan else Verdict.SCAN
        if isinstance(self.assumption, ByConstruction):
            return Verdict.CONSTRUCTED
        return Verdict.ASSUMED if self.assumption else Verdict.REPRODUCED

    @property
    def table(self) -> str:
        """The table or figure that the row belongs to, or nothing."""
        found = _DISTINCT.match(self.what)
        return found[1] if found else ""


def check_tolerances(rows: Sequence[Row]) -> None:
    """Refuse rows of one table, or rows of one part outside any table, that have more than one tolerance.

    Raises:
        ArgumentError: A table has two tolerances.
    """
    known: dict[str, Tolerance] = {}
    for row in rows:
        if isinstance(row.test, Near) and known.setdefault(row.table, row.test.tolerance) != row.test.tolerance:
            raise ArgumentError(
                f"'{row.what}' has another tolerance than the rows before it",
                remedy="Give all numbers of one table the same tolerance.",
            )


def format_value(value: object, digits: int = 4) -> str:
    """Format a number with a few digits and a list as words; anything else by ``str``."""
    if isinstance(value, list | tuple):
        return " ".join(str(item) for item in value)
    return f"{value:.{digits}g}" if isinstance(value, float) else str(value)


def refrain(what: str, reason: str) -> Row:
    """Say why a place of a paper is not compared."""
    return Row(what, "printed", "not compared", Nothing(), reason)


def compare_exactly(
    what: str, paper: object, ours: object, *, note: str = "", assumption: str | ByConstruction = ""
) -> Row:
    """Compare exact results, such as counts, names and formulas."""
    test = Equal(paper, ours)
    text = note if not test.agrees and note else str(assumption) or note
    return Row(what, format_value(paper, 10), format_value(ours, 10), test, text, assumption)


def compare_numbers(
    what: str,
    paper: float,
    ours: float,
    *,
    tolerance: Tolerance,
    assumption: str | ByConstruction = "",
    reason: str = "",
    unit: str = "",
    digits: int = 4,
) -> Row:
    """Compare numbers within the tolerance of their table.

    Args:
        what: What the numbers mean.
        paper: The printed number.
        ours: Our number.
        tolerance: The tolerance of the table.
        assumption: An assumption about what the paper does not state, or why the result had to agree.
        reason: Why the numbers differ, if they do.
        unit: Unit of both numbers.
        digits: Number of significant digits to print.
    """
    test = Near(float(paper), float(ours), tolerance)
    band = f"{'agreement' if test.agrees else 'needed for agreement'}: {tolerance.width}"
    note = "; ".join(text for text in (str(assumption) if test.agrees else reason or str(assumption), band) if text)
    was, found = (f"{format_value(float(value), digits)} {unit}".strip() for value in (paper, ours))
    return Row(what, was, found, test, note, assumption)


def compare_draws(
    what: str, paper: float, draws: Sequence[float], *, assumption: str = "", reason: str = "", digits: int = 3
) -> Row:
    """Compare one printed draw with many of ours: they agree if the middle 95 % of ours enclose it."""
    low, middle, high = (float(x) for x in np.quantile(draws, [(1 - SHARE) / 2, 0.5, (1 + SHARE) / 2]))
    test = Drawn(float(paper), low, high)
    words = [format_value(x, digits) for x in (middle, low, high)]
    band = f"{'agreement' if test.agrees else 'needed for agreement'}: the printed draw within {SHARE:.0%} of ours"
    note = "; ".join(text for text in (assumption if test.agrees else reason or assumption, band) if text)
    return Row(
        what, format_value(float(paper), digits), f"{words[0]} ({words[1]} to {words[2]})", test, note, assumption
    )


def compare_derived(
    what: str,
    printed: object,
    right: object,
    *,
    note: str = "",
    same: bool | None = None,
    tolerance: Tolerance | None = None,
    not_scan: str = "",
) -> Row:
    """Compare a printed value with the one that follows from other printed values; a difference is an error in print.

    Args:
        what: What the values mean.
        printed: The printed value.
        right: The value that follows from the others.
        note: The derivation.
        same: Whether two texts mean the same, computed; None compares the values themselves.
        tolerance: Tolerance of the table, for numbers.
        not_scan: Why the scan cannot be the cause. Without it, a difference is "misprint or scan".
    """
    test: Test = Equal(printed, right) if same is None else Claim(same)
    if tolerance is not None:
        test = Near(float(str(printed)), float(str(right)), tolerance)
        band = f"{'agreement' if test.agrees else 'needed for agreement'}: {tolerance.width}"
        note = "; ".join(text for text in (note, band) if text)
    text = note if test.agrees else f"right: {format_value(right, 7)}. {note}".strip()
    if not_scan and not test.agrees:
        text = f"{text}. No fault of the scan: {not_scan}"
    return Row(what, format_value(printed, 7), format_value(right, 7), test, text, derived=True, not_scan=not_scan)


def compare_lines(what: str, printed: int, right: int, *, note: str = "", not_scan: str = "") -> Row:
    """Compare the number of printed lines, coefficients or terms with the number of right ones among them."""
    test = Equal(printed, right)
    text = f"{note}. No fault of the scan: {not_scan}" if not_scan and not test.agrees else note
    text = text or ("" if test.agrees else "the wrong ones have rows of their own")
    return Row(what, f"{printed} printed", f"{right} right", test, text, derived=True, not_scan=not_scan)


def compare_claim(
    what: str,
    paper: str,
    ours: str,
    holds: bool,
    *,
    assumption: str | ByConstruction = "",
    reason: str = "",
    note: str = "",
) -> Row:
    """Judge a claim without a number, or a claim about an experiment that we only simulate.

    Args:
        what: The claim.
        paper: What the paper says.
        ours: What we found.
        holds: Whether the claim holds, computed from what we found.
        assumption: An assumption about what the paper does not state, or why the claim had to hold.
        reason: Why the claim does not hold, if it does not.
        note: A remark for either case.
    """
    text = str(assumption) or note
    return Row(what, paper, ours, Claim(bool(holds)), text if holds else reason or text, assumption)
