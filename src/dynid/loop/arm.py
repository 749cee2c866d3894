"""The robot's equations of motion and the control law as tapes, recorded for the compiled simulation.

The robot's parameters are inputs of the tapes, so that one program serves all parameter values.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import numpy as np

from dynid.dynamics.inertia_matrix import composite_inertia_matrix
from dynid.dynamics.inverse_dynamics import rigid_body_torque, term_torque
from dynid.dynamics.regressor import torque_regressor
from dynid.dynamics.symmetric_solve import solve_symmetric
from dynid.loop.laws import ControlLaw, Tracked
from dynid.loop.smooth_friction import smooth_signs
from dynid.robot.model import Robot
from dynid.tape import Tape, record


class Arm:
    """A robot, the choice of its parameters that are inputs, and the smoothing of its dry friction.

    Parameters that are not inputs are zero: with the columns of the base parameters as inputs the motion is the same as
    with all parameters, and the programs are much shorter.
    """

    def __init__(
        self, robot: Robot, columns: tuple[int, ...] | None, friction_speed: float | tuple[float, ...]
    ) -> None:
        """Store the choice.

        Args:
            robot: The robot.
            columns: Indices of the parameters that are inputs; all by default.
            friction_speed: See `dynid.loop.smooth_friction.smooth_signs` [rad/s or m/s].
        """
        self.robot, self.friction_speed = robot, friction_speed
        self.columns = tuple(range(robot.parameter_vector.size)) if columns is None else tuple(columns)
        self._fields = (robot.fingerprint, self.columns, friction_speed)

    def __hash__(self) -> int:
        return hash(self._fields)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Arm) and self._fields == other._fields

    def standard(self, parameters: Any) -> Any:
        """(p,) all standard parameters, from those that are inputs."""
        theta = np.full(self.robot.parameter_vector.size, 0.0, dtype=object)
        theta[list(self.columns)] = parameters
        return theta

    def rate(self) -> Tape:
        """``(state, held, parameters) -> rate``; the state (2 n + 1,) is positions, velocities and the work done."""
        return _rate(self)

    def motion_columns(self) -> Tape:
        """``(q, dq, ddq) -> (n, b)``: torque per unit of each input parameter, with smoothed friction."""
        return _columns(self)


@lru_cache(maxsize=32)
def _rate(arm: Arm) -> Tape:
    robot, n = arm.robot, arm.robot.dof

    def rate(state: Any, held: Any, parameters: Any) -> Any:
        theta, q, dq, rest = arm.standard(parameters), state[:n], state[n : 2 * n], np.zeros(n)
        acting = held - term_torque(robot, theta, q, dq, rest)
        bias = rigid_body_torque(robot, theta, q, dq, rest)
        ddq = solve_symmetric(composite_inertia_matrix(robot, theta, q), acting - bias)
        return np.concatenate([dq, ddq, np.array([acting @ dq])])

    tape = record(rate, state=(2 * n + 1,), held=(n,), parameters=(len(arm.columns),))
    return smooth_signs(tape, arm.friction_speed)


@lru_cache(maxsize=32)
def _columns(arm: Arm) -> Tape:
    shapes = {name: (arm.robot.dof,) for name in ("q", "dq", "ddq")}
    tape = record(lambda **states: torque_regressor(arm.robot, *states.values()), **shapes)
    return smooth_signs(tape.select({"output": np.s_[:, list(arm.columns)]}), arm.friction_speed)


def control_tape(law: ControlLaw, dof: int, period: float, *, noisy: bool = False) -> Tape:
    """``(state, memory, sample) -> {held, memory}`` of a law.

    A sample (3 n,) is the commanded position, velocity and acceleration; a noisy one (5 n,) ends with the noise that is
    added to the measured position and to the torque within the loop.
    """

    def control(state: Any, memory: Any, sample: Any) -> dict[str, Any]:
        wanted = [sample[k : k + dof] for k in range(0, sample.size, dof)]
        q = state[:dof] + wanted[3] if noisy else state[:dof]
        torque, later = law.torque(Tracked(q, state[dof : 2 * dof], *wanted[:3]), memory, period)
        return {"held": torque + wanted[4] if noisy else torque, "memory": later}

    sample = (5 * dof if noisy else 3 * dof,)
    return record(control, state=(2 * dof + 1,), memory=(law.memory_size(dof),), sample=sample)
