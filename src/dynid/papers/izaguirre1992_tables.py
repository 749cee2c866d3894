"""Izaguirre et al. 1992: the printed statistics against what statistics of ten values can be."""

from __future__ import annotations

import numpy as np

from dynid.papers.data import printed
from dynid.papers.reproduction import Part
from dynid.papers.rows import Row, Verdict, checked

__all__ = ["consistency"]

_VALUES = 10
"""Trajectories, hence values behind each line."""


def consistency(quick: bool = False) -> Part:
    """Tables 1 and 2 against what statistics of ten values can be."""
    data = printed("izaguirre1992")
    rows: list[Row] = []
    for number in (1, 2):
        lines = data[f"table{number}"]
        wrong = {name: found for name, line in lines.items() if (found := _impossible(*line))}
        text = f"{len(lines) - len(wrong)} lines possible" + ("; misprints below" if wrong else "")
        rows.append(
            Row(f"Table {number}: lines that ten values can have", f"{len(lines)} lines", text, Verdict.REPRODUCED)
        )
        for name, found in wrong.items():
            rows += [
                Row(f"Table {number}, {name}: {what}", was, right, Verdict.MISPRINT, why)
                for what, was, right, why in found
            ]
    listing, table = data["constants"]["Z6"], data["table2"]["z6"][0]
    rows.append(checked("Appendix A: Z6, also in Table 2", listing, table, note="a digit is lost"))
    return Part(title="Tables 1 and 2 against themselves", source="Tables 1 and 2, Appendix A", rows=tuple(rows))


def _impossible(average: float, deviation: float, maximum: float, minimum: float) -> list[tuple[str, str, str, str]]:
    """What is wrong with the statistics of ten values: what it is, as printed, what is right, why."""
    found = []
    low, high = sorted((minimum, maximum))
    if maximum < minimum:
        right = f"maximum {high:g}, minimum {low:g}"
        found.append(("range", f"maximum {maximum:g}, minimum {minimum:g}", right, "maximum and minimum exchanged"))
    if not low <= average <= high:
        found.append(("average", f"{average:g}", f"between {low:g} and {high:g}", "right: in that range"))
        return found
    least, most = _deviations(average, high, low)
    if not 0.98 * least <= deviation <= 1.02 * most:
        note = (
            "right: in that range. Ten values with that average, minimum and maximum cannot have the printed deviation"
        )
        found.append(("deviation", f"{deviation:g}", f"between {least:.4g} and {most:.4g}", note))
    return found


def _deviations(average: float, maximum: float, minimum: float) -> tuple[float, float]:
    """Smallest and largest standard deviation of ten values; divisor 10 for the one and 9 for the other.

    Least where all but the extremes are equal; at most that of values at the extremes only (Bhatia and Davis).
    """
    others = (_VALUES * average - maximum - minimum) / (_VALUES - 2)
    squares = (maximum - average) ** 2 + (average - minimum) ** 2 + (_VALUES - 2) * (others - average) ** 2
    most = _VALUES * (maximum - average) * (average - minimum) / (_VALUES - 1)
    return float(np.sqrt(squares / _VALUES)), float(np.sqrt(most))
