"""A load and changes of friction, tracked while the robot runs, from the joint torques.

The residual of the identified model, ``y = tau - model``, is linear in the ten parameters of a load on the last link
and in changes of viscous and dry friction. They are estimated by recursive least squares with a prior: a triangle R
with ``|R x - z|^2`` the weighted sum of all squared errors takes up each sample by Householder reflections; no inverse
is propagated, and the triangle does not grow. The last column of the stored triangle is z, so that the estimate solves
``R x = z``, and its covariance is ``(R^T R)^-1``.

Each group of parameters forgets by itself: before a sample, the standard deviations of a group grow by a factor, and
the estimate stays. In the triangle this scales the group's columns. Without forgetting the result is that of all
samples at once. A load that is gripped or dropped makes the new torques improbable; the load is then forgotten.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from dynid.array_types import Floats
from dynid.checks import as_number, as_row
from dynid.compiled import kernel
from dynid.decompositions import solve_upper
from dynid.estimators.estimate import TWO_SIDED_95
from dynid.estimators.online.arriving_samples import ArrivingSamples, OnlineTracker
from dynid.estimators.online.triangle import RowTriangle
from dynid.robot.model import Robot

LOAD = 10
"""Parameters of a load: XX XY XZ YY YZ ZZ MX MY MZ M."""
PRIOR = (0.3, 0.3, 0.3, 0.3, 0.3, 0.3, 1.0, 1.0, 1.0, 10.0)
"""Standard deviations of the load before any sample [kg m^2, kg m, kg] (convention: loads up to some kilograms)."""
FRICTION = 0.5
"""Standard deviation of changes of viscous [N m s or N s] and dry [N m or N] friction at first (convention)."""
WINDOW_S = 0.2
"""Time over which improbable torques are summed [s] (convention: longer than a reversal, shorter than a motion)."""
MOST_WINDOW = 2000
"""Most samples of this time (convention: 10 000 a second; generated code holds this many numbers)."""
JUMP = 8.0
"""Mean square of the prediction errors over their expectation from which on the load has changed (convention: normal
noise that lasts a fifth of a second reaches it never)."""


@dataclass(frozen=True, slots=True, eq=False)
class TrackedLoad:
    """The estimates at one instant."""

    parameters: Floats
    """(10,) parameters of the load, in the frame of the last link."""
    stderr: Floats
    """(10,) their standard deviations."""
    friction: Floats
    """(n, 2) changes of viscous and dry friction."""
    friction_stderr: Floats
    """(n, 2) their standard deviations."""

    @property
    def mass(self) -> float:
        """Mass of the load [kg]."""
        return float(self.parameters[9])

    @property
    def mass_interval(self) -> tuple[float, float]:
        """95 % interval of the mass [kg]."""
        half = TWO_SIDED_95 * float(self.stderr[9])
        return self.mass - half, self.mass + half


class LoadTracker(OnlineTracker):
    """The load on the last link, and friction, while the robot runs.

    Typical use, in the control loop::

        tracker = dynid.monitor.LoadTracker(identified, noise_std=0.3, rate_hz=500)
        tracker.update(q, dq, ddq, tau)
        tracker.estimate().mass

    What no motion shows keeps the standard deviations of the prior.
    """

    jumps: int
    """How often the load was found to have changed."""

    def __init__(
        self,
        model: Robot,
        *,
        noise_std: ArrayLike,
        rate_hz: float,
        load_memory_s: float = np.inf,
        friction_memory_s: float = np.inf,
    ) -> None:
        """Start without a load.

        Args:
            model: The identified robot without a load.
            noise_std: Standard deviations (n,) of the torques about the model, or one [N m or N].
            rate_hz: Samples per second.
            load_memory_s: Time after which the variance of the load has grown by e; infinite for no forgetting.
            friction_memory_s: The same for the friction.
        """
        super().__init__([f"joint {name}" for name in model.joint_names])
        n = model.dof
        self.model = model
        self.rate_hz = as_number("rate_hz", rate_hz, above=0.0)
        self._scale = 1.0 / as_row("noise_std", noise_std, n, same=True, above=0.0)[:, None]
        # factors by which the columns of load and friction shrink per sample
        decay = _decay("load_memory_s", load_memory_s, rate_hz), _decay("friction_memory_s", friction_memory_s, rate_hz)
        self._shrink = np.repeat(decay, (LOAD, 2 * n))
        self._prior = np.concatenate([PRIOR, np.full(2 * n, FRICTION)])
        self._load_rows = kernel(model, "regressor", columns=range(LOAD * (n - 1), LOAD * n)).single
        self._torque = kernel(model, "inverse_dynamics").single
        self._errors: deque[float] = deque(maxlen=min(max(1, int(WINDOW_S * rate_hz + 0.5)), MOST_WINDOW))
        self.jumps = 0
        self._triangle = RowTriangle(LOAD + 2 * n + 1)
        # the prior as k equations: x / prior = 0
        self._triangle.update(np.diag(np.append(1.0 / self._prior, 0.0)))

    @property
    def triangle(self) -> Floats:
        """(k + 1, k + 1) triangle of all weighted equations so far, the torques in the last column."""
        return self._triangle.R

    def update(
        self, q: ArrayLike, dq: ArrayLike, ddq: ArrayLike, tau: ArrayLike, *, valid: ArrayLike | None = None
    ) -> None:
        """Add one sample, arrays (n,), or several, arrays (m, n), the latest last.

        Args:
            q: Joint positions [rad or m].
            dq: Joint velocities.
            ddq: Joint accelerations.
            tau: Measured torques [N m or N].
            valid: Whether each torque counts; all by default.

        Raises:
            ArgumentError: The arrays do not fit the robot.
            DataError: A number that counts is NaN or infinite; the sample and the joint are named, nothing changes.
        """
        new = self._take({"q": q, "dq": dq, "ddq": ddq, "tau": tau}, valid)
        for k in range(len(new.tau)):
            self._add(ArrivingSamples(new.motion[:, k], new.tau[k], new.valid[k]))

    def _add(self, new: ArrivingSamples) -> None:
        """Take one sample: motion (3, n), torques and whether they count (n,)."""
        dq = new.motion[1]
        joints = np.arange(self.model.dof)
        viscous = LOAD + 2 * joints  # column of each joint's viscous friction; dry friction is next to it
        rows = np.zeros((joints.size, self._prior.size + 1))  # one equation per joint: parameters, then torque
        rows[:, :LOAD] = self._load_rows(*new.motion)
        rows[joints, viscous] = dq
        rows[joints, viscous + 1] = np.sign(dq)
        rows[:, -1] = new.tau - self._torque(*new.motion)
        rows *= self._scale
        rows = rows[new.valid]
        if len(rows):
            self._watch(rows)
        if np.any(self._shrink < 1.0):
            self._triangle.forget(self._shrink)
        self._triangle.update(rows)

    def _watch(self, rows: Floats) -> None:
        """Compare weighted rows (m, k + 1) with their prediction; forget the load if a whole window is improbable."""
        values, inverse = self._solve()
        # (m,) expected square of the prediction error: noise, one after weighting, and uncertainty of the estimate
        spread = 1.0 + np.square(rows[:, :-1] @ inverse).sum(axis=1)
        self._errors.append(float(np.mean(np.square(rows[:, -1] - rows[:, :-1] @ values) / spread)))
        if len(self._errors) < (self._errors.maxlen or 1) or sum(self._errors) < JUMP * len(self._errors):
            return
        # a column's norm is at least one over the parameter's standard deviation: shrunk to one over that of the prior
        sizes = np.linalg.norm(self.triangle[:, :-1], axis=0)
        shrink = np.minimum(1.0, 1.0 / (self._prior * sizes))
        shrink[LOAD:] = 1.0
        self._triangle.forget(shrink)
        self._errors.clear()
        self.jumps += 1

    def _solve(self) -> tuple[Floats, Floats]:
        """Compute the estimate (k,), and the inverse (k, k) of the triangle: a root of the estimate's covariance."""
        R = self.triangle
        inverse = solve_upper(R[:-1, :-1], np.eye(self._prior.size))
        return inverse @ R[:-1, -1], inverse

    def estimate(self) -> TrackedLoad:
        """Estimate from the samples so far; directions that no motion shows keep the deviations of the prior."""
        values, inverse = self._solve()
        stderr = np.linalg.norm(inverse, axis=1)
        return TrackedLoad(values[:LOAD], stderr[:LOAD], values[LOAD:].reshape(-1, 2), stderr[LOAD:].reshape(-1, 2))


def _decay(name: str, memory_s: float, rate_hz: float) -> float:
    """Compute the factor by which a column of the triangle shrinks from sample to sample; one for no forgetting."""
    return 1.0 if memory_s == np.inf else float(np.exp(-0.5 / (as_number(name, memory_s, above=0.0) * rate_hz)))
