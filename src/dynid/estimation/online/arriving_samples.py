"""Samples as they arrive: checked before anything changes, so that a refused sample leaves no trace."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from dynid.arrays import Bools, Floats
from dynid.errors import ArgumentError, DataError
from dynid.robot.model import Robot

LARGEST = 1e30
"""Largest number that is accepted (derivation: equations multiply up to five; the square of that is still finite)."""


@dataclass(frozen=True, slots=True, eq=False)
class ArrivingSamples:
    """One sample or several, all finite."""

    motion: tuple[Floats, ...]
    """(m, n) each: positions [rad or m], velocities, and accelerations where they are needed."""
    tau: Floats
    """(m, n) torques [N m or N]; zero where they do not count."""
    valid: Bools
    """(m, n) whether the torque counts."""


def check_samples(
    robot: Robot, first: int, motion: dict[str, ArrayLike], tau: ArrayLike, valid: ArrayLike | None
) -> ArrivingSamples:
    """Check one sample, arrays (n,), or several, arrays (m, n).

    Args:
        robot: Its joints.
        first: Number of the first of these samples, from zero, for messages.
        motion: Channel -> values.
        tau: Torques.
        valid: Whether the joint's torque counts; all by default.

    Raises:
        ArgumentError: Shapes do not fit.
        DataError: A number that counts is not finite, or absurdly large; names sample and joint.
    """
    found = {name: np.atleast_2d(np.asarray(values, dtype=float)) for name, values in {**motion, "tau": tau}.items()}
    shapes = {name: array.shape for name, array in found.items()}
    length = shapes["tau"][0]
    if any(shape != (length, robot.dof) for shape in shapes.values()):
        raise ArgumentError(
            f"the arrays have shapes {shapes}", remedy=f"Give {robot.dof} numbers per channel, one per joint, or rows."
        )
    counts = np.ones((length, robot.dof), dtype=bool) if valid is None else np.atleast_2d(np.asarray(valid))
    if counts.shape != (length, robot.dof) or counts.dtype != bool:
        raise ArgumentError(
            f"valid has shape {counts.shape} and type {counts.dtype}", remedy="Give truth values, one per torque."
        )
    for name, values in found.items():
        _refuse(robot, first, name, values, counts if name == "tau" else np.ones_like(counts))
    effort = np.where(counts, found.pop("tau"), 0.0)
    return ArrivingSamples(tuple(found.values()), effort, counts)


def _refuse(robot: Robot, first: int, name: str, values: Floats, counts: Bools) -> None:
    with np.errstate(invalid="ignore"):
        wrong = counts & ~(np.abs(values) <= LARGEST)
    if wrong.any():
        sample, joint = np.argwhere(wrong)[0]
        other = ", or mark this torque with valid=False" if name == "tau" else ""
        raise DataError(
            f"{name} is {values[sample, joint]}",
            place=f"sample {first + sample}, joint {robot.joint_names[joint]}",
            remedy=f"Leave the sample out{other}.",
        )
