"""Lin's set of base parameters as named combinations of standard parameters ([Lin1995] theorem 2).

This is method "minimal-combinations" of `base_parameters`, which calls `minimal_combinations` with a serial robot.
`minimal_set` of `dynid.dynamics.minimal_constants` gives the constants of the links, as linear combinations of link
parameters in modified DH frames. Here they are mapped to the robot's body frames, the parameters of terms (friction,
rotor inertias, offsets) are added, and coefficients are written as formulas in the lengths and angles of the DH table.
Lin's letters, each for a link i together with all links behind it:

    U     moments and products of inertia
    K     first moments; K1 and K2 (kappa in the paper): the two components across the axis of joint r
    MC    mass

Joint r is the first revolute joint.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from dynid.array_types import Floats
from dynid.dynamics.chain import Chain
from dynid.dynamics.minimal_constants import Member, minimal_set
from dynid.identifiability.closed_form import rotor_substitutes
from dynid.identifiability.expression import Combination, Polynomial, Summand, dh_symbols
from dynid.identifiability.layout import INERTIAL_SYMBOLS, ParameterLayout
from dynid.robot.model import Robot
from dynid.spatial import ROUNDING

_SAME_LINK = {
    "U11-U22": "XX",
    "U33": "ZZ",
    "U12": "XY",
    "U13": "XZ",
    "U23": "YZ",
    "KX": "MX",
    "KY": "MY",
    "KZ": "MZ",
    "MC": "M",
}
"""Symbol of one of Lin's constants (a member of the set) -> the parameter of the same link that it contains with factor
one."""


class MinimalSet(NamedTuple):
    """Lin's set of b constants, with the parameters of terms."""

    combinations: tuple[Combination, ...]
    """(b,) ``U33_1  U11-U22_4  KX4  MC3`` (mass of all links from 3 on), and terms by their names. Coefficients are
    formulas, or numbers where the robot's body frames are no modified DH frames."""
    units: tuple[str, ...]
    """(b,) SI units."""
    grouping: Floats
    """(b, p) matrix G: ``G @ theta`` are the values of the combinations."""
    columns: tuple[int, ...] | None
    """(b,) columns in which `grouping` is invertible, so that these standard parameters can represent the set. None
    where the robot's frames are no modified DH frames."""
    symbols: Mapping[str, float]
    """Values of the symbols in the formulas (lengths [m], cosines, sines); empty where the coefficients are numbers."""


def minimal_combinations(robot: Robot, layout: ParameterLayout, chain: Chain, to_dh: Floats | None) -> MinimalSet:
    """Lin's minimal linear combinations of a serial robot (theorem 2), with its terms.

    Args:
        robot: The robot.
        layout: Its parameters.
        chain: Its chain in modified DH frames.
        to_dh: (p, p) map from parameters in the robot's body frames to those in the DH frames; None where these are the
            same frames.
    """
    rows_of_members = minimal_set(chain)  # member (its joint, symbol and unit) -> row of link parameters (10 n,)
    table, symbols = dh_symbols(chain.rows)
    in_dh_frames = to_dh is None  # then coefficients are formulas, and known columns represent the set
    # rotor inertia -> the combination of other parameters that it acts like, if there is one
    substitutes = rotor_substitutes(chain, table, layout)
    # columns of the terms that are constants by themselves: all but rotors that act like other parameters
    terms = [c for c, p in enumerate(layout) if p.kind == "term" and p.name not in substitutes]
    names = [*(member.name for member in rows_of_members), *(layout[column].name for column in terms)]
    units = [*(member.unit for member in rows_of_members), *(layout[column].unit for column in terms)]
    numbers = {rotor: {k: c.value(symbols) for k, c in linear.items()} for rotor, linear in substitutes.items()}
    matrix = _rows(rows_of_members, layout, terms, numbers).astype(float)
    matrix = matrix if to_dh is None else matrix @ to_dh
    # Coefficients that are zero within rounding become zero. A coefficient is a sum of products of lengths, and its
    # rounding grows with the longest of them to the power of their number: the power of m in its unit.
    longest = max(float(np.abs(body.p_parent_joint).max()) for body in robot.bodies)
    powers = np.array([_length_power(unit) for unit in units])[:, None] - [_length_power(unit) for unit in layout.units]
    matrix[np.abs(matrix) <= ROUNDING * longest ** np.maximum(powers, 0)] = 0.0
    formulas = matrix
    columns = None
    if in_dh_frames:
        # the same recursion once more, with symbols instead of numbers
        in_symbols = replace(chain, rows=tuple(table))  # type: ignore[arg-type]
        formulas = _rows(minimal_set(in_symbols), layout, terms, substitutes)
        columns = (*_same_link_columns(chain, list(rows_of_members), layout), *terms)
    combinations = tuple(
        # numbers become polynomials by the sum
        Combination(
            name, tuple(Summand(Polynomial() + formula[c], layout.names[c]) for c in np.flatnonzero(row).tolist())
        )
        for name, row, formula in zip(names, matrix, formulas, strict=True)
    )
    return MinimalSet(combinations, tuple(units), matrix, columns, symbols if in_dh_frames else {})


def _rows(
    rows_of_members: Mapping[Member, Any],
    layout: ParameterLayout,
    terms: list[int],
    substitutes: Mapping[str, Mapping[str, Any]],
) -> NDArray[np.object_]:
    """Rows (b, p) of coefficients: one per member of Lin's set, then one per term.

    Args:
        rows_of_members: Member -> its row of link parameters (10 n,), numbers or polynomials.
        layout: The p parameters.
        terms: Columns of the terms that are constants by themselves.
        substitutes: Rotor inertia -> the parameters it acts like, with coefficients; its column is the same combination
            of their columns.
    """
    rows = np.zeros((len(rows_of_members) + len(terms), len(layout)), dtype=object)
    for k, row in enumerate(rows_of_members.values()):
        rows[k, : len(row)] = row
    rows[range(len(rows_of_members), len(rows)), terms] = 1.0
    for rotor, linear in substitutes.items():
        for name, coefficient in linear.items():
            rows[:, layout.index(rotor)] += rows[:, layout.index(name)] * coefficient
    return rows


def _same_link_columns(chain: Chain, members: list[Member], layout: ParameterLayout) -> list[int]:
    """For every member the column of a parameter of the same link that it contains.

    In these columns the matrix of the set is triangular, link by link, with ones on the diagonal, and so invertible.
    """
    columns = []
    for member in members:
        symbol = _SAME_LINK.get(member.symbol)
        if symbol is None:  # K1, K2: two of MX, MY, MZ; not the one that the axis of r points along most
            hidden = int(np.argmax(np.abs(chain.axis_of_r[member.joint])))
            kept = [INERTIAL_SYMBOLS[6 + axis] for axis in range(3) if axis != hidden]
            symbol = kept[int(member.symbol[1]) - 1]
        columns.append(layout.index(f"{symbol}{member.joint + 1}"))
    return columns


def _length_power(unit: str) -> int:
    """Power of length in the unit of a link's parameter or of a member; 0 for terms."""
    return {"kg m^2": 2, "kg m": 1}.get(unit, 0)
