"""Turn the numerical coefficients of base parameters into formulas in the robot's lengths, for any tree robot.

Input is the grouping matrix (b, p) of `row_space.successive_columns`: of the regressor's p columns, b independent ones
are kept, and every dropped column is a combination of kept ones. `read_combinations` finds formulas for these numbers;
the methods "structural" and "numeric" of `base_parameters` print them.

Some changes of the parameters of body j act on the torques exactly like the same mass moved to its parent body, because
joint j between them does not change it. At a revolute joint about u these are three: a mass on the axis, a first moment
along it, and the inertia tensor ``1 - u u'`` ([GautierKhalil1990] eq. (15), here in any frames). At a prismatic joint
they are six: the whole inertia tensor (eq. (16)). Solved for a dropped column from the base outwards, this gives its
coefficients as polynomials in the robot's lengths. Where it gives no formula with the right value, as for some joints
near the base and for rotors of prismatic joints, the number stays.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from dynid.array_types import Floats
from dynid.decompositions import lstsq
from dynid.dynamics.inertia_maps import UPPER, transport
from dynid.identifiability.expression import ONE, Combination, Polynomial, Summand, dh_symbols
from dynid.identifiability.layout import ParameterLayout
from dynid.identifiability.row_space import HALF
from dynid.robot.formats.modified_dh import dh_rows
from dynid.robot.model import Robot
from dynid.spatial import EXACT, SAME

Objects = NDArray[np.object_]
"""Arrays of polynomials."""
_UNKNOWN = "?"
"""Stands in a polynomial for a formula that is not known."""


def read_combinations(
    layout: ParameterLayout, columns: Sequence[int], grouping: Floats, robot: Robot | None = None
) -> tuple[tuple[Combination, ...], dict[str, float]]:
    """Write every base parameter as a combination of standard parameters with formulas for coefficients.

    Args:
        layout: Names and units of the p standard parameters.
        columns: (b,) kept columns.
        grouping: (b, p) numerical coefficients.
        robot: The robot, if the parameters are those of its body frames; without it all coefficients are numbers.

    Returns:
        The b combinations, and the values of the symbols in them (lengths [m], cosines and sines).
    """
    # dropped column -> kept column -> formula
    relations, values = ({}, {}) if robot is None else _relations(robot, layout, columns, grouping)
    found = []
    for column, row in zip(columns, grouping, strict=True):
        terms = [Summand(ONE, layout[column].name)]
        for k in range(len(layout)):
            coefficient = _formula(relations.get(k, {}).get(column), row[k], values)
            if k != column and coefficient:  # not the number zero; a formula stays even where its value is zero
                terms.append(Summand(coefficient, layout[k].name))
        kept = layout[column]
        found.append(Combination(kept.regrouped_name if len(terms) > 1 else kept.name, tuple(terms)))
    return tuple(found), values


def _formula(formula: Polynomial | None, value: float, symbols: Mapping[str, float]) -> Polynomial:
    """The formula of a coefficient if it is known and has the coefficient's value, else the value."""
    if formula is not None and _UNKNOWN not in formula.symbols:
        rounded = formula.rounded(HALF)
        if abs(rounded.value(symbols) - value) <= max(SAME * abs(value), EXACT):
            return rounded
    return Polynomial.constant(value)


