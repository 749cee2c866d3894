"""How many integration steps a control period needs: many only where a joint with dry friction reverses.

Near rest smoothed dry friction (`dynid.terms.smoothing`) is a stiff damper,

    d(d v / dt) / d v = -r,    r = 15 / (8 v0) g' M^-1 D,    v = g' dq,

with D the torque that changes sign with v, so that a period T takes 1 + T r / 1.2 steps (the explicit fourth-order
method is stable up to h r = 2.78). Elsewhere friction is constant, and one step is enough. The speed v and its rate at
the start of a period tell whether v comes near rest within the period.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dynid.arrays import Floats
from dynid.control_loop.loop import Loop
from dynid.decompositions import eigenvalues, eigvalsh
from dynid.dynamics.inverse_dynamics import term_torque
from dynid.kernels import inertia_matrix
from dynid.robot.model import Robot
from dynid.tape import Tape, record
from dynid.tape.operations import Operation
from dynid.tape.record import replay
from dynid.terms.smoothing import STEEPEST

FOLLOWED = 1.2
"""Largest product of step and friction rate r.

Experiment: at this value the fourth-order method follows friction as accurately as the rest of the motion (simulated
TX40, docs/evidence.md); beyond 2.78 it is unstable.
"""
NEAR = 1.1
"""Speeds up to this many times v0 count as near rest: a reserve for the change of rate within a period. Convention."""
POSES = 16
"""Number of positions of the reference at which rates are computed. Convention."""
STEPS = 12
"""Steps per period near rest that friction may need if the loop does not state its `friction_speed`. Convention."""
SPEEDS = (0.002, 0.1)
"""Range of the speeds v0 that are chosen if the loop does not state them [rad/s or m/s]. Convention."""


def choose_friction_speed(loop: Loop, robot: Robot) -> Loop:
    """The loop with a `friction_speed` v0 for every joint: its own, or the smallest power of two that few steps follow.

    Args:
        loop: The loop; returned unchanged if it states its `friction_speed`.
        robot: The robot with friction about as large as the true one.
    """
    loop.check_joints(robot)
    if loop.friction_speed is not None:
        return loop
    directions, moved = _stiffness(robot, loop)
    needed = np.zeros(loop.dof + 1)
    np.maximum.at(needed, _places(directions), loop.period_s / (FOLLOWED * STEPS) * _alone(directions, moved))
    speeds = np.clip(2.0 ** np.ceil(np.log2(np.maximum(needed, 1e-9))), *SPEEDS)
    return replace(loop, friction_speed=tuple(speeds.tolist()))


def friction_pace(robot: Robot, loop: Loop) -> tuple[int, Tape]:
    """Steps of a period in which all joints rest, and the tape ``(state, rate) -> steps`` (1,) that a period needs.

    Args:
        robot: The robot, whose own parameters tell its friction.
        loop: The loop, with its `friction_speed` chosen; it may state the number of steps.
    """
    directions, moved = _stiffness(robot, loop)
    near = np.array(loop.friction_speeds)[_places(directions)]
    steps = loop.period_s / FOLLOWED * moved / near
    fastest = float(np.abs(eigenvalues(steps @ directions)).max(initial=0.0))
    if loop.substeps is None and fastest > 1.0:
        return 1 + int(np.ceil(fastest)), _tape(loop, directions, near, steps)
    most = loop.substeps or 1
    size = (2 * loop.dof + 1,)
    return most, record(lambda state, rate: np.array([float(most) + 0.0 * state[0]]), state=size, rate=size)


def _stiffness(robot: Robot, loop: Loop) -> tuple[Floats, Floats]:
    """Directions (k, n) of speeds with dry friction; slopes (m, n, k) of accelerations by them at rest, times v0."""
    rows = np.linspace(0, len(loop.reference.q) - 1, POSES).astype(int)
    M = inertia_matrix(robot, loop.reference.q[rows])
    directions, torques = _signs(robot)
    if eigvalsh(M)[:, 0].min() <= 0.0:  # no possible robot
        return directions[:0], np.zeros((POSES, loop.dof, 0))
    slopes = STEEPEST * np.linalg.solve(M, np.broadcast_to(torques.T, (POSES, *torques.T.shape)))
    return directions, np.asarray(slopes, dtype=np.float64)


def _alone(directions: Floats, slopes: Floats) -> Floats:
    """(k,) rate at which each speed decays by its own friction, at the worst position."""
    return np.asarray(np.einsum("ki,mik->mk", directions, slopes).max(axis=0, initial=0.0))


def _places(directions: Floats) -> NDArray[np.int64]:
    """(k,) index of the joint that each speed belongs to; n for speeds that combine several joints."""
    single = np.count_nonzero(directions, axis=1) == 1
    return np.where(single, np.abs(directions).argmax(axis=1) if directions.size else 0, directions.shape[1])


def _tape(loop: Loop, directions: Floats, near: Floats, steps: Floats) -> Tape:
    n, period, counts = loop.dof, loop.period_s, _alone(directions, steps)

    def pace(state: Any, rate: Any) -> Any:
        most: Any = 0.0
        for count, direction, v0 in zip(counts, directions, near, strict=True):
            speed, change = direction @ state[n : 2 * n], direction @ rate[n : 2 * n] * (0.5 * period)
            away = np.abs(speed + change) - np.abs(change) - NEAR * float(v0)  # of the period's speeds
            wanted = float(1.0 + count) * (0.5 - 0.5 * np.sign(away))
            most = 0.5 * (most + wanted + np.abs(most - wanted))  # the larger one
        return np.array([most])

    return record(pace, state=(2 * n + 1,), rate=(2 * n + 1,))


def _signs(robot: Robot) -> tuple[Floats, Floats]:
    """Directions (k, n) of the speeds whose signs the terms use; torques (k, n) that change sign with them."""
    n, theta, rest = robot.dof, robot.parameter_vector, np.zeros(robot.dof)
    tape = record(lambda dq: term_torque(robot, theta, rest, dq, rest), dq=(n,))
    count = int(np.count_nonzero(tape.opcodes == Operation.SIGN))
    # all cases at once: unit velocities without signs, then at rest each sign, positive and negative
    velocities = np.concatenate([np.eye(n), np.zeros((2 * count, n))])
    signs = np.concatenate([np.zeros((n, count)), np.eye(count), -np.eye(count)])
    speeds: list[Any] = []

    def sign(speed: Any, _: int) -> Any:
        speeds.append(speed[:n])
        return signs[:, len(speeds) - 1]

    value, nothing = replay(tape, velocities.T, sign), np.zeros(len(signs))
    torques = np.stack([value(element) + nothing for element in tape.outputs[0].elements.tolist()], axis=1)
    changes = 0.5 * (torques[n : n + count] - torques[n + count :])
    return np.array(speeds).reshape(count, n), changes
