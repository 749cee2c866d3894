"""The result of an estimation, which says itself what it could not determine; and what an estimator is."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dynid.estimation.problem import Problem
from dynid.tables import Table

__all__ = ["Estimate", "Estimator"]

Floats = NDArray[np.float64]
TWO_SIDED_95 = 1.959963984540054


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Estimate:
    """Base parameters with their uncertainty."""

    names: tuple[str, ...]
    units: tuple[str, ...]
    values: Floats
    """(b,)"""
    covariance: Floats
    """(b, b) of the values; infinite variance where the data determine nothing."""
    undetermined: NDArray[np.bool_]
    """(b,) whether the data leave the parameter open; its value is then a convention (smallest norm)."""
    noise_std: Floats
    """(n,) standard deviation of each joint's residual torque [N m or N]."""
    inflation: Floats
    """(n,) variance factor for residuals that are correlated in time: samples per independent sample."""
    samples: NDArray[np.int64]
    """(n,) samples of each joint that counted."""
    condition: float
    """Condition number of the weighted, column-scaled equations."""
    method: str
    standard: Floats | None = None
    """(p,) standard parameters, where the estimator gives them."""
    notes: tuple[str, ...] = ()
    """What the reader must know: fallbacks taken, weights chosen, bounds met."""
    at_bound: tuple[str, ...] = ()
    """Bodies or parameters held by a constraint."""
    given_bounds: tuple[str, ...] = ()
    """Those of `at_bound` that the user gave; the others are physical: bodies, friction that must not be negative."""
    prior_dominated: tuple[str, ...] = ()
    """Parameters that the prior determines more than the data do."""
    extras: dict[str, float] = field(default_factory=dict)
    """Figures of merit of the method."""

    @classmethod
    def of(cls, problem: Problem, **fields: Any) -> Estimate:
        """The estimate of a problem: its names and units, and a note on what the data leave open, are filled in.

        Args:
            problem: The problem.
            **fields: All other fields, by name; samples default to the problem's own.
        """
        undetermined, notes = fields["undetermined"], tuple(fields.pop("notes", ()))
        left = [name for name, free in zip(problem.names, undetermined, strict=True) if free]
        if left:
            notes = (*notes, f"the motion leaves {len(left)} parameters open: {', '.join(left)}")
        fields.setdefault("samples", problem.equations)
        return cls(names=problem.names, units=problem.units, notes=notes, **fields)

    @property
    def stderr(self) -> Floats:
        """(b,) standard deviation of each value; infinite where undetermined."""
        return np.where(self.undetermined, np.inf, np.sqrt(np.maximum(np.diag(self.covariance), 0.0)))

    @property
    def relative_stderr(self) -> Floats:
        """(b,) standard deviation over magnitude, in percent."""
        with np.errstate(divide="ignore", invalid="ignore"):
            return np.asarray(100.0 * self.stderr / np.abs(self.values))

    def interval(self, sigmas: float = TWO_SIDED_95) -> Floats:
        """(b, 2) confidence interval of each value; 95 % by default."""
        half = sigmas * self.stderr
        return np.stack([self.values - half, self.values + half], axis=1)

    def table(self) -> Table:
        """One row per parameter: name, value, standard deviation, unit, remark."""
        rows = [
            (name, float(value), float(error), float(relative), unit, "not determined" if free else "")
            for name, value, error, relative, unit, free in zip(
                self.names, self.values, self.stderr, self.relative_stderr, self.units, self.undetermined, strict=True
            )
        ]
        return Table.of(["parameter", "value", "std", "std %", "unit", ""], rows)


class Estimator(ABC):
    """A way to solve a problem. Concrete estimators are frozen dataclasses that hold their settings and no data."""

    @abstractmethod
    def solve(self, problem: Problem) -> Estimate:
        """Estimate the base parameters of a problem."""
