"""The whole workflow on a simulated arm with known truth: base parameters, motion, log, fit, load, C code."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path

import numpy as np

from dynid.cli.screen import MOST_ROWS
from dynid.errors import ExportError
from dynid.estimators.estimate import TWO_SIDED_95
from dynid.excitation.design import design_excitation
from dynid.excitation.limits import MotionLimits
from dynid.excitation.measured import Measured
from dynid.excitation.search import SearchSettings
from dynid.excitation.trajectories.fourier import FourierTrajectory
from dynid.export.c.c_package import generate_c
from dynid.identifiability.base import base_parameters
from dynid.identification.recipe import Recipe
from dynid.logs.recording import Recording
from dynid.payload.load import Load
from dynid.payload.payload import identify_payload
from dynid.processing.process import process
from dynid.processing.simulation import Noise, simulate_experiment
from dynid.robot.inertia import Inertia
from dynid.robot.model import Robot
from dynid.robot.term_names import add_terms
from dynid.robot.zoo import panda
from dynid.tables import Table
from dynid.workflows.identification_run import IdentificationRun, Identify
from dynid.workflows.protocol import run
from dynid.workflows.run_folder import RunRequest

Tell = Callable[[str], None]
"""Called with a line about each stage."""
SEARCH = SearchSettings(starts=1, outer=1, iterations=10, time_limit_s=3600.0)
"""Effort of the demonstration's searches (convention): few counted steps and no limit of time within reach. Rounding
errors grow from step to step: after 10 of them the motions of two versions of SciPy differ by 1e-8 rad, after 40 by
0.06 rad."""
COEFFICIENT_STEP = 1e-4
"""Step to which the coefficients of the motions are rounded [rad, rad/s]: far above that difference, and far below
the distance to the limits, which are scaled to 80 %. So a seed gives the same motion with every library version."""
OBJECT = Inertia.from_com(1.5, [0.02, -0.01, 0.08], np.diag([4e-3, 5e-3, 3e-3]))
"""The object in the gripper, in the frame of the last link."""


def list_results(truth: Robot, run: IdentificationRun, load: Load) -> str:
    """Write the verdict, and a table of true and identified values.

    The table has the base parameters with the smallest relative standard deviations, and the load.
    """
    fit = run.fit
    check = run.validation
    estimate = fit.estimate
    planted = fit.base.project(truth.parameter_vector)  # the true base parameters
    low, high = estimate.interval().T
    covered = 100.0 * float(np.mean((low <= planted) & (planted <= high)))
    columns = (estimate.names, planted.tolist(), estimate.values.tolist(), low.tolist(), high.tolist())
    every = list(zip(*columns, estimate.units, strict=True))
    rows = [every[k] for k in sorted(np.argsort(estimate.relative_stderr)[:MOST_ROWS])]
    of_load = [("mass of the load", OBJECT.mass, load.mass, load.mass_stderr, "kg")]
    com = zip("xyz", OBJECT.com.tolist(), load.com.tolist(), load.com_stderr.tolist(), strict=True)
    of_load += [(f"centre of mass of the load, {axis}", *figures, "m") for axis, *figures in com]
    for name, true, value, std, unit in of_load:
        half = TWO_SIDED_95 * std
        rows.append((name, true, value, value - half, value + half, unit))
    return "\n".join([
        f"Validation on another motion: {'none' if check is None else check.verdict}.", "",
        Table.of(["parameter", "true", "identified", "95 % from", "to", "unit"], rows).to_text(), "",
        f"The table shows the {MOST_ROWS} best known of {len(every)} base parameters, and the load. The 95 % "
        f"intervals contain the true value for {covered:.0f} % of all base parameters.",
    ])  # fmt: skip


def plant_truth() -> tuple[Robot, Robot]:
    """Make the true robot, with friction and other masses, and the robot of the data sheet."""
    rng = np.random.default_rng(0)
    sheet = add_terms(panda())
    theta = sheet.parameter_vector.copy()
    theta[: 10 * sheet.dof] *= np.repeat(rng.uniform(0.8, 1.25, sheet.dof), 10)  # ten parameters per link
    joints = theta[10 * sheet.dof :].reshape(sheet.dof, 4)  # a view: rotor inertia, viscous, dry friction, offset
    joints[:] = rng.uniform([0.05, 0.2, 0.3, -0.2], [0.3, 1.0, 1.2, 0.2], joints.shape)
    return sheet.with_parameters(theta), sheet


def run_demo(folder: Path, tell: Tell, *, force: bool = False) -> tuple[IdentificationRun, str]:
    """Run the whole workflow; returns the identification, and the results as text.

    Args:
        folder: Output folder; the model comes to ``model``, the C code to ``code``.
        tell: Called with one line before each stage.
        force: Whether the results of an earlier demonstration may be replaced.
    """
    start = time.perf_counter()
    truth, sheet = plant_truth()
    tell(f"robot: {sheet!r}, with rotor inertia, friction and offset in every joint")
    base = base_parameters(sheet)
    tell(f"base parameters: {base.rank} combinations of {len(base.layout)} standard parameters")
    measured = Measured.joint_torques(sheet, base=base)
    limits = MotionLimits.from_robot(sheet, scale=0.8)
    motions = []
    for k, (period, harmonics) in enumerate(((10.0, 5), (8.0, 4))):
        plan = design_excitation(sheet, limits, period_s=period, harmonics=harmonics, seed=k,
                                 observation=measured, settings=SEARCH)  # fmt: skip
        tell(f"exciting motion {k + 1}: condition number {plan.condition_number:.1f} within all limits")
        assert isinstance(plan.trajectory, FourierTrajectory)  # for the type checker
        steps = np.round(plan.trajectory.coefficients / COEFFICIENT_STEP)
        motions.append(plan.trajectory.with_coefficients(steps * COEFFICIENT_STEP))
    log, other = (_simulate_log(truth, motion, k) for k, motion in enumerate(motions))
    task = Identify(sheet, [log], Recipe.bare(delay_s="auto"), [other])
    found = run(task, RunRequest(path=folder / "model", force=force))
    tell(f"identified from {len(log.time)} samples: training error {found.fit.training_error[-1]:.2f} %")
    holding = truth.with_body("object", parent=truth.bodies[-1].joint.child, inertia=OBJECT)
    loaded, unloaded = (
        process(one, effort_delay_s=TORQUE_DELAY_S) for one in (_simulate_log(holding, motions[0], 2), log)
    )
    load = identify_payload(sheet, loaded=loaded, unloaded=unloaded)
    tell(f"load identified from joint torques: {load.mass:.3f} kg (true value {OBJECT.mass} kg)")
    package = generate_c(found.fit.identified, functions=("inverse_dynamics", "gravity"))
    package.write(folder / "code", force=force)
    try:
        package.check(200)
        code = f"compiled, and equal to Python on 200 states within {package.tolerance:.0e} of the torques"
    except ExportError as error:
        code = f"written but not compiled: {error.reason}"
    text = [list_results(truth, found, load), f"C code: {code}.",
            f"Report to open in a browser: {folder / 'model' / 'report.html'}",
            f"The demonstration took {time.perf_counter() - start:.1f} s."]  # fmt: skip
    return found, "\n".join(text)


TORQUE_DELAY_S = 10e-3
"""Delay of the simulated torques [s] (convention: of the size that real loggers have)."""


def _simulate_log(truth: Robot, trajectory: FourierTrajectory, seed: int) -> Recording:
    """Simulate a log at 500 Hz: encoders with 21 or 22 bits per turn, torques with noise of 0.2 N m, no velocities."""
    step = 2e-6  # of the encoders [rad]
    noise = Noise(position=step / 4, effort=0.2)
    return simulate_experiment(truth, trajectory, rate_hz=500.0, noise=noise, quantisation=step,
                               delay_s=TORQUE_DELAY_S, with_velocity=False, seed=seed)  # fmt: skip
