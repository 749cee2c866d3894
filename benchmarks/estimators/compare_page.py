"""Tables, pages and pictures of a finished comparison."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np

from benchmarks.estimators.compared_methods import method
from benchmarks.estimators.condition import Condition
from benchmarks.estimators.study import Study, Summary
from dynid.report.chart import PALETTE, Chart, Line, arrange_charts
from dynid.report.html_blocks import Block, Bullets, Heading, Plot, Rows, Text
from dynid.report.page import Page, Section
from dynid.tables import Cell, Table

FIGURES: tuple[tuple[str, Callable[[Summary], float]], ...] = (
    ("parameter error [%]", lambda s: s.error),
    ("torque error on another motion [%]", lambda s: s.torque_error),
    ("position error on another motion [rad or m]", lambda s: s.position_error),
    ("time over least squares", lambda s: s.relative_time),
)
AXES = (
    ("position_std", "log10 of the position noise [rad or m]", True),
    ("torque_std", "log10 of the torque noise [share]", True),
    ("rate_hz", "log10 of the rate [Hz]", True),
    ("quantisation", "log10 of the encoder resolution [rad or m]", True),
    ("gain_error", "relative error of the controller gains", False),
    ("start_error", "relative error of the initial parameters", False),
)
"""Field of a condition, label of its axis, and whether the axis is logarithmic."""
SHOWN = 1e9
"""Larger figures are not drawn, because the simulation of the identified robot diverges; a convention."""


def comparison_table(study: Study, conditions: Sequence[Condition] | None = None) -> Table:
    """Make a table with one row per condition and method."""
    rows: list[tuple[Cell, ...]] = []
    for condition in conditions or study.conditions:
        for name in study.methods:
            s = study.of(condition, name)
            rows.append(
                (
                    condition.label,
                    name,
                    _finite(s.error),
                    _finite(s.torque_error),
                    _finite(s.position_error),
                    _finite(s.bias),
                    _finite(s.coverage),
                    _finite(s.relative_time),
                    _whole(s.iterations),
                    _whole(s.simulations),
                    _remark(s),
                )
            )
    heads = [
        "condition",
        "method",
        "parameters %",
        "torque %",
        "position rad",
        "bias / std",
        "covered %",
        "time",
        "iter.",
        "sim.",
        "remarks",
    ]
    return Table.of(heads, rows, digits=3)


def _finite(value: float) -> float | None:
    return value if np.isfinite(value) else None


def _whole(value: float) -> int | None:
    return round(value) if np.isfinite(value) else None


def _remark(s: Summary) -> str:
    parts = [f"no estimate in {s.refused} of {s.runs}"] if s.refused else []
    if s.refused < s.runs and not np.isfinite(s.position_error):
        parts.append("simulation diverges")
    return ", ".join([*parts, *([f"doubts the control law in {s.warned}"] if s.warned else [])])


@dataclass(frozen=True, slots=True, eq=False)
class _Overview(Section):
    title: ClassVar[str] = "Methods and data"
    study: Study

    def blocks(self) -> Sequence[Block]:
        study = self.study
        text = (
            f"The robot {study.robot} has {study.parameters} base parameters. Each condition has {study.runs} logs of "
            f"{study.duration_s:g} s; the figures are medians over the logs. Times are relative to that of ordinary "
            "least squares on the same log, both without compilation. The bias is the largest mean error of a "
            "parameter, divided by its stated standard deviation."
        )
        return [Text(text), Bullets(tuple((name, method(name).title) for name in study.methods))]


@dataclass(frozen=True, slots=True, eq=False)
class _Results(Section):
    title: ClassVar[str] = "Results"
    study: Study

    def blocks(self) -> Sequence[Block]:
        table = comparison_table(self.study)
        remarks = [(f"{s.method}, {s.condition.label}", _remark(s) + (f": {s.reason}" if s.reason else ""))
                for s in self.study.summaries if _remark(s)]  # fmt: skip
        rows = tuple(
            row[:-1] for row in table.rows
        )  # remarks are listed below with their reasons, because the table is wide
        return [Rows(table.header[:-1], rows), *([Heading("Remarks"), Bullets(tuple(remarks))] if remarks else [])]


@dataclass(frozen=True, slots=True, eq=False)
class _Curves(Section):
    title: ClassVar[str] = "Dependence on the conditions"
    study: Study

    def blocks(self) -> Sequence[Block]:
        found: list[Block] = []
        later = _dashed(self.study)
        for axis, label, x, lines in _curves(self.study):
            found += [Heading(label), Plot.of(label, axis, "log10", x, lines, dashed=later)]
        return found


def study_page(study: Study) -> Page:
    """Make the page of the comparison."""
    return Page.of(f"Estimators compared: {study.robot}", [_Overview(study), _Results(study), _Curves(study)])


def study_pictures(study: Study) -> str:
    """Draw the curves as one SVG picture; empty if there is only one condition."""
    later = _dashed(study)
    charts = [
        Chart(label, tuple(Line.of(name, x, y, dashed=name in later) for name, y in lines), axis, "log10")
        for axis, label, x, lines in _curves(study)
    ]
    return arrange_charts(charts) if charts else ""


def _dashed(study: Study) -> tuple[str, ...]:
    """Methods that share their colour with an earlier one; their curves are dashed."""
    return study.methods[len(PALETTE) :]


def _series(study: Study, field: str, logarithmic: bool) -> list[list[Condition]]:
    """Groups of at least two conditions that differ only in one field, sorted by it."""
    groups: dict[Condition, list[Condition]] = {}
    for condition in study.conditions:
        if getattr(condition, field) > 0.0 or not logarithmic:
            groups.setdefault(replace(condition, **{field: getattr(study.conditions[0], field)}), []).append(condition)
    return [sorted(group, key=lambda c: float(getattr(c, field))) for group in groups.values() if len(group) > 1]


Curves = list[tuple[str, str, list[float], list[tuple[str, list[float]]]]]
"""Label of the axis, title, x values, and one curve per method; empty curves keep the colours of the others."""


def _curves(study: Study) -> Curves:
    """Curves of each figure of merit over each field in which conditions differ."""
    found: Curves = []
    for field, axis, logarithmic in AXES:
        for series in _series(study, field, logarithmic):
            places = [float(getattr(condition, field)) for condition in series]
            x = [float(np.log10(place)) for place in places] if logarithmic else places
            shared = [part for part in series[0].parts if all(part in c.parts for c in series)]
            for title, figure in FIGURES:
                lines = []
                for name in study.methods:
                    values = [figure(study.of(condition, name)) for condition in series]
                    y = [float(np.log10(v)) if 0.0 < v < SHOWN else float("nan") for v in values]
                    lines.append((name, y))
                found.append((axis, ", ".join([title, *shared]), x, lines))
    return found
