"""The whole workflow on a simulated arm with known truth: base parameters, motion, log, fit, load, C code."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from dynid.diagnosis.log_check import check_recording
from dynid.errors import ExportError
from dynid.excitation.design import design_excitation
from dynid.excitation.design_settings import DesignGoal, SearchSettings
from dynid.excitation.excitation import Excitation
from dynid.excitation.limits import MotionLimits
from dynid.excitation.measured import Measured
from dynid.excitation.trajectories.fourier import FourierTrajectory
from dynid.excitation.trajectories.trajectory import Trajectory
from dynid.export.c.c_package import CPackage, generate_c
from dynid.links.identify import Identification, identify
from dynid.links.recipe import Recipe
from dynid.links.validation import Validation, validate
from dynid.load.load_study import LoadStudy, study_payload
from dynid.logs.recording import Recording
from dynid.parameters.base import base_parameters
from dynid.processing.process import process
from dynid.processing.simulation import Noise, simulate_experiment
from dynid.report.load_sections import load_chapter
from dynid.report.report import write_report
from dynid.robot.formats.mjcf.write import write_mjcf
from dynid.robot.formats.urdf import write_urdf
from dynid.robot.inertia import Inertia
from dynid.robot.model import Robot
from dynid.robot.zoo import panda
from dynid.tables import Table
from dynid.terms.friction import Coulomb, Viscous
from dynid.terms.motors import Offset, RotorInertia

Tell = Callable[[str], None]
RATE_HZ = 500.0
"""Sampling rate of the simulated logs [Hz]; a convention, usual for robot loggers."""
ENCODER_STEP = 2e-6
"""Resolution of the simulated encoders [rad]; a convention, about 21 bits per turn."""
TORQUE_NOISE = 0.2
"""Standard deviation of the simulated torque sensors [N m]; a convention."""
TORQUE_DELAY_S = 10e-3
"""Delay of the simulated torques [s]; a convention, of the size that real loggers have."""
SEARCH = SearchSettings(starts=1, outer=1, iterations=10, time_limit_s=3600.0)
"""Effort of the demonstration's searches (convention): few counted steps and no limit of time within reach. Rounding
errors grow from step to step: after 10 of them the motions of two versions of SciPy differ by 1e-8 rad, after 40 by
0.06 rad."""
COEFFICIENT_STEP = 1e-4
"""Step to which the coefficients of the motions are rounded [rad, rad/s]: far above that difference, and far below
the distance to the limits, which are scaled to 80 %. So a seed gives the same motion with every library version."""
OBJECT = Inertia.from_com(1.5, [0.02, -0.01, 0.08], np.diag([4e-3, 5e-3, 3e-3]))
"""The object in the gripper, in the frame of the last link."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class DemoResult:
    """Results of the demonstration."""

    truth: Robot
    fit: Identification
    check: Validation
    study: LoadStudy
    """The load study of the object in the gripper."""
    code: str
    """Result of compiling the C code, as text."""
    files: tuple[Path, ...]
    """Models, C code, picture."""
    report: Path
    seconds: float

    @property
    def passed(self) -> bool:
        """Whether the validation passed."""
        return self.check.passed

    def coverage(self) -> float:
        """Share of base parameters whose 95 % interval contains the true value."""
        interval = self.fit.estimate.interval()
        planted = self.fit.base.project(self.truth.parameter_vector)
        return float(np.mean((interval[:, 0] <= planted) & (planted <= interval[:, 1])))

    def table(self, rows: int = 12) -> Table:
        """Table of true and identified values: the best known base parameters, and the load."""
        estimate, load = self.fit.estimate, self.study.load
        planted = self.fit.base.project(self.truth.parameter_vector)
        interval = estimate.interval()
        best = sorted(np.argsort(estimate.relative_stderr)[:rows])
        cells = [
            (
                estimate.names[k],
                float(planted[k]),
                float(estimate.values[k]),
                *map(float, interval[k]),
                estimate.units[k],
            )
            for k in best
        ]
        what = [("mass of the load", OBJECT.mass, load.mass, load.mass_stderr, "kg")]
        com = zip("xyz", OBJECT.com, load.com, load.com_stderr, strict=True)
        what += [(f"centre of mass of the load, {axis}", float(p), float(f), float(s), "m") for axis, p, f, s in com]
        cells += [(name, p, f, f - 1.96 * s, f + 1.96 * s, unit) for name, p, f, s, unit in what]
        return Table.of(["parameter", "true", "identified", "95 % from", "to", "unit"], cells)

    def text(self) -> str:
        """Summary as text."""
        count = len(self.fit.estimate.names)
        return "\n".join(
            [
                self.table().to_text(),
                "",
                f"The table shows the {min(12, count)} best known of {count} base parameters, and the load. "
                f"The 95 % intervals contain the true value for {100 * self.coverage():.0f} % of all base parameters.",
                f"Validation on another motion: {self.check.verdict}.",
                f"C code: {self.code}.",
                f"Files: {', '.join(str(path) for path in self.files)}",
                f"Report to open in a browser: {self.report}",
                f"The demonstration took {self.seconds:.1f} s.",
            ]
        )


