"""The result of a design: a motion, what it will reveal, and how far it stays from every limit."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from dynid.arrays import Floats
from dynid.decompositions import eigvalsh
from dynid.excitation.constraints import Margin
from dynid.excitation.criteria import Criterion
from dynid.excitation.energy_points import PointDesign
from dynid.excitation.limits import MotionLimits
from dynid.excitation.search import Step
from dynid.excitation.trajectories.trajectory import Samples, Trajectory
from dynid.findings import Finding
from dynid.tables import Table, html_card

_ABSURD = 100.0
"""Predicted standard deviation of an inertial parameter from which on it is absurd [kg, kg m, kg m^2] (convention: the
parameters of usual arms are smaller)."""
_SLOW = 0.2
"""Share of its speed limit below which a joint is called slow, in either direction. Convention."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Excitation:
    """A designed motion with its evidence."""

    robot: str
    """Name of the robot."""
    trajectory: Trajectory
    """The motion, from rest to rest."""
    limits: MotionLimits
    """The limits that it keeps."""
    criterion: Criterion
    """The criterion that was minimised."""
    value: float
    """The criterion's value for this motion."""
    information: Floats
    """(b, b) information of the recorded part, earlier runs included; the prior of the next run."""
    parameter_names: tuple[str, ...]
    """(b,) the parameters that the motion shall reveal."""
    parameter_units: tuple[str, ...]
    """(b,) their SI units."""
    assumed: str
    """A phrase that states the noise and the rate of the recording on which predicted deviations rest."""
    margins: tuple[Margin, ...]
    """Closest approach to every limit, at ten times the sampling of the design."""
    coverage: Floats
    """(n, 2) peak speed forwards and backwards as a share of the limit."""
    seed: int
    """Seed of the random starts."""
    history: tuple[Step, ...]
    """Every outer iteration of every start."""
    interrupted: bool = False
    """Whether an interrupt (Ctrl-C) ended the search."""
    not_checked: tuple[str, ...] = ()
    """A phrase for everything that the motion was not checked against."""
    points: PointDesign | None = None
    """The points that the motion passes, where it was designed by their energies."""

    @property
    def condition_number(self) -> float:
        """Condition number of the weighted observation matrix with columns scaled to unit length."""
        d = np.sqrt(np.diag(self.information))
        eigenvalues = eigvalsh(self.information / np.outer(d, d))
        return float(np.sqrt(eigenvalues[-1] / max(eigenvalues[0], np.finfo(float).tiny)))

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
        """The kinds of limits that the motion was checked against."""
        return tuple(dict.fromkeys(margin.limit for margin in self.margins))

    @property
    def checks_summary(self) -> str:
        """Two sentences: which limits were checked, and which were not."""
        missing = f"Not checked: {'; '.join(self.not_checked)}." if self.not_checked else "Nothing was left unchecked."
        return f"Checked: {', '.join(self.checked) or 'nothing'}. {missing}"

    @property
    def cautions(self) -> tuple[Finding, ...]:
        """Warnings about the motion that the condition number and the margins do not show."""
        found = (self._slow_joints(), self._absurd_deviations(), self._unbounded_acceleration())
        return tuple(finding for finding in found if finding is not None)

    def _slow_joints(self) -> Finding | None:
        """A warning about joints that stay slow in a direction."""
        slowest = np.where(np.isfinite(self.limits.velocity), self.coverage.min(axis=1), np.inf)
        slow = np.flatnonzero(slowest < _SLOW)
        if not len(slow):
            return None
        reached = ", ".join(f"{self.limits.joint_names[j]} ({100 * slowest[j]:.0f} %)" for j in slow)
        message = (
            f"{reached}: so little of the speed limit is reached that viscous friction and inertia about "
            "this joint will be uncertain, whatever the condition number"
        )
        remedy = "Take a shorter period, or search longer."
        if self.points is not None:
            remedy = "Raise the acceleration limit."
        return _warning("slow-joint", "velocity", message, remedy, {"smallest share of a speed limit": slowest.min()})

    def _absurd_deviations(self) -> Finding | None:
        """A warning about parameters whose predicted standard deviation no robot arm can have as a value."""
        inertial = np.array([unit.startswith("kg") for unit in self.parameter_units], dtype=bool)
        with np.errstate(all="ignore"):
            deviation = np.nan_to_num(self.predicted_deviation, nan=np.inf)
        absurd = inertial & (deviation >= _ABSURD)
        if not absurd.any():
            return None
        worst = int(np.argmax(np.where(absurd, deviation, 0.0)))
        message = (
            f"{int(absurd.sum())} of {absurd.size} parameters have an absurd predicted standard deviation, up to "
            f"{deviation[worst]:.3g} {self.parameter_units[worst]} ({self.parameter_names[worst]}): no motion of this "
            "robot tells them apart"
        )
        remedy = (
            "Write nearly right angles of the model in full, or check with dynid base whether the "
            "robot has nearly dependent parameters."
        )
        evidence = {"largest predicted deviation": deviation[worst]}
        return _warning("absurd-deviation", "parameters", message, remedy, evidence)

    def _unbounded_acceleration(self) -> Finding | None:
        free = np.flatnonzero(np.isinf(self.limits.acceleration) & np.isinf(self.limits.torque))
        if not len(free):
            return None
        names = ", ".join(self.limits.joint_names[j] for j in free)
        message = f"nothing but the period bounds the acceleration of {names}: neither a limit of its own nor torque"
        return _warning("unbounded-acceleration", "acceleration", message, "State acceleration or torque limits.", {})

    @property
    def speed_text(self) -> str:
        """A phrase: the share of the speed limits that is used, or the peak speeds where there are no limits."""
        limited = np.isfinite(self.limits.velocity)
        if limited.any():
            rest = "" if limited.all() else " of the joints that have one"
            slowest = int(np.argmin(np.where(limited, self.coverage.min(axis=1), np.inf)))
            share = f"{100 * self.coverage[slowest].min():.0f} % of the limit or more{rest}, in both directions"
            return f"{share} (least: {self.limits.joint_names[slowest]})"
        peaks = self.trajectory.peak(1)
        return f"{peaks.min():.3g} rad/s (m/s where a joint slides) or more; there is no limit"

    def accuracy(self) -> Table:
        """Table of the predicted standard deviations, one row per unit."""
        deviation, units = self.predicted_deviation, np.array(self.parameter_units)
        rows = []
        for unit in dict.fromkeys(self.parameter_units):
            here = np.flatnonzero(units == unit)
            worst = here[np.argmax(deviation[here])]
            row = [unit, str(len(here)), f"{np.median(deviation[here]):.3g}", f"{deviation[worst]:.3g}"]
            rows.append([*row, self.parameter_names[worst]])
        return Table.of(["unit", "parameters", "median", "largest", "of"], rows)

    def summary(self) -> str:
        """A page of text: condition number, margins, checks and predicted accuracy."""
        start, end = self.trajectory.recorded
        nearest: dict[str, Margin] = {}
        for margin in sorted(self.margins, key=lambda m: m.relative):
            nearest.setdefault(margin.limit, margin)
        rows = [[m.limit, m.where, f"{m.margin:.4g} {m.unit}", f"{100 * m.relative:.1f} %"] for m in nearest.values()]
        lines = [
            f"Excitation of '{self.robot}': {self.trajectory.duration:g} s, of which {end - start:g} s to record",
            f"condition number of the regressor with scaled columns {self.condition_number:.3g}",
            *([] if self.points is None else [str(self.points)]),
            f"speed reached: {self.speed_text}",
            *(f"caution: {caution.message}. {caution.remedy}" for caution in self.cautions),
            "",
            Table.of(["limit", "closest at", "margin", "margin, share of the limit"], rows).to_text(),
            "",
            self.checks_summary,
            "",
            f"Predicted standard deviations, for {self.assumed}:",
            self.accuracy().to_text(),
        ]
        return "\n".join(lines)

    def __str__(self) -> str:
        return self.summary()

    def __repr__(self) -> str:
        """Robot, duration and condition number in one line."""
        figures = f"{self.trajectory.duration:g} s, condition number {self.condition_number:.3g}"
        return f"Excitation('{self.robot}', {figures})"

    def _repr_html_(self) -> str:
        """Cautions and the predicted accuracy, for notebooks."""
        found = [f"{caution.severity.capitalize()}: {caution.sentence}" for caution in self.cautions]
        title = f"Predicted standard deviations, for {self.assumed}:"
        return html_card(repr(self), [self.checks_summary, *found, title], self.accuracy())


def _warning(code: str, where: str, message: str, remedy: str, evidence: Mapping[str, float]) -> Finding:
    return Finding(code=code, severity="warning", where=where, message=message, remedy=remedy, evidence=evidence)
