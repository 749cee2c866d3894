"""Minimal linear combinations of inertial parameters ([Lin1995]).

Every link is taken together with all that it carries; the parts of the composite body's mass, first moment and tensor
that stay constant as the joints move are ``m^, k, U``. Theorem 2 says which of them act. The scan of the paper is
damaged; the recursion below is the checked reconstruction: frames are modified DH frames, and every quantity is a
matrix that multiplies the parameters.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from dynid.parameters.chain import Chain, chain_in_dh_frames, is_along_z
from dynid.parameters.closed_form import rotor_substitutes
from dynid.parameters.expression import Combination, Term
from dynid.parameters.layout import ParameterLayout, parameter_layout
from dynid.parameters.number_recognition import Recogniser
from dynid.parameters.symbols import dh_symbols
from dynid.robot.model import Robot
from dynid.spatial import skew

__all__ = ["MinimalCombinations", "minimal_combinations"]

Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True, eq=False)
class MinimalCombinations:
    """Lin's set of constants, one row of the matrix each."""

    names: tuple[str, ...]
    """``U33_1  U11-U22_4  KX_4  MC_3`` (mass of all links from 3 on), and terms by their own names."""
    matrix: Floats
    """(b, p) values of the combinations: ``matrix @ theta``."""
    layout: ParameterLayout
    """The p standard parameters."""
    symbols: Mapping[str, float]
    """Values of the geometric symbols."""

    @property
    def combinations(self) -> tuple[Combination, ...]:
        """The combinations with readable coefficients."""
        recognise = Recogniser(self.symbols)
        rows = zip(self.names, self.matrix, strict=True)
        return tuple(_readable(name, row, self.layout, recognise) for name, row in rows)

    def __str__(self) -> str:
        return "\n".join(combination.text() for combination in self.combinations)


@dataclass(frozen=True, slots=True, eq=False)
class _Composite:
    """Constants of the links from j on, as maps of the 10 n link parameters."""

    mass: Floats
    """(p,) mass m^."""
    k: Floats
    """(3, p) constant part of the first moment."""
    U: Floats
    """(3, 3, p) constant part of the tensor."""


def minimal_combinations(robot: Robot) -> MinimalCombinations:
    """Lin's minimal linear combinations of a serial robot (theorem 2), with its terms.

    Raises:
        ArgumentError: The robot branches, or has couplings or terms of other kinds.
    """
    chain, to_dh, _ = chain_in_dh_frames(robot, "minimal-combinations")
    layout = parameter_layout(robot)
    names, matrix = _link_combinations(chain, len(layout))
    table, symbols = dh_symbols(chain.rows)
    substitutes = rotor_substitutes(chain, table, layout)
    for parameter in layout:
        if parameter.kind == "term" and parameter.name not in substitutes:
            names.append(parameter.name)
            matrix = np.vstack([matrix, np.eye(len(layout))[layout.index(parameter.name)]])
    for rotor, linear in substitutes.items():
        for name, coefficient in linear.items():
            matrix[:, layout.index(rotor)] += matrix[:, layout.index(name)] * coefficient.value(symbols)
    matrix = matrix if to_dh is None else matrix @ to_dh
    return MinimalCombinations(tuple(names), matrix, layout, symbols)


def _link_combinations(chain: Chain, size: int) -> tuple[list[str], Floats]:
    """Names and rows of the links' combinations, from the base outwards."""
    names: list[str] = []
    rows: list[Floats] = []
    beyond: _Composite | None = None
    for j in reversed(range(len(chain.rows))):
        beyond = _composite(chain, j, beyond, size)
        chosen = _acting_combinations(chain, j, beyond)
        names[:0] = [f"{name}_{j + 1}" for name in chosen]
        rows[:0] = list(chosen.values())
    return names, np.array(rows)


