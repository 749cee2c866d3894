"""Do 95 % intervals cover? Robots of known parameters, noisy positions and torques, many runs.

Run ``python tests/campaigns/coverage.py [runs per robot]`` (1000 by default); prints one line per robot.
"""

from __future__ import annotations

import os
import sys
from concurrent.futures import ProcessPoolExecutor

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # the matrices are small: more threads only wait for one another

import numpy as np
from numpy.typing import NDArray

from dynid.estimation.equations import build_equations
from dynid.estimation.linear.least_squares import WLS
from dynid.parameters.base import base_parameters
from dynid.processing.process import process
from dynid.processing.simulation import Noise, simulate_experiment, sum_of_sines
from dynid.robot import zoo
from dynid.terms.friction import Coulomb, Viscous
from dynid.terms.motors import Offset, RotorInertia

ROBOTS = ("scara", "stanford", "puma560", "ur10", "panda")
NOISE = Noise(position=1e-5, effort=0.1)
BATCH = 25


def hits(name: str, first: int, count: int) -> NDArray[np.int64]:
    """(b,) in how many of the runs each interval covered."""
    models = (RotorInertia(0.1), Viscous(0.5), Coulomb(0.4), Offset(0.1))
    robot = zoo.get(name).with_terms(*models)
    base = base_parameters(robot)
    truth = base.project(robot.parameter_vector)
    path = sum_of_sines(robot.dof, amplitude=0.6, seed=1)
    total = np.zeros(base.rank, dtype=np.int64)
    for seed in range(first, first + count):
        log = simulate_experiment(
            robot, path, rate_hz=500.0, duration_s=10.0, noise=NOISE, with_velocity=False, seed=seed
        )
        run = process(log)
        interval = WLS().solve(build_equations(robot, run, base=base)).interval()
        total += (interval[:, 0] <= truth) & (truth <= interval[:, 1])
    return total


def main(runs: int) -> None:
    """Print the coverage of every robot."""
    with ProcessPoolExecutor() as pool:
        for name in ROBOTS:
            starts = range(0, runs, BATCH)
            jobs = [pool.submit(hits, name, start, min(BATCH, runs - start)) for start in starts]
            share = sum(job.result() for job in jobs) / runs
            print(
                f"{name:10s} {len(share):3d} parameters, {runs} runs: {100 * share.mean():.1f} % covered, "
                f"single parameters {100 * share.min():.1f} to {100 * share.max():.1f} %",
                flush=True,
            )


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 1000)
