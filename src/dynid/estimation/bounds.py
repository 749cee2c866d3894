"""What is known of the bodies beforehand: masses, where their centres of mass lie, bodies that are given."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dynid.errors import ArgumentError
from dynid.robot.model import Robot

__all__ = ["Bounds"]

Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True, kw_only=True)
class Bounds:
    """Linear constraints on the standard parameters, by the name of the moving link."""

    mass: Mapping[str, tuple[float, float]] = field(default_factory=dict)
    """Link -> lowest and highest mass of its body [kg]."""
    com_box: Mapping[str, tuple[ArrayLike, ArrayLike]] = field(default_factory=dict)
    """Link -> lower and upper corner (3,), (3,) of a box around the centre of mass, link frame [m]."""
    known: tuple[str, ...] = ()
    """Links whose bodies keep the prior's parameters."""
    total_mass: tuple[float, float] | None = None
    """Lowest and highest mass of all moving bodies together [kg]."""

    def rows(self, robot: Robot, from_scaled: Floats) -> dict[str, Floats]:
        """Constraints on scaled unknowns y: ``at_most @ y <= limit`` and ``equal @ y == value``.

        Args:
            robot: The robot; its parameters are those of known links.
            from_scaled: (p or more, p or more) its first p rows give the standard parameters from y.
        """
        below: list[tuple[Floats, float]] = []
        for link, (low, high) in self.mass.items():
            row = _unit(robot, _body(robot, link), 9)
            below += [(row, high), (-row, -low)]
        if self.total_mass is not None:
            row = np.sum([_unit(robot, j, 9) for j in range(robot.dof)], axis=0)
            below += [(row, self.total_mass[1]), (-row, -self.total_mass[0])]
        for link, (lower, upper) in self.com_box.items():
            j = _body(robot, link)
            for k, (low, high) in enumerate(zip(np.asarray(lower), np.asarray(upper), strict=True)):
                moment, mass = _unit(robot, j, 6 + k), _unit(robot, j, 9)
                below += [(moment - high * mass, 0.0), (low * mass - moment, 0.0)]
        fixed = [10 * _body(robot, link) + k for link in self.known for k in range(10)]
        size = robot.parameter_vector.size
        return {
            "at_most": np.array([row for row, _ in below]).reshape(-1, size) @ from_scaled[:size],
            "limit": np.array([value for _, value in below]),
            "equal": np.eye(size)[fixed] @ from_scaled[:size],
            "value": robot.parameter_vector[fixed],
        }


def _unit(robot: Robot, body: int, offset: int) -> Floats:
    row = np.zeros(robot.parameter_vector.size)
    row[10 * body + offset] = 1.0
    return row


def _body(robot: Robot, link: str) -> int:
    for index, body in enumerate(robot.bodies):
        if body.joint.child == link:
            return index
    known = ", ".join(body.joint.child for body in robot.bodies)
    raise ArgumentError(f"no joint moves a link '{link}'", remedy=f"Moving links are: {known}.")