def _readable(name: str, row: Floats, layout: ParameterLayout, recognise: Recogniser) -> Combination:
    lengths = {"inertia": 2, "first moment": 1}
    own = 2 if name.startswith("U") else 1 if name.startswith("K") else 0
    number = int(name.rsplit("_")[-1]) if "_" in name else 0
    terms = []
    for column in np.flatnonzero(row).tolist():
        parameter = layout[column]
        value, degree = float(row[column]), own - lengths.get(parameter.kind, 0)
        coefficient = recognise(value, degree, number, parameter.number)
        terms.append(Term(coefficient, parameter.name))
    return Combination(name, tuple(terms))


def _composite(chain: Chain, j: int, beyond: _Composite | None, size: int) -> _Composite:
    own = _own_constants(j, size)
    if beyond is None:
        return own
    row = chain.rows[j + 1]
    T = row.T_previous_joint
    R = T[:3, :3]
    mass = own.mass + beyond.mass
    # the constant parts of [Lin1995] eqs. (8), (9); s is that of eq. (4)
    if not row.sigma:  # only what is symmetric about joint j + 1 is constant in frame j
        s, z = T[:3, 3], R[:, 2]
        arm = np.outer(z, beyond.k[2])
        kernel = np.zeros((3, 3, size))
        kernel[0, 0] = kernel[1, 1] = beyond.U[1, 1]
        kernel[2, 2] = beyond.U[2, 2]
    else:  # the slide leaves everything but the lever along its own axis
        s = np.array([row.d, 0.0, 0.0])
        arm, kernel = R @ beyond.k, beyond.U
    k = own.k + arm + np.outer(s, beyond.mass)  # [Lin1995] eq. (10)
    # [Lin1995] eq. (12) for a revolute, eq. (14) for a prismatic joint j + 1
    U = own.U + np.einsum("ia,abp,kb->ikp", R, kernel, R) + _shift(s, arm, beyond.mass)
    return _Composite(mass, k, U)


def _own_constants(j: int, size: int) -> _Composite:
    unit = np.eye(size)[10 * j : 10 * j + 10]
    xx, xy, xz, yy, yz, zz = unit[:6]
    return _Composite(unit[9], unit[6:9], np.array([[xx, xy, xz], [xy, yy, yz], [xz, yz, zz]]))


def _shift(s: Floats, arm: Floats, mass: Floats) -> Floats:
    """``-m^ [s x]^2 - [s x][k x] - [k x][s x]`` as a map (3, 3, p)."""
    S = skew(s)
    cross = np.array([skew(unit) for unit in np.eye(3)])  # (3, 3, 3): [e_a x]
    product = np.einsum("ik,akl,ap->ilp", S, cross, arm)
    return np.asarray(-np.multiply.outer(S @ S, mass) - product - product.transpose(1, 0, 2))


def _acting_combinations(chain: Chain, j: int, body: _Composite) -> dict[str, Floats]:
    """The combinations of link j that act: [Lin1995] theorem 2, items 1) to 5)."""
    U, k = body.U, body.k
    if not chain.rows[j].sigma:
        if j < chain.s:  # 1)
            moments = {"KX": k[0], "KY": k[1]} if chain.first_moments[j] else {}
            return {"U33": U[2, 2], **moments}
        products = {"U11-U22": U[0, 0] - U[1, 1], "U33": U[2, 2], "U12": U[0, 1], "U13": U[0, 2], "U23": U[1, 2]}
        point = chain.concurrent[j]
        if point is not None:
            return products | {"U13": U[0, 2] + point * k[0], "U23": U[1, 2] + point * k[1]}
        return products | {"KX": k[0], "KY": k[1]}  # 2)
    found = {"MC": body.mass}  # 3)
    if j > chain.s:
        found |= {"KX": k[0], "KY": k[1], "KZ": k[2]}  # 4)
    elif j > chain.r:
        u = chain.first_axis[j]
        if not is_along_z(u):  # 5) with the axis of r in frame j
            found |= {"K1": -u[1] * k[0] + u[0] * k[1], "K2": k[2] - u[2] * (u @ k)}
    return found
