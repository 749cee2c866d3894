"""A designed motion: what it will reveal, how far it stays from every limit, and how it looks."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from dynid.excitation.excitation import Excitation
from dynid.report.blocks import Block, Cards, Heading, Plot, Rows, Text
from dynid.report.page import Section

__all__ = ["Plan"]

POINTS = 1000


@dataclass(frozen=True, slots=True, eq=False)
class Plan(Section):
    """Figures, positions and speeds, predicted deviations, margins."""

    plan: Excitation

    @property
    def title(self) -> str:
        """Heading."""
        return "Motion to record"

    def blocks(self) -> Sequence[Block]:
        """Cards, plots and tables."""
        plan = self.plan
        start, end = plan.trajectory.recorded
        tightest = plan.tightest
        cards = [
            ("condition number", f"{plan.condition_number:.3g}"),
            ("to record [s]", f"{end - start:g}"),
            ("whole motion [s]", f"{plan.trajectory.duration:g}"),
            ("least share of the speed limits", f"{100 * plan.coverage.min():.0f} %"),
        ]
        if tightest is not None:
            cards.append((f"closest limit: {tightest.limit}, {tightest.where}", f"{100 * tightest.relative:.1f} %"))
        samples = plan.sample(POINTS / plan.trajectory.duration)
        names = plan.limits.joint_names
        plots = [
            Plot.of(f"{what} of all joints", "time [s]", unit, samples.time, list(zip(names, values.T, strict=True)))
            for what, unit, values in (
                ("positions", "position [rad or m]", samples.q),
                ("speeds", "speed [rad/s or m/s]", samples.dq),
            )
        ]
        note = "The recorded part is periodic; the whole motion starts and ends at rest."
        return [Cards(tuple(cards)), Text(note, "hint"), *plots, *self._tables()]

    def _tables(self) -> list[Block]:
        plan = self.plan
        order = np.argsort(-plan.predicted_deviation)
        deviations = tuple((plan.parameter_names[k], float(plan.predicted_deviation[k])) for k in order)
        nearest = sorted(plan.margins, key=lambda margin: margin.relative)[:12]
        margins = tuple((m.limit, m.where, float(m.margin), m.unit, float(100.0 * m.relative)) for m in nearest)
        return [
            Heading("Nearest limits"),
            Rows(("limit", "closest at", "margin", "unit", "relative %"), margins),
            Rows(("parameter", "predicted standard deviation"), deviations, folded="What it will reveal, worst first"),
        ]
