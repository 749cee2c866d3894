"""The result of a design: a motion, its predicted accuracy, its margins to the limits, and how they are written."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass
from itertools import compress
from pathlib import Path
from typing import Any

import numpy as np

from dynid.array_types import Floats
from dynid.decompositions import eigvalsh
from dynid.errors import ArgumentError, ExportError
from dynid.excitation.base import Margin
from dynid.excitation.criteria import Criterion
from dynid.excitation.energy_points import PointDesign
from dynid.excitation.limits import MotionLimits
from dynid.excitation.search import Step
from dynid.excitation.trajectories.fourier import FourierTrajectory
from dynid.excitation.trajectories.quintic import QuinticTrajectory
from dynid.excitation.trajectories.trajectory import SampledTrajectory, Trajectory
from dynid.findings import Finding
from dynid.safe_files import write_atomically
from dynid.tables import Table, html_card

_LEAST_ABSURD_DEVIATION = 100.0
"""Predicted standard deviation of an inertial parameter from which on it is absurd [kg, kg m, kg m^2] (convention: the
parameters of usual arms are smaller)."""
PLAN_FILES = ("trajectory.csv", "trajectory.yaml", "trajectory.script", "plan.txt", "plan.json")
"""Names of all files that a plan may write; the script is for robots with six joints only."""
LARGEST_NUMBER_COUNT = 3e7
"""Largest count of numbers in one trajectory file: some hundred megabytes. Convention."""
_LEAST_SPEED_SHARE = 0.2
"""Share of its speed limit below which a joint is called slow, in either direction. Convention."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Excitation:
    """A designed motion with its predicted accuracy and its margins to the limits."""

    robot: str
    """Name of the robot."""
    trajectory: Trajectory
    """The motion, from rest to rest."""
    limits: MotionLimits
    """The limits that it keeps."""
    criterion: Criterion
    """The criterion that was minimised."""
    value: float
    """Value of the criterion for this motion."""
    information: Floats
    """(b, b) information matrix of the recorded part, plus that of earlier runs; the prior of the next run."""
    parameter_names: tuple[str, ...]
    """(b,) names of the parameters that the motion shall reveal."""
    parameter_units: tuple[str, ...]
    """(b,) their SI units."""
    assumed: str
    """A phrase: the noise and the rate of the recording that the predicted deviations assume."""
    margins: tuple[Margin, ...]
    """Closest approach to every limit, checked at ten times as many samples as the design."""
    coverage: Floats
    """(n, 2) peak speed of each joint, forwards and backwards, as a share of its limit."""
    seed: int
    """Seed of the random starts."""
    history: tuple[Step, ...]
    """Every outer iteration of every start."""
    interrupted: bool = False
    """Whether an interrupt (Ctrl-C) ended the search."""
    not_checked: tuple[str, ...] = ()
    """One phrase for each kind of limit that the motion was not checked against."""
    points: PointDesign | None = None
    """The points that the motion passes; None unless it was designed by "energy-points"."""

    @property
    def condition_number(self) -> float:
        """Condition number of the weighted observation matrix with columns scaled to unit length."""
        # the information is the square of that matrix: hence the root
        d = np.sqrt(np.diag(self.information))
        eigenvalues = eigvalsh(self.information / np.outer(d, d))
        return float(np.sqrt(eigenvalues[-1] / max(eigenvalues[0], np.finfo(float).tiny)))

    @property
    def predicted_deviation(self) -> Floats:
        """(b,) predicted standard deviation of each parameter, in its unit."""
        return np.sqrt(np.diag(np.linalg.inv(self.information)))

    @property
    def tightest(self) -> Margin | None:
        """The limit that the motion comes closest to, relative to its size; None without limits."""
        return min(self.margins, key=lambda margin: margin.relative, default=None)

    def sample(self, rate_hz: float) -> SampledTrajectory:
        """Sample the motion at a uniform rate [Hz], with the robot's joint names."""
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
        return (*self._slow_joints(), *self._absurd_deviations(), *self._unbounded_acceleration())

    def _slow_joints(self) -> Iterator[Finding]:
        """Warn of joints that stay slow in one direction."""
        slowest = np.where(np.isfinite(self.limits.velocity), self.coverage.min(axis=1), np.inf)
        slow = np.flatnonzero(slowest < _LEAST_SPEED_SHARE)
        if not len(slow):
            return
        reached = ", ".join(f"{self.limits.joint_names[j]} ({100 * slowest[j]:.0f} %)" for j in slow)
        message = (
            f"{reached}: so little of the speed limit is reached that viscous friction and inertia about "
            "this joint will be uncertain, whatever the condition number"
        )
        remedy = "Take a shorter period, or search longer."
        if self.points is not None:
            remedy = "Raise the acceleration limit."
        yield _warning("slow-joint", "velocity", message, remedy, {"smallest share of a speed limit": slowest.min()})

    def _absurd_deviations(self) -> Iterator[Finding]:
        """Warn of parameters whose predicted standard deviation is larger than any value that a robot arm can have."""
        inertial = np.array([unit.startswith("kg") for unit in self.parameter_units], dtype=bool)
        with np.errstate(all="ignore"):
            deviation = np.nan_to_num(self.predicted_deviation, nan=np.inf)
        absurd = inertial & (deviation >= _LEAST_ABSURD_DEVIATION)
        if not absurd.any():
            return
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
        yield _warning("absurd-deviation", "parameters", message, remedy, evidence)

    def _unbounded_acceleration(self) -> Iterator[Finding]:
        """Warn of joints with neither an acceleration limit nor a torque limit."""
        free = np.isinf(self.limits.acceleration) & np.isinf(self.limits.torque)
        if names := ", ".join(compress(self.limits.joint_names, free)):
            message = (
                f"nothing but the period bounds the acceleration of {names}: neither a limit of its own nor torque"
            )
            yield _warning(
                "unbounded-acceleration", "acceleration", message, "State acceleration or torque limits.", {}
            )

    @property
    def speed_text(self) -> str:
        """A phrase: the share of the speed limits that is used, or the peak speeds where there are no limits."""
        limited = np.isfinite(self.limits.velocity)
        if limited.any():
            rest = "" if limited.all() else " of the joints that have one"
            slowest = int(np.argmin(np.where(limited, self.coverage.min(axis=1), np.inf)))
            share = f"{100 * self.coverage[slowest].min():.0f} % of the limit or more{rest}, in both directions"
            return f"{share} (least: {self.limits.joint_names[slowest]})"
        peaks = np.abs(self.sample(100.0).dq).max(axis=0)
        return f"{peaks.min():.3g} rad/s (m/s where a joint slides) or more; there is no limit"

    def accuracy(self) -> Table:
        """Make a table of the predicted standard deviations, one row per unit."""
        deviation = self.predicted_deviation
        units = np.array(self.parameter_units)
        rows = []
        for unit in dict.fromkeys(self.parameter_units):
            here = np.flatnonzero(units == unit)
            worst = here[np.argmax(deviation[here])]
            row = [unit, str(len(here)), f"{np.median(deviation[here]):.3g}", f"{deviation[worst]:.3g}"]
            rows.append([*row, self.parameter_names[worst]])
        return Table.of(["unit", "parameters", "median", "largest", "of"], rows)

    def summary(self) -> str:
        """Write a page of text: condition number, margins, checks and predicted accuracy."""
        start, end = self.trajectory.recorded
        # margins in rising order: the first one kept of each limit is the nearest
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

    def contents(self) -> dict[str, Any]:
        """Collect the plan as plain data: coefficients, criterion, margins, predicted deviations, history."""
        history = [[s.start, s.iteration, s.value if np.isfinite(s.value) else None, s.elapsed_s] for s in self.history]
        return {
            "robot": self.robot,
            "condition_number": self.condition_number,
            "criterion": str(self.criterion),
            "value": self.value,
            "duration_s": self.trajectory.duration,
            "recorded_s": list(self.trajectory.recorded),
            "joint_names": list(self.limits.joint_names),
            **self._motion_contents(),
            "speed_coverage": self.coverage.tolist(),
            "assumed": self.assumed,
            "units": dict(zip(self.parameter_names, self.parameter_units, strict=True)),
            "predicted_deviation": dict(zip(self.parameter_names, self.predicted_deviation.tolist(), strict=True)),
            "checked": list(self.checked),
            "not_checked": list(self.not_checked),
            "cautions": [caution.message for caution in self.cautions],
            "finding_codes": [caution.code for caution in self.cautions],
            "margins": [asdict(margin) for margin in self.margins],
            "seed": self.seed,
            "interrupted": self.interrupted,
            "history": {"columns": ["start", "iteration", "value", "elapsed_s"], "rows": history},
        }

    def _motion_contents(self) -> dict[str, Any]:
        """Collect what defines the motion: coefficients of a series, or points with the durations between them."""
        path = self.trajectory
        if isinstance(path, FourierTrajectory):
            return {"coefficients": path.coefficients.tolist()}
        if self.points is None or not isinstance(path, QuinticTrajectory):
            return {}
        points = self.points.sequence
        return {
            "points": {"q": path.q.tolist(), "dq": path.dq.tolist(), "durations_s": path.durations.tolist()},
            "energies": {
                "condition_number": points.condition_number,
                "equilibrium": points.equilibrium if np.isfinite(points.equilibrium) else None,
                "differences": len(points.W),
                "box_share": self.points.box_share,
                "acceleration_share": self.points.acceleration_share,
            },
        }

    def write(self, folder: str | os.PathLike[str], *, rate_hz: float, force: bool = False) -> list[Path]:
        """Write the motion as CSV, ROS JointTrajectory and, for six joints, URScript; the plan as text and JSON.

        Args:
            folder: An existing folder.
            rate_hz: Samples per second.
            force: Whether existing files are overwritten.

        Returns:
            The paths of the written files.

        Raises:
            ArgumentError: The rate does not fit the motion.
            ExportError: One of the files exists, and ``force`` is False; nothing is written then.

        Example:
            >>> settings = dynid.excitation.SearchSettings(starts=1, time_limit_s=0.5)
            >>> plan = dynid.design_excitation(robot, limits, period_s=5, harmonics=2, settings=settings)
            >>> len(plan.write(folder, rate_hz=100)) > 0
            True
        """
        check_rate(self.trajectory, rate_hz)
        target = Path(folder)
        existing = [name for name in PLAN_FILES if os.path.lexists(target / name)]
        if existing and not force:
            remedy = "Choose another folder, or pass force=True."
            raise ExportError("the file exists already", path=target / existing[0], remedy=remedy)
        samples = self.sample(rate_hz)
        samples.to_csv(target / "trajectory.csv", force=force)
        rows = zip(self.parameter_names, self.predicted_deviation, self.parameter_units, strict=True)
        cells = [[name, f"{deviation:.3g}", unit] for name, deviation, unit in rows]
        deviations = Table.of(["parameter", "predicted standard deviation", "unit"], cells).to_text()
        texts = {
            "trajectory.yaml": samples.ros_yaml(),
            "plan.txt": f"{self.summary()}\n\n{deviations}\n",
            "plan.json": json.dumps(self.contents(), indent=1) + "\n",
        }
        if self.trajectory.dof == 6:
            way = "The way from where the robot stands to the start (movej) is not checked at all."
            texts["trajectory.script"] = f"# {self.checks_summary}\n# {way}\n{samples.urscript()}"
        for name, content in texts.items():
            write_atomically(target / name, content, force=force)
        written = [name for name in PLAN_FILES if name == "trajectory.csv" or name in texts]
        if force:  # a script of an earlier plan must not remain
            for name in set(PLAN_FILES) - set(written):
                (target / name).unlink(missing_ok=True)
        return [target / name for name in written]

    def __str__(self) -> str:
        return self.summary()

    def __repr__(self) -> str:
        """Robot, duration and condition number in one line."""
        figures = f"{self.trajectory.duration:g} s, condition number {self.condition_number:.3g}"
        return f"Excitation('{self.robot}', {figures})"

    def _repr_html_(self) -> str:
        """Show the cautions and the predicted accuracy in notebooks."""
        found = [f"{caution.severity.capitalize()}: {caution.sentence}" for caution in self.cautions]
        title = f"Predicted standard deviations, for {self.assumed}:"
        return html_card(repr(self), [self.checks_summary, *found, title], self.accuracy())


def check_rate(trajectory: Trajectory, rate_hz: float) -> None:
    """Refuse rates at which a written motion would not be the designed one, or would fill the disk.

    Raises:
        ArgumentError: The rate is too low or too high; the message states the bounds.
    """
    lowest = trajectory.lowest_rate_hz
    # a file has q, dq and ddq of every joint
    highest = LARGEST_NUMBER_COUNT / (3.0 * trajectory.dof * trajectory.duration)
    if not lowest <= rate_hz <= highest:
        raise ArgumentError(
            f"a rate of {rate_hz:g} Hz does not fit this motion", remedy=f"Use {lowest:.3g} to {highest:.3g} Hz."
        )


def _warning(code: str, where: str, message: str, remedy: str, evidence: Mapping[str, float]) -> Finding:
    return Finding(code=code, severity="warning", where=where, message=message, remedy=remedy, evidence=evidence)
