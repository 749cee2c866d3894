"""The energy model on line: sequential least squares in square-root form, no accelerations ([GautierKhalil1992])."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dynid.arrays import Floats
from dynid.checks import as_number
from dynid.estimation.estimate import Estimate, convert_estimate
from dynid.estimation.linear.energy_differences import Energy, EnergySums, Intervals, energy_rows, interval_steps
from dynid.estimation.online.arriving_samples import ArrivingSamples, StatedNoise, check_samples
from dynid.estimation.online.triangle import RowTriangle
from dynid.information import Factor
from dynid.parameters.base import base_parameters, choose_base
from dynid.parameters.base_set import BaseParameters
from dynid.robot.model import Robot


class OnlineEnergy:
    """`Energy` sample by sample, in bounded memory.

    After the last sample values and standard deviations are those of the whole log, to 1e-9.

    Typical use, in the control loop::

        tracker = dynid.estimation.OnlineEnergy(robot, rate_hz=1000.0)
        tracker.update(q, dq, tau)
        tracker.estimate().interval()

    The samples of one interval are kept until it ends; then the work of the joints over it, the change of the links'
    energy and the work of friction make one equation (eqs. 5-7), which is rotated into the triangle.
    """

    __slots__ = ("_errors", "_length", "_noise", "_open", "_sums", "_wanted", "base", "rate_hz", "robot", "samples")

    robot: Robot
    """Geometry and terms."""
    base: BaseParameters
    """The base parameters in whose columns the equations stand."""
    rate_hz: float
    """Sampling rate [Hz]."""
    samples: int
    """Number of samples so far."""

    def __init__(
        self,
        robot: Robot,
        *,
        rate_hz: float,
        interval_s: float = 0.05,
        base: BaseParameters | None = None,
        motion_std: tuple[ArrayLike, ArrayLike] | None = None,
    ) -> None:
        """Start, knowing nothing.

        Args:
            robot: Geometry and terms; friction is estimated if the robot has such terms (`Robot.with_terms`).
            rate_hz: Sampling rate [Hz]; samples are equally spaced, see `start_stretch`.
            interval_s: Length of the intervals [s], rounded to whole samples; the attribute `interval_s` is what is
                used.
            base: The base parameters to estimate; those of every motion by default. `estimate` gives them in any set.
            motion_std: Standard deviations of the noise of positions and velocities, each one number or (n,).
                Directions of the equations that do not stand out of it count as not determined. None for a motion that
                is exact.

        Raises:
            ArgumentError: A number makes no sense, the interval is shorter than half a sampling time, a term of the
                robot has no energy, or the base parameters are not those of the robot for every motion.
        """
        self.robot, self.samples = robot, 0
        self._wanted = choose_base(robot, base, every_motion=True)
        self.base = self._wanted if self._wanted.mixing is None else base_parameters(robot)
        self.rate_hz = as_number("rate_hz", rate_hz, above=0.0)
        self._length = interval_steps(as_number("interval_s", interval_s, above=0.0), self.rate_hz)
        self._sums = EnergySums(robot.dof, self.base.names, self.base.units)
        self._open: list[ArrivingSamples] = []
        self._noise = None if motion_std is None else StatedNoise(robot, motion_std, ("positions", "velocities"))
        self._errors = RowTriangle(self.base.rank + 1)
        q, dq, tau = np.random.default_rng(0).normal(size=(3, self._length + 1, robot.dof))
        energy_rows(self, self._intervals(q, dq, tau, np.ones(q.shape, dtype=bool)))  # refuses terms without energy

    def update(self, q: ArrayLike, dq: ArrayLike, tau: ArrayLike, *, valid: ArrayLike | None = None) -> None:
        """Add one sample, arrays (n,), or several, arrays (m, n), the latest last.

        Args:
            q: Joint positions [rad or m].
            dq: Joint velocities.
            tau: Joint torques [N m or N].
            valid: Whether each torque counts; an interval with one that does not is left out. All by default.

        Raises:
            ArgumentError: The arrays do not fit the robot.
            DataError: A number that counts is NaN or infinite; the sample and the joint are named, nothing changes.
        """
        new = check_samples(self.robot, self.samples, {"q": q, "dq": dq}, tau, valid)
        self.samples += len(new.tau)
        self._open.append(new)
        kept = sum(len(part.tau) for part in self._open)
        whole = (kept - 1) // self._length * self._length
        if whole > 0:
            motion = np.concatenate([part.motion for part in self._open], axis=1)
            tau, counts = (np.concatenate(parts) for parts in zip(*((p.tau, p.valid) for p in self._open), strict=True))
            ready, rest = slice(whole + 1), slice(whole, None)
            part = self._intervals(motion[0, ready], motion[1, ready], tau[ready], counts[ready])
            rows = energy_rows(self, part)
            if self._noise is not None:
                other_q, other_dq = self._noise.add(motion[:, ready])
                self._errors.update(energy_rows(self, replace(part, q=other_q, dq=other_dq)) - rows)
            self._sums.append(rows)
            self._open = [ArrivingSamples(motion[:, rest], tau[rest], counts[rest])]

    def start_stretch(self) -> None:
        """The next sample does not follow the last one: the interval that was begun is dropped."""
        self._open = []

    @property
    def interval_s(self) -> float:
        """Length of the intervals that is used [s]: whole samples."""
        return self._length / self.rate_hz

    @property
    def equation_count(self) -> int:
        """Number of energy equations so far, r of eq. (9)."""
        return int(self._sums.counts[0])

    @property
    def factor(self) -> Factor:
        """W and Y of eq. (10) so far as a triangle, for `dynid.estimation.perturbation_bounds`."""
        return self._sums.factor

    def estimate(self) -> Estimate:
        """What the samples so far say; infinite standard deviations where they do not determine a parameter."""
        found = self._sums.estimate(None if self._noise is None else self._errors.R[:-1, :-1])
        return convert_estimate(replace(found, references=Energy.references), self.base, self._wanted)

    def _intervals(self, q: Floats, dq: Floats, tau: Floats, valid: NDArray[np.bool_]) -> Intervals:
        return Intervals(q, dq, tau, valid, self.rate_hz, self._length)
