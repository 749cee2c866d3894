"""How many integration steps a control period needs: many only where dry friction turns round.

Near rest the smoothed friction of `dynid.closed_loop.friction` is a stiff damper,

    d(d v / dt) / d v = -r,    r = 15 / (8 v0) g' M^-1 D,    v = g' dq,

with D the torque that changes sign with v, so that a period T takes 1 + T r / 1.2 steps (an explicit one is stable up
to h r = 2.78). Elsewhere friction is constant, and one step serves. Which it is, is known at the start of a period: the
speed v and its rate say whether v comes near rest.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dynid.closed_loop.friction import STEEPEST
from dynid.closed_loop.loop import Loop
from dynid.dynamics.inverse_dynamics import joint_model_torque
from dynid.kernels import inertia_matrix
from dynid.robot.model import Robot
from dynid.tape import Tape, record
from dynid.tape.operations import Operation
from dynid.tape.recorder import evaluate

__all__ = ["FrictionPace"]

Floats = NDArray[np.float64]
FOLLOWED = 1.2
"""Step times rate that the fourth-order method follows as well as the motion at large; beyond 2.78 it is unstable."""
NEAR = 1.1
"""Speeds up to this many times v0 count as near rest."""
POSES = 16
"""Poses of the reference at which rates are computed."""


@dataclass(frozen=True, slots=True, eq=False)
class FrictionPace:
    """What dry friction asks of an integrator, by the robot's own parameters."""

    most: int
    """Steps of a period in which all joints rest"""
    tape: Tape | None
    """``(state, rate) -> steps`` (1,) that a period needs; None where one does at any time"""

    @classmethod
    def of(cls, robot: Robot, loop: Loop) -> FrictionPace:
        """The pace of a robot in its loop."""
        rows = np.linspace(0, len(loop.reference.q) - 1, POSES).astype(int)
        M = inertia_matrix(robot, loop.reference.q[rows])
        if np.linalg.eigvalsh(M)[:, 0].min() <= 0.0:  # no possible robot
            return cls(1, None)
        directions, torques = _signs(robot)
        stiff = loop.period_s * STEEPEST / (loop.friction_speed * FOLLOWED)
        moved = np.linalg.solve(M, np.broadcast_to(torques.T, (POSES, *torques.T.shape)))  # (m, n, k)
        most = float(np.abs(np.linalg.eigvals(moved @ directions)).max(initial=0.0)) * stiff
        if most <= 1.0:
            return cls(1, None)
        return cls(
            1 + int(np.ceil(most)), _tape(loop, directions, np.einsum("ki,mik->mk", directions, moved).max(0) * stiff)
        )


def _tape(loop: Loop, directions: Floats, steps: Floats) -> Tape:
    n, period = loop.dof, loop.period_s

    def pace(state: Any, rate: Any) -> Any:
        most: Any = 0.0
        for count, direction in zip(steps, directions, strict=True):
            speed, change = direction @ state[n : 2 * n], direction @ rate[n : 2 * n] * (0.5 * period)
            away = np.abs(speed + change) - np.abs(change) - NEAR * loop.friction_speed  # of the period's speeds
            wanted = float(1.0 + count) * (0.5 - 0.5 * np.sign(away))
            most = 0.5 * (most + wanted + np.abs(most - wanted))  # the larger one
        return np.array([most])

    return record(pace, state=(2 * n + 1,), rate=(2 * n + 1,))


def _signs(robot: Robot) -> tuple[Floats, Floats]:
    """Directions (k, n) of the speeds whose signs the joint models use; torques (k, n) that change sign with them."""
    n, theta, rest = robot.dof, robot.parameter_vector, np.zeros(robot.dof)
    tape = record(lambda dq: joint_model_torque(robot, theta, rest, dq, rest), dq=(n,))
    count = int(np.count_nonzero(tape.opcodes == Operation.SIGN))
    # all cases at once: unit velocities without signs, then at rest each sign, positive and negative
    velocities = np.concatenate([np.eye(n), np.zeros((2 * count, n))])
    signs = np.concatenate([np.zeros((n, count)), np.eye(count), -np.eye(count)])
    values: list[Any] = list(velocities.T)
    speeds: list[Any] = []

    def value(operand: int) -> Any:
        return values[operand] if operand >= 0 else np.full(len(signs), tape.constants[~operand])

    for _, code, left, right in tape.steps():
        if code == Operation.SIGN:
            values.append(signs[:, len(speeds)])
            speeds.append(value(left)[:n])
        else:
            values.append(evaluate(code, value(left), value(right)))
    torques = np.stack([value(element) for element in tape.outputs[0].elements.tolist()], axis=1)
    changes = 0.5 * (torques[n : n + count] - torques[n + count :])
    return np.array(speeds).reshape(count, n), changes
