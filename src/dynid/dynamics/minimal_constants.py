"""Minimal linear combinations of the inertia parameters: base parameters of a serial robot, after [Lin1995].

Composite body j is link j together with all links beyond it. Its first moment and its tensor, in frame j, are sums of a
part that no joint position changes and a part that varies, [Lin1995] eqs. (8) and (9). The constant parts and the mass
are called ``k`` (3,), ``U`` (3, 3) and ``m^``. Theorem 2 of the paper says which of them act on a torque: they are the
*members* of the set S, which `minimal_set` names and gives as rows over the link parameters.

Frames are modified DH frames, and sigma of a DH row is 1 for a prismatic joint. r is the first revolute joint of the
`Chain`, and s the first revolute joint whose axis is not parallel to that of r. The scan of the paper is damaged, so
the recursion below was derived again and checked against the rank of the regressor.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from dynid.array_types import Floats
from dynid.dynamics.chain import Chain, is_along_z
from dynid.dynamics.inertia_maps import transport
from dynid.spatial import Array


class Member(NamedTuple):
    """A member of the set S."""

    symbol: str
    """Entries of U: ``U11-U22 U33 U12 U13 U23`` [kg m^2]; of k: ``KX KY KZ`` [kg m]; ``MC``, the mass m^ [kg].

    ``K1 K2`` [kg m] are two components of k across the axis of r: kappa of eqs. (86), (87)."""
    joint: int
    """Joint number, from 0."""

    @property
    def name(self) -> str:
        """``KY2``, ``U33_1``: the number of the joint, from 1, follows the symbol, after ``_`` behind a digit."""
        separator = "_" if self.symbol[-1].isdigit() else ""
        return f"{self.symbol}{separator}{self.joint + 1}"

    @property
    def unit(self) -> str:
        """SI unit."""
        return {"U": "kg m^2", "K": "kg m", "M": "kg"}[self.symbol[0]]


def composite_constants(chain: Chain) -> list[Array]:
    """Compute the constant parts of every composite body: [Lin1995] eqs. (10), (12), (14).

    For each joint j a matrix (10, 10 n): times the link parameters of all links it gives
    ``U11 U12 U13 U22 U23 U33 kx ky kz m^`` of composite body j, in frame j.
    """
    count = len(chain.rows)
    bodies: list[Array] = list(np.eye(10 * count).reshape(count, 10, -1))  # of each link alone, at first
    for j in reversed(range(count - 1)):
        row = chain.rows[j + 1]
        if row.sigma:  # prismatic: all parts stay constant; the lever along the axis varies and is left out
            constant = bodies[j + 1]  # (10, 10 n)
            place = np.array([row.d, 0.0, 0.0])
        else:  # revolute: only what is symmetric about axis j + 1 is constant in frame j
            constant = np.zeros_like(bodies[j + 1])
            # the tensor diag(U22, U22, U33), kz and m^; what is left, such as U11 - U22, varies in frame j
            constant[[0, 3, 5, 8, 9]] = bodies[j + 1][[3, 3, 5, 8, 9]]
            place = row.T_previous_joint[:3, 3]  # s of [Lin1995] eq. (4)
        bodies[j] = bodies[j] + transport(row.T_previous_joint[:3, :3], place) @ constant
    return bodies


def minimal_set(chain: Chain) -> dict[Member, Floats]:
    """Find the set S of [Lin1995] theorem 2, from the base outwards.

    Returns a table: member -> row (10 n,) that, times the link parameters in frames of the chain, is its value.
    """
    found: dict[Member, Floats] = {}
    for j, body in enumerate(composite_constants(chain)):
        found |= {Member(symbol, j): row for symbol, row in _acting(chain, j, body).items()}
    return found


def _acting(chain: Chain, j: int, body: Array) -> dict[str, Array]:
    """Choose the constants of composite body j that act: [Lin1995] theorem 2, items 1) to 5).

    Args:
        chain: The robot.
        j: Index of the joint.
        body: (10, 10 n) constant parts of the composite body, from `composite_constants`.

    Returns:
        Symbol of a member -> its row (10 n,).
    """
    U11, U12, U13, U22, U23, U33, *k, mass = body
    first = {"KX": k[0], "KY": k[1]}
    if not chain.rows[j].sigma:
        if j < chain.s:  # 1)
            return {"U33": U33, **(first if chain.first_moments_act[j] else {})}
        products = {"U11-U22": U11 - U22, "U33": U33, "U12": U12, "U13": U13, "U23": U23}
        point = chain.meeting_points[j]
        if point is not None:  # not in the paper: without gravity and about a fixed point, k only adds to U13 and U23
            return products | {"U13": U13 + point * k[0], "U23": U23 + point * k[1]}
        return products | first  # 2)
    # prismatic joints from here on
    if j > chain.s:
        return {"MC": mass, **first, "KZ": k[2]}  # 3), 4)
    u = chain.axis_of_r[j]
    if j <= chain.r or is_along_z(u):  # the link slides only, or slides along the axis that it turns about
        return {"MC": mass}
    # 5) with the axis of r in frame j; [Lin1995] eqs. (86), (87)
    return {"MC": mass, "K1": -u[1] * k[0] + u[0] * k[1], "K2": k[2] - u[2] * (u @ body[6:9])}


def members_of(chain: Chain, values: Any) -> list[dict[str, Any]]:
    """Sort the values (b,) of the set S, in the order of `minimal_set`, into one table per joint: symbol -> value."""
    tables: list[dict[str, Any]] = [{} for _ in chain.rows]
    for member, value in zip(minimal_set(chain), values, strict=True):
        tables[member.joint][member.symbol] = value
    return tables
