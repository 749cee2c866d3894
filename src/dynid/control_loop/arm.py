"""The robot's equations of motion and the control law as tapes (recorded programs), for the compiled simulation.

The robot's parameters are inputs of the tapes, so that one program serves all parameter values.

An integrator cannot follow dry friction that jumps at rest. Therefore every ``np.sign`` that a term uses in its column
is replaced on the tape by a smooth step, `dynid.terms.smoothing.polynomial_sign`, which reaches 1 at the speed v0. So
terms need no form of their own for simulation.
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
    """Replace every sign in a program by a smooth step.

    Args:
        tape: The program; with a tuple of speeds its inputs n to 2 n - 1 must be the velocities of the n joints.
        speed: v0 of every sign [rad/s or m/s]; or (n + 1,) v0 for the sign of each joint's velocity, and last that of
            all other signs, such as those of motors that turn several joints.
    """
    if not isinstance(speed, tuple):
        return replace_signs(tape, lambda v, place: polynomial_sign(v, speed))
    n = len(speed) - 1
    return replace_signs(tape, lambda v, place: polynomial_sign(v, speed[place - n if n <= place < 2 * n else n]))


def replace_signs(tape: Tape, sign: Callable[[Any, int], Any]) -> Tape:
    """Replace every ``sign(v)`` in a program by another function.

    Args:
        tape: The program.
        sign: Called with v and the number of v among the values of the tape: its inputs first, then its steps.
    """
    recorder = Recorder()
    inputs = [recorder.input(entry.name, entry.shape) for entry in tape.inputs]
    value = replay(tape, [scalar for array in inputs for scalar in array.ravel().tolist()], sign)
    outputs: dict[str, Any] = {}
    for output in tape.outputs:
        elements = np.empty(output.size, dtype=object)
        elements[:] = [value(e) for e in output.elements.ravel().tolist()]
        outputs[output.name] = elements.reshape(output.shape)
    return recorder.tape(outputs)


class SimulatedArm:
    """A robot for simulation: which of its parameters are inputs, and how its dry friction is smoothed.

    Parameters that are not inputs are zero. With only the columns of the base parameters as inputs the motion is the
    same as with all parameters, and the programs are much shorter. Arms with equal settings are equal, so that tapes
    are recorded only once.
    """

    def __init__(
        self, robot: Robot, columns: tuple[int, ...] | None, friction_speed: float | tuple[float, ...]
    ) -> None:
        """Store the choice.

        Args:
            robot: The robot.
            columns: Indices of the b parameters that are inputs; all if None.
            friction_speed: Speed v0 of smoothed friction, one or (n + 1,), see `smooth_signs` [rad/s or m/s].
        """
        self.robot = robot
        self.friction_speed = friction_speed
        self.columns = tuple(range(robot.parameter_vector.size)) if columns is None else tuple(columns)
        self._fields = (robot.fingerprint, self.columns, friction_speed)

    def __hash__(self) -> int:
        return hash(self._fields)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, SimulatedArm) and self._fields == other._fields

    def standard(self, parameters: Any) -> Any:
        """Fill the input parameters (b,) into all standard parameters (p,)."""
        theta = np.full(self.robot.parameter_vector.size, 0.0, dtype=object)
        theta[list(self.columns)] = parameters
        return theta

    def rate(self) -> Tape:
        """Tape of the equations of motion, ``(state, held, parameters) -> rate``.

        The state (2 n + 1,) is positions, velocities and the work done by drives and friction; ``held`` (n,) is the
        torque that the law set for this control period; the rate (2 n + 1,) is the time derivative of the state.
        """
        return _rate(self)

    def motion_columns(self) -> Tape:
        """Tape of the regressor, ``(q, dq, ddq) -> (n, b)``: torque per unit of each input parameter."""
        return _columns(self)


@lru_cache(maxsize=32)
def _rate(arm: SimulatedArm) -> Tape:
    """Record the tape of `SimulatedArm.rate`."""
    robot = arm.robot
    n = robot.dof

    def rate(state: Any, held: Any, parameters: Any) -> Any:
        theta = arm.standard(parameters)
        q, dq = state[:n], state[n : 2 * n]
        no_acceleration = np.zeros(n)
        acting = held - term_torque(robot, theta, q, dq, no_acceleration)  # drives and friction
        bias = rigid_body_torque(robot, theta, q, dq, no_acceleration)  # gravity and velocity torques
        ddq = solve_symmetric(composite_inertia_matrix(robot, theta, q), acting - bias)
        return np.concatenate([dq, ddq, np.array([acting @ dq])])

    tape = record(rate, state=(2 * n + 1,), held=(n,), parameters=(len(arm.columns),))
    return smooth_signs(tape, arm.friction_speed)


@lru_cache(maxsize=32)
def _columns(arm: SimulatedArm) -> Tape:
    """Record the tape of `SimulatedArm.motion_columns`."""
    shapes = {name: (arm.robot.dof,) for name in ("q", "dq", "ddq")}
    tape = record(lambda **states: torque_regressor(arm.robot, *states.values()), **shapes)
    return smooth_signs(tape.select({"output": np.s_[:, list(arm.columns)]}), arm.friction_speed)


def control_tape(law: ControlLaw, dof: int, period: float) -> Tape:
    """Record the tape of a law, ``(state, memory, sample) -> {held, memory}``.

    Args:
        law: The law.
        dof: Number n of joints.
        period: Control period [s].

    A sample (4 n,) is the commanded position, velocity and acceleration, and the noise that is added to the position
    which the law measures.
    """

    def control(state: Any, memory: Any, sample: Any) -> dict[str, Any]:
        *wanted, noise = (sample[k : k + dof] for k in range(0, 4 * dof, dof))
        tracked = Tracked(state[:dof] + noise, state[dof : 2 * dof], *wanted)
        torque, next_memory = law.torque(tracked, memory, period)
        return {"held": torque, "memory": next_memory}

    return record(control, state=(2 * dof + 1,), memory=(law.memory_size(dof),), sample=(4 * dof,))
