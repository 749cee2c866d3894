"""The contract of trackers, which take samples while the robot moves, and the check of these samples.

`OnlineTracker` states it: `dynid.payload.OnlineLoad`, `dynid.monitor.LoadTracker` and `OnlineEstimator` derive from it,
and `OnlineLeastSquares`, `OnlineEnergy` and `OnlineLinkByLink` from the latter, whose `estimate` calls their `_solve`.
Every ``update`` calls `_take`, which checks samples before anything changes: a refused sample leaves no trace.

Shapes: n joints (or channels of a wrench), m samples in one call.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Any, NamedTuple

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
    """(signals, m, n) positions [rad or m], velocities, perhaps accelerations; or the columns of a load's equations."""
    tau: Floats
    """(m, n) torques [N m or N], or the wrench on a load; zero where they do not count."""
    valid: Bools
    """(m, n) whether the torque counts."""


class OnlineTracker(ABC):
    """Takes samples while the robot moves, in bounded memory, and tells at any time what they show."""

    samples: int
    """Number of samples so far."""

    def __init__(self, places: Sequence[str]) -> None:
        """Start without samples; ``places`` say what the n measured values are of, such as "joint shoulder"."""
        self.samples = 0
        self._places = tuple(places)

    @abstractmethod
    def update(self, *args: Any, **kwargs: Any) -> None:
        """Add one sample, arrays (n,), or several, arrays (m, n); ``valid`` says whether each measured value counts."""

    @abstractmethod
    def estimate(self) -> Any:
        """Estimate from the samples so far, with standard deviations."""

    def _take(self, given: dict[str, ArrayLike], valid: ArrayLike | None) -> ArrivingSamples:
        """Check and count one sample, arrays (n,), or several, arrays (m, n).

        Args:
            given: Signal -> values, the measured one last.
            valid: Whether the measured value counts; all by default.

        Raises:
            ArgumentError: Shapes do not fit.
            DataError: A number that counts is not finite, or absurdly large; names sample and place.
        """
        names, size = tuple(given), len(self._places)
        try:
            found = np.array(tuple(given.values()), dtype=float)
        except (TypeError, ValueError):  # of different shapes, or no numbers, which the check below refuses
            found = np.zeros(0)
        found = found[:, None] if found.ndim == 2 else found  # (signals, m, n)
        if found.shape[2:] != (size,):
            shapes = {name: np.shape(values) for name, values in given.items()}
            remedy = f"Give {size} numbers per signal, one for each {self._places[0].split()[0]}, or rows."
            raise ArgumentError(f"the arrays have shapes {shapes}", remedy=remedy)
        is_valid = np.ones(found.shape[1:], dtype=bool) if valid is None else np.atleast_2d(np.asarray(valid))
        if is_valid.shape != found.shape[1:] or is_valid.dtype != bool:
            what = f"valid has shape {is_valid.shape} and type {is_valid.dtype}"
            raise ArgumentError(what, remedy=f"Give truth values, one per {names[-1]}.")
        if valid is not None:
            found[-1] = np.where(is_valid, found[-1], 0.0)
        if found.size and not np.abs(found).max() <= LARGEST_SIGNAL:  # also if it is NaN
            signal, sample, place = np.argwhere(~(np.abs(found) <= LARGEST_SIGNAL))[0]
            other = ", or mark it with valid=False" if signal == len(names) - 1 else ""
            raise DataError(
                f"{names[signal]} is {found[signal, sample, place]}",
                place=f"sample {self.samples + sample}, {self._places[place]}",
                remedy=f"Leave the sample out{other}.",
            )
        self.samples += found.shape[1]
        return ArrivingSamples(found[:-1], found[-1], is_valid)


class OnlineEstimator(OnlineTracker):
    """A tracker of base parameters; a subclass reduces the samples and implements `_solve`."""

    robot: Robot
    """Geometry and terms."""
    base: BaseParameters
    """The base parameters that are estimated."""
    kept: BaseParameters
    """The base parameters of the equations: ``base``, or if that is a set like Lin's, whose members are combinations,
    the usual set, from which estimates are converted."""

    def __init__(self, robot: Robot, base: BaseParameters | None) -> None:
        """Start without samples.

        Args:
            robot: Geometry and terms.
            base: The base parameters to estimate; those of every motion if None.

        Raises:
            ArgumentError: The base parameters are not those of the robot for every motion.
        """
        super().__init__([f"joint {name}" for name in robot.joint_names])
        self.robot = robot
        self.base = choose_base(robot, base, every_motion=True)
        self.kept = self.base if self.base.mixing is None else base_parameters(robot)

    def estimate(self) -> Estimate:
        """Estimate from the samples so far; undetermined parameters have infinite standard deviations."""
        return convert_estimate(self._solve(), self.kept, self.base)

    @abstractmethod
    def _solve(self) -> Estimate:
        """Estimate the parameters of ``kept``."""
