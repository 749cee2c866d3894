"""Minimal linear combinations of the inertia parameters: the constants that determine a serial robot's torques.

Every link is taken together with all that it carries. The first moment and the tensor of this composite body are sums
of a constant and a varying part, [Lin1995] eqs. (8) and (9); the constant parts and the mass are ``k, U, m^``. Theorem
2 says which of them act: the set S. Frames are modified DH frames. The scan of the paper is damaged; the recursion
below is derived again and checked against the rank of the regressor.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from dynid.arrays import Floats
from dynid.dynamics.chain import Chain, is_along_z
from dynid.dynamics.inertia_maps import transport
from dynid.spatial import Array


class Member(NamedTuple):
    """A member of the set S."""

    symbol: str
    """``U11-U22 U33 U12 U13 U23`` [kg m^2], ``KX KY KZ K1 K2`` [kg m], ``MC`` [kg].

    K1 and K2 are kappa of eqs. (86), (87)."""
    joint: int
    """Joint number, from 0."""

    @property
    def name(self) -> str:
        """``KY2``, ``U33_1``: the number of the joint, from 1, follows the symbol."""
        return f"{self.symbol}{'_' * self.symbol[-1].isdigit()}{self.joint + 1}"

    @property
    def unit(self) -> str:
        """SI unit."""
        return {"U": "kg m^2", "K": "kg m", "M": "kg"}[self.symbol[0]]


def composite_constants(chain: Chain) -> list[Array]:
    """The constant parts of every composite body, of the links from j on: [Lin1995] eqs. (10), (12), (14).

    Each (10, 10 n) ``U11 U12 U13 U22 U23 U33 kx ky kz m^`` in frame j, as a map of the link parameters.
    """
    count = len(chain.rows)
    bodies: list[Array] = list(np.eye(10 * count).reshape(count, 10, -1))
    for j in reversed(range(count - 1)):
        row, carried = chain.rows[j + 1], bodies[j + 1]
        place = row.T_previous_joint[:3, 3]  # s of [Lin1995] eq. (4)
        if row.sigma:  # the slide leaves everything but the lever along its own axis
            place = np.array([row.d, 0.0, 0.0])
        else:  # only what is symmetric about joint j + 1 is constant in frame j
            carried = np.zeros_like(carried)
            carried[[0, 3, 5, 8, 9]] = bodies[j + 1][[3, 3, 5, 8, 9]]
        bodies[j] = bodies[j] + transport(row.T_previous_joint[:3, :3], place) @ carried
    return bodies


def minimal_set(chain: Chain) -> dict[Member, Floats]:
    """The set S of [Lin1995] theorem 2, from the base outwards: member -> row (10 n,) of link parameters."""
    found: dict[Member, Floats] = {}
    for j, body in enumerate(composite_constants(chain)):
        found |= {Member(symbol, j): row for symbol, row in _acting(chain, j, body).items()}
    return found


def _acting(chain: Chain, j: int, body: Array) -> dict[str, Array]:
    """The constants of composite body j that act: [Lin1995] theorem 2, items 1) to 5)."""
    U11, U12, U13, U22, U23, U33, *k, mass = body
    first = {"KX": k[0], "KY": k[1]}
    if not chain.rows[j].sigma:
        if j < chain.s:  # 1)
            return {"U33": U33, **(first if chain.first_moments_act[j] else {})}
        products = {"U11-U22": U11 - U22, "U33": U33, "U12": U12, "U13": U13, "U23": U23}
        point = chain.meeting_points[j]
        if point is not None:  # not in the paper: without gravity and about a fixed point, k acts as products do
            return products | {"U13": U13 + point * k[0], "U23": U23 + point * k[1]}
        return products | first  # 2)
    if j > chain.s:
        return {"MC": mass, **first, "KZ": k[2]}  # 3), 4)
    u = chain.axis_of_r[j]
    if j <= chain.r or is_along_z(u):
        return {"MC": mass}
    # 5) with the axis of r in frame j; [Lin1995] eqs. (86), (87)
    return {"MC": mass, "K1": -u[1] * k[0] + u[0] * k[1], "K2": k[2] - u[2] * (u @ body[6:9])}


def members_of(chain: Chain, values: Any) -> list[dict[str, Any]]:
    """Values of the set S, in the order of `minimal_set`, as one table per joint: symbol -> value."""
    tables: list[dict[str, Any]] = [{} for _ in chain.rows]
    for member, value in zip(minimal_set(chain), values, strict=True):
        tables[member.joint][member.symbol] = value
    return tables
