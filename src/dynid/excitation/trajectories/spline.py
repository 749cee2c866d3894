"""B-spline trajectories from rest to rest: local control points, no periodicity."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray
from scipy.interpolate import BSpline

from dynid.arrays import Floats
from dynid.errors import ArgumentError
from dynid.excitation.trajectories.trajectory import LinearTrajectory

_TIED = 3
"""Number of equal control points at either end. Derivation: three of them make velocity and acceleration vanish."""


@dataclass(frozen=True, kw_only=True, eq=False)
class SplineTrajectory(LinearTrajectory):
    """A clamped uniform B-spline whose first and last control points are tied, so that it starts and ends at rest."""

    coefficients: Floats
    """(k, n) free control points [rad or m]; the first and the last are the rest positions."""
    duration_s: float
    """Length of the motion [s]."""
    degree: int = 5
    """Degree of the polynomials: 3 (continuous acceleration) or 5 (continuous jerk and its derivative)."""

    def __post_init__(self) -> None:
        """Check and freeze."""
        coefficients = np.array(self.coefficients, dtype=float)
        if self.degree not in (3, 5):
            raise ArgumentError(f"splines of degree {self.degree} are not offered", remedy="Use degree 3 or 5.")
        if coefficients.ndim != 2 or coefficients.shape[0] < 2 or not np.isfinite(coefficients).all():
            raise ArgumentError("spline coefficients must be finite, of shape (k, n) with k at least 2")
        if not 0.0 < self.duration_s < np.inf:
            raise ArgumentError("the duration must be positive and finite", remedy="Give it in seconds.")
        coefficients.setflags(write=False)
        object.__setattr__(self, "coefficients", coefficients)

    @classmethod
    def still(cls, dof: int, *, duration_s: float, points: int, degree: int = 5) -> SplineTrajectory:
        """A spline with ``points`` free control points, all zero: the family that a design searches."""
        return cls(coefficients=np.zeros((points, dof)), duration_s=duration_s, degree=degree)

    @property
    def duration(self) -> float:
        """Length of the motion [s]."""
        return self.duration_s

    @property
    def centre(self) -> Floats:
        """Rest position (n,) at the start."""
        return np.asarray(self.coefficients[0])

    def with_coefficients(self, coefficients: Floats) -> SplineTrajectory:
        """The same knots with other control points (k, n)."""
        return replace(self, coefficients=coefficients)

    def fit(self, other: LinearTrajectory) -> SplineTrajectory:
        """Another trajectory's path in this family's time; a spline on the same knots is copied exactly."""
        same = isinstance(other, SplineTrajectory) and (other.degree, other.coefficients.shape, other.duration_s) == (
            self.degree, self.coefficients.shape, self.duration_s,
        )  # fmt: skip
        return self.with_coefficients(other.coefficients) if same else super().fit(other)

    def rest_coefficients(self, q: Floats) -> Floats:
        """Coefficients of standing still at q (n,)."""
        return np.tile(q, (self.coefficients.shape[0], 1))

    def basis(self, t: Floats, order: int) -> Floats:
        """Derivative of the basis functions (N, k)."""
        points = np.repeat(np.eye(len(self.coefficients)), self._repeats, axis=0)
        return np.asarray(BSpline(self._knots, points, self.degree)(t, nu=order))

    @property
    def _repeats(self) -> NDArray[np.int64]:
        repeats = np.ones(len(self.coefficients), dtype=np.int64)
        repeats[[0, -1]] = _TIED
        return repeats

    @property
    def _knots(self) -> Floats:
        interior = int(self._repeats.sum()) - self.degree + 1
        if interior < 2:
            raise ArgumentError("too few control points for the degree", remedy="Give more points.")
        ends = np.zeros(self.degree)
        return np.concatenate([ends, np.linspace(0.0, 1.0, interior), ends + 1.0]) * self.duration_s
