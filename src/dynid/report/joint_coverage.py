"""Section of the report on excitation: how far the data cover what the robot can do, and the least known parameters."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from dynid.arrays import Floats
from dynid.links.identify import Identification
from dynid.processing.experiment import Experiment
from dynid.report.html_blocks import Block, Heading, Rows, Text
from dynid.report.page import Section
from dynid.tables import plain_number

WORST = 6
"""Number of parameters listed as the least known ones; a convention."""
GOOD_CONDITION, POOR_CONDITION = 100.0, 1000.0
"""Condition numbers of the scaled regressor: excitation is called good below the first and poor beyond the second.

Both are conventions: one hundred is the usual rule of thumb."""
CREEP = 0.01
"""Share of a joint's peak speed below which a change of sign does not count as a reversal; a convention."""


@dataclass(frozen=True, slots=True, eq=False)
class Coverage(Section):
    """Excitation: ranges, speeds and reversals of every joint; condition number; the least known parameters."""

    title: ClassVar[str] = "Excitation"

    fit: Identification
    runs: tuple[Experiment, ...]

    def blocks(self) -> Sequence[Block]:
        """A table of the joints, and the parameters that need more motion."""
        runs = [run for run in self.runs if run.samples]
        if not runs:
            return []
        header = (
            "joint", "lowest", "highest", "share of range %", "peak speed +", "peak speed -", "share of speed limit %",
            "reversals", "valid samples",
        )  # fmt: skip
        rows = tuple(self._joint(j, runs) for j in range(self.fit.robot.dof))
        return [Text(self._judgement(), "hint"), Rows(header, rows), *self._weakest()]

    def _judgement(self) -> str:
        condition = self.fit.estimate.condition
        word = "good" if condition < GOOD_CONDITION else "usable" if condition < POOR_CONDITION else "poor"
        return (
            f"The condition number of the regressor with scaled columns is {plain_number(condition)}: {word}. It is "
            "the factor by which torque errors are amplified in the worst combination of parameters. Below "
            f"{GOOD_CONDITION:g} is good; beyond {POOR_CONDITION:g} a better motion is needed. "
            f"{self.fit.bounds.sentence} [GautierKhalil1992]. Dry friction needs "
            "every joint to move both ways, inertia needs acceleration, and gravity terms need different poses."
        )

    def _joint(self, j: int, runs: Sequence[Experiment]) -> tuple[str | float | int | None, ...]:
        body, limits = self.fit.robot.bodies[j], self.fit.robot.moving_joints[j].limits
        q = np.concatenate([run.q[:, j] for run in runs])
        dq = np.concatenate([run.dq[:, j] for run in runs])
        scale, unit = (1.0, "m") if body.is_prismatic else (float(np.rad2deg(1.0)), "deg")
        span = limits.upper - limits.lower
        return (
            f"{self.fit.robot.joint_names[j]} [{unit}]",
            float(scale * q.min()),
            float(scale * q.max()),
            float(100.0 * np.ptp(q) / span) if np.isfinite(span) and span > 0.0 else None,
            float(scale * max(dq.max(), 0.0)),
            float(scale * max(-dq.min(), 0.0)),
            float(100.0 * np.abs(dq).max() / limits.velocity) if np.isfinite(limits.velocity) else None,
            sum(_reversals(run.dq[:, j]) for run in runs),
            int(sum(run.valid[:, j].sum() for run in runs)),
        )

    def _weakest(self) -> list[Block]:
        estimate = self.fit.estimate
        order = np.argsort(-np.where(np.isfinite(estimate.relative_stderr), estimate.relative_stderr, np.inf))[:WORST]
        rows = tuple(
            (estimate.names[k], float(estimate.values[k]), float(estimate.stderr[k]), estimate.units[k]) for k in order
        )
        header = ("parameter", "value", "standard deviation", "unit")
        return [Heading("Parameters with the largest relative uncertainty"), Rows(header, rows)]


def _reversals(speed: Floats) -> int:
    """Count how often a joint reverses its direction; speeds below `CREEP` of the peak do not count."""
    signs = np.sign(speed[np.abs(speed) > CREEP * max(float(np.abs(speed).max()), 1e-12)])
    return int(np.count_nonzero(np.diff(signs)))
