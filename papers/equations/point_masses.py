"""Bodies made of point masses: wrench, energy and moments by plain sums, without any formula of a paper."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from dynid.arrays import Floats
from dynid.robot.inertia import Inertia
from papers.judgement.verdicts import Row, compare_claim

EXACT = 1e-9
"""Largest relative error of an equation that holds: rounding of some hundred operations, with room."""


@dataclass(frozen=True, slots=True)
class Cloud:
    """Point masses that move together."""

    mass: Floats
    """(P,) masses [kg]."""
    at: Floats
    """(P, 3) positions in the body's frame [m]."""

    @property
    def total(self) -> float:
        """Mass [kg]."""
        return float(self.mass.sum())

    @property
    def first(self) -> Floats:
        """(3,) first moment about the origin [kg m]."""
        return np.asarray(self.mass @ self.at)

    @property
    def tensor(self) -> Floats:
        """(3, 3) inertia tensor about the origin [kg m^2]."""
        squares = np.einsum("p,pa,pb->ab", self.mass, self.at, self.at)
        return np.asarray(np.trace(squares) * np.eye(3) - squares)

    @property
    def vector(self) -> Floats:
        """(10,) parameters in dynid's order."""
        return np.asarray(Inertia(mass=self.total, first_moment=self.first, about_origin=self.tensor).vector)

    def moved(self, R: Floats, p: Floats) -> Cloud:
        """The same masses in the frame before: turned by R, then shifted by p."""
        return Cloud(self.mass, self.at @ R.T + p)

    def wrench(self, w: Floats, dw: Floats, a: Floats) -> tuple[Floats, Floats]:
        """Force and moment about the origin that move the masses.

        Args:
            w: (3,) angular velocity [rad/s].
            dw: (3,) angular acceleration [rad/s^2].
            a: (3,) acceleration of the origin, less gravity [m/s^2].
        """
        force = self.mass[:, None] * (a + np.cross(dw, self.at) + np.cross(w, np.cross(w, self.at)))
        return force.sum(axis=0), np.cross(self.at, force).sum(axis=0)


def random_cloud(rng: np.random.Generator, points: int = 8) -> Cloud:
    """Draw masses between 0.1 and 1 kg at normally distributed places."""
    return Cloud(rng.uniform(0.1, 1.0, points), rng.normal(size=(points, 3)))


def random_rotation(rng: np.random.Generator) -> Floats:
    """Draw a rotation matrix."""
    Q = np.linalg.qr(rng.normal(size=(3, 3)))[0]
    return np.asarray(Q * np.linalg.det(Q))


def judge(what: str, paper: str, *sides: tuple[object, object], within: float = EXACT, reading: str = "") -> Row:
    """Compare the two sides of equations, evaluated: the printed side first, then what it must equal.

    Args:
        what: The equations and what they say.
        paper: What the paper prints, in short.
        sides: Printed side and true side of each equation.
        within: Largest relative error; wider than `EXACT` only where the true side is a difference quotient.
        reading: How we read what the scan damaged or the paper misprints; agreement then depends on it.
    """
    errors = []
    for printed, truth in sides:
        left, right = np.asarray(printed, dtype=float), np.asarray(truth, dtype=float)
        errors.append(float(np.abs(left - right).max() / max(1.0, float(np.abs(right).max()))))
    error = max(errors)
    found = f"largest relative error {error:.0e}"
    reason = "an equation does not hold as we read it"
    return compare_claim(what, paper, found, error < within, reason=reason, assumption=reading)
