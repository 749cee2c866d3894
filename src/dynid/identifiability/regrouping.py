"""Base parameters as combinations with symbolic coefficients, for any tree.

Some changes of a body act on the torques exactly like the same changes of the body before it, because the joint in
between does not change them. At a revolute joint about u these are three: a mass on the axis, a first moment along it,
and a tensor ``1 - u u'`` ([GautierKhalil1990] eq. (15) in any frames); at a prismatic joint six, the whole tensor (eq.
(16)). From the base outwards, every dropped column so becomes a combination of kept ones, whose coefficients are
polynomials in the lengths of the robot. Coefficients that these changes do not explain (of joints near the base, of
rotors of slides) stay numbers.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from dynid.array_types import Floats
from dynid.decompositions import lstsq
from dynid.dynamics.inertia_maps import UPPER, transport
from dynid.identifiability.expression import ONE, Combination, Polynomial, Term, dh_symbols
from dynid.identifiability.layout import ParameterLayout
from dynid.identifiability.row_space import HALF
from dynid.robot.formats.modified_dh import dh_rows
from dynid.robot.model import Robot
from dynid.spatial import EXACT, SAME

Objects = NDArray[np.object_]
"""Arrays of polynomials."""
_OPEN = "?"
"""Symbol that marks a number whose formula is not known."""


def read_combinations(
    layout: ParameterLayout, columns: Sequence[int], grouping: Floats, robot: Robot | None = None
) -> tuple[tuple[Combination, ...], dict[str, float]]:
    """Write every base parameter as a combination; returns these and the values of the geometric symbols in them.

    Args:
        layout: The parameters.
        columns: (b,) kept columns.
        grouping: (b, p) numerical coefficients.
        robot: The robot, if the parameters are those of its body frames; without it coefficients are numbers.
    """
    relations, values = ({}, {}) if robot is None else _relations(robot, layout, columns, grouping)
    found = []
    for column, row in zip(columns, grouping, strict=True):
        terms = [Term(ONE, layout[column].name)]
        for k in range(len(layout)):
            coefficient = _formula(relations.get(k, {}).get(column), row[k], values)
            if k != column and coefficient:  # a formula stays even where this robot's lengths make it zero
                terms.append(Term(coefficient, layout[k].name))
        kept = layout[column]
        found.append(Combination(kept.regrouped_name if len(terms) > 1 else kept.name, tuple(terms)))
    return tuple(found), values


def _formula(formula: Polynomial | None, value: float, symbols: Mapping[str, float]) -> Polynomial:
    """The formula of a coefficient if it is complete and has the coefficient's value, else the value."""
    if formula is not None and _OPEN not in formula.symbols:
        rounded = formula.rounded(HALF)
        if abs(rounded.value(symbols) - value) <= max(SAME * abs(value), EXACT):
            return rounded
    return Polynomial.constant(value)


def _relations(
    robot: Robot, layout: ParameterLayout, columns: Sequence[int], grouping: Floats
) -> tuple[dict[int, dict[int, Polynomial]], dict[str, float]]:
    """Dropped column -> kept column -> coefficient; and the values of the symbols."""
    placements, values = _placements(robot)
    kept = set(columns)
    acts = np.any(grouping != 0.0, axis=0)
    relations: dict[int, dict[int, Polynomial]] = {}
    for j, body in enumerate(robot.bodies):
        first = 10 * j  # column of the body's first parameter
        before = 10 * body.parent  # the same of the body before
        changes = _unnoticed(body.axis, body.is_prismatic)
        in_parent = changes @ transport(*placements[j]).T  # the same changes as parameters of the body before
        dropped = [k for k in range(10) if first + k not in kept and acts[first + k]]
        for place, column in enumerate(dropped):
            # the sum of changes that has one in this dropped column, and zero in the other dropped ones
            wanted = np.eye(len(dropped))[place]
            shares = lstsq(changes[:, dropped].T, wanted)
            if np.abs(changes[:, dropped].T @ shares - wanted).max(initial=0.0) > SAME:  # there is none
                relations[first + column] = _numbers(layout, columns, grouping, first + column)
                continue
            # it acts like its counterpart in the body before: solve for the dropped column
            total = {
                first + k: Polynomial.constant(-float(shares @ changes[:, k])) for k in range(10) if first + k in kept
            }
            for m in range(10) if body.parent >= 0 else ():
                factor = sum((share * poly for share, poly in zip(shares, in_parent[:, m], strict=True)), Polynomial())
                known = {before + m: ONE} if before + m in kept else relations.get(before + m, {})
                for k, coefficient in known.items():
                    total[k] = total.get(k, Polynomial()) + factor * coefficient
            relations[first + column] = total
    for column in range(10 * robot.dof, len(layout)):
        relations[column] = _numbers(layout, columns, grouping, column)
    return relations, values


def _numbers(layout: ParameterLayout, columns: Sequence[int], grouping: Floats, column: int) -> dict[int, Polynomial]:
    """The numerical coefficients of a column: kept column -> coefficient.

    A coefficient with a unit depends on lengths in an unknown way, which `_OPEN` marks.
    """
    open_symbol = Polynomial.symbol(_OPEN)
    return {
        kept: Polynomial.constant(value) * (1.0 if layout[kept].unit == layout[column].unit else open_symbol)
        for kept, value in zip(columns, grouping[:, column].tolist(), strict=True)
        if value
    }


def _unnoticed(axis: Floats, is_prismatic: bool) -> Floats:
    """Changes (3 or 6, 10) of a body's parameters that act like the same changes of the body before."""
    if is_prismatic:
        return np.eye(6, 10)
    changes = np.zeros((3, 10))
    changes[0, 9] = 1.0
    changes[1, 6:9] = axis
    changes[2, :6] = (np.eye(3) - np.outer(axis, axis))[UPPER]
    return changes


def _placements(robot: Robot) -> tuple[list[tuple[Objects, Objects]], dict[str, float]]:
    """Orientation (3, 3) and place (3,) of every joint in symbols, and the values of the symbols.

    Symbols are those of the DH table of a robot in modified DH frames, else ``PX3 PY3 PZ3``.
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
