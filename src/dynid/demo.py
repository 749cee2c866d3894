"""The whole job on a built-in arm with planted truth: what can be known, the motion, the log, the fit, the proof."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from dynid.data.processing import process
from dynid.data.recording import Experiment
from dynid.data.simulation import Noise, simulate_experiment
from dynid.excitation.design import design_excitation
from dynid.excitation.limits import MotionLimits
from dynid.excitation.trajectory import Trajectory
from dynid.files import write_atomically
from dynid.identification.links import Identification, identify
from dynid.identification.validation import Validation, validate
from dynid.parameters.base import base_parameters
from dynid.report.report import write_report
from dynid.report.torques import torque_picture
from dynid.robot.joint_models import Coulomb, Offset, RotorInertia, Viscous
from dynid.robot.model import Robot
from dynid.robot.urdf_writer import write_urdf
from dynid.robot.zoo import panda
from dynid.tables import Table

__all__ = ["DemoResult", "plant_truth", "run_demo"]

Tell = Callable[[str], None]
RATE_HZ = 500.0
ENCODER_STEP = 2e-6
"""Resolution of the simulated encoders [rad]."""
TORQUE_NOISE = 0.2
"""Standard deviation of the simulated torque sensors [N m]."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class DemoResult:
    """What the demonstration ended with."""

    truth: Robot
    fit: Identification
    check: Validation
    urdf: Path
    picture: Path
    report: Path
    seconds: float

    @property
    def passed(self) -> bool:
        """Whether the identified robot proved itself."""
        return self.check.passed

    def coverage(self) -> float:
        """Share of base parameters whose 95 % interval holds the planted value."""
        interval = self.fit.estimate.interval()
        planted = self.fit.base.project(self.truth.parameter_vector)
        return float(np.mean((interval[:, 0] <= planted) & (planted <= interval[:, 1])))

    def table(self, rows: int = 12) -> Table:
        """Planted against found, for the base parameters of the largest signal."""
        estimate = self.fit.estimate
        planted = self.fit.base.project(self.truth.parameter_vector)
        interval = estimate.interval()
        order = np.argsort(estimate.relative_stderr)[:rows]
        return Table.of(
            ["parameter", "planted", "found", "95 % from", "to", "unit"],
            [
                (
                    estimate.names[k],
                    float(planted[k]),
                    float(estimate.values[k]),
                    float(interval[k, 0]),
                    float(interval[k, 1]),
                    estimate.units[k],
                )
                for k in sorted(order)
            ],
        )

    def text(self) -> str:
        """The closing page."""
        estimate = self.fit.estimate
        return "\n".join(
            [
                self.table().to_text(),
                "",
                f"The {min(12, len(estimate.names))} best known of {len(estimate.names)} base parameters. "
                f"95 % intervals hold the planted value for {100 * self.coverage():.0f} % of all of them.",
                f"Validation on another motion: {self.check.verdict}.",
                f"Identified robot: {self.urdf}",
                f"Report to open in a browser: {self.report}",
                f"{self.seconds:.1f} s from nothing to the identified robot.",
            ]
        )


def plant_truth(seed: int = 0) -> tuple[Robot, Robot]:
    """The robot as it is, with friction and unknown masses, and the robot as its data sheet has it."""
    rng = np.random.default_rng(seed)
    sheet = panda().with_joint_models(RotorInertia(), Viscous(), Coulomb(), Offset())
    theta = sheet.parameter_vector.copy()
    theta[: 10 * sheet.dof] *= np.repeat(rng.uniform(0.8, 1.25, sheet.dof), 10)
    joints = theta[10 * sheet.dof :].reshape(sheet.dof, 4)
    joints[:] = rng.uniform([0.05, 0.2, 0.3, -0.2], [0.3, 1.0, 1.2, 0.2], joints.shape)
    return sheet.with_parameters(theta), sheet


def run_demo(folder: Path, tell: Tell, *, seed: int = 0) -> DemoResult:
    """Run the whole job.

    Args:
        folder: Where results are written; made if missing.
        tell: Called with one line before each stage.
        seed: Of everything random.
    """
    start = time.perf_counter()
    folder.mkdir(parents=True, exist_ok=True)
    truth, sheet = plant_truth(seed)
    tell(f"robot: {sheet!r}, with rotor inertia, friction and offset in every joint")
    base = base_parameters(sheet)
    tell(f"what can be known: {base.rank} combinations of {len(base.layout)} parameters")
    limits = MotionLimits.from_robot(sheet, scale=0.8)
    plan = design_excitation(sheet, limits, base=base, period_s=10.0, harmonics=5, seed=seed, time_limit_s=10.0)
    tell(f"exciting motion: condition number {plan.condition_number:.1f} within all limits")
    run = _measure(truth, plan.trajectory, seed)
    other = design_excitation(sheet, limits, base=base, period_s=8.0, harmonics=4, seed=seed + 1, time_limit_s=4.0)
    held_out = _measure(truth, other.trajectory, seed + 1)
    tell(f"two simulated runs: {run.samples} and {held_out.samples} samples at {run.rate_hz:g} Hz, with sensor noise")
    fit = identify(sheet, run, base=base)
    tell(f"identified: training error {fit.training_error[-1]:.2f} %")
    check = validate(fit, held_out)
    urdf, picture = folder / "panda_identified.urdf", folder / "torques.svg"
    write_urdf(fit.identified, urdf, force=True)
    write_atomically(picture, torque_picture(fit, held_out, joints=4), force=True)
    report = write_report(fit, folder / "report.html", check, held_out, force=True)
    seconds = time.perf_counter() - start
    return DemoResult(truth=truth, fit=fit, check=check, urdf=urdf, picture=picture, report=report, seconds=seconds)


def _measure(truth: Robot, trajectory: Trajectory, seed: int) -> Experiment:
    recording = simulate_experiment(
        truth,
        trajectory,
        rate_hz=RATE_HZ,
        noise=Noise(position=ENCODER_STEP / 4, effort=TORQUE_NOISE),
        quantisation=ENCODER_STEP,
        with_velocity=False,
        seed=seed,
    )
    return process(recording)