def _relations(
    robot: Robot, layout: ParameterLayout, columns: Sequence[int], grouping: Floats
) -> tuple[dict[int, dict[int, Polynomial]], dict[str, float]]:
    """Dropped column -> kept column -> formula of the coefficient; and the values of the symbols.

    For the arguments see `read_combinations`.
    """
    placements, values = _placements(robot)
    kept = set(columns)
    acts = np.any(grouping != 0.0, axis=0)
    relations: dict[int, dict[int, Polynomial]] = {}
    for j, body in enumerate(robot.bodies):
        first = 10 * j  # column of the body's first parameter
        first_of_parent = 10 * body.parent
        changes = _movable_changes(body.axis, body.is_prismatic)  # (3 or 6, 10)
        in_parent = changes @ transport(*placements[j]).T  # the same changes as parameters of the parent
        dropped = [k for k in range(10) if first + k not in kept and acts[first + k]]
        for place, column in enumerate(dropped):
            # find the sum of changes, shares @ changes, with 1 in this dropped column and 0 in the other dropped ones
            wanted = np.eye(len(dropped))[place]
            shares = lstsq(changes[:, dropped].T, wanted)
            if np.abs(changes[:, dropped].T @ shares - wanted).max(initial=0.0) > SAME:  # there is no such sum
                relations[first + column] = _numbers(layout, columns, grouping, first + column)
                continue
            # dropped column + kept columns of this body * change = parent's columns * the same change in the parent;
            # solved for the dropped column:
            total = {
                first + k: Polynomial.constant(-float(shares @ changes[:, k])) for k in range(10) if first + k in kept
            }
            for m in range(10) if body.parent >= 0 else ():  # what moves to the base has no effect
                factor = sum((share * poly for share, poly in zip(shares, in_parent[:, m], strict=True)), Polynomial())
                parent_column = first_of_parent + m  # kept, or known as a combination of kept columns already
                known = {parent_column: ONE} if parent_column in kept else relations.get(parent_column, {})
                for k, coefficient in known.items():
                    total[k] = total.get(k, Polynomial()) + factor * coefficient
            relations[first + column] = total
    for column in range(10 * robot.dof, len(layout)):
        relations[column] = _numbers(layout, columns, grouping, column)
    return relations, values


def _numbers(layout: ParameterLayout, columns: Sequence[int], grouping: Floats, column: int) -> dict[int, Polynomial]:
    """The numerical coefficients of a dropped column: kept column -> coefficient.

    A coefficient with a unit depends on the robot's lengths by an unknown formula, which `_UNKNOWN` marks. One without
    unit is taken for a number that is the same for all lengths.
    """
    unknown = Polynomial.symbol(_UNKNOWN)
    return {
        kept: Polynomial.constant(value) * (1.0 if layout[kept].unit == layout[column].unit else unknown)
        for kept, value in zip(columns, grouping[:, column].tolist(), strict=True)
        if value
    }


def _movable_changes(axis: Floats, is_prismatic: bool) -> Floats:
    """Changes (3 or 6, 10) of a body's parameters XX XY XZ YY YZ ZZ MX MY MZ M that may be moved to its parent.

    Args:
        axis: (3,) axis of the joint between the two, in the body's frame.
        is_prismatic: Whether this joint is prismatic.
    """
    if is_prismatic:
        return np.eye(6, 10)
    changes = np.zeros((3, 10))
    changes[0, 9] = 1.0  # a mass at the origin, which lies on the axis
    changes[1, 6:9] = axis  # a first moment along the axis
    changes[2, :6] = (np.eye(3) - np.outer(axis, axis))[UPPER]  # a tensor that is symmetric about the axis
    return changes


def _placements(robot: Robot) -> tuple[list[tuple[Objects, Objects]], dict[str, float]]:
    """Pose of every body in its parent at joint position zero, R (3, 3) and p (3,) in symbols, and their values.

    For a robot in modified DH frames the symbols are those of its DH table, such as ``D3`` and ``CA3``. Otherwise only
    positions have symbols, ``PX3 PY3 PZ3``, and R is made of numbers.
    """
    rows = dh_rows(robot)
    if rows is not None:
        table, values = dh_symbols(rows)
        return [(T[:3, :3], T[:3, 3]) for T in (row.T_previous_joint for row in table)], values
    values, found = {}, []
    for j, body in enumerate(robot.bodies, start=1):
        names = {f"P{axis}{j}": float(p) for axis, p in zip("XYZ", body.p_parent_joint, strict=True)}
        values |= {name: p for name, p in names.items() if abs(p) > EXACT}
        place = [Polynomial.symbol(name) if name in values else Polynomial() for name in names]
        found.append((np.vectorize(Polynomial.constant, otypes=[object])(body.R_parent_joint), np.array(place)))
    return found, values
