"""The result of a design: a motion, what it will reveal, and how far it stays from every limit."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from dynid.excitation.constraints import Margin
from dynid.excitation.criteria import Criterion
from dynid.excitation.limits import MotionLimits
from dynid.excitation.search import Step
from dynid.excitation.trajectories.sampled_motion import Samples
from dynid.excitation.trajectories.trajectory import LinearTrajectory
from dynid.tables import Table

__all__ = ["Excitation"]

Floats = NDArray[np.float64]
_SLOW = 0.05
"""Share of the speed limits below which a motion is called slow."""


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
    parameter_units: tuple[str, ...]
    """(b,) their SI units."""
    assumed: str
    """What the predicted deviations rest on: noise and rate of the recording."""
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
    unchecked: tuple[str, ...] = ()
    """What no limit was given for, or could not be judged, in words."""

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

    @property
    def checked(self) -> tuple[str, ...]:
        """The kinds of limits that the motion was held to."""
        return tuple(dict.fromkeys(margin.limit for margin in self.margins))

    @property
    def checks(self) -> str:
        """What was checked and what was not, in two sentences."""
        missing = f"Not checked: {'; '.join(self.unchecked)}." if self.unchecked else "Nothing was left unchecked."
        return f"Checked: {', '.join(self.checked) or 'nothing'}. {missing}"

    @property
    def cautions(self) -> tuple[str, ...]:
        """What the figures alone may hide."""
        found = []
        limited = np.isfinite(self.limits.velocity)
        if limited.any() and self.coverage[limited].max() < _SLOW:
            found.append(
                f"the motion is slow: no joint passes {100 * _SLOW:.0f} % of its speed limit, so inertia hardly shows "
                "beside friction and noise, whatever the condition number; take a shorter period"
            )
        free = np.isinf(self.limits.acceleration) & np.isinf(self.limits.torque)
        if free.any():
            names = ", ".join(self.limits.joint_names[j] for j in np.flatnonzero(free))
            found.append(
                f"nothing but the period bounds the acceleration of {names}: neither a limit of its own nor torque"
            )
        return tuple(found)

    @property
    def speed_text(self) -> str:
        """How much of the speed limits is used, or the speeds themselves where there is none."""
        limited = np.isfinite(self.limits.velocity)
        if limited.any():
            rest = "" if limited.all() else " of the joints that have one"
            return f"{100 * self.coverage[limited].min():.0f} % of the limit or more{rest}, in both directions"
        peaks = self.trajectory.peak(1)
        return f"{peaks.min():.3g} rad/s (m/s where a joint slides) or more; there is no limit"

    def accuracy(self) -> Table:
        """Predicted standard deviations, unit by unit."""
        deviation, units = self.predicted_deviation, np.array(self.parameter_units)
        rows = []
        for unit in dict.fromkeys(self.parameter_units):
            here = np.flatnonzero(units == unit)
            worst = here[np.argmax(deviation[here])]
            row = [unit, str(len(here)), f"{np.median(deviation[here]):.3g}", f"{deviation[worst]:.3g}"]
            rows.append([*row, self.parameter_names[worst]])
        return Table.of(["unit", "parameters", "median", "largest", "of"], rows)

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
            f"speed reached: {self.speed_text}",
            *(f"caution: {caution}" for caution in self.cautions),
            "",
            Table.of(["limit", "closest at", "margin", "free share"], rows).to_text(),
            "",
            self.checks,
            "",
            f"Predicted standard deviations, for {self.assumed}:",
            self.accuracy().to_text(),
        ]
        return "\n".join(lines)

    def __str__(self) -> str:
        return self.summary()
