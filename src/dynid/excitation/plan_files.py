"""A designed motion as files: formats that controllers read, with margins and predicted accuracy."""

from __future__ import annotations

import json
import os
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np

from dynid.errors import ArgumentError
from dynid.excitation.excitation import Excitation
from dynid.excitation.trajectories.fourier import FourierTrajectory
from dynid.excitation.trajectories.quintic import QuinticTrajectory
from dynid.excitation.trajectories.trajectory import Trajectory
from dynid.files import write_atomically
from dynid.tables import Table

PLAN_FILES = ("trajectory.csv", "trajectory.yaml", "trajectory.script", "plan.txt", "plan.json")
"""Names of all files that `write_plan` may write; the script is for robots with six joints only."""
MOST_NUMBERS = 3e7
"""Largest count of numbers in one trajectory file: some hundred megabytes. Convention."""


def plan_contents(plan: Excitation) -> dict[str, Any]:
    """The plan in numbers, as plain data: coefficients, criterion, margins, predicted deviations, history."""
    history = [[s.start, s.iteration, s.value if np.isfinite(s.value) else None, s.elapsed_s] for s in plan.history]
    return {
        "robot": plan.robot,
        "condition_number": plan.condition_number,
        "log_det": plan.log_det,
        "criterion": str(plan.criterion),
        "value": plan.value,
        "duration_s": plan.trajectory.duration,
        "recorded_s": list(plan.trajectory.recorded),
        "joint_names": list(plan.limits.joint_names),
        **_motion_contents(plan),
        "speed_coverage": plan.coverage.tolist(),
        "assumed": plan.assumed,
        "units": dict(zip(plan.parameter_names, plan.parameter_units, strict=True)),
        "predicted_deviation": dict(zip(plan.parameter_names, plan.predicted_deviation.tolist(), strict=True)),
        "checked": list(plan.checked),
        "not_checked": list(plan.not_checked),
        "cautions": [caution.message for caution in plan.cautions],
        "finding_codes": [caution.code for caution in plan.cautions],
        "margins": [asdict(margin) for margin in plan.margins],
        "seed": plan.seed,
        "interrupted": plan.interrupted,
        "history": {"columns": ["start", "iteration", "value", "elapsed_s"], "rows": history},
    }


def _motion_contents(plan: Excitation) -> dict[str, Any]:
    """What defines the motion: coefficients of a series, or points with the durations between them."""
    if isinstance(plan.trajectory, FourierTrajectory):
        return {"coefficients": plan.trajectory.coefficients.tolist()}
    if plan.points is None or not isinstance(plan.trajectory, QuinticTrajectory):
        return {}
    path, points = plan.trajectory, plan.points.sequence
    return {
        "points": {"q": path.q.tolist(), "dq": path.dq.tolist(), "durations_s": path.durations.tolist()},
        "energies": {
            "condition_number": points.condition_number,
            "equilibrium": points.equilibrium if np.isfinite(points.equilibrium) else None,
            "differences": len(points.W),
            "box_share": plan.points.box_share,
            "acceleration_share": plan.points.acceleration_share,
        },
    }


def write_plan(plan: Excitation, folder: str | os.PathLike[str], *, rate_hz: float, force: bool = False) -> list[Path]:
    """Write the trajectory as CSV, JSON, ROS JointTrajectory and, for six joints, URScript; the plan as text and JSON.

    Args:
        plan: The designed motion.
        folder: An existing folder.
        rate_hz: Samples per second.
        force: Whether existing files are overwritten.

    Returns:
        The paths of the written files.

    Raises:
        ArgumentError: The rate does not fit the motion.

    Example:
        >>> settings = dynid.excitation.SearchSettings(starts=1, time_limit_s=0.5)
        >>> plan = dynid.design_excitation(robot, limits, period_s=5, harmonics=2, settings=settings)
        >>> len(dynid.excitation.write_plan(plan, folder, rate_hz=100)) > 0
        True
    """
    check_rate(plan.trajectory, rate_hz)
    there, samples = Path(folder), plan.sample(rate_hz)
    samples.to_csv(there / "trajectory.csv", force=force)
    texts = {
        "trajectory.yaml": samples.ros_yaml(),
        "plan.txt": f"{plan.summary()}\n\n{_deviations(plan).to_text()}\n",
        "plan.json": json.dumps(plan_contents(plan), indent=1) + "\n",
    }
    if plan.trajectory.dof == 6:
        way = "The way from where the robot stands to the start (movej) is not checked at all."
        texts["trajectory.script"] = f"# {plan.checks_summary}\n# {way}\n{samples.urscript()}"
    for name, content in texts.items():
        write_atomically(there / name, content, force=force)
    written = [name for name in PLAN_FILES if name == "trajectory.csv" or name in texts]
    if force:  # another robot's script must not stand beside this plan
        for name in set(PLAN_FILES) - set(written):
            (there / name).unlink(missing_ok=True)
    return [there / name for name in written]


def check_rate(trajectory: Trajectory, rate_hz: float) -> None:
    """Refuse rates at which a written motion would not be the designed one, or would fill the disk.

    Raises:
        ArgumentError: The rate is too low or too high; the message states the bounds.
    """
    lowest = trajectory.lowest_rate_hz
    highest = MOST_NUMBERS / (3.0 * trajectory.dof * trajectory.duration)
    if not lowest <= rate_hz <= highest:
        raise ArgumentError(
            f"a rate of {rate_hz:g} Hz does not fit this motion", remedy=f"Use {lowest:.3g} to {highest:.3g} Hz."
        )


def _deviations(plan: Excitation) -> Table:
    """Every parameter with its predicted standard deviation."""
    rows = zip(plan.parameter_names, plan.predicted_deviation, plan.parameter_units, strict=True)
    cells = [[name, f"{deviation:.3g}", unit] for name, deviation, unit in rows]
    return Table.of(["parameter", "predicted standard deviation", "unit"], cells)
