"""Base parameters from sampled regressors: rank-revealing factorisation at random states ([Izaguirre1992] section 6.1).

Works for every robot, tree and term, and for a given motion. [Gautier1990] uses the same idea
with QR.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

import numpy as np

from dynid.arrays import Floats
from dynid.dynamics.regressor import torque_regressor
from dynid.kernels import record_quantity
from dynid.parameters.row_space import RowSpace, row_space
from dynid.robot.model import Robot
from dynid.robot.parts import SMALLEST_LINK_M
from dynid.spatial import EXACT, TINY
from dynid.tape import compile_tape
from dynid.terms.base import Dependence, ScaledTerm

FASTEST = 3.0
"""Largest velocity and acceleration in random states [SI units]: their torques match those of gravity (convention)."""
SLOW = 2.0
"""Largest velocity of slow random states over the scale of a term (convention: tanh(2) = 0.96)."""
SPARE_STATES = 20
"""Random states beyond half the number of parameters; each gives one equation per joint (convention)."""
EXPLAINED = 1e-6
"""Part of a regressor that may lie outside a row space which holds it: axes rounded to six digits (convention)."""


class States(NamedTuple):
    """Positions, velocities and accelerations of all joints at N instants."""

    q: Floats
    """(N, n) [rad or m]"""
    dq: Floats
    """(N, n) [rad/s or m/s]"""
    ddq: Floats
    """(N, n) [rad/s^2 or m/s^2]"""


def random_states(
    robot: Robot, count: int, *, unmoved: Mapping[int, float] | None = None, static: bool = False, seed: int = 0
) -> States:
    """Draw states that excite everything: whole turns, strokes of the robot's own size, velocities that match gravity.

    Args:
        robot: The robot.
        count: Number of states N.
        unmoved: Joint number (from 0) -> position at which it is held.
        static: Whether the robot only stands still.
        seed: Seed of the random numbers.
    """
    random = np.random.default_rng(seed)
    size = max([float(np.abs(body.p_parent_joint).max()) for body in robot.bodies] + [SMALLEST_LINK_M])
    stroke = np.array([size if body.is_prismatic else np.pi for body in robot.bodies])
    moving = np.ones(robot.dof)
    moving[list(unmoved or {})] = 0.0
    q = random.uniform(-1.0, 1.0, (count, robot.dof)) * stroke * moving
    for joint, position in (unmoved or {}).items():
        q[:, joint] = position
    dq, ddq = (random.uniform(-FASTEST, FASTEST, (count, robot.dof)) * moving * (not static) for _ in range(2))
    return States(q, slow_down(robot, dq, random), ddq)


def slow_down(robot: Robot, dq: Floats, random: np.random.Generator) -> Floats:
    """Bring every second state (N, n) to speeds at which the robot's terms differ from one another.

    Far above its scale a smooth sign looks like a sign. Robots without such terms keep their velocities.
    """
    scales: dict[int, list[float]] = {}
    for placed in robot.terms:
        if isinstance(placed.term, ScaledTerm):
            for joint in placed.joints:
                scales.setdefault(joint, []).append(placed.term.scale)
    slowed = dq.copy()
    for joint, of_joint in scales.items():
        speed = slowed[1::2, joint]
        speed *= np.minimum(SLOW * random.choice(of_joint, speed.size) / FASTEST, 1.0)
    return slowed


def sample_regressor(robot: Robot, states: States) -> Floats:
    """Evaluate the torque regressor at every state (N, n, p)."""
    # interpreted, not compiled: it runs once, on few states
    program = compile_tape(record_quantity(robot, "regressor"), backend="numpy")
    return np.asarray(program(*states))


def numeric_row_space(
    robot: Robot,
    *,
    unmoved: Mapping[int, float] | None = None,
    static: bool = False,
) -> RowSpace:
    """The combinations of parameters on which the torques of the free joints depend, from regressors at states.

    Args:
        robot: The robot.
        unmoved: Joint number (from 0) -> position at which it is held; its torque is not measured.
        static: Whether the robot only stands still.
    """
    count = robot.parameter_vector.size // 2 + SPARE_STATES
    states = random_states(robot, count, unmoved=unmoved, static=static)
    free = [j for j in range(robot.dof) if j not in (unmoved or {})]
    Y = sample_regressor(robot, states)[:, free, :]  # [Izaguirre1992] eqs. (25), (26)
    return row_space(Y.reshape(-1, Y.shape[2]))


def explains_torques(robot: Robot, space: RowSpace) -> bool:
    """Whether a row space holds the regressor of a random state, within the rounding of a robot's axes."""
    state = random_states(robot, 1)
    Y = torque_regressor(robot, state.q[0], state.dq[0], state.ddq[0])  # plain: quicker than compiling for one state
    length = np.linalg.norm(Y, axis=0)
    acts = length > EXACT * float(length.max(initial=0.0))
    scale = np.where(acts, length, 1.0)
    scaled = np.where(acts, Y / scale, 0.0)
    rows = space.rows / scale
    rows = rows / np.maximum(np.linalg.norm(rows, axis=1, keepdims=True), TINY)
    Q = np.linalg.qr(rows.T)[0]
    return bool(np.linalg.norm(scaled - scaled @ Q @ Q.T) <= EXPLAINED * max(1.0, float(np.linalg.norm(scaled))))


def keep_order(robot: Robot) -> list[int]:
    """Columns in the order in which to keep them; the groupings are then those of [GautierKhalil1990] eqs. (15), (16).

    Of a link that turns, the second moment and the mass terms across its own axis are kept and ``YY MZ M`` (for an
    axis along z) go to the link before; of a link that slides, mass and first moments are kept and the tensor goes to
    the link before. Of the terms the joints' own rotor inertias are the first to go.
    """
    groups: list[list[int]] = [[] for _ in range(6)]
    for j, body in enumerate(robot.bodies):
        for group, symbols in _roles(body.is_prismatic, int(np.argmax(np.abs(body.axis)))).items():
            groups[group].extend(10 * j + k for k in symbols)
    for column, placed in enumerate(robot.terms, start=10 * robot.dof):
        own_rotor = placed.term.dependence is Dependence.ACCELERATION and len(placed.joints) == 1
        groups[5 if own_rotor else 4].append(column)
    return [column for group in groups for column in group]


_TENSOR = {(0, 0): 0, (0, 1): 1, (0, 2): 2, (1, 1): 3, (1, 2): 4, (2, 2): 5}


def _roles(prismatic: bool, along: int) -> dict[int, list[int]]:
    """Group -> positions among the ten parameters: kept of turning (0) and sliding links (1), dropped (2, 3)."""
    if prismatic:
        return {1: [9, 6, 7, 8], 3: list(range(6))}
    second = max(k for k in range(3) if k != along)
    dropped = [_TENSOR[second, second], 6 + along, 9]
    kept = [_TENSOR[along, along]] + [k for k in range(9) if k not in dropped and k != _TENSOR[along, along]]
    return {0: kept, 2: dropped}
