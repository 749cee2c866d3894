"""The energy model on line, without accelerations: sequential least squares in square-root form ([GautierKhalil1992]).

Over an interval of time the work of the joints' torques equals the change of the links' energy plus the work of
friction: one equation per interval (eqs. 5-7), linear in the parameters. `dynid.estimators.linear.energy_differences`
forms and solves these equations; here samples are collected until an interval is complete.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from numpy.typing import ArrayLike

from dynid.array_types import Floats
from dynid.checks import as_number
from dynid.data_reduction.factor import Factor
from dynid.estimators.equations import Factors, factors_of
from dynid.estimators.estimate import Estimate
from dynid.estimators.linear.energy_differences import (
    Energy,
    Intervals,
    energy_equations,
    energy_estimate,
    interval_steps,
)
from dynid.estimators.online.arriving_samples import ArrivingSamples, OnlineEstimator
from dynid.estimators.online.triangle import GrowingBlocks
from dynid.identifiability.base_set import BaseParameters
from dynid.robot.model import Robot


class OnlineEnergy(OnlineEstimator):
    """`Energy` sample by sample, in bounded memory.

    After the last sample values and standard deviations are those of `Energy` for the whole log, to 1e-9.

    Typical use, in the control loop::

        tracker = dynid.estimators.OnlineEnergy(robot, rate_hz=1000.0)
        tracker.update(q, dq, tau)
        tracker.estimate().interval()

    The samples of one interval are kept until it ends; then they make one equation, which is rotated into the triangle
    of all equations (`dynid.estimators.online.triangle`).
    """

    rate_hz: float
    """Sampling rate [Hz]."""

    def __init__(
        self,
        robot: Robot,
        *,
        rate_hz: float,
        interval_s: float = 0.05,
        base: BaseParameters | None = None,
    ) -> None:
        """Start without samples.

        Args:
            robot: Geometry and terms; friction is estimated if the robot has such terms (`Robot.with_terms`).
            rate_hz: Sampling rate [Hz]; samples are equally spaced, see `start_stretch`.
            interval_s: Length of the intervals [s]; rounded to whole samples it is the property `interval_s`.
            base: The base parameters to estimate; those of every motion by default. `estimate` gives them in any set.

        Raises:
            ArgumentError: A number makes no sense, the interval is shorter than half a sampling time, a term of the
                robot has no energy, or the base parameters are not those of the robot for every motion.
        """
        super().__init__(robot, base)
        self.rate_hz = as_number("rate_hz", rate_hz, above=0.0)
        self._length = interval_steps(as_number("interval_s", interval_s, above=0.0), self.rate_hz)
        self._blocks = GrowingBlocks([self.kept.rank + 1])
        self._open: list[ArrivingSamples] = []
        # a try with random samples, because it refuses terms without energy
        motion = np.random.default_rng(0).normal(size=(2, self._length + 1, robot.dof))
        self._rows(ArrivingSamples(motion, motion[0], np.ones(motion[0].shape, dtype=bool)))

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
        self._open.append(self._take({"q": q, "dq": dq, "tau": tau}, valid))
        kept = sum(len(part.tau) for part in self._open)
        whole = (kept - 1) // self._length * self._length  # steps in whole intervals
        if whole > 0:
            motion = np.concatenate([part.motion for part in self._open], axis=1)
            tau, counts = (np.concatenate(parts) for parts in zip(*((p.tau, p.valid) for p in self._open), strict=True))
            # the last sample of an interval is the first one of the next
            ready, rest = (
                ArrivingSamples(motion[:, rows], tau[rows], counts[rows])
                for rows in (slice(whole + 1), slice(whole, None))
            )
            self._blocks.append([self._rows(ready)])
            self._open = [rest]

    def start_stretch(self) -> None:
        """Announce a gap: the next sample does not follow the last one, so the unfinished interval is dropped."""
        self._open = []

    @property
    def interval_s(self) -> float:
        """Length of the intervals, rounded to whole samples [s]."""
        return self._length / self.rate_hz

    @property
    def equation_count(self) -> int:
        """Number of energy equations so far, r of eq. (9)."""
        return int(self._blocks.counts.sum())

    @property
    def _equations(self) -> Factors:
        """All equations so far."""
        return factors_of(self.robot, self.kept, self._blocks.triangles, self._blocks.counts)

    @property
    def factor(self) -> Factor:
        """W and Y of eq. (10) so far as a triangle, for `dynid.estimators.perturbation_bounds`."""
        return self._equations.information.weight()

    def _solve(self) -> Estimate:
        return replace(energy_estimate(self._equations), references=Energy.references)

    def _rows(self, part: ArrivingSamples) -> Floats:
        """Compute the equations ``[W, y]`` (intervals, b + 1) of samples in whole intervals."""
        q, dq = part.motion
        intervals = Intervals(q, dq, part.tau, part.valid, self.rate_hz, self._length)
        return energy_equations(self.robot, self.kept, intervals)
