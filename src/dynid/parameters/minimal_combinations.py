"""Lin's set of base parameters, named and readable ([Lin1995] theorem 2).

The constants themselves come from `dynid.dynamics.minimal_constants`; here they are mapped to the robot's own frames,
the terms join them, and their coefficients are written in the robot's geometric symbols. In Lin's letters, each of a
link i together with all links behind it:

    U     moments of inertia
    K     first moments; kappa: the two across r, the vector between the axes i and i + 1
    MC    mass
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from dynid.arrays import Floats
from dynid.dynamics.chain import Chain
from dynid.dynamics.minimal_constants import Member, minimal_set
from dynid.parameters.closed_form import rotor_substitutes
from dynid.parameters.expression import Combination, Polynomial, Term, dh_symbols
from dynid.parameters.layout import INERTIAL_SYMBOLS, ParameterLayout
from dynid.robot.model import Robot
from dynid.spatial import ROUNDING

_OWN = {
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
"""Symbol of a member -> the parameter of its own link that it contains with factor one."""


class Members(NamedTuple):
    """Lin's set of constants, one row of the matrix each."""

    combinations: tuple[Combination, ...]
    """``U33_1  U11-U22_4  KX4  MC3`` (mass of all links from 3 on), and terms by their own names; with coefficients in
    geometric symbols, numbers where the robot's frames are no modified DH frames."""
    units: tuple[str, ...]
    """(b,) SI units."""
    grouping: Floats
    """(b, p) values of the combinations: ``grouping @ theta``."""
    columns: tuple[int, ...] | None
    """(b,) standard parameters that can take the members' places: the matrix is invertible in these columns. None where
    the robot's frames are no modified DH frames."""
    symbols: Mapping[str, float]
    """Values of the geometric symbols."""


def minimal_combinations(robot: Robot, layout: ParameterLayout, chain: Chain, to_dh: Floats | None) -> Members:
    """Lin's minimal linear combinations of a serial robot (theorem 2), with its terms.

    Args:
        robot: The robot.
        layout: Its parameters.
        chain: Its chain in modified DH frames.
        to_dh: (p, p) its parameters in these frames from those in its own; None where these are the same.
    """
    members = minimal_set(chain)
    table, symbols = dh_symbols(chain.rows)
    substitutes = rotor_substitutes(chain, table, layout)
    own = [c for c, p in enumerate(layout) if p.kind == "term" and p.name not in substitutes]
    names = [*(member.name for member in members), *(layout[column].name for column in own)]
    units = [*(member.unit for member in members), *(layout[column].unit for column in own)]
    numbers = {rotor: {k: c.value(symbols) for k, c in linear.items()} for rotor, linear in substitutes.items()}
    matrix = _rows(members, layout, own, numbers).astype(float)
    matrix = matrix if to_dh is None else matrix @ to_dh
    # a coefficient is a power of lengths: what rounding makes of zero grows with the same power of the longest link
    reach = max(float(np.abs(body.p_parent_joint).max()) for body in robot.bodies)
    lengths = np.array([_degree(unit) for unit in units])[:, None] - [_degree(unit) for unit in layout.units]
    matrix[np.abs(matrix) <= ROUNDING * reach ** np.maximum(lengths, 0)] = 0.0
    formulas, columns = matrix, None
    if to_dh is None:
        # the same recursion once more, on symbols in place of numbers
        in_symbols = replace(chain, rows=tuple(table))  # type: ignore[arg-type]
        formulas = _rows(minimal_set(in_symbols), layout, own, substitutes)
        columns = (*_own_columns(chain, list(members), layout), *own)
    combinations = tuple(
        Combination(name, tuple(Term(Polynomial() + formula[c], layout.names[c]) for c in np.flatnonzero(row).tolist()))
        for name, row, formula in zip(names, matrix, formulas, strict=True)
    )
    return Members(combinations, tuple(units), matrix, columns, {} if columns is None else symbols)


def _rows(
    members: Mapping[Member, Any],
    layout: ParameterLayout,
    terms: list[int],
    substitutes: Mapping[str, Mapping[str, Any]],
) -> NDArray[np.object_]:
    """(b, p) the members, then those terms, with what rotors share with other parameters."""
    rows = np.zeros((len(members) + len(terms), len(layout)), dtype=object)
    for k, row in enumerate(members.values()):
        rows[k, : len(row)] = row
    rows[range(len(members), len(rows)), terms] = 1.0
    for rotor, linear in substitutes.items():
        for name, coefficient in linear.items():
            rows[:, layout.index(rotor)] += rows[:, layout.index(name)] * coefficient
    return rows


def _own_columns(chain: Chain, members: list[Member], layout: ParameterLayout) -> list[int]:
    """For every member a parameter of its own link: in these columns the set is triangular with ones, link by link."""
    columns = []
    for member in members:
        symbol = _OWN.get(member.symbol)
        if symbol is None:  # kappa1, kappa2: the first moments but the one along which r mostly points
            hidden = int(np.argmax(np.abs(chain.axis_of_r[member.joint])))
            kept = [INERTIAL_SYMBOLS[6 + axis] for axis in range(3) if axis != hidden]
            symbol = kept[int(member.symbol[1]) - 1]
        columns.append(layout.index(f"{symbol}{member.joint + 1}"))
    return columns


def _degree(unit: str) -> int:
    """Power of length in the unit of a member or of a link's parameter; 0 for terms."""
    return {"kg m^2": 2, "kg m": 1}.get(unit, 0)
