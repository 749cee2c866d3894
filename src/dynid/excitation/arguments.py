"""What a design is asked for, checked before anything is computed."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from dynid.errors import ArgumentError
from dynid.excitation.criteria import Criterion, InformationCriterion
from dynid.excitation.excitation import Excitation
from dynid.excitation.limits import MotionLimits
from dynid.excitation.trajectories.trajectory import LinearTrajectory
from dynid.robot.model import Robot

__all__ = [
    "check_criterion",
    "check_robot_and_limits",
    "noise_levels",
    "number",
    "prior_information",
    "started_from",
    "whole",
]

Floats = NDArray[np.float64]


def number(name: str, value: Any, low: float, high: float = np.inf, *, open_low: bool = False) -> float:
    """A finite number within bounds.

    Raises:
        ArgumentError: It is none, or lies outside.
    """
    good = isinstance(value, int | float | np.integer | np.floating) and not isinstance(value, bool)
    good = good and np.isfinite(value) and (low < value if open_low else low <= value) and value <= high
    if not good:
        bound = f"{'above' if open_low else 'at least'} {low:g}" + (f" and at most {high:g}" if high < np.inf else "")
        raise ArgumentError(f"{name} must be a finite number {bound}, not {value!r}", remedy=f"Correct {name}.")
    return float(value)


def whole(name: str, value: Any, low: int) -> int:
    """A whole number of at least ``low``.

    Raises:
        ArgumentError: It is none, or smaller.
    """
    if isinstance(value, bool) or not isinstance(value, int | np.integer) or value < low:
        raise ArgumentError(
            f"{name} must be a whole number of at least {low}, not {value!r}", remedy=f"Correct {name}."
        )
    return int(value)


def check_robot_and_limits(robot: Robot, limits: Any, family: LinearTrajectory) -> None:
    """Refuse limits and families of another robot, and robots that cannot move.

    Raises:
        ArgumentError: Says which.
    """
    if robot.dof == 0:
        raise ArgumentError(
            f"robot '{robot.name}' has no moving joint", remedy="Leave joints free: fixed ones reveal nothing."
        )
    if not isinstance(limits, MotionLimits):
        raise ArgumentError(f"limits are MotionLimits, not {limits!r}", remedy="Use MotionLimits.from_robot.")
    if limits.joint_names != robot.joint_names or family.dof != robot.dof:
        raise ArgumentError(
            "limits or trajectory family belong to another robot", remedy="Use MotionLimits.from_robot."
        )


def check_criterion(criterion: Any) -> None:
    """Refuse what is no function of the information.

    Raises:
        ArgumentError: Says why.
    """
    if isinstance(criterion, InformationCriterion):
        return
    offered = "ColumnScaled(ConditionNumber()), DOptimality(), AOptimality(), EOptimality() or PredictedDeviation(...)"
    if isinstance(criterion, Criterion):
        raise ArgumentError(
            f"{type(criterion).__name__} needs every entry of the observation matrix; the search sees information only",
            remedy=f"Use {offered}.",
        )
    raise ArgumentError(f"{criterion!r} is no criterion", remedy=f"Use {offered}.")


def noise_levels(noise: Any, count: int) -> Floats:
    """Standard deviations (n,) of the joints' torques, from one for all or one each [N m or N].

    Raises:
        ArgumentError: They are of another number, or not positive.
    """
    try:
        levels = np.broadcast_to(np.asarray(noise, dtype=float), (count,))
    except (TypeError, ValueError):
        levels = np.zeros(0)
    if not (levels.size and np.all(np.isfinite(levels) & (levels > 0.0))):
        raise ArgumentError(
            f"noise needs one positive standard deviation, or one for each of the {count} joints, not {noise!r}",
            remedy="In N m or N.",
        )
    return levels


def prior_information(prior: Any, size: int) -> Floats | None:
    """Information (b, b) of earlier runs, symmetric and finite.

    Raises:
        ArgumentError: It has another shape, or is no information.
    """
    if prior is None:
        return None
    try:
        array = np.array(prior, dtype=float)
    except (TypeError, ValueError) as error:
        raise ArgumentError(f"prior is no matrix of numbers: {error}", remedy="Give Excitation.information.") from error
    if array.shape != (size, size):
        raise ArgumentError(
            f"prior has shape {array.shape}, the parameters need ({size}, {size})",
            remedy="Give Excitation.information of the same robot and parameters.",
        )
    scale = float(np.abs(array).max(initial=0.0))
    if not np.isfinite(array).all() or np.abs(array - array.T).max(initial=0.0) > 1e-9 * scale:
        raise ArgumentError("prior must be finite and symmetric", remedy="Give Excitation.information.")
    if size and np.linalg.eigvalsh(array)[0] < -1e-9 * scale:
        raise ArgumentError(
            "prior must be positive semidefinite: a negative eigenvalue takes information away",
            remedy="Give Excitation.information.",
        )
    return np.asarray(0.5 * (array + array.T))


def started_from(initial: Any, family: LinearTrajectory, robot: Robot) -> LinearTrajectory | None:
    """An earlier motion as one of the family that is searched now.

    Raises:
        ArgumentError: It is another robot's, or no trajectory of coefficients.
    """
    if initial is None:
        return None
    given = initial.trajectory if isinstance(initial, Excitation) else initial
    if not isinstance(given, LinearTrajectory):
        raise ArgumentError(
            f"initial must be an Excitation, a Fourier series or a spline, not {type(initial).__name__}",
            remedy="Give an earlier design.",
        )
    names = initial.limits.joint_names if isinstance(initial, Excitation) else robot.joint_names
    if names != robot.joint_names or given.dof != robot.dof:
        raise ArgumentError(
            f"initial is a motion of {given.dof} joints of another robot; '{robot.name}' has {robot.dof}",
            remedy="Start from a motion of the same joints.",
        )
    return family.fitted(given)
