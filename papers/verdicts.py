"""Figures and claims of the papers beside ours, each with a verdict that is computed and never stated.

`row` is the one way to state a figure: what the paper prints, what we found, and how the two are compared. A
`Tolerance` belongs to a table and is chosen before its numbers are compared.
"""

from __future__ import annotations

import tomllib
from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from functools import cache, partial
from pathlib import Path
from typing import Any

import numpy as np
from scipy.stats import binom

DATA = Path(__file__).parent / "data"
"""The numbers and formulas that the papers print."""


@cache
def read_printed(paper: str) -> dict[str, Any]:
    """Read what a paper prints, by table, equation or section."""
    return tomllib.loads((DATA / f"{paper}.toml").read_text(encoding="utf-8"))


class Verdict(StrEnum):
    """Whether our result agrees with the paper's, and under which condition."""

    REPRODUCED = "reproduced"
    ASSUMED = "reproduced under a stated assumption"
    CHECKED = "printed arithmetic is right"
    FORCED = "consistent by construction"
    SCAN = "misprint or scan"
    MISPRINT = "misprint in the paper"
    FAILED = "not reproduced"


class Forced(str):
    """Why a result had to agree, whatever the paper prints; given as the assumption of a row."""

    __slots__ = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Tolerance:
    """How far our number may be from the printed one: by a factor either way, or by a difference."""

    factor: float = 1.0
    absolute: float = 0.0
    basis: str
    """Why it is this wide: the printed digits, or what the paper does not state."""

    def holds(self, printed: float, ours: float) -> bool:
        """Whether two numbers agree."""
        low, high = sorted((abs(printed), abs(ours)))
        similar = printed * ours > 0 and high <= self.factor * low
        return bool(printed == ours or similar or abs(printed - ours) <= self.absolute)

    def __str__(self) -> str:
        if self.absolute:
            return f"within {self.absolute:.3g}"
        return f"within {100 * (self.factor - 1):.3g} %" if self.factor < 2 else f"within a factor {self.factor:g}"


ROUNDED = Tolerance(factor=1.0005, basis="four printed digits")
"""For numbers that follow from printed data without a choice of ours."""
UNSTATED = Tolerance(factor=1.5, basis="the paper does not state motion, limits or noise completely")
"""For numbers that depend on what the paper does not state; 50 % is a convention, the same for all papers."""
SHARE = 0.95
"""Share of our own draws that must enclose a single printed draw; a convention."""


@dataclass(frozen=True, slots=True)
class Row:
    """A figure or a claim of a paper beside our result."""

    what: str
    paper: str
    ours: str
    verdict: Verdict
    note: str = ""


def row(
    what: str,
    paper: object,
    ours: object,
    agrees: bool | None = None,
    *,
    within: Tolerance | None = None,
    assumption: str = "",
    reason: str = "",
    note: str = "",
    derived: bool = False,
    not_scan: str = "",
    unit: str = "",
    digits: int = 4,
) -> Row:
    """Compare what a paper prints with what we found.

    Args:
        what: What is compared.
        paper: The printed value or statement.
        ours: Our value or finding.
        agrees: Whether a claim holds, computed; None compares the two values.
        within: Tolerance of numbers; None asks for equality.
        assumption: What the agreement depends on; `Forced` where it had to agree.
        reason: Why they differ, if they do.
        note: A remark for either case.
        derived: Whether ours follows from other printed values: then the row only redoes the paper's arithmetic.
        not_scan: Why a damaged scan cannot be the cause of a difference from a derived value; empty if it can.
        unit: Unit of both numbers.
        digits: Number of significant digits to print.
    """
    if agrees is None:
        agrees = bool(paper == ours) if within is None else within.holds(float(str(paper)), float(str(ours)))
    texts = [assumption or note if agrees else reason or note or assumption, f"{within}" if within else ""]
    if derived:
        verdict = Verdict.CHECKED if agrees else Verdict.MISPRINT if not_scan else Verdict.SCAN
        texts.insert(0, "" if agrees else f"right: {_text(ours, 7)}")
        texts.append((not_scan and not agrees and f"no fault of the scan: {not_scan}") or "")
    elif not agrees:
        verdict = Verdict.FAILED
    else:
        forced = isinstance(assumption, Forced)
        verdict = Verdict.FORCED if forced else Verdict.ASSUMED if assumption else Verdict.REPRODUCED
    cells = (f"{_text(value, 7 if derived else digits)} {unit}".strip() for value in (paper, ours))
    return Row(what, *cells, verdict, "; ".join(text for text in texts if text))


derive = partial(row, derived=True)
"""A printed value beside the one that follows from other printed values."""


def count_right(what: str, printed: int, right: int, *, note: str = "", not_scan: str = "") -> Row:
    """Compare the number of printed lines, coefficients or terms with the number of right ones among them."""
    found = derive(what, f"{printed} printed", f"{right} right", printed == right, note=note, not_scan=not_scan)
    return Row(what, found.paper, found.ours, found.verdict, note or found.note)


@dataclass(frozen=True, slots=True)
class Draw:
    """A figure that a paper draws once at random, beside many draws of ours."""

    what: str
    paper: float
    low: float
    middle: float
    high: float

    @classmethod
    def of(cls, what: str, paper: float, draws: Sequence[float]) -> Draw:
        """The middle 95 % of our draws and their median."""
        low, middle, high = np.quantile(draws, [(1 - SHARE) / 2, 0.5, (1 + SHARE) / 2])
        return cls(what, float(paper), float(low), float(middle), float(high))

    @property
    def is_inside(self) -> bool:
        """Whether our draws enclose the printed one."""
        return self.low <= self.paper <= self.high

    @property
    def ours(self) -> str:
        """Median and band."""
        return f"{self.middle:.3g} ({self.low:.3g} to {self.high:.3g})"


REFUTED = 0.05
"""Probability below which draws taken together are refuted; the usual level."""


def describe_draws(draws: Sequence[Draw]) -> str:
    """How many draws lie outside their bands, and how many below our median."""
    outside, below = sum(not one.is_inside for one in draws), sum(one.middle > one.paper for one in draws)
    return f"{outside} of {len(draws)} outside ({(1 - SHARE) * len(draws):.1f} expected), {below} below our median"


def judge_jointly(what: str, draws: Sequence[Draw], *, assumption: str, reason: str) -> Row:
    """Judge all draws of a table together: how many lie outside their bands, and how many on one side of our median."""
    outside, below = sum(not one.is_inside for one in draws), sum(one.middle > one.paper for one in draws)
    chances = [
        binom.sf(outside - 1, len(draws), 1.0 - SHARE),
        2.0 * binom.cdf(min(below, len(draws) - below), len(draws), 0.5),
    ]
    reason = f"{reason}; probabilities {chances[0]:.1g} and {min(chances[1], 1.0):.1g}"
    agrees = bool(min(chances) >= REFUTED)
    return row(what, f"{len(draws)} figures", describe_draws(draws), agrees, assumption=assumption, reason=reason)


def _text(value: object, digits: int) -> str:
    if isinstance(value, list | tuple):
        return " ".join(str(item) for item in value)
    return f"{value:.{digits}g}" if isinstance(value, float) else str(value)
