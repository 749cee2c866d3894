"""What is known of the bodies beforehand: masses, boxes that hold centres of mass, bodies that are given."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import ArrayLike

from dynid.arrays import Floats
from dynid.errors import ArgumentError
from dynid.estimation.physical.conic import Constraint
from dynid.robot.model import Robot


@dataclass(frozen=True, slots=True, kw_only=True)
class Bounds:
    """Constraints on the standard parameters, by the name of the moving link; all places in that link's frame [m]."""

    mass: Mapping[str, tuple[float, float]] = field(default_factory=dict)
    """Link -> lowest and highest mass of its body [kg]; infinite where there is none, here and below."""
    total_mass: tuple[float, float] | None = None
    """Lowest and highest mass of all moving bodies together [kg]."""
    com_box: Mapping[str, tuple[ArrayLike, ArrayLike]] = field(default_factory=dict)
    """Link -> lower and upper corner (3,), (3,) of a box that holds the centre of mass."""
    known: tuple[str, ...] = ()
    """Links whose bodies keep the prior's parameters."""

    def constraints(self, robot: Robot) -> list[Constraint]:
        """All of them, each under the name that errors give it, on the standard parameters (p,).

        Args:
            robot: The robot; its parameters are those of known links.

        Raises:
            ArgumentError: A link is not of the robot, or a bound holds nothing.
        """
        units = np.eye(robot.parameter_vector.size)
        masses = units[9 : 10 * robot.dof : 10]
        found = []
        sums = {f"mass of {link}": (masses[_body(robot, link)], *limits) for link, limits in self.mass.items()}
        if self.total_mass is not None:
            sums["total mass"] = (masses.sum(axis=0), *self.total_mass)
        for name, (row, low, high) in sums.items():
            limits = np.array([low]), np.array([high])
            found.append(_between(f"{name} in [{low:g}, {high:g}] kg", row[None], *limits))
        for link, corners in self.com_box.items():
            lower, upper = (np.asarray(corner, dtype=float) for corner in corners)
            if lower.shape != (3,) or upper.shape != (3,):
                raise ArgumentError(f"{corners!r} is no box in {link}", remedy="Give two corners x, y, z [m].")
            body, name = _body(robot, link), f"centre of mass of {link} in its box"
            found.append(_between(name, units[10 * body + 6 : 10 * body + 9], lower, upper, per=masses[body]))
        for link in self.known:
            own = slice(10 * _body(robot, link), 10 * _body(robot, link) + 10)
            found.append(Constraint("equal", units[own], robot.parameter_vector[own], f"known {link}"))
        return found


def _between(name: str, rows: Floats, low: Floats, high: Floats, per: Floats | None = None) -> Constraint:
    """``low <= rows @ theta <= high``, both times ``per @ theta`` where given; an infinite side bounds nothing."""
    if not np.all((low <= high) & (low < np.inf) & (high > -np.inf)):
        raise ArgumentError(f"the bound '{name}' holds nothing", remedy="Give the lowest value first; inf for none.")
    side = np.concatenate([high, -low])
    bounded = np.isfinite(side)
    both, side = np.concatenate([rows, -rows])[bounded], side[bounded]
    if per is None:
        return Constraint("at most", both, side, name)
    return Constraint("at most", both - np.outer(side, per), 0.0 * side, name)


def _body(robot: Robot, link: str) -> int:
    names = [body.joint.child for body in robot.bodies]
    if link not in names:
        raise ArgumentError(f"no joint moves a link '{link}'", remedy=f"Moving links are: {', '.join(names)}.")
    return names.index(link)
