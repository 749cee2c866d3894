"""Lin's set of base parameters, named and readable ([Lin1995] theorem 2).

The constants themselves come from `dynid.dynamics.minimal_constants`; here they are mapped to the robot's own frames,
the terms join them, and their coefficients are written in the robot's geometric symbols.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dynid.arrays import Floats
from dynid.dynamics.chain import Chain
from dynid.dynamics.minimal_constants import Member, minimal_set
from dynid.parameters.closed_form import rotor_substitutes
from dynid.parameters.dh_frames import chain_in_dh_frames
from dynid.parameters.expression import Combination, Polynomial, Term, dh_symbols
from dynid.parameters.layout import INERTIAL_SYMBOLS, ParameterLayout, parameter_layout
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


@dataclass(frozen=True, slots=True, eq=False)
class MinimalCombinations:
    """Lin's set of constants, one row of the matrix each."""

    names: tuple[str, ...]
    """``U33_1  U11-U22_4  KX4  MC3`` (mass of all links from 3 on), and terms by their own names."""
    units: tuple[str, ...]
    """(b,) SI units."""
    matrix: Floats
    """(b, p) values of the combinations: ``matrix @ theta``."""
    columns: tuple[int, ...] | None
    """(b,) standard parameters that can take the members' places: the matrix is invertible in these columns. None where
    the robot's frames are no modified DH frames."""
    layout: ParameterLayout
    """The p standard parameters."""
    symbols: Mapping[str, float]
    """Values of the geometric symbols; empty where the robot's frames are no modified DH frames."""
    formulas: NDArray[np.object_] | None
    """(b, p) the matrix in these symbols; None where there are none."""
    deviation: float
    """Largest distance of the modified DH frames from the robot's axes [1 or m]."""

    @property
    def combinations(self) -> tuple[Combination, ...]:
        """The combinations with readable coefficients."""
        found = []
        for k, (name, row) in enumerate(zip(self.names, self.matrix, strict=True)):
            formulas = row if self.formulas is None else self.formulas[k]
            places = np.flatnonzero(row).tolist()
            terms = (Term(Polynomial() + formulas[c], self.layout.names[c]) for c in places)
            found.append(Combination(name, tuple(terms)))
        return tuple(found)

    def __str__(self) -> str:
        return "\n".join(combination.text() for combination in self.combinations)


def minimal_combinations(robot: Robot) -> MinimalCombinations:
    """Lin's minimal linear combinations of a serial robot (theorem 2), with its terms.

    Raises:
        ArgumentError: The robot branches, or has couplings or terms of other kinds.
    """
    chain, to_dh = chain_in_dh_frames(robot, "minimal-combinations")
    layout = parameter_layout(robot)
    links = minimal_set(chain)
    names, units = [member.name for member in links], [member.unit for member in links]
    columns = _own_columns(chain, list(links), layout)
    table, symbols = dh_symbols(chain.rows)
    substitutes = rotor_substitutes(chain, table, layout)
    own = [c for c, p in enumerate(layout) if p.kind == "term" and p.name not in substitutes]
    names += [layout[column].name for column in own]
    units += [layout[column].unit for column in own]
    columns += own
    numbers = {rotor: {k: c.value(symbols) for k, c in linear.items()} for rotor, linear in substitutes.items()}
    matrix = _rows(links, layout, own, numbers).astype(float)
    matrix = matrix if to_dh is None else matrix @ to_dh
    in_symbols = replace(chain, rows=tuple(table)) if to_dh is None else None  # type: ignore[arg-type]
    reach = max(float(np.abs(body.p_parent_joint).max()) for body in robot.bodies)
    lengths = np.array([_degree(unit) for unit in units])[:, None] - [_degree(unit) for unit in layout.units]
    matrix[np.abs(matrix) <= ROUNDING * reach ** np.maximum(lengths, 0)] = 0.0
    return MinimalCombinations(
        names=tuple(names),
        units=tuple(units),
        matrix=matrix,
        columns=tuple(columns) if to_dh is None else None,
        layout=layout,
        symbols=symbols if to_dh is None else {},
        formulas=None if in_symbols is None else _rows(minimal_set(in_symbols), layout, own, substitutes),
        deviation=chain.deviation,
    )


def _rows(
    links: Mapping[Member, Any], layout: ParameterLayout, terms: list[int], substitutes: Mapping[str, Mapping[str, Any]]
) -> NDArray[np.object_]:
    """(b, p) the members of the links, then those terms, with what rotors share with other parameters."""
    rows = np.zeros((len(links) + len(terms), len(layout)), dtype=object)
    for k, row in enumerate(links.values()):
        rows[k, : len(row)] = row
    rows[range(len(links), len(rows)), terms] = 1.0
    for rotor, linear in substitutes.items():
        for name, coefficient in linear.items():
            rows[:, layout.index(rotor)] += rows[:, layout.index(name)] * coefficient
    return rows


def _own_columns(chain: Chain, members: list[Member], layout: ParameterLayout) -> list[int]:
    """For every member a parameter of its own link: in these columns the set is triangular with ones, link by link."""
    columns = []
    for member in members:
        symbol = _OWN.get(member.symbol)
        if symbol is None:  # kappa: the first moments but the one along which the axis of r mostly points
            hidden = int(np.argmax(np.abs(chain.axis_of_r[member.joint])))
            kept = [INERTIAL_SYMBOLS[6 + axis] for axis in range(3) if axis != hidden]
            symbol = kept[int(member.symbol[1]) - 1]
        columns.append(layout.index(f"{symbol}{member.joint + 1}"))
    return columns


def _degree(unit: str) -> int:
    """Power of length in the unit of a member or of a link's parameter; 0 for terms."""
    return {"kg m^2": 2, "kg m": 1}.get(unit, 0)
