"""How well an arm's model is known, in its owner's words, and what that does to a load beyond it."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from dynid.errors import ArgumentError
from dynid.robot.inertia import Inertia
from dynid.robot.model import Robot
from dynid.spatial import skew

__all__ = ["ArmUncertainty"]

Floats = NDArray[np.float64]
_UPPER = np.triu_indices(3)


@dataclass(frozen=True, slots=True, kw_only=True)
class ArmUncertainty:
    """Standard deviations of the links of an arm's model, independent of one another.

    Friction, offsets and rotor inertias are not part of it: they are estimated together with the load.
    """

    mass: float
    """Of each link's mass, relative: 0.1 for ten percent. Its moments of inertia count alike."""
    com: float
    """Of each link's centre of mass along each axis [m]."""

    def __post_init__(self) -> None:
        """Refuse what is no standard deviation."""
        if not (0.0 <= self.mass < np.inf and 0.0 <= self.com < np.inf):
            raise ArgumentError(
                f"the arm's uncertainty is {self.mass} of masses and {self.com} m of centres of mass",
                remedy="Give two finite numbers from 0 up, such as 0.1 and 0.01.",
            )

    def directions(self, robot: Robot) -> Floats:
        """(p, 10 n) changes of the robot's parameters, each by one standard deviation of one cause.

        For each body its mass, three coordinates of its centre of mass and six moments about that.
        """
        changes = np.zeros((len(robot.parameter_vector), 10 * robot.dof))
        for k, body in enumerate(robot.bodies):
            own = slice(10 * k, 10 * k + 10)
            changes[own, own] = self._body_directions(body.inertia)
        return changes

    def _body_directions(self, inertia: Inertia) -> Floats:
        """(10, 10) of one body, to first order."""
        changes = np.zeros((10, 10))
        changes[:, 0] = self.mass * inertia.vector  # a heavier or lighter body of the same shape
        c = skew(inertia.com)
        for axis, unit in enumerate(np.eye(3)):
            e = skew(unit)
            changes[:6, 1 + axis] = -inertia.mass * self.com * (c @ e + e @ c)[_UPPER]
            changes[6 + axis, 1 + axis] = inertia.mass * self.com
        changes[:6, 4:] = self.mass * abs(np.trace(inertia.about_com)) / 3.0 * np.eye(6)
        return changes

    def __str__(self) -> str:
        return f"masses within {100 * self.mass:.3g} %, centres of mass within {1e3 * self.com:.3g} mm"
