"""Bounds that a user knows of the bodies: masses, boxes around centres of mass, bodies that are known entirely.

The user gives a `Bounds` to the estimator `feasible`, which calls `constraints` and adds these to its cone program. All
are linear in the standard parameters theta (p,), ten for each body and then those of the robot's terms.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import ArrayLike

from dynid.array_types import Floats
from dynid.errors import ArgumentError
from dynid.estimators.physical.conic import ConeCondition
from dynid.robot.model import Robot


@dataclass(frozen=True, slots=True, kw_only=True)
class Bounds:
    """Constraints on the standard parameters, by the name of the moving link.

    Its body is the link with all links that are fixed to it. Infinite limits bound nothing.
    """

    mass: Mapping[str, tuple[float, float]] = field(default_factory=dict)
    """Link -> lowest and highest mass of its body [kg]."""
    total_mass: tuple[float, float] | None = None
    """Lowest and highest mass of all moving bodies together [kg]."""
    com_box: Mapping[str, tuple[ArrayLike, ArrayLike]] = field(default_factory=dict)
    """Link -> lower and upper corner (3,), (3,) of a box that holds its body's centre of mass, link frame [m]."""
    known: tuple[str, ...] = ()
    """Links whose bodies keep the parameters of the robot that is identified."""

    def constraints(self, robot: Robot) -> list[ConeCondition]:
        """Write the bounds as constraints on the standard parameters (p,), each with a name for error messages.

        Args:
            robot: The robot; known links get its parameters.

        Raises:
            ArgumentError: The robot has no such link, or no value satisfies a bound.
        """
        # row k picks parameter k; a body has ten: XX XY XZ YY YZ ZZ MX MY MZ M
        units = np.eye(robot.parameter_vector.size)
        masses = units[9 : 10 * robot.dof : 10]
        found = []
        sums = {f"mass of {link}": (masses[_body(robot, link)], *limits) for link, limits in self.mass.items()}
        if self.total_mass is not None:
            sums["total mass"] = (masses.sum(axis=0), *self.total_mass)
        for name, (row, low, high) in sums.items():
            found.append(_between(f"{name} in [{low:g}, {high:g}] kg", row[None], np.array([low]), np.array([high])))
        for link, corners in self.com_box.items():
            lower, upper = (np.asarray(corner, dtype=float) for corner in corners)
            if lower.shape != (3,) or upper.shape != (3,):
                raise ArgumentError(f"{corners!r} is no box in {link}", remedy="Give two corners x, y, z [m].")
            body = _body(robot, link)
            first_moments = units[10 * body + 6 : 10 * body + 9]
            name = f"centre of mass of {link} in its box"
            # lower * mass <= first moment <= upper * mass is linear in the parameters
            found.append(_between(name, first_moments, lower, upper, times=masses[body]))
        for link in self.known:
            body = _body(robot, link)
            own = slice(10 * body, 10 * body + 10)
            found.append(ConeCondition("equal", units[own], robot.parameter_vector[own], f"known {link}"))
        return found


def _between(name: str, rows: Floats, low: Floats, high: Floats, times: Floats | None = None) -> ConeCondition:
    """Write ``low <= rows @ theta <= high``; both limits multiplied by ``times @ theta`` if given."""
    if not np.all((low <= high) & (low < np.inf) & (high > -np.inf)):
        raise ArgumentError(f"the bound '{name}' holds nothing", remedy="Give the lowest value first; inf for none.")
    limits = np.concatenate([high, -low])  # -rows @ theta <= -low
    bounded = np.isfinite(limits)
    both_sides = np.concatenate([rows, -rows])[bounded]
    limits = limits[bounded]
    if times is None:
        return ConeCondition("at most", both_sides, limits, name)
    return ConeCondition("at most", both_sides - np.outer(limits, times), np.zeros_like(limits), name)


def _body(robot: Robot, link: str) -> int:
    """Find the index of the body that a link moves with."""
    names = [body.joint.child for body in robot.bodies]
    if link not in names:
        raise ArgumentError(f"no joint moves a link '{link}'", remedy=f"Moving links are: {', '.join(names)}.")
    return names.index(link)
