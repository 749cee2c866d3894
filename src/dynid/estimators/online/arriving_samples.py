"""The base class of estimators on line, which take samples while the robot moves, and the check of these samples.

`OnlineLeastSquares`, `OnlineEnergy` and `OnlineLinkByLink` derive from it: their ``update`` calls `_take`, and
`estimate` calls their `_solve`. Samples are checked before anything changes, so that a refused sample leaves no trace.

Shapes: n joints, m samples in one call.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from dynid.array_types import Bools, Floats
from dynid.checks import LARGEST_SIGNAL
from dynid.errors import ArgumentError, DataError
from dynid.estimators.estimate import Estimate, convert_estimate
from dynid.identifiability.base import base_parameters, choose_base
from dynid.identifiability.base_set import BaseParameters
from dynid.robot.model import Robot


class ArrivingSamples(NamedTuple):
    """One sample or several, m in all, checked to be finite."""

    motion: Floats
    """(channels, m, n) positions [rad or m], velocities, and accelerations where they are needed."""
    tau: Floats
    """(m, n) torques [N m or N]; zero where they do not count."""
    valid: Bools
    """(m, n) whether the torque counts."""


class OnlineEstimator(ABC):
    """An estimator that takes samples while the robot moves; a subclass reduces them and implements `_solve`."""

    robot: Robot
    """Geometry and terms."""
    base: BaseParameters
    """The base parameters that are estimated."""
    kept: BaseParameters
    """The base parameters of the equations: ``base``, or if that is a set like Lin's, whose members are combinations,
    the usual set, from which estimates are converted."""
    samples: int
    """Number of samples so far."""

    def __init__(self, robot: Robot, base: BaseParameters | None) -> None:
        """Start without samples.

        Args:
            robot: Geometry and terms.
            base: The base parameters to estimate; those of every motion if None.

        Raises:
            ArgumentError: The base parameters are not those of the robot for every motion.
        """
        self.robot = robot
        self.samples = 0
        self.base = choose_base(robot, base, every_motion=True)
        self.kept = self.base if self.base.mixing is None else base_parameters(robot)

    def estimate(self) -> Estimate:
        """Estimate from the samples so far; undetermined parameters have infinite standard deviations."""
        return convert_estimate(self._solve(), self.kept, self.base)

    @abstractmethod
    def _solve(self) -> Estimate:
        """Estimate the parameters of ``kept``."""

    def _take(self, motion: dict[str, ArrayLike], tau: ArrayLike, valid: ArrayLike | None) -> ArrivingSamples:
        """Check and count one sample, arrays (n,), or several, arrays (m, n).

        Args:
            motion: Channel -> values.
            tau: Torques.
            valid: Whether the joint's torque counts; all by default.

        Raises:
            ArgumentError: Shapes do not fit.
            DataError: A number that counts is not finite, or absurdly large; names sample and joint.
        """
        names = (*motion, "tau")
        given = (*motion.values(), tau)
        try:
            found = np.array(given, dtype=float)
        except ValueError:  # of different shapes, which the check below refuses
            found = np.zeros(0)
        found = found[:, None] if found.ndim == 2 else found  # (channels, m, n), torques last
        if found.shape[2:] != (self.robot.dof,):
            shapes = {name: np.shape(values) for name, values in zip(names, given, strict=True)}
            remedy = f"Give {self.robot.dof} numbers per channel, one per joint, or rows."
            raise ArgumentError(f"the arrays have shapes {shapes}", remedy=remedy)
        is_valid = np.ones(found.shape[1:], dtype=bool) if valid is None else np.atleast_2d(np.asarray(valid))
        if is_valid.shape != found.shape[1:] or is_valid.dtype != bool:
            what = f"valid has shape {is_valid.shape} and type {is_valid.dtype}"
            raise ArgumentError(what, remedy="Give truth values, one per torque.")
        if valid is not None:
            found[-1] = np.where(is_valid, found[-1], 0.0)
        if found.size and not np.abs(found).max() <= LARGEST_SIGNAL:  # also if it is NaN
            channel, sample, joint = np.argwhere(~(np.abs(found) <= LARGEST_SIGNAL))[0]
            other = ", or mark this torque with valid=False" if names[channel] == "tau" else ""
            raise DataError(
                f"{names[channel]} is {found[channel, sample, joint]}",
                place=f"sample {self.samples + sample}, joint {self.robot.joint_names[joint]}",
                remedy=f"Leave the sample out{other}.",
            )
        self.samples += found.shape[1]
        return ArrivingSamples(found[:-1], found[-1], is_valid)
