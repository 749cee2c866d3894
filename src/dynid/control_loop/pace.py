"""Choose the number of integration steps of a control period: many only when a joint with dry friction reverses.

Take a speed ``v = g' dq`` on which dry friction depends: g picks one joint, or combines the joints that a motor turns.
Below a speed v0 smoothed friction (`dynid.terms.smoothing`) is a stiff damper: the rate of v falls with v by

    d(d v / dt) / d v = -r,    r = 15 / (8 v0) g' M^-1 D,

where M is the inertia matrix, D (n,) the torque that changes its sign with v, and 15 / 8 the slope of the smooth step.
An explicit method of order four is stable for steps h up to h r = 2.78; for accuracy a period T takes 1 + T r / 1.2
steps. Above v0 friction is constant, and one step is enough. The speed v and its rate at the start of a period tell
whether v comes below v0 within the period.

`choose_friction_speed` chooses v0 so that few steps suffice; `friction_pace` makes the program that counts the steps.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dynid.array_types import Floats
from dynid.compiled import inertia_matrix
from dynid.control_loop.loop import Loop
from dynid.decompositions import eigenvalues, eigvalsh
from dynid.dynamics.inverse_dynamics import term_torque
from dynid.robot.model import Robot
from dynid.tape import Tape, record
from dynid.tape.operations import Operation
from dynid.tape.record import replay
from dynid.terms.smoothing import STEEPEST

LARGEST_STEP = 1.2
"""Largest product h r of step and friction rate (experiment: with it the fourth-order method follows friction as
accurately as the rest of the motion, simulated TX40, docs/evidence.md; beyond 2.78 it is unstable)."""
REST_FACTOR = 1.1
"""Speeds up to this many times v0 count as below v0 (convention: a reserve for the change of the rate of v within a
period)."""
POSES = 16
"""Number of positions of the reference at which friction rates are computed (convention)."""
STEPS = 12
"""Steps per period below v0 that are allowed if the loop leaves its `friction_speed` open (convention)."""
SPEEDS = (0.002, 0.1)
"""Range of the speeds v0 that are chosen if the loop leaves its `friction_speed` open [rad/s or m/s] (convention)."""


def choose_friction_speed(loop: Loop, robot: Robot) -> Loop:
    """Give a loop a `friction_speed` v0 for every joint, if it has none: the smallest that `STEPS` steps can follow.

    Speeds are rounded up to powers of two, so that similar loops share compiled programs.

    Args:
        loop: The loop; returned unchanged if it states its `friction_speed`.
        robot: The robot with friction about as large as the true one.
    """
    loop.check_joints(robot)
    if loop.friction_speed is not None:
        return loop
    directions, slopes = _stiffness(robot, loop)
    needed = np.zeros(loop.dof + 1)
    own_rates = _own_rates(directions, slopes)
    np.maximum.at(needed, _places(directions), loop.period_s / (LARGEST_STEP * STEPS) * own_rates)
    speeds = np.clip(2.0 ** np.ceil(np.log2(np.maximum(needed, 1e-9))), *SPEEDS)
    return replace(loop, friction_speed=tuple(speeds.tolist()))


def friction_pace(robot: Robot, loop: Loop) -> tuple[int, Tape]:
    """Make the program that computes the number of steps of a period.

    Args:
        robot: The robot; its own parameters give the size of its friction.
        loop: The loop, with its `friction_speed` chosen; it may state the number of steps.

    Returns:
        The largest number of steps, needed when all joints rest, and the tape ``(state, rate) -> steps`` (1,).
    """
    directions, slopes = _stiffness(robot, loop)
    v0 = np.array(loop.friction_speeds)[_places(directions)]
    steps = loop.period_s / LARGEST_STEP * slopes / v0
    largest = float(np.abs(eigenvalues(steps @ directions)).max(initial=0.0))
    if loop.substeps is None and largest > 1.0:
        return 1 + int(np.ceil(largest)), _record_pace(loop, directions, v0, steps)
    count = loop.substeps or 1
    size = (2 * loop.dof + 1,)
    # a tape needs outputs that depend on its inputs
    return count, record(lambda state, rate: np.array([float(count) + 0.0 * state[0]]), state=size, rate=size)


def _stiffness(robot: Robot, loop: Loop) -> tuple[Floats, Floats]:
    """Compute how strongly dry friction damps the speeds on which it depends.

    Returns:
        Directions g (k, n) of the k speeds, and the change (m, n, k) of the n accelerations per change of each speed
        over its v0 at rest, ``15 / 8 M^-1 D``, at m positions of the reference.
    """
    rows = np.linspace(0, len(loop.reference.q) - 1, POSES).astype(int)
    M = inertia_matrix(robot, loop.reference.q[rows])
    directions, torques = _friction_directions(robot)
    if eigvalsh(M)[:, 0].min() <= 0.0:  # an impossible robot: the simulation will run away and say so
        return directions[:0], np.zeros((POSES, loop.dof, 0))
    slopes = STEEPEST * np.linalg.solve(M, np.broadcast_to(torques.T, (POSES, *torques.T.shape)))
    return directions, np.asarray(slopes, dtype=np.float64)


def _own_rates(directions: Floats, slopes: Floats) -> Floats:
    """Compute ``g' slope`` (k,): how each speed is damped by its own friction alone, at the worst position."""
    return np.asarray(np.einsum("ki,mik->mk", directions, slopes).max(axis=0, initial=0.0))


