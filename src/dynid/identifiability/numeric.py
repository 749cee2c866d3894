"""The row space of the torque regressor, from its values at random states ([Izaguirre1992] section 6.1).

This is method "numeric" of `base_parameters`: the regressor Y (n, p) of ``tau = Y(q, dq, ddq) theta`` is evaluated at
random states and stacked; its row space holds the combinations of parameters that act on the torques. It works for
every tree robot and every term of friction, motors or springs. Gautier (1990) uses the same idea with QR.

All methods use the other two functions: `explains_torques` checks a row space against one random state, and
`keep_order` says which columns of the regressor to prefer as base parameters.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

import numpy as np

from dynid.array_types import Floats
from dynid.compiled import record_quantity
from dynid.dynamics.regressor import torque_regressor
from dynid.identifiability.layout import MX, MY, MZ, XX, YY, ZZ, M
from dynid.identifiability.row_space import RowSpace, row_space
from dynid.robot.model import Robot
from dynid.robot.parts import SMALLEST_LINK_M
from dynid.spatial import EXACT, SIX_DIGITS, TINY
from dynid.tape import compile_tape
from dynid.terms.base import Dependence, ScaledTerm

LARGEST_RATE = 3.0
"""Largest velocity and acceleration in random states [SI units] (convention: torques of motion and of gravity are then
of similar size)."""
SLOW_RATIO = 2.0
"""Largest velocity of slow random states, in units of a term's velocity scale (convention: tanh(2) = 0.96)."""
SPARE_STATES = 20
"""Number of random states in addition to half the number of parameters; each gives one equation per joint
(convention)."""


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
    """Draw states that excite all parameters: revolute joints anywhere, prismatic ones within a link's length of zero.

    Args:
        robot: The robot.
        count: Number of states N.
        unmoved: Index of a joint -> position at which it stays.
        static: Whether all velocities and accelerations are zero.
        seed: Seed of the random numbers.
    """
    random = np.random.default_rng(seed)
    size = max([float(np.abs(body.p_parent_joint).max()) for body in robot.bodies] + [SMALLEST_LINK_M])
    stroke = np.array([size if body.is_prismatic else np.pi for body in robot.bodies])
    q = random.uniform(-1.0, 1.0, (count, robot.dof)) * stroke
    dq, ddq = (random.uniform(-LARGEST_RATE, LARGEST_RATE, (count, robot.dof)) for _ in range(2))
    for joint, position in (unmoved or {}).items():
        q[:, joint] = position
        dq[:, joint] = ddq[:, joint] = 0.0
    if static:
        dq[:] = ddq[:] = 0.0
    return States(q, slow_down(robot, dq, random), ddq)


def slow_down(robot: Robot, dq: Floats, random: np.random.Generator) -> Floats:
    """Reduce the velocities of every second state to those at which the robot's smooth friction terms change.

    Such a term, like ``tanh(dq / scale)``, equals the sign of the velocity far above its scale; only slow states tell
    it from dry friction. Joints without scaled terms keep their velocities.

    Args:
        robot: The robot.
        dq: (N, n) velocities up to `LARGEST_RATE` [rad/s or m/s].
        random: Chooses one of the scales where a joint has several.

    Returns:
        (N, n) velocities.
    """
    scales: dict[int, list[float]] = {}
    for placed in robot.terms:
        if isinstance(placed.term, ScaledTerm):
            for joint in placed.joints:
                scales.setdefault(joint, []).append(placed.term.scale)
    slowed = dq.copy()
    for joint, scales_of_joint in scales.items():
        speeds = slowed[1::2, joint]  # a view: the next line changes `slowed`
        # from at most LARGEST_RATE to at most SLOW_RATIO * scale, but never faster
        speeds *= np.minimum(SLOW_RATIO * random.choice(scales_of_joint, speeds.size) / LARGEST_RATE, 1.0)
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
    """The combinations of parameters on which the torques of the moving joints depend.

    Args:
        robot: The robot.
        unmoved: Index of a joint -> position at which it stays; its torque is not measured.
        static: Whether the robot only stands still.
    """
    count = robot.parameter_vector.size // 2 + SPARE_STATES
    states = random_states(robot, count, unmoved=unmoved, static=static)
    free = [j for j in range(robot.dof) if j not in (unmoved or {})]
    Y = sample_regressor(robot, states)[:, free, :]  # [Izaguirre1992] eqs. (25), (26)
    return row_space(Y.reshape(-1, Y.shape[2]))


def explains_torques(robot: Robot, space: RowSpace) -> bool:
    """Whether a row space contains the rows of the regressor at a random state, within the rounding of robot files."""
    state = random_states(robot, 1)
    Y = torque_regressor(robot, state.q[0], state.dq[0], state.ddq[0])  # quicker than compiling for one state
    length = np.linalg.norm(Y, axis=0)
    acts = length > EXACT * float(length.max(initial=0.0))
    scale = np.where(acts, length, 1.0)  # columns of equal length, so that units do not matter
    scaled = np.where(acts, Y / scale, 0.0)
    rows = space.rows / scale
    rows = rows / np.maximum(np.linalg.norm(rows, axis=1, keepdims=True), TINY)
    Q = np.linalg.qr(rows.T)[0]  # (p, b) orthonormal basis of the space
    rest = np.linalg.norm(scaled - scaled @ Q @ Q.T)  # what lies outside the space
    return bool(rest <= SIX_DIGITS * max(1.0, float(np.linalg.norm(scaled))))


def keep_order(robot: Robot) -> list[int]:
    """All columns of the regressor, those first that are preferred as base parameters.

    In this order the combinations come out as in [GautierKhalil1990] eqs. (15), (16). Of a link that turns about z,
    ``YY MZ M`` can be moved to the link before and come late; its other parameters come early, ZZ first. Of a link that
    slides, mass and first moments come early and the inertia tensor late. Last come the rotor inertias of single
    joints.
    """
    groups: list[list[int]] = [[] for _ in range(6)]  # the four of `_link_groups`, other terms, rotor inertias
    for j, body in enumerate(robot.bodies):
        for group, positions in _link_groups(body.is_prismatic, int(np.argmax(np.abs(body.axis)))).items():
            groups[group].extend(10 * j + k for k in positions)
    for column, placed in enumerate(robot.terms, start=10 * robot.dof):
        is_rotor = placed.term.dependence is Dependence.ACCELERATION and len(placed.joints) == 1
        groups[5 if is_rotor else 4].append(column)
    return [column for group in groups for column in group]


def _link_groups(is_prismatic: bool, along: int) -> dict[int, list[int]]:
    """Number of a group -> positions among the ten parameters of a link.

    Groups: preferred parameters of turning (0) and of sliding links (1), others of turning (2) and of sliding links
    (3).

    Args:
        is_prismatic: Whether the link slides.
        along: The coordinate axis nearest to the joint axis: 0 for x, 1 for y, 2 for z.
    """
    if is_prismatic:
        return {1: [M, MX, MY, MZ], 3: list(range(MX))}  # the tensor
    moments = (XX, YY, ZZ)
    across = max(k for k in range(3) if k != along)
    unwanted = [moments[across], MX + along, M]
    wanted = [moments[along]] + [k for k in range(M) if k not in unwanted and k != moments[along]]
    return {0: wanted, 2: unwanted}
