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
from dynid.spatial import skew


class CompositeConstants(NamedTuple):
    """Constants of the links from j on, as maps of the 10 n link parameters; frame j."""

    mass: Floats
    """(10 n,) mass m^."""
    k: Floats
    """(3, 10 n) constant part of the first moment."""
    U: Floats
    """(3, 3, 10 n) constant part of the tensor."""


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


def composite_constants(chain: Chain) -> list[CompositeConstants]:
    """The constants m^, k, U of every composite body: [Lin1995] eqs. (10), (12), (14)."""
    count = len(chain.rows)
    bodies = [_own_constants(j, 10 * count) for j in range(count)]
    for j in reversed(range(count - 1)):
        bodies[j] = _add_beyond(chain, j, bodies[j], bodies[j + 1])
    return bodies


def _own_constants(j: int, size: int) -> CompositeConstants:
    unit = np.eye(size)[10 * j : 10 * j + 10]
    xx, xy, xz, yy, yz, zz = unit[:6]
    return CompositeConstants(unit[9], unit[6:9], np.array([[xx, xy, xz], [xy, yy, yz], [xz, yz, zz]]))


def _add_beyond(chain: Chain, j: int, own: CompositeConstants, beyond: CompositeConstants) -> CompositeConstants:
    row = chain.rows[j + 1]
    T = row.T_previous_joint
    R = T[:3, :3]
    if not row.sigma:  # only what is symmetric about joint j + 1 is constant in frame j
        s, z = T[:3, 3], R[:, 2]  # s is that of [Lin1995] eq. (4)
        arm = np.outer(z, beyond.k[2])
        kernel = np.zeros_like(beyond.U)
        kernel[0, 0] = kernel[1, 1] = beyond.U[1, 1]
        kernel[2, 2] = beyond.U[2, 2]
    else:  # the slide leaves everything but the lever along its own axis
        s = np.array([row.d, 0.0, 0.0])
        arm, kernel = R @ beyond.k, beyond.U
    k = own.k + arm + np.outer(s, beyond.mass)  # [Lin1995] eq. (10)
    # [Lin1995] eq. (12) for a revolute, eq. (14) for a prismatic joint j + 1
    U = own.U + np.einsum("ia,abp,kb->ikp", R, kernel, R) + _shift(s, arm, beyond.mass)
    return CompositeConstants(own.mass + beyond.mass, k, U)


def _shift(s: Floats, arm: Floats, mass: Floats) -> Floats:
    """``-m^ [s x]^2 - [s x][k x] - [k x][s x]`` as a map (3, 3, 10 n)."""
    S = skew(s)
    cross = np.array([skew(unit) for unit in np.eye(3)])  # (3, 3, 3): [e_a x]
    product = np.einsum("ik,akl,ap->ilp", S, cross, arm)
    return np.asarray(-np.multiply.outer(S @ S, mass) - product - product.transpose(1, 0, 2))


def minimal_set(chain: Chain) -> dict[Member, Floats]:
    """The set S of [Lin1995] theorem 2, from the base outwards: member -> row (10 n,) of link parameters."""
    found: dict[Member, Floats] = {}
    for j, body in enumerate(composite_constants(chain)):
        found |= {Member(symbol, j): row for symbol, row in _acting(chain, j, body).items()}
    return found


def _acting(chain: Chain, j: int, body: CompositeConstants) -> dict[str, Floats]:
    """The constants of composite body j that act: [Lin1995] theorem 2, items 1) to 5)."""
    U, k = body.U, body.k
    if not chain.rows[j].sigma:
        if j < chain.s:  # 1)
            moments = {"KX": k[0], "KY": k[1]} if chain.first_moments_act[j] else {}
            return {"U33": U[2, 2], **moments}
        products = {"U11-U22": U[0, 0] - U[1, 1], "U33": U[2, 2], "U12": U[0, 1], "U13": U[0, 2], "U23": U[1, 2]}
        point = chain.meeting_points[j]
        if point is not None:  # not in the paper: without gravity and about a fixed point, k acts as products do
            return products | {"U13": U[0, 2] + point * k[0], "U23": U[1, 2] + point * k[1]}
        return products | {"KX": k[0], "KY": k[1]}  # 2)
    found = {"MC": body.mass}  # 3)
    if j > chain.s:
        found |= {"KX": k[0], "KY": k[1], "KZ": k[2]}  # 4)
    elif j > chain.r:
        u = chain.axis_of_r[j]
        if not is_along_z(u):  # 5) with the axis of r in frame j; [Lin1995] eqs. (86), (87)
            found |= {"K1": -u[1] * k[0] + u[0] * k[1], "K2": k[2] - u[2] * (u @ k)}
    return found


def members_of(chain: Chain, values: Any) -> list[dict[str, Any]]:
    """Values of the set S, in the order of `minimal_set`, as one table per joint: symbol -> value."""
    tables: list[dict[str, Any]] = [{} for _ in chain.rows]
    for member, value in zip(minimal_set(chain), values, strict=True):
        tables[member.joint][member.symbol] = value
    return tables
