"""Principal moments and axes of an uncertain inertia tensor, and where the axes mean nothing.

Near-equal moments make axes ill-defined: the angle between them is the small off-diagonal noise divided by the small
gap ([Atkeson1986] eqs. 23-24).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

__all__ = ["PrincipalAxes"]

Floats = NDArray[np.float64]
PAIRS = ((0, 1), (0, 2), (1, 2))
SIGNIFICANT = 20.5
"""99.9 % point of chi-square with the five degrees of freedom in which a tensor can differ from a sphere's."""
RELATIVE_GAP = 1e-6
"""Moments closer than this part of the largest are equal, however exact the data."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class PrincipalAxes:
    """The diagonal form of a tensor ([Atkeson1986] eq. 11), to first order in its noise."""

    moments: Floats
    """(3,) ascending [kg m^2]"""
    moments_stderr: Floats
    """(3,) [kg m^2]"""
    axes: Floats
    """(3, 3) columns: unit axes, right-handed"""
    angle_stderr: Floats
    """(3,) standard deviation of the frame's angle about each axis [rad]; infinite where ill-defined"""
    ill_defined: tuple[tuple[int, int], ...]
    """Pairs of axes whose moments cannot be told apart."""

    @classmethod
    def unknown(cls) -> PrincipalAxes:
        """Of a body whose inertia the data leave open."""
        nan, infinite = np.full(3, np.nan), np.full(3, np.inf)
        return cls(
            moments=nan, moments_stderr=infinite, axes=np.full((3, 3), np.nan), angle_stderr=infinite, ill_defined=PAIRS
        )

    @classmethod
    def of(cls, tensor: Floats, covariance: Floats) -> PrincipalAxes:
        """Diagonalise.

        Args:
            tensor: (3, 3) symmetric [kg m^2].
            covariance: (6, 6) of its entries XX XY XZ YY YZ ZZ.
        """
        moments, axes = np.linalg.eigh(tensor)
        axes = axes * np.sign(np.linalg.det(axes))
        rows = [_entry(axes[:, k], axes[:, k]) for k in range(3)]
        ill, angle = [], np.zeros(3)
        for i, j in PAIRS:
            gap = float(moments[j] - moments[i])
            mixed = _entry(axes[:, i], axes[:, j])
            k = 3 - i - j
            angle[k] = np.sqrt(max(float(mixed @ covariance @ mixed), 0.0)) / max(gap, 1e-300)
            if not _stands_out(gap, np.stack([rows[j] - rows[i], 2.0 * mixed]), covariance, moments[-1]):
                ill.append((i, j))
                angle[k] = np.inf
        variances = [max(float(row @ covariance @ row), 0.0) for row in rows]
        return cls(
            moments=moments,
            moments_stderr=np.sqrt(variances),
            axes=axes,
            angle_stderr=angle,
            ill_defined=tuple(ill),
        )


def _entry(a: Floats, b: Floats) -> Floats:
    """(6,) row that gives ``a^T I b`` from XX XY XZ YY YZ ZZ."""
    (x, y, z), (u, v, w) = a, b
    return np.array([x * u, x * v + y * u, x * w + z * u, y * v, y * w + z * v, z * w])


def _stands_out(gap: float, rows: Floats, covariance: Floats, largest: float) -> bool:
    """Whether (difference of moments, twice the product) = (gap, 0) differs from the (0, 0) of equal moments."""
    if gap <= RELATIVE_GAP * abs(largest):
        return False
    spread = rows @ covariance @ rows.T + np.eye(2) * (1e-3 * RELATIVE_GAP * largest) ** 2
    return bool(gap**2 * np.linalg.inv(spread)[0, 0] > SIGNIFICANT)
