"""Panda, PUMA 560: designs within all limits, speed of value and gradient, predictions against planted truth.

Run from the repository's root: ``OPENBLAS_NUM_THREADS=1 python tests/campaigns/excitation_panda.py``. Ends with status
1 where a figure is missed.
"""

from __future__ import annotations

import sys
import time

import numpy as np

from dynid.excitation.constraints import build_constraints, measure_margins
from dynid.excitation.criteria import Criterion
from dynid.excitation.design import design_excitation
from dynid.excitation.design_problem import DesignProblem
from dynid.excitation.design_settings import SearchSettings
from dynid.excitation.excitation import Excitation
from dynid.excitation.limits import MotionLimits
from dynid.excitation.measured import Measured
from dynid.excitation.observation import with_smooth_friction
from dynid.excitation.trajectories.fourier import FourierTrajectory
from dynid.kernels import regressor
from dynid.parameters.base import base_parameters
from dynid.robot.model import Robot
from dynid.robot.zoo import panda, puma560
from dynid.terms.friction import Coulomb, Viscous
from dynid.terms.motors import Offset


def design() -> tuple[Robot, Excitation, bool]:
    robot = panda().with_terms(Viscous(), Coulomb())
    limits = MotionLimits.from_robot(robot, acceleration=7.5)
    begun = time.monotonic()
    plan = design_excitation(robot, limits, settings=SearchSettings(starts=2, time_limit_s=60))
    spent = time.monotonic() - begun
    times, _ = plan.trajectory.grid(5000)
    worst = min(m.relative for m in measure_margins(build_constraints(robot, limits), plan.trajectory.motion(times)))
    fits = plan.condition_number < 25 and spent < 75 and worst > -1e-4
    report(
        "Panda, condition number",
        f"{plan.condition_number:.2f}, {len(plan.information)} parameters, {spent:.0f} s",
        fits,
    )
    return robot, plan, fits


def speed(arm: Robot, criterion: Criterion) -> bool:
    robot = with_smooth_friction(arm)
    observation = Measured.joint_torques(robot).observation(robot)
    limits = MotionLimits.from_robot(robot)
    half = 0.5 * (limits.upper - limits.lower)
    family = FourierTrajectory.still(robot.dof, period_s=10, harmonics=5)
    problem = DesignProblem(family, observation, (), sizes=(half, limits.velocity, limits.acceleration), samples=1000)
    x = 0.3 * np.random.default_rng(0).normal(size=problem.size)
    spent = []
    for _ in range(300):
        begun = time.thread_time()
        problem.objective(x, criterion)
        spent.append(time.thread_time() - begun)
    median = 1e3 * float(np.median(spent))
    fits = median < 4.0
    what = f"{robot.name}, value and gradient, 1000 samples, {observation.size} columns, {criterion}"
    report(what, f"{median:.2f} ms", fits)
    return fits


def predictions(robot: Robot, plan: Excitation) -> bool:
    base = base_parameters(robot)
    rng = np.random.default_rng(0)
    start, end = plan.trajectory.recorded
    t = np.arange(start, end - 1e-9, 0.01)

    def deviation(trajectory: FourierTrajectory, runs: int) -> np.ndarray:
        W = regressor(robot, *trajectory.evaluate(t), columns=base.columns).reshape(-1, base.rank)
        return (rng.normal(size=(runs, len(W))) @ np.linalg.pinv(W).T).std(axis=0)

    ratio = deviation(plan.trajectory, 200) / plan.predicted_deviation
    fits = bool(np.all(np.abs(ratio - 1) < 0.2))
    report("observed over predicted deviation, 200 runs", f"{ratio.min():.3f} to {ratio.max():.3f}", fits)
    plain = design_excitation(robot, plan.limits, settings=SearchSettings(starts=1, time_limit_s=0.0))
    predicted = plain.predicted_deviation / plan.predicted_deviation
    observed = deviation(plain.trajectory, 200) / deviation(plan.trajectory, 200)
    agree = bool(abs(np.exp(np.mean(np.log(observed / predicted))) - 1) < 0.05)
    gain = np.exp(np.mean(np.log(predicted)))
    report("random over optimised deviation", f"predicted {gain:.2f}, observed in the same proportion", agree)
    return fits and agree


def report(what: str, found: str, fits: bool) -> None:
    sys.stdout.write(f"{'ok  ' if fits else 'MISS'} {what}: {found}\n")
    sys.stdout.flush()


if __name__ == "__main__":
    panda_robot, panda_plan, good = design()
    arms = [panda_robot, puma560().with_terms(Viscous(), Coulomb(), Offset())]
    quick = [speed(arm, c) for arm in arms for c in (Criterion("d-optimality"), Criterion("scaled-condition"))]
    sys.exit(0 if all([good, *quick, predictions(panda_robot, panda_plan)]) else 1)
