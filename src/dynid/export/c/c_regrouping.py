"""Parameters regrouped for code: fewer values that give the same torques, part by part.

Base parameters are those of the whole torque. The code also computes parts of it (gravity, friction, energy), so
regrouping must not move anything from one part into another.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from dynid.arrays import Floats
from dynid.errors import ArgumentError
from dynid.parameters.base_set import BaseParameters
from dynid.parameters.layout import ParameterLayout, parameter_layout
from dynid.parameters.numeric import keep_order, numeric_row_space
from dynid.parameters.row_space import RowSpace, row_space, successive_columns
from dynid.parameters.structural import structural_row_space
from dynid.robot.model import Robot
from dynid.terms.base import Dependence


@dataclass(frozen=True, slots=True, eq=False)
class Regrouping:
    """Base parameters without their symbolic expressions, which take longer to find than the numbers."""

    columns: tuple[int, ...]
    """(b,) kept columns."""
    grouping: Floats
    """(b, p)"""

    def values(self, theta: Floats) -> Floats:
        """(p,) base values in the kept columns, zeros elsewhere; values within rounding of zero are zero."""
        rounding = 4.0 * np.finfo(float).eps * (np.abs(self.grouping) @ np.abs(theta))
        beta = self.grouping @ theta
        values = np.zeros(theta.size)
        values[list(self.columns)] = np.where(np.abs(beta) <= rounding, 0.0, beta)
        return values

    def names(self, robot: Robot) -> tuple[str, ...]:
        """(p,) names of the parameters."""
        layout = parameter_layout(robot)
        names = list(layout.names)
        for column, row in zip(self.columns, self.grouping, strict=True):
            if np.count_nonzero(row) > 1:
                names[column] = layout[column].regrouped_name
        return tuple(names)


def ungrouped(robot: Robot) -> Regrouping:
    """Keep the standard parameters of the robot as they are."""
    size = robot.parameter_vector.size
    return Regrouping(tuple(range(size)), np.eye(size))


def regroup(robot: Robot) -> Regrouping:
    """Find the fewest values that determine every part of the torque."""
    try:
        space = structural_row_space(robot, unmoved={}, static=False)
    except ArgumentError:  # a term without a closed form
        space = numeric_row_space(robot, unmoved={}, static=False, states=None)
    return Regrouping(*successive_columns(_friction_apart(parameter_layout(robot), space), keep_order(robot)))


def separate_friction(robot: Robot, base: BaseParameters) -> Regrouping:
    """Keep given base parameters; if one mixes friction with gravity or inertia, split it into two values."""
    friction = _is_friction(base.layout)
    mixed = base.grouping[:, friction].any(axis=1) & base.grouping[:, ~friction].any(axis=1)
    if not mixed.any():
        return Regrouping(base.columns, base.grouping)
    return Regrouping(*successive_columns(_friction_apart(base.layout, row_space(base.grouping)), keep_order(robot)))


def _friction_apart(layout: ParameterLayout, space: RowSpace) -> RowSpace:
    """Row space in which friction and offsets are separate from gravity and inertia.

    On a joint that slides along gravity, the torque of a rotor equals that of a mass minus an offset,
    ``IA = M - g OFF``. Regrouping by this relation keeps the sum but moves the weight into the offset, where the
    function `gravity` does not include it.
    """
    friction = _is_friction(layout)
    parts = row_space(np.vstack([np.where(friction, 0.0, space.basis), np.where(friction, space.basis, 0.0)]))
    return replace(parts, scale=parts.scale * space.scale) if friction.any() else space


def _is_friction(layout: ParameterLayout) -> NDArray[np.bool_]:
    """(p,) whether each parameter belongs to friction and offsets."""
    return np.array([e.dependence not in (None, Dependence.ACCELERATION) for e in layout], dtype=bool)
