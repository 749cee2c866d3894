"""Value and exact gradient of an excitation's criterion: what the design of a motion computes thousands of times."""

from __future__ import annotations

import numpy as np

from benchmarks.speed.case import Case
from dynid import MotionLimits
from dynid.excitation import Criterion, Measured
from dynid.excitation.measured import with_smooth_friction
from dynid.excitation.search import DesignProblem
from dynid.excitation.trajectories.fourier import FourierTrajectory

SAMPLES = 1000
"""Samples of the motion."""
CALLS = 20
"""Evaluations in one measurement (convention: some ten milliseconds)."""


def measure_excitation(case: Case) -> float:
    """Measure the seconds of one value and gradient: base and friction columns, Fourier series of five harmonics."""
    robot = with_smooth_friction(case.with_friction)
    observation = Measured.joint_torques(robot).observation(robot)
    limits = MotionLimits.from_robot(robot)
    family = FourierTrajectory.still(robot.dof, period_s=10, harmonics=5)
    problem = DesignProblem(family, observation, limits, samples=SAMPLES)
    x = 0.3 * np.random.default_rng(0).normal(size=problem.size)
    criterion = Criterion("d-optimality")
    return case.best(lambda: [problem.objective(x, criterion) for _ in range(CALLS)], CALLS)
