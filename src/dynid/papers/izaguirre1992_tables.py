"""Izaguirre et al. 1992: the printed statistics against what statistics of ten values can be."""

from __future__ import annotations

import numpy as np

from dynid.papers.data import printed
from dynid.papers.reproduction import Part
from dynid.papers.rows import Row, Verdict, checked

__all__ = ["consistency"]


def consistency(quick: bool = False) -> Part:
    """Tables 1 and 2 against what statistics of ten values can be."""
    data = printed("izaguirre1992")
    rows: list[Row] = []
    for number in (1, 2):
        wrong = {name: why for name, line in data[f"table{number}"].items() if (why := _impossible(*line))}
        total = len(data[f"table{number}"])
        text = f"{total - len(wrong)} lines possible"
        rows.append(Row(f"Table {number}: lines that ten values can have", f"{total} lines", text, Verdict.REPRODUCED))
        for name, (printed_value, right, note) in wrong.items():
            rows.append(Row(f"Table {number}, {name}", printed_value, right, Verdict.MISPRINT, note))
    listing, table = data["constants"]["Z6"], data["table2"]["z6"][0]
    rows.append(checked("Appendix A: Z6, also in Table 2", listing, table, note="a digit is lost"))
    return Part(title="Tables 1 and 2 against themselves", source="Tables 1 and 2, Appendix A", rows=tuple(rows))


def _impossible(average: float, deviation: float, maximum: float, minimum: float) -> tuple[str, str, str] | None:
    """What is wrong with the statistics of ten values, if anything."""
    if not minimum <= average <= maximum:
        swapped = "exchanged" if maximum <= average <= minimum else "not around the average"
        right = f"maximum {minimum:g}, minimum {maximum:g}" if swapped == "exchanged" else "cannot be told"
        return f"maximum {maximum:g}, minimum {minimum:g}, average {average:g}", right, f"maximum and minimum {swapped}"
    span = maximum - minimum
    low, high = span / np.sqrt(2 * 9), 0.5 * span * np.sqrt(10 / 9)
    if not 0.98 * low <= deviation <= 1.02 * high:
        note = "right: in that range. Ten values between that minimum and maximum cannot have the printed deviation"
        return f"deviation {deviation:g}", f"between {low:.4g} and {high:.4g}", note
    return None