def _places(directions: Floats) -> NDArray[np.int64]:
    """Find the joint index (k,) of each speed; n for speeds that combine several joints."""
    single = np.count_nonzero(directions, axis=1) == 1
    return np.where(single, np.abs(directions).argmax(axis=1) if directions.size else 0, directions.shape[1])


def _record_pace(loop: Loop, directions: Floats, v0: Floats, steps: Floats) -> Tape:
    """Record the tape of `friction_pace`: one step more than the largest number that a speed below its v0 needs.

    Args:
        loop: The loop.
        directions: (k, n) directions of the speeds.
        v0: (k,) speed v0 of each.
        steps: (m, n, k) slopes as steps per period.
    """
    n = loop.dof
    period = loop.period_s
    counts = _own_rates(directions, steps)

    def pace(state: Any, rate: Any) -> Any:
        most: Any = 0.0
        for count, direction, speed_limit in zip(counts, directions, v0, strict=True):
            speed = direction @ state[n : 2 * n]
            half_change = direction @ rate[n : 2 * n] * (0.5 * period)
            # smallest magnitude of the speed within the period, less the limit
            excess = np.abs(speed + half_change) - np.abs(half_change) - REST_FACTOR * float(speed_limit)
            wanted = float(1.0 + count) * (0.5 - 0.5 * np.sign(excess))  # tapes have no `if`
            most = 0.5 * (most + wanted + np.abs(most - wanted))  # the larger one
        return np.array([most])

    return record(pace, state=(2 * n + 1,), rate=(2 * n + 1,))


def _friction_directions(robot: Robot) -> tuple[Floats, Floats]:
    """Find the directions g (k, n) of the speeds whose signs the terms use, and the torques D (k, n) of these signs.

    Both are read from the tape of the terms' torque, with its signs replaced by chosen numbers.
    """
    n = robot.dof
    theta = robot.parameter_vector
    zeros = np.zeros(n)
    tape = record(lambda dq: term_torque(robot, theta, zeros, dq, zeros), dq=(n,))
    count = int(np.count_nonzero(tape.opcodes == Operation.SIGN))
    # all cases at once: unit velocities, which give g; then at rest each sign, positive and negative, which give D
    velocities = np.concatenate([np.eye(n), np.zeros((2 * count, n))])
    signs = np.concatenate([np.zeros((n, count)), np.eye(count), -np.eye(count)])
    speeds: list[Any] = []

    def sign(speed: Any, _: int) -> Any:
        speeds.append(speed[:n])
        return signs[:, len(speeds) - 1]

    value = replay(tape, velocities.T, sign)
    # adding zeros gives constants one number per case too
    torques = np.stack([value(element) + np.zeros(len(signs)) for element in tape.outputs[0].elements.tolist()], axis=1)
    changes = 0.5 * (torques[n : n + count] - torques[n + count :])
    return np.array(speeds).reshape(count, n), changes
