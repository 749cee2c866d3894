"""What a Kalman filter believes: a mean and its uncertainty, as a covariance or as its triangular root.

The two forms give the same numbers as long as rounding allows; the root keeps the covariance positive definite by
construction and needs only half as many digits. Steps may be linear (extended filter) or taken by sigma points
(unscented filter, Julier and Uhlmann 1997; square-root form: van der Merwe and Wan 2001). Knows nothing of robots.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
from scipy.linalg import solve_triangular

from dynid.arrays import Floats
from dynid.errors import EstimationError


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Belief:
    """A Gaussian; immutable, each step returns the next one."""

    mean: Floats
    """(d,)"""
    matrix: Floats
    """(d, d) covariance, or its lower triangular root."""
    square_root: bool
    """Whether the matrix is the root."""

    @classmethod
    def of(cls, mean: Floats, std: Floats, *, square_root: bool) -> Belief:
        """Independent entries with standard deviations (d,)."""
        return cls(mean=mean, matrix=np.diag(std if square_root else std**2), square_root=square_root)

    @property
    def covariance(self) -> Floats:
        """The covariance (d, d)."""
        return self.matrix @ self.matrix.T if self.square_root else self.matrix

    @property
    def std(self) -> Floats:
        """(d,) standard deviation of each entry."""
        squares = (self.matrix**2).sum(axis=1) if self.square_root else np.diagonal(self.matrix)
        return np.asarray(np.sqrt(np.maximum(squares, 0.0)))

    @property
    def root(self) -> Floats:
        """(d, d) lower triangular S with ``S S^T`` the covariance."""
        return self.matrix if self.square_root else _cholesky(self.matrix)

    def predict(self, mean: Floats, F: Floats, noise: Floats) -> Belief:
        """After ``x -> f(x) + noise @ w``, w of unit covariance, with f linearised.

        Args:
            mean: (d,) f at the mean.
            F: (d, d) derivative of f there.
            noise: (d, k)
        """
        if self.square_root:
            return replace(self, mean=mean, matrix=_triangle(np.hstack([F @ self.matrix, noise])))
        return replace(self, mean=mean, matrix=_symmetric(F @ self.matrix @ F.T + noise @ noise.T))

    def predict_by_points(self, function: Callable[[Floats], Floats], noise: Floats, spread: float) -> Belief:
        """After ``x -> f(x) + noise @ w``, by 2 d + 1 sigma points.

        Args:
            function: f for many points (m, d) -> (m, d).
            noise: (d, k)
            spread: Distance of the points from the mean [standard deviations].
        """
        d = self.mean.size
        steps = spread * self.root.T
        points = function(np.vstack([self.mean, self.mean + steps, self.mean - steps]))
        centre, side = 1.0 - d / spread**2, 0.5 / spread**2
        mean = centre * points[0] + side * points[1:].sum(axis=0)
        # van der Merwe and Wan (2001) eq. 15 with beta = 2, alpha = spread / sqrt(d)
        weight = centre + 3.0 - spread**2 / d
        away, middle = np.sqrt(side) * (points[1:] - mean).T, points[0] - mean
        if self.square_root:
            S = _triangle(np.hstack([away, noise]))
            return replace(self, mean=mean, matrix=_update_root(S, np.sqrt(abs(weight)) * middle, np.sign(weight)))
        P = away @ away.T + weight * np.outer(middle, middle) + noise @ noise.T
        return replace(self, mean=mean, matrix=_symmetric(P))

    def correct(self, H: Floats, measured: Floats, noise_std: Floats) -> Belief:
        """After a measurement ``H x + noise``.

        Args:
            H: (m, d)
            measured: (m,)
            noise_std: (m,) standard deviations of independent noise.
        """
        surprise = measured - H @ self.mean
        m, d = H.shape
        if self.square_root:
            array = np.block([[np.diag(noise_std), H @ self.matrix], [np.zeros((d, m)), self.matrix]])
            lower = _triangle(array)
            step = lower[m:, :m] @ solve_triangular(lower[:m, :m], surprise, lower=True)
            return replace(self, mean=self.mean + step, matrix=lower[m:, m:])
        cross = self.matrix @ H.T
        S = H @ cross + np.diag(noise_std**2)
        gain = np.linalg.solve(S, cross.T).T
        # Joseph's form, which stays symmetric and positive
        keep = np.eye(d) - gain @ H
        P = keep @ self.matrix @ keep.T + (gain * noise_std**2) @ gain.T
        return replace(self, mean=self.mean + gain @ surprise, matrix=_symmetric(P))


def _symmetric(P: Floats) -> Floats:
    return np.asarray(0.5 * (P + P.T))


def _triangle(array: Floats) -> Floats:
    """(d, d) lower triangular root of ``array @ array.T``, diagonal not negative."""
    R = np.asarray(np.linalg.qr(array.T, mode="r"))
    return np.asarray((R * np.where(np.diagonal(R) < 0.0, -1.0, 1.0)[:, None]).T)


def _cholesky(P: Floats) -> Floats:
    try:
        return np.asarray(np.linalg.cholesky(P))
    except np.linalg.LinAlgError:
        raise _indefinite_error() from None


def _update_root(S: Floats, x: Floats, sign: float) -> Floats:
    """Lower triangular root of ``S S^T + sign x x^T``, by rotations (hyperbolic ones for a negative sign)."""
    S, x = S.copy(), x.copy()
    for k in range(x.size):
        square = S[k, k] ** 2 + sign * x[k] ** 2
        if not square > 0.0:
            raise _indefinite_error()
        r = np.sqrt(square)
        c, s = r / S[k, k], x[k] / S[k, k]
        S[k, k] = r
        S[k + 1 :, k] = (S[k + 1 :, k] + sign * s * x[k + 1 :]) / c
        x[k + 1 :] = c * x[k + 1 :] - s * S[k + 1 :, k]
    return S


def _indefinite_error() -> EstimationError:
    return EstimationError(
        "the Kalman filter's covariance is no longer positive definite",
        remedy="Use square_root=True, give honest noise levels, or start closer to the truth.",
    )
