"""Controllers that use a model of the robot."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from dynid.arrays import Floats
from dynid.checks import as_number, as_row
from dynid.dynamics.inverse_dynamics import rigid_body_torque, term_torque
from dynid.errors import ArgumentError
from dynid.excitation.trajectories.trajectory import Trajectory
from dynid.kernels import kernel
from dynid.lazy import cached_property
from dynid.robot.model import Robot
from dynid.tape import compile_single, record

BLOCK = 256
"""Control periods of a trajectory that are evaluated at once; a convention, many at once are much cheaper."""


class _Follower:
    """A controller that follows a trajectory with a model."""

    def __init__(self, model: Robot, trajectory: Trajectory) -> None:
        joints = len(trajectory.evaluate(0.0)[0])
        if joints != model.dof:
            raise ArgumentError(
                f"the trajectory has {joints} joints, but the model has {model.dof}",
                remedy="Pass a trajectory for the joints of this model.",
            )
        self.model, self.trajectory = model, trajectory
        self._block: dict[float, tuple[Floats, Floats, Floats]] = {}
        self._last = 0.0

    def reference(self, time: float) -> tuple[Floats, Floats, Floats]:
        """Reference positions, velocities and accelerations (n,) at a time [s]; at rest after the end of the motion."""
        if time not in self._block:  # calls come at a fixed rate: evaluate the next ones at once
            step = time - self._last if 0.0 < time - self._last < 0.1 else 1e-3
            ticks = round(time / step) + np.arange(1, BLOCK)
            self._block = dict(self._evaluate(np.concatenate([[time], ticks * step, ticks / round(1.0 / step)])))
        self._last = time
        return self._block[time]

    def _evaluate(self, times: Floats) -> Iterator[tuple[float, tuple[Floats, Floats, Floats]]]:
        q, dq, ddq = self.trajectory.evaluate(np.minimum(times, self.trajectory.duration))
        over = times > self.trajectory.duration
        dq[over], ddq[over] = 0.0, 0.0
        return zip(times.tolist(), zip(q, dq, ddq, strict=True), strict=True)

    @cached_property
    def _feed_forward(self) -> Any:
        return compile_single(kernel(self.model, "inverse_dynamics").tape)

    @cached_property
    def _gravity(self) -> Any:
        return compile_single(kernel(self.model, "gravity_torque").tape)


class GravityCompensation:
    """Balances gravity and damps the motion, so that the arm can be moved by hand."""

    def __init__(self, model: Robot, damping: ArrayLike = 0.0) -> None:
        """Use a model and a damping (n,) [N m s/rad or N s/m]."""
        self._gravity = compile_single(kernel(model, "gravity_torque").tape)
        self._damping = as_row("damping", damping, model.dof, same=True, least=0.0)

    def torque(self, time: float, q: Floats, dq: Floats) -> Floats:
        """Compute torques (n,) [N m or N]."""
        return np.asarray(self._gravity(q) - self._damping * dq)


class ComputedTorque(_Follower):
    """``M(q) (ddq_r + kd de + kp e) + velocity(q, dq) + gravity(q) + friction(dq_r)``: linear and decoupled errors."""

    def __init__(
        self,
        model: Robot,
        trajectory: Trajectory,
        *,
        kp: float = 400.0,
        kd: float = 40.0,
        velocity_age_s: float = 0.0,
    ) -> None:
        """Follow a trajectory.

        Args:
            model: The controller's model of the robot.
            trajectory: The reference motion.
            kp: Gain of the position error [1/s^2], equal for all joints.
            kd: Gain of the velocity error [1/s].
            velocity_age_s: Age of the measured velocities [s]: half a control period if they are differences of
                positions. The reference acceleration extrapolates them to the present.
        """
        super().__init__(model, trajectory)
        self.kp, self.kd = as_number("kp", kp, least=0.0), as_number("kd", kd, least=0.0)
        self.velocity_age_s = as_number("velocity_age_s", velocity_age_s, least=0.0)

    @cached_property
    def _law(self) -> Any:
        model, theta, shape = self.model, self.model.parameter_vector, (self.model.dof,)

        def law(q: Any, dq: Any, dq_reference: Any, ddq: Any) -> Any:
            # dry friction follows the reference velocity, because encoder noise changes the sign of the measured one
            return rigid_body_torque(model, theta, q, dq, ddq) + term_torque(model, theta, q, dq_reference, ddq)

        return compile_single(record(law, q=shape, dq=shape, dq_reference=shape, ddq=shape))

    def torque(self, time: float, q: Floats, dq: Floats) -> Floats:
        """Compute torques (n,) [N m or N]."""
        q_reference, dq_reference, ddq = self.reference(time)
        dq = dq + self.velocity_age_s * ddq
        corrected = ddq + self.kd * (dq_reference - dq) + self.kp * (q_reference - q)
        return np.asarray(self._law(q, np.ascontiguousarray(dq), dq_reference, corrected))


class FeedForward(_Follower):
    """The model's torque along the trajectory plus a PD controller for the remaining error."""

    def __init__(self, model: Robot, trajectory: Trajectory, *, kp: ArrayLike, kd: ArrayLike) -> None:
        """Use gains (n,): ``kp`` [N m/rad or N/m], ``kd`` [N m s/rad or N s/m]."""
        super().__init__(model, trajectory)
        n = model.dof
        self.kp, self.kd = as_row("kp", kp, n, same=True, least=0.0), as_row("kd", kd, n, same=True, least=0.0)

    def torque(self, time: float, q: Floats, dq: Floats) -> Floats:
        """Compute torques (n,) [N m or N]."""
        q_reference, dq_reference, ddq = self.reference(time)
        feed_forward = self._feed_forward(q_reference, dq_reference, ddq)
        return np.asarray(feed_forward + self.kd * (dq_reference - dq) + self.kp * (q_reference - q))


class OpenLoopTorque(_Follower):
    """The model's torque along the trajectory and nothing else ([Izaguirre1992] section 7.2).

    With on-line gravity compensation, the gravity torque is computed at the measured positions: "an elementary form of
    feedback".
    """

    def __init__(self, model: Robot, trajectory: Trajectory, *, online_gravity: bool = False) -> None:
        """Drive a robot by a model, with or without on-line gravity compensation."""
        super().__init__(model, trajectory)
        self.online_gravity = online_gravity

    def torque(self, time: float, q: Floats, dq: Floats) -> Floats:
        """Compute torques (n,) [N m or N]."""
        q_reference, dq_reference, ddq = self.reference(time)
        torque = self._feed_forward(q_reference, dq_reference, ddq)
        return np.asarray(torque + self._gravity(q) - self._gravity(q_reference) if self.online_gravity else torque)
