"""A designed motion as files: in the formats that robots take, with its margins and its predicted accuracy."""

from __future__ import annotations

import json
import os
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dynid.excitation.excitation import Excitation
from dynid.excitation.trajectory import LinearTrajectory
from dynid.files import write_atomically

__all__ = ["PLAN_FILES", "plan_contents", "read_coefficients", "write_coefficients", "write_plan"]

Floats = NDArray[np.float64]
PLAN_FILES = ("trajectory.csv", "trajectory.json", "trajectory.yaml", "trajectory.script", "plan.txt", "plan.json")
"""All that `write_plan` may write; the script only for six joints."""


def plan_contents(plan: Excitation) -> dict[str, Any]:
    """The plan in numbers, as plain data: coefficients, criterion, margins, predicted deviations, history."""
    history = [[s.start, s.iteration, s.value if np.isfinite(s.value) else None, s.elapsed_s] for s in plan.history]
    return {
        "robot": plan.robot,
        "condition_number": plan.condition_number,
        "log_det": plan.log_det,
        "criterion": type(plan.criterion).__name__,
        "value": plan.value,
        "duration_s": plan.trajectory.duration,
        "recorded_s": list(plan.trajectory.recorded),
        "joint_names": list(plan.limits.joint_names),
        "coefficients": plan.trajectory.coefficients.tolist(),
        "speed_coverage": plan.coverage.tolist(),
        "predicted_deviation": dict(zip(plan.parameter_names, plan.predicted_deviation.tolist(), strict=True)),
        "margins": [asdict(margin) for margin in plan.margins],
        "seed": plan.seed,
        "interrupted": plan.interrupted,
        "history": {"columns": ["start", "iteration", "value", "elapsed_s"], "rows": history},
    }


def write_plan(plan: Excitation, folder: str | os.PathLike[str], *, rate_hz: float, force: bool = False) -> list[Path]:
    """Write the trajectory as CSV, JSON, ROS JointTrajectory and, for six joints, URScript; the plan as text and JSON.

    Args:
        plan: The designed motion.
        folder: An existing folder.
        rate_hz: Samples per second.
        force: Overwrite what stands there.

    Returns:
        What was written.
    """
    there, samples = Path(folder), plan.sample(rate_hz)
    samples.to_csv(there / "trajectory.csv", force=force)
    samples.to_json(there / "trajectory.json", force=force)
    texts = {
        "trajectory.yaml": samples.ros_yaml(),
        "plan.txt": plan.summary() + "\n",
        "plan.json": json.dumps(plan_contents(plan), indent=1) + "\n",
    }
    if plan.trajectory.dof == 6:
        texts["trajectory.script"] = samples.urscript()
    for name, text in texts.items():
        write_atomically(there / name, text, force=force)
    return [there / name for name in PLAN_FILES if name in ("trajectory.csv", "trajectory.json") or name in texts]


def write_coefficients(trajectory: LinearTrajectory, path: str | os.PathLike[str]) -> None:
    """Keep a trajectory of a known family, to go on from it later; whole or not at all."""
    write_atomically(path, json.dumps({"coefficients": trajectory.coefficients.tolist()}) + "\n", force=True)


def read_coefficients(path: str | os.PathLike[str], family: LinearTrajectory) -> LinearTrajectory | None:
    """The trajectory of the family that `write_coefficients` or ``plan.json`` holds; None without one that fits."""
    try:
        coefficients = np.array(json.loads(Path(path).read_text(encoding="utf-8"))["coefficients"], dtype=float)
    except (OSError, ValueError, KeyError, TypeError, RecursionError):
        return None
    fits = coefficients.shape == family.coefficients.shape and bool(np.isfinite(coefficients).all())
    return family.with_coefficients(coefficients) if fits else None