def plant_truth(seed: int = 0) -> tuple[Robot, Robot]:
    """Make the true robot, with friction and other masses, and the robot of the data sheet."""
    rng = np.random.default_rng(seed)
    sheet = panda().with_terms(RotorInertia(), Viscous(), Coulomb(), Offset())
    theta = sheet.parameter_vector.copy()
    theta[: 10 * sheet.dof] *= np.repeat(rng.uniform(0.8, 1.25, sheet.dof), 10)
    joints = theta[10 * sheet.dof :].reshape(sheet.dof, 4)
    joints[:] = rng.uniform([0.05, 0.2, 0.3, -0.2], [0.3, 1.0, 1.2, 0.2], joints.shape)
    return sheet.with_parameters(theta), sheet


def run_demo(folder: Path, tell: Tell, *, seed: int = 0) -> DemoResult:
    """Run the whole workflow.

    Args:
        folder: Output folder; made if it is missing.
        tell: Called with one line before each stage.
        seed: Seed of all random numbers.
    """
    start = time.perf_counter()
    folder.mkdir(parents=True, exist_ok=True)
    truth, sheet = plant_truth(seed)
    tell(f"robot: {sheet!r}, with rotor inertia, friction and offset in every joint")
    base = base_parameters(sheet)
    tell(f"base parameters: {base.rank} combinations of {len(base.layout)} standard parameters")
    limits = MotionLimits.from_robot(sheet, scale=0.8)
    plan = design_excitation(
        sheet,
        limits,
        period_s=10.0,
        harmonics=5,
        seed=seed,
        goal=DesignGoal(observation=Measured.joint_torques(sheet, base=base)),
        settings=SEARCH,
    )
    tell(f"exciting motion: condition number {plan.condition_number:.1f} within all limits")
    other = design_excitation(
        sheet,
        limits,
        period_s=8.0,
        harmonics=4,
        seed=seed + 1,
        goal=DesignGoal(observation=Measured.joint_torques(sheet, base=base)),
        settings=SEARCH,
    )
    motion, other_motion = _rounded(plan), _rounded(other)
    first = _simulate_log(truth, motion, seed)
    delay = _gate(sheet, first, tell)  # a property of the logger, equal for all runs
    run = process(first, effort_delay_s=delay)
    held_out = process(_simulate_log(truth, other_motion, seed + 1), effort_delay_s=delay)
    fit = identify(sheet, run, Recipe.bare(), base=base)
    tell(f"identified from {run.samples} samples: training error {fit.training_error[-1]:.2f} %")
    check = validate(fit, held_out)
    tell(f"validated on {held_out.samples} samples of a held-out motion: error {check.relative_error:.2f} %")
    holding = truth.with_body("object", parent=truth.bodies[-1].joint.child, inertia=OBJECT)
    loaded = process(_simulate_log(holding, motion, seed + 2), effort_delay_s=delay)
    study = study_payload(sheet, loaded=loaded, unloaded=run)
    tell(f"load identified from joint torques: {study.load.mass:.3f} kg (true value {OBJECT.mass} kg)")
    files, code = _write_files(fit, folder)
    tell(f"C code {code}")
    report = write_report(fit, folder / "report.html", check, held_out, extra=[load_chapter(study)], force=True)
    seconds = time.perf_counter() - start
    return DemoResult(
        truth=truth, fit=fit, check=check, study=study, code=code, files=files, report=report, seconds=seconds
    )


def _rounded(plan: Excitation) -> Trajectory:
    """The designed motion with coefficients of few digits."""
    trajectory = plan.trajectory
    assert isinstance(trajectory, FourierTrajectory)
    steps = np.round(trajectory.coefficients / COEFFICIENT_STEP)
    return trajectory.with_coefficients(steps * COEFFICIENT_STEP)


def _simulate_log(truth: Robot, trajectory: Trajectory, seed: int) -> Recording:
    return simulate_experiment(
        truth,
        trajectory,
        rate_hz=RATE_HZ,
        noise=Noise(position=ENCODER_STEP / 4, effort=TORQUE_NOISE),
        quantisation=ENCODER_STEP,
        delay_s=TORQUE_DELAY_S,
        with_velocity=False,
        seed=seed,
    )


def _gate(robot: Robot, recording: Recording, tell: Tell) -> float:
    """Check a log; returns the delay of the torques [s]."""
    gate = check_recording(recording, robot)
    delays = [1e-3 * finding.evidence["amount [ms]"] for finding in gate.about("delay")]
    verdict = f"usable, torques delayed by {1e3 * delays[0]:.1f} ms" if gate.ok and delays else str(gate)
    tell(f"simulated log of {len(recording.time)} samples with noise, quality checks: {verdict}")
    return delays[0] if delays else 0.0


def _write_files(fit: Identification, folder: Path) -> tuple[tuple[Path, ...], str]:
    """Write models and C code of the identified robot; returns the paths and the result of compiling."""
    urdf, mjcf = (folder / name for name in ("panda_identified.urdf", "panda_identified.xml"))
    write_urdf(fit.identified, urdf, force=True)
    write_mjcf(fit.identified, mjcf, force=True)
    package = generate_c(fit.identified, functions=("inverse_dynamics", "gravity"))
    code = package.write(folder / "code", force=True)
    return (urdf, mjcf, code), _compile(package)


def _compile(package: CPackage) -> str:
    try:
        package.check(200)
    except ExportError as error:
        return f"written but not compiled: {error.reason}"
    return f"compiled, and equal to Python on 200 states within {package.tolerance:.0e} of the torques"
