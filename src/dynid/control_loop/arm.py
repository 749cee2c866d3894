"""The robot's equations of motion and the control law as tapes, recorded for the compiled simulation.

The robot's parameters are inputs of the tapes, so that one program serves all parameter values.

Dry friction must be such that an integrator can follow it: every sign on a tape becomes
`dynid.terms.smoothing.polynomial_sign`. Terms need no simulation form of their own: whatever uses ``np.sign`` in its
column is smoothed here.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from typing import Any

import numpy as np

from dynid.control_loop.laws import ControlLaw, Tracked
from dynid.dynamics.forward_dynamics import solve_symmetric
from dynid.dynamics.inertia_matrix import composite_inertia_matrix
from dynid.dynamics.inverse_dynamics import rigid_body_torque, term_torque
from dynid.dynamics.regressor import torque_regressor
from dynid.robot.model import Robot
from dynid.tape import Tape, record
from dynid.tape.record import Recorder, replay
from dynid.terms.smoothing import polynomial_sign


def smooth_signs(tape: Tape, speed: float | tuple[float, ...]) -> Tape:
    """The same program with every sign replaced by the polynomial.

    Args:
        tape: The program; where speeds differ, its inputs n ... 2 n are the joints' velocities.
        speed: v0 of every sign [rad/s or m/s]; or (n + 1,) v0 for the sign of each joint's velocity, and that of all
            other signs.
    """
    if not isinstance(speed, tuple):
        return replace_signs(tape, lambda v, place: polynomial_sign(v, speed))
    n = len(speed) - 1
    return replace_signs(tape, lambda v, place: polynomial_sign(v, speed[place - n if n <= place < 2 * n else n]))


def replace_signs(tape: Tape, sign: Callable[[Any, int], Any]) -> Tape:
    """The same program with every ``sign(v)`` replaced by a function of v and of its place among inputs and steps."""
    recorder = Recorder()
    inputs = [recorder.input(entry.name, entry.shape) for entry in tape.inputs]
    value = replay(tape, [scalar for array in inputs for scalar in array.ravel().tolist()], sign)
    outputs: dict[str, Any] = {}
    for output in tape.outputs:
        elements = np.empty(output.size, dtype=object)
        elements[:] = [value(e) for e in output.elements.ravel().tolist()]
        outputs[output.name] = elements.reshape(output.shape)
    return recorder.tape(outputs)


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
            friction_speed: See `dynid.control_loop.arm.smooth_signs` [rad/s or m/s].
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


def control_tape(law: ControlLaw, dof: int, period: float) -> Tape:
    """``(state, memory, sample) -> {held, memory}`` of a law.

    A sample (4 n,) is the commanded position, velocity and acceleration, and the noise that is added to the measured
    position within the loop.
    """

    def control(state: Any, memory: Any, sample: Any) -> dict[str, Any]:
        *wanted, noise = (sample[k : k + dof] for k in range(0, 4 * dof, dof))
        torque, later = law.torque(Tracked(state[:dof] + noise, state[dof : 2 * dof], *wanted), memory, period)
        return {"held": torque, "memory": later}

    return record(control, state=(2 * dof + 1,), memory=(law.memory_size(dof),), sample=(4 * dof,))
