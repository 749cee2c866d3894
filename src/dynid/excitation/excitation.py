"""The result of a design: a motion, what it will reveal, and how far it stays from every limit."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from dynid.excitation.constraints import Margin
from dynid.excitation.criteria import Criterion
from dynid.excitation.limits import MotionLimits
from dynid.excitation.optimiser import Step
from dynid.excitation.samples import Samples
from dynid.excitation.trajectory import LinearTrajectory
from dynid.tables import Table

__all__ = ["Excitation"]

Floats = NDArray[np.float64]


@dataclass(frozen=True, kw_only=True, eq=False)
class Excitation:
    """A designed motion with its evidence."""

    robot: str
    """Name of the robot."""
    trajectory: LinearTrajectory
    """The motion, from rest to rest."""
    limits: MotionLimits
    """What it had to respect."""
    criterion: Criterion
    """What was minimised."""
    value: float
    """The criterion's value."""
    information: Floats
    """(b, b) information of the recorded part, earlier runs included; the prior of the next run."""
    parameter_names: tuple[str, ...]
    """(b,) the parameters it is about."""
    margins: tuple[Margin, ...]
    """Closest approach to every limit, at ten times the sampling of the design."""
    coverage: Floats
    """(n, 2) peak speed forwards and backwards as a share of the limit."""
    seed: int
    """Of the random starts."""
    history: tuple[Step, ...]
    """Every outer iteration of every start."""
    interrupted: bool = False
    """Whether the search was ended by hand before its time."""

    @property
    def condition_number(self) -> float:
        """Condition number of the weighted observation matrix with columns scaled to unit length."""
        d = np.sqrt(np.diag(self.information))
        eigenvalues = np.linalg.eigvalsh(self.information / np.outer(d, d))
        return float(np.sqrt(eigenvalues[-1] / max(eigenvalues[0], 1e-300)))

    @property
    def log_det(self) -> float:
        """Logarithm of the determinant of the information."""
        return float(np.linalg.slogdet(self.information)[1])

    @property
    def predicted_deviation(self) -> Floats:
        """(b,) predicted standard deviation of each parameter, in its unit."""
        return np.sqrt(np.diag(np.linalg.inv(self.information)))

    @property
    def tightest(self) -> Margin | None:
        """The limit that the motion comes closest to, relative to its size; None without limits."""
        return min(self.margins, key=lambda margin: margin.relative, default=None)

    def sample(self, rate_hz: float) -> Samples:
        """The motion at a uniform rate, with the robot's joint names."""
        return self.trajectory.sample(rate_hz, self.limits.joint_names)

    def summary(self) -> str:
        """A page to read."""
        start, end = self.trajectory.recorded
        nearest: dict[str, Margin] = {}
        for margin in sorted(self.margins, key=lambda m: m.relative):
            nearest.setdefault(margin.limit, margin)
        rows = [[m.limit, m.where, f"{m.margin:.4g} {m.unit}", f"{100 * m.relative:.1f} %"] for m in nearest.values()]
        lines = [
            f"Excitation of '{self.robot}': {self.trajectory.duration:g} s, of which {end - start:g} s to record",
            f"condition number (columns scaled) {self.condition_number:.3g}, log det of information {self.log_det:.4g}",
            f"speed reached: {100 * self.coverage.min():.0f} % of the limit or more, in both directions",
            "",
            Table.of(["limit", "closest at", "margin", "relative"], rows).to_text(),
        ]
        return "\n".join(lines)

    def __str__(self) -> str:
        return self.summary()
