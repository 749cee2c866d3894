"""A linear least-squares problem, reduced to its triangular factor, with its rank, condition and solution.

`Information.weight` makes a `Factor` from the reduced logs of a robot; the estimators solve it. The factor R and z are
what remains of the equations ``W x = y`` after a QR factorisation: ``|W x - y|^2 == |R x - z|^2 + residual`` for all x.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from dynid.array_types import Floats
from dynid.data_reduction.triangular import echelon
from dynid.decompositions import is_regular_triangle, lstsq, singular_values, solve_upper
from dynid.errors import IdentifiabilityError
from dynid.spatial import EXACT

RESOLUTION = 1e-11
"""Share of the largest singular value below which one is rounding noise (convention)."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Factor:
    """The weighted equations ``W x = y`` of all joints, as ``|W x - y|^2 == |R x - z|^2 + residual``.

    x are p parameters, y are torques.
    """

    columns: tuple[int, ...]
    """(p,) columns of the robot's regressor, indices into `Robot.parameter_vector`."""
    R: Floats
    """(p, p) upper triangular."""
    z: Floats
    """(p,) right-hand side."""
    residual: float
    """Weighted sum of squared residuals of the least-squares solution: what no parameters can explain."""
    samples: int
    """Number of equations."""
    resolution: float = RESOLUTION
    """Singular values below this share of the largest are rounding noise (columns scaled to length one)."""

    @classmethod
    def of(cls, columns: Sequence[int], triangle: Floats, samples: int) -> Factor:
        """Make the problem from a triangle (p + 1, p + 1) of the rows (W, y), whose last column belongs to y."""
        R = triangle[:-1, :-1].copy()
        z = triangle[:-1, -1].copy()
        return cls(columns=tuple(columns), R=R, z=z, residual=float(triangle[-1, -1] ** 2), samples=samples)

    def __post_init__(self) -> None:
        """Make the arrays read-only."""
        self.R.setflags(write=False)
        self.z.setflags(write=False)

    @property
    def scale(self) -> Floats:
        """(p,) length of each column of R; infinite, so that division gives zero, if it is only rounding noise."""
        length = np.linalg.norm(self.R, axis=0)
        return np.where(length > EXACT * np.max(length, initial=0.0), length, np.inf)

    @property
    def singular_values(self) -> Floats:
        """(p,) singular values of R with its columns scaled to length one, descending."""
        return np.asarray(singular_values(self.R / self.scale))

    @property
    def condition(self) -> float:
        """Ratio of the largest to the smallest of `singular_values`; infinite for dependent columns."""
        values = self.singular_values
        if not values.size:
            return 1.0
        return float(values[0] / values[-1]) if values[-1] > 0.0 else float("inf")

    @property
    def rank(self) -> int:
        """Number of singular values above the rounding noise."""
        # quick: it settles the usual case of full rank without a singular value decomposition
        if is_regular_triangle(self.R / self.scale, self.resolution):
            return len(self.columns)
        values = self.singular_values
        return int(np.sum(values > self.resolution * np.max(values, initial=0.0)))

    @property
    def dependent(self) -> tuple[int, ...]:
        """Those of `columns` that are zero or depend on the columns before them, within the resolution."""
        pivots = np.diagonal(echelon(self.R / self.scale, self.resolution))
        return tuple(column for column, pivot in zip(self.columns, pivots, strict=True) if pivot == 0.0)

    @property
    def flags(self) -> tuple[str, ...]:
        """Warnings about parameters that the data or the arithmetic do not resolve; empty if there is none."""
        found = []
        if self.rank < len(self.columns):
            which = f", among them {self.dependent}" if self.dependent else ""
            found.append(f"rank {self.rank} of {len(self.columns)} columns{which}")
        elif self.condition * self.resolution > 1e-3:  # fewer than three digits of the parameters remain (convention)
            found.append(
                f"condition {self.condition:.1e} comes near what the reduction resolves, {1 / self.resolution:.0e}"
            )
        if self.samples < len(self.columns):
            found.append(f"{self.samples} equations for {len(self.columns)} columns")
        return tuple(found)

    def solve(self, *, minimum_norm: bool = False) -> Floats:
        """Find the parameters x (p,) with the smallest residual.

        Args:
            minimum_norm: Where columns depend on one another, take the solution of the smallest norm (columns scaled to
                length one) instead of refusing.

        Raises:
            IdentifiabilityError: if columns depend on one another and ``minimum_norm`` is False.
        """
        if self.rank == len(self.columns):
            return solve_upper(self.R, self.z)
        if not minimum_norm:
            raise IdentifiabilityError(
                f"the data leave parameters undetermined: {'; '.join(self.flags)}",
                remedy="Select base columns, move the robot more, or ask for the minimum norm.",
            )
        scaled = lstsq(self.R / self.scale, self.z, rcond=self.resolution)
        return np.asarray(scaled / self.scale)
