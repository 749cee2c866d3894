"""How fast: the TX40's log from files on disk to a validated result, and one feasible solve for seven links.

Run ``python tests/campaigns/identification_speed.py``; prints seconds of one core, best of five, once all is compiled.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from dataclasses import replace

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # the matrices are small: more threads only wait for one another

import numpy as np
from real_logs import DATA, SETS, split, tx40

import dynid
from dynid.data.simulation import sum_of_sines
from dynid.estimation.feasible import FeasibleWLS, feasible_parameters
from dynid.estimation.least_squares import refined_weights

BEST_OF = 5


def best(task: Callable[[], object]) -> float:
    """Seconds of one core, best of several, after one run that compiles."""
    task()
    times = []
    for _ in range(BEST_OF):
        start = time.process_time()
        task()
        times.append(time.process_time() - start)
    return min(times)


def tx40_to_verdict() -> dynid.Validation:
    """Read, process, identify physically consistent, validate on every third block."""
    data, robot = SETS[0], tx40()
    training, log, held = split(data, data.recordings(robot))
    cutoff = 60.0
    fit = dynid.identify(robot, [data.processed(part, cutoff, training=True) for part in training])
    proof = data.processed(log, cutoff, training=True)
    inside = np.interp(proof.time, log.time, held.astype(float)) > 0.999
    return dynid.validate(fit, replace(proof, valid=proof.valid & inside[:, None]), band_hz=30.0)


def feasible_solve() -> Callable[[], object]:
    """The cone program of a Panda with friction, already reduced."""
    robot = dynid.robots.panda().with_joint_models(
        dynid.RotorInertia(0.1), dynid.Viscous(0.5), dynid.Coulomb(0.4), dynid.Offset(0.1)
    )
    path = sum_of_sines(robot.dof, amplitude=0.6, seed=1)
    log = dynid.simulate_experiment(robot, path, rate_hz=500.0, duration_s=10.0, noise=dynid.Noise(effort=0.1), seed=0)
    problem = dynid.build_problem(robot, dynid.process(log))
    factor = problem.information.weight(refined_weights(problem))
    return lambda: feasible_parameters(problem, factor, 1.0, FeasibleWLS(prior_weight=1.0))


def main() -> None:
    """Print both figures."""
    print(f"feasible solve, 7 links: {1e3 * best(feasible_solve()):.1f} ms")
    if DATA.is_dir():
        print(f"tx40, 45 000 samples from disk to verdict: {best(tx40_to_verdict):.2f} s")
        print(tx40_to_verdict().verdict)


if __name__ == "__main__":
    main()
