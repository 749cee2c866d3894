"""Inertia matrix in minimal linear combinations, for forward dynamics in Renaud's form ([Lin1995] sections II, III).

`minimal_inertia_and_bias` is the entry, which `dynid.compiled` compiles. Composite body i is link i with all links
beyond it, in the modified DH frame i. Its first moment and its tensor are sums of a constant part, ``k`` and ``U``, and
a varying part, ``l`` and ``V``: [Lin1995] eqs. (8), (9). The varying part of body i follows from members of the set S
alone, eqs. (11), (13), (15). S is Lin's set of base parameters: constants of k and U, or combinations of them, that
change some torque. Constants that are no members cannot change any torque; they are set to zero here. ``sigma`` of a DH
row is 1 for a prismatic joint.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np

from dynid.dynamics.chain import Chain
from dynid.dynamics.inertia_matrix import Composite, add_motor_inertia, move_origin, rotate_composite, turn_composite
from dynid.dynamics.inverse_dynamics import term_torque
from dynid.dynamics.minimal_constants import members_of
from dynid.dynamics.minimal_recursion import (
    find_exact_chain,
    minimal_torque,
    minimal_values,
    own_tensor,
    placement,
)
from dynid.robot.formats.dh import DH
from dynid.robot.model import Robot
from dynid.spatial import Array, cross, snap


class Parts(NamedTuple):
    """A composite body (a link with all links beyond it) in the frame of its joint, in constant and varying parts."""

    mass: Any
    """m^ [kg]; zero where it is no member of the set S."""
    k: Array
    """(3,) constant part of the first moment [kg m]."""
    U: Array
    """(3, 3) constant part of the tensor [kg m^2]."""
    moment: Array
    """(3,) varying part l of the first moment [kg m]."""
    tensor: Array
    """(3, 3) varying part V of the tensor [kg m^2]."""


def minimal_inertia_and_bias(robot: Robot, theta: Array, q: Array, dq: Array) -> dict[str, Array]:
    """Inertia matrix (n, n) and bias torque (n,), the torque at zero acceleration, by minimal linear combinations.

    Raises:
        ArgumentError: The robot is no chain, or its axes are only nearly parallel.
    """
    chain = find_exact_chain(robot)
    zero = np.zeros(robot.dof)
    values = minimal_values(chain, theta)
    bias = minimal_torque(chain, values, q, dq, zero) + term_torque(robot, theta, q, dq, zero)
    links = minimal_inertia_matrix(chain, values, q)
    return {"inertia": add_motor_inertia(robot, theta, links), "bias": bias}


def minimal_inertia_matrix(chain: Chain, values: Array, q: Array) -> Array:
    """Inertia matrix of the links (n, n) from the values (b,) of the set S, in the order of `minimal_set`."""
    count = len(chain.rows)
    M: Array = np.full((count, count), 0.0, dtype=object)
    for j, body in enumerate(composite_parts(chain, values, q)):
        h = body.k + body.moment  # [Lin1995] eq. (8)
        J = body.U + body.tensor  # [Lin1995] eq. (9)
        # wrench that accelerates the composite body by one unit of joint j, along or about z
        if chain.rows[j].sigma:
            force = np.array([0.0, 0.0, body.mass])
            moment = np.array([h[1], -h[0], 0.0])
        else:
            force = np.array([-h[1], h[0], 0.0])
            moment = J[:, 2]
        for i in range(j, -1, -1):
            row = chain.rows[i]
            M[i, j] = M[j, i] = (force if row.sigma else moment)[2]
            # the same wrench in the frame before, about its origin
            twist, turn, along = placement(row, q[i])
            moment = moment + cross(np.array([0.0, 0.0, along]), force)
            force = twist @ (turn @ force)
            moment = twist @ (turn @ moment) + cross(np.array([row.d, 0.0, 0.0]), force)
    return M


def composite_parts(chain: Chain, values: Array, q: Array) -> list[Parts]:
    """Constant and varying parts of every composite body, from the members of the set S (b,)."""
    tables = members_of(chain, values)
    bodies = [_constant_parts(chain, i, table) for i, table in enumerate(tables)]
    for i in reversed(range(len(bodies) - 1)):
        moment, tensor = vary(chain.rows[i + 1], bodies[i + 1], q[i + 1])
        bodies[i] = bodies[i]._replace(moment=moment, tensor=tensor)
    return bodies


def _constant_parts(chain: Chain, i: int, members: Mapping[str, Any]) -> Parts:
    """Make m^, k, U of joint i from its members of the set S; what is no member is zero, and so are l and V.

    A prismatic joint between r, the first revolute joint, and s, the first whose axis is not parallel to that of r, has
    the members K1 and K2, two components of k across the axis of r ([Lin1995] eqs. (86), (87)); k is then the
    vector across that axis that has them.
    """
    get = members.get
    k = np.array([get("KX", 0.0), get("KY", 0.0), get("KZ", 0.0)])
    if "K1" in members:
        u = snap(chain.axis_of_r[i])  # the axis of r in frame i, without rounding errors
        across = np.array([u[1], -u[0], 0.0])  # u x z
        k = ((np.array([0.0, 0.0, 1.0]) - u * u[2]) * members["K2"] - across * members["K1"]) * (
            1.0 / (across @ across)
        )
    return Parts(get("MC", 0.0), k, own_tensor(members), np.zeros(3), np.zeros((3, 3)))


def vary(row: DH, body: Parts, q: Any) -> tuple[Array, Array]:
    """Varying first moment (3,) and tensor (3, 3) that a composite body gives to the link before, in its frame.

    Args:
        row: DH row of the composite body's joint.
        body: The composite body.
        q: Position of its joint [rad or m].
    """
    twist, turn, along = placement(row, q)  # rotations about x and z (3, 3), and the lever along z [m]
    lever = np.array([0.0, 0.0, along])
    if row.sigma:  # [Lin1995] eqs. (11), (15): the whole tensor but U, the whole first moment but k
        _, _, V = move_origin((body.mass, body.k + body.moment, body.tensor), lever)
        carried: Composite = (0.0, body.moment + lever * body.mass, V)
    else:  # [Lin1995] eqs. (11), (13): what is not symmetric about the axis
        U = body.U
        asymmetric = U - np.diag([U[1, 1], U[1, 1], U[2, 2]])
        across = np.array([body.k[0], body.k[1], 0.0])
        carried = move_origin((0.0, body.moment + across, body.tensor + asymmetric), lever)
    carried = rotate_composite(twist, turn_composite(2, turn[0, 0], turn[1, 0], carried))
    _, moment, tensor = move_origin(carried, np.array([row.d, 0.0, 0.0]))
    return moment, tensor
