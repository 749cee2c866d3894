"""Measured and predicted torques of an experiment, joint by joint."""

from __future__ import annotations

import numpy as np

from dynid.kernels import inverse_dynamics
from dynid.links.identify import Identification
from dynid.processing.experiment import Experiment
from dynid.report.chart import Chart, Line, grid

__all__ = ["torque_picture"]


def torque_picture(fit: Identification, run: Experiment, *, joints: int | None = None, width: int = 470) -> str:
    """SVG with one chart per joint: measured torque, the identified robot's, and the prior model's.

    Args:
        fit: The identification.
        run: An experiment, best one that was held out.
        joints: How many joints are drawn, from the first on; all by default.
        width: Of one chart [px].
    """
    found = fit.torque(run)
    before = inverse_dynamics(fit.robot, run.q, run.dq, run.ddq)
    charts = []
    for j in range(min(joints or fit.robot.dof, fit.robot.dof)):
        measured = np.where(run.valid[:, j], run.effort[:, j], np.nan)
        lines = (
            Line.of("measured", run.time, measured),
            Line.of("identified", run.time, found[:, j], dashed=True),
            Line.of("before", run.time, before[:, j]),
        )
        unit = "N" if fit.robot.bodies[j].prismatic else "N m"
        charts.append(Chart(fit.robot.joint_names[j], lines, "time [s]", unit, width=width, height=210))
    return grid(charts)
